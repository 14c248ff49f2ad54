#include "app/commands/start_engine.h"

#include <cstdlib>
#include <string>

#include "app/remote/remote_engine.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string states_text(const EngineDescription& description) {
  if (description.num_states == 0) return {};
  return ", " + std::to_string(description.num_states) + " recurrent states of " +
         mebibytes_text(description.bytes_per_state);
}

std::string windows_text(const EngineDescription& description) {
  if (description.num_window_blocks == 0) return {};
  return ", " + std::to_string(description.num_window_blocks) + " window blocks of " +
         mebibytes_text(description.bytes_per_window_block);
}

void describe(const EngineDescription& description, const Progress& progress) {
  progress.say(
      escape_for_message(description.model.name.empty() ? description.model.path : description.model.name) +
      ", " + description.model.quantisation + ": weights " + mebibytes_text(description.weight_bytes) +
      ", KV pool " + std::to_string(description.num_blocks) + " blocks of " +
      std::to_string(description.block_size) + " tokens, " +
      mebibytes_text(description.bytes_per_block * description.num_blocks) + windows_text(description) +
      ", host pool " + std::to_string(description.num_host_blocks) + " blocks" + states_text(description) +
      "; " + description.device + " " + description.isa + ", " + std::to_string(description.threads) +
      " threads");
  if (!description.notice.empty()) progress.say(description.notice);
}

Result<std::unique_ptr<Engine>> connect_to_model(const std::string& path, const Progress& progress) {
  RemoteEngineOptions options;
  OCTAVO_TRY(options.name, parse_remote_model(path));
  const char* const key = std::getenv("OPENAI_API_KEY");
  if (key != nullptr) options.key = key;
  auto engine = connect_remote_engine(options, [](double) { return !InterruptGuard::interrupted(); });
  if (engine)
    progress.say(escape_for_message((*engine)->description().model.name) + " at " + options.name.address);
  return engine;
}

}  // namespace

Result<std::unique_ptr<Engine>> start_engine(const EngineFlags& flags, Progress& progress,
                                             EnginePlace place) {
  if (is_remote_model(flags.options.model)) {
    if (!flags.sha256.empty()) {
      return Error{.code = ErrorCode::kInvalidArgument,
                   .message = "--sha256 is for a model's file, and this one runs on a server: leave it out",
                   .subject = "--sha256"};
    }
    if (place == EnginePlace::kAnywhere) return connect_to_model(flags.options.model, progress);
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = "--model must be a file here; remote models go with generate, chat and the window",
        .subject = "--model"};
  }
  OCTAVO_TRY(const EngineOptions options, resolve(flags));
  Result<std::unique_ptr<Engine>> engine = Engine::create(options, [&](double fraction) {
    progress.show_fraction("loading", fraction);
    return !InterruptGuard::interrupted();
  });
  progress.clear();
  if (engine.has_value()) describe((*engine)->description(), progress);
  return engine;
}

}  // namespace octavo::app
