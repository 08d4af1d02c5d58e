// The command `regard`: reads the command line, runs one verb,
// and turns what it throws into one line and an exit code.

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "regard/base/error.h"
#include "regard/cli/help.h"
#include "regard/cli/results.h"
#include "regard/cli/signals.h"
#include "regard/cli/verb.h"

namespace regard::cli {
namespace {

constexpr const char* kVersion = "regard " REGARD_VERSION;
constexpr int kInternal = 1, kUsage = 2, kData = 3, kSystem = 4, kInterrupted = 130;

/// A configuration file holds the long options of a verb, `epochs = 3`, at its top or in a section `[train]`.
/// Keys at the top belong to the verb that is run; sections of other verbs are passed over.
class VerbConfig : public CLI::ConfigTOML {
 public:
  explicit VerbConfig(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const auto chosen = app_.get_subcommands();
    std::vector<CLI::ConfigItem> result;
    for (CLI::ConfigItem& item : CLI::ConfigTOML::from_config(input)) {
      if (chosen.empty() || item.name == "++" || item.name == "--") continue;
      if (item.parents.empty()) item.parents.push_back(chosen.front()->get_name());
      const std::string& section = item.parents.front();
      const bool other_verb = section != chosen.front()->get_name() && is_verb(section);
      if (!other_verb) result.push_back(std::move(item));
    }
    return result;
  }

 private:
  bool is_verb(const std::string& name) const {
    const auto verbs = app_.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
    return !verbs.empty();
  }

  const CLI::App& app_;
};

void add_common(CLI::App& verb, Common& common) {
  verb.add_option("--threads", common.threads, "Threads to compute with; 0: all processors")
      ->check(CLI::Range(0, 4096))
      ->group("Common");
  verb.add_flag("--quiet", common.quiet, "No progress and no notes on standard error")->group("Common");
  verb.add_flag("--json", common.json, "The result as JSON on standard output")->group("Common");
  verb.group("Verbs");
  verb.footer(verb.get_footer() +
              "\n\nAlso: --config FILE reads options from a file, one `name = value` a line.");
}

template <class Number>
std::string fault_of_number(const std::string& text) {
  Number number{};
  const size_t digits = text.find_first_not_of("+-");
  if (digits + 1 < text.size() && text[digits] == '0')  // CLI11 would read 010 as 8
    return text + ": write the number without a leading 0";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return text + " is too large a number";
  return error != std::errc() || end != text.data() + text.size() ? text + " is no number to use here" : "";
}

/// What CLI11 lets through: "nan" passes every range, a whole number too large becomes the largest, a
/// negative one without sign wraps around; and a place to write to needs a name.
void check_values(CLI::App& verb) {
  const CLI::Validator whole(fault_of_number<int64_t>, ""), natural(fault_of_number<uint64_t>, "");
  const CLI::Validator finite(
      [](const std::string& text) {
        double number = 0;
        const bool bad = CLI::detail::lexical_cast(text, number) && !std::isfinite(number);
        return bad ? text + " is no number to use here" : std::string();
      },
      "");
  const CLI::Validator named(
      [](const std::string& text) { return text.empty() ? std::string("the name is empty") : ""; }, "");
  for (CLI::Option* option : verb.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("INT")) option->check(whole);
    if (type.starts_with("UINT")) option->check(natural);
    if (type.starts_with("FLOAT")) option->check(finite);
    if (option->check_lname("output") || type == "FILE" || type == "DIR") option->check(named);
  }
}

void set_up(CLI::App& app, Common& common) {
  app.name("regard");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.get_formatter()->label("Positionals", "Arguments");
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.fallthrough();  // so that --config may stand behind the verb
  app.set_config("--config", "",
                 "Options from a file, one `name = value` a line; [train] begins a verb's own")
      ->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.config_formatter(std::make_shared<VerbConfig>(app));
  for (const auto add : {add_corpus, add_train, add_translate, add_summarise, add_generate, add_score,
                         add_align, add_evaluate, add_entail, add_view, add_report, add_bench}) {
    add(app, common);
  }
  for (CLI::App* verb : app.get_subcommands({})) {
    add_common(*verb, common);
    check_values(*verb);
  }
  // After the verbs, which would inherit it.
  app.footer(
      "What a verb takes and gives: regard VERB --help. First steps:\n"
      "  regard corpus fr.po more.tsv --from en --to fr --output text --dev 1000 --test 1000\n"
      "  regard train --source text/train.en --target text/train.fr \\\n"
      "    --dev-source text/dev.en --dev-target text/dev.fr --output model\n"
      "  regard translate model < text/test.en > text/test.out\n"
      "  regard evaluate --hypothesis text/test.out --reference text/test.fr\n\n"
      "Exit codes: 0 done, 1 internal error, 2 usage, 3 bad data, 4 file or system, 130 interrupted.\n"
      "An error is one line on standard error: what, where, what to do.");
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::internal:
      return kInternal;
    case ErrorKind::usage:
      return kUsage;
    case ErrorKind::data:
      return kData;
    case ErrorKind::system:
      return kSystem;
  }
  return kInternal;
}

/// One line on standard error, whatever the message holds.
int complain(std::string message, int code) {
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  std::cout.flush();
  std::fflush(stdout);
  std::fprintf(stderr, "regard: %s\n", message.c_str());
  return code;
}

int flush_output() {
  try {
    flush_results();
  } catch (const SystemError& error) {
    return complain(error.what(), kSystem);
  }
  return 0;
}

/// CLI11's message, or a better one where it does not name what is wrong.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int count, char** arguments) {
  const auto verbs = app.get_subcommands();
  std::string help = "; see regard --help";
  if (!verbs.empty()) help = "; see regard " + verbs.front()->get_name() + " --help";
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (verbs.empty() && !first.empty() && first.front() != '-')
    return "there is no verb '" + std::string(first) + "'" + help;
  if (verbs.empty() && error.get_name() == "RequiredError") return "a verb is missing" + help;
  constexpr std::string_view kExtra = "INI was not able to parse ";
  const std::string_view message = error.what();
  if (message.starts_with(kExtra)) {
    return "the configuration file sets '" + std::string(message.substr(kExtra.size())) +
           "', which is no option" + help;
  }
  return std::string(message) + help;
}

int run(int count, char** arguments) {
  CLI::App app("Attention in C++: train, translate, write, and see what a model attends to");
  Common common;
  set_up(app, common);
  try {
    app.parse(count, arguments);
  } catch (const CLI::FileError& error) {
    return complain(error.what(), kSystem);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return complain(usage_message(app, error, count, arguments), kUsage);
    app.exit(error);  // the text of --help or --version
  }
  return flush_output();
}

int guarded(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const Interrupted&) {
    return kInterrupted;  // the verb has said what it saved
  } catch (const Error& error) {
    return complain(error.what(), exit_code(error.kind()));
  } catch (const std::bad_alloc&) {
    return complain(
        "out of memory; try smaller batches (--batch-tokens, --batch-sentences), a smaller --beam-size or "
        "--width, or shorter lines",
        kSystem);
  } catch (const std::system_error& error) {
    return complain(error.what(), kSystem);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(), kInternal);
  }
}

}  // namespace
}  // namespace regard::cli

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is a write error: exit code 4
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that reaches its allowed size
  return regard::cli::guarded(count, arguments);
}
