#pragma once
// UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing above U+10FFFF.

#include <cstdint>
#include <string>
#include <string_view>

namespace regard::text {

/// Bytes of the well-formed character at the start of `bytes`, 1 to 4; 0 if it is malformed or cut short, or
/// if `bytes` is empty. The Unicode Standard, table 3-7.
int utf8_character(std::string_view bytes);

/// The offset of the first byte that is not UTF-8, or npos if all is well.
size_t invalid_utf8(std::string_view bytes);

/// The same text with each malformed byte replaced by U+FFFD.
std::string repaired_utf8(std::string_view bytes);

/// White space as Unicode has it, the set at which sacreBLEU splits: ASCII blanks and U+001C..U+001F, U+0085,
/// U+00A0, U+2000..U+200A, U+3000 and their like, but not U+200B.
bool is_space(char32_t c);

/// True if a line holds white space and byte-order marks only, or nothing at all.
bool is_blank(std::string_view line);

/// How many words blanks (spaces and tabs) part a line into.
int64_t word_count(std::string_view line);

/// One code point as UTF-8. REQUIRES a scalar value.
std::string utf8_of(uint32_t code_point);

}  // namespace regard::text
