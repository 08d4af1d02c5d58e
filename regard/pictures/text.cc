#include "regard/pictures/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>

namespace regard::pictures {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr int32_t kReplacementPoint = 0xFFFD;

struct Point {
  int32_t value = 0;       // kReplacementPoint where the bytes are not UTF-8
  std::string_view bytes;  // as they are written: kReplacement for broken ones
};

std::vector<Point> points(std::string_view text) {
  std::vector<Point> result;
  result.reserve(text.size());
  while (!text.empty()) {
    utf8proc_int32_t value = 0;
    const auto used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &value);
    if (used <= 0) {
      result.push_back({kReplacementPoint, kReplacement});
      text.remove_prefix(1);
    } else {
      result.push_back({value, text.substr(0, static_cast<size_t>(used))});
      text.remove_prefix(static_cast<size_t>(used));
    }
  }
  return result;
}

bool is_control(int32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

bool reorders_or_breaks_lines(int32_t c) {
  return c == 0x200E || c == 0x200F || c == 0x061C || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

bool forbidden_in_xml(int32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7F && c < 0xA0) || c == 0xFFFE ||
         c == 0xFFFF;
}

/// Columns of a user-perceived character: the widest of its code points;
/// an emoji with variation selector 16 is wide.
int cluster_width(int width, int32_t next) {
  if (next == 0xFE0F) return 2;
  return std::max(width, utf8proc_charwidth(next));
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string result;
  for (const Point& point : points(text)) result += point.bytes;
  return result;
}

std::string terminal_text(std::string_view text) {
  std::string result;
  for (const Point& point : points(text)) {
    if (point.value == '\n') {
      result += "\\n";
    } else if (point.value == '\t') {
      result += "\\t";
    } else if (point.value == '\r') {
      result += "\\r";
    } else if (is_control(point.value)) {
      result += fmt::format("\\x{:02x}", point.value);
    } else if (reorders_or_breaks_lines(point.value)) {
      result += fmt::format("\\u{{{:x}}}", point.value);
    } else {
      result += point.bytes;
    }
  }
  return result;
}

std::vector<Grapheme> graphemes(std::string_view text) {
  std::vector<Grapheme> result;
  utf8proc_int32_t state = 0;
  int32_t previous = 0;
  for (const Point& point : points(text)) {
    if (result.empty() || utf8proc_grapheme_break_stateful(previous, point.value, &state)) {
      result.push_back({std::string(point.bytes), utf8proc_charwidth(point.value)});
    } else {
      result.back().bytes += point.bytes;
      result.back().width = cluster_width(result.back().width, point.value);
    }
    previous = point.value;
  }
  return result;
}

int display_width(std::string_view text) {
  int width = 0;
  for (const Grapheme& grapheme : graphemes(text)) width += grapheme.width;
  return width;
}

std::string truncated(std::string_view text, int columns) {
  const auto parts = graphemes(text);
  std::string result;
  std::string before_ellipsis;
  int width = 0;
  for (const Grapheme& part : parts) {
    if (width + part.width <= columns - 1) before_ellipsis = result + part.bytes;
    width += part.width;
    if (width > columns) return columns > 0 ? before_ellipsis + "…" : std::string();
    result += part.bytes;
  }
  return result;
}

std::string xml_escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (const Point& point : points(text)) {
    switch (point.value) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += forbidden_in_xml(point.value) ? kReplacement : point.bytes;
    }
  }
  return result;
}

}  // namespace regard::pictures
