#include <algorithm>

#include "regard/base/error.h"
#include "regard/text/catalogue.h"
#include "regard/text/charset.h"
#include "regard/text/plural_count.h"

namespace regard::text {
namespace {

/// A MO file's bytes; every access is checked.
class Image {
 public:
  Image(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {
    if (bytes_.empty()) throw DataError(name_, 0, "is empty, expected a MO catalogue; get it again");
    constexpr uint32_t kMagic = 0x950412DE;
    if (bytes_.size() >= 4 && word(0) != kMagic) {
      swapped_ = true;
      if (word(0) != kMagic) throw DataError(name_, 0, "is not a MO catalogue");
    }
    if (bytes_.size() < 28) fail("its header");
  }

  /// The 32-bit number at an offset.
  uint32_t word(uint64_t offset) const {
    if (offset + 4 > bytes_.size()) fail("a table");
    uint32_t value = 0;
    for (uint64_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[offset + (swapped_ ? 3 - i : i)]);
      value |= static_cast<uint32_t>(byte) << (8 * i);
    }
    return value;
  }

  /// The string that entry `i` of a table points to; a NUL has to follow it.
  std::string_view string(uint64_t table, uint64_t i) const {
    const uint64_t length = word(table + 8 * i), offset = word(table + 8 * i + 4);
    if (offset + length + 1 > bytes_.size()) fail("string " + std::to_string(i + 1));
    if (bytes_[offset + length] != '\0') {
      throw DataError(name_, 0, "string " + std::to_string(i + 1) + " has no end mark; get the file again");
    }
    return bytes_.substr(offset, length);
  }

  uint64_t size() const { return bytes_.size(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_, 0,
                    what + " lies outside the file's " + std::to_string(bytes_.size()) +
                        " bytes (cut short or damaged); get it again");
  }

 private:
  std::string_view bytes_;
  const std::string& name_;
  bool swapped_ = false;
};

Message message_of(std::string_view key, std::string_view value, int64_t number) {
  Message message;
  message.line = number;
  if (const size_t mark = key.find('\4'); mark != std::string_view::npos) {
    message.context = key.substr(0, mark);
    message.has_context = true;
    key.remove_prefix(mark + 1);
  }
  const size_t cut = key.find('\0');
  message.id = key.substr(0, cut);
  message.has_plural = cut != std::string_view::npos;
  if (!message.has_plural) {
    message.strings.emplace_back(value);
    return message;
  }
  message.id_plural = key.substr(cut + 1);
  for (;;) {
    const size_t end = value.find('\0');
    message.strings.emplace_back(value.substr(0, end));
    if (end == std::string_view::npos) return message;
    value.remove_prefix(end + 1);
  }
}

}  // namespace

Catalogue parse_mo(std::string_view bytes, const std::string& name) {
  const Image image(bytes, name);
  const uint32_t revision = image.word(4);
  if (revision >> 16 > 1)
    throw DataError(name, 0, "is of an unknown revision " + std::to_string(revision >> 16));
  const uint64_t count = image.word(8), keys = image.word(12), values = image.word(16);
  if (std::max(keys, values) + 8 * count > image.size())
    image.fail("a table of " + std::to_string(count) + " strings");

  Catalogue catalogue;
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; ++i) {
    total += image.string(keys, i).size() + image.string(values, i).size();
    // A writer may share strings, but overlaps that multiply a file's size are an attack.
    if (total > 16 * image.size())
      throw DataError(name, 0, "has strings that overlap too often; get it again");
    if (image.string(keys, i).empty()) catalogue.header = image.string(values, i);
  }
  const std::string charset = header_charset(catalogue.header);
  catalogue.header = to_utf8(catalogue.header, charset, name);
  catalogue.plurals = plural_count(catalogue.header);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = image.string(keys, i);
    if (key.empty()) continue;
    const std::string entry = name + " (entry " + std::to_string(i + 1) + ")";
    const std::string value = to_utf8(image.string(values, i), charset, entry);
    catalogue.messages.push_back(
        message_of(to_utf8(key, charset, entry), value, static_cast<int64_t>(i) + 1));
  }
  return catalogue;
}

}  // namespace regard::text
