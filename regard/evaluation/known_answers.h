#pragma once
// For tests: the texts and numbers of sacreBLEU in the shared data, where there are any.

#include <zlib.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace regard::evaluation::known_answers {

inline std::filesystem::path folder() {
  return std::filesystem::path(REGARD_SHARED_DIR) / "data" / "metrics_reference";
}

inline bool present() { return std::filesystem::exists(folder() / "expected.jsonl"); }

inline std::vector<std::string> gz_lines(const std::string& name) {
  gzFile file = gzopen((folder() / name).c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + name);
  std::vector<std::string> lines(1);
  char buffer[65536];
  for (int read = 0; (read = gzread(file, buffer, sizeof buffer)) > 0;) {
    for (int i = 0; i < read; ++i) {
      if (buffer[i] == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += buffer[i];
      }
    }
  }
  gzclose(file);
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

inline std::vector<std::string> hypotheses() { return gz_lines("hyp.fr-CA.txt.gz"); }
inline std::vector<std::string> references() { return gz_lines("ref.fr.txt.gz"); }

inline std::vector<boost::json::value> json_lines(const std::string& name) {
  std::ifstream file(folder() / name);
  std::vector<boost::json::value> values;
  for (std::string line; std::getline(file, line);) values.push_back(boost::json::parse(line));
  return values;
}

}  // namespace regard::evaluation::known_answers
