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

/// The words between white space (text::is_space); views into `line`.
std::vector<std::u32string_view> split_words(std::u32string_view line);

/// Unicode categories N, P and S.
bool is_number(char32_t c);
bool is_punctuation(char32_t c);
bool is_symbol(char32_t c);

}  // namespace regard::evaluation
