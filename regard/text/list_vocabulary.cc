// Vocabularies that are lists: of words, or of characters. Numbers 0 and 1 are end and unknown.

#include <algorithm>
#include <boost/json.hpp>
#include <unordered_map>

#include "regard/base/error.h"
#include "regard/text/utf8.h"
#include "regard/text/vocabulary_kinds.h"

namespace regard::text {
namespace {

/// Calls take(piece) for each character, and once for a newline mark.
template <class Take>
void each_character(std::string_view text, Take take) {
  while (!text.empty()) {
    const size_t length =
        text.starts_with(kNewline) ? kNewline.size() : static_cast<size_t>(utf8_character(text));
    take(text.substr(0, length));
    text.remove_prefix(length);
  }
}

/// Calls take(piece) for each word: text is cut at each single space,
/// and a newline mark is a word that needs no spaces around it.
/// Words may be empty ("a  b" has an empty one), so that joining them again gives the text.
template <class Take>
void each_word(std::string_view text, Take take) {
  for (;;) {
    const size_t newline = text.find(kNewline);
    std::string_view segment = text.substr(0, newline);
    while (!segment.empty()) {
      const size_t space = segment.find(' ');
      take(segment.substr(0, space));
      if (space == std::string_view::npos) break;
      segment.remove_prefix(space + 1);
      if (segment.empty()) take(segment);
    }
    if (newline == std::string_view::npos) return;
    take(kNewline);
    text.remove_prefix(newline + kNewline.size());
  }
}

template <class Take>
void each_piece(VocabularyKind kind, std::string_view text, Take take) {
  kind == VocabularyKind::words ? each_word(text, take) : each_character(text, take);
}

class ListVocabulary final : public Vocabulary {
 public:
  ListVocabulary(VocabularyKind kind, std::vector<std::string> pieces)
      : kind_(kind), pieces_(std::move(pieces)) {
    for (size_t i = kFirst; i < pieces_.size(); ++i) numbers_.emplace(pieces_[i], static_cast<int32_t>(i));
  }

  static constexpr size_t kFirst = 2;

  VocabularyKind kind() const override { return kind_; }
  int32_t size() const override { return static_cast<int32_t>(pieces_.size()) + 1; }

  std::vector<int32_t> encode(std::string_view line) const override {
    std::vector<int32_t> ids;
    each_piece(kind_, repaired_utf8(line), [&](std::string_view text) {
      const auto found = numbers_.find(std::string(text));
      ids.push_back(found == numbers_.end() ? kUnknown : found->second);
    });
    return ids;
  }

  std::vector<std::string> surfaces(std::string_view line) const override {
    std::vector<std::string> list;
    each_piece(kind_, repaired_utf8(line), [&](std::string_view text) { list.emplace_back(text); });
    return list;
  }

  std::string decode(std::span<const int32_t> ids) const override { return decode(ids, {}); }

  std::string decode(std::span<const int32_t> ids, std::span<const std::string> replacements) const override {
    std::string result;
    bool joined = false;  // a word stands before this one
    for (size_t i = 0; i < ids.size(); ++i) {
      const int32_t id = ids[i];
      if (id <= kEnd || id >= begin()) continue;
      const bool replaced = id == kUnknown && i < replacements.size() && !replacements[i].empty();
      const std::string& text = replaced ? replacements[i] : pieces_[static_cast<size_t>(id)];
      const bool spaced = kind_ == VocabularyKind::words && text != kNewline;
      if (spaced && joined) result += ' ';
      result += text;
      joined = spaced;
    }
    return result;
  }

  std::string piece(int32_t id) const override {
    if (id == begin()) return "<s>";
    if (id < 0 || id > begin()) return pieces_[kUnknown];
    return pieces_[static_cast<size_t>(id)];
  }

  std::vector<Word> words(std::span<const int32_t> ids) const override {
    std::vector<Word> result;
    bool open = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      std::string text = piece(ids[i]);
      const bool alone =
          kind_ == VocabularyKind::words || ids[i] <= kEnd || ids[i] >= begin() || text == kNewline;
      const bool space = !alone && text == " ";
      if (alone || !open || (space && !result.back().text.empty())) result.push_back({at, at + 1, ""});
      result.back().end = at + 1;
      if (!space) result.back().text += text;
      open = !alone;
    }
    return result;
  }

  std::string serialise() const override {
    boost::json::array list;
    for (const std::string& text : pieces_) list.emplace_back(text);
    boost::json::object object;
    object["kind"] = kind_ == VocabularyKind::words ? "words" : "characters";
    object["pieces"] = std::move(list);
    return boost::json::serialize(object) + "\n";
  }

 private:
  VocabularyKind kind_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> numbers_;
};

}  // namespace

std::shared_ptr<const Vocabulary> train_list(std::span<const std::string> lines,
                                             const VocabularyOptions& options) {
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& line : lines) {
    each_piece(options.kind, line, [&](std::string_view text) { ++counts[std::string(text)]; });
  }
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> pieces = {"</s>", "<unk>"};
  for (const auto& entry : sorted) {
    if (pieces.size() >= static_cast<size_t>(options.size)) break;
    pieces.push_back(entry.first);
  }
  return std::make_shared<const ListVocabulary>(options.kind, std::move(pieces));
}

std::shared_ptr<const Vocabulary> load_list(VocabularyKind kind, std::string_view bytes,
                                            const std::string& name) {
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse({bytes.data(), bytes.size()}, error);
  const boost::json::object* object = error ? nullptr : value.if_object();
  const boost::json::value* kind_value = object ? object->if_contains("kind") : nullptr;
  const boost::json::value* list = object ? object->if_contains("pieces") : nullptr;
  if (!kind_value || !kind_value->is_string() || !list || !list->is_array()) {
    throw DataError(name, 0,
                    "is not a vocabulary (expected JSON with \"kind\" and \"pieces\"); restore the file");
  }
  if (kind_value->as_string() != (kind == VocabularyKind::words ? "words" : "characters")) {
    throw DataError(name, 0, "holds a vocabulary of another kind than config.json says; restore the file");
  }
  std::vector<std::string> pieces;
  std::unordered_map<std::string, int> seen;
  for (const boost::json::value& item : list->as_array()) {
    if (!item.is_string()) throw DataError(name, 0, "holds a piece that is not a string; restore the file");
    pieces.emplace_back(item.as_string().data(), item.as_string().size());
    if (pieces.size() > ListVocabulary::kFirst && seen[pieces.back()]++ > 0) {
      throw DataError(name, 0, "holds a piece twice: " + pieces.back() + "; restore the file");
    }
  }
  if (pieces.size() < ListVocabulary::kFirst) throw DataError(name, 0, "lacks its symbols; restore the file");
  return std::make_shared<const ListVocabulary>(kind, std::move(pieces));
}

}  // namespace regard::text
