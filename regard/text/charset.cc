#include "regard/text/charset.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "regard/base/error.h"
#include "regard/text/utf8.h"

namespace regard::text {
namespace {

/// ISO-8859-15 differs from ISO-8859-1 in eight places.
uint32_t latin_9(unsigned char byte) {
  switch (byte) {
    case 0xA4:
      return 0x20AC;
    case 0xA6:
      return 0x160;
    case 0xA8:
      return 0x161;
    case 0xB4:
      return 0x17D;
    case 0xB8:
      return 0x17E;
    case 0xBC:
      return 0x152;
    case 0xBD:
      return 0x153;
    case 0xBE:
      return 0x178;
    default:
      return byte;
  }
}

}  // namespace

std::string header_charset(std::string_view header) {
  constexpr std::string_view kField = "Content-Type:", kName = "charset=";
  const size_t field = header.find(kField);
  if (field == std::string_view::npos) return "";
  header = header.substr(field);
  header = header.substr(0, header.find('\n'));
  const size_t at = header.find(kName);
  if (at == std::string_view::npos) return "";
  header = header.substr(at + kName.size());
  return std::string(header.substr(0, header.find_first_of(" \t\r\\\";")));
}

std::string to_utf8(std::string_view bytes, std::string_view charset, const std::string& name) {
  std::string upper(charset);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::array<std::string_view, 7> kUtf8 = {"",      "CHARSET",  "UTF-8",         "UTF8",
                                                     "ASCII", "US-ASCII", "ANSI_X3.4-1968"};
  if (std::find(kUtf8.begin(), kUtf8.end(), upper) != kUtf8.end()) {
    if (const size_t bad = invalid_utf8(bytes); bad != std::string_view::npos) {
      const auto line = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1;
      throw DataError(name, line, "is not UTF-8; convert it with iconv or msgconv");
    }
    return std::string(bytes);
  }
  const bool first = upper == "ISO-8859-1" || upper == "ISO8859-1" || upper == "LATIN1";
  if (!first && upper != "ISO-8859-15" && upper != "ISO8859-15") {
    throw DataError(name, 0,
                    "is in charset " + std::string(charset) + "; convert it with msgconv --to-code=UTF-8");
  }
  std::string result;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    result += utf8_of(first ? byte : latin_9(byte));
  }
  return result;
}

}  // namespace regard::text
