#pragma once
// Words as pictures need them: repaired UTF-8, its width on a terminal, and escaping for XML and terminals.

#include <string>
#include <string_view>
#include <vector>

namespace regard::pictures {

/// One user-perceived character: its bytes and its columns on a terminal (0, 1 or 2).
struct Grapheme {
  std::string bytes;
  int width = 0;
};

/// `text` with each byte that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// What may go to a terminal: valid UTF-8 with control, bidirectional-override and line-separator characters
/// written out as \n, \t, \x1b or \u{202e}.
std::string terminal_text(std::string_view text);

/// The user-perceived characters of `text` (repaired first):
/// combining marks stay with their base. CJK are 2 wide.
std::vector<Grapheme> graphemes(std::string_view text);

/// The columns `text` takes on a terminal: CJK 2, combining marks 0.
int display_width(std::string_view text);

/// `text` cut to at most `columns` columns; what was cut ends in "…".
std::string truncated(std::string_view text, int columns);

/// Text for XML and HTML content and attributes: <>&"' escaped,
/// invalid UTF-8 and characters that XML 1.0 forbids replaced by U+FFFD.
std::string xml_escaped(std::string_view text);

}  // namespace regard::pictures
