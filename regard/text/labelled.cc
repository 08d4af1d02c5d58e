#include "regard/text/labelled.h"

#include "regard/base/error.h"
#include "regard/text/readers.h"

namespace regard::text {

LabelledPair labelled_pair(std::string_view line, bool needs_label, const std::string& name, int64_t number) {
  const std::string expected = std::string(", expected premise TAB hypothesis") +
                               (needs_label ? " TAB label" : "") + "; correct the line or remove it";
  std::vector<std::string> fields;
  for (size_t begin = 0; fields.size() < 3;) {
    const size_t tab = line.find('\t', begin);
    fields.push_back(unescaped_field(line.substr(begin, tab == std::string_view::npos ? tab : tab - begin)));
    if (tab == std::string_view::npos) break;
    begin = tab + 1;
  }
  if (fields.size() < 2) throw DataError(name, number, "has no tab" + expected);
  if (needs_label && (fields.size() < 3 || fields[2].empty()))
    throw DataError(name, number, "has no label" + expected);
  fields.resize(3);
  return {std::move(fields[0]), std::move(fields[1]), std::move(fields[2]), number};
}

std::vector<LabelledPair> read_labelled(const std::filesystem::path& path) {
  std::vector<LabelledPair> pairs;
  int64_t number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    if (!line.empty()) pairs.push_back(labelled_pair(line, true, path.string(), number));
  }
  return pairs;
}

}  // namespace regard::text
