#pragma once
// regard bench models: one table of all models.

#include <string>
#include <vector>

#include "regard/cli/training_data.h"
#include "regard/cli/verb.h"

namespace regard::cli {

struct ModelBench {
  TrainingData data;                ///< none: sentences of a small grammar
  std::vector<std::string> models;  ///< none: all that the data are for
  std::string test_source, test_target, output;
  double minutes = 1;
  int64_t batch_tokens = 3000;
  bool quick = false;
};

/// True if something is said that is for models alone.
bool has_model_options(const ModelBench& bench);

/// Trains each model on the same data for the same time, each in a process of its own so that its memory can
/// be told, and prints a line for each: parameters, speed, share of the product peak, loss, quality, memory.
void bench_models(const ModelBench& bench, const Common& common);

}  // namespace regard::cli
