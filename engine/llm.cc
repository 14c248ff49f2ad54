#include "engine/llm.h"

#include <chrono>
#include <utility>

#include "engine/engine.h"
#include "engine/model/model_files.h"
#include "engine/output_collector.h"

namespace octavo {
namespace {

Result<std::unique_ptr<Engine>> open_engine(EngineOptions options) {
  OCTAVO_TRY(const auto path, model::find_model(options.model));
  options.model = path.string();
  return Engine::create(options);
}

GenerationRequest text_request(std::string_view prompt, const SamplingParams& params) {
  return {.prompt = TextPrompt{std::string(prompt)}, .sampling = params};
}

}  // namespace

LLM::LLM(const EngineOptions& options) {
  auto engine = open_engine(options);
  if (engine) {
    engine_ = *std::move(engine);
  } else {
    error_ = std::move(engine).error();
  }
}

LLM::~LLM() = default;
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;

const EngineDescription& LLM::description() const { return engine_->description(); }

KvTotals LLM::kv_totals() const { return engine_->kv_totals(); }

Result<std::vector<RequestOutput>> LLM::generate(std::span<const std::string> prompts,
                                                 const SamplingParams& params) {
  std::vector<GenerationRequest> requests;
  for (const std::string& prompt : prompts) requests.push_back(text_request(prompt, params));
  return generate(std::move(requests));
}

Result<std::vector<RequestOutput>> LLM::generate(std::initializer_list<std::string> prompts,
                                                 const SamplingParams& params) {
  return generate(std::span<const std::string>(prompts.begin(), prompts.size()), params);
}

Result<std::vector<RequestOutput>> LLM::generate(std::string_view prompt, const SamplingParams& params) {
  std::vector<GenerationRequest> requests;
  requests.push_back(text_request(prompt, params));
  return generate(std::move(requests));
}

Result<std::vector<RequestOutput>> LLM::chat(std::vector<ChatMessage> messages,
                                             const SamplingParams& params) {
  std::vector<GenerationRequest> requests;
  requests.push_back({.prompt = ChatPrompt{std::move(messages)}, .sampling = params});
  return generate(std::move(requests));
}

Result<std::vector<RequestOutput>> LLM::embed(std::span<const std::string> texts,
                                              const EmbeddingParams& params) {
  std::vector<GenerationRequest> requests;
  for (const std::string& text : texts) {
    requests.push_back(text_request(text, {}));
    requests.back().embedding = params;
  }
  return generate(std::move(requests));
}

Result<std::vector<RequestOutput>> LLM::generate(std::vector<GenerationRequest> requests) {
  if (error_) return *error_;
  std::vector<std::int32_t> num_outputs;
  for (const GenerationRequest& request : requests)
    num_outputs.push_back(request.embedding ? 0 : request.sampling.num_outputs());
  const std::vector<RequestId> request_ids = engine_->submit_all(std::move(requests));
  OutputCollector collector;
  for (std::size_t index = 0; index < request_ids.size(); ++index) {
    collector.expect(request_ids[index], num_outputs[index]);
  }
  while (!collector.done()) {
    for (const EngineEvent& event : engine_->poll(std::chrono::seconds(1))) collector.add(event);
  }
  return collector.take();
}

}  // namespace octavo
