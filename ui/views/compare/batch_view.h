// The batch: prompts and the settings that they are asked with, their answers as a grid, and the blind vote.
//
// Keeps what is typed and not run yet, and which answer is looked at closely.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ui/batch_state.h"
#include "ui/frame.h"
#include "ui/views/compare/compare_look.h"
#include "ui/views/compare/settings_editor.h"
#include "ui/views/compare/vote_view.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/message_layout.h"

namespace octavo::ui {

class BatchView {
 public:
  // In the rectangle from the cursor.
  void draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);

 private:
  struct CellPlace {
    std::size_t row = 0, setting = 0;
  };

  struct HeadButton {
    const char* id;
    const char* text;
    ButtonOptions options;
  };

  void take_file(const PromptFile& file);
  float setup_height(const Frame& frame, const UiState& state, float width, float most) const;
  void draw_setup(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);
  std::vector<HeadButton> head_buttons(const BatchState& batch) const;
  static std::vector<ImVec2> place_buttons(const Frame& frame, std::span<const HeadButton> buttons,
                                           float width);
  float buttons_height(const Frame& frame, const BatchState& batch, float width) const;
  void draw_buttons(const Frame& frame, const BatchState& batch, ImVec2 at, float width);
  void take(const Frame& frame, std::string_view pressed);
  bool can_run(const BatchState& batch) const;
  void take_keys(const Frame& frame, const UiState& state);
  void draw_prompts(const Frame& frame, const UiState& state, float width);
  void draw_settings(const Frame& frame, const UiState& state, float width, float height);
  void draw_grid(const Frame& frame, const BatchState& batch, ImVec2 extent);
  void draw_head(const Frame& frame, const BatchState& batch, ImVec2 at, float column) const;
  void draw_row(const Frame& frame, const BatchState& batch, std::size_t row, ImVec2 at, float column);
  void draw_cell(const Frame& frame, const BatchState& batch, CellPlace place, ImVec2 low, ImVec2 high);
  void draw_answer_card(const Frame& frame, const BatchState& batch);

  SettingsEditor settings_;
  std::string prompts_;
  PromptFormat format_ = PromptFormat::kLines;
  std::uint32_t file_number_ = 0;  // of the file that was taken over last
  bool editing_ = true;
  std::optional<CellPlace> looked_at_;
  MessageLayout answer_;  // of the cell that is looked at
  VoteView vote_;
  bool opens_answer_ = false;  // in this frame
  int prompts_frame_ = -2;     // that drew the prompts last
};

}  // namespace octavo::ui
