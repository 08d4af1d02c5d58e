#pragma once
// Standard input, line by line.

#include <string>

namespace regard::cli {

/// The next line: LF and CRLF end it, the last may lack its end, a byte-order mark before the `first` is left
/// out. False at the end. Throws SystemError if standard input cannot be read.
bool read_input_line(std::string& line, bool first);

}  // namespace regard::cli
