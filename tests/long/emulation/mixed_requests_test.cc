// Requests of every kind (tests/demonstrations/mixed_requests.h) with --deterministic: a pool so small that
// sequences are swapped and recomputed gives, number by number, what a pool gives in which nobody is
// preempted. OCTAVO_MIXED_REQUESTS says how many requests; OCTAVO_MIXED_MODEL=default takes the default model
// instead of a tiny one, and longer answers: that is for a real device (tests/bench/gpu_report), where this
// file is built without the emulation.
#include "tests/demonstrations/mixed_requests.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cuda/violations.h"
#include "tests/engine/default_model.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo {
namespace {

int num_requests() {
  const char* const chosen = std::getenv("OCTAVO_MIXED_REQUESTS");
  return chosen != nullptr ? std::atoi(chosen) : 10;
}

bool wants_default_model() {
  const char* const chosen = std::getenv("OCTAVO_MIXED_MODEL");
  return chosen != nullptr && std::string(chosen) == "default";
}

struct Setting {
  EngineOptions options;
  std::vector<GenerationRequest> requests;
  std::int64_t small_pool = 0, large_pool = 0;  // blocks
};

Setting tiny_setting(const test::TemporaryFolder& folder) {
  test::make_tiny_llama(11, {.weight_type = kernels::TensorType::kQ4_1}).write(folder / "tiny.gguf");
  Setting setting;
  setting.options.model = (folder / "tiny.gguf").string();
  setting.options.block_size = 4;
  setting.options.max_model_len = 160;
  setting.requests =
      mixed_requests(4, num_requests(), 24, {.first = 3, .last = test::kTinyVocabularySize - 2});
  setting.small_pool = 62, setting.large_pool = 4096;
  return setting;
}

Setting default_setting() {
  Setting setting;
  setting.options.model = model::default_model_path().string();
  setting.options.max_model_len = 512;
  setting.requests = mixed_requests(3, num_requests(), 64);
  setting.small_pool = 48, setting.large_pool = 8192;
  return setting;
}

std::unique_ptr<Engine> open_engine(EngineOptions options, std::int64_t num_blocks) {
  options.device = Device::kCuda;
  options.deterministic = true;
  options.num_kv_blocks = num_blocks;
  options.max_num_batched_tokens = 96;
  options.max_num_seqs = 32;
  options.admission_reserve = AdmissionReserve::kOnePercent;
  options.target_step_ms =
      0;  // the emulation is slow: prompts would wait for each other, and nobody give way
  auto engine = Engine::create(options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? *std::move(engine) : nullptr;
}

TEST(CudaMixedRequests, AreTheSameInASmallPoolAsInALargeOne) {
  if (wants_default_model()) OCTAVO_NEEDS_DEFAULT_MODEL();
  emulation::settings().finds_races = false;
  const test::TemporaryFolder folder;
  const Setting setting = wants_default_model() ? default_setting() : tiny_setting(folder);
  const auto small = open_engine(setting.options, setting.small_pool),
             large = open_engine(setting.options, setting.large_pool);
  ASSERT_TRUE(small != nullptr && large != nullptr);
  EXPECT_EQ(first_difference(run_together(*small, setting.requests), run_together(*large, setting.requests)),
            "");
  const KvTotals of_small = small->kv_totals(), of_large = large->kv_totals();
  EXPECT_GT(of_small.preempted_swap, 0);
  EXPECT_GT(of_small.preempted_recompute, 0);
  EXPECT_GT(of_small.swapped_in_blocks, 0);
  EXPECT_EQ(of_large.preempted_swap + of_large.preempted_recompute, 0);
  std::printf("%zu requests: %lld swapped out, %lld recomputed\n", setting.requests.size(),
              static_cast<long long>(of_small.preempted_swap),
              static_cast<long long>(of_small.preempted_recompute));
}

}  // namespace
}  // namespace octavo
