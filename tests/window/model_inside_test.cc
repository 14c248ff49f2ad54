// What the picker says of a model before it is loaded: recurrent layers with the bytes of their states, and
// experts.
#include "app/window/models/model_inside.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::app {
namespace {

ModelPreview open_tiny(const test::TemporaryFolder& folder, const std::string& name) {
  const auto path = folder / (name + ".gguf");
  test::make_tiny_model(test::tiny_model(name)).write(path);
  auto preview = ModelPreview::open(path);
  EXPECT_TRUE(preview.has_value()) << preview.error().message;
  return *std::move(preview);
}

std::string fact(const ui::ModelInside& inside, const std::string& label) {
  for (const ui::ModelFact& each : inside.facts) {
    if (each.label == label) return each.value;
  }
  return {};
}

TEST(ModelInside, NamesExpertsAndRecurrentLayers) {
  const test::TemporaryFolder folder;
  const ui::ModelInside hybrid = model_inside(open_tiny(folder, "qwen35moe"));
  EXPECT_EQ(fact(hybrid, "Experts"), "8, each token uses 2");
  EXPECT_FALSE(fact(hybrid, "Of experts").empty());
  EXPECT_EQ(fact(hybrid, "Recurrent").find("2 layers, "), 0u) << fact(hybrid, "Recurrent");
  const ui::ModelInside experts = model_inside(open_tiny(folder, "qwen3moe"));
  EXPECT_EQ(fact(experts, "Experts"), "8, each token uses 3");
  EXPECT_EQ(fact(experts, "Recurrent"), "");
  const ui::ModelInside dense = model_inside(open_tiny(folder, "qwen3"));
  EXPECT_EQ(fact(dense, "Experts"), "");
  EXPECT_EQ(fact(dense, "Of experts"), "");
  EXPECT_EQ(fact(dense, "Recurrent"), "");
}

TEST(ModelInside, ThePlanOfAHybridHasTheBytesOfItsStates) {
  const test::TemporaryFolder folder;
  constexpr std::int64_t kFree = std::int64_t{4} << 30;
  const ModelPreview preview = open_tiny(folder, "qwen35");
  const auto plan = preview.plan({}, kFree);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const ui::ModelMemory memory = model_memory(preview, {}, {}, kFree);
  EXPECT_GT(memory.num_states, 0);
  EXPECT_EQ(memory.num_states, plan->num_states);
  EXPECT_EQ(memory.bytes_per_state, plan->bytes_per_state);
  EXPECT_EQ(memory.state_bytes, memory.num_states * memory.bytes_per_state);
  EXPECT_EQ(memory.needed_bytes(), memory.weight_bytes + memory.kv_bytes + memory.state_bytes +
                                       memory.working_bytes + memory.host_bytes);
  const ui::ModelMemory dense = model_memory(open_tiny(folder, "qwen3"), {}, {}, kFree);
  EXPECT_EQ(dense.num_states, 0);
  EXPECT_EQ(dense.state_bytes, 0);
}

}  // namespace
}  // namespace octavo::app
