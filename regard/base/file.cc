#include "regard/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "regard/base/error.h"

namespace regard {

std::string read_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw SystemError("cannot read " + path.string(), errno);
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  std::string bytes;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
    bytes.reserve(static_cast<size_t>(status.st_size));
  constexpr size_t kPiece = 1 << 20;
  for (;;) {
    const size_t have = bytes.size();
    bytes.resize(have + kPiece);
    const ssize_t got = ::read(descriptor, bytes.data() + have, kPiece);
    bytes.resize(have + static_cast<size_t>(got > 0 ? got : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw SystemError("cannot read " + path.string(), errno);
    if (got == 0) return bytes;
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.append(bytes);
  file.commit();
}

namespace {

/// Where a file of this name is replaced: a link stays and what it points to is replaced. Throws SystemError
/// for what is there and is no file (a device, a pipe): replacing it would destroy it.
std::filesystem::path replaceable(std::filesystem::path path) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) {
    const auto target = std::filesystem::weakly_canonical(path, error);
    if (!error) path = target;
  }
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status))
    throw SystemError(path.string() + " is no file that can be replaced; give the name of a file");
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(replaceable(std::move(path))) {
  temporary_ = path_;
  temporary_ += ".tmp";
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw SystemError("cannot write " + temporary_.string(), errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) {
  const int error_number = errno;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  ::unlink(temporary_.c_str());
  throw SystemError(std::string("cannot ") + what + " " + path_.string(), error_number);
}

void AtomicFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AtomicFile::sync() {
  if (::fsync(descriptor_) != 0) fail("write");
}

void AtomicFile::commit() {
  sync();
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace");
  sync_directory(path_.parent_path());
}

void sync_directory(const std::filesystem::path& path) {
  const int descriptor = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace regard
