// regard translate: standard input to standard output, line for line.

#include <memory>

#include "regard/cli/decode.h"
#include "regard/cli/verb.h"

namespace regard::cli {

void add_translate(CLI::App& app, Common& common) {
  auto* verb = app.add_subcommand("translate", "Translate standard input to standard output, line for line");
  auto a = std::make_shared<DecodeArguments>(
      DecodeArguments{.words = {"translated", "translation", "translations"}, .model = {}});
  add_decode_options(verb, *a, "default: twice the source's and 10 more");
  verb->add_option("--alignment", a->alignment,
                   "After each line: pharaoh (TEXT ||| i-j ...) or soft (rows of weights, \" ; \" between)")
      ->check(CLI::IsMember({"pharaoh", "soft"}));
  verb->footer(
      "Examples:\n"
      "  regard translate model < text.en > text.fr\n"
      "  regard translate model --nbest 4 < text.en          LINE ||| TEXT ||| SCORE\n"
      "  regard translate model --alignment pharaoh < text.en    TEXT ||| 0-0 1-2 (source word - target "
      "word)\n"
      "As many lines come out as go in; lines of white space come back as they are.");
  verb->callback([a, &common] { decode_lines(*a, common); });
}

}  // namespace regard::cli
