#include "regard/cli/help.h"

#include <algorithm>

namespace regard::cli {
namespace {

constexpr size_t kIndent = 2, kColumn = 30, kWidth = 100;

/// `left`, and `right` in the second column, wrapped at spaces; its own line breaks stay.
std::string two_columns(const std::string& left, std::string right) {
  std::string out = std::string(kIndent, ' ') + left;
  if (out.size() + 2 > kColumn)
    out += "\n" + std::string(kColumn, ' ');
  else
    out.resize(kColumn, ' ');
  while (!right.empty()) {
    size_t end = std::min(right.find('\n'), right.size());
    if (end > kWidth - kColumn) {
      const size_t space = right.rfind(' ', kWidth - kColumn);
      end = space == std::string::npos ? right.find(' ') : space;
    }
    out += right.substr(0, end);
    right.erase(0, std::min(end, right.size()) + (end < right.size() ? 1 : 0));
    if (!right.empty()) out += "\n" + std::string(kColumn, ' ');
  }
  return out + "\n";
}

/// What CLI11 says of an option's type, "INT:INT in [1 - 9]" or "TEXT:{a,b}": what it takes, and from where
/// to where.
struct Type {
  std::string value, range;
};

Type type_of(const CLI::Option& option) {
  const std::string all = option.get_type_name();
  const size_t colon = std::min(all.find(':'), all.size());
  Type type{all.substr(0, colon), ""};
  const std::string checks = all.substr(std::min(colon + 1, all.size()));
  if (type.value == "INT" || type.value == "UINT") type.value = "N";
  if (type.value == "FLOAT") type.value = "X";
  const size_t open = checks.find('{'), in = checks.find(" in [");
  if (open != std::string::npos && type.value == "TEXT") {
    type.value = checks.substr(open + 1, checks.find('}') - open - 1);
    std::replace(type.value.begin(), type.value.end(), ',', '|');
    if (type.value.size() > kWidth - kColumn) type.value = "NAME";  // so many that the help text lists them
  } else if (in != std::string::npos) {
    type.range = checks.substr(in + 5, checks.find(']') - in - 5);
    if (const size_t dash = type.range.find(" - "); dash != std::string::npos)
      type.range.replace(dash, 3, " to ");
  }
  return type;
}

std::string remarks(const CLI::Option& option, const Type& type) {
  std::string list;
  const auto add = [&](const std::string& remark) { list += (list.empty() ? " (" : ", ") + remark; };
  if (option.get_required()) add("required");
  if (!type.range.empty()) add(type.range);
  if (!option.get_default_str().empty()) add("default " + option.get_default_str());
  return list.empty() ? "" : list + ")";
}

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string left = is_positional ? option->get_name(true, false) : option->get_name(false, true);
  if (left == "-h,--help") left = "-h, --help";
  Type type;
  if (option->get_type_size() != 0) {
    type = type_of(*option);
    if (!is_positional && !type.value.empty()) left += " " + type.value;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) left += " ...";
  }
  return two_columns(left, option->get_description() + remarks(*option, type));
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  return two_columns(verb->get_name(), verb->get_description());
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace regard::cli
