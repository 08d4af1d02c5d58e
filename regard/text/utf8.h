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

/// One code point as UTF-8. REQUIRES a scalar value.
std::string utf8_of(uint32_t code_point);

}  // namespace regard::text
