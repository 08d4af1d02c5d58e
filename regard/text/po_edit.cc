#include "regard/text/po_edit.h"

#include <algorithm>

#include "regard/base/error.h"
#include "regard/text/charset.h"

namespace regard::text {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    constexpr std::string_view kValues = "\n\t\r\b\f\v\a\"\\", kNames = "ntrbfva\"\\";
    if (const size_t found = kValues.find(c); found != std::string_view::npos) {
      result += '\\';
      result += kNames[found];
    } else {
      result += c;
    }
  }
  return result;
}

std::string translation(const Message& message, const std::vector<std::string>& strings,
                        std::string_view line_end) {
  std::string text;
  for (size_t form = 0; form < strings.size(); ++form) {
    if (form > 0) text += line_end;
    text += "msgstr" + (message.has_plural ? "[" + std::to_string(form) + "]" : std::string()) + " " +
            po_string(strings[form], line_end);
  }
  return text;
}

}  // namespace

std::string po_string(std::string_view text, std::string_view line_end) {
  const auto inner = text.find('\n');
  if (inner == std::string_view::npos || inner + 1 == text.size()) return '"' + escaped(text) + '"';
  std::string result = "\"\"";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    result += std::string(line_end) + '"' + escaped(text.substr(0, end)) + '"';
    text.remove_prefix(end);
  }
  return result;
}

std::string edit_po(std::string_view bytes, const Catalogue& catalogue, std::span<const PoEdit> edits,
                    const std::string& name) {
  std::string result;
  if (bytes.starts_with(kByteOrderMark)) {
    result = kByteOrderMark;
    bytes.remove_prefix(kByteOrderMark.size());
  }
  if (to_utf8(bytes, header_charset(bytes), name) != bytes)  // what the catalogue's offsets speak of
    throw DataError(name, 0,
                    "is not in UTF-8, so it cannot be edited in place; convert it with msgconv -t UTF-8");
  const size_t first_line = bytes.find('\n');
  const bool crlf = first_line != std::string_view::npos && bytes.substr(0, first_line).ends_with('\r');
  const std::string_view line_end = crlf ? "\r\n" : "\n";
  std::vector<const PoEdit*> sorted;
  for (const PoEdit& edit : edits) sorted.push_back(&edit);
  std::sort(sorted.begin(), sorted.end(),
            [](const PoEdit* a, const PoEdit* b) { return a->message < b->message; });
  size_t done = 0;
  for (const PoEdit* edit : sorted) {
    const Message& message = catalogue.messages.at(edit->message);
    result += bytes.substr(done, message.entry_begin - done);
    if (edit->fuzzy && !message.fuzzy) result += "#, fuzzy" + std::string(line_end);
    result += bytes.substr(message.entry_begin, message.strings_begin - message.entry_begin);
    result += translation(message, edit->strings, line_end);
    done = message.strings_end;
  }
  return result += bytes.substr(done);
}

}  // namespace regard::text
