#include "app/commands/inspect_recording.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "app/commands/request_json.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/metrics/recording_summary.h"

namespace octavo::app {
namespace {

using metrics::KvState;
using metrics::RecordingSummary;

// Unsigned: what a file says may not fit.
std::uint64_t bytes_of_blocks(const metrics::RecordingHeader& header, std::int64_t num_blocks) {
  return static_cast<std::uint64_t>(num_blocks) * static_cast<std::uint64_t>(header.bytes_per_block);
}

std::string size_of_blocks(const metrics::RecordingHeader& header, std::int64_t num_blocks) {
  return exact_bytes_text(bytes_of_blocks(header, num_blocks));
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return fixed_text(whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) +
         " %";
}

std::string seconds(std::int64_t us) { return seconds_text(us, 3); }

std::string shown(const std::string& text) { return strip_terminal_controls(escape_for_message(text)); }

// Empty for times that no calendar has.
std::string date_text(std::int64_t unix_time_s) {
  const auto time = static_cast<std::time_t>(unix_time_s);
  std::tm parts = {};
  char text[64];
  if (gmtime_r(&time, &parts) == nullptr) return {};
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts));
}

// "0-7, 12"
std::string runs_text(const std::vector<BlockId>& blocks) {
  std::string text;
  for (std::size_t first = 0; first < blocks.size();) {
    std::size_t last = first;
    while (last + 1 < blocks.size() && blocks[last + 1].value == blocks[last].value + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(blocks[first].value);
    if (last > first) text += "-" + std::to_string(blocks[last].value);
    first = last + 1;
  }
  return text;
}

// ---- the whole, as text

constexpr std::int32_t kChartRows = 8;

char chart_mark(const metrics::PoolTimeline::Level& level, std::int32_t num_blocks, std::int32_t row) {
  // Of eight rows the lowest is 0; a block in use shows, however large the pool.
  const auto height = [&](std::int64_t count) { return (count * kChartRows + num_blocks - 1) / num_blocks; };
  if (row < height(level.used)) return '#';
  return row < height(std::int64_t{level.used} + level.cached) ? '+' : ' ';
}

void print_chart(std::ostream& out, const RecordingSummary& summary) {
  const auto levels = summary.timeline.levels();
  if (levels.empty()) return;
  out << "pool over time  # used, + cached; one column is " << seconds(summary.timeline.stretch_us()) << "\n";
  for (std::int32_t row = kChartRows; row-- > 0;) {
    std::string line;
    for (const auto& level : levels) line += chart_mark(level, summary.header.pool.num_blocks, row);
    char label[16];
    std::snprintf(label, sizeof label, "%5.1f %%", 100.0 * (row + 1) / kChartRows);
    out << "        " << label << " |" << line << "|\n";
  }
}

void print_events(std::ostream& out, const RecordingSummary& summary) {
  out << "events          " << with_thousands(summary.num_events) << "\n";
  for (std::size_t i = 0; i < summary.num_events_of.size(); ++i) {
    if (summary.num_events_of[i] == 0) continue;
    std::string name(block_event_kind_name(static_cast<BlockEventKind>(i)));
    name.resize(16, ' ');
    out << "  " << name << with_thousands(summary.num_events_of[i]) << "\n";
  }
}

// Of recurrent layers: nothing where a model has none.
void print_states(std::ostream& out, const RecordingSummary& summary) {
  const metrics::RecordingHeader& header = summary.header;
  if (header.pool.num_states == 0) return;
  out << "states          " << with_thousands(header.pool.num_states) << " of "
      << exact_bytes_text(static_cast<std::uint64_t>(header.bytes_per_state)) << "; host pool "
      << with_thousands(header.pool.num_host_states) << "; "
      << with_thousands(summary.count(BlockEventKind::kStateKeep)) << " checkpoints kept, "
      << with_thousands(summary.count(BlockEventKind::kStateResume)) << " times resumed, "
      << with_thousands(summary.count(BlockEventKind::kStateCopy)) << " states copied\n";
}

// Of layers with a window that have a pool of their own: nothing where a model has none.
void print_windows(std::ostream& out, const RecordingSummary& summary) {
  const metrics::RecordingHeader& header = summary.header;
  if (header.pool.num_window_blocks == 0) return;
  out << "windows         " << with_thousands(header.pool.num_window_blocks) << " parts of "
      << exact_bytes_text(static_cast<std::uint64_t>(header.bytes_per_window_block)) << " for a window of "
      << with_thousands(header.pool.window) << " tokens; host pool "
      << with_thousands(header.pool.num_host_window_blocks) << "; "
      << with_thousands(summary.count(BlockEventKind::kLeaveWindow)) << " left behind\n";
}

void print_origin(std::ostream& out, const std::filesystem::path& path, const RecordingSummary& summary) {
  const metrics::RecordingHeader& header = summary.header;
  out << "recording       " << shown(path.string())
      << (summary.is_complete ? ", complete" : ", truncated; showing what was recorded") << "\n"
      << "model           " << shown(header.model) << "\n"
      << "started         " << date_text(header.unix_time_s) << ", " << seconds(summary.duration_us) << "\n"
      << "pool            " << with_thousands(header.pool.num_blocks) << " blocks of "
      << header.pool.block_size << " tokens, " << size_of_blocks(header, header.pool.num_blocks)
      << "; host pool " << with_thousands(header.pool.num_host_blocks) << " blocks, "
      << size_of_blocks(header, header.pool.num_host_blocks) << "\n";
  print_states(out, summary);
  print_windows(out, summary);
  out << "steps           " << with_thousands(summary.num_steps);
  if (summary.num_steps > 0) out << ", " << summary.first_step << " to " << summary.last_step;
  out << "\ntokens          " << with_thousands(summary.num_prefill_tokens) << " prefilled, "
      << with_thousands(summary.num_decode_tokens) << " decoded";
  if (summary.num_draft_tokens > 0) {
    out << "; " << with_thousands(summary.num_accepted_tokens) << " of "
        << with_thousands(summary.num_draft_tokens) << " draft tokens accepted";
  }
  out << "\n"
      << "sequences       " << with_thousands(summary.num_sequences) << ", including "
      << with_thousands(summary.num_forked_sequences) << " forked; at most " << summary.peak_running
      << " requests ran and " << summary.peak_waiting << " waited\n";
}

void print_memory(std::ostream& out, const RecordingSummary& summary) {
  const metrics::RecordingHeader& header = summary.header;
  out << "used blocks     at most " << with_thousands(summary.peak_used_blocks) << ", "
      << percent(summary.peak_used_blocks, header.pool.num_blocks) << " of the pool\n"
      << "logical blocks  at most " << with_thousands(summary.peak_logical_blocks) << "\n"
      << "sharing         at most " << fixed_text(summary.peak_sharing_ratio, 2)
      << " logical blocks per used block, and " << with_thousands(summary.peak_saved_blocks)
      << " blocks saved, " << size_of_blocks(header, summary.peak_saved_blocks) << "\n"
      << "copies          " << with_thousands(summary.count(BlockEventKind::kCopyOnWrite)) << " on write, "
      << with_thousands(summary.count(BlockEventKind::kCopyPartial)) << " of part of a block\n"
      << "prefix hits     " << with_thousands(summary.count(BlockEventKind::kHit)) << " blocks, "
      << with_thousands(summary.num_hit_tokens) << " tokens\n"
      << "evictions       " << with_thousands(summary.count(BlockEventKind::kEvict)) << " blocks\n"
      << "preemptions     " << with_thousands(summary.num_preempted_groups) << " requests; "
      << with_thousands(summary.num_preempted_recompute) << " sequences recomputed, "
      << with_thousands(summary.num_preempted_swap) << " swapped\n"
      << "swaps           " << with_thousands(summary.num_swapped_out) << " blocks out, "
      << size_of_blocks(header, summary.num_swapped_out) << "; " << with_thousands(summary.num_swapped_in)
      << " in, " << size_of_blocks(header, summary.num_swapped_in) << ", including "
      << with_thousands(summary.num_thrashed) << " within 10 s; " << with_thousands(summary.num_swap_dropped)
      << " not needed again; host pool at most " << with_thousands(summary.peak_host_used_blocks)
      << " used\n";
}

std::string summary_text(const std::filesystem::path& path, const RecordingSummary& summary) {
  std::ostringstream out;
  print_origin(out, path, summary);
  print_memory(out, summary);
  print_events(out, summary);
  out << "replay          "
      << (summary.inconsistency ? "inconsistent: " + *summary.inconsistency
                                : std::string("consistent: the events reproduce every recorded level"))
      << "\n";
  print_chart(out, summary);
  return out.str();
}

// ---- the whole, as JSON

Json json_of(const metrics::RecordingHeader& header) {
  return {{"model", header.model},
          {"unix_time_s", header.unix_time_s},
          {"block_size", header.pool.block_size},
          {"num_blocks", header.pool.num_blocks},
          {"num_host_blocks", header.pool.num_host_blocks},
          {"bytes_per_block", header.bytes_per_block},
          {"num_states", header.pool.num_states},
          {"num_host_states", header.pool.num_host_states},
          {"bytes_per_state", header.bytes_per_state},
          {"window", header.pool.window},
          {"num_window_blocks", header.pool.num_window_blocks},
          {"num_host_window_blocks", header.pool.num_host_window_blocks},
          {"bytes_per_window_block", header.bytes_per_window_block},
          {"max_model_len", header.max_model_len}};
}

Json timeline_json(const metrics::PoolTimeline& timeline) {
  Json used = Json::array(), cached = Json::array();
  for (const auto& level : timeline.levels()) {
    used.push_back(level.used);
    cached.push_back(level.cached);
  }
  return {{"stretch_us", timeline.stretch_us()}, {"used_blocks", used}, {"cached_blocks", cached}};
}

Json json_of(const RecordingSummary& summary) {
  Json events = Json::object();
  for (std::size_t i = 0; i < summary.num_events_of.size(); ++i) {
    if (summary.num_events_of[i] == 0) continue;
    events[std::string(block_event_kind_name(static_cast<BlockEventKind>(i)))] = summary.num_events_of[i];
  }
  return {
      {"recording", json_of(summary.header)},
      {"complete", summary.is_complete},
      {"consistent", !summary.inconsistency.has_value()},
      {"inconsistency", summary.inconsistency ? Json(*summary.inconsistency) : Json()},
      {"duration_us", summary.duration_us},
      {"steps", {{"count", summary.num_steps}, {"first", summary.first_step}, {"last", summary.last_step}}},
      {"prefill_tokens", summary.num_prefill_tokens},
      {"decode_tokens", summary.num_decode_tokens},
      {"draft_tokens", summary.num_draft_tokens},
      {"accepted_tokens", summary.num_accepted_tokens},
      {"sequences", summary.num_sequences},
      {"forked_sequences", summary.num_forked_sequences},
      {"peak_running", summary.peak_running},
      {"peak_waiting", summary.peak_waiting},
      {"peak_used_blocks", summary.peak_used_blocks},
      {"peak_logical_blocks", summary.peak_logical_blocks},
      {"peak_sharing_ratio", summary.peak_sharing_ratio},
      {"peak_saved_blocks", summary.peak_saved_blocks},
      {"peak_host_used_blocks", summary.peak_host_used_blocks},
      {"cow_copies", summary.count(BlockEventKind::kCopyOnWrite)},
      {"partial_copies", summary.count(BlockEventKind::kCopyPartial)},
      {"evicted_cached_blocks", summary.count(BlockEventKind::kEvict)},
      {"prefix_hit_blocks", summary.count(BlockEventKind::kHit)},
      {"prefix_hit_tokens", summary.num_hit_tokens},
      {"preempted_requests", summary.num_preempted_groups},
      {"preempted_sequences",
       {{"recompute", summary.num_preempted_recompute}, {"swap", summary.num_preempted_swap}}},
      {"swap",
       {{"blocks_out", summary.num_swapped_out},
        {"bytes_out", bytes_of_blocks(summary.header, summary.num_swapped_out)},
        {"blocks_in", summary.num_swapped_in},
        {"bytes_in", bytes_of_blocks(summary.header, summary.num_swapped_in)},
        {"blocks_in_within_10_s", summary.num_thrashed},
        {"blocks_dropped", summary.num_swap_dropped}}},
      {"num_events", summary.num_events},
      {"events", events},
      {"timeline", timeline_json(summary.timeline)}};
}

// ---- one step

// For each block of the pool, the sequences whose tables name it, ascending.
std::vector<std::vector<SequenceId>> owners_of_blocks(const KvState& state) {
  std::vector<std::vector<SequenceId>> owners(static_cast<std::size_t>(state.shape().num_blocks));
  for (const SequenceId sequence : state.sequences()) {
    for (const BlockId block : state.table_of(sequence)) {
      owners[index_of(block)].push_back(sequence);
    }
  }
  return owners;
}

std::string sequences_text(const std::vector<SequenceId>& sequences) {
  std::string text;
  for (const SequenceId sequence : sequences)
    text += (text.empty() ? "" : ", ") + std::to_string(sequence.value);
  return text;
}

void print_levels(std::ostream& out, const StepRecord& step, const KvState& state) {
  const std::int64_t num_slots = std::int64_t{state.num_used()} * state.shape().block_size;
  out << "step            " << step.step << ", " << step.num_prefill_tokens << " tokens prefilled, "
      << step.num_decode_tokens << " decoded";
  if (step.num_draft_tokens > 0) {
    out << ", " << step.num_accepted_tokens << " of " << step.num_draft_tokens << " draft tokens accepted";
  }
  out << "\n"
      << "blocks          " << with_thousands(state.num_used()) << " used, "
      << with_thousands(state.num_cached()) << " cached, " << with_thousands(state.num_free()) << " free\n"
      << "logical blocks  " << with_thousands(state.num_logical()) << "\n"
      << "slots           " << with_thousands(state.num_filled_slots()) << " filled of "
      << with_thousands(num_slots) << " in used blocks\n"
      << "host blocks     " << with_thousands(state.num_host_used()) << " used of "
      << with_thousands(state.shape().num_host_blocks) << "\n";
}

// Neighbours with the same owners on one line.
void print_shared(std::ostream& out, const std::vector<std::vector<SequenceId>>& owners) {
  for (std::size_t first = 0; first < owners.size();) {
    std::size_t last = first;
    while (last + 1 < owners.size() && owners[last + 1] == owners[first]) ++last;
    if (owners[first].size() > 1) {
      out << "  " << first << (last > first ? "-" + std::to_string(last) : std::string()) << " by sequences "
          << sequences_text(owners[first]) << "\n";
    }
    first = last + 1;
  }
}

std::string state_text(const StepRecord& step, const KvState& state) {
  std::ostringstream out;
  print_levels(out, step, state);
  out << "tables\n";
  for (const SequenceId sequence : state.sequences()) {
    const auto table = state.table_of(sequence);
    out << "  sequence " << sequence.value << ", " << table.size()
        << " blocks: " << runs_text({table.begin(), table.end()}) << "\n";
  }
  out << "shared blocks\n";
  print_shared(out, owners_of_blocks(state));
  std::vector<BlockId> cached;
  for (std::int32_t id = 0; id < state.shape().num_blocks; ++id) {
    if (state.block(BlockId{id}).state == BlockState::kCached) cached.push_back(BlockId{id});
  }
  out << "cached blocks\n  " << runs_text(cached) << "\n";
  return out.str();
}

Json blocks_json(const KvState& state) {
  Json blocks = Json::array();
  const auto owners = owners_of_blocks(state);
  for (std::int32_t id = 0; id < state.shape().num_blocks; ++id) {
    const KvState::Block block = state.block(BlockId{id});
    if (block.state == BlockState::kFree) continue;
    Json names = Json::array();
    for (const SequenceId sequence : owners[static_cast<std::size_t>(id)]) names.push_back(sequence.value);
    blocks.push_back({{"block", id},
                      {"state", block.state == BlockState::kUsed ? "used" : "cached"},
                      {"ref_count", block.ref_count},
                      {"num_pins", block.num_pins},
                      {"filled", block.num_filled},
                      {"findable", block.is_findable},
                      {"owners", names}});
  }
  return blocks;
}

Json state_json(const StepRecord& step, const KvState& state) {
  Json sequences = Json::array();
  for (const SequenceId sequence : state.sequences()) {
    Json table = Json::array();
    for (const BlockId block : state.table_of(sequence)) table.push_back(block.value);
    sequences.push_back({{"sequence_id", sequence.value}, {"block_table", table}});
  }
  return {{"step", step.step},
          {"prefill_tokens", step.num_prefill_tokens},
          {"decode_tokens", step.num_decode_tokens},
          {"draft_tokens", step.num_draft_tokens},
          {"accepted_tokens", step.num_accepted_tokens},
          {"used_blocks", state.num_used()},
          {"cached_blocks", state.num_cached()},
          {"free_blocks", state.num_free()},
          {"logical_blocks", state.num_logical()},
          {"filled_slots", state.num_filled_slots()},
          {"host_used_blocks", state.num_host_used()},
          {"sequences", sequences},
          {"blocks", blocks_json(state)}};
}

std::string contradiction(const std::filesystem::path& path, const std::string& what) {
  return shown(path.string()) + " is inconsistent: " + what;
}

}  // namespace

Result<RecordingReport> report_recording(const std::filesystem::path& path, bool json) {
  OCTAVO_TRY(const RecordingSummary summary, metrics::summarise_recording(path));
  RecordingReport report;
  report.text = json ? dump_for_output(json_of(summary)) + "\n" : summary_text(path, summary);
  if (summary.inconsistency) report.problem = contradiction(path, *summary.inconsistency);
  return report;
}

Result<RecordingReport> report_recording_at_step(const std::filesystem::path& path, std::int64_t step,
                                                 bool json) {
  OCTAVO_TRY(const metrics::StateAtStep found, metrics::replay_to_step(path, step));
  return RecordingReport{json ? dump_for_output(state_json(found.step, found.state)) + "\n"
                              : state_text(found.step, found.state),
                         std::nullopt};
}

}  // namespace octavo::app
