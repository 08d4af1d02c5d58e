// regard generate: prompts on standard input, continued by a language model.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <iostream>

#include "regard/cli/input.h"
#include "regard/cli/progress.h"
#include "regard/cli/results.h"
#include "regard/cli/verb.h"
#include "regard/decoding/sampling.h"
#include "regard/models/directory.h"
#include "regard/text/readers.h"

namespace regard::cli {
namespace {

constexpr size_t kLines = 256;  // read, continued and written together

struct GenerateArguments {
  std::string model;
  decoding::SamplingOptions sampling;
  int64_t beam = 0;  // 0: draws
  bool raw = false;
  std::vector<CLI::Option*> of_draws;
};

std::vector<decoding::Hypothesis> continued(const models::TrainedModel& model, const GenerateArguments& a,
                                            std::span<const std::span<const int32_t>> prompts, int64_t first,
                                            ThreadPool& pool) {
  if (a.beam == 0)
    return decoding::sample(*model.model, prompts, first, a.sampling, pool, model.frozen.get());
  const std::vector<std::span<const int32_t>> nothing(prompts.size());
  std::vector<decoding::Hypothesis> best;
  for (auto& found :
       decoding::search(*model.model, nothing, {.beam = a.beam, .max_length = a.sampling.max_length}, pool,
                        model.frozen.get(), prompts))
    best.push_back(std::move(found.at(0)));
  return best;
}

/// What stands behind the prompt, as the vocabulary joins it to the prompt.
std::string continuation(const text::Vocabulary& vocabulary, std::span<const int32_t> prompt,
                         std::span<const int32_t> ids) {
  const std::string before = vocabulary.decode(prompt), all = vocabulary.decode(ids);
  return all.starts_with(before) ? all.substr(before.size()) : vocabulary.decode(ids.subspan(prompt.size()));
}

/// Newline symbols as newlines.
std::string with_newlines(std::string text) {
  for (size_t at = 0; (at = text.find("\\n", at)) != std::string::npos; ++at) text.replace(at, 2, "\n");
  return text;
}

class Writer {
 public:
  Writer(const GenerateArguments& a, const Common& common) : raw_(a.raw), json_(common.json) {}

  void write(const std::string& prompt, const std::string& added, size_t tokens,
             const decoding::Hypothesis& hypothesis) const {
    const std::string text = prompt + text::line_of(added);
    if (json_)
      std::cout << json_text(boost::json::object{{"prompt", with_newlines(prompt)},
                                                 {"text", with_newlines(text)},
                                                 {"score", hypothesis.score},
                                                 {"tokens", tokens},
                                                 {"complete", hypothesis.complete}});
    else
      std::cout << (raw_ ? with_newlines(text) : text) << "\n";
  }

 private:
  bool raw_, json_;
};

void generate(const GenerateArguments& a, const Common& common) {
  for (const CLI::Option* option : a.of_draws)
    if (a.beam > 0 && option->count() > 0)
      throw UsageError(option->get_name() +
                       " is about draws, and --beam-size looks for the most probable text; give one of them");
  if (a.raw && common.json) throw UsageError("--raw and --json are two ways to write; give one of them");
  const models::TrainedModel model = models::load_model(a.model, models::Task::language);
  ThreadPool pool(common.thread_count());
  Progress progress(common.quiet);
  const Writer writer(a, common);
  std::vector<std::string> lines;
  int64_t done = 0;
  const auto flush = [&] {
    std::vector<std::vector<int32_t>> ids;
    ids.reserve(lines.size());
    for (const std::string& line : lines) ids.push_back(model.target->encode(line));
    const std::vector<std::span<const int32_t>> prompts(ids.begin(), ids.end());
    const auto found = continued(model, a, prompts, done, pool);
    for (size_t i = 0; i < lines.size(); ++i)
      writer.write(lines[i], continuation(*model.target, prompts[i], found[i].ids),
                   found[i].ids.size() - prompts[i].size(), found[i]);
    flush_results();
    done += static_cast<int64_t>(lines.size());
    lines.clear();
    progress.show(fmt::format("{} lines", done), -1);
  };
  std::string line;
  while (read_input_line(line, done == 0 && lines.empty())) {
    lines.push_back(std::move(line));
    if (lines.size() == kLines) flush();
  }
  if (!lines.empty()) flush();
}

}  // namespace

void add_generate(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("generate", "Continue each line of standard input with a language model");
  auto a = std::make_shared<GenerateArguments>();
  decoding::SamplingOptions& s = a->sampling;
  verb->add_option("DIR", a->model, "The model directory")->required();
  a->of_draws = {
      verb->add_option("--temperature", s.temperature,
                       "Logits are divided by it: below 1 more probable words, 0 only the most probable")
          ->capture_default_str()
          ->check(CLI::Range(0.0, 100.0)),
      verb->add_option("--top-k", s.top_k, "Draw among so many of the most probable pieces; 0: all")
          ->capture_default_str()
          ->check(CLI::Range(0, 1 << 24)),
      verb->add_option("--top-p", s.top_p,
                       "Draw among the fewest pieces that have this share of probability together")
          ->capture_default_str()
          ->check(CLI::Range(1e-9, 1.0)),
      verb->add_option("--seed", s.seed, "Seed; a line's draws depend on it and the line's number alone")
          ->capture_default_str()};
  verb->add_option("--max-length", s.max_length, "Pieces behind the prompt, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--beam-size", a->beam, "Instead of draws: search for the most probable text")
      ->check(CLI::Range(1, 1000));
  verb->add_flag("--raw", a->raw, "Write newlines as newlines, for people to read");
  verb->add_option("--batch-sentences", s.sentences,
                   "Lines that go through the model together; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  verb->footer(
      "Examples:\n"
      "  echo \"ROMEO:\\n\" | regard generate model --temperature 0.8 --raw\n"
      "  regard generate model --top-p 0.9 --seed 7 < prompts > texts\n"
      "As many lines come out as go in (but for --raw): each prompt, which may be empty, and its\n"
      "continuation; a newline inside a text is \\n, in --json's strings a newline.");
  verb->callback([a, &common] { generate(*a, common); });
}

}  // namespace regard::cli
