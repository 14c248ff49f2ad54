// Where the messages of a chat stand one below the other, and what of their text is selected.
//
// Only messages that are looked at are laid out; the height of the others is a guess from their length until
// then. When a guess turns out wrong, `resolve` moves the scroll position with it, so that what is on screen
// stays where it is.
//
// UI thread. Positions are pixels from the top of the transcript, in double: a long chat is higher than float
// counts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ui/chat_state.h"
#include "ui/widgets/parts_layout.h"

namespace octavo::ui {

// Between two characters of a message.
struct TextPosition {
  MessageId message_id;
  std::uint32_t offset = 0;
  bool operator==(const TextPosition&) const = default;
};

// From where the mouse went down to where it is now; streaming text moves neither.
struct TextSelection {
  TextPosition anchor, head;
};

class Transcript {
 public:
  struct Entry {
    MessageId id;
    std::unique_ptr<PartsLayout> layout;  // null before it is first looked at
    double top = 0;
    float height = 0;    // with everything that belongs to the message
    bool exact = false;  // the height is no guess
    std::size_t text_size = 0;
    int footer_rows = 1;
  };
  // Lays out one message and returns its height.
  using LayOut = std::function<float(std::size_t index, Entry& entry)>;
  // Guesses the height of a message that was never laid out.
  using Guess = std::function<float(std::size_t index)>;

  // Takes the messages as they are now. Entries of messages that are still there keep their layouts.
  void sync(const std::vector<MessageState>& messages, float top_margin, float gap, const Guess& guess);
  // Every height is a guess again: the width or the scale changed.
  void forget_heights();

  // Lays out what is on screen at `scroll`, and returns where to scroll so that what could be seen before
  // stays in place.
  double resolve(double scroll, float extent, const LayOut& lay_out);
  // The same for the end of the transcript, `below` pixels of which are no messages.
  void resolve_end(float extent, float below, const LayOut& lay_out);
  void resolve_message(std::size_t index, const LayOut& lay_out);

  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  double height() const { return height_; }  // of all messages with their gaps
  // The first message that reaches below `y`; the number of messages when there is none.
  std::size_t index_at(double y) const;
  // The number of messages when there is none.
  std::size_t index_of(MessageId message_id) const;

  bool following = true;  // the end is shown, also when the text grows
  double scroll = 0;
  float width = 0, scale = 0;  // that the layouts are made for
  MessageId context_begin;     // likewise, and what stands above it
  bool has_summary = false;
  std::optional<TextSelection> selection;

  // The selection's ends in the order of the text; nothing when it is empty or its messages are not shown any
  // more.
  struct Span {
    std::size_t first = 0, last = 0;   // indices of messages
    std::uint32_t begin = 0, end = 0;  // offsets in them
  };
  std::optional<Span> selected() const;
  // The part of a message that is selected.
  TextRange selected_in(const Span& span, std::size_t index, std::size_t text_size) const;

 private:
  bool lay_out_entry(std::size_t index, const LayOut& lay_out);
  void place_from(std::size_t index);

  std::vector<Entry> entries_;
  double height_ = 0;
  float top_margin_ = 0, gap_ = 0;
};

}  // namespace octavo::ui
