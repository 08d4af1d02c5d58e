// regard view: what a model attends to.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <iostream>

#include "regard/alignment/word_matrix.h"
#include "regard/base/file.h"
#include "regard/cli/json.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/decoding/classify.h"
#include "regard/decoding/forced.h"
#include "regard/text/utf8.h"

namespace regard::cli {
namespace {

struct ViewArguments {
  std::string model, text, target, output;
  CLI::Option* target_option = nullptr;
};

pictures::TerminalOptions terminal() {
  pictures::TerminalOptions options;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = size.ws_col;
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const depth = std::getenv("COLORTERM");
  options.colour = ::isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
  options.true_colour =
      depth && (std::string_view(depth) == "truecolor" || std::string_view(depth) == "24bit");
  return options;
}

void require_drawable(const char* what, size_t pieces) {
  constexpr size_t kMost = 512;
  if (pieces > kMost)
    throw UsageError(
        fmt::format("{} has {} pieces, a picture holds {}; give one sentence", what, pieces, kMost));
}

/// Of the model's own translation (beam search), or of `target` if it is not empty; the title is that
/// translation. Throws UsageError if the model has no attention.
pictures::AttentionMatrix matrix_of(const models::TrainedModel& model, const std::string& text,
                                    const std::string& target, ThreadPool& pool) {
  auto ids = model.source->encode(text);
  ids.push_back(text::Vocabulary::kEnd);
  require_drawable("TEXT", ids.size());
  const std::vector<std::span<const int32_t>> sources{ids};
  decoding::Hypothesis hypothesis;
  if (!target.empty()) {
    const auto target_ids = model.target->encode(target);
    require_drawable("--target", target_ids.size());
    const std::vector<std::span<const int32_t>> targets{target_ids};
    hypothesis = decoding::force(*model.model, sources, targets, pool, model.frozen.get())[0];
  } else {
    hypothesis = decoding::search(*model.model, sources, {}, pool, model.frozen.get())[0].at(0);
  }
  auto matrix = alignment::word_matrix(model, ids, hypothesis);
  matrix.title = model.target->decode(hypothesis.ids);
  return matrix;
}

/// What the words of premise `text` (rows) attend to in hypothesis `target`; the title is the class.
pictures::AttentionMatrix matrix_of(const models::TrainedClassifier& classifier, const std::string& text,
                                    const std::string& target, ThreadPool& pool) {
  if (target.empty()) throw UsageError("a classifier looks at a pair of sentences; give --target HYPOTHESIS");
  const auto& vocabulary = *classifier.vocabulary;
  const auto premise = text::encode_lines(vocabulary, std::vector{text}, classifier.longest);
  const auto hypothesis = text::encode_lines(vocabulary, std::vector{target}, classifier.longest);
  require_drawable("TEXT", premise[0].size());
  require_drawable("--target", hypothesis[0].size());
  const auto found = decoding::classify(*classifier.model, premise, hypothesis, pool, true)[0];
  auto matrix = alignment::word_matrix({vocabulary, hypothesis[0]}, {vocabulary, premise[0]}, found.alpha);
  const auto best = static_cast<size_t>(found.best);
  matrix.title = fmt::format("{}, {:.0f} %", classifier.labels[best], 100 * found.probabilities[best]);
  return matrix;
}

/// What each piece of a text looked at among the pieces before it, as a language model reads them.
pictures::AttentionMatrix own_matrix(const models::TrainedModel& model, const ViewArguments& a) {
  if (!a.target.empty()) throw UsageError("a language model reads TEXT alone; leave --target out");
  std::vector<int32_t> ids = model.target->encode(a.text);
  require_drawable("TEXT", ids.size());
  const Tensor weights = model.model->own_attention(ids);
  if (!weights.defined())
    throw UsageError(std::string("the model ") + model.kind->name +
                     " has no attention to look at; train lstmn-lm or transformer-lm");
  pictures::AttentionMatrix matrix;
  ids.insert(ids.begin(), model.model->begin());
  for (const int32_t id : ids) matrix.source.push_back(model.target->piece(id));
  matrix.target = matrix.source;
  matrix.weights.assign(weights.values<float>().begin(), weights.values<float>().end());
  matrix.title = a.text;
  return matrix;
}

pictures::AttentionMatrix matrix_of(models::Task task, const ViewArguments& a, ThreadPool& pool) {
  switch (task) {
    case models::Task::language:
      return own_matrix(models::load_model(a.model, models::Task::language), a);
    case models::Task::classification:
      return matrix_of(models::load_classifier(a.model), a.text, a.target, pool);
    default:
      return matrix_of(models::load_model(a.model), a.text, a.target, pool);
  }
}

void view(const ViewArguments& a, const Common& common) {
  if (!a.output.empty() && !a.output.ends_with(".svg") && !a.output.ends_with(".html") &&
      !a.output.ends_with(".png"))
    throw UsageError("--output " + a.output + ": expected a name that ends in .png, .svg or .html");
  if (text::is_blank(a.text)) throw UsageError("TEXT holds no word; give a sentence to look at");
  if (a.target_option->count() > 0 && text::is_blank(a.target))
    throw UsageError("--target holds no word; give a sentence, or leave it out");
  ThreadPool pool(common.thread_count());
  const models::Task task = models::task_of(a.model);
  const auto matrix = matrix_of(task, a, pool);
  if (common.json)
    std::cout << json_text(task == models::Task::classification ? matrix_json(matrix, "hypothesis", "premise")
                                                                : matrix_json(matrix));
  if (a.output.empty() && !common.json)
    std::cout << pictures::terminal_matrix(matrix, terminal());
  else if (a.output.ends_with(".svg"))
    write_file_atomically(a.output, pictures::svg_matrix(matrix));
  else if (a.output.ends_with(".html"))
    write_file_atomically(a.output, pictures::matrix_html(matrix));
  else if (a.output.ends_with(".png"))
    pictures::write_png(a.output, matrix);
}

}  // namespace

void add_view(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand(
      "view", "Draw the attention matrix of a sentence and its translation, or of a text to itself");
  auto a = std::make_shared<ViewArguments>();
  verb->add_option("DIR", a->model, "The model directory")->required();
  verb->add_option("TEXT", a->text, "The source sentence; for a language model the text")->required();
  a->target_option = verb->add_option(
      "--target", a->target, "This translation instead of the model's own; of a classifier: the hypothesis");
  verb->add_option("--output", a->output, "A .png, .svg or .html file instead of the terminal")
      ->type_name("FILE");
  verb->footer(
      "Examples:\n"
      "  regard view model \"the red car\"\n"
      "  regard view model \"the red car\" --target \"la voiture rouge\" --output matrix.svg\n"
      "Columns are source words, rows target words (of a classifier: words of the hypothesis, and of the\n"
      "premise TEXT that attend to them; of a language model: the text, and a row tells what was looked at\n"
      "when its piece was read). A PNG needs gnuplot; its numbers stand beside it in FILE.tsv.");
  verb->callback([a, &common] { view(*a, common); });
}

}  // namespace regard::cli
