#include "regard/alignment/word_matrix.h"

#include <algorithm>

namespace regard::alignment {
namespace {

constexpr const char* kEndText = "</s>";

std::vector<std::string> texts(const std::vector<text::Word>& words) {
  std::vector<std::string> list;
  for (const auto& word : words) list.push_back(word.text);
  return list;
}

}  // namespace

pictures::AttentionMatrix word_matrix(const Pieces& source, const Pieces& target,
                                      std::span<const std::vector<float>> weights) {
  const auto sources = source.vocabulary.words(source.ids), targets = target.vocabulary.words(target.ids);
  pictures::AttentionMatrix matrix{texts(sources), texts(targets), {}, ""};
  for (const auto& row : targets)
    for (const auto& column : sources) {
      double weight = 0;
      for (int64_t i = row.begin; i < row.end; ++i)
        for (int64_t j = column.begin; j < column.end; ++j)
          weight += static_cast<double>(weights[static_cast<size_t>(i)][static_cast<size_t>(j)]);
      matrix.weights.push_back(static_cast<float>(weight / static_cast<double>(row.end - row.begin)));
    }
  return matrix;
}

pictures::AttentionMatrix word_matrix(const models::TrainedModel& trained,
                                      std::span<const int32_t> source_ids,
                                      const decoding::Hypothesis& hypothesis) {
  if (!trained.model->attends())
    throw UsageError(std::string("the model ") + trained.kind->name +
                     " has no attention to look at; train bahdanau, for one");
  std::vector<int32_t> target_ids = hypothesis.ids;
  if (hypothesis.attention.size() > target_ids.size()) target_ids.push_back(text::Vocabulary::kEnd);
  return word_matrix({*trained.source, source_ids}, {*trained.target, target_ids}, hypothesis.attention);
}

std::vector<std::pair<int64_t, int64_t>> links(const pictures::AttentionMatrix& matrix) {
  std::vector<std::pair<int64_t, int64_t>> list;
  const auto S = static_cast<std::ptrdiff_t>(matrix.source.size());
  if (S < 2) return list;
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    if (t + 1 == matrix.target.size() && matrix.target[t] == kEndText) continue;
    const float* const row = matrix.weights.data() + static_cast<std::ptrdiff_t>(t) * S;
    list.emplace_back(std::max_element(row, row + S - 1) - row, static_cast<int64_t>(t));
  }
  return list;
}

std::string pharaoh(std::span<const std::pair<int64_t, int64_t>> links) {
  std::string text;
  for (const auto& [source, target] : links)
    text += (text.empty() ? "" : " ") + std::to_string(source) + "-" + std::to_string(target);
  return text;
}

}  // namespace regard::alignment
