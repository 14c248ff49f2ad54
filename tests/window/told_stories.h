// What the Memory workspace tells of an engine's events, as texts: of sequence 1, who is Alan, and 2, who is
// Ada.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "app/window/memory/memory_stories.h"
#include "ui/views/event_lines.h"

namespace octavo::testing {

inline std::vector<std::string> told_stories(const std::vector<BlockEvent>& events) {
  app::MemoryStories stories;
  std::deque<ui::Story> all;
  std::uint64_t mark = 0;
  for (const BlockEvent& each : events) stories.add(each, mark++, all);
  ui::TimelineState timeline;
  timeline.names[1] = {.label = "Alan"};
  timeline.names[2] = {.label = "Ada"};
  std::vector<std::string> texts;
  for (const ui::Story& story : all)
    texts.push_back(ui::sequence_name(timeline, story.sequence) + " " + ui::story_text(story, timeline));
  return texts;
}

}  // namespace octavo::testing
