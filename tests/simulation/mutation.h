// Defects put in on purpose, one at a time, at the borders of the engine core: in what reaches the runner, in
// what comes back from it, in the commands, in the events. A simulation that does not notice one is worth
// nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/api/event.h"
#include "engine/core/command.h"
#include "engine/runner/runner.h"

namespace octavo::simulation {

enum class Mutation : std::uint8_t {
  kNone,
  // In the plan, on its way to the runner.
  kDropBlockCopy,
  kSwapSourceAndTarget,
  kCopyAfterWriting,
  kDropSwapOut,
  kDropSwapIn,
  kCrossSwapIns,
  kSwapTableEntries,
  kShiftTable,
  kGiveBlockTwice,
  kStaleTable,
  kShiftRows,
  kSkipLastRow,
  kIgnoreSamplingSeed,
  kDrawSameOutput,
  // In what the runner gives back.
  kRepeatToken,
  kSwapTokens,
  kHideFailure,
  kHideInvalidLogits,
  kShiftPromptLogprobs,
  kDropBestCandidate,
  kCrossBeams,
  // In the commands.
  kLastInFirstOut,
  kLoseCancel,
  kCancelNeighbour,
  // In the events.
  kTwoEnds,
  kEventAfterEnd,
  kLoseEnd,
  kLoseToken,
  kLoseHeldText,
  kWrongFinishReason,
};

std::vector<Mutation> all_mutations();
std::string_view mutation_name(Mutation mutation);

// Sits between core and runner and applies the mutations that concern them; any other leaves it transparent.
class MutatedRunner final : public runner::Runner {
 public:
  MutatedRunner(runner::Runner& inner, Mutation mutation) : inner_(inner), mutation_(mutation) {}
  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override;
  bool begin(const scheduler::SchedulerOutput& step) override {
    return mutation_ == Mutation::kNone && inner_.begin(step);
  }
  Result<void> finish(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    return inner_.finish(step, output);
  }
  std::vector<SequenceId> settle(const scheduler::SchedulerOutput& step,
                                 std::span<const scheduler::CommittedToken> tokens) override {
    return inner_.settle(step, tokens);
  }

 private:
  void mutate_plan(scheduler::SchedulerOutput& plan);
  void mutate_drawn(runner::RunnerOutput& output);

  runner::Runner& inner_;
  const Mutation mutation_;
  std::vector<std::vector<BlockId>> tables_;  // of the mutated plan
  std::vector<SamplingParams> samplings_;     // of the mutated plan
  std::vector<BlockId> last_table_;
  std::vector<scheduler::BlockCopyOp> late_copies_;
};

std::vector<EngineCommand> mutate_commands(Mutation mutation, std::vector<EngineCommand> commands);
std::vector<EngineEvent> mutate_events(Mutation mutation, std::vector<EngineEvent> events);

}  // namespace octavo::simulation
