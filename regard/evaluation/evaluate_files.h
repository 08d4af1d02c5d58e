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
  bool json = false;
};

/// The scores as text, one metric a line in the order asked for, "BLEU = 27.31 (signature)", two decimals; or
/// as one line of JSON, {"bleu": {"score": ..., "signature": ..., ...}, "chrf": {...}}, scores unrounded.
/// Lines end with LF or CRLF and with nothing else; a last line may lack its end. An empty line is a line.
/// Throws SystemError (a file cannot be read), DataError (numbers of lines differ, no lines, a line that is
/// not UTF-8) and UsageError (an unknown metric, no metric, no reference).
std::string evaluate_files(const std::filesystem::path& hypothesis,
                           const std::vector<std::filesystem::path>& references,
                           const EvaluateOptions& options = {});

/// Alignment error rate of two files of Pharaoh links: "AER = 12.34 (...)" in percent, or JSON {"aer":
/// {...}}. Errors as for evaluate_files, and DataError with the line for a link that cannot be read.
std::string evaluate_alignment_files(const std::filesystem::path& alignment,
                                     const std::filesystem::path& gold, bool json = false);

}  // namespace regard::evaluation
