#include "regard/decoding/perplexity.h"

#include <algorithm>
#include <cmath>

namespace regard::decoding {

double nats_per_token(const models::Model& model, const text::Sentences& source,
                      const text::Sentences& target, ThreadPool& pool, std::span<const int32_t> labels) {
  const auto batches = text::make_batches(source, target, {.tokens = 3000}, 0, 0, false);
  std::vector<double> sums(batches.size());
  pool.parallel_for(static_cast<int64_t>(batches.size()), [&](int64_t i) {
    models::SentencePairs pairs;
    for (const int64_t s : batches[static_cast<size_t>(i)]) {
      pairs.sources.push_back(source[s]);
      pairs.targets.push_back(target[s]);
      if (!labels.empty()) pairs.labels.push_back(labels[static_cast<size_t>(s)]);
    }
    sums[static_cast<size_t>(i)] = static_cast<double>(model.loss(pairs, {}).data<float>()[0]);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  const int64_t predictions = labels.empty() ? target.tokens() : target.size();
  return total / static_cast<double>(std::max<int64_t>(predictions, 1));
}

double TextScore::bits_per_character() const {
  return nats / std::log(2.0) / static_cast<double>(characters);
}
double TextScore::bits_per_byte() const { return nats / std::log(2.0) / static_cast<double>(bytes); }

TextScore score_text(const models::TrainedModel& trained, std::span<const std::string> lines,
                     ThreadPool& pool) {
  TextScore score;
  for (const std::string& line : lines) {
    score.bytes += static_cast<int64_t>(line.size()) + 1;
    ++score.characters;
    for (const char c : line) score.characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }
  constexpr int64_t kWhole = int64_t{1} << 40;  // nothing is cut
  const auto pieces = trained.is_stream ? text::encode_stream(*trained.target, lines, trained.longest)
                                        : text::encode_lines(*trained.target, lines, kWhole);
  for (int64_t i = 0; i < pieces.size(); ++i)
    for (const int32_t id : pieces[i]) score.unknown += id == text::Vocabulary::kUnknown;
  score.pieces = pieces.tokens();
  score.nats = nats_per_token(*trained.model, text::empty_sentences(pieces.size()), pieces, pool) *
               static_cast<double>(score.pieces);
  return score;
}

}  // namespace regard::decoding
