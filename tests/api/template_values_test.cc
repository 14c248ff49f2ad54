#include "engine/api/template_values.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

TEST(TemplateValues, NamesAndTextsAreChecked) {
  EXPECT_TRUE(validate(TemplateValues{}));
  EXPECT_TRUE(validate({{"enable_thinking", false}, {"_n1", std::int64_t{-5}}, {"effort", "low"}}));
  for (const std::string name : {"", "1a", "a b", "a-b", "messages", "bos_token", "tools", "\n"}) {
    const auto refused = validate({{name, true}});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().subject, "chat_template_kwargs");
    EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(validate({{"a", "\xff"}}));
  EXPECT_TRUE(validate({{"a", std::string(kMaxTemplateValueBytes, 'x')}}));
  EXPECT_FALSE(validate({{"a", std::string(kMaxTemplateValueBytes + 1, 'x')}}));
  TemplateValues many;
  for (std::size_t i = 0; i < kMaxTemplateValues; ++i) many.emplace("v" + std::to_string(i), true);
  EXPECT_TRUE(validate(many));
  many.emplace("one_more", true);
  EXPECT_FALSE(validate(many));
}

}  // namespace
}  // namespace octavo
