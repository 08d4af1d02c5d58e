#pragma once
// The text of --help.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace regard::cli {

/// One option a line: its name, what it takes, and in a second column what it does, its default and its
/// range, wrapped.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
};

}  // namespace regard::cli
