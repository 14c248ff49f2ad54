#include "app/window/memory/memory_health.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/format.h"
#include "engine/metrics/kv_figures.h"

namespace octavo::app {
namespace {

constexpr double kSpanSeconds = 60.0;
constexpr std::size_t kMostSentences = 3;
constexpr std::size_t kLinesLookedAt = 400;
constexpr std::uint32_t kAccent = 100;

// ---- figures

template <class Value>
std::vector<ui::FigureSample> curve(const ui::TimelineState& timeline, std::uint64_t mark, Value value) {
  std::vector<ui::FigureSample> samples;
  double end = -1;
  for (auto step = timeline.steps.rbegin(); step != timeline.steps.rend(); ++step) {
    if (step->mark > mark) continue;
    const double at = static_cast<double>(step->record.begin_us - timeline.origin_us) / 1e6;
    if (end < 0) end = at;
    if (at < end - kSpanSeconds) break;
    samples.push_back({at, value(step->record)});
  }
  std::reverse(samples.begin(), samples.end());
  return samples;
}

const ui::TimelineStep* step_at(const ui::TimelineState& timeline, std::uint64_t mark) {
  for (auto step = timeline.steps.rbegin(); step != timeline.steps.rend(); ++step) {
    if (step->mark <= mark) return &*step;
  }
  return nullptr;
}

std::int32_t num_swapped_requests(const KvSnapshot& snapshot) {
  std::set<RequestId> requests;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kSwapped) requests.insert(sequence.request_id);
  }
  return static_cast<std::int32_t>(requests.size());
}

ui::HealthFigure hits_figure(const ui::TimelineState& timeline, const KvTotals& totals, std::uint64_t mark) {
  const ui::TimelineStep* step = step_at(timeline, mark);
  const metrics::PrefixHits hits{.num_reused = totals.prefix_hit_tokens,
                                 .num_computed = step != nullptr ? step->num_prefilled : 0};
  return {.id = "hits",
          .value = percent_text(hits.share()),
          .label = "prefix hits",
          .note = count_text(hits.num_reused, "token") + " reused",
          .definition =
              "Prefix hits: share of prompt tokens whose keys and values were reused, since the start."};
}

ui::HealthFigure swap_figure(const KvTotals& totals) {
  const std::int64_t bytes = (totals.swapped_out_blocks + totals.swapped_in_blocks) * totals.bytes_per_block;
  const double ms = static_cast<double>(totals.swap_out_us + totals.swap_in_us) / 1000.0;
  std::string note = bytes_text(bytes);
  if (ms > 0) note += " in " + duration_text(ms);
  return {.id = "swapped",
          .value = with_thousands(totals.swapped_out_blocks),
          .label = "swapped out, " + with_thousands(totals.swapped_in_blocks) + " back",
          .note = note,
          .definition =
              "Blocks copied from the device pool to the host pool and back since the start; bytes and time "
              "count both directions. Shared blocks are copied once.",
          .colour = 4};
}

ui::HealthFigure use_figure(const KvSnapshot& snapshot) {
  const metrics::KvUse use = metrics::measure_use(snapshot);
  return {.id = "effective",
          .value = percent_text(use.effective_use),
          .label = "effective use",
          .note = percent_text(use.tokens_held) + " of all slots",
          .definition =
              "Effective use: share of the slots in used blocks that some sequence reads. Below: the same "
              "slots as a share of the whole pool (tokens held)."};
}

ui::HealthFigure other_rules_figure(const KvSnapshot& snapshot, const ui::ShownPool& pool) {
  const metrics::Counterfactuals other = metrics::measure_counterfactuals(snapshot, pool.max_model_len);
  return {.id = "contiguous",
          .value = bytes_text(other.contiguous_bytes),
          .label = "if reserved at full length",
          .note = bytes_text(other.unshared_bytes) + " without sharing",
          .definition =
              "What other schemes would hold now for the same running sequences: one contiguous reservation "
              "of the maximum length for each, and paging without sharing."};
}

ui::HealthFigure scatter_figure(const KvSnapshot& snapshot) {
  std::int64_t num_runs = 0, num_blocks = 0;
  for (const metrics::Scatter& scatter : metrics::measure_scatter(snapshot)) {
    num_runs += scatter.num_runs;
    num_blocks += scatter.num_blocks;
  }
  const metrics::KvUse use = metrics::measure_use(snapshot);
  const double share =
      num_blocks == 0 ? 0.0 : static_cast<double>(num_runs) / static_cast<double>(num_blocks);
  return {.id = "scatter",
          .value = fixed_text(share, 2),
          .label = "scatter, not waste",
          .note = "longest free run " + with_thousands(use.longest_free_run),
          .definition =
              "Scatter: runs of consecutive block ids in the tables, divided by their blocks. Not waste, "
              "because attention reads through the table. Below: the longest run of free blocks."};
}

// Of models with recurrent layers.
ui::HealthFigure states_figure(const KvSnapshot& snapshot) {
  const KvFigures& figures = snapshot.figures;
  const std::int64_t num_held = std::int64_t{figures.used_states} + figures.cached_states;
  return {.id = "states",
          .value = with_thousands(figures.used_states) + " of " + with_thousands(snapshot.totals.num_states),
          .label = "recurrent states in use",
          .note = bytes_text(num_held * snapshot.totals.bytes_per_state) + " held",
          .definition =
              "Recurrent states in use: states that some sequence owns, of all in the pool. A state "
              "has one size, whatever the length of its text. Held: the bytes of these and of the "
              "checkpoints that nobody owns."};
}

ui::HealthFigure checkpoints_figure(const KvSnapshot& snapshot) {
  const StateTotals& totals = snapshot.totals.states;
  return {.id = "checkpoints",
          .value = with_thousands(snapshot.figures.checkpoints),
          .label = snapshot.figures.checkpoints == 1 ? "checkpoint" : "checkpoints",
          .note = "resumed " + count_text(totals.num_resumed, "time") + ", " +
                  with_thousands(totals.num_evicted) + " evicted",
          .definition =
              "Checkpoints: states that can be found again by the tokens before them. Resumed and "
              "evicted count since the start. Kept since then: " +
              with_thousands(totals.num_taken) + "."};
}

// Of models whose layers with a window have a pool of their own.
ui::HealthFigure windows_figure(const KvSnapshot& snapshot, const ui::TimelineState& timeline,
                                std::uint64_t mark) {
  const KvFigures& figures = snapshot.figures;
  const double num_places = std::max(1, snapshot.totals.num_window_blocks);
  return {.id = "windows",
          .value = percent_text(figures.used_window_blocks / num_places),
          .label = "window pool used",
          .note = percent_text(figures.cached_window_blocks / num_places) + " kept, " +
                  percent_text(figures.free_window_blocks / num_places) + " free",
          .definition =
              "Window pool used: share of its places whose window part some sequence reads. Kept: "
              "parts that nobody reads, so that a prompt that begins alike can resume. They are "
              "given up when a place is needed. With the free places, the three add up to the pool.",
          .samples = curve(timeline, mark,
                           [](const StepRecord& record) { return double(record.used_window_blocks); }),
          .least_range = 4,
          .colour = 3};
}

ui::HealthFigure left_behind_figure(const KvSnapshot& snapshot) {
  const metrics::WindowUse use = metrics::measure_windows(snapshot);
  const WindowTotals& totals = snapshot.totals.windows;
  return {
      .id = "left_behind",
      .value = bytes_text(use.spared_bytes),
      .label = "spared by windows",
      .note = with_thousands(use.num_left_behind) + " left behind",
      .definition =
          "Spared by windows: blocks that are held without their window part, times its bytes. Left "
          "behind: block-table entries whose window part their sequence reads no more. Since the start, " +
          count_text(totals.num_left, "part") + " left behind and " + with_thousands(totals.num_evicted) +
          " evicted."};
}

// ---- sentences

std::string when(std::int64_t time_us, std::int64_t now_us, std::int64_t origin_us) {
  const std::int64_t age = now_us - time_us;
  if (now_us < 0 || age > kAgesCountUs) return "at " + seconds_text(time_us - origin_us);
  return fixed_text(static_cast<double>(std::max<std::int64_t>(0, age)) / 1e6, 1) + " s ago";
}

std::string sentence_of(const ui::LogLine& line, const ui::MemoryWorkspaceState& state, std::int64_t now_us) {
  const std::string name = ui::sequence_name(*state.timeline, line.sequence);
  const std::string time = when(line.time_us, now_us, state.timeline->origin_us);
  const std::string blocks =
      count_text(line.count, "block") + ", " + bytes_text(line.count * state.pool.bytes_per_block);
  switch (line.kind) {
    case BlockEventKind::kSwapOut: return name + " was swapped out " + time + ": " + blocks + ".";
    case BlockEventKind::kSwapIn: return name + " was swapped in " + time + ": " + blocks + ".";
    case BlockEventKind::kPreempt:
      return line.aux == 1 ? std::string() : name + " lost its blocks " + time + " and will be recomputed.";
    case BlockEventKind::kEvict:
      return count_text(line.count, "cached block") + (line.count == 1 ? " was" : " were") + " evicted " +
             time + " to make room for " + name + ".";
    case BlockEventKind::kStateMiss:
      return name + " recomputed " + count_text(line.aux, "token") + " " + time +
             ": their blocks were there, but no checkpoint.";
    case BlockEventKind::kWindowMiss:
      return name + " recomputed " + count_text(line.aux, "token") + " " + time +
             ": their blocks were there, but not all window parts before them.";
    case BlockEventKind::kLeaveWindow:
      return "The window of " + name + " passed " + count_text(line.count, "block") + " " + time + ".";
    default: return {};
  }
}

bool is_alarm(BlockEventKind kind) {
  return kind == BlockEventKind::kSwapOut || kind == BlockEventKind::kPreempt;
}

}  // namespace

std::vector<ui::HealthFigure> health_figures(const KvSnapshot& snapshot, const ui::ShownPool& pool,
                                             const ui::TimelineState& timeline, std::uint64_t mark) {
  const KvFigures& figures = snapshot.figures;
  const double blocks = std::max(1, pool.num_blocks);
  const double block_size = pool.block_size;
  const std::int32_t num_swapped = num_swapped_requests(snapshot);
  const auto fragmentation = [&](const StepRecord& record) {
    return metrics::internal_fragmentation(record, pool.block_size);
  };
  std::vector<ui::HealthFigure> all = {
      {.id = "used",
       .value = percent_text(figures.used_blocks / blocks),
       .label = "used",
       .note = count_text(figures.used_blocks, "block"),
       .definition =
           "Used: share of blocks with at least one reference, including blocks held by a step in progress.",
       .samples = curve(timeline, mark, [](const StepRecord& record) { return double(record.used_blocks); }),
       .least_range = 4,
       .colour = kAccent},
      {.id = "cached",
       .value = percent_text(figures.cached_blocks / blocks),
       .label = "cached",
       .note = "evictable, not waste",
       .definition = "Cached: share of blocks that are not in use but whose contents can still be reused. "
                     "They are evicted when memory is needed.",
       .samples =
           curve(timeline, mark, [](const StepRecord& record) { return double(record.cached_blocks); }),
       .least_range = 4,
       .colour = 101},
      {.id = "free",
       .value = percent_text(figures.free_blocks / blocks),
       .label = "free",
       .note = count_text(figures.free_blocks, "block"),
       .definition = "Free: share of blocks that hold nothing.",
       .samples = curve(timeline, mark, [](const StepRecord& record) { return double(record.free_blocks); }),
       .least_range = 4,
       .colour = 101},
      {.id = "fragmentation",
       .value = percent_text(figures.internal_fragmentation),
       .label = "internal fragmentation",
       .note = count_text(figures.unfilled_slots, "empty slot"),
       .definition = "Internal fragmentation: share of the slots in used blocks that are neither filled nor "
                     "reserved. Each block counts once.",
       .samples = curve(timeline, mark, fragmentation),
       .least_range = 0.02,
       .colour = 1},
      {.id = "sharing",
       .value = fixed_text(figures.sharing_ratio, 2) + " ×",
       .label = "sharing",
       .note = "saved " + bytes_text(figures.saved_bytes),
       .definition = "Sharing ratio: block-table entries of resident sequences, divided by used blocks. "
                     "Saved: the difference times the bytes per block.",
       .samples = curve(timeline, mark, metrics::sharing_ratio),
       .least_range = 0.1,
       .colour = 2},
      swap_figure(snapshot.totals)};
  all.back().samples =
      curve(timeline, mark, [](const StepRecord& record) { return double(record.host_used_blocks); });
  all.back().least_range = 4;
  if (num_swapped > 0) all.back().note += ", " + count_text(num_swapped, "request") + " out";
  if (pool.num_states > 0) {
    all.push_back(states_figure(snapshot));
    all.push_back(checkpoints_figure(snapshot));
  }
  if (pool.num_window_blocks > 0) {
    all.push_back(windows_figure(snapshot, timeline, mark));
    all.push_back(left_behind_figure(snapshot));
  }
  all.push_back(hits_figure(timeline, snapshot.totals, mark));
  all.push_back(use_figure(snapshot));
  all.push_back({.id = "reserved",
                 .value = with_thousands(figures.reserved_ahead_slots),
                 .label = "slots reserved ahead",
                 .note = percent_text(figures.reserved_ahead_slots / (blocks * block_size)) + " of the pool",
                 .definition = "Reserved ahead: slots held by chunked prefill and speculation for tokens "
                               "that do not exist yet. Not counted as fragmentation."});
  all.push_back({.id = "external",
                 .value = "0 %",
                 .label = "external fragmentation",
                 .note = "one block size",
                 .definition = "External fragmentation: free memory that cannot serve a request. It is 0 "
                               "because all blocks have the same size, so any free block fits any request."});
  all.push_back(scatter_figure(snapshot));
  all.push_back(other_rules_figure(snapshot, pool));
  return all;
}

std::vector<ui::HealthSentence> health_sentences(const KvSnapshot& snapshot,
                                                 const ui::MemoryWorkspaceState& state, std::uint64_t mark,
                                                 std::int64_t now_us) {
  std::vector<ui::HealthSentence> sentences;
  const auto& log = state.timeline->log;
  std::size_t num_seen = 0;
  std::set<std::pair<std::uint64_t, BlockEventKind>> told;
  for (auto line = log.rbegin(); line != log.rend() && sentences.size() < kMostSentences; ++line) {
    if (line->mark >= mark) continue;
    if (++num_seen > kLinesLookedAt) break;
    if (!told.insert({line->sequence, line->kind}).second) continue;
    std::string text = sentence_of(*line, state, now_us);
    if (!text.empty()) sentences.push_back({std::move(text), is_alarm(line->kind), line->last_mark + 1});
  }
  if (!sentences.empty()) return sentences;
  const bool is_full = snapshot.figures.free_blocks + snapshot.figures.cached_blocks == 0;
  const bool runs = std::ranges::any_of(snapshot.sequences, [](const SequenceSnapshot& sequence) {
    return sequence.state == SequenceState::kRunning;
  });
  if (is_full)
    return {{"All blocks are in use. The next request waits, or another is preempted.", true, mark}};
  const auto room = std::int64_t{snapshot.figures.free_blocks} + snapshot.figures.cached_blocks;
  const std::string blocks = count_text(room, "block");
  return {{runs ? "All running requests have their blocks. " + blocks +
                      " can be allocated before anything must be preempted."
                : "Nothing is running. " + blocks + " can be allocated.",
           false, mark}};
}

}  // namespace octavo::app
