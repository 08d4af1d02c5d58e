#pragma once
// The safetensors format (https://github.com/huggingface/safetensors): named tensors behind a JSON header.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regard/storage/checksum.h"
#include "regard/tensor/tensor.h"

namespace regard {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

using Metadata = std::map<std::string, std::string>;

/// The bytes of a file with these tensors (F32, F64, I32) in this order and this metadata.
/// The header is padded with spaces to a multiple of 8 bytes; equal arguments give equal bytes.
/// Throws Error for a name that occurs twice, is "__metadata__" or stands for no tensor,
/// DataError for text that is not UTF-8.
std::string serialise_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata = {});

/// The same bytes for a writer that takes them in pieces, without a copy of the tensors:
/// what write_checked() and ModelDirectory::write() take.
/// Shares the tensors' storage. Throws at once as serialise_safetensors() does.
Content safetensors_content(std::vector<NamedTensor> tensors, const Metadata& metadata = {});

struct WrittenFile {
  uint64_t checksum = 0;  ///< XXH3-64 of the content
  int64_t size = 0;       ///< bytes
};

/// The same bytes written atomically to a file, without a copy of the tensors in memory. Throws SystemError.
WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              const Metadata& metadata = {});

/// What a file holds; tensors in the order of their bytes.
struct SafeTensors {
  std::string name;  ///< where it came from, for errors
  std::vector<NamedTensor> tensors;
  Metadata metadata;

  bool contains(std::string_view tensor) const;
  /// Throws DataError if there is no such tensor.
  const Tensor& at(std::string_view tensor) const;
};

/// Reads a file of F32, F64 and I32 tensors; every tensor owns its storage. Nothing in a header is trusted:
/// throws DataError naming the file, the tensor and the fault (header longer than the file or than 100 MB,
/// not JSON, other types, shapes that overflow or do not fit their bytes, bytes that overlap, are left over
/// or missing). SystemError if the file cannot be read.
SafeTensors read_safetensors(const std::filesystem::path& path);
SafeTensors parse_safetensors(std::string_view bytes, std::string_view name);

}  // namespace regard
