#include "regard/storage/checksum.h"

#include <xxhash.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "regard/base/error.h"
#include "regard/base/file.h"

namespace regard {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian");
constexpr std::string_view kMagic = "REGARDck";
constexpr size_t kTrailer = 16;

}  // namespace

uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string checksum_text(uint64_t checksum) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(checksum));
  return digits;
}

void write_checked(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw SystemError("cannot create " + path.parent_path().string(), error.value());
  const uint64_t sum = checksum(bytes);
  AtomicFile file(path);
  file.append(bytes);
  file.append(kMagic);
  file.append({reinterpret_cast<const char*>(&sum), sizeof sum});
  file.commit();
}

std::string read_checked(const std::filesystem::path& path) {
  std::string bytes = read_file(path);
  const auto damaged = [&](const char* what) {
    return DataError(path.string(), 0,
                     std::string("damaged (") + what + "); restore it from a copy or train again");
  };
  if (bytes.size() < kTrailer || std::string_view(bytes).substr(bytes.size() - kTrailer, 8) != kMagic)
    throw damaged("its end is missing");
  uint64_t sum;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.resize(bytes.size() - kTrailer);
  if (checksum(bytes) != sum) throw damaged("checksum differs");
  return bytes;
}

}  // namespace regard
