// A model's file, opened and planned before a weight is read: what an engine and a text scorer are both made
// of.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/api/engine_options.h"
#include "engine/api/model_description.h"
#include "engine/base/result.h"
#include "engine/runner/model_runner.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

struct OpenedModel {
  ModelDescription description;
  runner::RunnerParts parts;  // with the backend that will compute
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
};

// Whatever is wrong with file or options shows here, before loading: sizing is arithmetic. `reserved_bytes`
// of the host's memory are left to others, who have not taken them yet. `options.model` is a path.
Result<OpenedModel> open_model(const EngineOptions& options, std::int64_t reserved_bytes = 0);

}  // namespace octavo
