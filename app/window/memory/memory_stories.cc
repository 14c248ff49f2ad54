#include "app/window/memory/memory_stories.h"

#include <algorithm>
#include <optional>

namespace octavo::app {
namespace {

constexpr std::size_t kMostStories = 4'096;
constexpr std::size_t kMostToldSequences = 4'096;
constexpr std::size_t kStoriesLookedAt = 8;

std::optional<ui::StoryKind> kind_of(const BlockEvent& event) {
  switch (event.kind) {
    case BlockEventKind::kHit: return ui::StoryKind::kReused;
    case BlockEventKind::kAlloc: return ui::StoryKind::kComputes;
    case BlockEventKind::kFork: return ui::StoryKind::kSampled;
    case BlockEventKind::kCopyOnWrite:
    case BlockEventKind::kCopyPartial: return ui::StoryKind::kCopied;
    case BlockEventKind::kSwapOut: return ui::StoryKind::kSwappedOut;
    case BlockEventKind::kSwapIn: return ui::StoryKind::kSwappedIn;
    case BlockEventKind::kEvict: return ui::StoryKind::kMadeRoom;
    case BlockEventKind::kLeaveWindow: return ui::StoryKind::kPassedWindow;
    case BlockEventKind::kWindowMiss: return ui::StoryKind::kMissedWindow;
    case BlockEventKind::kWindowClose:
      if (event.aux == 1) return ui::StoryKind::kEvictedWindow;
      return std::nullopt;  // it went with its block, or nobody could have found it
    case BlockEventKind::kPreempt:
      if (event.aux == 0) return ui::StoryKind::kDropped;
      return std::nullopt;  // its kSwapOut tell it
    default: return std::nullopt;
  }
}

// An answer that grows takes a block now and then, and its window leaves one behind: that is one story each,
// as long as nothing else happens to it.
bool may_go_on_later(ui::StoryKind kind) {
  return kind == ui::StoryKind::kComputes || kind == ui::StoryKind::kPassedWindow;
}

// The story that goes on with an event of this kind: one of the newest, and the sequence's own newest.
ui::Story* story_to_continue(std::deque<ui::Story>& stories, ui::StoryKind kind, const BlockEvent& event,
                             std::uint64_t other) {
  std::size_t looked_at = 0;
  bool is_newest = true;  // but for what only goes on
  for (auto story = stories.rbegin(); story != stories.rend() && looked_at < kStoriesLookedAt;
       ++story, ++looked_at) {
    const bool is_own = story->sequence == event.sequence;
    if (is_own && story->kind == kind && story->other == other &&
        (story->step == event.step || (may_go_on_later(kind) && is_newest)))
      return &*story;
    is_newest = is_newest && is_own && may_go_on_later(story->kind);
    if (is_own && story->step != event.step && !is_newest) return nullptr;
  }
  return nullptr;
}

}  // namespace

void MemoryStories::add_of_states(const BlockEvent& event, std::uint64_t mark,
                                  std::deque<ui::Story>& stories) {
  const auto tell = [&](ui::StoryKind kind, const Checkpoint& checkpoint) -> ui::Story& {
    return stories.emplace_back(ui::Story{.kind = kind,
                                          .mark = mark,
                                          .last_mark = mark,
                                          .step = event.step,
                                          .time_us = event.time_us,
                                          .sequence = event.sequence,
                                          .other = checkpoint.sequence,
                                          .count = 1,
                                          .position = checkpoint.position,
                                          .reason = checkpoint.reason});
  };
  switch (event.kind) {
    case BlockEventKind::kStateKeep:
      checkpoints_[event.block] = {event.sequence, checkpoint_position(event.aux),
                                   checkpoint_reason(event.aux)};
      tell(ui::StoryKind::kKeptState, checkpoints_[event.block]);
      break;
    case BlockEventKind::kStateResume: {
      Checkpoint& from = checkpoints_[event.block];  // of nobody where its keeping was not seen
      from.position = event.aux;
      tell(ui::StoryKind::kResumedState, from);
      break;
    }
    case BlockEventKind::kStateMiss: {
      const bool has_resumed = !stories.empty() && stories.back().kind == ui::StoryKind::kResumedState &&
                               stories.back().sequence == event.sequence && stories.back().step == event.step;
      ui::Story& story = has_resumed ? stories.back() : tell(ui::StoryKind::kMissedState, {});
      story.num_missed = event.aux;
      story.last_mark = mark;
      break;
    }
    case BlockEventKind::kStateForget:
      if (event.aux == 1 && event.sequence != 0)
        tell(ui::StoryKind::kEvictedState, checkpoints_[event.block]);
      checkpoints_.erase(event.block);
      break;
    default: break;
  }
}

void MemoryStories::add(const BlockEvent& event, std::uint64_t mark, std::deque<ui::Story>& stories) {
  if (is_of_states(event.kind)) add_of_states(event, mark, stories);
  if (const auto kind = kind_of(event)) {
    const bool names_other = *kind == ui::StoryKind::kReused || *kind == ui::StoryKind::kMadeRoom ||
                             *kind == ui::StoryKind::kEvictedWindow;
    const std::uint64_t other = names_other ? writer_of(event.block) : 0;
    if (ui::Story* story = story_to_continue(stories, *kind, event, other)) {
      ++story->count;
      story->last_mark = mark;
    } else {
      stories.push_back({.kind = *kind,
                         .mark = mark,
                         .last_mark = mark,
                         .step = event.step,
                         .time_us = event.time_us,
                         .sequence = event.sequence,
                         .other = other,
                         .count = 1,
                         .num_missed = *kind == ui::StoryKind::kMissedWindow ? event.aux : 0});
    }
  }
  follow_sequence(event, mark, stories);
  while (stories.size() > kMostStories) stories.pop_front();
  while (sequences_.size() > kMostToldSequences) sequences_.erase(sequences_.begin());
}

void MemoryStories::follow_sequence(const BlockEvent& event, std::uint64_t mark,
                                    std::deque<ui::Story>& stories) {
  switch (event.kind) {
    case BlockEventKind::kAlloc: note_writer(event.block, event.sequence); [[fallthrough]];
    case BlockEventKind::kHit:
    case BlockEventKind::kShare:
      if (event.sequence == 0) break;
      ++sequences_[event.sequence].num_blocks;
      sequences_[event.sequence].is_preempted = false;
      break;
    case BlockEventKind::kPreempt:
      sequences_[event.sequence].is_preempted = true;
      take_back_end(event, stories);
      break;
    case BlockEventKind::kUnref:
      if (event.sequence != 0) release(event, mark, stories);
      break;
    case BlockEventKind::kEvict: note_writer(event.block, 0); break;
    case BlockEventKind::kFree: {
      note_writer(event.block, 0);
      const auto found = sequences_.find(event.sequence);
      if (found != sequences_.end() && found->second.step == event.step) ++found->second.num_freed;
      if (!stories.empty() && stories.back().kind == ui::StoryKind::kEnded &&
          stories.back().sequence == event.sequence && stories.back().step == event.step)
        --stories.back().kept;
      break;
    }
    default: break;
  }
}

void MemoryStories::release(const BlockEvent& event, std::uint64_t mark, std::deque<ui::Story>& stories) {
  Released& of = sequences_[event.sequence];
  if (of.step != event.step) of.num_released = of.num_freed = 0;
  of.step = event.step;
  --of.num_blocks;
  ++of.num_released;
  if (of.num_blocks > 0 || of.is_preempted) return;
  stories.push_back({.kind = ui::StoryKind::kEnded,
                     .mark = mark,
                     .last_mark = mark,
                     .step = event.step,
                     .time_us = event.time_us,
                     .sequence = event.sequence,
                     .count = of.num_released,
                     .kept = of.num_released - of.num_freed});
}

// The blocks that are swapped out are given back before it is said that their sequence was preempted.
void MemoryStories::take_back_end(const BlockEvent& event, std::deque<ui::Story>& stories) {
  std::size_t looked_at = 0;
  for (std::size_t i = stories.size(); i > 0 && looked_at < kStoriesLookedAt; --i, ++looked_at) {
    const ui::Story& story = stories[i - 1];
    if (story.step != event.step) return;
    if (story.sequence != event.sequence || story.kind != ui::StoryKind::kEnded) continue;
    stories.erase(stories.begin() + static_cast<std::ptrdiff_t>(i - 1));
    return;
  }
}

std::uint64_t MemoryStories::writer_of(std::int32_t block) const {
  const auto index = static_cast<std::size_t>(block);
  return block >= 0 && index < writers_.size() ? writers_[index] : 0;
}

void MemoryStories::note_writer(std::int32_t block, std::uint64_t sequence) {
  if (block < 0) return;
  const auto index = static_cast<std::size_t>(block);
  if (index >= writers_.size()) writers_.resize(index + 1);
  writers_[index] = sequence;
}

}  // namespace octavo::app
