// One request looked at closely: its prompt token by token, by what became of it, beside the nearest earlier
// one; where they part, what that cost, and what would have avoided it.
//
// Keeps the layout of both texts, and how far they are scrolled. UI thread.
#pragma once

#include <cstdint>

#include "ui/frame.h"
#include "ui/memory_state.h"
#include "ui/views/compare/token_text.h"

namespace octavo::ui {

class RequestDetailView {
 public:
  void draw(const Frame& frame, const RequestsState& requests, ImVec2 extent);

 private:
  void draw_heading(const Frame& frame, const ShownRequest& request);
  void draw_story(const Frame& frame, const RequestDetail& detail);
  void draw_texts(const Frame& frame, const RequestDetail& detail);
  void draw_side(const Frame& frame, const RequestDetail& detail, bool is_mine, ImVec2 extent);

  TokenText mine_, theirs_;
  std::uint64_t shown_ = 0;   // serial of the detail whose texts are scrolled to the first difference
  int frames_to_scroll_ = 0;  // until both are laid out
};

// What stands under a token of the request's prompt.
enum class TokenFate { kLive, kCached, kCopied, kRestored, kComputed, kComputedAgain };
inline constexpr std::size_t kNumTokenFates = 6;
// How many of the first tokens had each fate, given what the engine accounted for: those that were found come
// first. kComputedAgain: computed though an earlier prompt has them, at the same place or another.
TokenFate fate_of(const RequestDetail& detail, std::size_t token);

}  // namespace octavo::ui
