#include "regard/decoding/translator.h"

#include <algorithm>

#include "regard/text/readers.h"
#include "regard/text/utf8.h"

namespace regard::decoding {
namespace {

bool ends_sentence(const std::string& word) {
  for (const char* end : {".", "!", "?", "\u3002", "\uff01", "\uff1f", "\\n"})
    if (word.ends_with(end)) return true;
  return false;
}

/// One part of one line, with its end symbol.
struct Part {
  size_t line;
  int64_t begin, end;  // into the line's pieces
  std::vector<int32_t> ids;
};

/// Joins what follows to what is there: `next` speaks of source pieces begin..end-1 of the line.
void append(Hypothesis& whole, const Hypothesis& next, const Part& part, size_t line_length, bool attention) {
  whole.attention.resize(std::min(whole.attention.size(), whole.ids.size()));  // no end symbol inside
  whole.ids.insert(whole.ids.end(), next.ids.begin(), next.ids.end());
  whole.score += next.score;
  whole.complete = whole.complete && next.complete;
  if (!attention) return;
  for (const auto& row : next.attention) {
    std::vector<float> wide(line_length, 0.0F);
    std::copy(row.begin(), row.end() - 1, wide.begin() + part.begin);
    wide.back() = row.back();
    whole.attention.push_back(std::move(wide));
  }
}

/// The r-th best of every part, joined, for every r that the longest list has.
std::vector<Hypothesis> join(std::span<const Part> parts, std::span<std::vector<Hypothesis>> found,
                             size_t line_length, bool attention) {
  if (parts.size() == 1) return std::move(found[0]);
  size_t count = 0;
  for (const auto& list : found) count = std::max(count, list.size());
  std::vector<Hypothesis> joined(count);
  for (size_t rank = 0; rank < count; ++rank) {
    joined[rank].complete = true;
    for (size_t p = 0; p < parts.size(); ++p)
      append(joined[rank], found[p][std::min(rank, found[p].size() - 1)], parts[p], line_length, attention);
    joined[rank].score /= static_cast<double>(parts.size());
  }
  return joined;
}

/// The numbers in the joined matrices of a line in parts.
int64_t matrix_size(std::span<const std::vector<Hypothesis>> found, size_t line_length) {
  size_t tokens = 0;
  for (const auto& list : found)
    for (const auto& hypothesis : list) tokens += hypothesis.ids.size() + 1;
  return static_cast<int64_t>(tokens * line_length);
}

/// Searches so many parts at a time that the attention of all is never held together, and keeps what is
/// wanted.
std::vector<std::vector<Hypothesis>> search_parts(const models::TrainedModel& trained,
                                                  std::span<const Part> parts, const SearchOptions& options,
                                                  const Wanted& wanted, ThreadPool& pool) {
  constexpr size_t kPieces = size_t{1} << 15;
  std::vector<std::vector<Hypothesis>> found;
  for (size_t first = 0; first < parts.size();) {
    std::vector<std::span<const int32_t>> sources;
    for (size_t pieces = 0; first < parts.size() && pieces < kPieces; ++first) {
      sources.emplace_back(parts[first].ids);
      pieces += parts[first].ids.size();
    }
    for (auto& list : search(*trained.model, sources, options, pool, trained.frozen.get())) {
      if (static_cast<int64_t>(list.size()) > wanted.hypotheses)
        list.resize(static_cast<size_t>(wanted.hypotheses));
      if (!wanted.attention)
        for (auto& hypothesis : list) hypothesis.attention = {};
      found.push_back(std::move(list));
    }
  }
  return found;
}

}  // namespace

std::vector<int64_t> part_ends(const text::Vocabulary& vocabulary, std::span<const int32_t> ids,
                               int64_t longest) {
  const auto total = static_cast<int64_t>(ids.size());
  std::vector<int64_t> ends;
  if (total > longest) {
    const auto words = vocabulary.words(ids);
    int64_t begin = 0, word_end = 0, sentence_end = 0;
    for (const auto& word : words) {
      while (word.end - begin > longest) {
        int64_t cut = begin + longest;
        if (word_end > begin) cut = word_end;
        if (sentence_end > begin + longest / 2) cut = sentence_end;
        ends.push_back(begin = cut);
      }
      word_end = word.end;
      if (ends_sentence(word.text)) sentence_end = word.end;
    }
  }
  ends.push_back(total);
  return ends;
}

std::vector<Translated> translate(const models::TrainedModel& trained, std::span<const std::string> lines,
                                  const SearchOptions& options, ThreadPool& pool, const Wanted& wanted) {
  std::vector<Translated> result(lines.size());
  std::vector<Part> parts;
  const auto end_symbol = text::Vocabulary::kEnd;
  for (size_t i = 0; i < lines.size(); ++i) {
    result[i].blank = text::is_blank(lines[i]);
    if (result[i].blank) continue;
    auto& ids = result[i].source_ids = trained.source->encode(lines[i]);
    int64_t begin = 0;
    for (const int64_t end : part_ends(*trained.source, ids, trained.longest - 1)) {
      Part part{i, begin, end, {ids.begin() + begin, ids.begin() + end}};
      part.ids.push_back(end_symbol);
      parts.push_back(std::move(part));
      begin = end;
    }
    ids.push_back(end_symbol);
  }
  auto found = search_parts(trained, parts, options, wanted, pool);
  for (size_t first = 0; first < parts.size();) {
    size_t last = first;
    while (last < parts.size() && parts[last].line == parts[first].line) ++last;
    Translated& line = result[parts[first].line];
    line.parts = static_cast<int64_t>(last - first);
    const auto of_line = std::span(found).subspan(first, last - first);
    const size_t length = line.source_ids.size();
    line.attention_left_out = line.parts > 1 && matrix_size(of_line, length) > kLargestMatrix;
    line.hypotheses =
        join(std::span(parts).subspan(first, last - first), of_line, length, !line.attention_left_out);
    first = last;
  }
  return result;
}

std::string text_of(const models::TrainedModel& trained, const Translated& translated,
                    const Hypothesis& hypothesis, const std::string& line, bool replace_unknown) {
  const auto& ids = hypothesis.ids;
  const bool unknown = std::find(ids.begin(), ids.end(), text::Vocabulary::kUnknown) != ids.end();
  if (!replace_unknown || !unknown || hypothesis.attention.empty())
    return text::line_of(trained.target->decode(ids));
  const auto surfaces = trained.source->surfaces(line);
  std::vector<std::string> replacements(ids.size());
  const auto words = static_cast<std::ptrdiff_t>(std::min(surfaces.size(), translated.source_ids.size() - 1));
  for (size_t i = 0; i < ids.size() && words > 0; ++i) {
    const auto& row = hypothesis.attention[i];
    replacements[i] =
        surfaces[static_cast<size_t>(std::max_element(row.begin(), row.begin() + words) - row.begin())];
  }
  return text::line_of(trained.target->decode(ids, replacements));
}

}  // namespace regard::decoding
