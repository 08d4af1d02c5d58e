#pragma once
// How BLEU cuts a line into tokens: the four language-independent ways of sacreBLEU 2.6.

#include <string>
#include <string_view>
#include <vector>

namespace regard::evaluation {

enum class Tokenization {
  /// "13a", the default: as the script mteval-v13a of WMT; also undoes &quot; &amp; &lt; &gt;
  mteval_13a,
  /// "none": at white space alone
  none,
  /// "intl": as mteval-v14, punctuation and symbols by the categories of Unicode 14 (utf8proc 2.8)
  international,
  /// "char": every code point but white space
  character
};

/// "13a", "none", "intl" or "char".
std::string_view name(Tokenization tokenization);

/// The inverse of name(). Throws UsageError for another name.
Tokenization tokenization_named(std::string_view name);

/// The tokens of one line of UTF-8, as code points. White space is Unicode's.
std::vector<std::u32string> tokenize(std::string_view line, Tokenization tokenization);

}  // namespace regard::evaluation
