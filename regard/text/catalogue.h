#pragma once
// Gettext catalogues, read from scratch: PO (text) and MO (binary). GNU gettext manual, sections "The Format
// of PO Files" and "The Format of GNU MO Files".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regard/text/readers.h"

namespace regard::text {

/// One entry of a catalogue.
struct Message {
  std::string context;  ///< msgctxt
  bool has_context = false;
  std::string id, id_plural;
  bool has_plural = false;
  std::vector<std::string> strings;  ///< msgstr, or msgstr[0], msgstr[1], ...
  bool fuzzy = false;
  int64_t line = 0;  ///< where the entry starts, from 1; for MO the number of the entry
  /// PO: where the entry's first keyword stands, and its msgstr lines from the first keyword to the last
  /// quote, as offsets into the file without its byte-order mark, in UTF-8.
  size_t entry_begin = 0, strings_begin = 0, strings_end = 0;
};

struct Catalogue {
  std::vector<Message> messages;  ///< without the header, without obsolete entries
  std::string header;             ///< the translation of the empty msgid
  int64_t plurals = 0;            ///< the header's nplurals; 0 if it has none
};

/// Reads a PO file. Comments, previous msgids (#|) and obsolete entries (#~) are skipped. The header's
/// charset may be UTF-8, US-ASCII or ISO-8859-1/-15. Throws DataError FILE:LINE for anything malformed, and
/// for a msgstr[N] that the header's nplurals does not allow.
Catalogue parse_po(std::string_view bytes, const std::string& name);

/// Reads a MO file of either byte order. Strings that depend on the system (<PRIu64>, in a table of their own
/// since revision 0.1) are left out. Every offset is checked: throws DataError, never reads outside `bytes`.
Catalogue parse_mo(std::string_view bytes, const std::string& name);

/// The translated, not fuzzy messages. The singular goes with the first form, the plural with each other form
/// (with the only one where nplurals = 1).
std::vector<Pair> catalogue_pairs(const Catalogue& catalogue);

}  // namespace regard::text
