#include "regard/cli/bench_models.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>

#include "regard/bench/yardsticks.h"
#include "regard/cli/results.h"
#include "regard/cli/signals.h"
#include "regard/decoding/classify.h"
#include "regard/decoding/perplexity.h"
#include "regard/decoding/translator.h"
#include "regard/evaluation/bleu.h"
#include "regard/gemm/gemm.h"
#include "regard/storage/json.h"
#include "regard/text/toy_grammar.h"
#include "regard/training/session.h"

namespace regard::cli {
namespace {

constexpr int64_t kToyPairs = 20'000, kToyHeldOut = 500;
constexpr double kQuickMinutes = 0.02, kPeakSeconds = 0.5;
constexpr const char* kQuality[] = {"BLEU", "bits/char", "accuracy"};  // by task

/// The task that the data are for.
models::Task task_of(const TrainingData& data) {
  if (!data.text.empty()) return models::Task::language;
  return !data.data.empty() && data.from.empty() ? models::Task::classification : models::Task::translation;
}

bool has_data(const TrainingData& data) {
  return !data.text.empty() || !data.data.empty() || !data.source.empty();
}

training::Lines toy_lines() {
  training::Lines lines;
  for (auto& pair : text::toy_pairs(kToyPairs, 1)) {
    const bool held_out = static_cast<int64_t>(lines.dev_source.size()) < kToyHeldOut;
    (held_out ? lines.dev_source : lines.source).push_back(std::move(pair.source));
    (held_out ? lines.dev_target : lines.target).push_back(std::move(pair.target));
  }
  return lines;
}

/// Adds up what the products did between two reports, unless an evaluation lies between them.
class ProductMeter {
 public:
  void report(const training::Report& report) {
    const auto now = std::chrono::steady_clock::now();
    const int64_t operations = gemm::operations();
    if (report.target_tokens_per_s) speeds_.push_back(*report.target_tokens_per_s);
    if (started_ && !report.dev_loss && report.target_tokens_per_s) {
      seconds_ += std::chrono::duration<double>(now - since_).count();
      operations_ += static_cast<double>(operations - before_);
    }
    started_ = true;
    since_ = now;
    before_ = operations;
  }
  double gflops() const { return seconds_ > 0 ? operations_ / seconds_ / 1e9 : 0; }
  /// The middle one of all reports.
  double tokens_per_s() {
    if (speeds_.empty()) return 0;
    std::nth_element(speeds_.begin(), speeds_.begin() + static_cast<std::ptrdiff_t>(speeds_.size() / 2),
                     speeds_.end());
    return speeds_[speeds_.size() / 2];
  }

 private:
  std::chrono::steady_clock::time_point since_;
  int64_t before_ = 0;
  bool started_ = false;
  double seconds_ = 0, operations_ = 0;
  std::vector<double> speeds_;
};

double bleu(const models::TrainedModel& trained, const training::Lines& test, ThreadPool& pool) {
  std::vector<std::string> hypotheses;
  const auto& source = test.dev_source;
  const auto translated =
      decoding::translate(trained, source, {}, pool, {.hypotheses = 1, .attention = false});
  for (size_t i = 0; i < source.size(); ++i)
    hypotheses.push_back(
        translated[i].hypotheses.empty()
            ? ""
            : decoding::text_of(trained, translated[i], translated[i].hypotheses[0], source[i], false));
  return evaluation::corpus_bleu(hypotheses, test.dev_target).score;
}

double accuracy(const models::TrainedClassifier& trained, const training::Lines& test, ThreadPool& pool) {
  const auto encode = [&](const std::vector<std::string>& side) {
    return text::encode_lines(*trained.vocabulary, side, trained.longest);
  };
  std::vector<int32_t> labels;
  for (const auto& label : test.dev_labels)
    labels.push_back(static_cast<int32_t>(std::find(trained.labels.begin(), trained.labels.end(), label) -
                                          trained.labels.begin()));
  return decoding::accuracy(*trained.model, encode(test.dev_source), encode(test.dev_target), labels, pool);
}

/// Of the best weights: how many there are, and what they are worth on the test's development lines: BLEU,
/// bits per character, or accuracy in percent.
struct Worth {
  int64_t parameters;
  double quality;
};
Worth worth_of(const std::filesystem::path& directory, models::Task task, const training::Lines& test,
               ThreadPool& pool) {
  if (task == models::Task::classification) {
    const auto trained = models::load_classifier(directory);
    return {trained.model->parameter_count(), 100 * accuracy(trained, test, pool)};
  }
  const auto trained = models::load_model(directory, task);
  const double quality = task == models::Task::translation
                             ? bleu(trained, test, pool)
                             : decoding::score_text(trained, test.dev_target, pool).bits_per_character();
  return {trained.model->parameter_count(), quality};
}

/// Trains one model; runs in a process of its own.
boost::json::object train_one(const ModelBench& bench, const models::ModelKind& kind,
                              const training::Lines& lines, const training::Lines& test,
                              const std::filesystem::path& directory, int threads) {
  training::SessionOptions session;
  apply(bench.data, session);
  session.output = directory;
  session.model = kind.name;
  session.config = kind.defaults;
  session.bleu_lines = 0;
  session.training.minutes = bench.minutes;
  session.training.batch_tokens = bench.batch_tokens;
  session.training.learning_rate = kind.learning_rate;
  session.training.label_smoothing = kind.label_smoothing;
  session.training.report_every = bench.quick ? 1 : 10;
  session.training.save_every = 1e9;  // at the end alone
  ThreadPool pool(threads);
  ProductMeter meter;
  training::Report last;
  std::optional<double> best;
  training::SessionHooks hooks;
  hooks.interrupted = [] { return Interruption::happened(); };
  hooks.report = [&](const training::Report& report) {
    meter.report(report);
    if (report.dev_loss) best = std::min(best.value_or(*report.dev_loss), *report.dev_loss);
    last = report;
  };
  if (training::run_session(session, lines, hooks, pool) == training::Ending::interrupted)
    throw Interrupted{};
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);  // of training alone
  const Worth worth = worth_of(directory, kind.task, test, pool);
  boost::json::object row{{"model", kind.name},       {"parameters", worth.parameters},
                          {"steps", last.step},       {"target_tokens_per_s", meter.tokens_per_s()},
                          {"gflops", meter.gflops()}, {"peak_mib", usage.ru_maxrss / 1024}};
  if (best) row["dev_loss"] = *best;
  row["quality"] = worth.quality;
  return row;
}

/// `work` in a child process: the JSON that it returns, or {"error": what it threw}.
template <class Work>
boost::json::object in_child(const Work& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw SystemError("cannot make a pipe", errno);
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) throw SystemError("cannot start a process", errno);
  if (child == 0) {
    ::close(ends[0]);
    boost::json::object result;
    try {
      result = work();
    } catch (const Interrupted&) {
      ::_exit(130);
    } catch (const std::exception& error) {
      result["error"] = error.what();
    }
    const std::string text = boost::json::serialize(result);
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) text.append(piece, static_cast<size_t>(n));
    if (n < 0 && Interruption::happened())
      ::kill(child, SIGINT);  // who asked may have asked this process alone
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (Interruption::happened() || (WIFEXITED(status) && WEXITSTATUS(status) == 130)) {
    std::cerr << "regard: interrupted; models that were done stand above\n";
    throw Interrupted{};
  }
  if (text.empty()) throw SystemError("a model's training ended without a result; is there memory enough?");
  return parse_json_object(text, "a model's result");
}

/// A folder that goes when its owner does, unless it is to be kept.
struct Folder {
  std::filesystem::path path;
  bool kept;
  Folder(std::filesystem::path where, bool keep) : path(std::move(where)), kept(keep) {
    std::filesystem::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!kept) std::filesystem::remove_all(path, ignored);
  }
};

std::vector<const models::ModelKind*> kinds_of(const ModelBench& bench, models::Task task) {
  std::vector<const models::ModelKind*> kinds;
  for (const std::string& name : bench.models) {
    if (std::count(bench.models.begin(), bench.models.end(), name) > 1)
      throw UsageError("--models names " + name + " twice");
    kinds.push_back(&models::model_kind(name));
    if (kinds.back()->task != task)
      throw UsageError("--models " + name + " is not for these data; translation models read --source and " +
                       "--target, language models --text, classifiers --data F.tsv with labels");
  }
  if (kinds.empty())
    for (const auto& kind : models::all_models())
      if (kind.task == task) kinds.push_back(&kind);
  if (has_data(bench.data))
    for (const auto* kind : kinds) check(bench.data, *kind);
  return kinds;
}

std::string cell(const boost::json::object& row, const char* key, int digits) {
  const auto* value = row.if_contains(key);
  return value ? fmt::format("{:.{}f}", value->to_number<double>(), digits) : "";
}

/// Blank if there were too few steps to tell.
std::string share_of(const boost::json::object& row, double peak) {
  const double gflops = row.at("gflops").to_number<double>();
  return gflops > 0 ? fmt::format("{:.2f}", gflops / peak) : "";
}

void print_row(const boost::json::object& row, double peak) {
  if (const auto* error = row.if_contains("error")) {
    std::cout << fmt::format("{:<16} failed: {}\n", std::string(row.at("model").as_string()),
                             std::string(error->as_string()));
  } else {
    std::cout << fmt::format("{:<16} {:>11} {:>7} {:>9} {:>6} {:>9} {:>9} {:>6}\n",
                             std::string(row.at("model").as_string()), cell(row, "parameters", 0),
                             cell(row, "steps", 0), cell(row, "target_tokens_per_s", 0), share_of(row, peak),
                             cell(row, "dev_loss", 3), cell(row, "quality", 2), cell(row, "peak_mib", 0));
  }
  flush_results();
}

}  // namespace

bool has_model_options(const ModelBench& bench) {
  const TrainingData& data = bench.data;
  return has_data(data) || !bench.models.empty() || !bench.output.empty() || !bench.test_source.empty() ||
         !bench.test_target.empty() || !data.dev_source.empty() || !data.dev_data.empty() ||
         !data.dev_text.empty() || !data.guided_alignment.empty();
}

void bench_models(const ModelBench& given, const Common& common) {
  ModelBench bench = given;
  if (bench.quick) bench.minutes = std::min(bench.minutes, kQuickMinutes);
  if (bench.test_source.empty() != bench.test_target.empty())
    throw UsageError("--test-source and --test-target go together");
  const models::Task task = task_of(bench.data);
  if (!bench.test_source.empty() && task != models::Task::translation)
    throw UsageError("--test-source and --test-target are for translation models");
  if (!has_data(bench.data) && !bench.data.guided_alignment.empty())
    throw UsageError("--guided-alignment goes with --source and --target");
  const auto kinds = kinds_of(bench, task);
  const training::Lines lines = has_data(bench.data) ? read_data(bench.data, task, 1) : toy_lines();
  training::Lines test;  // its development lines
  if (bench.test_source.empty()) {
    test.dev_source = lines.dev_source;
    test.dev_target = lines.dev_target;
    test.dev_labels = lines.dev_labels;
  } else {
    auto parallel = text::read_parallel_lines(bench.test_source, bench.test_target);
    test.dev_source = std::move(parallel.source);
    test.dev_target = std::move(parallel.target);
  }
  if (test.dev_target.empty())
    throw UsageError("nothing is held out to measure the models on; give development text or --dev-fraction");
  const bool kept = !bench.output.empty();
  const std::filesystem::path folder =
      kept ? std::filesystem::path(bench.output)
           : std::filesystem::temp_directory_path() / fmt::format("regard-bench-{}", ::getpid());
  if (kept && std::filesystem::exists(folder) && !std::filesystem::is_empty(folder))
    throw UsageError("--output " + folder.string() + " is not empty; give a new folder");
  const Folder owned(folder, kept);
  const Interruption interruption;
  const double peak = bench::product_peak(kPeakSeconds) * common.thread_count();
  if (!common.json)
    std::cout << fmt::format(
        "{} pairs or lines, {} held out, {:.3g} minutes each, {} threads, product peak {:.0f} GFLOP/s\n"
        "{:<16} {:>11} {:>7} {:>9} {:>6} {:>9} {:>9} {:>6}\n",
        lines.target.size(), test.dev_target.size(), bench.minutes, common.thread_count(), peak, "model",
        "parameters", "steps", "tokens/s", "share", "dev loss", kQuality[static_cast<int>(task)], "MiB");
  boost::json::array rows;
  for (const models::ModelKind* kind : kinds) {
    boost::json::object row = in_child(
        [&] { return train_one(bench, *kind, lines, test, folder / kind->name, common.thread_count()); });
    row["model"] = kind->name;
    if (!common.json) print_row(row, peak);
    rows.push_back(std::move(row));
    if (!kept) std::filesystem::remove_all(folder / kind->name);
  }
  if (common.json)
    std::cout << json_text(boost::json::object{{"benchmark", "models"},
                                               {"threads", common.thread_count()},
                                               {"minutes", bench.minutes},
                                               {"gemm_gflops", peak},
                                               {"quality", kQuality[static_cast<int>(task)]},
                                               {"models", std::move(rows)}});
}

}  // namespace regard::cli
