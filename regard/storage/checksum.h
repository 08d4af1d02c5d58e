#pragma once
// Checksums (XXH3, 64 bits) and files that carry their own.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace regard {

/// XXH3-64 of the bytes.
uint64_t checksum(std::string_view bytes);
/// 16 lower-case hexadecimal digits.
std::string checksum_text(uint64_t checksum);

/// Writes the bytes and, after them, a trailer of 16 bytes: the magic "REGARDck" and the XXH3-64 of the
/// bytes, little endian. Atomic; the folder is created if missing. Throws SystemError; then the old file is
/// untouched.
void write_checked(const std::filesystem::path& path, std::string_view bytes);

/// The bytes that write_checked() was given. Throws SystemError if there is no such file, DataError ("FILE:
/// damaged
/// (...); restore it from a copy or train again") if it was cut or changed.
std::string read_checked(const std::filesystem::path& path);

}  // namespace regard
