#include "regard/cli/verb.h"

namespace regard::cli {
namespace {

/// What is no number at all is CLI11's to say.
CLI::Validator bound(bool (*fits)(double), const std::string& expected) {
  return {[fits, expected](const std::string& text) {
            double number = 0;
            const bool is_number = CLI::detail::lexical_cast(text, number);
            return is_number && !fits(number) ? text + ": expected " + expected : std::string();
          },
          ""};
}

}  // namespace

CLI::Validator above_zero() {
  return bound([](double number) { return number > 0; }, "a number above 0");
}

CLI::Validator not_negative() {
  return bound([](double number) { return number >= 0; }, "0 or a number above it");
}

}  // namespace regard::cli
