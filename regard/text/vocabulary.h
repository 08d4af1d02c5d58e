#pragma once
// Vocabularies: text to numbers and back.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard::text {

enum class VocabularyKind { sentencepiece, words, characters };

/// A run of pieces that makes one word: pieces begin..end-1 of a sentence, and the word's text.
struct Word {
  int64_t begin, end;
  std::string text;
};

/// Numbers are 0 = end of sentence, 1 = unknown, then the pieces, and last `begin()`, the symbol that starts
/// a target (it is fed to a decoder, never predicted). Safe from several threads.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  static constexpr int32_t kEnd = 0;
  static constexpr int32_t kUnknown = 1;

  virtual VocabularyKind kind() const = 0;
  /// V, with the end, unknown and begin symbols.
  virtual int32_t size() const = 0;
  int32_t begin() const { return size() - 1; }

  /// The pieces of one line, without end symbol. A newline inside a message (written `\n` in line files) is a
  /// piece of its own. Any bytes are accepted: what is not UTF-8 is replaced by U+FFFD first.
  virtual std::vector<int32_t> encode(std::string_view line) const = 0;
  /// The text of pieces; end, begin and numbers out of range are skipped. decode(encode(x)) = x for text
  /// without unknown pieces (SentencePiece with byte fallback: for all valid UTF-8).
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// decode() that writes replacements[i] where ids[i] is the unknown word
  /// (a vocabulary of words; others decode).
  virtual std::string decode(std::span<const int32_t> ids,
                             std::span<const std::string> replacements) const = 0;
  /// The text behind each number of encode(line), known or not.
  virtual std::vector<std::string> surfaces(std::string_view line) const = 0;
  /// One piece as people may see it ("▁la", "<unk>", "</s>").
  virtual std::string piece(int32_t id) const = 0;
  /// Sub-words merged to words; every piece belongs to exactly one word, in order.
  /// End symbols are words of their own.
  virtual std::vector<Word> words(std::span<const int32_t> ids) const = 0;

  /// The bytes of `source.spm` / `target.spm` (SentencePiece) or of `vocab.json` (words, characters).
  virtual std::string serialise() const = 0;
};

struct VocabularyOptions {
  VocabularyKind kind = VocabularyKind::sentencepiece;
  int32_t size = 8000;  ///< pieces wanted; fewer if the text has no more
  uint64_t seed = 1;
  int64_t sample_lines = 500'000;  ///< train on at most so many lines, sampled by seed
};

/// Trains on lines. Throws DataError if there is no text at all.
/// The same lines and options give the same bytes on any number of threads.
std::shared_ptr<const Vocabulary> train_vocabulary(std::span<const std::string> lines,
                                                   const VocabularyOptions& options);

/// From serialise()'s bytes. Throws DataError naming `name` if they are damaged.
std::shared_ptr<const Vocabulary> load_vocabulary(VocabularyKind kind, std::string_view bytes,
                                                  const std::string& name);

}  // namespace regard::text
