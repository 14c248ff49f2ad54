// Options to a running engine, with the sentences that people see on the way.
#pragma once

#include <memory>

#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "engine/base/result.h"
#include "engine/engine.h"

namespace octavo::app {

enum class EnginePlace {
  kHere,      // a model file alone
  kAnywhere,  // or a model that runs elsewhere, named http://ADDRESS/v1#NAME; OPENAI_API_KEY is its key
};

// Ctrl+C while the model loads gives kCancelled (when an InterruptGuard lives).
Result<std::unique_ptr<Engine>> start_engine(const EngineFlags& flags, Progress& progress,
                                             EnginePlace place = EnginePlace::kHere);

}  // namespace octavo::app
