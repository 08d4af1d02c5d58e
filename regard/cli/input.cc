#include "regard/cli/input.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string_view>

#include "regard/base/error.h"

namespace regard::cli {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

bool read_input_line(std::string& line, bool first) {
  if (!std::getline(std::cin, line)) {
    if (std::cin.bad() || std::ferror(stdin) != 0) throw SystemError("cannot read standard input", errno);
    return false;
  }
  if (!std::cin.eof() && line.ends_with('\r')) line.pop_back();
  if (first && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

}  // namespace regard::cli
