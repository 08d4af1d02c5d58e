#include "regard/text/gather.h"

#include <algorithm>
#include <iterator>

#include "regard/base/error.h"

namespace regard::text {
namespace {

void append(std::vector<Pair>& all, std::vector<Pair> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

/// A folder stands for the catalogues and TSV files in it, in the order of their paths.
std::vector<std::filesystem::path> expanded(std::span<const std::string> names) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& name : names) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) {
      paths.emplace_back(name);
      continue;
    }
    std::vector<std::filesystem::path> inside;
    for (auto entry = std::filesystem::recursive_directory_iterator(name, error);
         !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
      if (format_of(entry->path()) != Format::automatic) inside.push_back(entry->path());
    }
    if (error) throw SystemError("cannot read " + name, error.value());
    std::sort(inside.begin(), inside.end());
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

/// The language a plain file's name ends with: "fr" of news.fr and of news.fr.gz.
std::string language_of(std::filesystem::path path) {
  if (path.extension() == ".gz") path = path.stem();
  const std::string extension = path.extension().string();
  return extension.empty() ? "" : extension.substr(1);
}

}  // namespace

std::vector<Pair> gather_pairs(std::span<const std::string> names, const std::string& from,
                               const std::string& to) {
  std::vector<Pair> pairs;
  std::vector<std::filesystem::path> plain;
  for (const auto& path : expanded(names)) {
    if (format_of(path) == Format::automatic) {
      plain.push_back(path);
    } else {
      append(pairs, read_pairs(path));
    }
  }
  if (plain.size() % 2 != 0) {
    throw UsageError("line files come in pairs, source before target; " + plain.back().string() +
                     " is alone");
  }
  for (size_t i = 0; i < plain.size(); i += 2) {
    const bool reversed = language_of(plain[i]) == to && language_of(plain[i + 1]) == from;
    append(pairs, read_parallel(plain[reversed ? i + 1 : i], plain[reversed ? i : i + 1]));
  }
  return pairs;
}

}  // namespace regard::text
