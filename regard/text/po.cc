#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

#include "regard/base/error.h"
#include "regard/text/catalogue.h"
#include "regard/text/charset.h"
#include "regard/text/plural_count.h"

namespace regard::text {
namespace {

constexpr int64_t kMostForms = 100;

enum class Kind { end, comment, word, index, string };

struct Token {
  Kind kind = Kind::end;
  std::string text;   // a comment with its #, a keyword, or a string without quotes and escapes
  int64_t index = 0;  // [N]
  int64_t line = 0;
  size_t begin = 0, end = 0;  // offsets of its first byte and behind its last
};

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Token next() {
    skip_space();
    const size_t begin = at_;
    Token token = read();
    token.begin = begin;
    token.end = at_;
    return token;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_, line_, what + "; correct the line");
  }

 private:
  void skip_space() {
    while (at_ < text_.size() &&
           (std::isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == '\0')) {
      line_ += text_[at_++] == '\n';
    }
  }

  Token read() {
    if (at_ >= text_.size()) return {Kind::end, "", 0, line_};
    const char c = text_[at_];
    if (c == '#') return comment();
    if (c == '"') return string();
    if (c == '[') return index();
    if (std::isalpha(static_cast<unsigned char>(c))) return word();
    fail("starts with neither a keyword, a string nor a comment");
  }

  Token comment() {
    const std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
    at_ += line.size();
    return {Kind::comment, std::string(line), 0, line_};
  }

  Token word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return {Kind::word, std::string(text_.substr(begin, at_ - begin)), 0, line_};
  }

  Token index() {
    ++at_;
    int64_t value = 0;
    const size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      value = value * 10 + (text_[at_++] - '0');
      if (value >= kMostForms) fail("has a plural form's number above " + std::to_string(kMostForms - 1));
    }
    if (at_ == begin || at_ >= text_.size() || text_[at_] != ']')
      fail("has a bad plural form's number, expected [N]");
    ++at_;
    return {Kind::index, "", value, line_};
  }

  Token string() {
    Token token{Kind::string, "", 0, line_};
    for (++at_;;) {
      if (at_ >= text_.size() || text_[at_] == '\n') fail("has a string that does not end");
      const char c = text_[at_++];
      if (c == '"') return token;
      token.text += c == '\\' ? escape() : c;
    }
  }

  /// What stands after a backslash.
  char escape() {
    if (at_ >= text_.size() || text_[at_] == '\n') fail("has a string that does not end");
    const char c = text_[at_++];
    constexpr std::string_view kNames = "ntrbfva\"\\", kValues = "\n\t\r\b\f\v\a\"\\";
    if (const size_t found = kNames.find(c); found != std::string_view::npos) return kValues[found];
    if (c >= '0' && c <= '7') return numbered(--at_, 8, 3);
    if (c == 'x') return numbered(at_, 16, 2);
    fail(std::string("has the unknown escape \\") + c);
  }

  char numbered(size_t begin, int base, size_t most) {
    const auto digit = [&](char c) {
      return base == 8 ? c >= '0' && c <= '7' : std::isxdigit(static_cast<unsigned char>(c)) != 0;
    };
    at_ = begin;
    while (at_ < text_.size() && at_ < begin + most && digit(text_[at_])) ++at_;
    if (at_ == begin) fail("has an escape \\x without digits");
    const int value = std::stoi(std::string(text_.substr(begin, at_ - begin)), nullptr, base);
    if (value > 127) fail("has an escape of a byte that is not ASCII");
    return static_cast<char>(value);
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : lexer_(text, name), name_(name) { advance(); }

  Catalogue parse() {
    while (token_.kind != Kind::end) {
      if (token_.kind == Kind::comment) {
        comment();
      } else if (token_.kind == Kind::word) {
        keyword();
      } else {
        lexer_.fail("has a string or a number without a keyword");
      }
    }
    finish();
    return std::move(catalogue_);
  }

 private:
  void advance() { token_ = lexer_.next(); }

  void comment() {
    if (complete()) finish();
    const std::string& text = token_.text;
    if (text.starts_with("#~")) fuzzy_ = false;  // the flags belonged to an obsolete entry
    if ((text.starts_with("#,") || text.starts_with("#=")) && text.find("fuzzy") != std::string::npos)
      fuzzy_ = true;
    advance();
  }

  void keyword() {
    const std::string word = std::exchange(token_.text, "");
    const int64_t line = token_.line;
    const size_t begin = token_.begin;
    advance();
    std::optional<int64_t> form;
    if (token_.kind == Kind::index) {
      form = token_.index;
      advance();
    }
    if (token_.kind != Kind::string)
      throw DataError(name_, line, word + " without a string; correct the line");
    const std::string text = strings();
    if (form && word != "msgstr")
      throw DataError(name_, line, word + " cannot have a number; correct the line");
    if (word == "msgctxt" || word == "msgid") {
      if (complete()) finish();
      start(word == "msgctxt", text, line, begin);
    } else if (word == "msgid_plural") {
      if (!has_id_ || complete() || message_.has_plural)
        throw DataError(name_, line, "msgid_plural without msgid; correct the entry");
      message_.id_plural = text;
      message_.has_plural = true;
    } else if (word == "msgstr") {
      translation(text, form, line);
      if (message_.strings.size() == 1) message_.strings_begin = begin;
      message_.strings_end = strings_end_;
    } else if (word != "domain") {
      throw DataError(name_, line, "unknown keyword " + word + "; correct the line");
    }
  }

  /// Strings one after the other are one string.
  std::string strings() {
    std::string text;
    while (token_.kind == Kind::string) {
      text += token_.text;
      strings_end_ = token_.end;
      advance();
    }
    return text;
  }

  bool complete() const { return !message_.strings.empty(); }

  void start(bool context, const std::string& text, int64_t line, size_t begin) {
    if (context ? message_.has_context || has_id_ : has_id_) {
      throw DataError(name_, message_.line, "msgid without msgstr; complete the entry");
    }
    if (!message_.has_context) {
      message_.line = line;
      message_.entry_begin = begin;
      message_.fuzzy = std::exchange(fuzzy_, false);
    }
    (context ? message_.context : message_.id) = text;
    (context ? message_.has_context : has_id_) = true;
  }

  void translation(const std::string& text, std::optional<int64_t> form, int64_t line) {
    if (!has_id_) throw DataError(name_, line, "msgstr without msgid; complete the entry");
    if (message_.has_plural != form.has_value()) {
      throw DataError(name_, line,
                      message_.has_plural ? "msgstr without a number after msgid_plural; write msgstr[N]"
                                          : "msgstr with a number, but no msgid_plural; correct the entry");
    }
    const int64_t number = form.value_or(0);
    if (number != static_cast<int64_t>(message_.strings.size())) {
      throw DataError(name_, line,
                      "msgstr out of order, expected number " + std::to_string(message_.strings.size()) +
                          "; correct the entry");
    }
    if (form && catalogue_.plurals > 0 && number >= catalogue_.plurals) {
      throw DataError(name_, line,
                      "msgstr[" + std::to_string(number) + "], but the header says nplurals=" +
                          std::to_string(catalogue_.plurals) + "; correct one of them");
    }
    message_.strings.push_back(text);
  }

  void finish() {
    if (!complete()) {
      if (has_id_ || message_.has_context)
        throw DataError(name_, message_.line, "msgid without msgstr; complete the entry");
      return;
    }
    if (message_.id.empty() && !message_.has_context) {
      catalogue_.header = message_.strings.front();
      catalogue_.plurals = plural_count(catalogue_.header);
    } else {
      catalogue_.messages.push_back(std::move(message_));
    }
    message_ = {};
    has_id_ = false;
  }

  Lexer lexer_;
  const std::string& name_;
  Token token_;
  Catalogue catalogue_;
  Message message_;
  bool has_id_ = false;
  bool fuzzy_ = false;
  size_t strings_end_ = 0;  // behind the last string that was read
};

}  // namespace

Catalogue parse_po(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const std::string text = to_utf8(bytes, header_charset(bytes), name);
  return Parser(text, name).parse();
}

}  // namespace regard::text
