#pragma once
// Encoded sentences, and batches of them by a budget of tokens.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regard/text/vocabulary.h"

namespace regard::text {

/// Sentences of vocabulary numbers, one after the other in one array.
class Sentences {
 public:
  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  std::span<const int32_t> operator[](int64_t i) const {
    return {ids_.data() + offsets_[static_cast<size_t>(i)], static_cast<size_t>(length(i))};
  }
  int64_t length(int64_t i) const {
    return offsets_[static_cast<size_t>(i) + 1] - offsets_[static_cast<size_t>(i)];
  }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  void push_back(std::span<const int32_t> ids);

 private:
  std::vector<int32_t> ids_;
  std::vector<int64_t> offsets_{0};
};

/// Encodes lines, each cut to at most `longest` numbers after its end symbol was added:
/// a long line loses its end, symbol included.
Sentences encode_lines(const Vocabulary& vocabulary, std::span<const std::string> lines, int64_t longest);

/// A line with the newline symbol behind it, as a stream of text holds it.
std::string closed_line(const std::string& line);

/// One stream of text: every line, closed by the newline symbol, one after the other, cut into chunks of
/// `longest` numbers, of which the last may have fewer. There are no end symbols.
Sentences encode_stream(const Vocabulary& vocabulary, std::span<const std::string> lines, int64_t longest);

/// So many sentences of nothing: the sources of a language model.
Sentences empty_sentences(int64_t count);

struct BatchOptions {
  /// A batch's sentences times its longest side, at most; one sentence alone may exceed it.
  int64_t tokens = 3000;
  int64_t pool = 20'000;  ///< sentences that are sorted together by (target length, source length)
};

/// The batches of one epoch as lists of sentence numbers, a function of (lengths, options, seed, epoch) only:
/// sentences are shuffled, cut into pools, sorted within a pool, filled up to the budget;
/// batches of a pool are shuffled.
/// `shuffled` = false keeps sentences in order of pools and batches in order of length: for evaluation.
std::vector<std::vector<int64_t>> make_batches(const Sentences& source, const Sentences& target,
                                               const BatchOptions& options, uint64_t seed, uint64_t epoch,
                                               bool shuffled = true);

}  // namespace regard::text
