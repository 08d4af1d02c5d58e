#pragma once
// Results on standard output.

#include <boost/json.hpp>
#include <string>

namespace regard::cli {

/// What was written must have arrived: a full disk or a reader that went away is an error, not a silent loss.
/// Throws SystemError. Verbs that write as they go call it now and then, so that they end early.
void flush_results();

/// One line of JSON, valid UTF-8 whatever names of files and texts it holds; numbers that are not finite,
/// which JSON does not have, are null.
std::string json_text(boost::json::value value);

}  // namespace regard::cli
