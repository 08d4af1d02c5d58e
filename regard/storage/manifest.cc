#include "regard/storage/manifest.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/storage/checksum.h"
#include "regard/storage/json.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFormatVersion = 1;
constexpr const char* kManifest = "manifest.json";
constexpr const char* kAbsent = "absent";
constexpr const char* kRemedy = "; restore it from a copy or train again";

/// A name stays inside the directory and is not the manifest's.
bool valid_name(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute() || !path.has_filename() || name == kManifest) return false;
  if (name.find('\0') != std::string::npos) return false;
  return std::none_of(path.begin(), path.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw SystemError("cannot create " + path.string(), error.value());
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Where renaming to `path` will put a directory: without links, and with a name ("." has none).
fs::path real_place(const fs::path& path) {
  fs::path place = path.lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // "model/"
  if (!is_there(place)) return place;
  place = fs::canonical(place);
  struct stat inside {
  }, outside{};
  if (::stat(place.c_str(), &inside) == 0 && ::stat(place.parent_path().c_str(), &outside) == 0 &&
      (inside.st_dev != outside.st_dev || inside.st_ino == outside.st_ino))
    throw UsageError(path.string() + ": a mounted file system; choose a new directory inside it");
  return place;
}

/// Removes what create_aside() made. The manifest goes last: a kill in between leaves something that the next
/// create_aside() knows as its own.
void remove_aside(const fs::path& aside, std::error_code& error) {
  for (fs::directory_iterator entry(aside, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename() != kManifest) fs::remove_all(entry->path(), error);
  if (!error) fs::remove_all(aside, error);
}

/// Nothing but what a kill during the first write of a manifest leaves.
bool is_first_try(const fs::path& path) {
  std::error_code error;
  fs::directory_iterator entry(path, error);
  return !error && entry != fs::directory_iterator() &&
         entry->path().filename() == std::string(kManifest) + ".tmp" && ++entry == fs::directory_iterator();
}

}  // namespace

void ModelDirectory::require_new(const fs::path& path) {
  std::error_code error;
  if (!is_there(path)) {
    if (fs::is_symlink(path, error))
      throw UsageError(path.string() + ": a link to nothing; choose another --output");
    return;
  }
  if (!fs::is_directory(path))
    throw UsageError(path.string() + ": a file of that name exists; choose another --output");
  const bool empty = fs::is_empty(path, error);
  if (error) throw SystemError("cannot read " + path.string(), error.value());
  if (!empty)
    throw UsageError(path.string() + ": not empty; choose another --output, or continue it with --resume");
}

ModelDirectory ModelDirectory::create(const fs::path& path, const std::string& data_fingerprint,
                                      const std::string& licence_note) {
  if (!is_first_try(path)) require_new(path);
  create_folder(path);
  ModelDirectory directory(path);
  directory.set_notes(data_fingerprint, licence_note);
  return directory;
}

ModelDirectory ModelDirectory::create_aside(const fs::path& path, const std::string& data_fingerprint,
                                            const std::string& licence_note) {
  require_new(path);
  const fs::path place = real_place(path);
  fs::path aside = place;
  aside += ".part";
  std::error_code error;
  if (is_there(aside / kManifest) || is_first_try(aside)) remove_aside(aside, error);
  if (error) throw SystemError("cannot remove " + aside.string(), error.value());
  require_new(aside);
  create_folder(aside);
  ModelDirectory directory(aside);
  directory.aside_ = std::make_shared<Aside>(aside, place);
  directory.set_notes(data_fingerprint, licence_note);
  return directory;
}

ModelDirectory::Aside::Aside(fs::path made, fs::path wanted)
    : folder(std::move(made)), place(std::move(wanted)) {}

ModelDirectory::Aside::~Aside() {
  std::error_code ignored;
  if (!folder.empty()) remove_aside(folder, ignored);
}

void ModelDirectory::move_into_place() {
  std::error_code error;
  fs::rename(path_, aside_->place, error);
  if (error)
    throw SystemError("cannot rename " + path_.string() + " to " + aside_->place.string(), error.value());
  aside_->folder.clear();
  path_ = aside_->place;
  aside_.reset();
  sync_directory(path_.parent_path());
}

ModelDirectory ModelDirectory::open(const fs::path& path) {
  std::error_code error;
  if (const auto status = fs::status(path, error); !fs::exists(status))
    throw SystemError("cannot open model " + path.string(), error ? error.value() : ENOENT);
  if (!fs::is_directory(path))
    throw DataError(path.string(), 0, "a file; a model is a directory, made by `regard train --output DIR`");
  const std::string name = (path / kManifest).string();
  if (!is_there(name))
    throw DataError(name, 0,
                    "missing; the directory is no model, or its manifest was lost: restore it from a copy or "
                    "train again");
  const std::string bytes = read_file(name);
  ModelDirectory directory(path);
  int64_t version = 0;
  try {
    version = directory.parse_manifest(bytes, name);
  } catch (const DataError& fault) {
    throw DataError(fault.what() + std::string(kRemedy));
  }
  if (version > kFormatVersion)
    throw DataError(name, 0,
                    "format " + std::to_string(version) + ", this program reads up to " +
                        std::to_string(kFormatVersion) + "; use a newer one");
  if (directory.manifest_text() != bytes)
    throw DataError(name, 0, std::string("damaged (checksum differs)") + kRemedy);
  return directory;
}

/// Takes over what the manifest says and returns its format; of a newer one it takes nothing.
int64_t ModelDirectory::parse_manifest(std::string_view bytes, const std::string& name) {
  const auto object = parse_json_object(bytes, name);
  const int64_t version = json_integer(object, "format_version", name, 1);
  if (version > kFormatVersion) return version;
  data_fingerprint_ = json_string(object, "data_fingerprint", name);
  licence_note_ = json_string(object, "licence_note", name);
  const auto& files = json_object(object, "files", name);
  for (const auto& pair : files) {
    const std::string file(pair.key().data(), pair.key().size());
    if (!valid_name(file)) throw DataError(name, 0, "damaged (file name \"" + file + "\")");
    for (const auto& sum : json_array(files, file, name)) {
      if (!sum.is_string()) throw DataError(name, 0, "damaged (checksum of \"" + file + "\" is no text)");
      files_[file].emplace_back(sum.get_string().data(), sum.get_string().size());
    }
  }
  return version;
}

void ModelDirectory::set_notes(const std::string& data_fingerprint, const std::string& licence_note) {
  data_fingerprint_ = data_fingerprint;
  licence_note_ = licence_note;
  write_manifest();
}

std::vector<std::string> ModelDirectory::names() const {
  std::vector<std::string> result;
  for (const auto& file : files_)
    if (contains(file.first)) result.push_back(file.first);
  return result;
}

bool ModelDirectory::contains(const std::string& name) const {
  const auto file = files_.find(name);
  if (file == files_.end()) return false;
  const auto& sums = file->second;
  return std::find(sums.begin(), sums.end(), kAbsent) == sums.end() || is_there(path(name));
}

std::string ModelDirectory::read(const std::string& name) const {
  const std::string file = path(name).string();
  if (!contains(name)) throw DataError(file, 0, std::string("not in the manifest") + kRemedy);
  if (!is_there(file)) throw DataError(file, 0, std::string("missing") + kRemedy);
  std::string bytes = read_file(file);
  const auto& sums = files_.at(name);
  if (std::find(sums.begin(), sums.end(), checksum_text(checksum(bytes))) == sums.end())
    throw DataError(file, 0, std::string(bytes.empty() ? "empty" : "damaged (checksum differs)") + kRemedy);
  return bytes;
}

void ModelDirectory::write(const std::string& name, std::string_view bytes,
                           const std::function<void(int)>& after_step) {
  write(
      name, [&](const Sink& sink) { sink(bytes); }, after_step);
}

void ModelDirectory::write(const std::string& name, const Content& content,
                           const std::function<void(int)>& after_step) {
  if (!valid_name(name)) throw Error(ErrorKind::internal, "[ModelDirectory] bad file name \"" + name + "\"");
  const auto done = [&](int step) {
    if (after_step) after_step(step);
  };
  Checksum sum;
  content([&](std::string_view bytes) { sum.append(bytes); });
  const std::string before = present_checksum(name), after = checksum_text(sum.value());
  files_[name] = {before, after};
  write_manifest();
  done(1);
  create_folder(path(name).parent_path());
  AtomicFile file(path(name));
  content([&](std::string_view bytes) { file.append(bytes); });
  file.commit();
  done(2);
  files_[name] = {after};
  write_manifest();
  done(3);
}

void ModelDirectory::verify_all() const {
  for (const std::string& name : names()) read(name);
}

/// The checksum that the file has by the manifest; of two, left by a kill, the one that is true. A damaged
/// file has the first: it is about to be replaced.
std::string ModelDirectory::present_checksum(const std::string& name) const {
  const auto file = files_.find(name);
  if (file == files_.end() || file->second.empty()) return kAbsent;
  const auto& sums = file->second;
  if (sums.size() == 1) return sums.front();
  if (!is_there(path(name))) return kAbsent;
  const std::string present = checksum_text(checksum(read_file(path(name))));
  return std::find(sums.begin(), sums.end(), present) == sums.end() ? sums.front() : present;
}

std::string ModelDirectory::manifest_text() const {
  boost::json::object files;
  for (const auto& file : files_)
    files[file.first] = boost::json::array(file.second.begin(), file.second.end());
  boost::json::object object{{"format_version", kFormatVersion},
                             {"files", std::move(files)},
                             {"data_fingerprint", data_fingerprint_},
                             {"licence_note", licence_note_}};
  const std::string sum = checksum_text(checksum(pretty(object)));
  object["checksum"] = sum;
  return pretty(object);
}

void ModelDirectory::write_manifest() const { write_file_atomically(path_ / kManifest, manifest_text()); }

}  // namespace regard
