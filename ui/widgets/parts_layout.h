// A message laid out part by part: what it says as text, and what its model thought folded under a line of
// its own until a person opens that. Messages of one part are a MessageLayout and nothing else.
//
// Positions are pixels from the layout's top left corner; places in the text are byte offsets of the message,
// also of what is folded. UI thread.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ui/chat_state.h"
#include "ui/frame.h"
#include "ui/widgets/message_layout.h"

namespace octavo::ui {

// The parts of a message that have something to show; the whole text where it has no others.
std::vector<MessagePart> parts_of(const MessageState& message);

// What its copy button takes: all but thinking.
std::string said_text(const MessageState& message);
std::string said_plain_text(const MessageState& message);

class PartsLayout {
 public:
  // Lays out what changed since the last call.
  void update(const Frame& frame, const MessageState& message, float width);

  float height() const { return height_; }
  float width() const;  // of the widest line
  // Where the last character ends, top of its line; nullopt where the last part is folded.
  std::optional<ImVec2> end_position() const { return end_; }
  MissingGlyphs missing_glyphs() const;

  // As MessageLayout draws; a press on the line over thinking opens or folds it.
  std::optional<std::string> draw(const Frame& frame, std::string_view text, ImVec2 top_left, float clip_top,
                                  float clip_bottom, ImU32 colour, const TextMarks& marks = {});

  // Opens the thinking that a place stands in.
  void unfold_at(std::uint32_t offset);
  // Opens all thinking, or folds it when all of it is open. False where there is none.
  bool toggle_thinking();
  // What can be seen and selected, in ascending order.
  std::vector<TextRange> shown_ranges() const;

  std::uint32_t offset_at(const Frame& frame, std::string_view text, ImVec2 position) const;
  std::string_view link_at(ImVec2 position) const;
  bool is_over_text(ImVec2 position) const;
  ImVec2 position_of(const Frame& frame, std::string_view text, std::uint32_t offset) const;
  TextRange word_at(std::string_view text, std::uint32_t offset) const;
  TextRange paragraph_at(std::string_view text, std::uint32_t offset) const;

 private:
  struct Segment {
    MessagePart part;
    MessageLayout layout;
    bool unfolded = false;  // of thinking
    float top = 0;          // of its line, or of its text
    ImVec2 text = {};       // top left corner
    float bottom = 0;
    bool shown() const { return !part.thinking || unfolded; }
  };

  void adopt(Segment& segment, const MessagePart& part) const;
  bool draw_thought_line(const Frame& frame, const Segment& segment, ImVec2 top_left) const;
  const Segment* segment_at(float y) const;
  const Segment* segment_of(std::uint32_t offset) const;

  std::vector<Segment> segments_;
  bool streaming_ = false;
  float height_ = 0;
  std::optional<ImVec2> end_;
};

}  // namespace octavo::ui
