// regard translate, score and align: lines through a trained model.

#include <fmt/format.h>

#include <iostream>

#include "regard/cli/progress.h"
#include "regard/cli/translator.h"
#include "regard/cli/verb.h"
#include "regard/text/readers.h"

namespace regard::cli {
namespace {

constexpr size_t kPiece = 2000;  // lines read, translated and written together: memory stays bounded

struct TranslateArguments {
  std::string model, alignment;
  decoding::SearchOptions search;
  int64_t nbest = 0;
};

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

void write_line(const models::TrainedModel& model, const std::string& line, int64_t number,
                const Translated& translated, const TranslateArguments& a) {
  std::string out;
  const auto hypotheses = translated.hypotheses.size();
  if (translated.untouched || hypotheses == 0) {
    out = a.nbest > 0 ? fmt::format("{} ||| {} ||| 0\n", number, line)
                      : line + (a.alignment.empty() ? "\n" : " ||| \n");
    std::cout << out;
    return;
  }
  const auto count = a.nbest > 0 ? std::min<size_t>(hypotheses, static_cast<size_t>(a.nbest)) : 1;
  for (size_t h = 0; h < count; ++h) {
    const auto& hypothesis = translated.hypotheses[h];
    const std::string text = model.target->decode(hypothesis.ids);
    out += a.nbest > 0 ? fmt::format("{} ||| {} ||| {:.9g}", number, text, hypothesis.score) : text;
    if (!a.alignment.empty()) {
      const auto matrix = word_matrix(model, translated.source_ids, hypothesis);
      out += " ||| " + (a.alignment == "soft" ? soft_rows(matrix) : pharaoh_links(matrix));
    }
    out += "\n";
  }
  std::cout << out;
}

void translate(const TranslateArguments& a, const Common& common) {
  if (a.nbest > a.search.beam)
    throw UsageError(fmt::format("--nbest {} is more than --beam-size {}; give a beam at least as large",
                                 a.nbest, a.search.beam));
  const models::TrainedModel model = models::load_model(a.model);
  ThreadPool pool(common.threads > 0 ? common.threads : available_processors());
  Progress progress(common.quiet);
  std::vector<std::string> lines;
  int64_t done = 0;
  const auto flush = [&] {
    const auto translated = translate_lines(model, lines, a.search, pool);
    for (size_t i = 0; i < lines.size(); ++i) write_line(model, lines[i], done++, translated[i], a);
    std::cout.flush();
    lines.clear();
    progress.show(fmt::format("{} lines", done), -1);
  };
  std::string line;
  while (std::getline(std::cin, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    if (lines.size() == kPiece) flush();
  }
  if (!lines.empty()) flush();
}

struct PairArguments {
  std::string model, source, target;
};

template <class Use>
void for_each_pair(const PairArguments& a, const Common& common, Use use) {
  const models::TrainedModel model = models::load_model(a.model);
  const auto source = text::read_lines(a.source), target = text::read_lines(a.target);
  if (source.size() != target.size())
    throw DataError(fmt::format("{} has {} lines and {} has {}; give as many on both sides", a.source,
                                source.size(), a.target, target.size()));
  ThreadPool pool(common.threads > 0 ? common.threads : available_processors());
  std::vector<std::string> results(source.size());
  pool.parallel_for(static_cast<int64_t>(source.size()), [&](int64_t n) {
    const auto i = static_cast<size_t>(n);
    auto ids = model.source->encode(source[i]);
    ids.push_back(text::Vocabulary::kEnd);
    results[i] = use(model, ids, force(model, ids, model.target->encode(target[i])));
  });
  for (const auto& result : results) std::cout << result << "\n";
}

void add_pair_options(CLI::App* verb, PairArguments& a) {
  verb->add_option("model", a.model, "The model directory")->required();
  verb->add_option("--source", a.source, "Source lines")->required();
  verb->add_option("--target", a.target, "Target lines, as many")->required();
}

}  // namespace

void add_translate(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("translate", "Translate standard input to standard output, line for line");
  auto a = std::make_shared<TranslateArguments>();
  verb->add_option("model", a->model, "The model directory")->required();
  verb->add_option("--beam-size", a->search.beam, "Hypotheses kept; 1 is greedy")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_option("--nbest", a->nbest, "Print so many: LINE ||| TEXT ||| SCORE")->check(CLI::Range(1, 1000));
  verb->add_option("--length-penalty", a->search.length_penalty,
                   "Score = log-probability / (tokens with the end symbol)^penalty")
      ->capture_default_str();
  verb->add_option("--max-length", a->search.max_length,
                   "Tokens of a translation; default: twice the source's and 10 more")
      ->check(CLI::Range(1, 100000));
  verb->add_option("--alignment", a->alignment, "pharaoh (TEXT ||| i-j ...) or soft (rows of weights)")
      ->check(CLI::IsMember({"pharaoh", "soft"}));
  verb->callback([a, &common] { translate(*a, common); });
}

void add_score(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("score", "Log-probability of each pair, in nats");
  auto a = std::make_shared<PairArguments>();
  add_pair_options(verb, *a);
  verb->callback([a, &common] {
    for_each_pair(*a, common,
                  [](const models::TrainedModel&, const std::vector<int32_t>&,
                     const decoding::Hypothesis& h) { return fmt::format("{:.9g}", h.score); });
  });
}

void add_align(CLI::App& app, Common& common) {
  auto* verb =
      app.add_subcommand("align", "Pharaoh links i-j of each pair (words, from 0), read off the attention");
  auto a = std::make_shared<PairArguments>();
  add_pair_options(verb, *a);
  verb->callback([a, &common] {
    for_each_pair(*a, common,
                  [](const models::TrainedModel& model, const std::vector<int32_t>& ids,
                     const decoding::Hypothesis& h) { return pharaoh_links(word_matrix(model, ids, h)); });
  });
}

}  // namespace regard::cli
