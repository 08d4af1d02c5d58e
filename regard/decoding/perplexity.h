#pragma once
// How well a model predicts given translations.

#include "regard/base/thread_pool.h"
#include "regard/models/model.h"
#include "regard/text/batches.h"

namespace regard::decoding {

/// Mean cross-entropy, nats per target token, end symbols included, without smoothing; exp of it is the
/// perplexity. 0 for no sentences. The same bits for any number of threads.
double nats_per_token(const models::EncoderDecoder& model, const text::Sentences& source,
                      const text::Sentences& target, ThreadPool& pool);

}  // namespace regard::decoding
