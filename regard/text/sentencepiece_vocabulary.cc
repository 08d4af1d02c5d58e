// Sub-words by SentencePiece's unigram model. Kudo (2018), "Subword regularization", arXiv:1804.10959,
// section 3.2. The library marks spaces with U+2581, so that character is escaped in what it gets: U+E000 1
// is U+2581, and U+E000 0 is U+E000 itself.

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "regard/base/error.h"
#include "regard/text/utf8.h"
#include "regard/text/vocabulary_kinds.h"

namespace regard::text {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";   // U+2581
constexpr std::string_view kEscape = "\xEE\x80\x80";  // U+E000

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const std::string_view three = text.substr(i, 3);
    if (three == kSpace || three == kEscape) {
      result += kEscape;
      result += three == kSpace ? '1' : '0';
      i += 3;
    } else {
      result += text[i++];
    }
  }
  return result;
}

/// Spaces back from U+2581, then the escapes.
std::string unescaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const std::string_view three = text.substr(i, 3);
    const char next = i + 3 < text.size() ? text[i + 3] : '\0';
    if (three == kSpace) {
      result += ' ';
      i += 3;
    } else if (three == kEscape && (next == '0' || next == '1')) {
      result += next == '1' ? kSpace : kEscape;
      i += 4;
    } else {
      result += text[i++];
    }
  }
  return result;
}

class SentencePieceVocabulary final : public Vocabulary {
 public:
  SentencePieceVocabulary(std::string_view bytes, const std::string& name) : bytes_(bytes) {
    if (const auto status = processor_.LoadFromSerializedProto(bytes_); !status.ok()) {
      throw DataError(name, 0, "is not a SentencePiece model; restore the file");
    }
    if (processor_.eos_id() != kEnd || processor_.unk_id() != kUnknown) {
      throw DataError(name, 0,
                      "numbers its symbols otherwise (expected end = 0, unknown = 1); train a vocabulary");
    }
    newline_ = processor_.PieceToId(std::string(kNewline));
  }

  VocabularyKind kind() const override { return VocabularyKind::sentencepiece; }
  int32_t size() const override { return processor_.GetPieceSize() + 1; }
  std::string serialise() const override { return bytes_; }

  std::vector<int32_t> encode(std::string_view line) const override {
    std::vector<int> ids;
    const auto status = processor_.Encode(escaped(repaired_utf8(line)), &ids);
    if (!status.ok()) throw Error(ErrorKind::internal, "SentencePiece cannot encode: " + status.ToString());
    return {ids.begin(), ids.end()};
  }

  std::string decode(std::span<const int32_t> ids, std::span<const std::string>) const override {
    return decode(ids);  // byte fallback knows no unknown words
  }

  std::vector<std::string> surfaces(std::string_view line) const override {
    std::vector<std::string> list;
    for (const int32_t id : encode(line)) list.push_back(piece(id));
    return list;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string marked = repaired_utf8(raw(ids));
    // The library puts one space before every text.
    if (marked.starts_with(kSpace)) marked.erase(0, kSpace.size());
    return unescaped(marked);
  }

  std::string piece(int32_t id) const override {
    if (id == begin()) return "<s>";
    if (id < 0 || id > begin()) return "<unk>";
    return processor_.IdToPiece(id);
  }

  std::vector<Word> words(std::span<const int32_t> ids) const override {
    std::vector<Word> result;
    bool open = false;  // the last word may grow
    bool blank = true;  // it holds nothing but spaces
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const bool alone = ids[i] == kEnd || ids[i] >= begin() || ids[i] < 0 || ids[i] == newline_;
      const std::string piece_text = piece(ids[i]);
      const bool starts = alone || !open || (piece_text.starts_with(kSpace) && !blank);
      if (starts) {
        result.push_back({at, at + 1, ""});
        blank = true;
      }
      result.back().end = at + 1;
      open = !alone;
      blank = blank && piece_text == kSpace;
    }
    for (Word& word : result) word.text = word_text(ids, word);
    return result;
  }

 private:
  /// The pieces one after the other, bytes as bytes, spaces still as U+2581.
  std::string raw(std::span<const int32_t> ids) const {
    std::string result;
    for (const int32_t id : ids) {
      if (id <= kEnd || id >= begin()) continue;
      if (processor_.IsByte(id)) {
        result += static_cast<char>(std::stoi(processor_.IdToPiece(id).substr(3, 2), nullptr, 16));
      } else if (id == kUnknown) {
        result += "<unk>";
      } else {
        result += processor_.IdToPiece(id);
      }
    }
    return result;
  }

  std::string word_text(std::span<const int32_t> ids, const Word& word) const {
    const int32_t first = ids[static_cast<size_t>(word.begin)];
    if (first <= kEnd || first >= begin()) return piece(first);
    const auto part =
        ids.subspan(static_cast<size_t>(word.begin), static_cast<size_t>(word.end - word.begin));
    std::string marked = repaired_utf8(raw(part));
    while (marked.starts_with(kSpace)) marked.erase(0, kSpace.size());
    return unescaped(marked);
  }

  std::string bytes_;
  sentencepiece::SentencePieceProcessor processor_;
  int32_t newline_ = -1;
};

/// Hands lines to the trainer, without control characters (its own marks are among them) and in pieces that
/// it does not leave out for their length.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::span<const std::string> lines) {
    constexpr size_t kLongest = 2000;
    for (const std::string& line : lines) {
      std::string text = escaped(line);
      text.erase(std::remove_if(text.begin(), text.end(),
                                [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
                 text.end());
      for (std::string_view left = text; !left.empty();) {
        size_t length = std::min(left.size(), kLongest);
        while (length < left.size() && (static_cast<unsigned char>(left[length]) & 0xC0) == 0x80) --length;
        pieces_.emplace_back(left.substr(0, length));
        left.remove_prefix(length);
      }
    }
  }
  bool done() const override { return next_ >= pieces_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return pieces_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> pieces_;
  size_t next_ = 0;
};

}  // namespace

std::shared_ptr<const Vocabulary> train_sentencepiece(std::span<const std::string> lines,
                                                      const VocabularyOptions& options) {
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "unigram"},
      {"vocab_size", std::to_string(options.size)},
      {"num_threads", "1"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"byte_fallback", "true"},
      {"hard_vocab_limit", "false"},
      {"character_coverage", "0.9995"},
      {"eos_id", "0"},
      {"unk_id", "1"},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"user_defined_symbols", std::string(kNewline)},
      {"minloglevel", "3"},
  };
  Lines iterator(lines);
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &bytes);
  if (!status.ok()) {
    throw UsageError("cannot train a vocabulary of " + std::to_string(options.size) +
                     " pieces on this text; ask for more pieces or use characters (" + status.ToString() +
                     ")");
  }
  return load_sentencepiece(bytes, "the trained vocabulary");
}

std::shared_ptr<const Vocabulary> load_sentencepiece(std::string_view bytes, const std::string& name) {
  return std::make_shared<const SentencePieceVocabulary>(bytes, name);
}

}  // namespace regard::text
