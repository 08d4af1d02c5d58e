#pragma once
// Standard input through a model that writes text, to standard output, line for line: what translate and
// summarise have in common.

#include <CLI/CLI.hpp>
#include <string>

#include "regard/cli/verb.h"
#include "regard/decoding/search.h"

namespace regard::cli {

/// How the verb speaks of what it does: "translated", "translation", "translations".
struct DecodeWords {
  const char *done, *result, *results;
};

struct DecodeArguments {
  DecodeWords words;
  std::string model, alignment{}, format = "text";
  decoding::SearchOptions search{};
  int64_t nbest = 0;
  bool replace_unknown = false;
};

/// DIR and all options but those of one verb. `max_length_help` says what holds without --max-length.
void add_decode_options(CLI::App* verb, DecodeArguments& a, const std::string& max_length_help);

/// Reads, decodes and writes until standard input ends. Throws UsageError if options do not fit each other,
/// and as load_model() does.
void decode_lines(DecodeArguments& a, const Common& common);

}  // namespace regard::cli
