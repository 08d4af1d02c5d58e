#include "regard/text/plural_count.h"

#include <charconv>

namespace regard::text {

int64_t plural_count(std::string_view header) {
  constexpr std::string_view kName = "nplurals=";
  const size_t at = header.find(kName);
  if (at == std::string_view::npos) return 0;
  header.remove_prefix(at + kName.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), count);
  return error == std::errc{} && end != header.data() && count > 0 && count < 100 ? count : 0;
}

}  // namespace regard::text
