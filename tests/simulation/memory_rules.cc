#include "tests/simulation/memory_rules.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <variant>

#include "engine/scheduler/block_forecast.h"

namespace octavo::simulation {
namespace {

constexpr RequestId kEveryRequest{~std::uint64_t{0}};
constexpr std::int32_t kEveryOutput = std::numeric_limits<std::int32_t>::max();

// None: it is not there.
std::optional<SequenceState> state_in(const KvSnapshot& snapshot, const SequenceSnapshot& sequence) {
  const auto found =
      std::ranges::find(snapshot.sequences, sequence.sequence_id, &SequenceSnapshot::sequence_id);
  if (found == snapshot.sequences.end()) return std::nullopt;
  return found->state;
}

bool has_kind(const StepView& step, BlockEventKind kind) {
  return std::ranges::find(step.block_events, kind, &BlockEvent::kind) != step.block_events.end();
}

// Some sequences of a request, and their physical blocks, each once, as far as they hold KV.
struct Memory {
  std::int32_t num_sequences = 0;
  std::int32_t num_blocks = 0;
  bool has_many_uncomputed = false;  // some sequence has more than its newest token to compute
  bool has_waiting = false;          // some sequence has no block yet: it waits for a sibling
};

template <class Predicate>
Memory memory_of(const KvSnapshot& snapshot, std::int32_t block_size, Predicate is_meant) {
  Memory memory;
  std::unordered_set<std::int32_t> blocks;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (!is_meant(sequence)) continue;
    ++memory.num_sequences;
    memory.has_waiting |= sequence.block_table.empty();
    memory.has_many_uncomputed |= sequence.num_tokens - sequence.num_computed_tokens > 1;
    const std::int32_t num_blocks = (sequence.num_computed_tokens + block_size - 1) / block_size;
    for (std::int32_t index = 0; index < num_blocks; ++index)
      blocks.insert(sequence.block_table.at(static_cast<std::size_t>(index)).value);
  }
  memory.num_blocks = static_cast<std::int32_t>(blocks.size());
  return memory;
}

// Blocks that a sequence's tokens came to fill in the step, but for the first one: of accepted guesses.
std::int32_t num_blocks_ahead(const StepView& step, const SequenceSnapshot& before, std::int32_t block_size) {
  const auto after =
      std::ranges::find(step.after.sequences, before.sequence_id, &SequenceSnapshot::sequence_id);
  if (after == step.after.sequences.end()) return 0;
  const auto num_blocks = [&](const SequenceSnapshot& sequence) {
    return (sequence.num_computed_tokens + block_size - 1) / block_size;
  };
  return std::max(0, num_blocks(*after) - num_blocks(before) - 1);
}

// Blocks that can be taken.
std::int32_t num_available(const KvSnapshot& snapshot) {
  return static_cast<std::int32_t>(std::ranges::count_if(snapshot.blocks, [](const BlockSnapshot& block) {
    const bool can_go = block.state == BlockState::kCached && block.retention != RetentionClass::kPinned;
    return block.state == BlockState::kFree || can_go;
  }));
}

// Who is alone may have the place of what is pinned: then all pins are released, and none stayed.
bool released_pins_for_progress(const StepView& step) {
  const auto is_pinned = [](const BlockSnapshot& block) {
    return block.state == BlockState::kCached && block.retention == RetentionClass::kPinned;
  };
  for (std::size_t index = 0; index < step.before.blocks.size(); ++index) {
    const BlockSnapshot &before = step.before.blocks[index], &after = step.after.blocks[index];
    if (is_pinned(before) && is_pinned(after) && before.last_step == after.last_step) return false;
  }
  return std::ranges::any_of(step.before.blocks, is_pinned);
}

}  // namespace

void MemoryRules::check(const StepView& step) {
  if (has_kind(step, BlockEventKind::kEvict)) check_evictions(step);
  check_watermark(step);
  const RequestPreempted* previous_preemption = nullptr;
  for (const EngineEvent& event : step.events) {
    if (const auto* preemption = std::get_if<RequestPreempted>(&event)) {
      const bool has_paused_more =
          previous_preemption && previous_preemption->request_id == preemption->request_id;
      check_swap_out(step, preemption->request_id, preemption->first_output_index,
                     has_paused_more ? previous_preemption->first_output_index : kEveryOutput);
      previous_preemption = preemption;
    }
    const auto* admission = std::get_if<RequestAdmitted>(&event);
    if (!admission || !reads_cache(runner_.asked(admission->request_id))) continue;
    check_hit(step, *admission);
    check_double_work(step, *admission);
  }
  check_left_behind(step);
  for (const SimulatedRunner::Drafted& drafted : step.drafted) check_draft(step, drafted);
  check_nothing_ahead(step.after);
  check_windows(step.after);
  RequestId previous{};
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    if (sequence.state != SequenceState::kSwapped || sequence.request_id == previous) continue;
    check_swap_in(step, previous = sequence.request_id);
  }
}

// ---- what is given up

// Free blocks are taken before any contents are given up.
void MemoryRules::check_evictions(const StepView& step) {
  std::vector<bool> has_child(step.before.blocks.size());
  for (const BlockSnapshot& block : step.before.blocks) {
    if (block.parent >= 0) has_child[static_cast<std::size_t>(block.parent)] = true;
  }
  std::int32_t num_free = step.before.figures.free_blocks;
  for (const BlockEvent& event : step.block_events) {
    if (event.kind == BlockEventKind::kAlloc) --num_free;
    if (event.kind == BlockEventKind::kFree) ++num_free;
    if (event.kind != BlockEventKind::kEvict) continue;
    if (event.sequence != 0 && num_free > 0) problem_.note("contents were given up while a block was free");
    ++num_free;
    if (!step.releases_pins && !released_pins_for_progress(step))
      check_eviction(step, static_cast<std::size_t>(event.block), has_child);
  }
}

// The lowest class first, and within it the least recently used leaf: nothing that should have gone before
// what was evicted is still there.
void MemoryRules::check_eviction(const StepView& step, std::size_t evicted,
                                 const std::vector<bool>& has_child) {
  const auto& before = step.before.blocks;
  if (before[evicted].state != BlockState::kCached) return;
  if (before[evicted].retention == RetentionClass::kPinned)
    return problem_.note("a pinned block was evicted");
  const auto order = [](const BlockSnapshot& block) { return std::tuple(block.retention, block.last_step); };
  for (std::size_t index = 0; index < before.size(); ++index) {
    const BlockSnapshot& after = step.after.blocks[index];
    const bool could_go = before[index].state == BlockState::kCached && !has_child[index] &&
                          before[index].retention != RetentionClass::kPinned;
    const bool stayed = after.state == BlockState::kCached && order(after) == order(before[index]);
    if (could_go && stayed && order(before[index]) < order(before[evicted])) {
      return problem_.note("block " + std::to_string(evicted) + " was evicted before block " +
                           std::to_string(index));
    }
  }
}

// ---- what is left free

// Whoever starts beside others leaves what the script's reserve says, and what groups that compute their
// prompt will need when they fork.
void MemoryRules::check_watermark(const StepView& step) {
  // (With two lines, who starts need not be the newest.)
  if (script_.options.memory_manager != MemoryManager::kPaged || has_both_lines_) return;
  const bool starts = has_kind(step, BlockEventKind::kResume) ||
                      std::ranges::any_of(step.events, [](const EngineEvent& event) {
                        return std::holds_alternative<RequestAdmitted>(event);
                      });
  if (!starts) return;
  RequestId newest{};
  for (const SequenceSnapshot& sequence : step.after.sequences) {
    if (sequence.state == SequenceState::kRunning) newest = std::max(newest, sequence.request_id);
  }
  std::int32_t num_older = 0;
  for (const SequenceSnapshot& sequence : step.after.sequences) {
    num_older += sequence.state == SequenceState::kRunning && sequence.request_id != newest ? 1 : 0;
  }
  const std::int32_t num_left = num_available(step.after);
  if (num_older == 0) return;
  if (num_left < least_to_leave(step, num_older) + num_promised(step, newest))
    problem_.note(newest, "its start left fewer free blocks than the watermark");
}

// Beside so many sequences, whose drafts hold so many blocks each until the step ends.
std::int32_t MemoryRules::least_to_leave(const StepView& step, std::int32_t num_running,
                                         std::int32_t most_in_draft) const {
  const std::int32_t one_percent = (script_.options.num_blocks + 99) / 100;
  switch (script_.options.admission_reserve) {
    case AdmissionReserve::kLookAhead: return least_taken_ahead(step, most_in_draft);
    case AdmissionReserve::kBlockPerSequence: return one_percent + num_running;
    case AdmissionReserve::kOnePercent: return one_percent;
  }
  return 0;
}

// By those who run, each a token a step from then on. Who ends gives back all it has, also what it shares;
// who did not outlive the step may have been cancelled before it; and who came back in it may end, too.
std::int32_t MemoryRules::least_taken_ahead(const StepView& step, std::int32_t most_in_draft) const {
  const auto blocks_for = [&](std::int32_t num_tokens) {
    return (num_tokens + script_.options.block_size - 1) / script_.options.block_size;
  };
  std::int32_t most = 0;
  for (std::int32_t ahead = 1; ahead <= scheduler::kStepsAhead; ++ahead) {
    std::int32_t num_taken = 0;
    for (const SequenceSnapshot& sequence : step.before.sequences) {
      const bool ran = sequence.state == SequenceState::kRunning;
      const bool runs = state_in(step.after, sequence) == SequenceState::kRunning;
      if (!ran && !runs) continue;
      const ScriptedRequest& asked = runner_.asked(sequence.request_id);
      const std::int32_t num_output = sequence.num_tokens - sequence.num_prompt_tokens;
      const std::int32_t num_left = std::min((asked.embedding ? 1 : asked.max_tokens) - num_output,
                                             script_.options.max_model_len - sequence.num_tokens);
      const std::int32_t num_known = blocks_for(sequence.num_tokens);
      if (!runs || ahead >= num_left) {
        num_taken -=
            std::max(num_known, static_cast<std::int32_t>(sequence.block_table.size())) + most_in_draft;
      } else if (ran) {
        num_taken += blocks_for(sequence.num_tokens + ahead) - num_known;
      }
    }
    most = std::max(most, num_taken);
  }
  return most;
}

// ---- what is swapped

// Of the outputs that gave way together.
void MemoryRules::check_swap_out(const StepView& step, RequestId request_id, std::int32_t first_output,
                                 std::int32_t end_output) {
  const std::int32_t block_size = script_.options.block_size;
  const auto gave_way = [&](const SequenceSnapshot& sequence) {
    return sequence.request_id == request_id && sequence.output_index >= first_output &&
           sequence.output_index < end_output && state_in(step.before, sequence) == SequenceState::kRunning;
  };
  const Memory ran = memory_of(step.before, block_size, gave_way);
  const Memory swapped = memory_of(step.after, block_size, [&](const SequenceSnapshot& sequence) {
    return gave_way(sequence) && sequence.state == SequenceState::kSwapped;
  });
  const bool is_whole = swapped.num_sequences == ran.num_sequences && !ran.has_waiting;
  if (is_whole && swapped.num_blocks > ran.num_blocks)
    problem_.note(request_id, std::to_string(ran.num_blocks) + " blocks became " +
                                  std::to_string(swapped.num_blocks) + " on their way to the host");
}

// Each sequence takes one block more at most, its next one or a copy of a shared one, and what accepted
// guesses fill.
void MemoryRules::check_swap_in(const StepView& step, RequestId request_id) {
  const std::int32_t block_size = script_.options.block_size;
  const auto came_back = [&](const SequenceSnapshot& sequence) {
    return sequence.request_id == request_id && state_in(step.before, sequence) == SequenceState::kSwapped &&
           state_in(step.after, sequence) == SequenceState::kRunning;
  };
  const Memory swapped = memory_of(step.before, block_size, came_back);
  const Memory running = memory_of(step.after, block_size, came_back);
  if (swapped.has_many_uncomputed || swapped.has_waiting || running.num_sequences == 0) return;
  std::int32_t num_ahead = 0;
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    if (came_back(sequence)) num_ahead += num_blocks_ahead(step, sequence, block_size);
  }
  if (running.num_blocks >
      swapped.num_blocks + std::max(running.num_sequences, swapped.num_sequences) + num_ahead)
    problem_.note(request_id, "its sharing was lost on its way back from the host");
}

// By groups older than `newest` that went on computing their prompt in this step: a last block for each
// output.
std::int32_t MemoryRules::num_promised(const StepView& step, RequestId newest) const {
  const std::int32_t block_size = script_.options.block_size;
  std::int32_t num_promised = 0;
  for (const SequenceSnapshot& lead : step.before.sequences) {
    const ScriptedRequest& asked = runner_.asked(lead.request_id);
    const bool awaits_fork = lead.output_index == 0 && asked.num_outputs() > 1 && asked.max_tokens > 1 &&
                             lead.state == SequenceState::kRunning &&
                             lead.num_tokens == lead.num_prompt_tokens;
    const auto still =
        std::ranges::find(step.after.sequences, lead.request_id, &SequenceSnapshot::request_id);
    if (!awaits_fork || lead.request_id >= newest || still == step.after.sequences.end() ||
        still->state != SequenceState::kRunning)
      continue;
    const std::int32_t num_full = lead.num_prompt_tokens / block_size;
    const std::int32_t num_last = lead.num_prompt_tokens / block_size + 1 - num_full;
    num_promised +=
        num_full + asked.num_outputs() * num_last - static_cast<std::int32_t>(lead.block_table.size());
  }
  return num_promised;
}

// ---- what is guessed

// All but the newest token have KV afterwards. And guesses get blocks only where nobody could want them.
void MemoryRules::check_draft(const StepView& step, const SimulatedRunner::Drafted& drafted) {
  const auto after =
      std::ranges::find(step.after.sequences, drafted.sequence_id, &SequenceSnapshot::sequence_id);
  if (after != step.after.sequences.end() && after->num_tokens - after->num_computed_tokens != 1)
    problem_.note(after->request_id, "its draft was not committed as far as it was right");
  if (script_.options.memory_manager != MemoryManager::kPaged) return;
  const std::int32_t block_size = script_.options.block_size;
  const std::int32_t num_ahead = drafted.num_blocks - (drafted.num_known + block_size - 1) / block_size;
  if (num_ahead > 0) check_blocks_ahead(step, drafted.sequence_id, num_ahead);
}

// Free ones, which hold nothing, while nobody waits, and not those that whoever starts would have to leave.
void MemoryRules::check_blocks_ahead(const StepView& step, SequenceId sequence_id, std::int32_t num_ahead) {
  const auto runs = [](const SequenceSnapshot& sequence) {
    return sequence.state == SequenceState::kRunning;
  };
  if (!std::ranges::all_of(step.after.sequences, runs))
    problem_.note("a draft took a block while others wait");
  const auto is_its = [&](const BlockEvent& event) {
    return event.kind == BlockEventKind::kAlloc && event.sequence == sequence_id.value;
  };
  // The guesses' blocks are the last that the sequence got.
  auto num_before = std::ranges::count_if(step.block_events, is_its) - num_ahead;
  const std::int32_t most_in_draft =
      (script_.options.num_speculative_tokens + script_.options.block_size - 1) / script_.options.block_size;
  const std::int32_t num_to_leave =
      least_to_leave(step, static_cast<std::int32_t>(step.after.sequences.size()), most_in_draft) +
      num_promised(step, kEveryRequest);
  std::int32_t num_free = step.before.figures.free_blocks;
  for (std::size_t i = 0; i < step.block_events.size(); ++i) {
    const BlockEvent& event = step.block_events[i];
    if (event.kind == BlockEventKind::kAlloc) --num_free;
    if (event.kind == BlockEventKind::kFree || event.kind == BlockEventKind::kEvict) ++num_free;
    if (!is_its(event) || num_before-- > 0) continue;
    if (step.block_events[i - 1].kind == BlockEventKind::kEvict)
      problem_.note("contents were given up for a draft");
    if (num_free < num_to_leave) problem_.note("a draft took a block that others will need");
  }
}

// Between steps no block stands for tokens that nobody has.
void MemoryRules::check_nothing_ahead(const KvSnapshot& snapshot) {
  if (script_.options.memory_manager != MemoryManager::kPaged) return;
  const std::int32_t block_size = script_.options.block_size;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto num_blocks = static_cast<std::int32_t>(sequence.block_table.size());
    if (num_blocks > (sequence.num_tokens + block_size - 1) / block_size)
      problem_.note(sequence.request_id, "has blocks for tokens that it does not have");
  }
}

// ---- what is found

bool MemoryRules::reads_cache(const ScriptedRequest& asked) const {
  return script_.options.enable_prefix_caching && !asked.needs_all_rows() &&
         script_.options.memory_manager == MemoryManager::kPaged;
}

// Whatever was findable before the step and was not given up in it.
void MemoryRules::check_hit(const StepView& step, const RequestAdmitted& admission) {
  if (has_kind(step, BlockEventKind::kEvict)) return;
  const ScriptedRequest& asked = runner_.asked(admission.request_id);
  std::int32_t num_found = num_findable(step, asked, num_available(step.after));
  if (script_.options.num_states > 0) num_found = last_checkpoint(step, asked, num_found);
  if (script_.options.window > 0) num_found = last_whole_window(step, asked, num_found);
  // What a cancelled request has just left behind may be a closer start, but too short to be worth a copy.
  const auto begin = std::ranges::find(step.block_events, BlockEventKind::kStepBegin, &BlockEvent::kind);
  const bool has_new_start = std::any_of(step.block_events.begin(), begin, [](const BlockEvent& event) {
    return event.kind == BlockEventKind::kSeal;
  });
  if (has_new_start && num_found - admission.num_cached_tokens < 4) return;
  if (admission.num_cached_tokens < num_found) {
    problem_.note(admission.request_id, "found " + std::to_string(admission.num_cached_tokens) + " of " +
                                            std::to_string(num_found) + " tokens that were there");
  }
}

// The last of a prompt's first tokens behind which there was, and still is, a checkpoint.
std::int32_t MemoryRules::last_checkpoint(const StepView& step, const ScriptedRequest& asked,
                                          std::int32_t num_tokens) const {
  std::int32_t last = 0;
  for (std::size_t index = 0; index < step.before.states.size(); ++index) {
    const StateSnapshot &before = step.before.states[index], &after = step.after.states[index];
    // (What was given up and taken again in the step may be a checkpoint of other tokens at the same place.)
    const bool stayed = before.is_checkpoint && after.is_checkpoint && before.position == after.position &&
                        before.last_step == after.last_step;
    if (!stayed || before.position > num_tokens || before.position <= last) continue;
    std::uint64_t prefix_hash = ToyModel::root_of(asked.salt);
    for (std::int32_t i = 0; i < before.position; ++i)
      prefix_hash = ToyModel::extend(prefix_hash, asked.prompt[static_cast<std::size_t>(i)]);
    if (runner_.contents_of_state(BlockId{static_cast<std::int32_t>(index)}) == prefix_hash)
      last = before.position;
  }
  return last;
}

// The most whole blocks of a prompt's first tokens of which the window in front of their end was there before
// the step, and was not given up in it: a block that changed hands may have a part of other tokens in the
// same place again.
std::int32_t MemoryRules::last_whole_window(const StepView& step, const ScriptedRequest& asked,
                                            std::int32_t num_tokens) const {
  const std::int32_t block_size = script_.options.block_size;
  std::vector<bool> was_given_up(step.before.blocks.size());
  for (const BlockEvent& event : step.block_events) {
    if (event.kind == BlockEventKind::kWindowClose)
      was_given_up[static_cast<std::size_t>(event.block)] = true;
  }
  std::vector<bool> has_part;  // by block of the prompt
  std::uint64_t prefix_hash = ToyModel::root_of(asked.salt);
  for (std::int32_t end = block_size; end <= num_tokens; end += block_size) {
    for (std::int32_t i = end - block_size; i < end; ++i)
      prefix_hash = ToyModel::extend(prefix_hash, asked.prompt[static_cast<std::size_t>(i)]);
    bool is_there = false;
    for (std::size_t index = 0; index < step.before.blocks.size() && !is_there; ++index) {
      const BlockSnapshot& before = step.before.blocks[index];
      is_there = before.findable && before.filled == block_size && before.window != WindowPart::kNone &&
                 !was_given_up[index] &&
                 runner_.contents(BlockId{static_cast<std::int32_t>(index)}).back() == prefix_hash;
    }
    has_part.push_back(is_there);
  }
  for (auto num_blocks = static_cast<std::int32_t>(has_part.size()); num_blocks > 0; --num_blocks) {
    const std::int32_t first = std::max(0, num_blocks * block_size - script_.options.window + 1) / block_size;
    if (std::all_of(has_part.begin() + first, has_part.begin() + num_blocks, [](bool part) { return part; }))
      return num_blocks * block_size;
  }
  return 0;
}

// Each sequence reads the window parts of its window and of nothing before it, each part stands in one place,
// and the figures count them.
void MemoryRules::check_windows(const KvSnapshot& snapshot) {
  const scheduler::SchedulerOptions& options = script_.options;
  if (options.window == 0) return;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const std::int32_t first = std::max(0, sequence.num_computed_tokens - options.window + 1);
    if (sequence.num_blocks_left_behind != first / options.block_size)
      problem_.note(sequence.request_id, "reads window parts that its window has passed, or left others");
  }
  std::int32_t num_used = 0, num_cached = 0;
  std::vector<bool> is_taken(static_cast<std::size_t>(options.num_window_blocks));
  for (const BlockSnapshot& block : snapshot.blocks) {
    if (block.window == WindowPart::kNone) continue;
    (block.window == WindowPart::kUsed ? num_used : num_cached) += 1;
    const auto place = index_of(block.window_place);
    if (place >= is_taken.size() || is_taken[place] || block.state == BlockState::kFree)
      return problem_.note("a window part stands nowhere, or where another one does, or is of a free block");
    is_taken[place] = true;
  }
  const KvFigures& figures = snapshot.figures;
  if (figures.used_window_blocks != num_used || figures.cached_window_blocks != num_cached ||
      figures.free_window_blocks != options.num_window_blocks - num_used - num_cached)
    problem_.note("the figures of window parts are not those of the blocks");
}

// Tokens of a prompt that blocks held before the step: full blocks from its start, then a part of one more if
// that is at least 4 tokens and there is room for a copy.
std::int32_t MemoryRules::num_findable(const StepView& step, const ScriptedRequest& asked,
                                       std::int32_t num_left) const {
  const auto block_size = static_cast<std::size_t>(script_.options.block_size);
  std::vector<std::uint64_t> hashes;  // of the prompt's prefixes; the last token is always computed
  std::uint64_t prefix_hash = ToyModel::root_of(asked.salt);
  for (const TokenId token : asked.prompt)
    hashes.push_back(prefix_hash = ToyModel::extend(prefix_hash, token));
  hashes.pop_back();
  // What a request that was cancelled before the step leaves behind may take the place of something shorter.
  std::vector<bool> is_gone(step.before.blocks.size());
  bool has_begun = false;
  for (const BlockEvent& event : step.block_events) {
    has_begun |= event.kind == BlockEventKind::kStepBegin;
    if (event.kind == BlockEventKind::kAlloc || (event.kind == BlockEventKind::kFree && !has_begun))
      is_gone[static_cast<std::size_t>(event.block)] = true;
  }
  std::size_t num_found = 0;
  for (std::size_t longest = block_size; longest == block_size;) {
    longest = 0;
    bool is_whole = false;  // somebody holds just that
    const auto rest = std::span(hashes).subspan(num_found);
    for (std::size_t index = 0; index < is_gone.size() && !rest.empty(); ++index) {
      const BlockSnapshot& block = step.before.blocks[index];
      if (!block.findable || is_gone[index]) continue;
      const auto filled = static_cast<std::size_t>(block.filled);
      const auto held = runner_.contents(BlockId{static_cast<std::int32_t>(index)}).first(filled);
      const auto num_equal = static_cast<std::size_t>(std::ranges::mismatch(held, rest).in1 - held.begin());
      if (num_equal < longest) continue;
      is_whole = num_equal == filled || (is_whole && num_equal == longest);
      longest = num_equal;
    }
    const bool is_worth_a_copy = (longest >= 4 || is_whole) && num_left >= 2;
    if (longest == block_size || is_worth_a_copy) num_found += longest;
  }
  return static_cast<std::int32_t>(num_found);
}

bool MemoryRules::holds_start(const BlockSnapshot& block, std::int32_t id,
                              std::span<const std::uint64_t> hashes) const {
  return block.findable && block.filled >= static_cast<std::int32_t>(hashes.size()) &&
         std::ranges::equal(runner_.contents(BlockId{id}).first(hashes.size()), hashes);
}

// What an output leaves in its last block stays findable, in that block or in another that starts alike, so
// that the next turn resumes exactly.
void MemoryRules::check_left_behind(const StepView& step) {
  if (!script_.options.enable_prefix_caching || script_.options.memory_manager != MemoryManager::kPaged ||
      step.device_failed || has_kind(step, BlockEventKind::kEvict) || has_kind(step, BlockEventKind::kAlloc))
    return;
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    const bool has_ended = std::ranges::find(step.after.sequences, sequence.sequence_id,
                                             &SequenceSnapshot::sequence_id) == step.after.sequences.end();
    if (!has_ended || sequence.state != SequenceState::kRunning || sequence.block_table.empty() ||
        runner_.asked(sequence.request_id).is_beam_search())
      continue;
    const std::int32_t id = sequence.block_table.back().value;
    const BlockSnapshot &before = step.before.blocks[static_cast<std::size_t>(id)],
                        &after = step.after.blocks[static_cast<std::size_t>(id)];
    if (before.ref_count != 1 || before.filled == 0 || after.state == BlockState::kUsed || after.findable)
      continue;
    const auto hashes = runner_.contents(BlockId{id}).first(static_cast<std::size_t>(before.filled));
    std::int32_t other = 0;
    const bool is_elsewhere = std::ranges::any_of(
        step.after.blocks, [&](const BlockSnapshot& block) { return holds_start(block, other++, hashes); });
    if (!is_elsewhere) problem_.note(sequence.request_id, "what it left in its last block cannot be found");
  }
}

// Nobody starts to compute full blocks that somebody else is computing already.
void MemoryRules::check_double_work(const StepView& step, const RequestAdmitted& admission) {
  if (memory_ends_exactly(script_.options)) return;  // it may have to, for want of a checkpoint or a window
  const ScriptedRequest& asked = runner_.asked(admission.request_id);
  const std::int32_t block_size = script_.options.block_size;
  const auto most = (static_cast<std::int32_t>(asked.prompt.size()) - 1) / block_size;
  RequestId last{};
  for (const SequenceSnapshot& lead : step.before.sequences) {
    if (std::exchange(last, lead.request_id) == lead.request_id) continue;
    const ScriptedRequest& other = runner_.asked(lead.request_id);
    const auto still =
        std::ranges::find(step.after.sequences, lead.sequence_id, &SequenceSnapshot::sequence_id);
    const bool is_computing = lead.state == SequenceState::kRunning &&
                              lead.num_computed_tokens < lead.num_prompt_tokens &&
                              still != step.after.sequences.end() && still->state == SequenceState::kRunning;
    // (Nobody interactive waits for what a background request computes.)
    if (!is_computing || other.salt != asked.salt || other.background > asked.background) continue;
    const auto differs = std::ranges::mismatch(other.prompt, asked.prompt).in1;
    const auto num_equal = static_cast<std::int32_t>(differs - other.prompt.begin());
    const std::int32_t num_shared = std::min(num_equal / block_size, most);
    if (num_shared * block_size > std::max(admission.num_cached_tokens, lead.num_computed_tokens)) {
      problem_.note(admission.request_id, "computes what request " + std::to_string(lead.request_id.value) +
                                              " is about to have computed");
    }
  }
}

}  // namespace octavo::simulation
