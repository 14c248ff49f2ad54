#include "tests/simulation/retention_rules.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <variant>

#include "tests/simulation/expected_prompt.h"

namespace octavo::simulation {
namespace {

// None: it began and ended in this step.
std::optional<RequestId> owner_of(const StepView& step, SequenceId sequence_id) {
  for (const KvSnapshot* snapshot : {&step.before, &step.after}) {
    const auto found = std::ranges::find(snapshot->sequences, sequence_id, &SequenceSnapshot::sequence_id);
    if (found != snapshot->sequences.end()) return found->request_id;
  }
  return std::nullopt;
}

std::vector<RequestId> requests_of(const StepView& step) {
  std::vector<RequestId> requests;
  for (const KvSnapshot* snapshot : {&step.before, &step.after}) {
    for (const SequenceSnapshot& sequence : snapshot->sequences) requests.push_back(sequence.request_id);
  }
  for (const EngineEvent& event : step.events) {
    if (const auto* admission = std::get_if<RequestAdmitted>(&event))
      requests.push_back(admission->request_id);
  }
  return requests;
}

bool has_event(const StepView& step, std::int32_t block, std::initializer_list<BlockEventKind> kinds) {
  return std::ranges::any_of(step.block_events, [&](const BlockEvent& event) {
    return event.block == block && std::ranges::find(kinds, event.kind) != kinds.end();
  });
}

// Whether `content`, which `owner` holds, is a prefix of the other's prompt; of what is generated behind
// prompts that begin alike, nobody knows here.
bool may_hold(const ScriptedRequest& other, const ScriptedRequest& owner, std::uint64_t content) {
  if (other.salt != owner.salt) return false;
  const auto [rest, rest_of_other] = std::ranges::mismatch(owner.prompt, other.prompt);
  std::uint64_t prefix_hash = ToyModel::root_of(owner.salt);
  for (auto token = owner.prompt.begin(); token != rest; ++token) {
    prefix_hash = ToyModel::extend(prefix_hash, *token);
    if (prefix_hash == content) return true;
  }
  return rest == owner.prompt.end() || rest_of_other == other.prompt.end();
}

}  // namespace

RetentionRules::RetentionRules(const Script& script, const SimulatedRunner& runner, Problem& problem)
    : script_(script),
      runner_(runner),
      problem_(problem),
      held_(static_cast<std::size_t>(script.options.num_blocks)) {}

void RetentionRules::check(const StepView& step) {
  for (const BlockEvent& event : step.block_events) {
    if (event.kind == BlockEventKind::kSeal && !step.releases_pins) check_sealed(step, event);
  }
  for (std::size_t index = 0; index < held_.size(); ++index)
    held_[index] = content_of_block(step.after.blocks[index], static_cast<std::int32_t>(index));
}

// What becomes findable is kept as its request asked; pins may be refused. It is kept for longer only if
// somebody else wanted the same contents so.
void RetentionRules::check_sealed(const StepView& step, const BlockEvent& seal) {
  const auto owner = owner_of(step, SequenceId{seal.sequence});
  const BlockSnapshot& block = step.after.blocks[static_cast<std::size_t>(seal.block)];
  const bool was_given_up = has_event(step, seal.block, {BlockEventKind::kEvict, BlockEventKind::kFree});
  if (!owner || !block.findable || was_given_up) return;
  const ScriptedRequest& asked = runner_.asked(*owner);
  const std::uint64_t content = content_of_block(block, seal.block);
  const RetentionClass own = wanted(asked, content);
  if (block.retention < std::min(own, RetentionClass::kSystemPrompt))
    problem_.note(*owner, "its blocks are not kept as it asked");
  if (block.retention > own && block.retention > most_wanted(step, asked, content))
    problem_.note(*owner, "its blocks are kept for longer than anybody asked");
}

// The prefix that ends in the block.
std::uint64_t RetentionRules::content_of_block(const BlockSnapshot& block, std::int32_t id) const {
  if (!block.findable || block.filled == 0) return 0;
  return runner_.contents(BlockId{id})[static_cast<std::size_t>(block.filled) - 1];
}

RetentionClass RetentionRules::wanted(const ScriptedRequest& asked, std::uint64_t content) const {
  const RetentionClass of_request = expected_retention(asked);
  const std::int32_t num_system_tokens = expected_system_tokens(asked);
  const std::int32_t num_whole = num_system_tokens - num_system_tokens % script_.options.block_size;
  std::uint64_t prefix_hash = ToyModel::root_of(asked.salt);
  for (std::int32_t position = 0; position < num_whole; ++position) {
    prefix_hash = ToyModel::extend(prefix_hash, asked.prompt[static_cast<std::size_t>(position)]);
    if (prefix_hash == content) return std::max(of_request, RetentionClass::kSystemPrompt);
  }
  return of_request;
}

RetentionClass RetentionRules::most_wanted(const StepView& step, const ScriptedRequest& owner,
                                           std::uint64_t content) const {
  RetentionClass most = RetentionClass::kScratch;
  for (const RequestId request_id : requests_of(step)) {
    const ScriptedRequest& other = runner_.asked(request_id);
    if (may_hold(other, owner, content)) most = std::max(most, wanted(other, content));
  }
  for (std::size_t index = 0; index < held_.size(); ++index) {
    if (held_[index] == content) most = std::max(most, step.before.blocks[index].retention);
  }
  return most;
}

}  // namespace octavo::simulation
