#include "regard/training/guidance.h"

#include <fmt/format.h>

#include <set>

#include "regard/base/error.h"
#include "regard/text/readers.h"
#include "regard/text/utf8.h"

namespace regard::training {
namespace {

/// The pieces of each word; no words at all if the vocabulary sees others than blanks part.
std::vector<text::Word> words_of(const GuidedSide& side, int64_t pair) {
  const auto ids = side.sentences[pair];
  auto words = side.vocabulary.words(ids);
  std::erase_if(words, [&](const text::Word& word) {
    return ids[static_cast<size_t>(word.begin)] == text::Vocabulary::kEnd || text::is_blank(word.text);
  });
  const bool whole = !ids.empty() && ids.back() == text::Vocabulary::kEnd;
  const auto seen = static_cast<int64_t>(words.size()),
             expected = text::word_count(side.lines[static_cast<size_t>(pair)]);
  if (whole ? seen != expected : seen > expected) words.clear();
  return words;
}

}  // namespace

WordLinks read_word_links(const std::filesystem::path& path, std::span<const std::string> source,
                          std::span<const std::string> target) {
  const std::string name = path.string();
  const auto lines = text::read_lines(path);
  if (lines.size() != source.size())
    throw DataError(name, 0,
                    fmt::format("{} lines of links for {} pairs; give one line a pair, an empty one for none",
                                lines.size(), source.size()));
  WordLinks links;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto line = static_cast<int64_t>(i) + 1, S = text::word_count(source[i]),
               T = text::word_count(target[i]);
    const auto parsed = evaluation::parse_links(lines[i], name, line).possible;
    for (const auto& [s, t] : parsed)
      if (s >= S || t >= T)
        throw DataError(
            name, line,
            fmt::format("link {}-{} of a pair of {} source and {} target words (from 0)", s, t, S, T));
    links.emplace_back(parsed.begin(), parsed.end());
  }
  return links;
}

std::vector<std::vector<models::GuidedLink>> guided_links(const WordLinks& links, const GuidedSide& source,
                                                          const GuidedSide& target) {
  std::vector<std::vector<models::GuidedLink>> result(links.size());
  for (size_t i = 0; i < links.size(); ++i) {
    const auto pair = static_cast<int64_t>(i);
    const auto sources = words_of(source, pair), targets = words_of(target, pair);
    std::vector<std::set<int64_t>> pieces(targets.size());  // of the source, that a target word looks at
    for (const auto& [s, t] : links[i]) {
      if (s >= static_cast<int64_t>(sources.size()) || t >= static_cast<int64_t>(targets.size())) continue;
      const text::Word& word = sources[static_cast<size_t>(s)];
      for (int64_t j = word.begin; j < word.end; ++j) pieces[static_cast<size_t>(t)].insert(j);
    }
    for (size_t t = 0; t < targets.size(); ++t)
      for (int64_t k = targets[t].begin; k < targets[t].end; ++k)
        for (const int64_t j : pieces[t])
          result[i].push_back({static_cast<int32_t>(k), static_cast<int32_t>(j),
                               1.0F / static_cast<float>(pieces[t].size())});
  }
  return result;
}

}  // namespace regard::training
