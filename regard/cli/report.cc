// regard report: how a model was trained, and what it attends to, in one page.

#include "regard/pictures/report.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <iostream>

#include "regard/alignment/word_matrix.h"
#include "regard/base/file.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/decoding/translator.h"
#include "regard/storage/json.h"
#include "regard/text/readers.h"
#include "regard/text/utf8.h"

namespace regard::cli {
namespace {

constexpr size_t kSamples = 20, kLongestSample = 120;  // sentences shown, bytes of each

struct ReportArguments {
  std::string model, output, source, target;
};

/// The curves of train.jsonl: objective, development loss, BLEU over steps.
std::vector<pictures::Curve> training_curves(const std::string& path) {
  pictures::Series loss{"training", {}, {}}, dev{"development", {}, {}}, bleu{"BLEU", {}, {}};
  const std::string all = read_file(path);
  int64_t line = 0;
  // A line without its end is one that a kill cut short.
  for (size_t begin = 0, end; (end = all.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto json = parse_json_object(all.substr(begin, end - begin), path + ":" + std::to_string(++line));
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

/// Lines that make a readable picture, evenly from the whole file.
std::vector<size_t> chosen_lines(const std::vector<std::string>& lines) {
  std::vector<size_t> readable, chosen;
  for (size_t i = 0; i < lines.size(); ++i)
    if (!text::is_blank(lines[i]) && lines[i].size() <= kLongestSample &&
        lines[i].find(' ') != std::string::npos)
      readable.push_back(i);
  const size_t count = std::min(readable.size(), kSamples);
  for (size_t k = 0; k < count; ++k) chosen.push_back(readable[k * readable.size() / count]);
  return chosen;
}

void add_samples(pictures::Report& page, const models::TrainedModel& model, const ReportArguments& a,
                 ThreadPool& pool) {
  text::ParallelLines lines;
  if (a.target.empty()) {
    lines.source = text::read_lines(a.source);
    lines.target.resize(lines.source.size());
  } else {
    lines = text::read_parallel_lines(a.source, a.target);
  }
  const auto chosen = chosen_lines(lines.source);
  std::vector<std::string> sources;
  for (const size_t i : chosen) sources.push_back(lines.source[i]);
  const auto translated = decoding::translate(model, sources, {}, pool);
  for (size_t k = 0; k < chosen.size(); ++k) {
    const auto& best = translated[k].hypotheses.at(0);
    const std::string text = decoding::text_of(model, translated[k], best, sources[k], false);
    page.samples.push_back({sources[k], lines.target[chosen[k]], text});
    if (!model.model->attends()) continue;
    page.matrices.push_back(alignment::word_matrix(model, translated[k].source_ids, best));
    page.matrices.back().title = text;
  }
}

void report(const ReportArguments& a, const Common& common) {
  const models::Task task = models::task_of(a.model);
  const bool language = task == models::Task::language;
  if (language && !a.source.empty())
    throw UsageError("--source has sentences to translate, and " + a.model + " holds a language model");
  const models::TrainedModel model = models::load_model(a.model, language ? task : models::Task::translation);
  const auto directory = ModelDirectory::open(a.model);
  ThreadPool pool(common.thread_count());
  pictures::Report page;
  page.title = language ? "A language model" : "A translator and what it attends to";
  page.facts = {
      {"Model", fmt::format("{}: {}", model.kind->name, model.kind->summary)},
      {"Weights", fmt::format("{:.1f} million", static_cast<double>(model.model->parameter_count()) * 1e-6)},
      {"Vocabulary", fmt::format("{} pieces", model.target->size())},
      {"Training data", directory.data_fingerprint()}};
  const auto log = directory.path("train.jsonl");
  if (std::filesystem::exists(log)) page.curves = training_curves(log.string());
  if (!a.source.empty()) add_samples(page, model, a, pool);
  write_file_atomically(a.output, pictures::report_html(page));
  if (common.json)
    std::cout << json_text(boost::json::object{
        {"output", a.output}, {"samples", page.samples.size()}, {"matrices", page.matrices.size()}});
}

}  // namespace

void add_report(CLI::App& app, Common& common) {
  auto* verb =
      app.add_subcommand("report", "Training curves, samples and attention matrices in one HTML file");
  auto a = std::make_shared<ReportArguments>();
  verb->add_option("DIR", a->model, "The model directory")->required();
  verb->add_option("--output", a->output, "The HTML file")->type_name("FILE")->required();
  verb->add_option("--source", a->source, "Sentences to show")->type_name("FILE");
  verb->add_option("--target", a->target, "Their reference translations")->type_name("FILE");
  verb->footer(
      "Example:\n"
      "  regard report model --source test.en --target test.fr --output report.html");
  verb->callback([a, &common] { report(*a, common); });
}

}  // namespace regard::cli
