// CUDA graphs in whole engines on the emulated device: the same tokens and log-probabilities with and without
// them, two starts for each step that is recorded, and all recording while the model loads.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/tiny_engines.h"

namespace octavo {
namespace {

using kernels::TensorType;

std::unique_ptr<Engine> open_with_graphs(EngineOptions options, bool graphs) {
  options.cuda_graphs = graphs;
  return open_engine(options, Device::kCuda);
}

// Lengths such that sequences come and go: steps of 8 rows and fewer, through every shape down to one.
std::vector<GenerationRequest> requests_that_come_and_go() {
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < 8; ++i) requests.push_back(request(i + 1, 3 + 3 * i, 2 + i));
  requests.push_back(request(20, 9, 5, 3));  // waits until there is room
  for (GenerationRequest& each : requests) each.sampling.logprobs = 1;
  return requests;
}

struct Answer {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<float> logprobs;
  bool operator==(const Answer&) const = default;
};

Answer answer(Engine& engine, const std::vector<GenerationRequest>& requests) {
  const std::vector<RequestOutput> outputs = run_together(engine, requests);
  Answer answer{tokens_of(outputs), {}};
  for (const RequestOutput& output : outputs) {
    for (const auto& each : output.outputs) {
      answer.logprobs.insert(answer.logprobs.end(), each.logprobs.begin(), each.logprobs.end());
    }
  }
  return answer;
}

class CudaGraphs : public ::testing::Test {
 protected:
  // Each launch once: what races is found where each kernel is tested.
  void SetUp() override { emulation::settings().finds_races = false; }
};

TEST_F(CudaGraphs, ChangeNoBitAndGiveTheReferencesTokens) {
  struct Case {
    TensorType type;
    KvCacheType kv_type;
    std::int32_t block_size;
    bool deterministic;
  };
  const std::vector<Case> cases = {{TensorType::kQ4_1, KvCacheType::kF16, 8, false},
                                   {TensorType::kF16, KvCacheType::kInt8, 1, true},
                                   {TensorType::kQ4_1, KvCacheType::kFp8E4m3, 16, false}};
  for (const Case& c : cases) {
    EngineOptions options = small_options(c.type);
    options.kv_cache_dtype = c.kv_type;
    options.block_size = c.block_size;
    options.num_kv_blocks = 512 / c.block_size;
    options.deterministic = c.deterministic;
    const std::vector<GenerationRequest> requests = requests_that_come_and_go();
    const auto with = open_with_graphs(options, true), without = open_with_graphs(options, false);
    ASSERT_NE(with, nullptr);
    ASSERT_NE(without, nullptr);
    const std::int64_t graphs = emulation::num_graph_launches();
    const Answer expected = answer(*without, requests);
    EXPECT_EQ(emulation::num_graph_launches(), graphs) << "switched off";
    const Answer got = answer(*with, requests);
    EXPECT_GT(emulation::num_graph_launches() - graphs, 5);
    EXPECT_TRUE(got == expected) << "block size " << c.block_size;
    EXPECT_GT(got.logprobs.size(), 50u);
    if (c.kv_type != KvCacheType::kF16) continue;
    EXPECT_EQ(got.tokens, answer(*open_reference(options), requests).tokens);
  }
}

// In a pool so small that groups leave and come back in between, by a stream that graphs must wait for.
TEST_F(CudaGraphs, SwappingAndRecomputingChangeNothing) {
  EngineOptions options = small_options(TensorType::kQ4_1);
  options.deterministic = true;
  options.admission_reserve = AdmissionReserve::kOnePercent;  // looking ahead would admit nobody too many
  const std::vector<GenerationRequest> requests = {request(1, 30, 12, 2), request(2, 28, 12, 2),
                                                   request(3, 26, 12)};
  const Answer expected = answer(*open_with_graphs(options, false), requests);
  for (const auto mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute}) {
    for (const auto order : {emulation::StreamOrder::kWhenNeeded, emulation::StreamOrder::kAtOnce}) {
      emulation::settings().stream_order = order;
      options.num_kv_blocks = 13;
      options.preemption_mode = mode;
      const auto small = open_with_graphs(options, true);
      ASSERT_NE(small, nullptr);
      const std::int64_t graphs = emulation::num_graph_launches();
      EXPECT_TRUE(answer(*small, requests) == expected);
      EXPECT_GT(emulation::num_graph_launches(), graphs);
      EXPECT_EQ(small->kv_totals().swapped_out_blocks > 0, mode == PreemptionPolicy::kSwap);
    }
  }
}

// Contexts that grow past 255 tokens, where attention begins to cut them, and past 512, where it does if it
// is deterministic.
TEST_F(CudaGraphs, ContextsThatGrowPastACutChangeNothing) {
  for (const bool deterministic : {false, true}) {
    EngineOptions options = small_options(TensorType::kQ4_1);
    options.max_model_len = 512;
    options.num_kv_blocks = 128;
    options.max_num_batched_tokens = 512;
    options.max_num_seqs = 3;
    options.deterministic = deterministic;
    std::vector<GenerationRequest> requests = {request(1, 252, 6), request(2, 20, 3)};
    for (GenerationRequest& each : requests) each.sampling.logprobs = 1;
    const auto with = open_with_graphs(options, true), without = open_with_graphs(options, false);
    ASSERT_NE(with, nullptr);
    EXPECT_TRUE(answer(*with, requests) == answer(*without, requests));
  }
}

// From 64 rows on the library multiplies, which may not be captured when it is called for the first time.
TEST_F(CudaGraphs, HoldProductsOfTheLibrary) {
  EngineOptions options = small_options(TensorType::kF16);
  options.max_num_seqs = 64;
  options.num_kv_blocks = 128;
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < 64; ++i) {
    requests.push_back(request(i, 1, 3));
    requests.back().sampling.logprobs = 1;
  }
  const auto with = open_with_graphs(options, true), without = open_with_graphs(options, false);
  ASSERT_NE(with, nullptr);
  ASSERT_NE(without, nullptr);
  const std::int64_t graphs = emulation::num_graph_launches();
  EXPECT_TRUE(answer(*with, requests) == answer(*without, requests));
  EXPECT_GT(emulation::num_graph_launches(), graphs);
}

// Recorded since the model began to load: what the check of the device records comes before.
class Captures {
 public:
  std::int64_t count() {
    if (!begin_) begin_ = emulation::num_captures();
    return emulation::num_captures() - *begin_;
  }

 private:
  std::optional<std::int64_t> begin_;
};

// Every shape of steps, once: decodes of 1, 2, 4 and 8 rows, others of 2, 4, ... 64, one context each, since
// 128 tokens are never cut; then the draws of 1, 2, 4, ... 64 rows in two ways.
TEST_F(CudaGraphs, AreRecordedWhileTheModelLoadsWithProgress) {
  constexpr std::int64_t kSteps = 10, kAll = kSteps + 14;
  EngineOptions options = small_options(TensorType::kQ4_1);
  options.device = Device::kCuda;
  std::vector<double> fractions;
  std::set<std::int64_t> told;
  Captures captures;
  const auto engine = Engine::create(options, [&](double fraction) {
    fractions.push_back(fraction);
    told.insert(captures.count());
    return true;
  });
  ASSERT_TRUE(engine);
  EXPECT_EQ(captures.count(), kAll);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(fractions.back(), 1.0);
  for (std::int64_t count = 0; count < kSteps; ++count) EXPECT_TRUE(told.contains(count)) << count;
  EXPECT_TRUE(told.contains(kAll));
  run_together(**engine, {request(1, 5, 4), request(2, 6, 3)});
  EXPECT_EQ(captures.count(), kAll) << "recorded in a step";

  options.cuda_graphs = false;
  Captures without;
  ASSERT_TRUE(Engine::create(options, [&](double) { return without.count() == 0; }));
  EXPECT_EQ(without.count(), 0);
}

TEST_F(CudaGraphs, RecordingCanBeCancelled) {
  EngineOptions options = small_options(TensorType::kQ4_1);
  options.device = Device::kCuda;
  Captures captures;
  const auto engine = Engine::create(options, [&](double) { return captures.count() < 2; });
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(captures.count(), 2);
}

// What a decode step starts: its layers and its draws.
TEST_F(CudaGraphs, ADecodeStepIsTwoStarts) {
  const EngineOptions options = small_options(TensorType::kQ4_1);
  struct Starts {
    std::int64_t graphs, singles;
  };
  const auto starts_of_ten_decodes = [&](bool graphs) {
    const auto engine = open_with_graphs(options, graphs);
    Starts starts[2];
    for (const std::size_t index : {0u, 1u}) {
      const Starts before{emulation::num_graph_launches(), emulation::num_single_launches()};
      run_together(*engine, {request(1, 5, index == 0 ? 3 : 13)});
      starts[index] = {emulation::num_graph_launches() - before.graphs,
                       emulation::num_single_launches() - before.singles};
    }
    return Starts{starts[1].graphs - starts[0].graphs, starts[1].singles - starts[0].singles};
  };
  const Starts with = starts_of_ten_decodes(true), without = starts_of_ten_decodes(false);
  EXPECT_EQ(with.graphs, 20);
  EXPECT_EQ(with.singles, 0);
  EXPECT_EQ(without.graphs, 0);
  constexpr std::int64_t kLayers = 2, kFewestOfALayer = 5;
  EXPECT_GE(without.singles, 10 * (1 + kLayers * kFewestOfALayer));
}

// Each call between the first recording and the end of loading, in turn.
TEST_F(CudaGraphs, AFailureWhileRecordingEndsLoadingWithASentence) {
  EngineOptions options = small_options(TensorType::kQ4_1);
  options.max_num_seqs = 2;
  options.max_num_batched_tokens = 8;
  options.device = Device::kCuda;
  std::int64_t first = 0, num_calls = 0;
  for (int time = 0; time < 2; ++time) {  // the first time also what is done once
    const std::int64_t begin = emulation::num_calls();
    Captures captures;
    ASSERT_TRUE(Engine::create(options, [&](double) {  // the last time before the first graph
      if (captures.count() == 0) first = emulation::num_calls();
      return true;
    }));
    num_calls = emulation::num_calls() - first;
    first -= begin;
  }
  ASSERT_GT(num_calls, 40);
  std::int64_t recording_failed = 0;
  // Recording a graph is six calls beside those of its kernels.
  std::vector<std::int64_t> calls = {1, 2, 3};
  for (std::int64_t call = 0; call < num_calls; call += 17) calls.push_back(call);
  for (const std::int64_t call : calls) {
    emulation::fail_call(first + call, cudaErrorMemoryAllocation);
    const auto engine = Engine::create(options);
    if (engine) {  // it was a call that only looks how much memory is free, the last
      EXPECT_GE(call, num_calls - 8) << call;
      emulation::heal();
      emulation::settings().finds_races = false;
      continue;
    }
    const Error& error = engine.error();
    EXPECT_TRUE(error.code == ErrorCode::kOutOfMemory || error.code == ErrorCode::kDeviceLost)
        << error.message;
    EXPECT_NE(error.message.find("cudaErrorMemoryAllocation"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
    if (error.message.find("could not be recorded as a CUDA graph") != std::string::npos) ++recording_failed;
    emulation::heal();
    emulation::settings().finds_races = false;
  }
  EXPECT_GT(recording_failed, 0);
}

// A graph that cannot be started is a lost device, as a kernel that cannot.
TEST_F(CudaGraphs, AFailingStartEndsTheRequests) {
  const EngineOptions options = small_options(TensorType::kQ4_1);
  const auto engine = open_with_graphs(options, true);
  run_together(*engine, {request(1, 2, 1)});
  const std::int64_t begin = emulation::num_calls();
  run_together(*engine, {request(2, 2, 1)});
  const std::int64_t num_calls = emulation::num_calls() - begin;  // until the first decode step
  bool has_been_a_graph = false;
  for (std::int64_t call = num_calls; call < num_calls + 4 && !has_been_a_graph; ++call) {
    const auto other = open_with_graphs(options, true);
    run_together(*other, {request(1, 2, 1)});
    emulation::fail_call(call, cudaErrorIllegalAddress);
    const auto outputs = run_together(*other, {request(2, 2, 4)});
    ASSERT_TRUE(outputs[0].error.has_value());
    EXPECT_EQ(outputs[0].error->code, ErrorCode::kDeviceLost);
    has_been_a_graph = outputs[0].error->message.find("cudaGraphLaunch") != std::string::npos;
    emulation::heal();
    emulation::settings().finds_races = false;
  }
  EXPECT_TRUE(has_been_a_graph);
}

}  // namespace
}  // namespace octavo
