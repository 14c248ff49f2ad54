// The list that is compiled in, and what it says for machines of different sizes.

#include "app/hub/recommended_models.h"

#include <gtest/gtest.h>

#include <set>

#include "app/hub/model_choice.h"

namespace octavo::hub {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

TEST(RecommendedModels, TheListIsDatedSortedAndNamesFilesThatAreMeant) {
  const RecommendedModels& list = recommended_models();
  EXPECT_EQ(list.date.size(), 10u);
  EXPECT_GE(list.models.size(), 10u);
  EXPECT_LE(list.models.size(), 20u);
  std::set<std::string> families;
  for (std::size_t i = 0; i < list.models.size(); ++i) {
    const RecommendedModel& model = list.models[i];
    EXPECT_EQ(type_in_name("m-" + model.type + ".gguf"), model.type);
    EXPECT_FALSE(model.licence.empty());
    EXPECT_LE(model.read_bytes, model.bytes);
    EXPECT_GE(model.bytes, list.models[i == 0 ? 0 : i - 1].bytes);
    families.insert(model.family);
  }
  EXPECT_GE(families.size(), 6u);
}

TEST(RecommendedModels, TheBestOneFitsAndIsFastEnough) {
  const RecommendedModels& list = recommended_models();
  EXPECT_EQ(best_model_for(list, kGib / 4, 20e9), nullptr);
  const RecommendedModel* const small = best_model_for(list, 4 * kGib, 20e9);
  const RecommendedModel* const large = best_model_for(list, 64 * kGib, 20e9);
  const RecommendedModel* const slow = best_model_for(list, 64 * kGib, 4e9);
  ASSERT_TRUE(small && large && slow);
  EXPECT_LE(small->bytes, 4 * kGib);
  EXPECT_GT(large->bytes, small->bytes);
  EXPECT_LT(slow->read_bytes, large->bytes);
  EXPECT_LE(static_cast<double>(slow->read_bytes) * 4, 4e9);
}

TEST(RecommendedModels, ADamagedListIsASentence) {
  for (
      const char* const text :
      {"", "{}", R"({"date":"x","models":[{}]})",
       R"({"date":"x","models":[{"family":"f","name":"n","repository":"../x","type":"t","bytes":1,"licence":"l"}]})"})
    EXPECT_FALSE(read_recommended_models(text)) << text;
}

}  // namespace
}  // namespace octavo::hub
