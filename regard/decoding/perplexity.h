#pragma once
// How well a model predicts what is given: translations, text, labels.

#include "regard/base/thread_pool.h"
#include "regard/models/model.h"
#include "regard/text/batches.h"

namespace regard::decoding {

/// Mean cross-entropy without smoothing, nats per target token, end symbols included (exp of it is the
/// perplexity); with labels, which a classifier predicts, nats per label. 0 for no sentences. The same bits
/// for any number of threads.
double nats_per_token(const models::Model& model, const text::Sentences& source,
                      const text::Sentences& target, ThreadPool& pool, std::span<const int32_t> labels = {});

}  // namespace regard::decoding
