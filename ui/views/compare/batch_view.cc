#include "ui/views/compare/batch_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/base/format.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/compare/column_view.h"
#include "ui/views/compare/setup_view.h"
#include "ui/views/compare/vote_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kPadding = 14;
constexpr float kTopRow = 44;
constexpr float kPromptsHeight = 150;
constexpr float kLetterRow = 44;
constexpr float kFileRow = 40;
constexpr float kGap = 12;
constexpr float kRowHeight = 104;
constexpr float kHeadHeight = 52;
constexpr float kNarrowest = 200;
constexpr std::size_t kTextLines = 3;
constexpr float kFewestGroups = 96;
constexpr int kPromptLines = 4;  // in an answer's card

std::string count_words(const BatchState& batch) {
  return count_text(batch.rows.size(), "prompt") + " × " + std::to_string(batch.settings.size()) +
         " settings";
}

// What the engine says about the prompts of the answers that have ended.
struct PromptSums {
  std::int64_t num_tokens = 0, num_computed = 0;
};

PromptSums sums_of(const BatchRow& row) {
  PromptSums sums;
  for (const BatchCell& cell : row.cells) {
    if (cell.num_computed_tokens == 0) continue;
    sums.num_tokens += cell.num_prompt_tokens;
    sums.num_computed += cell.num_computed_tokens;
  }
  return sums;
}

std::string sharing_words(const BatchState& batch) {
  PromptSums all;
  for (const BatchRow& row : batch.rows) {
    const PromptSums sums = sums_of(row);
    all.num_tokens += sums.num_tokens;
    all.num_computed += sums.num_computed;
  }
  if (all.num_tokens == 0) return {};
  return with_thousands(all.num_tokens) + " prompt tokens asked, " + with_thousands(all.num_computed) +
         " computed; the others were found in shared blocks";
}

std::string figure_words(const BatchCell& cell) {
  switch (cell.phase) {
    case ColumnPhase::kWaiting: return "waiting";
    case ColumnPhase::kPreempted: return "preempted: waiting for blocks";
    case ColumnPhase::kRunning: return count_text(cell.num_tokens, "token") + " · running";
    default: break;
  }
  std::string words = count_text(cell.num_tokens, "token");
  if (cell.num_tokens > 0) words += " · mean log p " + two_decimals(cell.sum_logprob / cell.num_tokens);
  return words + " · " + cell.finish;
}

std::string row_words(const BatchRow& row) {
  std::string words = "seed " + seed_suffix(row.cells.front().seed);
  const std::int32_t prompt = row.cells.front().num_prompt_tokens;
  if (prompt > 0) words = count_text(prompt, "token") + " · " + words;
  return words;
}

}  // namespace

void BatchView::take_file(const PromptFile& file) {
  if (file.number == file_number_) return;
  file_number_ = file.number;
  prompts_ = file.text;
  format_ = file.format;
  editing_ = true;
}

void BatchView::draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const BatchState& batch = state.batch;
  if (batch.vote) return vote_.draw(frame, *batch.vote, extent);
  vote_ = {};
  take_file(batch.file);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float setup = setup_height(frame, batch, extent.x, extent.y * (batch.rows.empty() ? 1.0f : 0.7f));
  draw_setup(frame, state, look, {extent.x, setup});
  float top = low.y + setup + frame.px(kGap);
  if (batch.result) {
    ImGui::SetCursorScreenPos({low.x, top});
    draw_vote_result(frame, batch, extent.x);
    top += vote_result_height(frame, batch) + frame.px(kGap);
  }
  if (batch.rows.empty()) return;
  ImGui::SetCursorScreenPos({low.x, top});
  draw_grid(frame, batch, {extent.x, std::max(frame.px(kHeadHeight + kRowHeight), low.y + extent.y - top)});
  draw_answer_card(frame, batch);
}

// ---- what is asked

float BatchView::setup_height(const Frame& frame, const BatchState& batch, float width, float most) const {
  const bool has_words = !batch.rows.empty() || !batch.problem.empty();
  const float fixed = frame.px(2 * kPadding + kTopRow + (has_words ? 22 : 0));
  if (!editing_) return fixed;
  const float inner = width - frame.px(3 * kPadding);
  const float groups = SettingsEditor::groups_height(frame, SettingsEditor::Groups::kSettings, inner);
  const float above = fixed + frame.px(kFileRow + kPromptsHeight + kLetterRow + 3 * 8);
  return above + std::min(groups, std::max(frame.px(kFewestGroups), most - above));
}

void BatchView::draw_setup(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const BatchState& batch = state.batch;
  begin_card(frame, "batch_setup", extent, kPadding);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float inner = ImGui::GetContentRegionAvail().x;
  ComparisonSetup setup = state.comparison.setup;
  if (draw_kinds(frame, setup.kind, look)) frame.actions.push(actions::ChangeComparison{setup});
  draw_buttons(frame, batch, {at.x + inner, at.y});
  float y = at.y + frame.px(kTopRow);
  const bool has_words = !batch.problem.empty() || !batch.rows.empty();
  if (has_words) ImGui::SetCursorScreenPos({at.x, y});
  if (!batch.problem.empty()) {
    TextStyle error = tiny_text(frame);
    error.colour = frame.theme.error;
    line(frame, error, batch.problem, inner);
    tooltip(frame, batch.problem);
  } else if (!batch.rows.empty()) {
    const std::string sharing = sharing_words(batch);
    line(frame, tiny_text(frame), count_words(batch) + (sharing.empty() ? "" : " · " + sharing), inner);
    tooltip(frame,
            "All settings of a prompt are asked together: the engine computes its blocks once, and the "
            "others find them. The last token of a prompt is always computed.");
  }
  if (has_words) y += frame.px(22);
  if (editing_) {
    ImGui::SetCursorScreenPos({at.x, y});
    draw_prompts(frame, inner);
    y += frame.px(kFileRow + kPromptsHeight + 2 * 8);
    ImGui::SetCursorScreenPos({at.x, y});
    draw_settings(frame, batch, inner, at.y + extent.y - frame.px(2 * kPadding) - y);
  }
  if (batch.running) {
    const float bar = at.y - frame.px(kPadding) + extent.y - frame.px(6);
    ImGui::SetCursorScreenPos({at.x, bar});
    two_part_bar(frame, static_cast<float>(batch.progress), 0, inner, frame.px(3));
  }
  end_card();
}

void BatchView::draw_buttons(const Frame& frame, const BatchState& batch, ImVec2 top_right) {
  float x = top_right.x;
  const auto place = [&](float design_width) {
    x -= frame.px(design_width);
    ImGui::SetCursorScreenPos({x, top_right.y + frame.px(2)});
    x -= frame.px(8);
  };
  if (batch.running) {
    place(96);
    if (button(frame, "stop_batch", "Stop", {.icon = Icon::kStop, .width = 96, .help = "Stop all answers"}))
      frame.actions.push(actions::StopBatch{});
  } else {
    const bool has_text = prompts_.find_first_not_of(" \t\r\n") != std::string::npos;
    place(80);
    const ButtonOptions run{.kind = ButtonKind::kPrimary,
                            .width = 80,
                            .enabled = has_text,
                            .help = "Answer every prompt with each of the settings"};
    if (button(frame, "run_batch", "Run", run)) {
      frame.actions.push(actions::RunBatch{prompts_, format_});
      editing_ = false;
    }
  }
  if (batch.rows.empty()) return;
  place(104);
  if (button(frame, "edit_batch", editing_ ? "Hide set-up" : "Set-up", {.width = 104})) editing_ = !editing_;
  place(70);
  if (button(frame, "batch_csv", "CSV", {.width = 70, .help = "Export a table with a row for each answer"}))
    frame.actions.push(actions::ExportBatch{actions::BatchFormat::kCsv});
  place(70);
  if (button(frame, "batch_json", "JSON", {.width = 70, .help = "Export answers, seeds, settings and votes"}))
    frame.actions.push(actions::ExportBatch{actions::BatchFormat::kJson});
  if (batch.settings.size() < 2) return;
  place(110);
  if (button(frame, "start_vote", "Blind vote",
             {.width = 110,
              .enabled = !batch.running,
              .help = "Choose the best answer to each prompt without knowing its settings"}))
    frame.actions.push(actions::StartVote{});
}

void BatchView::draw_prompts(const Frame& frame, float width) {
  constexpr std::array kLabels = {"One a line", "CSV"};
  constexpr std::array kIds = {"lines", "csv"};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  format_ = static_cast<PromptFormat>(
      segments(frame, "format", kLabels, kIds, static_cast<std::size_t>(format_), frame.px(190)));
  ImGui::SetCursorScreenPos({at.x + frame.px(206), at.y + frame.px(2)});
  text_field(frame, "##prompts_path", path_, "Path of a text or CSV file", frame.px(280));
  beside(frame, 8);
  const bool has_path = path_.find_first_not_of(" \t") != std::string::npos;
  if (button(frame, "read_prompts", "Read file", {.enabled = has_path}))
    frame.actions.push(actions::ReadPrompts{path_});
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(kFileRow + 8)});
  const std::string_view hint =
      format_ == PromptFormat::kLines ? "One prompt on each line" : "prompt,note (a header, then a row each)";
  text_area(frame, "##prompts", prompts_, {width, frame.px(kPromptsHeight)}, 0, hint);
}

void BatchView::draw_settings(const Frame& frame, const BatchState& batch, float width, float height) {
  actions::ChangeBatch change{batch.setup, batch.setup_seed};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  bool changed = settings_.draw_letters(frame, change.settings, /*fewest=*/1);
  ImGui::SetCursorScreenPos(
      {at.x + SettingsEditor::letters_width(frame, change.settings.size()) + frame.px(kGap), at.y});
  changed |= settings_.draw_seed(frame, change.seed);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(kLetterRow)});
  ImGui::BeginChild("groups", {width, std::max(1.0f, height - frame.px(kLetterRow))},
                    ImGuiChildFlags_NavFlattened);
  changed |= settings_.draw_groups(frame, settings_.chosen(change.settings),
                                   SettingsEditor::Groups::kSettings, width - frame.px(kPadding));
  ImGui::EndChild();
  if (changed) frame.actions.push(change);
}

// ---- the grid

void BatchView::draw_grid(const Frame& frame, const BatchState& batch, ImVec2 extent) {
  begin_card(frame, "grid", extent, 0);
  const float columns = static_cast<float>(batch.settings.size()) + 1;
  const float bar = ImGui::GetStyle().ScrollbarSize;
  // As many as there is room for, each of them whole; the others are scrolled to.
  const float width = extent.x - bar - frame.px(2);
  const float num_whole = std::clamp(std::floor(width / frame.px(kNarrowest)), 1.0f, columns);
  const float column = std::floor(width / num_whole);
  ImGui::BeginChild("answers", {extent.x, extent.y}, ImGuiChildFlags_NavFlattened,
                    ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float head = frame.px(kHeadHeight), row_height = frame.px(kRowHeight);
  const float seen = ImGui::GetWindowPos().y, room = ImGui::GetWindowSize().y;
  const auto first = static_cast<std::size_t>(std::max(0.0f, (seen - origin.y) / row_height));
  const auto last = std::min(batch.rows.size(), first + static_cast<std::size_t>(room / row_height) + 2);
  const float left = ImGui::GetWindowPos().x;
  ImGui::PushClipRect({left, seen + head}, {left + ImGui::GetWindowSize().x, seen + room}, true);
  for (std::size_t row = first; row < last; ++row)
    draw_row(frame, batch, row, {origin.x, origin.y + head + static_cast<float>(row) * row_height}, column);
  ImGui::PopClipRect();
  draw_head(frame, batch, {origin.x, seen}, column);
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({column * columns, head + row_height * static_cast<float>(batch.rows.size())});
  ImGui::EndChild();
  end_card();
}

// Stays at the top while the rows scroll.
void BatchView::draw_head(const Frame& frame, const BatchState& batch, ImVec2 at, float column) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float right = at.x + column * static_cast<float>(batch.settings.size() + 1);
  list->AddRectFilled(at, {right, at.y + frame.px(kHeadHeight)}, frame.theme.panel);
  list->AddLine({at.x, at.y + frame.px(kHeadHeight)}, {right, at.y + frame.px(kHeadHeight)},
                frame.theme.line);
  TextStyle name = small_text(frame);
  name.face = FontFace::kSemiBold;
  name.colour = frame.theme.text;
  const float room = column - frame.px(2 * kPadding);
  draw_text(frame, list, {at.x + frame.px(kPadding), at.y + frame.px(8)}, name, "Prompt", room);
  for (std::size_t i = 0; i < batch.settings.size(); ++i) {
    const float x = at.x + column * static_cast<float>(i + 1) + frame.px(kPadding);
    draw_text(frame, list, {x, at.y + frame.px(8)}, name, settings_name(i), room);
    draw_text(frame, list, {x, at.y + frame.px(28)}, tiny_text(frame), batch.differences[i], room);
  }
}

void BatchView::draw_row(const Frame& frame, const BatchState& batch, std::size_t row, ImVec2 at,
                         float column) {
  const BatchRow& shown = batch.rows[row];
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float height = frame.px(kRowHeight);
  const float right = at.x + column * static_cast<float>(shown.cells.size() + 1);
  list->AddLine({at.x, at.y + height}, {right, at.y + height}, frame.theme.line);
  TextStyle words = small_text(frame);
  words.colour = frame.theme.text;
  const float room = column - frame.px(2 * kPadding);
  const ImVec2 text{at.x + frame.px(kPadding), at.y + frame.px(8)};
  draw_lines(frame, list, text, words, shown.prompt, room, kTextLines);
  draw_text(frame, list, {text.x, at.y + height - frame.px(26)}, tiny_text(frame), row_words(shown), room);
  for (std::size_t i = 0; i < shown.cells.size(); ++i) {
    const ImVec2 low{at.x + column * static_cast<float>(i + 1), at.y};
    draw_cell(frame, batch, {row, i}, low, {low.x + column, low.y + height});
  }
}

void BatchView::draw_cell(const Frame& frame, const BatchState& batch, CellPlace place, ImVec2 low,
                          ImVec2 high) {
  const BatchCell& cell = batch.rows[place.row].cells[place.setting];
  ImGui::SetCursorScreenPos(low);
  const std::string id = "cell_" + std::to_string(place.row) + "_" + std::to_string(place.setting);
  const bool pressed =
      ImGui::InvisibleButton(id.c_str(), {high.x - low.x, high.y - low.y}, ImGuiButtonFlags_EnableNav);
  const bool hovered = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  if (pressed) {
    looked_at_ = place;
    opens_answer_ = true;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (hovered) list->AddRectFilled({low.x, low.y + 1}, {high.x, high.y - 1}, frame.theme.raised, frame.px(6));
  const ImU32 behind = hovered ? frame.theme.raised : frame.theme.panel;
  TextStyle words = small_text(frame), figures = tiny_text(frame);
  words.colour = frame.theme.text;
  figures.colour = readable(frame.theme.muted, behind);
  const float room = high.x - low.x - frame.px(2 * kPadding);
  const ImVec2 text{low.x + frame.px(kPadding), low.y + frame.px(8)};
  const bool failed = !cell.error.empty();
  if (failed) words.colour = readable(frame.theme.error, behind);
  draw_lines(frame, list, text, words, failed && cell.text.empty() ? cell.error : cell.text, room,
             kTextLines);
  draw_text(frame, list, {text.x, high.y - frame.px(26)}, figures, figure_words(cell), room);
}

// The whole answer.
void BatchView::draw_answer_card(const Frame& frame, const BatchState& batch) {
  const bool exists = looked_at_ && looked_at_->row < batch.rows.size() &&
                      looked_at_->setting < batch.rows[looked_at_->row].cells.size();
  if (!exists) return looked_at_.reset();
  if (std::exchange(opens_answer_, false)) {
    ImGui::OpenPopup("batch_answer");
    answer_.clear();
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(frame.px(640), viewport->WorkSize.x - frame.px(80));
  ImGui::SetNextWindowSizeConstraints({width, 0}, {width, viewport->WorkSize.y * 0.7f});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(18), frame.px(14)});
  const bool open = ImGui::BeginPopup("batch_answer");
  ImGui::PopStyleVar();
  if (!open) return looked_at_.reset();
  const BatchRow& row = batch.rows[looked_at_->row];
  const BatchCell& cell = row.cells[looked_at_->setting];
  const float inner = ImGui::GetContentRegionAvail().x;
  heading_line(frame, settings_name(looked_at_->setting), "seed " + std::to_string(cell.seed));
  paragraph(frame, tiny_text(frame), figure_words(cell), inner);
  gap(frame, 4);
  draw_lines(frame, ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), small_text(frame), row.prompt,
             inner, kPromptLines);
  gap(frame, kPromptLines * size::kSmall * size::kLineHeight);
  if (!cell.error.empty()) {
    TextStyle error = tiny_text(frame);
    error.colour = frame.theme.error;
    paragraph(frame, error, cell.error, inner);
  }
  gap(frame, 8);
  answer_.update(frame, cell.text, TextFormat::kMarkdown, inner);
  const float clip_top = ImGui::GetWindowPos().y, clip_bottom = clip_top + ImGui::GetWindowSize().y;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto copied = answer_.draw(frame, cell.text, at, clip_top, clip_bottom, frame.theme.text);
  if (copied) frame.actions.push(actions::CopyText{*copied});
  ImGui::Dummy({inner, answer_.height()});
  ImGui::EndPopup();
}

}  // namespace octavo::ui
