#include "ui/views/event_lines.h"

#include <algorithm>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_state.h"
#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

ImU32 plain_event_colour(const Theme& theme, BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kHit:
    case BlockEventKind::kShare:
    case BlockEventKind::kFork:
    case BlockEventKind::kStateShare:
    case BlockEventKind::kStateResume: return theme.owner(2);
    case BlockEventKind::kCopyOnWrite:
    case BlockEventKind::kCopyPartial:
    case BlockEventKind::kStateCopy: return theme.warning;
    case BlockEventKind::kPreempt:
    case BlockEventKind::kSwapOut:
    case BlockEventKind::kSwapIn:
    case BlockEventKind::kStateSwapOut:
    case BlockEventKind::kStateSwapIn:
    case BlockEventKind::kWindowSwapOut:
    case BlockEventKind::kWindowSwapIn: return theme.owner(4);
    case BlockEventKind::kLeaveWindow:
    case BlockEventKind::kWindowMiss: return theme.owner(3);
    default: return theme.muted;
  }
}

}  // namespace

ImU32 event_colour(const Theme& theme, BlockEventKind kind) {
  return readable(plain_event_colour(theme, kind), theme.panel);
}

std::string_view event_word(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kAlloc: return "alloc";
    case BlockEventKind::kSeal: return "seal";
    case BlockEventKind::kHit: return "reuse";
    case BlockEventKind::kShare: return "share";
    case BlockEventKind::kUnref: return "release";
    case BlockEventKind::kCopyOnWrite:
    case BlockEventKind::kCopyPartial: return "copy";
    case BlockEventKind::kEvict: return "evict";
    case BlockEventKind::kSwapOut: return "swap out";
    case BlockEventKind::kSwapIn: return "swap in";
    case BlockEventKind::kSwapDrop: return "drop swapped";
    case BlockEventKind::kPin: return "pin";
    case BlockEventKind::kPreempt: return "preempt";
    case BlockEventKind::kResume: return "resume";
    case BlockEventKind::kFork: return "fork";
    case BlockEventKind::kPrune: return "prune";
    case BlockEventKind::kLeaveWindow: return "leave behind";
    case BlockEventKind::kFree: return "free";
    case BlockEventKind::kFill: return "fill";
    case BlockEventKind::kStepBegin: return "step";
    case BlockEventKind::kStepEnd: return "step end";
    case BlockEventKind::kStateTake: return "take";
    case BlockEventKind::kStateShare: return "share";
    case BlockEventKind::kStateResume: return "resume from";
    case BlockEventKind::kStateCopy: return "copy";
    case BlockEventKind::kStateRelease: return "release";
    case BlockEventKind::kStateKeep: return "keep";
    case BlockEventKind::kStateForget: return "forget";
    case BlockEventKind::kStateSwapOut: return "swap out";
    case BlockEventKind::kStateSwapIn: return "swap in";
    case BlockEventKind::kStateMiss: return "no checkpoint";
    case BlockEventKind::kStateWorth: return "value";
    case BlockEventKind::kWindowSkip: return "start behind";
    case BlockEventKind::kWindowOpen: return "open part";
    case BlockEventKind::kWindowKeep: return "keep part";
    case BlockEventKind::kWindowClose: return "drop part";
    case BlockEventKind::kWindowSwapOut: return "swap part out";
    case BlockEventKind::kWindowSwapIn: return "swap part in";
    case BlockEventKind::kWindowMiss: return "behind window";
  }
  return "event";
}

std::string event_text(const LogLine& line, const TimelineState& timeline) {
  std::string text;
  const std::string noun = is_of_states(line.kind) ? "state" : "block";
  if (line.kind == BlockEventKind::kCopyOnWrite || line.kind == BlockEventKind::kCopyPartial ||
      line.kind == BlockEventKind::kStateCopy) {
    text = (noun == "state" ? "state " : "") + std::to_string(line.first_block) + " → " +
           std::to_string(line.aux);
  } else if (line.kind == BlockEventKind::kStateMiss || line.kind == BlockEventKind::kWindowMiss) {
    text = "for " + count_text(line.aux, "token");
  } else if (line.count > 1) {
    text = count_text(line.count, noun.c_str());
  } else if (line.first_block >= 0) {
    text = noun + " " + std::to_string(line.first_block);
  }
  if (line.sequence != 0) text += (text.empty() ? "" : ", ") + sequence_name(timeline, line.sequence);
  return text;
}

namespace {

std::string whose(const Story& story, const TimelineState& timeline) {
  if (story.other == 0) return {};
  const std::string owner = sequence_name(timeline, story.other);
  return owner == sequence_name(timeline, story.sequence) ? " of its own" : " of " + owner;
}

}  // namespace

BlockEventKind kind_of(StoryKind kind) {
  switch (kind) {
    case StoryKind::kReused: return BlockEventKind::kHit;
    case StoryKind::kComputes: return BlockEventKind::kAlloc;
    case StoryKind::kSampled: return BlockEventKind::kFork;
    case StoryKind::kCopied: return BlockEventKind::kCopyOnWrite;
    case StoryKind::kSwappedOut: return BlockEventKind::kSwapOut;
    case StoryKind::kSwappedIn: return BlockEventKind::kSwapIn;
    case StoryKind::kDropped: return BlockEventKind::kPreempt;
    case StoryKind::kMadeRoom: return BlockEventKind::kEvict;
    case StoryKind::kEnded: return BlockEventKind::kUnref;
    case StoryKind::kKeptState: return BlockEventKind::kStateKeep;
    case StoryKind::kResumedState: return BlockEventKind::kStateResume;
    case StoryKind::kMissedState: return BlockEventKind::kStateMiss;
    case StoryKind::kEvictedState: return BlockEventKind::kStateForget;
    case StoryKind::kPassedWindow: return BlockEventKind::kLeaveWindow;
    case StoryKind::kMissedWindow: return BlockEventKind::kWindowMiss;
    case StoryKind::kEvictedWindow: return BlockEventKind::kWindowClose;
  }
  return BlockEventKind::kAlloc;
}

std::string kept_text(const Story& story) {
  const std::string token = "token " + with_thousands(story.position);
  switch (story.reason) {
    case CheckpointReason::kSystemPrompt: return "kept a checkpoint behind its system prompt, at " + token;
    case CheckpointReason::kNextTurn: return "kept a checkpoint for the next turn, at " + token;
    case CheckpointReason::kEnd: return "kept a checkpoint at its end, " + token;
    case CheckpointReason::kLong: return "kept a checkpoint on the way, at " + token;
  }
  return {};
}

std::string story_text(const Story& story, const TimelineState& timeline) {
  const std::string blocks = count_text(story.count, "block");
  switch (story.kind) {
    case StoryKind::kReused: return "reused " + blocks + whose(story, timeline);
    case StoryKind::kComputes: return "took " + count_text(story.count, "new block");
    case StoryKind::kSampled:
      return "split into " + with_thousands(story.count + 1) + ", which share its blocks";
    case StoryKind::kCopied:
      return "copied " + count_text(story.count, "shared block") + ", to write into " +
             (story.count == 1 ? "it" : "them");
    case StoryKind::kSwappedOut: return "was swapped out: " + blocks;
    case StoryKind::kSwappedIn: return "came back: " + blocks;
    case StoryKind::kDropped: return "lost its blocks and computes them again";
    case StoryKind::kMadeRoom:
      return "evicted " + count_text(story.count, "cached block") + whose(story, timeline);
    case StoryKind::kEnded:
      if (story.kept == story.count) return "ended; its " + blocks + " can be reused";
      return "ended; " + with_thousands(story.kept) + " of " + blocks + " can be reused";
    case StoryKind::kKeptState: return kept_text(story);
    case StoryKind::kResumedState:
      return "resumed at token " + with_thousands(story.position) + whose(story, timeline) +
             (story.num_missed == 0 ? std::string()
                                    : "; " + count_text(story.num_missed, "token") +
                                          " recomputed, because no checkpoint stood later");
    case StoryKind::kMissedState:
      return "recomputed " + count_text(story.num_missed, "token") + ": no checkpoint stood there";
    case StoryKind::kEvictedState:
      return "evicted the checkpoint at token " + with_thousands(story.position) + whose(story, timeline);
    case StoryKind::kPassedWindow: return "left " + blocks + " behind: its window has passed";
    case StoryKind::kMissedWindow:
      return "recomputed " + count_text(story.num_missed, "token") + ": the window before them is gone";
    case StoryKind::kEvictedWindow:
      return "took the place of " + count_text(story.count, "kept window part") + whose(story, timeline);
  }
  return {};
}

void draw_event_lines(const Frame& frame, const TimelineState& timeline, std::size_t limit, float width) {
  const std::size_t shown = std::min(limit, timeline.stories.size());
  const TextStyle style = tiny_text(frame);
  if (shown == 0) {
    line(frame, style, "No events yet.", width);
    return;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = timeline.stories.size() - shown; i < timeline.stories.size(); ++i) {
    const Story& story = timeline.stories[i];
    const ImVec2 at = ImGui::GetCursorScreenPos();
    TextStyle name = style;
    name.colour = event_colour(frame.theme, kind_of(story.kind));
    const std::string time =
        seconds_text(std::max<std::int64_t>(story.time_us - timeline.origin_us, 0)) + " ";
    draw_text(frame, list, at, style, time);
    float x = at.x + text_width(frame, style, time);
    const std::string name_of_it = sequence_name(timeline, story.sequence);
    const std::string who = elide(frame, name, name_of_it, width * 0.4f);
    draw_text(frame, list, {x, at.y}, name, who);
    x += text_width(frame, name, who + " ");
    const std::string text = story_text(story, timeline);
    // What happened is told whole: below the name where it does not fit beside it.
    const float row = frame.px(21), room = at.x + width - x;
    const bool is_below = text_width(frame, style, text) > room;
    const float left = is_below ? at.x + frame.px(12) : x;
    const std::string what = elide(frame, style, text, std::max(1.0f, at.x + width - left));
    draw_text(frame, list, {left, at.y + (is_below ? row : 0)}, style, what);
    ImGui::Dummy({width, is_below ? 2 * row : row});
    if (who != name_of_it || what != text) tooltip(frame, name_of_it + " " + text);
  }
}

}  // namespace octavo::ui
