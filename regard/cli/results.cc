#include "regard/cli/results.h"

#include <cerrno>
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

std::string json_text(const boost::json::value& value) {
  return text::repaired_utf8(boost::json::serialize(value)) + "\n";
}

}  // namespace regard::cli
