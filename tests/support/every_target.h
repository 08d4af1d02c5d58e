#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace regard::tests {

/// Runs `test` on every instruction set that was compiled and that this processor has.
template <class Test>
void on_every_target(const Test& test) {
  ASSERT_FALSE(hwy::SupportedAndGeneratedTargets().empty());
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    test();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace regard::tests
