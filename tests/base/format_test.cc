#include "engine/base/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace octavo {
namespace {

TEST(Format, CountsHaveACommaBetweenThousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1204), "1,204");
  EXPECT_EQ(with_thousands(-999), "-999");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(with_thousands(~std::uint64_t{0}), "18,446,744,073,709,551,615");
  EXPECT_EQ(with_thousands(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(count_text(1, "block"), "1 block");
  EXPECT_EQ(count_text(76, "block"), "76 blocks");
  EXPECT_EQ(count_text(std::size_t{1204}, "token"), "1,204 tokens");
}

TEST(Format, NumbersKeepThreeDigitsOrTheirWholePart) {
  EXPECT_EQ(short_number(41.34), "41.3");
  EXPECT_EQ(short_number(0.95), "0.95");
  EXPECT_EQ(short_number(0.7), "0.7");
  EXPECT_EQ(short_number(2.0), "2");
  EXPECT_EQ(short_number(13229.4), "13,229");
  EXPECT_EQ(short_number(117.6), "118");
  EXPECT_EQ(short_number(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(two_decimals(-0.82), "−0.82");
  EXPECT_EQ(two_decimals(-0.001), "0.00") << "nothing has no sign";
  EXPECT_EQ(fixed_text(0.125, 1), "0.1");
  EXPECT_EQ(fixed_text(-2, 3), "-2.000");
  EXPECT_EQ(fixed_text(std::numeric_limits<double>::max(), 2).size(), 309u + 3u);
}

TEST(Format, SharesAndParameters) {
  EXPECT_EQ(percent_text(0.0), "0 %");
  EXPECT_EQ(percent_text(0.021), "2.1 %");
  EXPECT_EQ(percent_text(0.0996), "10 %");
  EXPECT_EQ(percent_text(0.46), "46 %");
  EXPECT_EQ(parameters_text(134'515'008), "135 M");
  EXPECT_EQ(parameters_text(1'100'048'384), "1.1 B");
  EXPECT_EQ(parameters_text(999'600'000), "1.0 B");
  EXPECT_EQ(parameters_text(12'345), "12 K");
}

TEST(Format, BytesAreShort) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1,023 B");
  EXPECT_EQ(bytes_text(360 << 10), "360 KiB");
  EXPECT_EQ(bytes_text(23'040), "22.5 KiB");
  EXPECT_EQ(bytes_text(5'379'195), "5.13 MiB");
  EXPECT_EQ(mebibytes_text(std::int64_t{3} << 29), "1536.0 MiB");
}

TEST(Format, BytesAreExactWhereSixDigitsSuffice) {
  EXPECT_EQ(exact_bytes_text(0), "0 B");
  EXPECT_EQ(exact_bytes_text(1), "1 B");
  EXPECT_EQ(exact_bytes_text(1023), "1023 B");
  EXPECT_EQ(exact_bytes_text(1024), "1 KiB");
  EXPECT_EQ(exact_bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(exact_bytes_text(3'686'400), "3.515625 MiB");
  EXPECT_EQ(exact_bytes_text(std::uint64_t{168} << 30), "168 GiB");
  EXPECT_EQ(exact_bytes_text(std::uint64_t{5} << 40), "5 TiB");
  EXPECT_EQ(exact_bytes_text(~std::uint64_t{0}), "16777216 TiB");
  EXPECT_EQ(exact_bytes_text((1 << 20) + 1), "1.000001 MiB");
  EXPECT_EQ(exact_bytes_text((std::uint64_t{1} << 30) + 1), "1 GiB");
  EXPECT_EQ(exact_bytes_text(1'000'000'000), "953.674316 MiB");
}

TEST(Format, ExactBytesNeverStrayFurtherThanTheirLastDigit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bytes = random() >> (random() % 60);
    const std::string text = exact_bytes_text(bytes);
    const auto unit = text.substr(text.find(' ') + 1);
    const std::map<std::string, long double> scale = {
        {"B", 1}, {"KiB", 0x1p10L}, {"MiB", 0x1p20L}, {"GiB", 0x1p30L}, {"TiB", 0x1p40L}};
    const long double exact = static_cast<long double>(bytes) / scale.at(unit);
    ASSERT_LE(std::fabs(std::stold(text) - exact), 0.51e-6L + exact * 1e-18L) << bytes;
  }
}

TEST(ParseBytes, TakesAmountsWithUnits) {
  EXPECT_EQ(parse_bytes("512"), std::uint64_t{512} << 20);
  EXPECT_EQ(parse_bytes("512MiB"), std::uint64_t{512} << 20);
  EXPECT_EQ(parse_bytes("24 GiB"), std::uint64_t{24} << 30);
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536u);
  EXPECT_EQ(parse_bytes("7 B"), 7u);
  EXPECT_EQ(parse_bytes("2TiB"), std::uint64_t{2} << 40);
  for (const char* wrong : {"", " ", "GiB", "-1", "0", "1e9", "nan", "inf", "12 GB", "1 gib",
                            "99999999999TiB", "1MiBx", "0.5 B"}) {
    EXPECT_FALSE(parse_bytes(wrong).has_value()) << wrong;
  }
}

TEST(Format, DurationsChangeFromMillisecondsToSeconds) {
  EXPECT_EQ(duration_text(0.04), "0.0 ms");
  EXPECT_EQ(duration_text(9.96), "10 ms");
  EXPECT_EQ(duration_text(38.2), "38 ms");
  EXPECT_EQ(duration_text(999.6), "1.0 s");
  EXPECT_EQ(duration_text(1234), "1.2 s");
  EXPECT_EQ(duration_text(100'000), "100 s");
  EXPECT_EQ(seconds_text(12'410'000), "12.41 s");
  EXPECT_EQ(seconds_text(1'500, 3), "0.002 s");
}

}  // namespace
}  // namespace octavo
