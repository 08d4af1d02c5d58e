#include "regard/text/utf8.h"

#include <algorithm>

namespace regard::text {

int utf8_character(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (bytes.size() < length) return 0;
  const unsigned lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < lowest || at(1) > highest) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return static_cast<int>(length);
}

size_t invalid_utf8(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const int length = utf8_character(bytes.substr(i, 4));
    if (length == 0) return i;
    i += static_cast<size_t>(length);
  }
  return std::string_view::npos;
}

std::string repaired_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (;;) {
    const size_t bad = invalid_utf8(bytes);
    result += bytes.substr(0, std::min(bad, bytes.size()));
    if (bad == std::string_view::npos) return result;
    result += "\xEF\xBF\xBD";
    bytes.remove_prefix(bad + 1);
  }
}

namespace {

/// The code point of one well-formed character.
char32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  char32_t c = byte(0) & (0x7FU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) c = c << 6 | (byte(i) & 63);
  return c;
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_blank(std::string_view line) {
  constexpr char32_t kByteOrderMark = 0xFEFF;
  while (!line.empty()) {
    const int length = utf8_character(line);
    if (length == 0) return false;
    const char32_t c = code_point(line.substr(0, static_cast<size_t>(length)));
    if (!is_space(c) && c != kByteOrderMark) return false;
    line.remove_prefix(static_cast<size_t>(length));
  }
  return true;
}

int64_t word_count(std::string_view line) {
  int64_t count = 0;
  bool inside = false;
  for (const char c : line) {
    const bool space = c == ' ' || c == '\t';
    count += !space && !inside;
    inside = !space;
  }
  return count;
}

std::string utf8_of(uint32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
          byte(0x80 | (c & 63))};
}

}  // namespace regard::text
