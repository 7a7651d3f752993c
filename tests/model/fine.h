// IsFine and ASSERT_FINE: a status as a GoogleTest assertion that prints the error.
#pragma once

#include <gtest/gtest.h>

#include "base/status.h"

namespace isozone {

inline testing::AssertionResult IsFine(const Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.ToString();
}

}  // namespace isozone

#define ASSERT_FINE(status) ASSERT_TRUE(::isozone::IsFine(status))
