#pragma once
// How well a model predicts what is given: translations, text, labels.

#include "regard/base/thread_pool.h"
#include "regard/models/directory.h"
#include "regard/text/batches.h"

namespace regard::decoding {

/// Mean cross-entropy without smoothing, nats per target token, end symbols included (exp of it is the
/// perplexity); with labels, which a classifier predicts, nats per label. 0 for no sentences. The same bits
/// for any number of threads.
double nats_per_token(const models::Model& model, const text::Sentences& source,
                      const text::Sentences& target, ThreadPool& pool, std::span<const int32_t> labels = {});

/// How well a language model predicts text.
struct TextScore {
  double nats = 0;                    ///< of all pieces together
  int64_t pieces = 0, unknown = 0;    ///< end symbols included; pieces that the vocabulary lacks
  int64_t characters = 0, bytes = 0;  ///< of the text, newlines included

  double nats_per_piece() const { return nats / static_cast<double>(pieces); }
  double bits_per_character() const;
  double bits_per_byte() const;
};
/// Lines as the model was trained on them: as one stream, cut into chunks, or each as a text of its own.
/// There must be one at least. The same bits for any number of threads.
TextScore score_text(const models::TrainedModel& trained, std::span<const std::string> lines,
                     ThreadPool& pool);

}  // namespace regard::decoding
