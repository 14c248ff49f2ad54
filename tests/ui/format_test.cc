#include "ui/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo::ui {
namespace {

TEST(Format, FiguresReadAsPeopleWriteThem) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1204), "1,204");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(bytes_text(360 << 10), "360 KiB");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(short_number(41.34), "41.3");
  EXPECT_EQ(short_number(0.95), "0.95");
  EXPECT_EQ(short_number(0.7), "0.7");
  EXPECT_EQ(short_number(2.0), "2");
  EXPECT_EQ(short_number(13229.4), "13,229");
  EXPECT_EQ(short_number(117.6), "118");
  EXPECT_EQ(short_number(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(percent_text(0.0), "0 %");
  EXPECT_EQ(percent_text(0.021), "2.1 %");
  EXPECT_EQ(percent_text(0.46), "46 %");
  EXPECT_EQ(duration_text(38.2), "38 ms");
  EXPECT_EQ(duration_text(1234), "1.2 s");
  EXPECT_EQ(count_text(1, "block"), "1 block");
  EXPECT_EQ(count_text(76, "block"), "76 blocks");
}

}  // namespace
}  // namespace octavo::ui
