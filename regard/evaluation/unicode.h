#pragma once
// Text as Unicode code points, for metrics that count characters.

#include <string>
#include <string_view>
#include <vector>

namespace regard::evaluation {

/// The code points of UTF-8 text. A byte that is not part of valid UTF-8 becomes U+DC00 plus the byte, as one
/// code point of its own, so that any bytes have a defined length and two different texts stay different.
std::u32string code_points(std::string_view utf8);

/// The inverse of code_points().
std::string utf8(std::u32string_view text);

/// True if the text is valid UTF-8.
bool is_utf8(std::string_view text);

/// White space as Unicode has it, the set at which sacreBLEU
/// splits: ASCII blanks and U+001C..U+001F, U+0085, U+00A0, U+2000..U+200A, U+3000 and their like, but not
/// U+200B.
bool is_space(char32_t c);

/// The words between white space; views into `text`.
std::vector<std::u32string_view> split_words(std::u32string_view text);

/// Unicode categories N, P and S.
bool is_number(char32_t c);
bool is_punctuation(char32_t c);
bool is_symbol(char32_t c);

}  // namespace regard::evaluation
