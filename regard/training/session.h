#pragma once
// Training into a model directory: what is written when, and how a run goes on after an interruption.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "regard/models/directory.h"
#include "regard/training/guidance.h"
#include "regard/training/trainer.h"

namespace regard::training {

struct SessionOptions {
  std::filesystem::path output;  ///< the model directory
  bool resume = false;           ///< go on from its state
  TrainingOptions training;
  std::string model = "bahdanau";
  models::ModelConfig config;  ///< vocabularies' sizes are filled in
  text::VocabularyOptions vocabulary;
  int64_t longest = 128;     ///< tokens of a sentence, the rest is cut; of a language model's chunk of text
  bool text_lines = false;   ///< a language model's lines are texts of their own, each with an end symbol;
                             ///< else all are one stream, cut into chunks
  int64_t bleu_lines = 200;  ///< development lines translated at an evaluation; 0: none
};

/// Sentence pairs as text: source[i] belongs to target[i]. A language model's text is all target.
struct Lines {
  std::vector<std::string> source, target, dev_source, dev_target;
  std::vector<std::string> labels{}, dev_labels{};  ///< of every pair, for a classifier; else empty
  WordLinks links{};  ///< of every training pair, for guided alignment; empty: none
};

/// What a session tells and asks. All optional.
struct SessionHooks {
  std::function<void(const Report&)> report;             ///< after each line of train.jsonl
  std::function<bool()> interrupted;                     ///< asked before each step: end now?
  std::function<void(const std::string& message)> warn;  ///< a file could not be written; training goes on
  std::function<void(const std::string& message)> note;  ///< what to know of the data
};

/// Throws UsageError if the model's options do not fit each other, or `guided` does not fit the model.
void check_options(const SessionOptions& options, bool guided);

/// Trains in `output`.
/// A new directory gets config.json, vocabularies, first weights and a state before the first step.
/// With `resume` the state is loaded and everything but steps, epochs, minutes and saving must be as it was.
/// Throws UsageError (model options that do not fit each other, directory not empty, options that differ,
/// naming both values), DataError, SystemError.
Ending run_session(const SessionOptions& options, const Lines& lines, const SessionHooks& hooks,
                   ThreadPool& pool);

}  // namespace regard::training
