#include "regard/cli/decode.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <iostream>

#include "regard/alignment/word_matrix.h"
#include "regard/cli/input.h"
#include "regard/cli/json.h"
#include "regard/cli/progress.h"
#include "regard/cli/results.h"
#include "regard/decoding/translator.h"
#include "regard/text/utf8.h"

namespace regard::cli {
namespace {

constexpr size_t kLines = 2000;             // read, translated and written together: memory stays bounded
constexpr size_t kBytes = size_t{4} << 20;  // of such lines, about
constexpr double kSquares = 1 << 27;        // of their bytes, about, where attention is kept
constexpr int64_t kRows = 1 << 15;          // hypotheses in the decoder together

std::string soft_rows(const pictures::AttentionMatrix& matrix) {
  std::string rows;
  const size_t S = matrix.source.size();
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    rows += t ? " ;" : "";
    for (size_t s = 0; s < S; ++s)
      rows += fmt::format("{}{:.4f}", t || s ? " " : "", matrix.weights[t * S + s]);
  }
  return rows;
}

class Writer {
 public:
  Writer(const models::TrainedModel& model, const DecodeArguments& a) : model_(model), a_(a) {}

  /// What stands for one line of input, `number` from 0.
  void write(const std::string& line, int64_t number, const decoding::Translated& translated) const {
    std::cout << (a_.format == "json" ? json_line(line, translated) : text_lines(line, number, translated));
  }

 private:
  size_t shown(const decoding::Translated& translated) const {
    return std::min<size_t>(translated.hypotheses.size(), a_.nbest > 0 ? static_cast<size_t>(a_.nbest) : 1);
  }

  std::string text_lines(const std::string& line, int64_t number,
                         const decoding::Translated& translated) const {
    if (translated.hypotheses.empty()) {
      return a_.nbest > 0 ? fmt::format("{} ||| {} ||| 0\n", number, line)
                          : line + (a_.alignment.empty() ? "\n" : " ||| \n");
    }
    std::string out;
    for (size_t h = 0; h < shown(translated); ++h) {
      const auto& hypothesis = translated.hypotheses[h];
      const std::string text = decoding::text_of(model_, translated, hypothesis, line, a_.replace_unknown);
      out += a_.nbest > 0 ? fmt::format("{} ||| {} ||| {:.9g}", number, text, hypothesis.score) : text;
      if (!a_.alignment.empty()) {
        out += " ||| ";
        if (!translated.attention_left_out) out += alignment_text(translated, hypothesis);
      }
      out += "\n";
    }
    return out;
  }

  std::string alignment_text(const decoding::Translated& translated,
                             const decoding::Hypothesis& hypothesis) const {
    const auto matrix = alignment::word_matrix(model_, translated.source_ids, hypothesis);
    return a_.alignment == "soft" ? soft_rows(matrix) : alignment::pharaoh(alignment::links(matrix));
  }

  boost::json::object json_of(const std::string& line, const decoding::Translated& translated,
                              const decoding::Hypothesis& hypothesis) const {
    boost::json::object json{
        {"text", decoding::text_of(model_, translated, hypothesis, line, a_.replace_unknown)},
        {"score", hypothesis.score},
        {"complete", hypothesis.complete}};
    if (a_.alignment.empty() || translated.attention_left_out) return json;
    const auto matrix = alignment::word_matrix(model_, translated.source_ids, hypothesis);
    if (a_.alignment == "soft")
      json["attention"] = matrix_json(matrix);
    else
      json["alignment"] = links_json(alignment::links(matrix));
    return json;
  }

  /// One object a line: the best translation, and with --nbest all of them.
  std::string json_line(const std::string& line, const decoding::Translated& translated) const {
    boost::json::object json{{"text", line}, {"score", 0}, {"complete", true}};
    if (!translated.hypotheses.empty()) json = json_of(line, translated, translated.hypotheses[0]);
    if (translated.parts > 1) json["parts"] = translated.parts;
    if (a_.nbest > 0) {
      boost::json::array list;
      for (size_t h = 0; h < shown(translated); ++h)
        list.push_back(json_of(line, translated, translated.hypotheses[h]));
      json["hypotheses"] = std::move(list);
    }
    return json_text(json);
  }

  const models::TrainedModel& model_;
  const DecodeArguments& a_;
};

/// What a reader of the result should know, on standard error: of each kind the first few lines, then how
/// many more.
class Warnings {
 public:
  explicit Warnings(const DecodeWords& words) : words_(words) {}

  void add(const std::vector<std::string>& lines, const std::vector<decoding::Translated>& translated,
           int64_t first, bool with_attention) {
    for (size_t i = 0; i < translated.size(); ++i) {
      const int64_t line = first + static_cast<int64_t>(i) + 1;
      const decoding::Translated& it = translated[i];
      if (text::invalid_utf8(lines[i]) != std::string::npos)
        say(kNotUtf8, line,
            "is not UTF-8; what cannot be read is taken for U+FFFD (convert the text with iconv)");
      if (it.parts > 1)
        say(kParts, line,
            fmt::format("has {} pieces, more than any the model was trained on; {} in {} parts",
                        it.source_ids.size() - 1, words_.done, it.parts));
      if (with_attention && it.attention_left_out)
        say(kNoAttention, line,
            "is too long for its attention to be kept: no alignment, no unknown words replaced");
      if (!it.hypotheses.empty() && !it.hypotheses[0].complete)
        say(kCut, line,
            fmt::format("has a {} that was cut at its length limit (--max-length)", words_.result));
    }
  }

  void finish() const {
    const std::string what[kKinds] = {"are not UTF-8", fmt::format("were {} in parts", words_.done),
                                      "are too long for their attention to be kept",
                                      fmt::format("have {} cut at their length limit", words_.results)};
    for (int kind = 0; kind < kKinds; ++kind)
      if (counts_[kind] > kShown)
        std::cerr << fmt::format("regard: warning: {} more lines {}\n", counts_[kind] - kShown, what[kind]);
  }

 private:
  enum Kind { kNotUtf8, kParts, kNoAttention, kCut, kKinds };
  static constexpr int64_t kShown = 5;  // of each kind

  void say(Kind kind, int64_t line, const std::string& what) {
    if (++counts_[kind] <= kShown) std::cerr << fmt::format("regard: warning: line {} {}\n", line, what);
  }

  DecodeWords words_;
  int64_t counts_[kKinds] = {};
};

}  // namespace

void decode_lines(DecodeArguments& a, const Common& common) {
  if (a.nbest > a.search.beam)
    throw UsageError(fmt::format("--nbest {} is more than --beam-size {}; give a beam at least as large",
                                 a.nbest, a.search.beam));
  if (common.json) a.format = "json";
  const models::TrainedModel model = models::load_model(a.model);
  if (!model.model->attends() && (!a.alignment.empty() || a.replace_unknown))
    throw UsageError(fmt::format("the model {} has no attention, so no {}", model.kind->name,
                                 a.alignment.empty() ? "--replace-unknown" : "--alignment"));
  ThreadPool pool(common.thread_count());
  Progress progress(common.quiet);
  a.search.sentences = std::clamp<int64_t>(kRows / a.search.beam, 1, a.search.sentences);
  const decoding::Wanted wanted{.hypotheses = std::max<int64_t>(a.nbest, 1),
                                .attention = !a.alignment.empty() || a.replace_unknown};
  const Writer writer(model, a);
  Warnings warnings(a.words);
  std::vector<std::string> lines;
  size_t bytes = 0;
  int64_t done = 0, tokens = 0;
  double seconds = 0, squares = 0;
  const auto flush = [&] {
    const auto began = std::chrono::steady_clock::now();
    const auto translated = decoding::translate(model, lines, a.search, pool, wanted);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    for (const auto& line : translated)
      if (!line.hypotheses.empty()) tokens += static_cast<int64_t>(line.hypotheses[0].ids.size()) + 1;
    for (size_t i = 0; i < lines.size(); ++i)
      writer.write(lines[i], done + static_cast<int64_t>(i), translated[i]);
    flush_results();
    if (!common.quiet) warnings.add(lines, translated, done, wanted.attention);
    done += static_cast<int64_t>(lines.size());
    lines.clear();
    bytes = 0;
    squares = 0;
    progress.show(fmt::format("{} lines, {} tokens with end symbols, {:.0f} tokens/s", done, tokens,
                              static_cast<double>(tokens) / std::max(seconds, 1e-9)),
                  -1);
  };
  std::string line;
  while (read_input_line(line, done == 0 && lines.empty())) {
    bytes += line.size();
    if (wanted.attention) squares += static_cast<double>(line.size()) * static_cast<double>(line.size());
    lines.push_back(std::move(line));
    if (lines.size() == kLines || bytes > kBytes || squares > kSquares) flush();
  }
  if (!lines.empty()) flush();
  warnings.finish();
}

void add_decode_options(CLI::App* verb, DecodeArguments& a, const std::string& max_length_help) {
  verb->add_option("DIR", a.model, "The model directory")->required();
  verb->add_option("--beam-size", a.search.beam, "Hypotheses kept; 1 is greedy")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_option("--nbest", a.nbest, "Print so many: LINE ||| TEXT ||| SCORE, lines from 0")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--length-penalty", a.search.length_penalty,
                   "Score = log-probability / (tokens with the end symbol)^penalty")
      ->capture_default_str()
      ->check(CLI::Range(-10.0, 10.0));
  verb->add_option("--max-length", a.search.max_length,
                   fmt::format("Pieces of a {}; {}", a.words.result, max_length_help))
      ->check(CLI::Range(1, 100000));
  verb->add_flag("--no-repeat-trigrams", a.search.no_repeat_trigrams,
                 "No three pieces in a row are written twice (Paulus et al. 2017)");
  verb->add_flag("--replace-unknown", a.replace_unknown,
                 "Write the source word with most attention for a word that the vocabulary lacks");
  verb->add_option("--format", a.format, "text, or json: one object a line (as --json)")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  verb->add_option("--batch-sentences", a.search.sentences,
                   "Sentences that go through the decoder together; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
}

}  // namespace regard::cli
