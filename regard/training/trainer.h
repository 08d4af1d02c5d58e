#pragma once
// The training loop. The trajectory is a function of seed, data and step;
// the clock decides only when to stop and to save.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regard/base/thread_pool.h"
#include "regard/models/model.h"
#include "regard/text/batches.h"
#include "regard/training/optimiser.h"

namespace regard::training {

struct TrainingOptions {
  uint64_t seed = 1;             ///< of weights, dropout and the order of the data
  int64_t batch_tokens = 3000;   ///< sentences of a batch times its longest side, at most
  double learning_rate = 1e-3;   ///< the peak
  int64_t warm_up = 500;         ///< steps to the peak
  double label_smoothing = 0.1;  ///< the share that is spread over all entries
  double guided_weight = 0.1;    ///< of guided alignment's loss, where there are links
  AdamOptions adam;
  int64_t shards = 2;            ///< a batch is cut into so many pieces, whatever the number of threads
  int64_t accumulate = 1;        ///< batches of one update, whose gradients are summed
  int64_t average = 1;           ///< evaluations whose weights are averaged: the mean is evaluated and kept
  int64_t evaluate_every = 500;  ///< steps
  int64_t patience = 0;          ///< evaluations without improvement before stopping; 0: never
  // The following may differ when training is resumed.
  int64_t steps = 0, epochs = 0;  ///< totals; 0: no limit
  double minutes = 0;             ///< of this run; 0: no limit
  double save_every = 60;         ///< seconds
  int64_t report_every = 50;      ///< steps
};

/// Encoded sentence pairs, every sentence closed by the end symbol (or cut).
struct Data {
  text::Sentences source, target;                         ///< to train on
  text::Sentences dev_source, dev_target;                 ///< to evaluate on; may be empty
  std::vector<std::vector<models::GuidedLink>> guidance;  ///< of every pair to train on; empty: none
  std::vector<int32_t> labels{}, dev_labels{};            ///< of every pair, for a classifier; else empty
};

/// One line of train.jsonl. What is not known at a report is left out.
/// Losses are in nats per prediction (target token or label): `loss` is the objective's mean since the last
/// report, `dev_loss` is without smoothing. The speed since the last report is without evaluating and saving.
/// `seconds` are those of earlier runs and this one.
struct Report {
  int64_t step = 0, epoch = 0;
  std::optional<double> loss, dev_loss, dev_bleu, dev_accuracy, target_tokens_per_s;
  double learning_rate = 0, seconds = 0;
  int64_t run_steps = 0;   ///< of this run alone; not in train.jsonl
  double run_seconds = 0;  ///< likewise
};

/// Where training stands: with the weights and moments, all that resuming needs.
struct Progress {
  int64_t step = 0, epoch = 0, batch = 0;  ///< batches done in this epoch
  double seconds = 0;                      ///< of earlier runs and this one
  double best_dev_loss = 0;
  int64_t best_step = 0;  ///< of the weights kept
  int64_t evaluations_without_improvement = 0;
  bool has_best = false;
};

/// What the loop tells and asks. All optional.
struct Hooks {
  std::function<void(const Report&)> report;
  std::function<void(Report&)> dev_quality;  ///< called at evaluations: sets dev_bleu or dev_accuracy
  std::function<void()> improved;            ///< the weights are the best so far
  std::function<void(const Progress&)> save;
  std::function<bool()> interrupted;
};

/// Why training ended; finished: all steps or epochs are done.
enum class Ending { finished, out_of_time, out_of_patience, interrupted };

/// Trains one model on one set of data: both are the caller's and must outlive it, as must the pool.
/// For one thread at a time; it computes on the pool's.
class Trainer {
 public:
  Trainer(models::Model& model, const Data& data, const TrainingOptions& options, ThreadPool& pool);

  /// Trains until an ending. Saves from time to time and at the end.
  /// Throws DataError on a loss that is not finite, with the step and the batch's lines.
  Ending run(const Hooks& hooks);

  /// The weights at the last evaluations, oldest first, in the order of the model's parameters: with the
  /// progress and the optimiser all that resuming needs. Empty unless weights are averaged.
  std::deque<std::vector<Tensor>>& checkpoints() { return checkpoints_; }
  Progress& progress() { return progress_; }
  Adam& optimiser() { return optimiser_; }

  /// Mean cross-entropy over the development set, nats per prediction, without smoothing.
  double dev_loss() const;

 private:
  struct Run;
  double train_batches(std::span<const std::vector<int64_t>> batches, int64_t predictions);
  bool evaluate_mean(const Hooks& hooks, Report& report, bool counts);
  void require_finite_weights() const;
  std::string remedy() const;
  bool evaluate(const Hooks& hooks, Report& report, bool counts);
  void save(const Hooks& hooks, Run& run);
  void send(const Hooks& hooks, Run& run);
  std::optional<Ending> ending_before_batch(const Hooks& hooks, const Run& run) const;
  std::optional<Ending> train_epoch(std::span<const std::vector<int64_t>> batches, const Hooks& hooks,
                                    Run& run);

  models::Model& model_;
  const Data& data_;
  TrainingOptions options_;
  ThreadPool& pool_;
  Adam optimiser_;
  Progress progress_;
  std::deque<std::vector<Tensor>> checkpoints_;
};

}  // namespace regard::training
