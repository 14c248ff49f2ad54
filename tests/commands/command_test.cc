#include "app/commands/command.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

TEST(Columns, CountCharactersAndCutBetweenThem) {
  EXPECT_EQ(count_columns("a · é"), 5u);
  EXPECT_EQ(cut_to_columns("a · é", 5), "a · é");
  EXPECT_EQ(cut_to_columns("a · é", 4), "a ·…");
  EXPECT_EQ(cut_to_columns("a · é", 3), "a …");
  EXPECT_EQ(cut_to_columns("a · é", 1), "…");
  EXPECT_EQ(cut_to_columns("", 0), "");
}

}  // namespace
}  // namespace octavo::app
