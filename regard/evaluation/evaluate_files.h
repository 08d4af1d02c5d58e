#pragma once
// Files scored against files: what `regard evaluate` prints.

#include <filesystem>
#include <string>
#include <vector>

#include "regard/evaluation/tokenization.h"

namespace regard::evaluation {

struct EvaluateOptions {
  /// Of "bleu", "chrf", "chrf++", "rouge", "accuracy", "repetition" (of the hypothesis, in word trigrams).
  std::vector<std::string> metrics = {"bleu", "chrf"};
  Tokenization tokenization = Tokenization::mteval_13a;  ///< of BLEU
  /// Lines (the source, as a rule) whose numbers of words sort the hypotheses into bands, each scored by
  /// itself; no bands if empty.
  std::filesystem::path lengths = {};
  std::vector<int64_t> band_ends = {10, 20, 30, 40,
                                    50};  ///< last length of each band, ascending; one band follows
  bool json = false;
};

/// The scores as text, one metric a line in the order asked for, "BLEU = 27.31 (signature)", two decimals; or
/// as one line of JSON, {"bleu": {"score": ..., "signature": ..., ...}, "chrf": {...}}, scores unrounded.
/// Bands of length follow as a table, or as "by_length": [{"from": 0, "to": 10, "lines": 340, "bleu":
/// {...}}]; a band without lines is left out, the last one has no "to". Lines end with LF or CRLF and with
/// nothing else; a last line may lack its end. An empty line is a line. Throws SystemError (a file cannot be
/// read), DataError (numbers of lines differ, no lines, a line that is not UTF-8) and UsageError (an unknown
/// metric, no metric, no reference, ends of bands that do not ascend).
std::string evaluate_files(const std::filesystem::path& hypothesis,
                           const std::vector<std::filesystem::path>& references,
                           const EvaluateOptions& options = {});

/// Alignment error rate of two files of Pharaoh links: "AER = 12.34 (...)" in percent, or JSON {"aer":
/// {...}}. Errors as for evaluate_files, and DataError with the line for a link that cannot be read.
std::string evaluate_alignment_files(const std::filesystem::path& alignment,
                                     const std::filesystem::path& gold, bool json = false);

}  // namespace regard::evaluation
