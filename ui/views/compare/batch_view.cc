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
constexpr float kWordsRow = 28;
constexpr float kPromptsHeight = 150;
constexpr float kLetterRow = 44;
constexpr float kFileRow = 40;
constexpr float kFormatsWidth = 190;
constexpr float kGap = 12, kBetweenButtons = 8;
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

// Of the letters of the settings with the seed, which stands below them where there is no room beside them.
float letters_height(const Frame& frame, std::size_t num_settings, float width) {
  const float needed =
      SettingsEditor::letters_width(frame, num_settings) + frame.px(kGap) + SettingsEditor::seed_width(frame);
  return frame.px(needed <= width ? kLetterRow : 2 * kLetterRow);
}

constexpr ButtonOptions kReadFile = {.icon = Icon::kFolder,
                                     .help = "Take the prompts of a text or CSV file over"};
constexpr std::string_view kReadFileText = "Read a file…";

// Of the format and the button for files, which stands below it where there is no room beside it.
float file_height(const Frame& frame, float width) {
  const float needed = frame.px(kFormatsWidth + kGap) + button_width(frame, kReadFileText, kReadFile);
  return frame.px(needed <= width ? kFileRow : 2 * kFileRow);
}

std::string row_words(const BatchRow& row, const std::string& seed) {
  std::string words = "seed " + seed;
  const std::int32_t prompt = row.cells.front().num_prompt_tokens;
  if (prompt > 0) words = count_text(prompt, "token") + " · " + words;
  return words;
}

}  // namespace

void BatchView::take_file(const PromptFile& file) {
  if (file.number == file_number_) return;
  file_number_ = file.number;
  ImGui::ClearActiveID();  // a field that has the keyboard keeps its own text
  prompts_ = file.text;
  format_ = file.format;
  editing_ = true;
}

void BatchView::draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const BatchState& batch = state.batch;
  if (batch.vote) return vote_.draw(frame, *batch.vote, extent);
  vote_ = {};
  take_file(batch.file);
  take_keys(frame, state);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float setup = setup_height(frame, state, extent.x, extent.y * (batch.rows.empty() ? 1.0f : 0.7f));
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

// Of the kinds of comparisons with the buttons.
float BatchView::buttons_height(const Frame& frame, const BatchState& batch, float width) const {
  return place_buttons(frame, head_buttons(batch), width).back().y + frame.px(kTopRow - 2);
}

float BatchView::setup_height(const Frame& frame, const UiState& state, float width, float most) const {
  const BatchState& batch = state.batch;
  const bool has_words = !batch.rows.empty() || !batch.problem.empty();
  const float buttons = buttons_height(frame, batch, width - frame.px(2 * kPadding));
  const float fixed = frame.px(2 * kPadding + (has_words ? kWordsRow : 0)) + buttons;
  if (!editing_) return fixed;
  const float inner = width - frame.px(3 * kPadding);
  const float groups = SettingsEditor::groups_height(frame, SettingsEditor::Groups::kSettings,
                                                     state.model.template_switches, inner);
  const float inside = width - frame.px(2 * kPadding);
  const float above = fixed + file_height(frame, inside) + frame.px(kPromptsHeight + 3 * 8) +
                      letters_height(frame, batch.setup.size(), inside);
  return above + std::min(groups, std::max(frame.px(kFewestGroups), most - above));
}

void BatchView::draw_setup(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const BatchState& batch = state.batch;
  begin_card(frame, "batch_setup", extent, kPadding);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float inner = ImGui::GetContentRegionAvail().x;
  ComparisonSetup setup = state.comparison.setup;
  if (draw_kinds(frame, setup.kind, look)) frame.actions.push(actions::ChangeComparison{setup});
  draw_buttons(frame, batch, at, inner);
  float y = at.y + buttons_height(frame, batch, inner);
  const bool has_words = !batch.problem.empty() || !batch.rows.empty();
  if (has_words) ImGui::SetCursorScreenPos({at.x, y});
  if (!batch.problem.empty()) {
    TextStyle error = tiny_text(frame);
    error.colour = frame.theme.error;
    line(frame, error, batch.problem, inner);
  } else if (!batch.rows.empty()) {
    const std::string sharing = sharing_words(batch);
    line(frame, tiny_text(frame), count_words(batch) + (sharing.empty() ? "" : " · " + sharing), inner);
    tooltip(frame,
            "All settings of a prompt are asked together: the engine computes its blocks once, and the "
            "others find them. The last token of a prompt is always computed.");
  }
  if (has_words) y += frame.px(kWordsRow);
  if (editing_) {
    ImGui::SetCursorScreenPos({at.x, y});
    draw_prompts(frame, state, inner);
    y += file_height(frame, inner) + frame.px(kPromptsHeight + 2 * 8);
    ImGui::SetCursorScreenPos({at.x, y});
    draw_settings(frame, state, inner, at.y + extent.y - frame.px(2 * kPadding) - y);
  }
  if (batch.running) {
    const float bar = at.y - frame.px(kPadding) + extent.y - frame.px(6);
    ImGui::SetCursorScreenPos({at.x, bar});
    two_part_bar(frame, static_cast<float>(batch.progress), 0, inner, frame.px(3));
  }
  end_card();
}

// From left to right.
std::vector<BatchView::HeadButton> BatchView::head_buttons(const BatchState& batch) const {
  std::vector<HeadButton> buttons;
  if (!batch.rows.empty() && batch.settings.size() > 1) {
    buttons.push_back({"start_vote",
                       "Blind vote",
                       {.width = 110,
                        .enabled = !batch.running,
                        .help = "Choose the best answer to each prompt without knowing its settings"}});
  }
  if (!batch.rows.empty()) {
    buttons.push_back(
        {"batch_json", "JSON", {.width = 70, .help = "Export answers, seeds, settings and votes"}});
    buttons.push_back(
        {"batch_csv", "CSV", {.width = 70, .help = "Export a table with a row for each answer"}});
    buttons.push_back({"edit_batch", editing_ ? "Hide set-up" : "Set-up", {.width = 104}});
  }
  if (batch.running) {
    buttons.push_back(
        {"stop_batch", "Stop", {.icon = Icon::kStop, .width = 96, .help = "Stop all answers (Esc)"}});
  } else {
    buttons.push_back({"run_batch",
                       "Run",
                       {.kind = ButtonKind::kPrimary,
                        .width = 80,
                        .enabled = can_run(batch),
                        .help = "Answer every prompt with each of the settings (Ctrl+Enter)"}});
  }
  return buttons;
}

// At the right end of the first row, or in rows below where they do not fit there. From the card's inside.
std::vector<ImVec2> BatchView::place_buttons(const Frame& frame, std::span<const HeadButton> buttons,
                                             float width) {
  float all = 0;
  for (const HeadButton& each : buttons) all += frame.px(each.options.width + kBetweenButtons);
  const bool beside_kinds = kinds_width(frame) + frame.px(kGap) + all <= width;
  float x = beside_kinds ? width - all + frame.px(kBetweenButtons) : 0,
        y = beside_kinds ? 0 : frame.px(kTopRow);
  std::vector<ImVec2> places;
  for (const HeadButton& each : buttons) {
    const float extent = frame.px(each.options.width);
    if (x > 0 && x + extent > width + 1) {
      x = 0;
      y += frame.px(kTopRow);
    }
    places.push_back({x, y + frame.px(2)});
    x += extent + frame.px(kBetweenButtons);
  }
  return places;
}

void BatchView::draw_buttons(const Frame& frame, const BatchState& batch, ImVec2 at, float width) {
  const std::vector<HeadButton> buttons = head_buttons(batch);
  const std::vector<ImVec2> places = place_buttons(frame, buttons, width);
  for (std::size_t i = 0; i < buttons.size(); ++i) {
    ImGui::SetCursorScreenPos({at.x + places[i].x, at.y + places[i].y});
    if (button(frame, buttons[i].id, buttons[i].text, buttons[i].options)) take(frame, buttons[i].id);
  }
}

void BatchView::take(const Frame& frame, std::string_view pressed) {
  if (pressed == "start_vote") frame.actions.push(actions::StartVote{});
  if (pressed == "batch_json") frame.actions.push(actions::ExportBatch{actions::BatchFormat::kJson});
  if (pressed == "batch_csv") frame.actions.push(actions::ExportBatch{actions::BatchFormat::kCsv});
  if (pressed == "edit_batch") editing_ = !editing_;
  if (pressed == "stop_batch") frame.actions.push(actions::StopBatch{});
  if (pressed != "run_batch") return;
  frame.actions.push(actions::RunBatch{prompts_, format_});
  editing_ = false;
}

bool BatchView::can_run(const BatchState& batch) const { return !batch.running && !is_blank(prompts_); }

void BatchView::take_keys(const Frame& frame, const UiState& state) {
  if (has_dialog(state) || looked_at_) return;
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Enter) && can_run(state.batch))
    take(frame, "run_batch");
  if (ImGui::GetIO().WantTextInput || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId)) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false) && state.batch.running) take(frame, "stop_batch");
}

void BatchView::draw_prompts(const Frame& frame, const UiState& state, float width) {
  constexpr std::array kLabels = {"One a line", "CSV"};
  constexpr std::array kIds = {"lines", "csv"};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  format_ = static_cast<PromptFormat>(
      segments(frame, "format", kLabels, kIds, static_cast<std::size_t>(format_), frame.px(kFormatsWidth)));
  const float height = file_height(frame, width);
  const bool beside_format = height <= frame.px(kFileRow);
  ImGui::SetCursorScreenPos(beside_format ? ImVec2{at.x + frame.px(kFormatsWidth + kGap), at.y + frame.px(2)}
                                          : ImVec2{at.x, at.y + frame.px(kFileRow + 2)});
  if (button(frame, "read_prompts", kReadFileText, kReadFile))
    frame.actions.push(actions::AskForFile{actions::FileWish::kPrompts});
  ImGui::SetCursorScreenPos({at.x, at.y + height + frame.px(8)});
  const std::string_view hint =
      format_ == PromptFormat::kLines ? "One prompt on each line" : "prompt,note (a header, then a row each)";
  if (appears(prompts_frame_) && prompts_.empty() && !has_dialog(state)) take_keyboard("##prompts");
  text_area(frame, "##prompts", prompts_, {width, frame.px(kPromptsHeight)}, 0, hint);
}

void BatchView::draw_settings(const Frame& frame, const UiState& state, float width, float height) {
  const BatchState& batch = state.batch;
  actions::ChangeBatch change{batch.setup, batch.setup_seed};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  bool changed = settings_.draw_letters(frame, change.settings, /*fewest=*/1);
  const float letters = letters_height(frame, batch.setup.size(), width);
  const bool beside_letters = letters <= frame.px(kLetterRow);
  const float seed_x = SettingsEditor::letters_width(frame, batch.setup.size()) + frame.px(kGap);
  ImGui::SetCursorScreenPos(beside_letters ? ImVec2{at.x + seed_x, at.y}
                                           : ImVec2{at.x, at.y + frame.px(kLetterRow)});
  changed |= settings_.draw_seed(frame, change.seed);
  ImGui::SetCursorScreenPos({at.x, at.y + letters});
  // A pixel less: what is drawn is rounded, and must not be higher than the card.
  const float room = std::max(1.0f, std::floor(height - letters) - 1), inner = width - frame.px(kPadding);
  const bool fits = SettingsEditor::groups_height(frame, SettingsEditor::Groups::kSettings,
                                                  state.model.template_switches, inner) <= room + 3;
  ImGui::BeginChild("groups", {width, room}, ImGuiChildFlags_NavFlattened,
                    fits ? ImGuiWindowFlags_NoScrollbar : ImGuiWindowFlags_None);
  changed |= settings_.draw_groups(frame, settings_.chosen(change.settings),
                                   SettingsEditor::Groups::kSettings, state.model.template_switches, inner);
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
  ImGui::BeginChild("answers", ImGui::GetContentRegionAvail(), ImGuiChildFlags_NavFlattened,
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
    if (const std::string& prompt = batch.settings[i].system_prompt; !prompt.empty())
      tooltip_over(frame, {x, at.y}, {x + room, at.y + frame.px(kHeadHeight)}, "System prompt: " + prompt);
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
  const std::uint64_t seed = shown.cells.front().seed;
  const ImVec2 figures{text.x, at.y + height - frame.px(26)};
  draw_text(frame, list, figures, tiny_text(frame), row_words(shown, seed_suffix(seed)));
  tooltip_over(frame, figures, {figures.x + room, at.y + height}, row_words(shown, std::to_string(seed)));
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
