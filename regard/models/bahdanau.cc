#include "regard/models/bahdanau.h"

namespace regard::models {

void Bahdanau::visit(const ParameterVisitor& visitor) {
  const auto& c = config();
  visitor("embedding.source", E_source_, {c.source_vocabulary, c.embedding}, nn::Initial::normal(1));
  decoder_.visit_embedding(visitor, c);
  encoder_.visit(visitor, "encoder", c, true);
  decoder_.visit(visitor, c, 2 * c.width);
}

Memory Bahdanau::encode(std::span<const std::span<const int32_t>> sources, const Dropout& dropout) const {
  const Encoded encoded = encoder_(sources, E_source_, config(), dropout);        // h_j  [S, 2N]
  return decoder_.memory(encoded.sources, encoded.h, encoded.backward.back().h);  // s_0 from h_1 <-
}

}  // namespace regard::models
