#include "app/commands/start_engine.h"

#include <string>

#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string states_text(const EngineDescription& description) {
  if (description.num_states == 0) return {};
  return ", " + std::to_string(description.num_states) + " recurrent states of " +
         mebibytes_text(description.bytes_per_state);
}

void describe(const EngineDescription& description, const Progress& progress) {
  progress.say(
      escape_for_message(description.model.name.empty() ? description.model.path : description.model.name) +
      ", " + description.model.quantisation + ": weights " + mebibytes_text(description.weight_bytes) +
      ", KV pool " + std::to_string(description.num_blocks) + " blocks of " +
      std::to_string(description.block_size) + " tokens, " +
      mebibytes_text(description.bytes_per_block * description.num_blocks) + ", host pool " +
      std::to_string(description.num_host_blocks) + " blocks" + states_text(description) + "; " +
      description.device + " " + description.isa + ", " + std::to_string(description.threads) + " threads");
  if (!description.notice.empty()) progress.say(description.notice);
}

}  // namespace

Result<std::unique_ptr<Engine>> start_engine(const EngineFlags& flags, Progress& progress) {
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
