#pragma once

#include <string>

#include "regard/base/error.h"

namespace regard::tests {

/// The message of the error that `call` throws; "none" if it throws none.
/// Anything else than an `Expected` passes through and fails the test.
template <class Expected = DataError, class Call>
std::string error_message(const Call& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return "none";
}

}  // namespace regard::tests
