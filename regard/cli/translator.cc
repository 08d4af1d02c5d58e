#include "regard/cli/translator.h"

#include <algorithm>

#include "regard/simd/rows.h"

namespace regard::cli {
namespace {

constexpr int64_t kLongestSource = 512;  // pieces; more are cut, with a warning by the caller

/// Bytes of the white-space character at `at`, 0 if there is none.
size_t blank_length(const std::string& line, size_t at) {
  const char c = line[at];
  if (c == ' ' || (c >= '\t' && c <= '\r')) return 1;
  static const char* const kWide[] = {"\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
                                      "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a", "\u2028",
                                      "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff"};
  for (const char* wide : kWide)
    if (line.compare(at, std::char_traits<char>::length(wide), wide) == 0)
      return std::char_traits<char>::length(wide);
  return 0;
}

std::vector<std::string> texts(const std::vector<text::Word>& words) {
  std::vector<std::string> list;
  for (const auto& word : words) list.push_back(word.text);
  return list;
}

}  // namespace

bool is_blank(const std::string& line) {
  for (size_t at = 0; at < line.size();) {
    const size_t length = blank_length(line, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::vector<Translated> translate_lines(const models::TrainedModel& model, std::span<const std::string> lines,
                                        const decoding::SearchOptions& options, ThreadPool& pool) {
  std::vector<Translated> result(lines.size());
  std::vector<std::span<const int32_t>> sources;
  std::vector<size_t> places;
  for (size_t i = 0; i < lines.size(); ++i) {
    result[i].untouched = is_blank(lines[i]);
    if (result[i].untouched) continue;
    auto& ids = result[i].source_ids = model.source->encode(lines[i]);
    if (static_cast<int64_t>(ids.size()) >= kLongestSource) ids.resize(kLongestSource - 1);
    ids.push_back(text::Vocabulary::kEnd);
    places.push_back(i);
  }
  for (size_t i : places) sources.push_back(result[i].source_ids);
  auto found = decoding::search(model.model, sources, options, pool);
  for (size_t k = 0; k < places.size(); ++k) result[places[k]].hypotheses = std::move(found[k]);
  return result;
}

pictures::AttentionMatrix word_matrix(const models::TrainedModel& model, std::span<const int32_t> source_ids,
                                      const decoding::Hypothesis& hypothesis) {
  std::vector<int32_t> target_ids = hypothesis.ids;
  if (hypothesis.attention.size() > target_ids.size()) target_ids.push_back(text::Vocabulary::kEnd);
  const auto sources = model.source->words(source_ids), targets = model.target->words(target_ids);
  pictures::AttentionMatrix matrix{texts(sources), texts(targets), {}, ""};
  for (const auto& target : targets)
    for (const auto& source : sources) {
      double weight = 0;
      for (int64_t i = target.begin; i < target.end; ++i)
        for (int64_t j = source.begin; j < source.end; ++j)
          weight += static_cast<double>(hypothesis.attention[static_cast<size_t>(i)][static_cast<size_t>(j)]);
      matrix.weights.push_back(static_cast<float>(weight / static_cast<double>(target.end - target.begin)));
    }
  return matrix;
}

decoding::Hypothesis force(const models::TrainedModel& model, std::span<const int32_t> source_ids,
                           std::span<const int32_t> target_ids) {
  const std::vector<std::span<const int32_t>> sources{source_ids};
  const models::Memory memory = model.model.encode(sources);
  decoding::Hypothesis result;
  Tensor s = memory.s0;
  std::vector<int32_t> previous{model.target->begin()};
  const std::vector<int32_t> sentence_of{0};
  for (size_t i = 0; i <= target_ids.size(); ++i) {
    const int32_t y = i < target_ids.size() ? target_ids[i] : text::Vocabulary::kEnd;
    const models::Step step = model.model.step(previous, s, memory, sentence_of);
    const float* logits = step.logits.data<float>();
    result.score +=
        static_cast<double>(logits[y]) - static_cast<double>(simd::log_sum_exp(logits, step.logits.size()));
    const float* alpha = step.alpha.data<float>();
    result.attention.emplace_back(alpha, alpha + source_ids.size());
    s = step.s;
    previous[0] = y;
  }
  result.ids.assign(target_ids.begin(), target_ids.end());
  result.complete = true;
  return result;
}

std::string pharaoh_links(const pictures::AttentionMatrix& matrix) {
  std::string links;
  const size_t S = matrix.source.size();
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    if (matrix.target[t] == "</s>" || S < 2) continue;
    const float* row = matrix.weights.data() + t * S;
    const auto best = std::max_element(row, row + S - 1) - row;
    links += (links.empty() ? "" : " ") + std::to_string(best) + "-" + std::to_string(t);
  }
  return links;
}

}  // namespace regard::cli
