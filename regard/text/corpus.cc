#include "regard/text/corpus.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "regard/base/error.h"
#include "regard/base/file.h"
#include "regard/base/random.h"
#include "regard/text/utf8.h"

namespace regard::text {
namespace {

bool blank(std::string_view line) { return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos; }

/// The pairs worth keeping, as lines; what is dropped is counted in `corpus`.
std::vector<Pair> cleaned(std::span<const Pair> pairs, const CorpusOptions& options, Corpus& corpus) {
  std::vector<Pair> kept;
  std::unordered_set<std::string> seen;
  for (const Pair& pair : pairs) {
    ++corpus.read;
    Pair line{line_of(pair.source), line_of(pair.target), pair.context, pair.line};
    if (blank(line.source) || blank(line.target)) {
      ++corpus.empty;
    } else if (options.drop_copies && line.source == line.target) {
      ++corpus.copies;
    } else if (std::max(word_count(line.source), word_count(line.target)) > options.longest_words) {
      ++corpus.overlong;
    } else if (!seen.insert(line.source + '\n' + line.target).second) {
      ++corpus.duplicates;
    } else {
      kept.push_back(std::move(line));
    }
  }
  return kept;
}

enum class Part : char { train, dev, test };

/// Lines to hold out for development.
int64_t dev_lines(const CorpusOptions& options, int64_t distinct) {
  return std::max(options.dev, static_cast<int64_t>(options.dev_fraction * static_cast<double>(distinct)));
}

/// Which part each distinct source goes to.
std::unordered_map<std::string, Part> parts_of(const std::vector<Pair>& kept, const CorpusOptions& options) {
  std::unordered_map<std::string, Part> parts;
  std::vector<std::string> sources;
  for (const Pair& pair : kept) {
    if (parts.emplace(pair.source, Part::train).second) sources.push_back(pair.source);
  }
  const auto distinct = static_cast<int64_t>(sources.size());
  const int64_t dev = dev_lines(options, distinct);
  if (dev >= distinct || options.test >= distinct - dev) {
    throw DataError(std::to_string(distinct) + " distinct sources do not suffice to hold out " +
                    std::to_string(dev) + " + " + std::to_string(options.test) + " and train on the rest");
  }
  RandomStream random(options.seed, 0x636f72707573);
  shuffle(sources.begin(), sources.end(), random);
  for (int64_t i = 0; i < dev + options.test; ++i) {
    parts[sources[static_cast<size_t>(i)]] = i < dev ? Part::dev : Part::test;
  }
  return parts;
}

/// One side of a part, written but not yet in its place.
std::unique_ptr<AtomicFile> side_file(const std::filesystem::path& path, const std::vector<Pair>& pairs,
                                      std::string Pair::*side) {
  std::string lines;
  for (const Pair& pair : pairs) lines += pair.*side + '\n';
  auto file = std::make_unique<AtomicFile>(path);
  file->append(lines);
  file->sync();
  return file;
}

}  // namespace

Corpus build_corpus(std::span<const Pair> pairs, const CorpusOptions& options) {
  if (options.dev < 0 || options.test < 0) throw UsageError("cannot hold out fewer than 0 lines");
  if (options.longest_words < 1) throw UsageError("the longest pair needs at least 1 word");
  Corpus corpus;
  std::vector<Pair> kept = cleaned(pairs, options, corpus);
  if (kept.empty()) {
    throw DataError("no usable pair among " + std::to_string(corpus.read) +
                    " read; give files with translations");
  }
  const auto parts = parts_of(kept, options);
  std::unordered_set<std::string> taken;
  for (Pair& pair : kept) {
    const Part part = parts.at(pair.source);
    if (part == Part::train) {
      corpus.train.push_back(std::move(pair));
    } else if (!taken.insert(pair.source).second) {
      ++corpus.held_out;
    } else {
      (part == Part::dev ? corpus.dev : corpus.test).push_back(std::move(pair));
    }
  }
  return corpus;
}

void write_corpus(const Corpus& corpus, const std::filesystem::path& folder,
                  const std::string& source_language, const std::string& target_language) {
  const auto proper = [](const std::string& name) {
    return !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  };
  if (!proper(source_language) || !proper(target_language) || source_language == target_language) {
    throw UsageError("the two languages need two different names, such as en and fr");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw SystemError("cannot create " + folder.string(), error.value());
  // A full disk must not leave one side of one corpus beside the other side of another: all files are written
  // before the first takes its place.
  std::vector<std::unique_ptr<AtomicFile>> files;
  std::vector<std::filesystem::path> stale;
  const auto write = [&](const std::vector<Pair>& pairs, const std::string& part) {
    const auto source = folder / (part + "." + source_language),
               target = folder / (part + "." + target_language);
    if (pairs.empty()) {
      stale.insert(stale.end(), {source, target});
    } else {
      files.push_back(side_file(source, pairs, &Pair::source));
      files.push_back(side_file(target, pairs, &Pair::target));
    }
  };
  write(corpus.train, "train");
  write(corpus.dev, "dev");
  write(corpus.test, "test");
  for (const auto& file : files) file->commit();
  for (const auto& path : stale) std::filesystem::remove(path, error);
}

}  // namespace regard::text
