#pragma once
// Files as the rest of the project uses them: read whole, written atomically.

#include <filesystem>
#include <string>
#include <string_view>

namespace regard {

/// The bytes of a file. Throws SystemError ("cannot read FILE: reason").
std::string read_file(const std::filesystem::path& path);

/// Replaces a file in one step: the bytes go to a temporary name beside it,
/// are synced, and are renamed over `path`; the folder is synced too.
/// A crash at any moment leaves the old file or the new one, whole.
/// Throws SystemError with errno (ENOSPC for a full disk); then the old file is untouched
/// and the temporary one removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// The same in pieces: append as often as needed, then commit().
/// Destroyed without commit(), nothing has happened. Throws as write_file_atomically().
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::string_view bytes);
  /// What was appended is on the disk: commit() can only fail for the renaming.
  void sync();
  void commit();

 private:
  [[noreturn]] void fail(const char* what);
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

/// Makes renamings in a directory (empty: the current one) last through a crash.
/// A system that cannot is no error.
void sync_directory(const std::filesystem::path& path);

}  // namespace regard
