#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/engine/default_model.h"

namespace octavo {
namespace {

// Twenty requests that differ in prompt, length and decoding.
std::vector<GenerationRequest> twenty_requests() {
  const std::vector<std::string> texts = {
      "The capital of France is",
      "Once upon a time, in a small village by the sea,",
      "def fibonacci(n):\n",
      "Water boils at",
      "The three primary colours are",
      "A haiku about autumn:\n",
      "To bake bread you need flour, water, salt and",
      "The opposite of hot is",
      "In 1969, the first humans",
      "Olá, tudo bem? Meu nome é",
  };
  std::vector<GenerationRequest> requests;
  for (std::size_t index = 0; index < 20; ++index) {
    SamplingParams sampling{.temperature = 0.0,
                            .seed = index,
                            .max_tokens = 28 + static_cast<std::int32_t>(index % 5),
                            .ignore_eos = true};
    if (index >= 10) {
      sampling.temperature = 0.9;
      sampling.top_p = 0.95;
      sampling.top_k = static_cast<std::int32_t>(index % 3) * 20;
      sampling.min_p = index % 4 == 0 ? 0.02 : 0.0;
      sampling.repetition_penalty = index % 2 == 0 ? 1.1 : 1.0;
      sampling.presence_penalty = index % 5 == 0 ? 0.5 : 0.0;
      sampling.n = index == 13 ? 3 : 1;
    }
    const std::string& text = texts[index % texts.size()];
    if (index % 4 == 1) {
      requests.push_back({ChatPrompt{{{Role::kUser, text, {}}}}, sampling, {}});
    } else {
      requests.push_back(text_request(index < 10 ? text : text + " well,", sampling));
    }
  }
  return requests;
}

// What each request gives when nothing else runs, no block is shared and its prompt is computed in one piece.
const std::vector<RequestOutput>& answers_alone() {
  static const std::vector<RequestOutput> answers = [] {
    const auto engine = open_default_model({.enable_prefix_caching = false});
    std::vector<RequestOutput> alone;
    for (GenerationRequest& request : twenty_requests())
      alone.push_back(run_alone(*engine, std::move(request)));
    return alone;
  }();
  return answers;
}

void expect_same_answers(const std::vector<RequestOutput>& answers) {
  const auto& alone = answers_alone();
  ASSERT_EQ(answers.size(), alone.size());
  for (std::size_t request = 0; request < alone.size(); ++request) {
    ASSERT_FALSE(answers[request].error) << answers[request].error->message;
    ASSERT_EQ(answers[request].outputs.size(), alone[request].outputs.size());
    for (std::size_t index = 0; index < alone[request].outputs.size(); ++index) {
      const CompletionOutput &output = answers[request].outputs[index],
                             &expected = alone[request].outputs[index];
      EXPECT_EQ(output.token_ids, expected.token_ids) << "request " << request << ", output " << index;
      EXPECT_EQ(output.logprobs, expected.logprobs) << "request " << request << ", output " << index;
      EXPECT_EQ(output.text, expected.text);
    }
  }
}

TEST(Engine, TwentyRequestsTogetherGiveWhatEachGivesAlone) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model();
  expect_same_answers(run_together(*engine, twenty_requests()));
  expect_same_answers(run_together(*engine, twenty_requests()));  // now on a warm prefix cache
  EXPECT_GT(engine->kv_totals().prefix_hit_tokens, 0);
}

TEST(Engine, SmallChunksGiveTheSameTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.max_num_batched_tokens = 32});
  expect_same_answers(run_together(*engine, twenty_requests()));
}

TEST(Engine, OneThreadGivesTheSameTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.threads = 1});
  EXPECT_EQ(engine->description().threads, 1);
  expect_same_answers(run_together(*engine, twenty_requests()));
}

TEST(Engine, NoPrefixCacheGivesTheSameTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.enable_prefix_caching = false});
  expect_same_answers(run_together(*engine, twenty_requests()));
  EXPECT_EQ(engine->kv_totals().prefix_hit_tokens, 0);
}

TEST(Engine, PreemptionGivesTheSameTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 40,
                                          .max_num_seqs = 64,
                                          .preemption_mode = PreemptionPolicy::kRecompute,
                                          .admission_reserve = AdmissionReserve::kOnePercent});
  const auto answers = run_together(*engine, twenty_requests());
  expect_same_answers(answers);
  EXPECT_GT(engine->kv_totals().preempted_recompute, 0);
  EXPECT_LE(engine->kv_totals().peak_used_blocks, 40);
}

// The strongest statement about the KV cache: it changes nothing but time.
TEST(Engine, GreedyTextEqualsRecomputingEverythingAtEveryStep) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.enable_prefix_caching = false});
  const SamplingParams greedy{.temperature = 0.0, .max_tokens = 12, .ignore_eos = true};
  const RequestOutput cached = run_alone(*engine, text_request("The capital of France is", greedy));
  std::vector<TokenId> tokens = cached.prompt_token_ids;
  for (std::size_t position = 0; position < cached.outputs[0].token_ids.size(); ++position) {
    SamplingParams one = greedy;
    one.max_tokens = 1;
    const RequestOutput fresh = run_alone(*engine, {TokenPrompt{tokens}, one, {}});
    EXPECT_EQ(fresh.outputs[0].token_ids[0], cached.outputs[0].token_ids[position]);
    EXPECT_EQ(fresh.outputs[0].logprobs[0], cached.outputs[0].logprobs[position]);
    tokens.push_back(fresh.outputs[0].token_ids[0]);
  }
}

TEST(Engine, RequestsWithACommonStartReuseIt) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model();
  std::vector<TokenId> start;
  for (TokenId index = 0; index < 500; ++index) start.push_back(100 + (index * 7919) % 40000);
  const auto ask = [&](TokenId last) {
    std::vector<TokenId> tokens = start;
    for (TokenId index = 0; index < 12; ++index) tokens.push_back(last + index);
    return run_alone(*engine, {TokenPrompt{tokens}, {.temperature = 0.0, .max_tokens = 2}, {}});
  };
  const RequestOutput first = ask(1000);
  EXPECT_EQ(first.num_cached_tokens, 0);
  for (TokenId request = 0; request < 3; ++request) {
    const RequestOutput later = ask(2000 + 100 * request);
    EXPECT_GE(later.num_cached_tokens, 484);
    const auto work_us = [](const RequestOutput& answer) {
      return answer.metrics.ttft_us - answer.metrics.queue_us;
    };
    EXPECT_LT(work_us(later) * 5, work_us(first));
  }
}

// A stop string is found wherever tokens happen to end, and none of it is streamed.
TEST(Engine, StopStringsAcrossTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model();
  SamplingParams sampling{.temperature = 0.0, .max_tokens = 24, .ignore_eos = true};
  const std::string text =
      run_alone(*engine, text_request("The capital of France is", sampling)).outputs[0].text;
  ASSERT_GT(text.size(), 30u);
  for (std::size_t position = 3; position + 9 < text.size(); position += 5) {
    const std::string stop = text.substr(position, 9);
    sampling.stop = {stop};
    const CompletionOutput output =
        run_alone(*engine, text_request("The capital of France is", sampling)).outputs[0];
    EXPECT_EQ(output.text, text.substr(0, text.find(stop)));
    EXPECT_EQ(output.finish_reason, FinishReason::kStop);
    EXPECT_EQ(output.stop_reason, StopReason(stop));
  }
}

TEST(Engine, StreamedTextIsTheDecodingOfAllTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model();
  const RequestOutput answer = run_alone(
      *engine, text_request("Emoji: \U0001f600 \U0001f680 \U0001f40d", {.seed = 3, .max_tokens = 48}));
  EXPECT_EQ(answer.outputs[0].text,
            engine->tokenizer().decode(answer.outputs[0].token_ids, /*skip_special=*/true));
}

TEST(Engine, CancelEndsARequestAndFreesItsBlocks) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model();
  const RequestId request_id =
      engine->submit(text_request("Count to a thousand: 1, 2, 3,", {.max_tokens = 2000, .ignore_eos = true}));
  OutputCollector collector;
  collector.expect(request_id, 1);
  bool cancelled = false;
  while (!collector.done()) {
    for (const EngineEvent& event : engine->poll(std::chrono::seconds(1))) {
      collector.add(event);
      if (!cancelled && std::holds_alternative<TokensGenerated>(event)) {
        engine->cancel(request_id);
        cancelled = true;
      }
    }
  }
  const RequestOutput answer = collector.take().front();
  EXPECT_EQ(answer.outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_LT(answer.outputs[0].token_ids.size(), 2000u);
  const auto trace = engine->trace_since(0, 0);
  ASSERT_FALSE(trace.steps.empty());
  EXPECT_LT(trace.steps.size(), 2000u);
}

TEST(Engine, RefusesBadRequestsAndAnswersTheOthers) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.max_model_len = 64});
  std::vector<GenerationRequest> requests;
  requests.push_back(text_request(""));
  requests.push_back({TokenPrompt{std::vector<TokenId>(64, 5)}, {}, {}});
  requests.push_back(text_request("Hello", {.temperature = 0.0, .max_tokens = 4}));
  const auto answers = run_together(*engine, std::move(requests));
  EXPECT_EQ(answers[0].error->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(answers[1].error->code, ErrorCode::kTooLong);
  EXPECT_EQ(answers[2].outputs[0].token_ids.size(), 4u);
}

TEST(Engine, DescribesWhatItResolved) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine =
      open_default_model({.threads = 1, .num_kv_blocks = 77, .max_model_len = 1000, .max_num_seqs = 5});
  const EngineDescription& description = engine->description();
  EXPECT_EQ(description.model.architecture, "llama");
  EXPECT_EQ(description.model.num_layers, 30);
  EXPECT_EQ(description.model.vocabulary_size, 49152);
  EXPECT_TRUE(description.model.has_chat_template);
  EXPECT_EQ(description.device, "cpu");
  const std::set<std::string> known_isas = {"amx", "avx512_vnni", "avx512", "avx_vnni", "avx2", "portable"};
  EXPECT_TRUE(known_isas.contains(description.isa)) << description.isa;
  EXPECT_EQ(description.num_blocks, 77);
  EXPECT_EQ(description.block_size, 16);
  EXPECT_EQ(description.bytes_per_block,
            16 * 2 * 2 * 30 * 3 * 64);  // tokens, K and V, f16, layers, KV heads, head size
  EXPECT_EQ(description.max_model_len, 1000);
  EXPECT_EQ(description.max_num_seqs, 5);
  EXPECT_EQ(description.max_num_batched_tokens, 512);
  // All of the file but its vocabulary, and what a backend pads.
  const auto file_bytes = static_cast<double>(std::filesystem::file_size(model::default_model_path()));
  EXPECT_NEAR(static_cast<double>(description.weight_bytes), file_bytes, 0.1 * file_bytes);
  EXPECT_GT(description.load_ms, 0.0);
}

TEST(Engine, LoadingReportsProgressAndCanBeCancelled) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const EngineOptions options{.model = model::default_model_path().string()};
  double last = 0.0;
  ASSERT_TRUE(Engine::create(options, [&](double fraction) {
    EXPECT_GE(fraction, last);
    EXPECT_LE(fraction, 1.0);
    last = fraction;
    return true;
  }));
  EXPECT_GT(last, 0.9);
  const auto cancelled = Engine::create(options, [](double fraction) { return fraction < 0.3; });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
}

TEST(Engine, RefusesOptionsAndFilesInOneSentence) {
  const auto missing = Engine::create({.model = "/nonexistent/model.gguf"});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent/model.gguf"), std::string::npos);
  EXPECT_EQ(missing.error().message.find('\n'), std::string::npos);
  for (const double utilization : {0.0, -1.0, 1.5}) {
    const auto refused = Engine::create({.model = "x", .gpu_memory_utilization = utilization});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().subject, "gpu_memory_utilization");
  }
}

}  // namespace
}  // namespace octavo
