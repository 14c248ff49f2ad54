// The engine's and the sampler's options as command-line options: the same names, defaults and meanings for
// every command.
#pragma once

#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/sampling_params.h"
#include "engine/base/result.h"

namespace CLI {
class App;
}

namespace octavo::app {

struct EngineFlags {
  EngineOptions options;
  bool verbose = false;
  // Of the window.
  std::string recording = {};           // looked at without a model
  std::vector<std::string> files = {};  // to be opened
  bool new_window = false;              // also when one has these chats open
};

void add_engine_flags(CLI::App& command, EngineFlags& flags);
void add_sampling_flags(CLI::App& command, SamplingParams& sampling);

// Finds the model's file and checks the options: everything that can be refused before loading. What is
// refused is one sentence that names the option, of kind kInvalidArgument.
Result<EngineOptions> resolve(const EngineFlags& flags);

}  // namespace octavo::app
