// Asserts or expects that a Status, of Isozone or of RocksDB, is OK, and otherwise prints it.
#pragma once

#include <gtest/gtest.h>

#define ISOZONE_ASSERT_OK(expr)                                                \
  do {                                                                         \
    const auto& isozone_test_status_ = (expr);                                 \
    ASSERT_TRUE(isozone_test_status_.ok()) << isozone_test_status_.ToString(); \
  } while (false)
#define ISOZONE_EXPECT_OK(expr)                                                \
  do {                                                                         \
    const auto& isozone_test_status_ = (expr);                                 \
    EXPECT_TRUE(isozone_test_status_.ok()) << isozone_test_status_.ToString(); \
  } while (false)
