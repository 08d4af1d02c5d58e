#pragma once
// The command's verbs: one file each, registered here. `main.cc` calls them in this order.

#include <CLI/CLI.hpp>

#include "regard/base/thread_pool.h"

namespace regard::cli {

/// Options that every verb has.
struct Common {
  int threads = 0;     ///< 0: all processors
  bool quiet = false;  ///< no progress, no notes on standard error; errors still
  bool json = false;   ///< the result as JSON on standard output

  /// The number of threads that `threads` means.
  int thread_count() const { return threads > 0 ? threads : available_processors(); }
};

/// What an option's number must be; the text of an error says so.
CLI::Validator above_zero();
CLI::Validator not_negative();

/// Each adds one sub-command to `app`, with its options, and a callback that does the work
/// and throws regard::Error. `app` and `common` must outlive the parsing.
void add_corpus(CLI::App& app, Common& common);
void add_train(CLI::App& app, Common& common);
void add_translate(CLI::App& app, Common& common);
void add_summarise(CLI::App& app, Common& common);
void add_generate(CLI::App& app, Common& common);
void add_score(CLI::App& app, Common& common);
void add_align(CLI::App& app, Common& common);
void add_evaluate(CLI::App& app, Common& common);
void add_entail(CLI::App& app, Common& common);
void add_view(CLI::App& app, Common& common);
void add_report(CLI::App& app, Common& common);
void add_bench(CLI::App& app, Common& common);

}  // namespace regard::cli
