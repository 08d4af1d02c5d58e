#include "regard/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <utility>

#include "regard/decoding/perplexity.h"
#include "regard/simd/rows.h"

namespace regard::training {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Sentences by falling source length, dealt to the shards in turn: pieces of nearly equal work.
std::vector<std::vector<int64_t>> deal(std::vector<int64_t> batch, const text::Sentences& source,
                                       int64_t shards) {
  std::stable_sort(batch.begin(), batch.end(),
                   [&](int64_t a, int64_t b) { return source.length(a) > source.length(b); });
  std::vector<std::vector<int64_t>> pieces(static_cast<size_t>(shards));
  for (size_t i = 0; i < batch.size(); ++i) pieces[i % pieces.size()].push_back(batch[i]);
  std::erase_if(pieces, [](const auto& piece) { return piece.empty(); });
  return pieces;
}

models::SentencePairs pairs_of(std::span<const int64_t> numbers, const Data& data) {
  models::SentencePairs pairs;
  for (int64_t i : numbers) {
    pairs.sources.push_back(data.source[i]);
    pairs.targets.push_back(data.target[i]);
    pairs.numbers.push_back(static_cast<uint64_t>(i));
    if (!data.labels.empty()) pairs.labels.push_back(data.labels[static_cast<size_t>(i)]);
    if (!data.guidance.empty()) pairs.guidance.emplace_back(data.guidance[static_cast<size_t>(i)]);
  }
  return pairs;
}

int64_t target_tokens(std::span<const int64_t> batch, const text::Sentences& target) {
  int64_t tokens = 0;
  for (int64_t i : batch) tokens += target.length(i);
  return tokens;
}

}  // namespace

/// The clocks of one run, and what it has measured since the last report.
struct Trainer::Run {
  explicit Run(const Progress& progress) : first_step(progress.step), seconds_before(progress.seconds) {}

  /// Of earlier runs and this one.
  double seconds() const { return seconds_before + seconds_since(start); }

  /// Calls work() and keeps its time out of the training speed.
  template <class Work>
  void aside(const Work& work) {
    const auto began = Clock::now();
    work();
    seconds_aside += seconds_since(began);
  }

  /// Notes a batch: its mean loss a prediction.
  void add(double loss, int64_t predicted, int64_t target_tokens) {
    loss_sum += loss * static_cast<double>(predicted);
    predictions += predicted;
    tokens += target_tokens;
  }

  /// The report with loss and speed since the last one; the next starts empty.
  Report take_report() {
    Report result = std::exchange(report, {});
    result.seconds = seconds();
    result.run_seconds = seconds_since(start);
    if (predictions > 0) {
      const double training = std::max(seconds_since(last_report) - seconds_aside, 1e-9);
      result.loss = loss_sum / static_cast<double>(predictions);
      result.target_tokens_per_s = static_cast<double>(tokens) / training;
    }
    loss_sum = seconds_aside = 0;
    predictions = tokens = 0;
    last_report = Clock::now();
    return result;
  }

  const Clock::time_point start = Clock::now();
  const int64_t first_step;
  Clock::time_point last_save = start;
  Report report;           // the next one: evaluations write their results into it
  bool evaluated = false;  // after the last batch

 private:
  double seconds_before;
  Clock::time_point last_report = start;
  double loss_sum = 0, seconds_aside = 0;
  int64_t predictions = 0, tokens = 0;
};

Trainer::Trainer(models::Model& model, const Data& data, const TrainingOptions& options, ThreadPool& pool)
    : model_(model),
      data_(data),
      options_(options),
      pool_(pool),
      optimiser_(model.parameters(), options.adam) {}

double Trainer::train_batches(std::span<const std::vector<int64_t>> batches, int64_t predictions) {
  std::vector<std::vector<std::vector<int64_t>>> pieces;  // of every batch, at most one a shard
  size_t shards = 0;
  for (const auto& batch : batches) {
    pieces.push_back(deal(batch, data_.source, options_.shards));
    shards = std::max(shards, pieces.back().size());
  }
  std::deque<autograd::Tape> tapes(shards);
  std::vector<double> losses(shards);
  const int64_t step = progress_.step + 1;
  const models::LossOptions loss_options{.smoothing = options_.label_smoothing,
                                         .scale = 1.0 / static_cast<double>(predictions),
                                         .dropout = models::DropoutKey{options_.seed, step},
                                         .guided_weight = options_.guided_weight};
  pool_.parallel_for(static_cast<int64_t>(shards), [&](int64_t i) {
    const auto p = static_cast<size_t>(i);
    for (const auto& parameter : model_.parameters()) tapes[p].watch(parameter.value);
    const autograd::Tape::Recording recording(tapes[p]);
    for (const auto& of_batch : pieces) {
      if (p >= of_batch.size()) continue;
      const Tensor loss = model_.loss(pairs_of(of_batch[p], data_), loss_options);
      losses[p] += static_cast<double>(loss.data<float>()[0]);
      tapes[p].backward(loss);  // the leaves' gradients add up
    }
  });
  double loss = 0;
  for (double l : losses) loss += l;
  std::vector<autograd::Tape*> summed;
  for (auto& tape : tapes) summed.push_back(&tape);
  const double norm =
      optimiser_.update(summed, learning_rate(options_.learning_rate, options_.warm_up, step), step, pool_);
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    std::string lines;
    size_t named = 0, count = 0;
    for (const auto& batch : batches) {
      count += batch.size();
      for (size_t i = 0; i < batch.size() && named < 10; ++i, ++named)
        lines += " " + std::to_string(batch[i] + 1);
    }
    throw DataError("training stopped at step " + std::to_string(step) +
                    ": the loss is not a finite number (lines" + lines + (count > named ? " ..." : "") + ")" +
                    remedy());
  }
  return loss;
}

double Trainer::dev_loss() const {
  return decoding::nats_per_token(model_, data_.dev_source, data_.dev_target, pool_, data_.dev_labels);
}

/// Weights that are no longer numbers do not replace good ones.
void Trainer::require_finite_weights() const {
  for (const auto& parameter : model_.parameters())
    if (!std::isfinite(simd::sum_of_squares(parameter.value.data<float>(), parameter.value.size())))
      throw DataError("training stopped at step " + std::to_string(progress_.step) + ": the weights " +
                      parameter.name + " are not finite numbers" + remedy());
}

std::string Trainer::remedy() const {
  return "; the last good checkpoint, of step " + std::to_string(progress_.best_step) +
         ", is kept; try a lower --learning-rate in a new directory";
}

/// True if the development loss is the best so far. `counts`: patience takes notice.
bool Trainer::evaluate(const Hooks& hooks, Report& report, bool counts) {
  require_finite_weights();
  if (data_.dev_source.size() == 0) {
    if (hooks.improved) hooks.improved();
    progress_.best_step = progress_.step;
    return true;
  }
  report.dev_loss = dev_loss();
  if (hooks.dev_quality) hooks.dev_quality(report);
  const bool better =
      std::isfinite(*report.dev_loss) && (!progress_.has_best || *report.dev_loss < progress_.best_dev_loss);
  if (better && hooks.improved) hooks.improved();
  if (!counts) return better;
  if (better) {
    progress_.best_dev_loss = *report.dev_loss;
    progress_.best_step = progress_.step;
    progress_.has_best = true;
    progress_.evaluations_without_improvement = 0;
  } else {
    ++progress_.evaluations_without_improvement;
  }
  return better;
}

/// evaluate() with the mean of the weights at the last evaluations, this one included, in the model's place.
bool Trainer::evaluate_mean(const Hooks& hooks, Report& report, bool counts) {
  if (options_.average <= 1) return evaluate(hooks, report, counts);
  std::vector<Tensor> now;
  for (const auto& parameter : model_.parameters()) now.push_back(parameter.value.copy());
  checkpoints_.push_back(now);
  const bool full = static_cast<int64_t>(checkpoints_.size()) > options_.average;
  const auto first = checkpoints_.begin() + (full ? 1 : 0);
  const float share = 1.F / static_cast<float>(checkpoints_.end() - first);
  for (size_t p = 0; p < now.size(); ++p) {
    const Tensor& mean = model_.parameters()[p].value;
    simd::scale(share, (*first)[p].data<float>(), mean.data<float>(), mean.size());
    for (auto weights = first + 1; weights != checkpoints_.end(); ++weights)
      simd::axpy(share, (*weights)[p].data<float>(), mean.data<float>(), mean.size());
  }
  const bool better = evaluate(hooks, report, counts);
  for (size_t p = 0; p < now.size(); ++p)
    std::copy_n(now[p].data<float>(), now[p].size(), model_.parameters()[p].value.data<float>());
  if (!counts)
    checkpoints_.pop_back();
  else if (full)
    checkpoints_.pop_front();
  return better;
}

void Trainer::save(const Hooks& hooks, Run& run) {
  run.aside([&] {
    require_finite_weights();
    progress_.seconds = run.seconds();
    if (!progress_.has_best) progress_.best_step = progress_.step;
    if (hooks.save) hooks.save(progress_);
    run.last_save = Clock::now();
  });
}

void Trainer::send(const Hooks& hooks, Run& run) {
  Report report = run.take_report();
  report.step = progress_.step;
  report.run_steps = progress_.step - run.first_step;
  report.epoch = progress_.epoch;
  report.learning_rate =
      learning_rate(options_.learning_rate, options_.warm_up, std::max<int64_t>(progress_.step, 1));
  if (hooks.report) run.aside([&] { hooks.report(report); });
}

/// Why training ends before the next batch, if it does.
std::optional<Ending> Trainer::ending_before_batch(const Hooks& hooks, const Run& run) const {
  if (options_.steps > 0 && progress_.step >= options_.steps) return Ending::finished;
  if (hooks.interrupted && hooks.interrupted()) return Ending::interrupted;
  if (options_.minutes > 0 && seconds_since(run.start) >= options_.minutes * 60) return Ending::out_of_time;
  return std::nullopt;
}

/// The batches that are left of an epoch; why training ends among them, if it does.
std::optional<Ending> Trainer::train_epoch(std::span<const std::vector<int64_t>> batches, const Hooks& hooks,
                                           Run& run) {
  while (progress_.batch < static_cast<int64_t>(batches.size())) {
    if (const auto ending = ending_before_batch(hooks, run)) return ending;
    const auto begin = static_cast<size_t>(progress_.batch);
    const auto group =
        batches.subspan(begin, std::min(static_cast<size_t>(options_.accumulate), batches.size() - begin));
    int64_t tokens = 0, pairs = 0;
    for (const auto& batch : group) {
      tokens += target_tokens(batch, data_.target);
      pairs += static_cast<int64_t>(batch.size());
    }
    const int64_t predictions = data_.labels.empty() ? tokens : pairs;
    run.add(train_batches(group, predictions), predictions, tokens);
    ++progress_.step;
    progress_.batch += static_cast<int64_t>(group.size());
    run.evaluated = progress_.step % options_.evaluate_every == 0;
    if (run.evaluated) run.aside([&] { evaluate_mean(hooks, run.report, true); });
    if (run.evaluated || progress_.step % options_.report_every == 0) send(hooks, run);
    if (seconds_since(run.last_save) >= options_.save_every) save(hooks, run);
    if (options_.patience > 0 && progress_.evaluations_without_improvement >= options_.patience)
      return Ending::out_of_patience;
  }
  return std::nullopt;
}

Ending Trainer::run(const Hooks& hooks) {
  Run run(progress_);
  std::optional<Ending> ending;
  while (!ending && !(options_.epochs > 0 && progress_.epoch >= options_.epochs)) {
    const auto batches = text::make_batches(data_.source, data_.target, {.tokens = options_.batch_tokens},
                                            options_.seed, static_cast<uint64_t>(progress_.epoch));
    ending = train_epoch(batches, hooks, run);
    if (!ending) {
      ++progress_.epoch;
      progress_.batch = 0;
    }
  }
  save(hooks, run);
  if (!run.evaluated && ending != Ending::interrupted)
    run.aside([&] { evaluate_mean(hooks, run.report, false); });
  send(hooks, run);
  return ending.value_or(Ending::finished);
}

}  // namespace regard::training
