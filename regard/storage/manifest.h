#pragma once
// A model's directory and its manifest: every file checked when read,
// replaced so that a kill at any moment is harmless.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regard/storage/checksum.h"

namespace regard {

/// A directory with `manifest.json`: {format_version, files: {name: [checksums]}, data_fingerprint,
/// licence_note, checksum (of the manifest itself)}. A file has one checksum, and two (before, after) while
/// it is being replaced; the word "absent" stands for a file that did not exist before. Names may have
/// folders: "parts/a.safetensors". Not safe from several threads. One process may write; any number may read.
class ModelDirectory {
 public:
  /// A new directory with an empty manifest; an existing empty one will do. Throws UsageError if there is
  /// something in it (or in its place), SystemError if it cannot be created.
  static ModelDirectory create(const std::filesystem::path& path, const std::string& data_fingerprint = "",
                               const std::string& licence_note = "");
  /// What create() asks of `path`, to be asked before long work. Throws UsageError.
  static void require_new(const std::filesystem::path& path);
  /// As create(), but in a place of its own beside `path`, so that nothing stands at `path` before
  /// move_into_place(): a run that is killed early leaves no half-made model. What an earlier such run left
  /// is removed, and so is the place itself if the last copy of the value goes before move_into_place().
  /// Throws as create() does, and UsageError if `path` is a mount point, which nothing can be renamed to.
  static ModelDirectory create_aside(const std::filesystem::path& path,
                                     const std::string& data_fingerprint = "",
                                     const std::string& licence_note = "");
  /// Ends create_aside(): one atomic renaming. Throws SystemError.
  void move_into_place();
  /// Throws SystemError if there is no such directory,
  /// DataError if it has no manifest or a damaged one, or one of a newer format.
  static ModelDirectory open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path path(const std::string& name) const { return path_ / name; }
  const std::string& data_fingerprint() const { return data_fingerprint_; }
  const std::string& licence_note() const { return licence_note_; }
  void set_notes(const std::string& data_fingerprint, const std::string& licence_note);

  /// The names in the manifest whose files exist or ought to, sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;

  /// The bytes of a file, checked. Throws DataError ("DIR/NAME: damaged (checksum differs); restore it from a
  /// copy or train again"; the same for a missing one), SystemError if it cannot be read.
  std::string read(const std::string& name) const;

  /// Replaces or adds a file in three atomic steps: the manifest with both checksums,
  /// the file, the manifest with the new one. `after_step` is called after each with 1, 2, 3
  /// (tests throw from it, as a kill would stop there). Throws SystemError (a full disk);
  /// then the file is the old one, whole, and the directory can be opened.
  void write(const std::string& name, std::string_view bytes,
             const std::function<void(int)>& after_step = {});
  void write(const std::string& name, const Content& content,
             const std::function<void(int)>& after_step = {});

  /// Reads every file. Throws as read() does at the first bad one.
  void verify_all() const;

 private:
  explicit ModelDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  int64_t parse_manifest(std::string_view bytes, const std::string& name);
  std::string manifest_text() const;
  void write_manifest() const;
  std::string present_checksum(const std::string& name) const;

  /// Of create_aside(): removes `folder` unless it was moved to `place`.
  struct Aside {
    Aside(std::filesystem::path folder, std::filesystem::path place);
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;
    ~Aside();
    std::filesystem::path folder, place;
  };

  std::filesystem::path path_;
  std::shared_ptr<Aside> aside_;
  std::map<std::string, std::vector<std::string>> files_;
  std::string data_fingerprint_, licence_note_;
};

}  // namespace regard
