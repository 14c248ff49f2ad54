#include "app/window/memory/memory_timeline.h"

#include <algorithm>
#include <utility>

namespace octavo::app {
namespace {

constexpr std::size_t kMostSteps = std::size_t{1} << 14;
constexpr std::size_t kMostLines = 20'000;
constexpr std::size_t kMostSpans = 4'096;
constexpr std::size_t kMostRates = 4'096;
constexpr std::size_t kMostNames = 4'096;

// What happens at every step or token is no news.
constexpr bool is_told(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kStepBegin:
    case BlockEventKind::kStepEnd:
    case BlockEventKind::kFill:
    case BlockEventKind::kSeal:
    case BlockEventKind::kUnref:
    case BlockEventKind::kStateRelease:
    case BlockEventKind::kStateWorth:
    case BlockEventKind::kWindowSkip:
    case BlockEventKind::kWindowOpen:
    case BlockEventKind::kWindowKeep: return false;
    default: return true;
  }
}

bool is_copy(BlockEventKind kind) {
  return kind == BlockEventKind::kCopyOnWrite || kind == BlockEventKind::kCopyPartial;
}

bool joins(const ui::LogLine& line, const BlockEvent& event) {
  return line.step == event.step && line.kind == event.kind && line.sequence == event.sequence &&
         event.block >= 0 && !is_copy(event.kind);
}

template <class Record>
void keep_newest(std::deque<Record>& records, std::size_t most) {
  while (records.size() > most) records.pop_front();
}

}  // namespace

void MemoryTimeline::follow(std::shared_ptr<const ui::TimelineState> before) {
  if (before->steps.empty()) before = before->before;
  if (before == nullptr) return;
  timeline_->origin_us = before->origin_us;
  auto alone = std::make_shared<ui::TimelineState>(*before);  // what was before that is forgotten
  alone->before = nullptr;
  alone->log.clear();
  alone->stories.clear();
  timeline_->before = std::move(alone);
}

void MemoryTimeline::add(const metrics::Trace& trace, const MomentAt& moment_at) {
  ui::TimelineState& timeline = *timeline_;
  if (timeline.origin_us == 0 && !trace.steps.empty()) timeline.origin_us = trace.steps.front().begin_us;
  std::uint64_t mark = trace.next_event_mark - trace.block_events.size();
  for (const BlockEvent& event : trace.block_events) add_event(event, mark++);
  for (std::size_t i = 0; i < trace.steps.size(); ++i) add_step(trace.steps[i], trace.step_event_marks[i]);
  add_levels(trace, moment_at);
  timeline.newest_mark = trace.next_event_mark;
  keep_newest(timeline.steps, kMostSteps);
  keep_newest(timeline.levels, kMostSteps);
  keep_newest(timeline.log, kMostLines);
  keep_newest(timeline.spans, kMostSpans);
  keep_newest(timeline.rates, kMostRates);
}

void MemoryTimeline::name(std::uint64_t sequence, ui::ShownSequence name) {
  auto& names = timeline_->names;
  names.insert_or_assign(sequence, std::move(name));
  while (names.size() > kMostNames) names.erase(names.begin());
}

// A step's record tells the levels after its events. What commands did without a step has its own time, and
// no record.
void MemoryTimeline::add_levels(const metrics::Trace& trace, const MomentAt& moment_at) {
  const std::uint64_t first_mark = trace.next_event_mark - trace.block_events.size();
  auto step_mark = trace.step_event_marks.begin();
  for (std::size_t i = 0; i < trace.block_events.size(); ++i) {
    const BlockEvent& event = trace.block_events[i];
    const std::uint64_t mark = first_mark + i + 1;
    while (step_mark != trace.step_event_marks.end() && *step_mark < mark) ++step_mark;
    const bool ends_step = step_mark != trace.step_event_marks.end() && *step_mark == mark;
    const bool goes_on =
        i + 1 < trace.block_events.size() && trace.block_events[i + 1].time_us == event.time_us;
    if (ends_step || goes_on) continue;
    const metrics::PoolMoment* moment = moment_at(mark);
    if (moment == nullptr || moment->mark != mark) continue;
    timeline_->levels.push_back({.time_us = event.time_us,
                                 .mark = mark,
                                 .used = moment->state.num_used(),
                                 .cached = moment->state.num_cached(),
                                 .free = moment->state.num_free(),
                                 .host = moment->state.num_host_used(),
                                 .used_windows = moment->state.num_used_windows(),
                                 .cached_windows = moment->state.num_cached_windows()});
  }
}

void MemoryTimeline::add_step(const StepRecord& record, std::uint64_t mark) {
  num_prefilled_ += record.num_prefill_tokens;
  timeline_->steps.push_back({record, mark, num_prefilled_});
  const std::int64_t end_us = record.begin_us + record.schedule_us + record.execute_us + record.commit_us;
  timeline_->newest_us = std::max(timeline_->newest_us, end_us);
  for (const metrics::Rates& rates : rates_.add(record))
    timeline_->rates.push_back({rates.time_us, rates.tokens_per_second, rates.requests_per_second});
}

void MemoryTimeline::add_event(const BlockEvent& event, std::uint64_t mark) {
  timeline_->newest_us = std::max(timeline_->newest_us, event.time_us);
  follow_sequence(event);
  rates_.add(event);
  stories_.add(event, mark, timeline_->stories);
  if (is_told(event.kind)) add_line(event, mark);
}

void MemoryTimeline::add_line(const BlockEvent& event, std::uint64_t mark) {
  auto& log = timeline_->log;
  // Events of one step come interleaved per block: look a few lines back.
  const std::size_t looked_at = std::min<std::size_t>(log.size(), 4);
  for (std::size_t i = 0; i < looked_at; ++i) {
    ui::LogLine& line = log[log.size() - 1 - i];
    if (!joins(line, event)) continue;
    ++line.count;
    line.last_block = event.block;
    line.last_mark = mark;
    return;
  }
  log.push_back({.mark = mark,
                 .last_mark = mark,
                 .step = event.step,
                 .time_us = event.time_us,
                 .sequence = event.sequence,
                 .kind = event.kind,
                 .first_block = event.block,
                 .last_block = event.block,
                 .aux = event.aux});
}

void MemoryTimeline::follow_sequence(const BlockEvent& event) {
  if (event.sequence == 0) return;
  switch (event.kind) {
    case BlockEventKind::kAlloc:
    case BlockEventKind::kHit:
    case BlockEventKind::kShare: {
      Sequence& sequence = sequences_[event.sequence];
      if (sequence.num_blocks++ == 0) open_span(event.sequence, SequenceState::kRunning, event.time_us);
      sequence.is_preempted = false;
      break;
    }
    case BlockEventKind::kUnref: {
      Sequence& sequence = sequences_[event.sequence];
      if (--sequence.num_blocks > 0 || sequence.is_preempted) break;
      close_span(event.sequence, event.time_us);
      break;
    }
    case BlockEventKind::kPreempt: {
      sequences_[event.sequence].is_preempted = true;
      open_span(event.sequence, event.aux == 1 ? SequenceState::kSwapped : SequenceState::kWaiting,
                event.time_us);
      break;
    }
    case BlockEventKind::kResume: open_span(event.sequence, SequenceState::kRunning, event.time_us); break;
    default: break;
  }
}

void MemoryTimeline::open_span(std::uint64_t sequence, SequenceState state, std::int64_t time_us) {
  close_span(sequence, time_us);
  timeline_->spans.push_back({sequence, state, time_us, -1});
}

void MemoryTimeline::close_span(std::uint64_t sequence, std::int64_t time_us) {
  for (auto span = timeline_->spans.rbegin(); span != timeline_->spans.rend(); ++span) {
    if (span->sequence != sequence || span->end_us >= 0) continue;
    span->end_us = time_us;
    return;
  }
}

}  // namespace octavo::app
