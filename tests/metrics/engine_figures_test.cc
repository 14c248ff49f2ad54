// No figure differs from a recount: what the engine keeps up to date, what its step records say, and what its
// events make, held against the blocks and tables themselves after every step of random traffic.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/metrics/kv_figures.h"
#include "engine/metrics/pool_story.h"
#include "tests/block/seed.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::metrics {
namespace {

void expect_equal(const KvFigures& kept, const KvFigures& recounted) {
  EXPECT_EQ(kept.used_blocks, recounted.used_blocks);
  EXPECT_EQ(kept.cached_blocks, recounted.cached_blocks);
  EXPECT_EQ(kept.free_blocks, recounted.free_blocks);
  EXPECT_EQ(kept.logical_blocks, recounted.logical_blocks);
  EXPECT_DOUBLE_EQ(kept.sharing_ratio, recounted.sharing_ratio);
  EXPECT_EQ(kept.saved_bytes, recounted.saved_bytes);
  EXPECT_DOUBLE_EQ(kept.internal_fragmentation, recounted.internal_fragmentation);
  EXPECT_EQ(kept.unfilled_slots, recounted.unfilled_slots);
  EXPECT_EQ(kept.reserved_ahead_slots, recounted.reserved_ahead_slots);
  EXPECT_EQ(kept.filled_slots, recounted.filled_slots);
  EXPECT_EQ(kept.host_used_blocks, recounted.host_used_blocks);
  EXPECT_EQ(kept.used_states, recounted.used_states);
  EXPECT_EQ(kept.cached_states, recounted.cached_states);
  EXPECT_EQ(kept.free_states, recounted.free_states);
  EXPECT_EQ(kept.host_used_states, recounted.host_used_states);
  EXPECT_EQ(kept.checkpoints, recounted.checkpoints);
  EXPECT_EQ(kept.used_window_blocks, recounted.used_window_blocks);
  EXPECT_EQ(kept.cached_window_blocks, recounted.cached_window_blocks);
  EXPECT_EQ(kept.free_window_blocks, recounted.free_window_blocks);
  EXPECT_EQ(kept.host_used_window_blocks, recounted.host_used_window_blocks);
}

void expect_equal(const StepRecord& step, const KvFigures& recounted) {
  EXPECT_EQ(step.used_blocks, recounted.used_blocks);
  EXPECT_EQ(step.cached_blocks, recounted.cached_blocks);
  EXPECT_EQ(step.free_blocks, recounted.free_blocks);
  EXPECT_EQ(step.logical_blocks, recounted.logical_blocks);
  EXPECT_EQ(step.unfilled_slots, recounted.unfilled_slots);
  EXPECT_EQ(step.reserved_ahead_slots, recounted.reserved_ahead_slots);
  EXPECT_EQ(step.filled_slots, recounted.filled_slots);
  EXPECT_EQ(step.host_used_blocks, recounted.host_used_blocks);
  EXPECT_EQ(step.used_window_blocks, recounted.used_window_blocks);
  EXPECT_EQ(step.cached_window_blocks, recounted.cached_window_blocks);
}

// Totals by counting events, and peaks by looking at every step's end.
class EventCount {
 public:
  explicit EventCount(const PoolShape& pool) : state_(pool), story_(story_of(state_)) {}

  void add(const BlockEvent& event) {
    tell(story_, state_, event);
    const auto applied = state_.apply(event);
    ASSERT_TRUE(applied.has_value()) << applied.error().message;
    switch (event.kind) {
      case BlockEventKind::kStepEnd:
        peak_used_ = std::max(peak_used_, state_.num_used());
        peak_logical_ = std::max(peak_logical_, state_.num_logical());
        break;
      case BlockEventKind::kCopyPartial: ++num_partial_copies_; [[fallthrough]];
      case BlockEventKind::kCopyOnWrite: ++num_copies_; break;
      case BlockEventKind::kEvict: ++num_evicted_; break;
      case BlockEventKind::kSwapOut: ++num_swapped_out_; break;
      case BlockEventKind::kSwapIn: ++num_swapped_in_; break;
      case BlockEventKind::kPrune: ++num_pruned_; break;
      case BlockEventKind::kStateKeep: ++states_.num_taken; break;
      case BlockEventKind::kStateWorth: ++num_state_worths_; break;
      case BlockEventKind::kStateResume: ++states_.num_resumed; break;
      case BlockEventKind::kStateCopy: ++states_.num_copied; break;
      case BlockEventKind::kLeaveWindow: ++windows_.num_left; break;
      case BlockEventKind::kWindowSwapOut: ++windows_.num_swapped_out; break;
      case BlockEventKind::kWindowSwapIn: ++windows_.num_swapped_in; break;
      case BlockEventKind::kWindowMiss: ++num_window_misses_; break;
      default: break;
    }
    peak_host_used_ = std::max(peak_host_used_, state_.num_host_used());
  }

  void expect_equal(const KvTotals& totals) const {
    EXPECT_EQ(totals.peak_used_blocks, peak_used_);
    EXPECT_EQ(totals.peak_logical_blocks, peak_logical_);
    EXPECT_EQ(totals.partial_copies, num_partial_copies_);
    EXPECT_EQ(totals.cow_copies, num_copies_);
    EXPECT_EQ(totals.evicted_cached_blocks, num_evicted_);
    EXPECT_EQ(totals.swapped_out_blocks, num_swapped_out_);
    EXPECT_EQ(totals.swapped_in_blocks, num_swapped_in_);
    EXPECT_EQ(totals.host_used_blocks, state_.num_host_used());
    EXPECT_EQ(totals.peak_host_used_blocks, peak_host_used_);
  }

  // Totals of states are noted at the end of a step.
  void expect_equal(const StateTotals& totals) const {
    EXPECT_EQ(totals.num_taken, states_.num_taken);
    EXPECT_EQ(totals.num_resumed, states_.num_resumed);
    EXPECT_EQ(totals.num_copied, states_.num_copied);
    EXPECT_EQ(totals.num_evicted, story_.num_evicted_states);
    EXPECT_EQ(totals.num_swapped_out, story_.num_states_out);
    EXPECT_EQ(totals.num_swapped_in, story_.num_states_in);
  }

  // Likewise.
  void expect_equal(const WindowTotals& totals) const {
    EXPECT_EQ(totals.num_left, windows_.num_left);
    EXPECT_EQ(totals.num_evicted, story_.num_evicted_windows);
    EXPECT_EQ(totals.num_swapped_out, windows_.num_swapped_out);
    EXPECT_EQ(totals.num_swapped_in, windows_.num_swapped_in);
  }

  const KvState& state() const { return state_; }
  std::int64_t num_pruned() const { return num_pruned_; }
  std::int64_t num_window_misses() const { return num_window_misses_; }
  // Each says its worth when it is taken, and again when it becomes worth more.
  std::int64_t num_checkpoints_raised() const { return num_state_worths_ - states_.num_taken; }

 private:
  KvState state_;
  PoolStory story_;
  StateTotals states_;
  WindowTotals windows_;
  std::int64_t num_window_misses_ = 0, num_state_worths_ = 0;
  std::int32_t peak_used_ = 0, peak_logical_ = 0, peak_host_used_ = 0;
  std::int64_t num_copies_ = 0, num_partial_copies_ = 0, num_evicted_ = 0, num_swapped_out_ = 0,
               num_swapped_in_ = 0;
  std::int64_t num_pruned_ = 0;
};

// Follows a core by its recorder and compares all that there is to compare.
class Auditor {
 public:
  explicit Auditor(const EngineTraffic& traffic) : core_(traffic.core()), count_(traffic.pool()) {}

  void look() {
    const Trace trace = core_.recorder()->read_since(step_mark_, event_mark_);
    step_mark_ = trace.next_step_mark;
    event_mark_ = trace.next_event_mark;
    for (const BlockEvent& event : trace.block_events) count_.add(event);
    const KvSnapshot snapshot = core_.snapshot();
    const KvFigures recounted = recount_figures(snapshot);
    expect_equal(snapshot.figures, recounted);
    if (!trace.steps.empty()) {
      expect_equal(trace.steps.back(), recounted);
      EXPECT_EQ(trace.step_event_marks.back(), event_mark_);
    }
    expect_same_state(snapshot, recounted);
    count_.expect_equal(snapshot.totals);
    if (trace.steps.empty()) return;
    count_.expect_equal(snapshot.totals.states);
    count_.expect_equal(snapshot.totals.windows);
  }

  std::int64_t num_pruned() const { return count_.num_pruned(); }
  std::int64_t num_window_misses() const { return count_.num_window_misses(); }
  std::int64_t num_checkpoints_raised() const { return count_.num_checkpoints_raised(); }

 private:
  void expect_same_state(const KvSnapshot& snapshot, const KvFigures& recounted) {
    const KvState& by_events = count_.state();
    EXPECT_EQ(by_events.difference(KvState::from(snapshot)), std::nullopt);
    EXPECT_EQ(by_events.num_used(), recounted.used_blocks);
    EXPECT_EQ(by_events.num_cached(), recounted.cached_blocks);
    EXPECT_EQ(by_events.num_logical(), recounted.logical_blocks);
    EXPECT_EQ(by_events.num_filled_slots(), recounted.filled_slots);
    EXPECT_EQ(by_events.num_host_used(), recounted.host_used_blocks);
    EXPECT_EQ(by_events.num_used_windows(), recounted.used_window_blocks);
    EXPECT_EQ(by_events.num_cached_windows(), recounted.cached_window_blocks);
    const auto kept = core_.recorder()->state_at(event_mark_);
    ASSERT_TRUE(kept.has_value()) << kept.error().message;
    EXPECT_EQ(kept->difference(by_events), std::nullopt);
  }

  const EngineCore& core_;
  EventCount count_;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
};

TEST(EngineFigures, EqualARecountAfterEveryStep) {
  const unsigned first_seed = test_seed();
  KvTotals sum;
  std::int64_t num_steps = 0, num_pruned = 0, num_window_misses = 0, num_checkpoints_raised = 0;
  for (unsigned seed = first_seed; seed < first_seed + 1000; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    Auditor auditor(traffic);
    for (std::uint32_t left = 30 + traffic.below(120); left > 0 && !HasFailure(); --left) {
      traffic.step();
      auditor.look();
      ++num_steps;
    }
    traffic.drain();
    auditor.look();
    if (HasFailure()) return;
    const KvTotals& totals = traffic.core().totals();
    sum.cow_copies += totals.cow_copies;
    sum.evicted_cached_blocks += totals.evicted_cached_blocks;
    sum.preempted_recompute += totals.preempted_recompute;
    sum.prefix_hit_tokens += totals.prefix_hit_tokens;
    sum.partial_copies += totals.partial_copies;
    sum.swapped_out_blocks += totals.swapped_out_blocks;
    sum.swapped_in_blocks += totals.swapped_in_blocks;
    sum.states.num_resumed += totals.states.num_resumed;
    sum.states.num_evicted += totals.states.num_evicted;
    sum.states.num_copied += totals.states.num_copied;
    sum.states.num_swapped_out += totals.states.num_swapped_out;
    sum.states.num_swapped_in += totals.states.num_swapped_in;
    sum.windows.num_left += totals.windows.num_left;
    sum.windows.num_evicted += totals.windows.num_evicted;
    sum.windows.num_swapped_out += totals.windows.num_swapped_out;
    sum.windows.num_swapped_in += totals.windows.num_swapped_in;
    num_pruned += auditor.num_pruned();
    num_window_misses += auditor.num_window_misses();
    num_checkpoints_raised += auditor.num_checkpoints_raised();
  }
  // The traffic must have met what it is here to try.
  EXPECT_GT(num_steps, 10'000);
  EXPECT_GT(sum.cow_copies, 100);
  EXPECT_GT(sum.evicted_cached_blocks, 100);
  EXPECT_GT(sum.preempted_recompute, 100);
  EXPECT_GT(sum.prefix_hit_tokens, 100);
  EXPECT_GT(sum.partial_copies, 100);
  EXPECT_GT(sum.swapped_out_blocks, 100);
  EXPECT_GT(sum.swapped_in_blocks, 50);
  EXPECT_GT(num_pruned, 100);
  EXPECT_GT(sum.states.num_resumed, 100);
  EXPECT_GT(sum.states.num_evicted, 100);
  EXPECT_GT(sum.states.num_copied, 100);
  EXPECT_GT(sum.states.num_swapped_out, 0);
  EXPECT_GT(sum.states.num_swapped_in, 0);
  EXPECT_GT(sum.windows.num_left, 1'000);
  EXPECT_GT(sum.windows.num_evicted, 100);
  EXPECT_GT(sum.windows.num_swapped_out, 0);
  EXPECT_GT(sum.windows.num_swapped_in, 0);
  EXPECT_GT(num_window_misses, 10);
  EXPECT_GT(num_checkpoints_raised, 10);
}

}  // namespace
}  // namespace octavo::metrics
