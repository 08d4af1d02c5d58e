// regard train: text in, a model directory out.

#include <fmt/format.h>

#include <iostream>

#include "regard/base/thread_pool.h"
#include "regard/cli/progress.h"
#include "regard/cli/signals.h"
#include "regard/cli/verb.h"
#include "regard/text/readers.h"
#include "regard/training/session.h"

namespace regard::cli {
namespace {

struct TrainArguments {
  training::SessionOptions session;
  std::string output, model = "bahdanau", vocabulary;
  std::vector<std::string> source, target;
  std::string dev_source, dev_target;
  double dev_fraction = 0;
};

std::vector<std::string> read_all(const std::vector<std::string>& files) {
  std::vector<std::string> lines;
  for (const auto& file : files)
    for (auto& line : text::read_lines(file)) lines.push_back(std::move(line));
  return lines;
}

void require_equal(const std::vector<std::string>& source_files, size_t source,
                   const std::vector<std::string>& target_files, size_t target) {
  if (source != target)
    throw DataError(
        fmt::format("{} has {} lines and {} has {}; line-parallel files need as many lines on both sides",
                    fmt::join(source_files, " + "), source, fmt::join(target_files, " + "), target));
}

training::Lines read_data(const TrainArguments& a) {
  training::Lines lines;
  lines.source = read_all(a.source);
  lines.target = read_all(a.target);
  require_equal(a.source, lines.source.size(), a.target, lines.target.size());
  if (!a.dev_source.empty()) {
    lines.dev_source = text::read_lines(a.dev_source);
    lines.dev_target = text::read_lines(a.dev_target);
    require_equal({a.dev_source}, lines.dev_source.size(), {a.dev_target}, lines.dev_target.size());
  } else if (a.dev_fraction > 0) {
    const auto held = static_cast<size_t>(a.dev_fraction * static_cast<double>(lines.source.size()));
    for (auto [all, dev] :
         {std::pair(&lines.source, &lines.dev_source), std::pair(&lines.target, &lines.dev_target)}) {
      dev->assign(all->end() - static_cast<std::ptrdiff_t>(held), all->end());
      all->resize(all->size() - held);
    }
  }
  return lines;
}

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::max(seconds, 0.0));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

/// Remembers what a report leaves out, so that the line always tells all.
class Watcher {
 public:
  Watcher(bool quiet, const training::TrainingOptions& options) : progress_(quiet), options_(options) {}

  void show(const training::Report& r) {
    if (r.loss) loss_ = *r.loss;
    if (r.target_tokens_per_s) speed_ = *r.target_tokens_per_s;
    if (first_seconds_ < 0) first_seconds_ = r.seconds;
    std::string line = fmt::format("epoch {} step {} loss {:.3f} {:.0f} tokens/s rate {:.2e}", r.epoch + 1,
                                   r.step, loss_, speed_, r.learning_rate);
    double fraction = -1;
    if (options_.minutes > 0) {
      const double run = r.seconds - first_seconds_ + 1e-9;
      fraction = std::min(1.0, run / (options_.minutes * 60));
      line += " left " + duration(options_.minutes * 60 - run);
    } else if (options_.steps > 0) {
      fraction = static_cast<double>(r.step) / static_cast<double>(options_.steps);
    }
    if (r.dev_loss) dev_ = fmt::format(" dev loss {:.3f}", *r.dev_loss);
    if (r.dev_bleu) dev_ += fmt::format(" BLEU {:.1f}", *r.dev_bleu);
    progress_.show(line + dev_, fraction);
  }
  void finish() { progress_.finish(); }

 private:
  Progress progress_;
  const training::TrainingOptions& options_;
  double loss_ = 0, speed_ = 0, first_seconds_ = -1;
  std::string dev_;
};

void train(TrainArguments& a, const Common& common) {
  if (a.model != "bahdanau") throw UsageError("--model " + a.model + " is not built yet; expected bahdanau");
  if (a.dev_source.empty() != a.dev_target.empty())
    throw UsageError("--dev-source and --dev-target go together");
  if (a.vocabulary == "characters") a.session.vocabulary.kind = text::VocabularyKind::characters;
  if (a.vocabulary == "words") a.session.vocabulary.kind = text::VocabularyKind::words;
  a.session.output = a.output;
  auto& t = a.session.training;
  if (t.steps <= 0 && t.epochs <= 0 && t.minutes <= 0) t.minutes = 5;
  const training::Lines lines = read_data(a);
  ThreadPool pool(common.threads > 0 ? common.threads : available_processors());
  Watcher watcher(common.quiet, t);
  const Interruption interruption;
  training::SessionHooks hooks;
  hooks.report = [&](const training::Report& report) { watcher.show(report); };
  hooks.interrupted = [] { return Interruption::happened(); };
  hooks.warn = [](const std::string& message) { std::cerr << "regard: warning: " << message << "\n"; };
  const training::Ending ending = training::run_session(a.session, lines, hooks, pool);
  watcher.finish();
  if (ending != training::Ending::interrupted) return;
  std::cerr << "regard: interrupted; the state is saved. Go on with the same command and --resume\n";
  throw Interrupted{};
}

}  // namespace

void add_train(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("train", "Train a translator on line-parallel text into a model directory");
  auto a = std::make_shared<TrainArguments>();
  auto& s = a->session;
  auto& t = s.training;
  verb->add_option("--output", a->output, "The model directory; new or empty, unless --resume")->required();
  verb->add_option("--model", a->model, "bahdanau")->capture_default_str();
  verb->add_option("--source", a->source, "Source lines, one or more files")->required();
  verb->add_option("--target", a->target, "Target lines, as many")->required();
  verb->add_option("--dev-source", a->dev_source, "Development source lines");
  verb->add_option("--dev-target", a->dev_target, "Development target lines");
  verb->add_option("--dev-fraction", a->dev_fraction, "Hold out this share of the end of the training lines")
      ->check(CLI::Range(0.0, 0.9));
  verb->add_option("--minutes", t.minutes, "Stop after so many minutes of this run (5 if no limit is given)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--epochs", t.epochs, "Stop after so many epochs in all")->check(CLI::NonNegativeNumber);
  verb->add_option("--steps", t.steps, "Stop after so many steps in all")->check(CLI::NonNegativeNumber);
  verb->add_option("--vocabulary-size", s.vocabulary.size, "Pieces of the joint vocabulary")
      ->capture_default_str()
      ->check(CLI::Range(10, 1000000));
  verb->add_option("--vocabulary", a->vocabulary, "characters or words instead of SentencePiece")
      ->check(CLI::IsMember({"characters", "words", "sentencepiece"}));
  verb->add_option("--seed", t.seed, "Seed of everything random")->capture_default_str();
  verb->add_flag("--resume", s.resume, "Go on where the directory's state stands, exactly");
  verb->add_option("--evaluate-every", t.evaluate_every, "Steps between evaluations")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--report-every", t.report_every, "Steps between reports")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--save-every", t.save_every, "Seconds between checkpoints")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--patience", t.patience, "Stop after so many evaluations without improvement; 0: never")
      ->capture_default_str();
  verb->add_option("--batch-tokens", t.batch_tokens, "Target tokens of a batch")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--learning-rate", t.learning_rate, "Peak rate of Adam")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--warm-up", t.warm_up, "Steps of linear warm-up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--label-smoothing", t.label_smoothing, "Spread over all entries")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.99));
  verb->add_option("--clip", t.adam.clip, "Largest norm of the gradient; 0: no clipping")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--width", s.sizes.width, "State of encoder (per direction) and decoder")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
  verb->add_option("--embedding", s.sizes.embedding, "Width of embeddings")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
  verb->callback([a, &common] { train(*a, common); });
}

}  // namespace regard::cli
