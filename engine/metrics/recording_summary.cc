#include "engine/metrics/recording_summary.h"

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <utility>

#include "engine/base/text.h"
#include "engine/metrics/kv_figures.h"
#include "engine/metrics/recording_reader.h"

namespace octavo::metrics {
namespace {

PoolTimeline::Level higher_of(PoolTimeline::Level a, PoolTimeline::Level b) {
  return {std::max(a.used, b.used), std::max(a.cached, b.cached)};
}

// The first level in which a step's record is not what its events made.
std::optional<std::string> wrong_level(const StepRecord& step, const KvState& state) {
  struct Level {
    const char* name;
    std::int64_t recorded, replayed;
  };
  const Level levels[] = {{"used blocks", step.used_blocks, state.num_used()},
                          {"cached blocks", step.cached_blocks, state.num_cached()},
                          {"free blocks", step.free_blocks, state.num_free()},
                          {"logical blocks", step.logical_blocks, state.num_logical()},
                          {"filled slots", step.filled_slots, state.num_filled_slots()},
                          {"used host blocks", step.host_used_blocks, state.num_host_used()},
                          {"used window parts", step.used_window_blocks, state.num_used_windows()},
                          {"cached window parts", step.cached_window_blocks, state.num_cached_windows()}};
  for (const Level& level : levels) {
    if (level.recorded == level.replayed) continue;
    return "step " + std::to_string(step.step) + " recorded " + std::to_string(level.recorded) + " " +
           level.name + ", but its events give " + std::to_string(level.replayed);
  }
  return std::nullopt;
}

// Replays a recording in order. `Visitor` is told of each event once it was applied, and of each step once
// the state is the one that its record describes.
class Replay {
 public:
  explicit Replay(const RecordingReader& reader) : state_(reader.start()) {}

  template <class Visitor>
  void add(const RecordingPart& part, Visitor& visitor) {
    steps_.insert(steps_.end(), part.steps.begin(), part.steps.end());
    tell_steps(visitor);
    for (const BlockEvent& event : part.events) {
      if (!inconsistency_) apply(event);
      ++num_events_;
      visitor.on_event(event, !inconsistency_);
      tell_steps(visitor);
    }
  }

  const KvState& state() const { return state_; }
  const std::optional<std::string>& inconsistency() const { return inconsistency_; }

 private:
  void apply(const BlockEvent& event) {
    if (const auto applied = state_.apply(event); !applied) {
      inconsistency_ = "event " + std::to_string(num_events_) + ": " + applied.error().message;
    }
  }

  template <class Visitor>
  void tell_steps(Visitor& visitor) {
    for (; !steps_.empty() && steps_.front().event_mark == num_events_; steps_.pop_front()) {
      const StepRecord& step = steps_.front().record;
      if (!inconsistency_) inconsistency_ = wrong_level(step, state_);
      visitor.on_step(step, state_);
    }
  }

  KvState state_;
  std::deque<RecordedStep> steps_;  // whose events have not all come
  std::uint64_t num_events_ = 0;
  std::optional<std::string> inconsistency_;
};

class Summariser {
 public:
  explicit Summariser(RecordingSummary& summary, const KvState& state) : summary_(summary), state_(state) {}

  void on_event(const BlockEvent& event, bool is_possible) {
    ++summary_.num_events;
    ++summary_.num_events_of[static_cast<std::size_t>(event.kind)];
    first_us_ = first_us_ < 0 ? event.time_us : first_us_;
    summary_.duration_us = std::max(summary_.duration_us, event.time_us - first_us_);
    count_sequence(event);
    if (event.kind == BlockEventKind::kPreempt) {
      ++(event.aux == 1 ? summary_.num_preempted_swap : summary_.num_preempted_recompute);
    }
    if (!is_possible) return;
    swaps_.add(event);
    if (event.kind == BlockEventKind::kHit)
      summary_.num_hit_tokens += state_.block(BlockId{event.block}).num_filled;
    if (event.kind == BlockEventKind::kStepEnd) note_peaks();
    summary_.peak_host_used_blocks = std::max(summary_.peak_host_used_blocks, state_.num_host_used());
  }

  void on_step(const StepRecord& step, const KvState&) {
    if (summary_.num_steps++ == 0) {
      summary_.first_step = step.step;
      if (first_us_ < 0 || step.begin_us < first_us_) first_us_ = step.begin_us;
    }
    summary_.last_step = step.step;
    summary_.num_prefill_tokens += step.num_prefill_tokens;
    summary_.num_decode_tokens += step.num_decode_tokens;
    summary_.num_draft_tokens += step.num_draft_tokens;
    summary_.num_accepted_tokens += step.num_accepted_tokens;
    summary_.num_preempted_groups += step.num_preempted;
    summary_.peak_running = std::max(summary_.peak_running, step.num_running);
    summary_.peak_waiting = std::max(summary_.peak_waiting, step.num_waiting);
    summary_.timeline.add(step.begin_us, {step.used_blocks, step.cached_blocks});
  }

  void finish() {
    summary_.num_sequences = static_cast<std::int64_t>(sequences_.size());
    summary_.num_forked_sequences = static_cast<std::int64_t>(forked_.size());
    summary_.num_swapped_out = swaps_.num_out();
    summary_.num_swapped_in = swaps_.num_in();
    summary_.num_swap_dropped = swaps_.num_dropped();
    summary_.num_thrashed = swaps_.num_thrashed();
  }

 private:
  void count_sequence(const BlockEvent& event) {
    if (event.kind == BlockEventKind::kFork) forked_.insert(static_cast<std::uint32_t>(event.aux));
    const bool gives_block = event.kind == BlockEventKind::kAlloc || event.kind == BlockEventKind::kHit ||
                             event.kind == BlockEventKind::kShare;
    if (gives_block) sequences_.insert(event.sequence);
  }

  // While a step computes: before what ended in it let go.
  void note_peaks() {
    const std::int32_t num_used = state_.num_used(), num_logical = state_.num_logical();
    summary_.peak_used_blocks = std::max(summary_.peak_used_blocks, num_used);
    summary_.peak_logical_blocks = std::max(summary_.peak_logical_blocks, num_logical);
    summary_.peak_saved_blocks = std::max(summary_.peak_saved_blocks, num_logical - num_used);
    if (num_used == 0) return;
    summary_.peak_sharing_ratio =
        std::max(summary_.peak_sharing_ratio, static_cast<double>(num_logical) / num_used);
  }

  RecordingSummary& summary_;
  const KvState& state_;
  SwapMeter swaps_;
  std::unordered_set<std::uint64_t> sequences_;
  std::unordered_set<std::uint32_t> forked_;
  std::int64_t first_us_ = -1;
};

// Keeps the state of one step.
struct StepFinder {
  std::int64_t wanted = 0;
  std::optional<StateAtStep> found = {};
  std::int64_t first_step = -1, last_step = -1;

  void on_event(const BlockEvent&, bool) {}
  void on_step(const StepRecord& step, const KvState& state) {
    if (first_step < 0) first_step = step.step;
    last_step = step.step;
    if (step.step == wanted) found = StateAtStep{step, state};
  }
};

}  // namespace

// ---- the timeline

void PoolTimeline::add(std::int64_t time_us, Level level) {
  if (begin_us_ < 0) begin_us_ = time_us;
  const std::int64_t since_us = std::max<std::int64_t>(time_us - begin_us_, 0);
  while (since_us / stretch_us_ >= static_cast<std::int64_t>(kMostStretches)) halve();
  const auto index = static_cast<std::size_t>(since_us / stretch_us_);
  if (stretches_.size() <= index) stretches_.resize(index + 1);
  Stretch& stretch = stretches_[index];
  stretch.highest = stretch.has_step ? higher_of(stretch.highest, level) : level;
  stretch.last = level;
  stretch.has_step = true;
}

// Twice as long, half as many.
void PoolTimeline::halve() {
  std::vector<Stretch> halved((stretches_.size() + 1) / 2);
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& from = stretches_[i];
    Stretch& to = halved[i / 2];
    if (!from.has_step) continue;
    to.highest = to.has_step ? higher_of(to.highest, from.highest) : from.highest;
    to.last = from.last;
    to.has_step = true;
  }
  stretches_ = std::move(halved);
  stretch_us_ *= 2;
}

std::vector<PoolTimeline::Level> PoolTimeline::levels() const {
  std::vector<Level> levels;
  Level before;
  for (const Stretch& stretch : stretches_) {
    levels.push_back(stretch.has_step ? stretch.highest : before);
    if (stretch.has_step) before = stretch.last;
  }
  return levels;
}

// ---- the whole, and one step

Result<RecordingSummary> summarise_recording(const std::filesystem::path& path) {
  OCTAVO_TRY(RecordingReader reader, RecordingReader::open(path));
  RecordingSummary summary;
  summary.header = reader.header();
  Replay replay(reader);
  Summariser summariser(summary, replay.state());
  while (true) {
    OCTAVO_TRY(const std::optional<RecordingPart> part, reader.next());
    if (!part) break;
    replay.add(*part, summariser);
  }
  summariser.finish();
  summary.is_complete = reader.is_complete();
  summary.inconsistency = replay.inconsistency();
  return summary;
}

Result<StateAtStep> replay_to_step(const std::filesystem::path& path, std::int64_t step) {
  OCTAVO_TRY(RecordingReader reader, RecordingReader::open(path));
  Replay replay(reader);
  StepFinder finder{.wanted = step};
  while (!finder.found) {
    OCTAVO_TRY(const std::optional<RecordingPart> part, reader.next());
    if (!part) break;
    replay.add(*part, finder);
  }
  if (replay.inconsistency() && !finder.found) {
    return Error{ErrorCode::kDamagedFile, escape_for_message(path.string()) + ": " + *replay.inconsistency()};
  }
  if (finder.found) return *std::move(finder.found);
  return Error{ErrorCode::kNotFound, escape_for_message(path.string()) + " has no step " +
                                         std::to_string(step) + ": its steps are " +
                                         std::to_string(finder.first_step) + " to " +
                                         std::to_string(finder.last_step)};
}

}  // namespace octavo::metrics
