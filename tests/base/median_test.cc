#include "engine/base/median.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Median, IsThatOfTheValuesInOrder) {
  EXPECT_EQ(median({}), 0.0);
  EXPECT_EQ(median({3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median({5, 1, 3}), 3.0);
  EXPECT_EQ(median({4.0, 1.0}), 2.5);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace octavo
