// The engine's and the sampler's options as command-line options: the same names, defaults and meanings for
// every command.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/sampling_advice.h"
#include "engine/api/sampling_params.h"
#include "engine/base/result.h"

namespace CLI {
class App;
}

namespace octavo::app {

struct EngineFlags {
  EngineOptions options;
  bool verbose = false;
  bool downloads = false;   // a model that is not here
  std::string sha256 = {};  // that its file must have; empty: any
  // Of the window.
  std::string recording = {};           // looked at without a model
  std::vector<std::string> files = {};  // to be opened
  bool new_window = false;              // also when one has these chats open
};

void add_engine_flags(CLI::App& command, EngineFlags& flags);
// Of these, where and in which numbers a model computes.
void add_computing_flags(CLI::App& command, EngineOptions& options);
void add_sampling_flags(CLI::App& command, SamplingParams& sampling);
// Of `advice`, what the person gave `command` no option for. REQUIRES: add_sampling_flags(command), parsed
SamplingAdvice advice_where_not_given(SamplingAdvice advice, const CLI::App& command);
// What the chat template is told, as JSON: parse_template_values().
void add_template_flag(CLI::App& command, std::optional<std::string>& values);

// An option that other commands have, and a command cannot use.
struct RefusedOption {
  std::string_view name;
  std::string_view why;  // goes on after the name and a colon, and says what to use instead
};

// Takes these off what `command` offers. Whoever gives one all the same is told why, as for any wrong option.
void refuse_options(CLI::App& command, std::span<const RefusedOption> refused);

// Checks the options and finds the model's file, or downloads it: everything that can be refused before
// loading. What is refused is one sentence that names the option, of kind kInvalidArgument.
Result<EngineOptions> resolve(const EngineFlags& flags);

}  // namespace octavo::app
