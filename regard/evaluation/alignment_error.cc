#include "regard/evaluation/alignment_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "regard/base/error.h"

namespace regard::evaluation {
namespace {

struct ParsedLink {
  Link link;
  char separator = 0;  // 0: not a link
};

ParsedLink parse_link(std::string_view text) {
  ParsedLink parsed;
  const char* end = text.data() + text.size();
  const auto source = std::from_chars(text.data(), end, parsed.link.first);
  if (source.ec != std::errc() || source.ptr == end) return {};
  const auto target = std::from_chars(source.ptr + 1, end, parsed.link.second);
  if (target.ec != std::errc() || target.ptr != end) return {};
  if (parsed.link.first < 0 || parsed.link.second < 0) return {};
  parsed.separator = *source.ptr;
  return parsed;
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Links parse_links(std::string_view text, std::string_view file, int64_t line) {
  constexpr std::string_view kBlanks = " \t";
  Links links;
  size_t begin = text.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const ParsedLink parsed = parse_link(word);
    const bool sure = parsed.separator == '-';
    if (!sure && parsed.separator != '?' && parsed.separator != 'p') {
      throw DataError(file, line,
                      fmt::format("'{}' is no link; links read 3-4 (sure) or 3?4 (possible), from 0", word));
    }
    links.possible.insert(parsed.link);
    if (sure) links.sure.insert(parsed.link);
    begin = text.find_first_not_of(kBlanks, end);
  }
  return links;
}

AlignmentError alignment_error(std::span<const Links> hypotheses, std::span<const Links> gold) {
  if (hypotheses.size() != gold.size()) {
    throw ShapeError(fmt::format("[alignment_error] gold [{}], expected [{}] (sentences of the hypothesis)",
                                 gold.size(), hypotheses.size()));
  }
  AlignmentError result;
  for (size_t i = 0; i < gold.size(); ++i) {
    for (const Link& link : hypotheses[i].possible) {
      result.matched_sure += static_cast<int64_t>(gold[i].sure.count(link));
      result.matched_possible += static_cast<int64_t>(gold[i].possible.count(link));
    }
    result.links += static_cast<int64_t>(hypotheses[i].possible.size());
    result.sure += static_cast<int64_t>(gold[i].sure.size());
  }
  result.precision = share(result.matched_possible, result.links);
  result.recall = share(result.matched_sure, result.sure);
  result.rate = 1 - share(result.matched_sure + result.matched_possible, result.links + result.sure);
  return result;
}

}  // namespace regard::evaluation
