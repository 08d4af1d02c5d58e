#include "regard/cli/results.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "regard/base/error.h"
#include "regard/text/utf8.h"

namespace regard::cli {

void flush_results() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return;
  throw SystemError("cannot write standard output" + std::string(errno == 0 ? ": the write failed" : ""),
                    errno);
}

namespace {

void make_finite(boost::json::value& value) {
  if (value.is_double() && !std::isfinite(value.get_double())) value = nullptr;
  if (value.is_object())
    for (auto& member : value.get_object()) make_finite(member.value());
  if (value.is_array())
    for (auto& element : value.get_array()) make_finite(element);
}

}  // namespace

std::string json_text(boost::json::value value) {
  make_finite(value);
  return text::repaired_utf8(boost::json::serialize(value)) + "\n";
}

}  // namespace regard::cli
