#include "regard/cli/limits.h"

#include <fmt/format.h>

#include "regard/base/error.h"

namespace regard::cli {

void require_workable(const std::filesystem::path& file, int64_t line, int64_t source_pieces,
                      int64_t target_pieces) {
  if (source_pieces <= kAttentionWeights / target_pieces) return;
  throw DataError(
      file.string(), line,
      fmt::format("{} pieces, {} on the other side: too long for one sentence pair; split the line",
                  source_pieces, target_pieces));
}

}  // namespace regard::cli
