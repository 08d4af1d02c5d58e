#pragma once
// Inside text only: catalogues in other charsets than UTF-8.

#include <string>
#include <string_view>

namespace regard::text {

/// The charset a catalogue's header names ("text/plain; charset=ISO-8859-1" gives "ISO-8859-1"), or "".
std::string header_charset(std::string_view header);

/// Text in UTF-8, from any charset that the system's iconv knows;
/// "" and a template's CHARSET count as UTF-8.
/// Throws DataError FILE:LINE for bytes that the charset does not have,
/// DataError FILE for an unknown charset.
std::string to_utf8(std::string_view bytes, std::string_view charset, const std::string& name);

}  // namespace regard::text
