#pragma once
// How long a sentence may be where work and memory grow with the product of both sides.

#include <cstdint>
#include <filesystem>

namespace regard::cli {

/// Weights of attention that one pair may have, and that pairs worked on together have about (256 MiB).
constexpr int64_t kAttentionWeights = int64_t{1} << 26;

/// Throws DataError FILE:LINE if a pair of so many pieces would need more.
void require_workable(const std::filesystem::path& file, int64_t line, int64_t source_pieces,
                      int64_t target_pieces);

}  // namespace regard::cli
