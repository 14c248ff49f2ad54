#include "engine/base/columns.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Columns, CountCharactersAndCutBetweenThem) {
  EXPECT_EQ(count_columns("a · é"), 5u);
  EXPECT_EQ(cut_to_columns("a · é", 5), "a · é");
  EXPECT_EQ(cut_to_columns("a · é", 4), "a ·…");
  EXPECT_EQ(cut_to_columns("a · é", 3), "a …");
  EXPECT_EQ(cut_to_columns("a · é", 1), "…");
  EXPECT_EQ(cut_to_columns("", 0), "");
}

TEST(Columns, ArePaddedAtEitherSide) {
  EXPECT_EQ(pad_to_columns("é", 3), "é  ");
  EXPECT_EQ(pad_to_columns("é", 3, /*to_right=*/true), "  é");
  EXPECT_EQ(pad_to_columns("a · é", 3), "a · é");
}

}  // namespace
}  // namespace octavo
