// regard train: text in, a model directory out.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <iostream>
#include <map>
#include <optional>

#include "regard/cli/progress.h"
#include "regard/cli/results.h"
#include "regard/cli/signals.h"
#include "regard/cli/verb.h"
#include "regard/models/registry.h"
#include "regard/text/corpus.h"
#include "regard/text/gather.h"
#include "regard/text/labelled.h"
#include "regard/training/session.h"

namespace regard::cli {
namespace {

/// Held out of --data if nothing else is said.
constexpr double kDevFraction = 0.05;
constexpr int64_t kDevLines = 1000;

struct TrainArguments {
  training::SessionOptions session;
  std::string output, vocabulary, from, to;
  std::vector<std::filesystem::path> source, target;
  std::vector<std::string> data;
  std::vector<std::filesystem::path> text, dev_text;
  std::string dev_source, dev_target, guided_alignment;
  std::vector<std::string> dev_data;
  double dev_fraction = 0;
  CLI::Option *learning_rate = nullptr, *label_smoothing = nullptr;
  std::map<std::string, CLI::Option*> model_options;  // by field
  std::map<std::string, std::string> choices;         // values of fields that are one of several names
};

void take(const std::vector<text::Pair>& pairs, std::vector<std::string>& source,
          std::vector<std::string>& target) {
  for (const auto& pair : pairs) {
    source.push_back(pair.source);
    target.push_back(pair.target);
  }
}

/// Pairs without duplicates, some held out by distinct source.
training::Lines held_out(const std::vector<text::Pair>& pairs, const text::CorpusOptions& options) {
  const text::Corpus corpus = text::build_corpus(pairs, options);
  training::Lines lines;
  take(corpus.train, lines.source, lines.target);
  take(corpus.dev, lines.dev_source, lines.dev_target);
  return lines;
}

bool classifies(const TrainArguments& a) {
  return models::model_kind(a.session.model).task == models::Task::classification;
}

/// Pairs with labels. Without --dev-data a share of them is held out, by lot.
training::Lines read_labelled_data(const TrainArguments& a) {
  training::Lines lines;
  std::vector<text::LabelledPair> pairs, dev;
  const auto read = [](const std::vector<std::string>& files, std::vector<text::LabelledPair>& into) {
    for (const std::string& file : files)
      for (auto& pair : text::read_labelled(file)) into.push_back(std::move(pair));
  };
  read(a.data, pairs);
  read(a.dev_data, dev);
  if (a.dev_data.empty()) {
    RandomStream random(a.session.training.seed, 0x646576);
    shuffle(pairs.begin(), pairs.end(), random);
    const double share = a.dev_fraction > 0 ? a.dev_fraction : kDevFraction;
    const auto held = static_cast<std::ptrdiff_t>(share * static_cast<double>(pairs.size()));
    dev.assign(pairs.end() - held, pairs.end());
    pairs.resize(pairs.size() - dev.size());
  }
  for (auto& pair : pairs) {
    lines.source.push_back(std::move(pair.premise));
    lines.target.push_back(std::move(pair.hypothesis));
    lines.labels.push_back(std::move(pair.label));
  }
  for (auto& pair : dev) {
    lines.dev_source.push_back(std::move(pair.premise));
    lines.dev_target.push_back(std::move(pair.hypothesis));
    lines.dev_labels.push_back(std::move(pair.label));
  }
  return lines;
}

std::vector<std::string> read_text_files(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> lines;
  for (const auto& file : files) {
    auto more = text::read_lines(file);
    if (more.empty()) throw DataError(file.string(), 0, "has no lines; there is no text in it");
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  }
  return lines;
}

/// Moves the last lines, of about this share of the bytes, to `held_out`; both sides keep one at least.
void hold_out_end(std::vector<std::string>& lines, double fraction, std::vector<std::string>& held_out) {
  if (lines.size() < 2)
    throw UsageError(
        "--dev-fraction holds out the last lines of a text, and there is one line; give --dev-text F");
  double bytes = 0, behind = 0;
  for (const std::string& line : lines) bytes += static_cast<double>(line.size() + 1);
  size_t first = lines.size();
  while (first > 1 && behind < fraction * bytes) behind += static_cast<double>(lines[--first].size() + 1);
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(first);
  held_out.assign(std::move_iterator(at), std::move_iterator(lines.end()));
  lines.erase(at, lines.end());
}

/// A language model's text: all of it is target.
training::Lines read_language_data(const TrainArguments& a) {
  training::Lines lines;
  lines.target = read_text_files(a.text);
  if (!a.dev_text.empty()) {
    lines.dev_target = read_text_files(a.dev_text);
  } else if (a.dev_fraction > 0 && !a.session.text_lines) {
    hold_out_end(lines.target, a.dev_fraction, lines.dev_target);
  } else if (a.dev_fraction > 0) {
    std::vector<text::Pair> pairs;
    for (std::string& line : lines.target) pairs.push_back({line, std::move(line), "", 0});
    lines = held_out(pairs, {.dev_fraction = a.dev_fraction, .seed = a.session.training.seed});
    lines.source.clear();
    lines.dev_source.clear();
  }
  return lines;
}

training::Lines read_data(const TrainArguments& a) {
  if (classifies(a)) return read_labelled_data(a);
  if (!a.text.empty()) return read_language_data(a);
  const bool has_dev = !a.dev_source.empty();
  training::Lines lines;
  if (!a.data.empty()) {
    const auto pairs = text::gather_pairs(a.data, a.from, a.to);
    text::CorpusOptions options{.seed = a.session.training.seed};
    options.dev_fraction = has_dev ? 0 : a.dev_fraction;
    if (!has_dev && a.dev_fraction == 0)
      options.dev =
          std::min(kDevLines, static_cast<int64_t>(kDevFraction * static_cast<double>(pairs.size())));
    lines = held_out(pairs, options);
  } else {
    auto parallel = text::read_parallel_lines(a.source, a.target);
    if (parallel.source.empty())
      throw DataError(a.source[0].string(), 0, "has no lines; there is nothing to train on");
    if (a.dev_fraction > 0 && !has_dev) {
      std::vector<text::Pair> pairs;
      for (size_t i = 0; i < parallel.source.size(); ++i)
        pairs.push_back({std::move(parallel.source[i]), std::move(parallel.target[i]), "", 0});
      lines = held_out(pairs, {.dev_fraction = a.dev_fraction, .seed = a.session.training.seed});
    } else {
      lines.source = std::move(parallel.source);
      lines.target = std::move(parallel.target);
      if (!a.guided_alignment.empty())
        lines.links = training::read_word_links(a.guided_alignment, lines.source, lines.target);
    }
  }
  if (has_dev) {
    auto dev = text::read_parallel_lines(a.dev_source, a.dev_target);
    lines.dev_source = std::move(dev.source);
    lines.dev_target = std::move(dev.target);
  }
  return lines;
}

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::clamp(seconds, 0.0, 3.6e9));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

/// Remembers what a report leaves out, so that the line always tells all.
class Watcher {
 public:
  Watcher(bool quiet, const training::TrainingOptions& options) : progress_(quiet), options_(options) {}

  void show(const training::Report& r) {
    last_ = r;
    if (r.loss) loss_ = *r.loss;
    if (r.target_tokens_per_s) speed_ = *r.target_tokens_per_s;
    std::string line = fmt::format("epoch {} step {} loss {:.3f} {:.0f} tokens/s rate {:.2e}", r.epoch + 1,
                                   r.step, loss_, speed_, r.learning_rate);
    const auto [fraction, left] = time_left(r);
    if (fraction >= 0) line += " left " + duration(left);
    if (r.dev_loss) {
      dev_loss_ = *r.dev_loss;
      best_dev_loss_ = std::min(best_dev_loss_.value_or(dev_loss_), dev_loss_);
    }
    if (r.dev_loss) dev_ = fmt::format(" dev loss {:.3f}", *r.dev_loss);
    if (r.dev_accuracy) dev_ += fmt::format(" accuracy {:.1f} %", 100 * *r.dev_accuracy);
    if (r.dev_bleu) dev_ += fmt::format(" BLEU {:.1f}", *r.dev_bleu);
    progress_.show(line + dev_, fraction);
  }
  void finish() { progress_.finish(); }

  /// "out of time at step 5662; the best weights (development loss 2.026) are in model"
  std::string farewell(training::Ending ending, const std::string& output) const {
    static const char* const kNames[] = {"finished", "out of time", "out of patience", "interrupted"};
    const std::string best = best_dev_loss_
                                 ? fmt::format("the best weights (development loss {:.3f})", *best_dev_loss_)
                                 : "the weights";
    return fmt::format("{} at step {}; {} are in {}\n", kNames[static_cast<int>(ending)], last_.step, best,
                       output);
  }

  boost::json::object summary(training::Ending ending) const {
    static const char* const kNames[] = {"finished", "out_of_time", "out_of_patience", "interrupted"};
    boost::json::object json{{"ending", kNames[static_cast<int>(ending)]},
                             {"step", last_.step},
                             {"epoch", last_.epoch},
                             {"loss", loss_},
                             {"target_tokens_per_s", speed_},
                             {"seconds", last_.seconds}};
    if (!dev_.empty()) json["dev_loss"] = dev_loss_;
    return json;
  }

 private:
  struct TimeLeft {
    double fraction, seconds;  // of the run that is over, until it is; -1 where it is not known
  };
  /// By the limit that comes first.
  TimeLeft time_left(const training::Report& r) const {
    TimeLeft nearest{-1, 0};
    const auto limit = [&](double seconds_in_all) {
      const double left = std::max(seconds_in_all - r.run_seconds, 0.0);
      if (nearest.fraction < 0 || left < nearest.seconds)
        nearest = {std::min(1.0, r.run_seconds / std::max(seconds_in_all, 1e-9)), left};
    };
    if (options_.minutes > 0) limit(options_.minutes * 60);
    if (options_.steps > 0 && r.run_steps > 0)
      limit(r.run_seconds * static_cast<double>(options_.steps - r.step + r.run_steps) /
            static_cast<double>(r.run_steps));
    return nearest;
  }

  Progress progress_;
  const training::TrainingOptions& options_;
  training::Report last_;
  double loss_ = 0, speed_ = 0, dev_loss_ = 0;
  std::optional<double> best_dev_loss_;  // of this run
  std::string dev_;
};

/// What is set must be read by the model; what is not set is the model's default.
void take_model_options(TrainArguments& a) {
  const models::ModelKind& kind = models::model_kind(a.session.model);
  if (a.learning_rate->count() == 0) a.session.training.learning_rate = kind.learning_rate;
  if (a.label_smoothing->count() == 0) a.session.training.label_smoothing = kind.label_smoothing;
  std::vector<std::string> read;
  for (const char* name : kind.options) read.push_back(models::config_field(name).option());
  for (const auto& [name, option] : a.model_options) {
    const auto& field = models::config_field(name);
    if (option->count() == 0) {
      models::copy_field(field, kind.defaults, a.session.config);
      continue;
    }
    if (std::find(read.begin(), read.end(), field.option()) == read.end())
      throw UsageError(fmt::format("{} says nothing to --model {}, which reads {}", field.option(), kind.name,
                                   fmt::join(read, ", ")));
    if (const auto* list = std::get_if<models::ListField>(&field.kind))
      list->set(a.session.config, models::parse_list(field, a.choices[name]));
    const auto* choice = std::get_if<models::ChoiceField>(&field.kind);
    if (!choice) continue;
    const auto found = std::find(choice->names.begin(), choice->names.end(), a.choices[name]);
    choice->set(a.session.config, static_cast<int>(found - choice->names.begin()));
  }
  training::check_options(a.session, !a.guided_alignment.empty());
}

void check_labelled(const TrainArguments& a) {
  if (a.data.empty() || !a.source.empty() || !a.dev_source.empty())
    throw UsageError("--model " + a.session.model +
                     " reads --data F.tsv, lines of premise TAB hypothesis TAB label (and --dev-data F.tsv)");
}

/// A language model reads text; others do not.
void check_language_data(const TrainArguments& a) {
  const std::string model = "--model " + a.session.model;
  for (const auto& [option, given] :
       {std::pair("--source", !a.source.empty()), std::pair("--target", !a.target.empty()),
        std::pair("--data", !a.data.empty()), std::pair("--from", !a.from.empty()),
        std::pair("--to", !a.to.empty()), std::pair("--dev-source", !a.dev_source.empty()),
        std::pair("--dev-target", !a.dev_target.empty()),
        std::pair("--guided-alignment", !a.guided_alignment.empty())})
    if (given)
      throw UsageError(
          fmt::format("{} is for models of pairs; {} is a language model and reads --text F", option, model));
  if (a.text.empty()) throw UsageError(model + " is a language model: give --text F");
  if (!a.dev_text.empty() && a.dev_fraction > 0)
    throw UsageError("--dev-text and --dev-fraction both say what is held out; give one of them");
}

void refuse_language_data(const TrainArguments& a) {
  for (const auto& [option, given] :
       {std::pair("--text", !a.text.empty()), std::pair("--dev-text", !a.dev_text.empty()),
        std::pair("--text-lines", a.session.text_lines)})
    if (given)
      throw UsageError(
          fmt::format("{} is for language models; --model {} reads pairs: --source F and --target F", option,
                      a.session.model));
}

void check(const TrainArguments& a) {
  if (models::model_kind(a.session.model).task == models::Task::language) return check_language_data(a);
  refuse_language_data(a);
  if (classifies(a)) return check_labelled(a);
  if (!a.dev_data.empty())
    throw UsageError("--dev-data holds pairs with labels; --model " + a.session.model +
                     " has --dev-source and --dev-target, or --dev-fraction");
  if (a.dev_source.empty() != a.dev_target.empty())
    throw UsageError("--dev-source and --dev-target go together");
  if (a.source.empty() != a.target.empty()) throw UsageError("--source and --target go together");
  if (a.source.empty() == a.data.empty())
    throw UsageError("give either --source F and --target F, or --data F --from LANGUAGE --to LANGUAGE");
  if (!a.data.empty() && (a.from.empty() || a.to.empty()))
    throw UsageError("--data needs --from and --to, the languages of source and target");
  if (!a.guided_alignment.empty() && (a.source.empty() || (a.dev_fraction > 0 && a.dev_source.empty())))
    throw UsageError(
        "--guided-alignment goes with --source and --target line by line; --data and --dev-fraction choose "
        "among the pairs");
}

void train(TrainArguments& a, const Common& common) {
  check(a);
  take_model_options(a);
  if (a.vocabulary == "characters") a.session.vocabulary.kind = text::VocabularyKind::characters;
  if (a.vocabulary == "words") a.session.vocabulary.kind = text::VocabularyKind::words;
  a.session.output = a.output;
  auto& t = a.session.training;
  if (t.steps <= 0 && t.epochs <= 0 && t.minutes <= 0) t.minutes = 5;
  if (!a.session.resume) ModelDirectory::require_new(a.output);
  const training::Lines lines = read_data(a);
  if (!common.quiet)
    std::cerr << fmt::format("{} {} to train on, {} to develop with\n", lines.target.size(),
                             a.text.empty() ? "pairs" : "lines", lines.dev_target.size());
  ThreadPool pool(common.thread_count());
  Watcher watcher(common.quiet, t);
  const Interruption interruption;
  training::SessionHooks hooks;
  hooks.report = [&](const training::Report& report) { watcher.show(report); };
  hooks.interrupted = [] { return Interruption::happened(); };
  hooks.warn = [](const std::string& message) { std::cerr << "regard: warning: " << message << "\n"; };
  hooks.note = [&](const std::string& message) {
    if (!common.quiet) std::cerr << "regard: note: " << message << "\n";
  };
  const training::Ending ending = training::run_session(a.session, lines, hooks, pool);
  watcher.finish();
  if (common.json) std::cout << json_text(watcher.summary(ending));
  if (ending != training::Ending::interrupted) {
    if (!common.quiet) std::cerr << watcher.farewell(ending, a.output);
    return;
  }
  std::cerr << "regard: interrupted; the state is saved. Go on with the same command and --resume\n";
  throw Interrupted{};
}

void add_data_options(CLI::App* verb, TrainArguments& a) {
  verb->add_option("--source", a.source, "Text to translate from, a sentence a line; one or more files")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--target", a.target, "Its translation, line for line; as many files")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--data", a.data,
                   "Instead: PO, MO and TSV files (also .gz), folders of them, line files in pairs; for a "
                   "classifier TSV of premise, hypothesis, label")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--dev-data", a.dev_data, "Of a classifier: pairs with labels to evaluate on, TSV")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--from", a.from, "Source language of --data")->type_name("LANGUAGE")->group("Data");
  verb->add_option("--to", a.to, "Target language of --data")->type_name("LANGUAGE")->group("Data");
  verb->add_option("--dev-source", a.dev_source,
                   "Development text: never trained on, it tells which weights are best")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--dev-target", a.dev_target, "Its translation, line for line")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option(
          "--dev-fraction", a.dev_fraction,
          "Hold out this share of the distinct sources (of --data by default 0.05, at most 1,000), of "
          "--text the end")
      ->check(CLI::Range(0.0, 0.9))
      ->group("Data");
  verb->add_option("--guided-alignment", a.guided_alignment,
                   "Word links of the pairs of --source and --target, 0-0 1-2, a line a pair")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--text", a.text,
                   "Instead of all these: text to learn, for a language model; one or more files")
      ->type_name("FILE")
      ->group("Data");
  verb->add_option("--dev-text", a.dev_text, "Development text, for a language model")
      ->type_name("FILE")
      ->group("Data");
  verb->add_flag("--text-lines", a.session.text_lines,
                 "Every line of --text is a text of its own, with an end; else all is one stream")
      ->group("Data");
  verb->add_option("--longest", a.session.longest,
                   "Pieces of a sentence, the rest is cut; a stream of text is cut into chunks of so many")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20))
      ->group("Data");
  verb->add_option("--vocabulary-size", a.session.vocabulary.size,
                   "Pieces of the vocabulary, which both sides share, at most")
      ->capture_default_str()
      ->check(CLI::Range(10, 1000000))
      ->group("Data");
  verb->add_option("--vocabulary", a.vocabulary,
                   "What a piece is: a part of a word, learned from the text, or a whole word or a character")
      ->check(CLI::IsMember({"sentencepiece", "words", "characters"}))
      ->default_str("sentencepiece")
      ->group("Data");
}

void add_limit_options(CLI::App* verb, training::TrainingOptions& t) {
  constexpr const char* kGroup = "When to stop, report and save";
  verb->add_option("--minutes", t.minutes, "Stop after so many minutes of this run; 5 if no limit is given")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  verb->add_option("--epochs", t.epochs, "Stop after so many epochs in all")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  verb->add_option("--steps", t.steps, "Stop after so many steps in all")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  verb->add_option("--patience", t.patience, "Stop after so many evaluations without improvement; 0: never")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  verb->add_option("--evaluate-every", t.evaluate_every, "Steps between evaluations on the development text")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  verb->add_option("--report-every", t.report_every, "Steps between reports")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  verb->add_option("--save-every", t.save_every, "Seconds between checkpoints, from which --resume goes on")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
}

void add_optimiser_options(CLI::App* verb, TrainArguments& a) {
  constexpr const char* kGroup = "Optimiser";
  training::TrainingOptions& t = a.session.training;
  verb->add_option("--seed", t.seed, "Seed of everything random")->capture_default_str()->group(kGroup);
  verb->add_option("--batch-tokens", t.batch_tokens, "Pieces of a batch, with padding; more need more memory")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  verb->add_option("--accumulate", t.accumulate, "Batches of one step, whose gradients are summed")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000))
      ->group(kGroup);
  verb->add_option("--average", t.average,
                   "Evaluations whose weights are averaged; their mean is evaluated and kept")
      ->capture_default_str()
      ->check(CLI::Range(1, 100))
      ->group(kGroup);
  a.learning_rate =
      verb->add_option("--learning-rate", t.learning_rate,
                       "Rate of Adam at the end of the warm-up, after which it falls with the root of "
                       "the step; for a transformer 0.0015 if nothing is said")
          ->capture_default_str()
          ->check(CLI::PositiveNumber)
          ->group(kGroup);
  verb->add_option("--warm-up", t.warm_up, "Steps of linear warm-up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  a.label_smoothing =
      verb->add_option("--label-smoothing", t.label_smoothing,
                       "Share of probability that the loss spreads over the whole vocabulary; for a "
                       "language model 0 if nothing is said")
          ->capture_default_str()
          ->check(CLI::Range(0.0, 0.99))
          ->group(kGroup);
  verb->add_option("--guided-weight", t.guided_weight, "Weight of the loss of --guided-alignment")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  verb->add_option("--weight-decay", t.adam.decay, "Decoupled weight decay (AdamW)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  verb->add_option("--clip", t.adam.clip, "Largest norm of the gradient; 0: no clipping")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
}

struct AddField {
  CLI::App* verb;
  TrainArguments& a;
  const models::ConfigField& field;

  CLI::Option* operator()(const models::IntegerField& f) const {
    return verb->add_option(field.option(), a.session.config.*f.member, field.help)
        ->capture_default_str()
        ->check(CLI::Range(f.smallest, f.largest));
  }
  CLI::Option* operator()(const models::NumberField& f) const {
    return verb->add_option(field.option(), a.session.config.*f.member, field.help)
        ->capture_default_str()
        ->check(CLI::Range(f.smallest, f.largest));
  }
  CLI::Option* operator()(const models::FlagField& f) const {
    return verb->add_flag(field.option(), a.session.config.*f.member, field.help);
  }
  CLI::Option* operator()(const models::ChoiceField& f) const {
    return verb->add_option(field.option(), a.choices[field.name], field.help)
        ->check(CLI::IsMember(f.names))
        ->default_str(f.names.at(static_cast<size_t>(f.get(a.session.config))));
  }
  CLI::Option* operator()(const models::ListField&) const {
    return verb->add_option(field.option(), a.choices[field.name], field.help)->type_name("NAMES");
  }
};

void add_model_options(CLI::App* verb, TrainArguments& a) {
  std::string help = "What to train:";
  std::vector<std::string> names;
  for (const auto& kind : models::all_models()) {
    names.emplace_back(kind.name);
    help += fmt::format("\n{}: {}", kind.name, kind.summary);
  }
  verb->add_option("--model", a.session.model, help)
      ->type_name("NAME")
      ->capture_default_str()
      ->check(CLI::IsMember(names))
      ->group("Model");
  for (const auto& field : models::config_fields())
    a.model_options[field.name] = std::visit(AddField{verb, a, field}, field.kind)->group("Model");
}

}  // namespace

void add_train(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand(
      "train", "Train a translator on pairs, or a language model on text, into a model directory");
  auto a = std::make_shared<TrainArguments>();
  verb->add_option("--output", a->output, "The model directory; new or empty, unless --resume")
      ->type_name("DIR")
      ->required();
  verb->add_flag("--resume", a->session.resume, "Go on where the directory's state stands, exactly");
  add_data_options(verb, *a);
  add_limit_options(verb, a->session.training);
  add_model_options(verb, *a);
  add_optimiser_options(verb, *a);
  verb->footer(
      "Examples:\n"
      "  regard train --source train.en --target train.fr --dev-source dev.en --dev-target dev.fr \\\n"
      "    --output model\n"
      "  regard train --data fr.po more.tsv --from en --to fr --output model --minutes 30\n"
      "  regard train --model lstm-lm --text book.txt --dev-fraction 0.05 --vocabulary characters \\\n"
      "    --output model\n"
      "Ctrl-C ends training and saves it. To go on: the same command with --resume; steps, epochs,\n"
      "minutes, threads and what is printed may then differ. The log is DIR/train.jsonl, one object a\n"
      "report.");
  verb->callback([a, &common] { train(*a, common); });
}

}  // namespace regard::cli
