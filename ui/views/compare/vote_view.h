// A blind vote: one prompt and its answers in an order that was drawn. Nothing here says which settings gave
// which answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ui/batch_state.h"
#include "ui/frame.h"
#include "ui/widgets/message_layout.h"

namespace octavo::ui {

class VoteView {
 public:
  // In the rectangle from the cursor.
  void draw(const Frame& frame, const VoteState& vote, ImVec2 extent);

 private:
  void draw_answer(const Frame& frame, const VoteState& vote, std::size_t place, ImVec2 extent);

  std::vector<MessageLayout> answers_;   // by place
  std::optional<std::size_t> laid_out_;  // the ballot that they are of
  std::string laid_out_prompt_;
};

// What came of it, as a table at the cursor, `width` wide.
void draw_vote_result(const Frame& frame, const BatchState& batch, float width);
float vote_result_height(const Frame& frame, const BatchState& batch);

}  // namespace octavo::ui
