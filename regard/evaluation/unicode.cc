#include "regard/evaluation/unicode.h"

#include <utf8proc.h>

#include <cstdint>

#include "regard/text/utf8.h"

namespace regard::evaluation {
namespace {

constexpr char32_t kRawByte = 0xDC00;

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

}  // namespace

std::u32string code_points(std::string_view utf8) {
  std::u32string result;
  result.reserve(utf8.size());
  for (size_t at = 0; at < utf8.size();) {
    const auto byte = static_cast<unsigned char>(utf8[at]);
    utf8proc_int32_t code_point = byte;
    utf8proc_ssize_t length = 1;
    if (byte >= 0x80) {
      length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()) + at,
                                static_cast<utf8proc_ssize_t>(utf8.size() - at), &code_point);
    }
    if (length > 0) {
      result.push_back(static_cast<char32_t>(code_point));
      at += static_cast<size_t>(length);
    } else {
      result.push_back(kRawByte + byte);
      ++at;
    }
  }
  return result;
}

std::string utf8(std::u32string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : text) {
    if (c >= kRawByte && c <= kRawByte + 0xFF) {
      result.push_back(static_cast<char>(c - kRawByte));
      continue;
    }
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
    result.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  }
  return result;
}

std::vector<std::u32string_view> split_words(std::u32string_view line) {
  std::vector<std::u32string_view> words;
  for (size_t at = 0; at < line.size();) {
    while (at < line.size() && text::is_space(line[at])) ++at;
    const size_t begin = at;
    while (at < line.size() && !text::is_space(line[at])) ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

bool is_number(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool is_symbol(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_SM && k <= UTF8PROC_CATEGORY_SO;
}

}  // namespace regard::evaluation
