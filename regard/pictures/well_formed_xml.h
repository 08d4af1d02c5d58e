#pragma once
// For tests: is a text well-formed XML,
// as far as our own pictures use it (elements, attributes, text, entities)?

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace regard::pictures {

/// Empty if `xml` is one well-formed element; otherwise what is wrong with it.
inline std::string xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  size_t at = 0;
  bool closed = false;
  while (at < xml.size()) {
    if (xml[at] == '&') {
      const auto end = xml.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "bare &";
      at = end + 1;
      continue;
    }
    if (xml[at] != '<') {
      if (closed && !std::isspace(static_cast<unsigned char>(xml[at]))) return "text after the end";
      ++at;
      continue;
    }
    if (closed) return "a second element";
    size_t end = at + 1;
    char quote = 0;
    for (; end < xml.size() && (quote || xml[end] != '>'); ++end) {
      if (quote ? xml[end] == quote : (xml[end] == '"' || xml[end] == '\'')) quote = quote ? '\0' : xml[end];
      if (xml[end] == '<') return "< inside a tag";
    }
    if (end >= xml.size()) return "a tag without end";
    const std::string_view tag = xml.substr(at + 1, end - at - 1);
    const bool closing = tag.starts_with('/'), single = tag.ends_with('/');
    const auto begin = closing ? size_t{1} : size_t{0};
    const std::string name(tag.substr(begin, tag.find_first_of(" /\n", begin) - begin));
    if (closing) {
      if (open.empty() || open.back() != name) return "</" + name + "> does not match";
      open.pop_back();
    } else if (!single) {
      open.push_back(name);
    }
    closed = open.empty();
    at = end + 1;
  }
  return closed ? "" : "elements left open";
}

}  // namespace regard::pictures
