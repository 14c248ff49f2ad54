// The offline API: a model from options, prompts in, whole answers out.
//
//   octavo::LLM llm({.model = "model.gguf", .max_model_len = 752});
//   auto outputs = llm.generate({"Hello, my name is", "The capital of France is"}, {.temperature = 0});
//   if (!outputs) ...outputs.error().message...
//   auto rows = llm.embed(texts, {.pooling = octavo::Pooling::kMean});
//
// Thread: one caller at a time. An LLM that could not be built keeps the reason: every call returns it.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/api/model_description.h"
#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo {

class Engine;

class LLM {
 public:
  explicit LLM(const EngineOptions& options);
  ~LLM();
  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;

  // Why it could not be built; nullopt when it works.
  const std::optional<Error>& error() const { return error_; }

  // REQUIRES: !error()
  const EngineDescription& description() const;
  std::int32_t max_blocks_per_sequence() const { return description().max_blocks_per_sequence(); }
  KvTotals kv_totals() const;

  // All prompts together, one batch of requests; outputs in their order. A request that fails carries its own
  // error.
  Result<std::vector<RequestOutput>> generate(std::span<const std::string> prompts,
                                              const SamplingParams& params = {});
  Result<std::vector<RequestOutput>> generate(std::initializer_list<std::string> prompts,
                                              const SamplingParams& params = {});
  // One prompt is a list of one.
  Result<std::vector<RequestOutput>> generate(std::string_view prompt, const SamplingParams& params = {});
  Result<std::vector<RequestOutput>> generate(std::vector<GenerationRequest> requests);
  // A row of numbers for each text (RequestOutput::embedding), in their order. A text that fails carries its
  // own error.
  Result<std::vector<RequestOutput>> embed(std::span<const std::string> texts,
                                           const EmbeddingParams& params = {});
  Result<std::vector<RequestOutput>> chat(std::vector<ChatMessage> messages,
                                          const SamplingParams& params = {});

 private:
  std::unique_ptr<Engine> engine_;
  std::optional<Error> error_;
};

}  // namespace octavo
