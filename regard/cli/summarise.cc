// regard summarise: a text a line on standard input, a summary a line on standard output.

#include <memory>

#include "regard/cli/decode.h"
#include "regard/cli/verb.h"

namespace regard::cli {

void add_summarise(CLI::App& app, Common& common) {
  constexpr int64_t kLength = 100;  // pieces; a summary does not grow with its text
  auto* verb = app.add_subcommand("summarise", "Summarise standard input, a text a line, line for line");
  auto a = std::make_shared<DecodeArguments>(
      DecodeArguments{.words = {"summarised", "summary", "summaries"}, .model = {}});
  add_decode_options(verb, *a, "default: " + std::to_string(kLength));
  verb->footer(
      "Examples:\n"
      "  regard train --model intra-decoder --source texts --target summaries --longest 512 --output model\n"
      "  regard summarise model --no-repeat-trigrams < texts > summaries\n"
      "  regard evaluate --hypothesis summaries --reference written --metric rouge,repetition\n"
      "As many lines come out as go in; lines of white space come back as they are. A text longer than the\n"
      "model was trained on (train --longest) is summarised in parts, and their summaries are joined.");
  verb->callback([a, &common] {
    if (a->search.max_length == 0) a->search.max_length = kLength;
    decode_lines(*a, common);
  });
}

}  // namespace regard::cli
