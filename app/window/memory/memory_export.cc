#include "app/window/memory/memory_export.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/json/json_text.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kFree: return "free";
    case BlockState::kCached: return "cached";
    case BlockState::kUsed: return "used";
  }
  return "";
}

const char* state_name(SequenceState state) {
  switch (state) {
    case SequenceState::kWaiting: return "waiting";
    case SequenceState::kRunning: return "running";
    case SequenceState::kSwapped: return "swapped";
  }
  return "";
}

Json table_json(const std::vector<BlockId>& table) {
  Json blocks = Json::array();
  for (const BlockId block : table) blocks.push_back(block.value);
  return blocks;
}

Json figures_json(const KvFigures& figures) {
  return {{"used_blocks", figures.used_blocks},
          {"cached_blocks", figures.cached_blocks},
          {"free_blocks", figures.free_blocks},
          {"logical_blocks", figures.logical_blocks},
          {"sharing_ratio", figures.sharing_ratio},
          {"saved_bytes", figures.saved_bytes},
          {"internal_fragmentation", figures.internal_fragmentation},
          {"unfilled_slots", figures.unfilled_slots},
          {"reserved_ahead_slots", figures.reserved_ahead_slots},
          {"host_used_blocks", figures.host_used_blocks}};
}

const char* part_name(WindowPart part) {
  switch (part) {
    case WindowPart::kNone: return "none";
    case WindowPart::kCached: return "kept";
    case WindowPart::kUsed: return "read";
  }
  return "";
}

// Of layers with a window that have a pool of their own.
Json windows_json(const KvSnapshot& snapshot) {
  const KvTotals& totals = snapshot.totals;
  const KvFigures& figures = snapshot.figures;
  Json parts = Json::array();
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    const BlockSnapshot& block = snapshot.blocks[i];
    if (block.window != WindowPart::kNone)
      parts.push_back({{"block", i}, {"place", block.window_place.value}, {"is", part_name(block.window)}});
  }
  Json left_behind = Json::object();
  for (const SequenceSnapshot& sequence : snapshot.sequences)
    left_behind[std::to_string(sequence.sequence_id.value)] = sequence.num_blocks_left_behind;
  return {{"window", totals.window},
          {"num_window_blocks", totals.num_window_blocks},
          {"bytes_per_window_block", totals.bytes_per_window_block},
          {"used_window_blocks", figures.used_window_blocks},
          {"cached_window_blocks", figures.cached_window_blocks},
          {"free_window_blocks", figures.free_window_blocks},
          {"num_left_behind", std::move(left_behind)},
          {"parts", std::move(parts)}};
}

// Of recurrent layers.
Json states_json(const KvSnapshot& snapshot) {
  Json states = Json::array();
  for (std::size_t i = 0; i < snapshot.states.size(); ++i) {
    const StateSnapshot& state = snapshot.states[i];
    if (state.state == BlockState::kFree) continue;
    Json json = {{"state", i}, {"is", state_name(state.state)}, {"owners", state.ref_count}};
    if (state.is_checkpoint) {
      json["checkpoint"] = checkpoint_reason_name(state.reason);
      json["position"] = state.position;
    }
    states.push_back(std::move(json));
  }
  return states;
}

}  // namespace

std::string memory_json(const ui::MemoryWorkspaceState& state) {
  Json json = {{"source", state.pool.name},
               {"step", state.cursor.step},
               {"time_us", state.cursor.time_us},
               {"block_size", state.pool.block_size},
               {"num_blocks", state.pool.num_blocks},
               {"num_host_blocks", state.pool.num_host_blocks},
               {"bytes_per_block", state.pool.bytes_per_block}};
  if (state.snapshot == nullptr) return json.dump(1) + "\n";
  json["figures"] = figures_json(state.snapshot->figures);
  Json& sequences = json["sequences"] = Json::array();
  for (std::size_t i = 0; i < state.snapshot->sequences.size() && i < state.sequences.size(); ++i) {
    const SequenceSnapshot& sequence = state.snapshot->sequences[i];
    sequences.push_back({{"sequence", sequence.sequence_id.value},
                         {"label", state.sequences[i].label},
                         {"state", state_name(sequence.state)},
                         {"num_computed_tokens", sequence.num_computed_tokens},
                         {"block_table", table_json(sequence.block_table)}});
  }
  Json& blocks = json["blocks"] = Json::array();
  for (std::size_t i = 0; i < state.snapshot->blocks.size(); ++i) {
    const BlockSnapshot& block = state.snapshot->blocks[i];
    if (block.state == BlockState::kFree) continue;
    blocks.push_back({{"block", i},
                      {"state", state_name(block.state)},
                      {"references", block.ref_count},
                      {"filled", block.filled},
                      {"parent", block.parent},
                      {"findable", block.findable}});
  }
  if (state.pool.num_window_blocks > 0) json["windows"] = windows_json(*state.snapshot);
  if (state.pool.num_states > 0) json["states"] = states_json(*state.snapshot);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string steps_csv(const ui::TimelineState& timeline) {
  std::string text =
      "step,begin_us,prefill_tokens,decode_tokens,running,waiting,swapped_groups,used_blocks,cached_blocks,"
      "free_blocks,host_used_blocks,logical_blocks,unfilled_slots,preempted,block_copies,swapped_out,swapped_"
      "in,"
      "schedule_us,execute_us,commit_us\n";
  for (const ui::TimelineStep& step : timeline.steps) {
    const StepRecord& r = step.record;
    for (const std::int64_t value :
         {r.step, r.begin_us, std::int64_t{r.num_prefill_tokens}, std::int64_t{r.num_decode_tokens},
          std::int64_t{r.num_running}, std::int64_t{r.num_waiting}, std::int64_t{r.num_swapped_groups},
          std::int64_t{r.used_blocks}, std::int64_t{r.cached_blocks}, std::int64_t{r.free_blocks},
          std::int64_t{r.host_used_blocks}, std::int64_t{r.logical_blocks}, std::int64_t{r.unfilled_slots},
          std::int64_t{r.num_preempted}, std::int64_t{r.num_block_copies}, std::int64_t{r.num_swapped_out},
          std::int64_t{r.num_swapped_in}, r.schedule_us, r.execute_us}) {
      text += std::to_string(value) + ",";
    }
    text += std::to_string(r.commit_us) + "\n";
  }
  return text;
}

Result<void> write_export(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return Error{ErrorCode::kInvalidArgument,
               "the file " + escape_for_message(path.string()) +
                   " could not be written; free some space or choose a writable folder"};
}

}  // namespace octavo::app
