#include "regard/decoding/perplexity.h"

#include <algorithm>

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

}  // namespace regard::decoding
