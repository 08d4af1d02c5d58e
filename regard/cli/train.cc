// regard train: text in, a model directory out.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "regard/cli/progress.h"
#include "regard/cli/results.h"
#include "regard/cli/signals.h"
#include "regard/cli/training_data.h"
#include "regard/cli/verb.h"
#include "regard/models/registry.h"
#include "regard/training/session.h"

namespace regard::cli {
namespace {

struct TrainArguments {
  training::SessionOptions session;
  TrainingData data;
  std::string output;
  CLI::Option *learning_rate = nullptr, *label_smoothing = nullptr, *guided_weight = nullptr;
  std::map<std::string, CLI::Option*> model_options;  // by field
  std::map<std::string, std::string> choices;         // values of fields that are one of several names
};

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
    std::string line = fmt::format("epoch {} step {}", r.epoch + 1, r.step);
    if (loss_) line += fmt::format(" loss {:.3f}", *loss_);
    if (speed_) line += fmt::format(" {:.0f} tokens/s", *speed_);
    line += fmt::format(" rate {:.2e}", r.learning_rate);
    const auto [fraction, left] = time_left(r);
    if (fraction >= 0) line += " left " + duration(left);
    if (r.dev_loss) {
      dev_loss_ = *r.dev_loss;
      if (std::isfinite(dev_loss_)) best_dev_loss_ = std::min(best_dev_loss_.value_or(dev_loss_), dev_loss_);
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
                             {"seconds", last_.seconds}};
    if (loss_) json["loss"] = *loss_;
    if (speed_) json["target_tokens_per_s"] = *speed_;
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
  std::optional<double> loss_, speed_;  // absent where a resumed run had no step to make
  double dev_loss_ = 0;
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
  training::check_options(a.session, !a.data.guided_alignment.empty());
}

void train(TrainArguments& a, const Common& common) {
  const models::ModelKind& kind = models::model_kind(a.session.model);
  check(a.data, kind);
  if (a.guided_weight->count() > 0 && a.data.guided_alignment.empty())
    throw UsageError("--guided-weight is of --guided-alignment F; give both");
  take_model_options(a);
  apply(a.data, a.session);
  a.session.output = a.output;
  auto& t = a.session.training;
  if (t.steps <= 0 && t.epochs <= 0 && t.minutes <= 0) t.minutes = 5;
  if (!a.session.resume) ModelDirectory::require_new(a.output);
  const training::Lines lines = read_data(a.data, kind.task, t.seed);
  if (t.patience > 0 && lines.dev_target.empty())
    throw UsageError("--patience counts evaluations on development text, and there is none; give some");
  if (!common.quiet)
    std::cerr << fmt::format("{} {} to train on, {} to develop with\n", lines.target.size(),
                             a.data.text.empty() ? "pairs" : "lines", lines.dev_target.size());
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

void add_limit_options(CLI::App* verb, training::TrainingOptions& t) {
  constexpr const char* kGroup = "When to stop, report and save";
  verb->add_option("--minutes", t.minutes, "Stop after so many minutes of this run; 5 if no limit is given")
      ->check(not_negative())
      ->group(kGroup);
  verb->add_option("--epochs", t.epochs, "Stop after so many epochs in all")
      ->check(not_negative())
      ->group(kGroup);
  verb->add_option("--steps", t.steps, "Stop after so many steps in all")
      ->check(not_negative())
      ->group(kGroup);
  verb->add_option("--patience", t.patience, "Stop after so many evaluations without improvement; 0: never")
      ->capture_default_str()
      ->check(not_negative())
      ->group(kGroup);
  verb->add_option("--evaluate-every", t.evaluate_every, "Steps between evaluations on the development text")
      ->capture_default_str()
      ->check(above_zero())
      ->group(kGroup);
  verb->add_option("--report-every", t.report_every, "Steps between reports")
      ->capture_default_str()
      ->check(above_zero())
      ->group(kGroup);
  verb->add_option("--save-every", t.save_every, "Seconds between checkpoints, from which --resume goes on")
      ->capture_default_str()
      ->check(not_negative())
      ->group(kGroup);
}

void add_optimiser_options(CLI::App* verb, TrainArguments& a) {
  constexpr const char* kGroup = "Optimiser";
  training::TrainingOptions& t = a.session.training;
  verb->add_option("--seed", t.seed, "Seed of everything random")->capture_default_str()->group(kGroup);
  verb->add_option("--batch-tokens", t.batch_tokens, "Pieces of a batch, with padding; more need more memory")
      ->capture_default_str()
      ->check(above_zero())
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
                       "the step; if nothing is said 0.0015 for a transformer, 0.003 for intra-decoder")
          ->capture_default_str()
          ->check(above_zero())
          ->group(kGroup);
  verb->add_option("--warm-up", t.warm_up, "Steps of linear warm-up")
      ->capture_default_str()
      ->check(above_zero())
      ->group(kGroup);
  a.label_smoothing =
      verb->add_option("--label-smoothing", t.label_smoothing,
                       "Share of probability that the loss spreads over the whole vocabulary; for a "
                       "language model 0 if nothing is said")
          ->capture_default_str()
          ->check(CLI::Range(0.0, 0.99))
          ->group(kGroup);
  a.guided_weight =
      verb->add_option("--guided-weight", t.guided_weight, "Weight of the loss of --guided-alignment")
          ->capture_default_str()
          ->check(not_negative())
          ->group(kGroup);
  verb->add_option("--weight-decay", t.adam.decay, "Decoupled weight decay (AdamW)")
      ->capture_default_str()
      ->check(not_negative())
      ->group(kGroup);
  verb->add_option("--clip", t.adam.clip, "Largest norm of the gradient; 0: no clipping")
      ->capture_default_str()
      ->check(not_negative())
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
    bool& value = a.session.config.*f.member;
    if (value)  // the option turns off what is on
      return verb->add_flag_callback(
          field.option(), [&value] { value = false; }, field.help);
    return verb->add_flag(field.option(), value, field.help);
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
  add_data_options(verb, a->data);
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
