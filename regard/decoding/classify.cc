#include "regard/decoding/classify.h"

#include <algorithm>
#include <cmath>

namespace regard::decoding {
namespace {

std::vector<double> probabilities_of(const float* logits, int64_t classes) {
  std::vector<double> p(logits, logits + classes);
  const double largest = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  for (double& x : p) x /= sum;
  return p;
}

std::vector<std::vector<float>> rows_of(const Tensor& alpha) {
  std::vector<std::vector<float>> rows;
  for (int64_t i = 0; i < alpha.dim(0); ++i) {
    const float* row = alpha.as_matrix<float>().row(i);
    rows.emplace_back(row, row + alpha.dim(1));
  }
  return rows;
}

}  // namespace

std::vector<Classification> classify(const models::Classifier& model, const text::Sentences& source,
                                     const text::Sentences& target, ThreadPool& pool, bool with_attention) {
  const auto batches = text::make_batches(source, target, {.tokens = 3000}, 0, 0, false);
  std::vector<Classification> result(static_cast<size_t>(source.size()));
  pool.parallel_for(static_cast<int64_t>(batches.size()), [&](int64_t b) {
    const auto& batch = batches[static_cast<size_t>(b)];
    models::SentencePairs pairs;
    for (const int64_t s : batch) {
      pairs.sources.push_back(source[s]);
      pairs.targets.push_back(target[s]);
    }
    const models::Classified found = model.classify(pairs, with_attention);
    const int64_t classes = found.logits.dim(1);
    for (size_t i = 0; i < batch.size(); ++i) {
      Classification& one = result[static_cast<size_t>(batch[i])];
      one.probabilities =
          probabilities_of(found.logits.as_matrix<float>().row(static_cast<int64_t>(i)), classes);
      one.best = static_cast<int32_t>(std::max_element(one.probabilities.begin(), one.probabilities.end()) -
                                      one.probabilities.begin());
      if (with_attention) one.alpha = rows_of(found.alpha[i]);
    }
  });
  return result;
}

double accuracy(const models::Classifier& model, const text::Sentences& source, const text::Sentences& target,
                std::span<const int32_t> labels, ThreadPool& pool) {
  if (labels.empty()) return 0;
  const auto found = classify(model, source, target, pool);
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += found[i].best == labels[i];
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

}  // namespace regard::decoding
