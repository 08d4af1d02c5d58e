#pragma once

#include <gtest/gtest.h>

#include <string>

#include "regard/base/error.h"

namespace regard::tests {

/// `call` throws a ShapeError whose message contains `part`.
template <class Call>
void expect_shape_error(const Call& call, const std::string& part) {
  try {
    call();
    FAIL() << "no error, expected " << part;
  } catch (const ShapeError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace regard::tests
