#include "regard/evaluation/tokenization.h"

#include <array>
#include <utility>

#include "regard/base/error.h"
#include "regard/evaluation/unicode.h"
#include "regard/text/utf8.h"

namespace regard::evaluation {
namespace {

constexpr std::array<std::pair<Tokenization, std::string_view>, 4> kNames{{
    {Tokenization::mteval_13a, "13a"},
    {Tokenization::none, "none"},
    {Tokenization::international, "intl"},
    {Tokenization::character, "char"},
}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Where the blanks go around a pair of characters that belongs apart: "a ., b" or " a b".
enum class Blanks { around_second, around_first };

// Sets blanks at every pair of neighbours of which the first is `first` and the second `second`, from the
// left; the characters of one pair are not looked at again, as in a substitution by a regular expression.
template <class First, class Second>
std::u32string separate_pairs(const std::u32string& text, First first, Second second, Blanks blanks) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      result += text[i];
      continue;
    }
    if (blanks == Blanks::around_first) result += U' ';
    result += text[i];
    result += U' ';
    result += text[++i];
    if (blanks == Blanks::around_second) result += U' ';
  }
  return result;
}

template <class Separate>
std::u32string separate(const std::u32string& text, Separate apart) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (const char32_t c : text) {
    if (apart(c)) {
      result += {U' ', c, U' '};
    } else {
      result += c;
    }
  }
  return result;
}

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_period_or_comma(char32_t c) { return c == U'.' || c == U','; }

// ASCII punctuation that 13a always sets apart: all but apostrophe, comma, hyphen and period.
bool stands_alone_13a(char32_t c) {
  return (c >= 0x20 && c <= U'&') || (c >= U'(' && c <= U'+') || c == U'/' || (c >= U':' && c <= U'@') ||
         (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~');
}

std::u32string separated_13a(std::string line) {
  replace_all(line, "<skipped>", "");
  replace_all(line, "-\n", "");
  replace_all(line, "\n", " ");
  replace_all(line, "&quot;", "\"");
  replace_all(line, "&amp;", "&");
  replace_all(line, "&lt;", "<");
  replace_all(line, "&gt;", ">");
  const auto no_digit = [](char32_t c) { return !is_digit(c); };
  const auto is_hyphen = [](char32_t c) { return c == U'-'; };
  const std::u32string x0 = separate(code_points(" " + line + " "), stands_alone_13a);
  const std::u32string x1 = separate_pairs(x0, no_digit, is_period_or_comma, Blanks::around_second);
  const std::u32string x2 = separate_pairs(x1, is_period_or_comma, no_digit, Blanks::around_first);
  return separate_pairs(x2, is_digit, is_hyphen, Blanks::around_second);
}

std::u32string separated_international(const std::u32string& line) {
  const auto no_number = [](char32_t c) { return !is_number(c); };
  const std::u32string x1 = separate_pairs(line, no_number, is_punctuation, Blanks::around_second);
  const std::u32string x2 = separate_pairs(x1, is_punctuation, no_number, Blanks::around_first);
  return separate(x2, is_symbol);
}

std::u32string without_trailing_space(std::u32string text) {
  while (!text.empty() && regard::text::is_space(text.back())) text.pop_back();
  return text;
}

std::u32string separated(std::string_view line, Tokenization tokenization) {
  std::u32string text = without_trailing_space(code_points(line));
  switch (tokenization) {
    case Tokenization::mteval_13a:
      return separated_13a(utf8(text));
    case Tokenization::international:
      return separated_international(text);
    case Tokenization::character:
      return separate(text, [](char32_t) { return true; });
    case Tokenization::none:
      break;
  }
  return text;
}

}  // namespace

std::string_view name(Tokenization tokenization) {
  for (const auto& entry : kNames) {
    if (entry.first == tokenization) return entry.second;
  }
  return "unknown";
}

Tokenization tokenization_named(std::string_view name) {
  for (const auto& entry : kNames) {
    if (entry.second == name) return entry.first;
  }
  throw UsageError("no tokenisation '" + std::string(name) + "'; there are 13a, none, intl and char");
}

std::vector<std::u32string> tokenize(std::string_view line, Tokenization tokenization) {
  const std::u32string text = separated(line, tokenization);
  std::vector<std::u32string> tokens;
  for (const auto word : split_words(text)) tokens.emplace_back(word);
  return tokens;
}

}  // namespace regard::evaluation
