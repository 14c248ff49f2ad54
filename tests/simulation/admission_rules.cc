#include "tests/simulation/admission_rules.h"

#include <algorithm>
#include <variant>

#include "engine/scheduler/block_forecast.h"

namespace octavo::simulation {
namespace {

constexpr std::uint64_t kUnknown = 0, kPartial = 1;  // of held_
constexpr std::int32_t kNowhere = -1;

bool has_kind(const StepView& step, BlockEventKind kind) {
  return std::ranges::find(step.block_events, kind, &BlockEvent::kind) != step.block_events.end();
}

// What the commands before the plan did.
std::span<const BlockEvent> events_of_commands(const StepView& step) {
  const auto begin = std::ranges::find(step.block_events, BlockEventKind::kStepBegin, &BlockEvent::kind);
  return step.block_events.first(static_cast<std::size_t>(begin - step.block_events.begin()));
}

bool is_let_go(std::span<const BlockEvent> events, std::int32_t block) {
  return std::ranges::any_of(events, [&](const BlockEvent& event) {
    return event.kind == BlockEventKind::kUnref && event.block == block && event.aux == 0;
  });
}

// Blocks in use when the plan decides who starts. Until then what follows the commands only takes blocks, in
// a step that preempts nobody.
std::int32_t num_used_at_admission(const StepView& step) {
  std::int32_t num_used = step.before.figures.used_blocks;
  for (const BlockEvent& event : events_of_commands(step)) {
    if (event.kind == BlockEventKind::kUnref && event.aux == 0) --num_used;
  }
  for (const BlockEvent& event : step.block_events) {
    const bool refers = event.kind == BlockEventKind::kHit || event.kind == BlockEventKind::kShare ||
                        event.kind == BlockEventKind::kPin;
    if (event.kind == BlockEventKind::kAlloc || (refers && event.aux == 1)) ++num_used;
  }
  return num_used;
}

bool keeps_pins(const KvSnapshot& snapshot) {
  return std::ranges::any_of(snapshot.blocks, [](const BlockSnapshot& block) {
    return block.state == BlockState::kCached && block.retention == RetentionClass::kPinned;
  });
}

bool ends_for_want_of_memory(const EngineEvent& event) {
  const auto* finished = std::get_if<OutputFinished>(&event);
  return finished && !finished->detail.empty();
}

}  // namespace

AdmissionRules::AdmissionRules(const Script& script, const SimulatedRunner& runner, Problem& problem)
    : script_(script),
      runner_(runner),
      problem_(problem),
      has_both_lines_(has_both_lines(script)),
      held_(static_cast<std::size_t>(script.options.num_blocks), kUnknown) {}

void AdmissionRules::check(const StepView& step, std::span<const AdmittedMiss> misses) {
  check_waiting(step);
  for (const AdmittedMiss& admitted : misses) check_miss(step, admitted);
  note_evictions(step);
  for (const EngineEvent& event : step.events) {
    if (const auto* admission = std::get_if<RequestAdmitted>(&event))
      salts_.insert(runner_.asked(admission->request_id).salt);
  }
}

bool AdmissionRules::reads_cache(const ScriptedRequest& asked) const {
  return script_.options.enable_prefix_caching && !asked.needs_all_rows() &&
         script_.options.memory_manager == MemoryManager::kPaged;
}

// Of the prefixes of a prompt that may be found: its last token is always computed.
std::vector<std::uint64_t> AdmissionRules::hashes_of(const ScriptedRequest& asked, std::int32_t salt) const {
  std::vector<std::uint64_t> hashes;
  std::uint64_t prefix_hash = ToyModel::root_of(salt);
  for (const TokenId token : asked.prompt)
    hashes.push_back(prefix_hash = ToyModel::extend(prefix_hash, token));
  hashes.pop_back();
  return hashes;
}

// The findable block that held just these slots before the step, if any.
std::int32_t AdmissionRules::block_with(const StepView& step, std::span<const std::uint64_t> hashes) const {
  for (std::size_t index = 0; index < step.before.blocks.size(); ++index) {
    const BlockSnapshot& block = step.before.blocks[index];
    if (block.findable && block.filled == static_cast<std::int32_t>(hashes.size()) &&
        held_[index] == hashes.back())
      return static_cast<std::int32_t>(index);
  }
  return kNowhere;
}

// ---- nobody waits without a reason

// Whoever waits behind it came after it was begun.
void AdmissionRules::check_begun_ahead(const StepView& step) {
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    if (sequence.state != SequenceState::kRunning)
      problem_.note(sequence.request_id, "waits while a step is begun that it has no part in");
  }
}

void AdmissionRules::check_waiting(const StepView& step) {
  const auto waiting = std::ranges::find_if(step.after.sequences, [](const SequenceSnapshot& sequence) {
    return sequence.state != SequenceState::kRunning;
  });
  if (step.is_ahead) return check_begun_ahead(step);
  if (waiting == step.after.sequences.end() || !may_judge(step, *waiting)) return;
  const scheduler::SchedulerOptions& options = script_.options;
  const ScriptedRequest& asked = runner_.asked(waiting->request_id);
  const Runners runners = runners_of(step, asked);
  const bool has_seat =
      runners.num_sequences == 0 ||
      runners.num_sequences < std::min(most_running_sequences(options), options.max_num_batched_tokens);
  if (runners.has_groups || runners.may_have_start || !has_seat) return;
  const std::int32_t num_required = (waiting->num_tokens + options.block_size - 1) / options.block_size;
  const std::int32_t num_left =
      options.num_blocks - num_used_at_admission(step) - num_required +
      (reads_cache(asked) && !memory_ends_exactly(options) ? num_live_hits(step, asked) : 0);
  if (num_left >= most_to_leave(runners.num_sequences))
    problem_.note(waiting->request_id, "waits though it fits");
}

// By who starts beside so many sequences. A look ahead leaves less where it knows who ends.
std::int32_t AdmissionRules::most_to_leave(std::int32_t num_running) const {
  const scheduler::SchedulerOptions& options = script_.options;
  if (num_running == 0) return 0;
  const std::int32_t one_percent = (options.num_blocks + 99) / 100;
  switch (options.admission_reserve) {
    case AdmissionReserve::kLookAhead:
      return (num_running + 1) * ((scheduler::kStepsAhead + options.block_size - 1) / options.block_size);
    case AdmissionReserve::kBlockPerSequence: return one_percent + num_running;
    case AdmissionReserve::kOnePercent: return one_percent;
  }
  return 0;
}

// Whether what kept the first in the queue from starting can only have been the pool, seats or a peer. (Where
// steps have a target, rows may be left and no time for them.)
bool AdmissionRules::may_judge(const StepView& step, const SequenceSnapshot& waiting) const {
  const scheduler::SchedulerOptions& options = script_.options;
  if (options.memory_manager != MemoryManager::kPaged || has_both_lines_ ||
      options.batching_policy != BatchingPolicy::kIteration ||
      options.admit_after_preemption != AdmissionAfterPreemption::kResumed)
    return false;
  const auto begin = std::ranges::find(step.block_events, BlockEventKind::kStepBegin, &BlockEvent::kind);
  const bool has_rows_left = begin != step.block_events.end() && begin->aux < options.max_num_batched_tokens;
  const bool is_plain = !step.device_failed && !step.releases_pins &&
                        !has_kind(step, BlockEventKind::kPreempt) &&
                        !has_kind(step, BlockEventKind::kResume) && !keeps_pins(step.before) &&
                        !keeps_pins(step.after) && std::ranges::none_of(step.events, ends_for_want_of_memory);
  const bool is_new = waiting.state == SequenceState::kWaiting && waiting.num_computed_tokens == 0 &&
                      waiting.num_tokens == waiting.num_prompt_tokens;
  const bool may_be_late = options.target_step_us > 0 &&
                           std::ranges::find(step.before.sequences, SequenceState::kRunning,
                                             &SequenceSnapshot::state) != step.before.sequences.end();
  return has_rows_left && !may_be_late && is_plain && is_new &&
         runner_.asked(waiting.request_id).num_outputs() == 1;
}

AdmissionRules::Runners AdmissionRules::runners_of(const StepView& step,
                                                   const ScriptedRequest& waiting) const {
  Runners runners;
  const auto add = [&](const ScriptedRequest& asked, bool is_caught_up) {
    runners.num_sequences += 1;
    runners.has_groups |= asked.num_outputs() > 1;
    runners.may_have_start |= !is_caught_up && may_share(asked, waiting);
  };
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    add(runner_.asked(sequence.request_id), sequence.num_tokens > sequence.num_prompt_tokens &&
                                                sequence.num_tokens - sequence.num_computed_tokens <= 1);
  }
  for (const EngineEvent& event : step.events) {
    if (const auto* admission = std::get_if<RequestAdmitted>(&event))
      add(runner_.asked(admission->request_id), false);
  }
  return runners;
}

// A full block, be it with the help of an answer.
bool AdmissionRules::may_share(const ScriptedRequest& a, const ScriptedRequest& b) const {
  if (a.salt != b.salt) return false;
  const auto differs = std::ranges::mismatch(a.prompt, b.prompt).in1;
  return differs == a.prompt.end() || differs - a.prompt.begin() >= script_.options.block_size;
}

// Blocks of the prompt's start that somebody has in use, at least.
std::int32_t AdmissionRules::num_live_hits(const StepView& step, const ScriptedRequest& asked) const {
  const std::vector<std::uint64_t> hashes = hashes_of(asked, asked.salt);
  const auto block_size = static_cast<std::size_t>(script_.options.block_size);
  const auto commands = events_of_commands(step);
  std::int32_t num_live = 0;
  for (std::size_t begin = 0; begin + block_size <= hashes.size(); begin += block_size) {
    const std::int32_t block = block_with(step, std::span(hashes).subspan(begin, block_size));
    if (block == kNowhere) break;
    const bool is_live = step.before.blocks[static_cast<std::size_t>(block)].state == BlockState::kUsed;
    if (is_live && !is_let_go(commands, block)) ++num_live;
  }
  return num_live;
}

// ---- why a hit ended

void AdmissionRules::check_miss(const StepView& step, const AdmittedMiss& admitted) {
  const ScriptedRequest& asked = runner_.asked(admitted.request_id);
  const auto commands = events_of_commands(step);
  const bool was_changed = std::ranges::any_of(commands, [](const BlockEvent& event) {
    return event.kind == BlockEventKind::kSeal || event.kind == BlockEventKind::kFree;
  });
  if (!reads_cache(asked) || was_changed || has_kind(step, BlockEventKind::kEvict)) return;
  if (admitted.miss.cause == MissCause::kNoCheckpoint && script_.options.num_states > 0) return;
  if (admitted.miss.cause == MissCause::kBehindWindow && script_.options.window > 0) return;
  const std::vector<std::uint64_t> hashes = hashes_of(asked, asked.salt);
  const auto block_size = static_cast<std::size_t>(script_.options.block_size);
  std::size_t begin = 0;
  while (begin + block_size <= hashes.size() &&
         block_with(step, std::span(hashes).subspan(begin, block_size)) != kNowhere) {
    begin += block_size;
  }
  const auto rest = std::span(hashes).subspan(begin, std::min(block_size, hashes.size() - begin));
  std::size_t num_equal = 0;
  for (std::size_t index = 0; index < step.before.blocks.size() && !rest.empty(); ++index) {
    const BlockSnapshot& block = step.before.blocks[index];
    const auto held = runner_.contents(BlockId{static_cast<std::int32_t>(index)})
                          .first(static_cast<std::size_t>(block.findable ? block.filled : 0));
    const auto differs = std::ranges::mismatch(held, rest).in1;
    num_equal = std::max(num_equal, static_cast<std::size_t>(differs - held.begin()));
  }
  const PrefixMiss& miss = admitted.miss;
  if (!rest.empty() && miss.position != static_cast<std::int32_t>(begin + num_equal))
    problem_.note(admitted.request_id, "a wrong place at which its hit ended");
  if (is_of_evicted(miss, rest)) return;
  MissCause cause = MissCause::kFirstUse;
  if (num_equal == rest.size()) {
    cause = MissCause::kNone;
  } else if (num_equal > 0) {
    cause = MissCause::kDifferingToken;
  } else if (begin == 0 && rest.size() == block_size && is_under_other_salt(step, asked)) {
    cause = MissCause::kOtherSalt;
  }
  if (miss.cause != cause) problem_.note(admitted.request_id, "a wrong reason why its hit ended");
}

// What was given up latest is surely remembered; what was before, perhaps.
bool AdmissionRules::is_of_evicted(const PrefixMiss& miss, std::span<const std::uint64_t> rest) const {
  const bool is_full = rest.size() == static_cast<std::size_t>(script_.options.block_size);
  const auto found = is_full ? evicted_.find(rest.back()) : evicted_.end();
  if (miss.cause != MissCause::kEvicted) {
    if (found != evicted_.end() && found->first == newest_evicted_)
      problem_.note("a hit ended at what was evicted, and another reason is told");
    return false;
  }
  const bool is_right = found != evicted_.end() && found->second.step == miss.evicted_step &&
                        found->second.by == miss.evicted_by;
  if (!is_right && !unknown_evictions_.contains(miss.evicted_step))
    problem_.note("a hit is said to have ended at what was evicted, wrongly");
  return true;
}

bool AdmissionRules::is_under_other_salt(const StepView& step, const ScriptedRequest& asked) const {
  const auto block_size = static_cast<std::size_t>(script_.options.block_size);
  return std::ranges::any_of(salts_, [&](std::int32_t salt) {
    if (salt == asked.salt) return false;
    const std::vector<std::uint64_t> hashes = hashes_of(asked, salt);
    return block_with(step, std::span(hashes).first(block_size)) != kNowhere;
  });
}

void AdmissionRules::note_evictions(const StepView& step) {
  for (const BlockEvent& event : step.block_events) {
    if (event.kind != BlockEventKind::kEvict) continue;
    const std::uint64_t held = held_[static_cast<std::size_t>(event.block)];
    newest_evicted_ = held;
    if (held == kUnknown) unknown_evictions_.insert(event.step);
    if (held > kPartial) evicted_[held] = {event.step, event.sequence};
  }
  for (std::size_t index = 0; index < held_.size(); ++index) {
    const BlockSnapshot& block = step.after.blocks[index];
    const bool is_full = block.filled == script_.options.block_size;
    held_[index] = !block.findable ? kUnknown
                   : is_full       ? runner_.contents(BlockId{static_cast<std::int32_t>(index)}).back()
                                   : kPartial;
  }
}

}  // namespace octavo::simulation
