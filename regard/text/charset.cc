#include "regard/text/charset.h"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "regard/base/error.h"
#include "regard/text/utf8.h"

namespace regard::text {
namespace {

class Converter {
 public:
  explicit Converter(const std::string& charset) : handle_(::iconv_open("UTF-8", charset.c_str())) {}
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  ~Converter() {
    if (known()) ::iconv_close(handle_);
  }
  bool known() const { return handle_ != reinterpret_cast<iconv_t>(-1); }

  /// Converts up to the first bytes that the charset does not have; returns how many bytes were converted.
  size_t convert(std::string_view bytes, std::string& result) {
    auto* in = const_cast<char*>(bytes.data());
    size_t left = bytes.size();
    std::array<char, 4096> piece;
    for (;;) {
      char* out = piece.data();
      size_t room = piece.size();
      const bool more =
          ::iconv(handle_, &in, &left, &out, &room) == static_cast<size_t>(-1) && errno == E2BIG;
      result.append(piece.data(), out);
      if (!more) return bytes.size() - left;
    }
  }

 private:
  iconv_t handle_;
};

[[noreturn]] void fail_at(std::string_view bytes, size_t bad, const std::string& what,
                          const std::string& name) {
  const auto line = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1;
  throw DataError(name, line, "is not " + what + "; convert it with iconv or msgconv");
}

/// Names as iconv has them; no "//TRANSLIT" and the like.
bool proper_name(std::string_view charset) {
  return std::all_of(charset.begin(), charset.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == ':' || c == '+';
  });
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
    if (const size_t bad = invalid_utf8(bytes); bad != std::string_view::npos)
      fail_at(bytes, bad, "UTF-8", name);
    return std::string(bytes);
  }
  Converter converter(proper_name(upper) ? upper : "?");
  if (!converter.known()) {
    throw DataError(name, 0, "is in an unknown charset " + std::string(charset) + "; correct its header");
  }
  std::string result;
  const size_t converted = converter.convert(bytes, result);
  if (converted < bytes.size()) fail_at(bytes, converted, std::string(charset), name);
  return result;
}

}  // namespace regard::text
