#include "regard/storage/checksum.h"

#include <xxhash.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <new>

#include "regard/base/error.h"
#include "regard/base/file.h"

namespace regard {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little endian");
constexpr std::string_view kMagic = "REGARDck";
constexpr size_t kTrailer = 16;

}  // namespace

uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Checksum::Checksum()
    : state_(XXH3_createState(), [](void* state) { XXH3_freeState(static_cast<XXH3_state_t*>(state)); }) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void Checksum::append(std::string_view bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

uint64_t Checksum::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}

std::string checksum_text(uint64_t checksum) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(checksum));
  return digits;
}

void write_checked(const std::filesystem::path& path, std::string_view bytes) {
  write_checked(path, [&](const Sink& sink) { sink(bytes); });
}

void write_checked(const std::filesystem::path& path, const Content& content) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw SystemError("cannot create " + path.parent_path().string(), error.value());
  AtomicFile file(path);
  Checksum sum;
  content([&](std::string_view bytes) {
    sum.append(bytes);
    file.append(bytes);
  });
  const uint64_t value = sum.value();
  file.append(kMagic);
  file.append({reinterpret_cast<const char*>(&value), sizeof value});
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
