// The default model for tests, and what tests need to run requests through it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/model/model_files.h"
#include "engine/output_collector.h"

// Tests of real answers need the model that packaging/setup fetches.
#define OCTAVO_NEEDS_DEFAULT_MODEL()                                                               \
  if (!std::filesystem::exists(octavo::model::default_model_path())) {                             \
    GTEST_SKIP() << "the default model is not at " << octavo::model::default_model_path().string() \
                 << ": run packaging/setup";                                                       \
  }                                                                                                \
  static_assert(true)

namespace octavo {

// Without a target for a step: which requests run together, and so what is preempted, is no matter of the
// machine.
inline std::unique_ptr<Engine> open_untimed(EngineOptions options) {
  options.target_step_ms = 0;
  auto engine = Engine::create(options);
  if (!engine) throw std::runtime_error(engine.error().message);
  return *std::move(engine);
}

inline std::unique_ptr<Engine> open_default_model(EngineOptions options = {}) {
  options.model = octavo::model::default_model_path().string();
  return open_untimed(std::move(options));
}

inline std::vector<RequestOutput> run_together(Engine& engine, std::vector<GenerationRequest> requests) {
  std::vector<std::int32_t> num_outputs;
  for (const GenerationRequest& request : requests)
    num_outputs.push_back(request.embedding ? 0 : request.sampling.num_outputs());
  const std::vector<RequestId> request_ids = engine.submit_all(std::move(requests));
  OutputCollector collector;
  for (std::size_t index = 0; index < request_ids.size(); ++index)
    collector.expect(request_ids[index], num_outputs[index]);
  while (!collector.done()) {
    for (const EngineEvent& event : engine.poll(std::chrono::seconds(1))) collector.add(event);
  }
  return collector.take();
}

inline RequestOutput run_alone(Engine& engine, GenerationRequest request) {
  std::vector<GenerationRequest> requests;
  requests.push_back(std::move(request));
  return run_together(engine, std::move(requests)).front();
}

inline GenerationRequest text_request(std::string text, SamplingParams sampling = {}) {
  return {.prompt = TextPrompt{std::move(text)}, .sampling = std::move(sampling), .cache_salt = {}};
}

}  // namespace octavo
