// regard view and report: what a model attends to, and how it was trained.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "regard/base/file.h"
#include "regard/cli/translator.h"
#include "regard/cli/verb.h"
#include "regard/pictures/report.h"
#include "regard/storage/json.h"
#include "regard/text/readers.h"

namespace regard::cli {
namespace {

struct ViewArguments {
  std::string model, text, target, output;
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

pictures::AttentionMatrix matrix_of(const models::TrainedModel& model, const std::string& text,
                                    const std::string& target, ThreadPool& pool) {
  auto ids = model.source->encode(text);
  ids.push_back(text::Vocabulary::kEnd);
  decoding::Hypothesis hypothesis;
  if (!target.empty()) {
    hypothesis = force(model, ids, model.target->encode(target));
  } else {
    const std::vector<std::span<const int32_t>> sources{ids};
    hypothesis = decoding::search(model.model, sources, {}, pool)[0].at(0);
  }
  auto matrix = word_matrix(model, ids, hypothesis);
  matrix.title = model.target->decode(hypothesis.ids);
  return matrix;
}

void view(const ViewArguments& a, const Common& common) {
  if (is_blank(a.text)) throw UsageError("TEXT holds no word; give a sentence to look at");
  const models::TrainedModel model = models::load_model(a.model);
  ThreadPool pool(common.threads > 0 ? common.threads : available_processors());
  const auto matrix = matrix_of(model, a.text, a.target, pool);
  if (a.output.empty())
    std::cout << matrix.title << "\n\n" << pictures::terminal_matrix(matrix, terminal());
  else if (a.output.ends_with(".svg"))
    write_file_atomically(a.output, pictures::svg_matrix(matrix));
  else if (a.output.ends_with(".html"))
    write_file_atomically(a.output, pictures::matrix_html(matrix));
  else if (a.output.ends_with(".png"))
    pictures::write_png(a.output, matrix);
  else
    throw UsageError("--output " + a.output + ": expected a name that ends in .png, .svg or .html");
}

struct ReportArguments {
  std::string model, output, source, target;
};

/// The curves of train.jsonl: objective, development loss, BLEU over steps.
std::vector<pictures::Curve> training_curves(const std::string& path) {
  pictures::Series loss{"training", {}, {}}, dev{"development", {}, {}}, bleu{"BLEU", {}, {}};
  const std::string all = read_file(path);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const auto json = parse_json_object(all.substr(begin, end - begin), path);
    begin = end + 1;
    const double step = json_number(json, "step", path);
    for (auto [series, key] :
         {std::pair(&loss, "loss"), std::pair(&dev, "dev_loss"), std::pair(&bleu, "dev_bleu")})
      if (json.contains(key)) {
        series->x.push_back(step);
        series->y.push_back(json_number(json, key, path));
      }
  }
  std::vector<pictures::Curve> curves{{{"Loss", "step", "nats per token"}, {loss}}};
  if (!dev.x.empty()) curves[0].series.push_back(dev);
  if (!bleu.x.empty()) curves.push_back({{"BLEU on development sentences", "step", "BLEU"}, {bleu}});
  return curves;
}

void report(const ReportArguments& a, const Common& common) {
  const models::TrainedModel model = models::load_model(a.model);
  const auto directory = ModelDirectory::open(a.model);
  ThreadPool pool(common.threads > 0 ? common.threads : available_processors());
  pictures::Report page;
  page.title = "A translator and what it attends to";
  int64_t weights = 0;
  for (const auto& p : model.model.parameters()) weights += p.value.size();
  page.facts = {
      {"Model", "bahdanau: a bidirectional encoder, additive attention (Bahdanau, Cho and Bengio 2015)"},
      {"Weights", fmt::format("{:.1f} million", static_cast<double>(weights) * 1e-6)},
      {"Vocabulary", fmt::format("{} pieces", model.target->size())},
      {"Training data", directory.data_fingerprint()}};
  const auto log = directory.path("train.jsonl");
  if (std::filesystem::exists(log)) page.curves = training_curves(log.string());
  if (!a.source.empty()) {
    auto source = text::read_lines(a.source);
    const auto target =
        a.target.empty() ? std::vector<std::string>(source.size()) : text::read_lines(a.target);
    if (target.size() != source.size())
      throw DataError(
          fmt::format("{} has {} lines and {} has {}", a.source, source.size(), a.target, target.size()));
    for (size_t i = 0; i < source.size() && page.samples.size() < 20; ++i) {
      if (is_blank(source[i]) || source[i].size() > 120 || source[i].find(' ') == std::string::npos) continue;
      auto matrix = matrix_of(model, source[i], "", pool);
      page.samples.push_back({source[i], target[i], matrix.title});
      page.matrices.push_back(std::move(matrix));
    }
  }
  write_file_atomically(a.output, pictures::report_html(page));
}

}  // namespace

void add_view(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("view", "Draw the attention matrix of a sentence and its translation");
  auto a = std::make_shared<ViewArguments>();
  verb->add_option("model", a->model, "The model directory")->required();
  verb->add_option("text", a->text, "The source sentence")->required();
  verb->add_option("--target", a->target, "This translation instead of the model's own");
  verb->add_option("--output", a->output, "A .png, .svg or .html file instead of the terminal");
  verb->callback([a, &common] { view(*a, common); });
}

void add_report(CLI::App& app, Common& common) {
  auto* verb =
      app.add_subcommand("report", "Training curves, samples and attention matrices in one HTML file");
  auto a = std::make_shared<ReportArguments>();
  verb->add_option("model", a->model, "The model directory")->required();
  verb->add_option("--output", a->output, "The HTML file")->required();
  verb->add_option("--source", a->source, "Sentences to show");
  verb->add_option("--target", a->target, "Their reference translations");
  verb->callback([a, &common] { report(*a, common); });
}

}  // namespace regard::cli
