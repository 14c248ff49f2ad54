#include "tests/simulation/mutation.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace octavo::simulation {
namespace {

struct NamedMutation {
  Mutation mutation;
  std::string_view name;
};

constexpr NamedMutation kNames[] = {
    {Mutation::kDropBlockCopy, "drop a block copy"},
    {Mutation::kSwapSourceAndTarget, "swap source and target of a copy"},
    {Mutation::kCopyAfterWriting, "copy blocks one step late"},
    {Mutation::kDropSwapOut, "drop a swap out"},
    {Mutation::kDropSwapIn, "drop a swap in"},
    {Mutation::kCrossSwapIns, "swap two blocks in where the other belongs"},
    {Mutation::kSwapTableEntries, "swap two entries of a block table"},
    {Mutation::kShiftTable, "block table off by one"},
    {Mutation::kGiveBlockTwice, "give a block to two sequences"},
    {Mutation::kStaleTable, "use the table of another sequence"},
    {Mutation::kShiftRows, "rows one position early"},
    {Mutation::kSkipLastRow, "leave out the last row"},
    {Mutation::kIgnoreSamplingSeed, "draw with the wrong seed"},
    {Mutation::kDrawSameOutput, "draw each output as output 0"},
    {Mutation::kRepeatToken, "another token than was drawn"},
    {Mutation::kSwapTokens, "two sequences' tokens swapped"},
    {Mutation::kHideFailure, "call a failed step done"},
    {Mutation::kHideInvalidLogits, "deliver a token of invalid logits"},
    {Mutation::kShiftPromptLogprobs, "prompt log-probabilities off by one"},
    {Mutation::kDropBestCandidate, "lose the best continuation of a beam"},
    {Mutation::kCrossBeams, "continuations of two beams swapped"},
    {Mutation::kLastInFirstOut, "last in, first out"},
    {Mutation::kLoseCancel, "lose a cancel"},
    {Mutation::kCancelNeighbour, "cancel the neighbour"},
    {Mutation::kTwoEnds, "end a request twice"},
    {Mutation::kEventAfterEnd, "an event after the end"},
    {Mutation::kLoseEnd, "lose an end"},
    {Mutation::kLoseToken, "lose a token"},
    {Mutation::kLoseHeldText, "lose text that came late"},
    {Mutation::kWrongFinishReason, "wrong finish reason"},
};

template <class Event>
const Event* first_of(const std::vector<EngineEvent>& events) {
  for (const EngineEvent& event : events) {
    if (const auto* found = std::get_if<Event>(&event)) return found;
  }
  return nullptr;
}

template <class Event>
void erase_first(std::vector<EngineEvent>& events) {
  const auto found = std::find_if(events.begin(), events.end(), [](const EngineEvent& event) {
    return std::holds_alternative<Event>(event);
  });
  if (found != events.end()) events.erase(found);
}

std::vector<scheduler::SampleTarget*> targets_of(scheduler::SchedulerOutput& plan) {
  std::vector<scheduler::SampleTarget*> targets;
  for (auto& sequence : plan.sequences) {
    for (auto& target : sequence.samples) targets.push_back(&target);
  }
  return targets;
}

}  // namespace

std::vector<Mutation> all_mutations() {
  std::vector<Mutation> mutations;
  for (const NamedMutation& named : kNames) mutations.push_back(named.mutation);
  return mutations;
}

std::string_view mutation_name(Mutation mutation) {
  for (const NamedMutation& named : kNames) {
    if (named.mutation == mutation) return named.name;
  }
  return "none";
}

Result<void> MutatedRunner::execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) {
  scheduler::SchedulerOutput plan = step;
  tables_.clear();
  for (auto& sequence : plan.sequences) {
    tables_.emplace_back(sequence.block_table.begin(), sequence.block_table.end());
  }
  mutate_plan(plan);
  for (std::size_t index = 0; index < plan.sequences.size(); ++index)
    plan.sequences[index].block_table = tables_[index];
  auto executed = inner_.execute(plan, output);
  if (executed) mutate_drawn(output);
  if (executed || mutation_ != Mutation::kHideFailure) return executed;
  for (const auto* target : targets_of(plan))
    output.tokens.push_back({.sequence_id = target->sequence_id, .token_id = 4, .top_logprobs = {}});
  return {};
}

void MutatedRunner::mutate_plan(scheduler::SchedulerOutput& plan) {
  auto& copies = plan.block_copies;
  if (mutation_ == Mutation::kDropBlockCopy && !copies.empty()) copies.pop_back();
  if (mutation_ == Mutation::kSwapSourceAndTarget && !copies.empty())
    std::swap(copies[0].source, copies[0].target);
  if (mutation_ == Mutation::kCopyAfterWriting) std::swap(copies, late_copies_);
  if (mutation_ == Mutation::kDropSwapOut && !plan.swap_outs.empty()) plan.swap_outs.pop_back();
  if (mutation_ == Mutation::kDropSwapIn && !plan.swap_ins.empty()) plan.swap_ins.pop_back();
  if (mutation_ == Mutation::kCrossSwapIns && plan.swap_ins.size() > 1)
    std::swap(plan.swap_ins[0].host_block, plan.swap_ins[1].host_block);
  for (std::size_t index = 0; index < plan.sequences.size(); ++index) {
    auto& sequence = plan.sequences[index];
    auto& table = tables_[index];
    if (mutation_ == Mutation::kSwapTableEntries && table.size() >= 2) std::swap(table[0], table[1]);
    if (mutation_ == Mutation::kShiftTable) std::rotate(table.begin(), table.begin() + 1, table.end());
    if (mutation_ == Mutation::kGiveBlockTwice && index > 0) table.back() = tables_[0].back();
    if (mutation_ == Mutation::kStaleTable && last_table_.size() >= table.size())
      std::copy_n(last_table_.begin(), table.size(), table.begin());
    if (mutation_ == Mutation::kShiftRows && sequence.start_position > 0) --sequence.start_position;
    if (mutation_ == Mutation::kSkipLastRow && sequence.token_ids.size() > 1)
      sequence.token_ids = sequence.token_ids.first(sequence.token_ids.size() - 1);
    for (auto& target : sequence.samples) {
      if (mutation_ == Mutation::kIgnoreSamplingSeed) target.seed = 1;
      if (mutation_ == Mutation::kDrawSameOutput) target.output_index = 0;
    }
  }
  if (!tables_.empty()) last_table_ = tables_.back();
}

void MutatedRunner::mutate_drawn(runner::RunnerOutput& output) {
  auto& tokens = output.tokens;
  if (mutation_ == Mutation::kRepeatToken && !tokens.empty()) tokens.back().token_id ^= 1;
  if (mutation_ == Mutation::kSwapTokens && tokens.size() > 1)
    std::swap(tokens[0].token_id, tokens[1].token_id);
  if (mutation_ == Mutation::kHideInvalidLogits) {
    for (auto& token : tokens) token.invalid_logits = false;
  }
  if (mutation_ == Mutation::kDropBestCandidate) {
    for (auto& token : tokens) {
      if (token.candidates.size() > 1) token.candidates.erase(token.candidates.begin());
    }
  }
  if (mutation_ == Mutation::kCrossBeams && tokens.size() > 1)
    std::swap(tokens[0].candidates, tokens[1].candidates);
  if (mutation_ == Mutation::kShiftPromptLogprobs) {
    for (auto& value : output.prompt_logprobs) --value.position;
  }
}

std::vector<EngineCommand> mutate_commands(Mutation mutation, std::vector<EngineCommand> commands) {
  if (mutation == Mutation::kLastInFirstOut) {
    return {std::make_move_iterator(commands.rbegin()), std::make_move_iterator(commands.rend())};
  }
  for (EngineCommand& command : commands) {
    auto* cancel = std::get_if<CancelRequest>(&command);
    if (!cancel) continue;
    if (mutation == Mutation::kLoseCancel) command = ResetPrefixCache{};
    if (mutation == Mutation::kCancelNeighbour) ++cancel->request_id.value;
  }
  return commands;
}

std::vector<EngineEvent> mutate_events(Mutation mutation, std::vector<EngineEvent> events) {
  if (mutation == Mutation::kTwoEnds) {
    if (const auto* finished = first_of<RequestFinished>(events))
      events.push_back(RequestFinished(*finished));
  }
  if (mutation == Mutation::kEventAfterEnd) {
    if (const auto* finished = first_of<RequestFinished>(events)) {
      events.push_back(TokensGenerated{.request_id = finished->request_id,
                                       .token_ids = {},
                                       .logprobs = {},
                                       .top_logprobs = {},
                                       .text = {}});
    }
  }
  if (mutation == Mutation::kLoseEnd) erase_first<RequestFinished>(events);
  if (mutation == Mutation::kLoseToken) erase_first<TokensGenerated>(events);
  for (EngineEvent& event : events) {
    auto* tokens = std::get_if<TokensGenerated>(&event);
    if (mutation == Mutation::kLoseHeldText && tokens && tokens->text.size() > 4) tokens->text.resize(4);
    auto* finished = std::get_if<OutputFinished>(&event);
    if (mutation == Mutation::kWrongFinishReason && finished &&
        finished->finish_reason == FinishReason::kLength) {
      finished->finish_reason = FinishReason::kStop;
    }
  }
  return events;
}

}  // namespace octavo::simulation
