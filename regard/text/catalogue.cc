#include "regard/text/catalogue.h"

namespace regard::text {

std::vector<Pair> catalogue_pairs(const Catalogue& catalogue) {
  std::vector<Pair> pairs;
  const auto add = [&](const Message& message, const std::string& source, const std::string& target) {
    if (!source.empty() && !target.empty()) pairs.push_back({source, target, message.context, message.line});
  };
  for (const Message& message : catalogue.messages) {
    if (message.fuzzy || message.strings.empty()) continue;
    add(message, message.id, message.strings.front());
    if (!message.has_plural) continue;
    const size_t first = message.strings.size() > 1 ? 1 : 0;
    for (size_t i = first; i < message.strings.size(); ++i)
      add(message, message.id_plural, message.strings[i]);
  }
  return pairs;
}

}  // namespace regard::text
