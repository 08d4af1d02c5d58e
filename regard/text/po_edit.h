#pragma once
// New translations in a PO file that otherwise stays as it is.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regard/text/catalogue.h"

namespace regard::text {

/// What one entry shall say.
struct PoEdit {
  size_t message = 0;                ///< its place in Catalogue::messages
  std::vector<std::string> strings;  ///< msgstr, or msgstr[0], msgstr[1], ... of an entry with a plural
  bool fuzzy = false;                ///< marks the entry for a person to look at, if it is not marked yet
};

/// The file with these translations. Everything else comes back byte for byte: comments, flags,
/// obsolete entries, untouched entries, line ends, a byte-order mark. `catalogue` is parse_po() of
/// the same bytes; at most one edit an entry, in any order. Throws DataError naming `name` if the
/// file is neither UTF-8 nor ASCII.
std::string edit_po(std::string_view bytes, const Catalogue& catalogue, std::span<const PoEdit> edits,
                    const std::string& name);

/// A string as PO files have it: quotes, escapes, one line for each line of the text. Behind a keyword.
std::string po_string(std::string_view text, std::string_view line_end = "\n");

}  // namespace regard::text
