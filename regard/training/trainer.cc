#include "regard/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

#include "regard/decoding/perplexity.h"

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

models::SentencePairs pairs_of(std::span<const int64_t> numbers, const text::Sentences& source,
                               const text::Sentences& target) {
  models::SentencePairs pairs;
  for (int64_t i : numbers) {
    pairs.sources.push_back(source[i]);
    pairs.targets.push_back(target[i]);
    pairs.numbers.push_back(static_cast<uint64_t>(i));
  }
  return pairs;
}

int64_t target_tokens(std::span<const int64_t> batch, const text::Sentences& target) {
  int64_t tokens = 0;
  for (int64_t i : batch) tokens += target.length(i);
  return tokens;
}

}  // namespace

Trainer::Trainer(models::EncoderDecoder& model, const Data& data, const TrainingOptions& options,
                 ThreadPool& pool)
    : model_(model),
      data_(data),
      options_(options),
      pool_(pool),
      optimiser_(model.parameters(), options.adam) {}

double Trainer::train_batch(const std::vector<int64_t>& batch, int64_t& tokens) {
  tokens = target_tokens(batch, data_.target);
  const auto pieces = deal(batch, data_.source, options_.shards);
  std::deque<autograd::Tape> tapes(pieces.size());
  std::vector<double> losses(pieces.size());
  const int64_t step = progress_.step + 1;
  const models::LossOptions loss_options{.smoothing = options_.label_smoothing,
                                         .scale = 1.0 / static_cast<double>(tokens),
                                         .dropout = models::DropoutKey{options_.seed, step}};
  pool_.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const auto p = static_cast<size_t>(i);
    for (const auto& parameter : model_.parameters()) tapes[p].watch(parameter.value);
    const autograd::Tape::Recording recording(tapes[p]);
    const Tensor loss = model_.loss(pairs_of(pieces[p], data_.source, data_.target), loss_options);
    losses[p] = static_cast<double>(loss.data<float>()[0]);
    tapes[p].backward(loss);
  });
  double loss = 0;
  for (double l : losses) loss += l;
  std::vector<autograd::Tape*> shards;
  for (auto& tape : tapes) shards.push_back(&tape);
  const double norm =
      optimiser_.update(shards, learning_rate(options_.learning_rate, options_.warm_up, step), step, pool_);
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    std::string lines;
    for (size_t i = 0; i < std::min<size_t>(batch.size(), 10); ++i)
      lines += " " + std::to_string(batch[i] + 1);
    throw DataError("training stopped at step " + std::to_string(step) +
                    ": the loss is not a finite number (lines" + lines + (batch.size() > 10 ? " ..." : "") +
                    "); the last good checkpoint is kept; try a lower --learning-rate");
  }
  return loss;
}

double Trainer::dev_loss() const {
  return decoding::nats_per_token(model_, data_.dev_source, data_.dev_target, pool_);
}

/// True if the development loss is the best so far. `counts`: patience takes notice.
bool Trainer::evaluate(const Hooks& hooks, Report& report, bool counts) {
  if (data_.dev_source.size() == 0) {
    if (hooks.improved) hooks.improved();
    return true;
  }
  report.dev_loss = dev_loss();
  if (hooks.dev_bleu) report.dev_bleu = hooks.dev_bleu();
  const bool better = !progress_.has_best || *report.dev_loss < progress_.best_dev_loss;
  if (better && hooks.improved) hooks.improved();
  if (!counts) return better;
  if (better) {
    progress_.best_dev_loss = *report.dev_loss;
    progress_.has_best = true;
    progress_.evaluations_without_improvement = 0;
  } else {
    ++progress_.evaluations_without_improvement;
  }
  return better;
}

Ending Trainer::run(const Hooks& hooks) {
  const auto start = Clock::now();
  const double seconds_before = progress_.seconds;
  double aside = 0;  // seconds of evaluating and saving since the last report
  auto last_report = start, last_save = start;
  double loss_sum = 0;
  int64_t loss_tokens = 0;
  Report report;
  const auto save = [&] {
    const auto began = Clock::now();
    progress_.seconds = seconds_before + seconds_since(start);
    if (hooks.save) hooks.save(progress_);
    last_save = Clock::now();
    aside += seconds_since(began);
  };
  const auto send = [&] {
    report.step = progress_.step;
    report.epoch = progress_.epoch;
    report.learning_rate =
        learning_rate(options_.learning_rate, options_.warm_up, std::max<int64_t>(progress_.step, 1));
    report.seconds = seconds_before + seconds_since(start);
    if (loss_tokens > 0) {
      report.loss = loss_sum / static_cast<double>(loss_tokens);
      report.target_tokens_per_s =
          static_cast<double>(loss_tokens) / std::max(seconds_since(last_report) - aside, 1e-9);
    }
    if (hooks.report) hooks.report(report);
    report = {};
    loss_sum = 0;
    loss_tokens = 0;
    aside = 0;
    last_report = Clock::now();
  };
  Ending ending = Ending::finished;
  bool evaluated = false;
  for (bool running = true; running;) {
    if (options_.epochs > 0 && progress_.epoch >= options_.epochs) break;
    const auto batches = text::make_batches(data_.source, data_.target, {.tokens = options_.batch_tokens},
                                            options_.seed, static_cast<uint64_t>(progress_.epoch));
    while (progress_.batch < static_cast<int64_t>(batches.size())) {
      if (options_.steps > 0 && progress_.step >= options_.steps) running = false;
      if (running && hooks.interrupted && hooks.interrupted()) {
        ending = Ending::interrupted;
        running = false;
      }
      if (running && options_.minutes > 0 && seconds_since(start) >= options_.minutes * 60) {
        ending = Ending::out_of_time;
        running = false;
      }
      if (!running) break;
      int64_t tokens = 0;
      const double loss = train_batch(batches[static_cast<size_t>(progress_.batch)], tokens);
      loss_sum += loss * static_cast<double>(tokens);
      loss_tokens += tokens;
      ++progress_.step;
      ++progress_.batch;
      evaluated = progress_.step % options_.evaluate_every == 0;
      if (evaluated) {
        const auto began = Clock::now();
        evaluate(hooks, report, true);
        aside += seconds_since(began);
      }
      if (evaluated || progress_.step % options_.report_every == 0) send();
      if (seconds_since(last_save) >= options_.save_every) save();
      if (options_.patience > 0 && progress_.evaluations_without_improvement >= options_.patience) {
        ending = Ending::out_of_patience;
        running = false;
        break;
      }
    }
    if (running) {
      ++progress_.epoch;
      progress_.batch = 0;
    }
  }
  save();
  if (!evaluated && ending != Ending::interrupted) evaluate(hooks, report, false);
  send();
  return ending;
}

}  // namespace regard::training
