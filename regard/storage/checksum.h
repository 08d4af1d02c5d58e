#pragma once
// Checksums (XXH3, 64 bits), content that is written in pieces, and files that carry their own checksum.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace regard {

/// XXH3-64 of the bytes.
uint64_t checksum(std::string_view bytes);
/// The same of bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  void append(std::string_view bytes);
  uint64_t value() const;

 private:
  std::shared_ptr<void> state_;
};

/// Takes a piece of a file's bytes.
using Sink = std::function<void(std::string_view)>;
/// A file's bytes, given to a sink piece by piece, so that large ones need not be gathered in memory first.
/// May be asked several times and gives the same bytes each time.
using Content = std::function<void(const Sink&)>;

/// 16 lower-case hexadecimal digits.
std::string checksum_text(uint64_t checksum);

/// Writes the bytes and, after them, a trailer of 16 bytes:
/// the magic "REGARDck" and the XXH3-64 of the bytes, little endian.
/// Atomic; the folder is created if missing. Throws SystemError; then the old file is untouched.
void write_checked(const std::filesystem::path& path, std::string_view bytes);
void write_checked(const std::filesystem::path& path, const Content& content);

/// The bytes that write_checked() was given. Throws SystemError if there is no such file,
/// DataError ("FILE: damaged (...); restore it from a copy or train again") if it was cut or changed.
std::string read_checked(const std::filesystem::path& path);

}  // namespace regard
