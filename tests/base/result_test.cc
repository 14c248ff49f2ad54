#include "engine/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace octavo {
namespace {

Result<std::unique_ptr<int>> half_of(int value) {
  if (value % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd", "value"};
  return std::make_unique<int>(value / 2);
}

Result<void> check(int value) {
  if (value > 10) return Error{ErrorCode::kTooLong, "large"};
  return {};
}

Result<int> quarter_of(int value, int& reached) {
  OCTAVO_TRY_VOID(check(value));
  OCTAVO_TRY(std::unique_ptr<int> half, half_of(value));
  ++reached;
  OCTAVO_TRY(const auto quarter, half_of(*half));
  ++reached;
  return *quarter;
}

TEST(Result, TheFirstErrorEndsTheFunction) {
  int reached = 0;
  EXPECT_EQ(*quarter_of(8, reached), 2);
  EXPECT_EQ(reached, 2);
  EXPECT_EQ(quarter_of(6, reached).error().message, "odd");
  EXPECT_EQ(reached, 3);
  EXPECT_EQ(quarter_of(5, reached).error().subject, "value");
  EXPECT_EQ(quarter_of(12, reached).error().code, ErrorCode::kTooLong);
  EXPECT_EQ(reached, 3);
}

TEST(Result, ValuesMoveOut) {
  Result<std::unique_ptr<int>> result = half_of(4);
  ASSERT_TRUE(result);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 2);
}

TEST(Result, EveryErrorCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code)
    names.insert(error_code_name(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
}

}  // namespace
}  // namespace octavo
