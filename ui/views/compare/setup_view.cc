#include "ui/views/compare/setup_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/format.h"
#include "ui/compare_actions.h"
#include "ui/state.h"
#include "ui/two_models_actions.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/sampling_controls.h"

namespace octavo::ui {
namespace {

constexpr float kPadding = 14;
constexpr float kButtonsWidth = 330;
constexpr float kNarrowestBesideButtons = kButtonsWidth + 320;
constexpr float kQuestionHeight = 60;
constexpr float kEditorHeight = 122;
constexpr float kOptionHeight = 46;  // a slider and its name
constexpr float kOptionGap = 16;
constexpr float kKindWidth = 320;
constexpr float kCountWidth = 150;
constexpr float kToggleWidth = 128;
constexpr float kGroupsGap = 12;
constexpr float kFewestGroups = 96;  // pixels of them that stay in sight, however low the window is

// Of everything in the row of options after the kinds, on screen.
std::vector<float> option_widths(const Frame& frame, const ComparisonSetup& setup) {
  std::vector<float> widths;
  if (setup.kind == ComparisonKind::kSettings) {
    widths.push_back(SettingsEditor::letters_width(frame, setup.variants.size()));
  } else {
    widths.push_back(frame.px(kCountWidth));
  }
  if (setup.kind != ComparisonKind::kBeams) widths.push_back(SettingsEditor::seed_width(frame));
  widths.push_back(frame.px(kToggleWidth));
  return widths;
}

// Where each option stands, from the top left corner of the row; what does not fit goes on in another row.
std::vector<ImVec2> place_options(const Frame& frame, const ComparisonSetup& setup, float width) {
  std::vector<ImVec2> places;
  float x = frame.px(kKindWidth + kOptionGap), y = 0;
  for (const float each : option_widths(frame, setup)) {
    if (x > 0 && x + each > width) {
      x = 0;
      y += frame.px(kOptionHeight + 6);
    }
    places.push_back({x, y});
    x += each + frame.px(kOptionGap);
  }
  return places;
}

SettingsEditor::Groups groups_of(ComparisonKind kind) {
  switch (kind) {
    case ComparisonKind::kSamples: return SettingsEditor::Groups::kSamples;
    case ComparisonKind::kBeams: return SettingsEditor::Groups::kBeams;
    case ComparisonKind::kSettings: return SettingsEditor::Groups::kSettings;
  }
  return SettingsEditor::Groups::kSamples;
}

std::string prompt_words(const UiState& state) {
  const ComparisonState& comparison = state.comparison;
  std::string text = comparison.chat_title.empty() ? "Question" : "From “" + comparison.chat_title + "”";
  if (comparison.num_prompt_tokens == 0) return text;
  const std::int32_t block_size = std::max(1, state.model.block_size);
  const std::int32_t blocks = (comparison.num_prompt_tokens + block_size - 1) / block_size;
  text += " · prompt of " + count_text(comparison.num_prompt_tokens, "token") + " · " +
          count_text(blocks, "block");
  const bool same_prompt =
      std::all_of(comparison.columns.begin(), comparison.columns.end(), [&](const ComparedColumn& column) {
        return column.system_prompt == comparison.columns.front().system_prompt &&
               column.template_values == comparison.columns.front().template_values;
      });
  text += same_prompt ? ", computed once" : ", other prompts apart";
  if (comparison.num_cached_tokens > 0)
    text += " · " + with_thousands(comparison.num_cached_tokens) + " tokens cached";
  return text;
}

}  // namespace

float kinds_width(const Frame& frame) { return frame.px(kKindWidth); }

bool draw_kinds(const Frame& frame, ComparisonKind& kind, CompareLook& look) {
  constexpr std::array kLabels = {"Samples", "Beams", "Settings", "Batch"};
  constexpr std::array kIds = {"samples", "beams", "settings", "batch"};
  const std::size_t before = look.batch ? kLabels.size() - 1 : static_cast<std::size_t>(kind);
  std::size_t after = segments(frame, "kind", kLabels, kIds, before, frame.px(kKindWidth));
  for (int i = 0; i < static_cast<int>(kLabels.size()); ++i) {
    if (ImGui::IsKeyChordPressed(ImGuiMod_Alt | (ImGuiKey_1 + i))) after = static_cast<std::size_t>(i);
  }
  look.batch = after + 1 == kLabels.size();
  const ComparisonKind chosen = look.batch ? kind : static_cast<ComparisonKind>(after);
  return std::exchange(kind, chosen) != chosen;
}

bool SetupView::shows_groups(const ComparisonState& comparison) const {
  return groups_wanted_.value_or(comparison.columns.empty());
}

// Where the buttons leave no room beside them, the question stands below.
float question_top(const Frame& frame, float inner) {
  return inner < frame.px(kNarrowestBesideButtons) ? frame.px(kOptionHeight) : 0;
}
float question_room(const Frame& frame, float inner) {
  return question_top(frame, inner) > 0 ? inner : inner - frame.px(kButtonsWidth);
}

float SetupView::height(const Frame& frame, const UiState& state, float width, float most) const {
  const ComparisonSetup& setup = state.comparison.setup;
  const float inner = width - frame.px(2 * kPadding);
  const float fixed = frame.px((editing_ ? kEditorHeight : kQuestionHeight) + kOptionHeight + 2 * kPadding) +
                      question_top(frame, inner) + place_options(frame, setup, inner).back().y;
  if (!shows_groups(state.comparison)) return fixed;
  const float groups = SettingsEditor::groups_height(
      frame, groups_of(setup.kind), state.model.template_switches, inner - frame.px(kPadding));
  const float room = std::max(frame.px(kFewestGroups), most - fixed - frame.px(kGroupsGap));
  return fixed + frame.px(kGroupsGap) + std::min(groups, room);
}

void SetupView::draw(const Frame& frame, const UiState& state, CompareLook& look, float width, float most) {
  const float card_height = height(frame, state, width, most);
  begin_card(frame, "setup", {width, card_height}, kPadding);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float inner = ImGui::GetContentRegionAvail().x;
  draw_buttons(frame, state, {at.x + inner, at.y});
  const float top = at.y + question_top(frame, inner);
  ImGui::SetCursorScreenPos({at.x, top});
  draw_question(frame, state, question_room(frame, inner));
  const float options = top + frame.px(editing_ ? kEditorHeight : kQuestionHeight);
  ImGui::SetCursorScreenPos({at.x, options});
  const float below = place_options(frame, state.comparison.setup, inner).back().y;
  // A pixel less: what is drawn is rounded, and must not be higher than the card.
  const float groups = std::floor(at.y + card_height - frame.px(2 * kPadding) - options - below -
                                  frame.px(kOptionHeight + kGroupsGap)) -
                       1;
  draw_options(frame, state, look, inner, groups);
  if (state.comparison.running) {
    const float y = at.y - frame.px(kPadding) + card_height - frame.px(6),
                end = inner * static_cast<float>(state.comparison.progress);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled({at.x, y}, {at.x + inner, y + frame.px(3)}, frame.theme.free, frame.px(1.5f));
    list->AddRectFilled({at.x, y}, {at.x + std::max(end, frame.px(3)), y + frame.px(3)}, frame.theme.accent,
                        frame.px(1.5f));
  }
  end_card();
}

void SetupView::draw_question(const Frame& frame, const UiState& state, float room) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextStyle faint = tiny_text(frame);
  faint.colour = frame.theme.faint;
  const std::string words = prompt_words(state);
  const std::string_view other = editing_ ? "cancel" : "Ask another question";
  const float links = text_width(frame, faint, other) + text_width(frame, faint, "Two models…");
  const float words_room = std::max(frame.px(60), room - links - frame.px(40));
  line(frame, faint, words, words_room);
  tooltip(frame,
          "The prompt's blocks are computed once. All answers share them until one writes to a block.");
  const float used = std::min(text_width(frame, faint, words), words_room);
  ImGui::SetCursorScreenPos({at.x + used + frame.px(12), at.y});
  if (link(frame, "other_question", other)) {
    editing_ = !editing_;
    focus_ = editing_;
    typed_ = state.comparison.question;
  }
  beside(frame, 12);
  if (link(frame, "two_models", "Two models…", "Compare two models over one text, token by token"))
    frame.actions.push(actions::ShowTwoModels{true});
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(24)});
  if (editing_) return draw_editor(frame, room);
  TextStyle body = body_text(frame);
  line(frame, body, state.comparison.question, room);
  if (!state.comparison.problem.empty()) {
    TextStyle error = tiny_text(frame);
    error.colour = frame.theme.error;
    line(frame, error, state.comparison.problem, room);
  }
}

void SetupView::draw_editor(const Frame& frame, float width) {
  if (focus_) take_keyboard("##question");
  focus_ = false;
  const bool entered =
      text_area(frame, "##question", typed_, {width - frame.px(96), frame.px(88)},
                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CtrlEnterForNewLine);
  beside(frame, 8);
  const bool has_text = !is_blank(typed_);
  const bool pressed =
      button(frame, "ask", "Use", {.kind = ButtonKind::kPrimary, .width = 88, .enabled = has_text});
  if ((entered || pressed) && has_text) {
    frame.actions.push(actions::TypeComparison{typed_});
    editing_ = false;
  }
}

void SetupView::draw_buttons(const Frame& frame, const UiState& state, ImVec2 top_right) {
  const ComparisonState& comparison = state.comparison;
  const float y = top_right.y - frame.px(2);
  float x = top_right.x;
  const auto place = [&](float design_width) {
    x -= frame.px(design_width);
    ImGui::SetCursorScreenPos({x, y});
    x -= frame.px(8);
  };
  if (comparison.running) {
    place(96);
    if (button(frame, "stop", "Stop", {.icon = Icon::kStop, .width = 96, .help = "Stop all answers (Esc)"}))
      frame.actions.push(actions::StopComparison{});
    return;
  }
  const bool ran = !comparison.columns.empty();
  place(80);
  const ButtonOptions run{
      .kind = ButtonKind::kPrimary, .width = 80, .help = "Run with these settings (Ctrl+Enter)"};
  if (button(frame, "run", "Run", run)) frame.actions.push(actions::RunComparison{});
  if (!ran) return;
  place(100);
  const ButtonOptions again{.width = 100, .help = "Run again with the same seeds, for the same text (A)"};
  if (button(frame, "run_again", "Run again", again)) frame.actions.push(actions::RunComparisonAgain{});
  place(110);
  if (button(frame, "keep_all", "Keep all",
             {.width = 110,
              .enabled = comparison.chat_id != ChatId{},
              .help = "Keep all answers as branches of the chat (Shift+K)"})) {
    frame.actions.push(actions::KeepAllColumns{});
  }
}

void SetupView::draw_options(const Frame& frame, const UiState& state, CompareLook& look, float width,
                             float groups_height) {
  ComparisonSetup setup = state.comparison.setup;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::vector<ImVec2> places = place_options(frame, setup, width);
  const bool shows = shows_groups(state.comparison);
  std::size_t drawn = 0;
  const auto next = [&] {
    const ImVec2 place = places[drawn++];
    ImGui::SetCursorScreenPos({at.x + place.x, at.y + place.y});
  };
  const ComparisonKind kind = setup.kind;  // a new one is drawn in the next frame
  bool changed = draw_kinds(frame, setup.kind, look);
  next();
  ImGui::BeginGroup();  // a slider stands below its name
  if (kind == ComparisonKind::kSettings) {
    changed |= settings_.draw_letters(frame, setup.variants, static_cast<std::size_t>(kFewestCompared));
  } else if (kind == ComparisonKind::kBeams) {
    changed |= number_slider(
        frame, "##width", "Beams",
        "Keeps the likeliest continuations at every step. Their text is often duller than a sample.",
        setup.beam_width, kFewestCompared, kMostCompared, frame.px(kCountWidth));
  } else {
    changed |= number_slider(frame, "##samples", "Samples",
                             "Several answers to one prompt, each sampled independently.", setup.num_samples,
                             kFewestCompared, kMostCompared, frame.px(kCountWidth));
  }
  ImGui::EndGroup();
  if (kind != ComparisonKind::kBeams) {
    next();
    changed |= settings_.draw_seed(frame, setup.sampling.seed);
  }
  next();
  const ButtonOptions toggle{.icon = shows ? Icon::kChevronDown : Icon::kChevronRight, .width = kToggleWidth};
  if (button(frame, "show_settings", "Options", toggle)) groups_wanted_ = !shows;
  tooltip(frame, shows ? "Hide the options" : "Show sampling, penalties, stops and the form of the answers");
  if (shows && setup.kind == kind) {
    ImGui::SetCursorScreenPos({at.x, at.y + places.back().y + frame.px(kOptionHeight + kGroupsGap)});
    changed |= draw_groups(frame, setup, state.model.template_switches, width, groups_height);
  }
  if (changed) frame.actions.push(actions::ChangeComparison{setup});
}

bool SetupView::draw_groups(const Frame& frame, ComparisonSetup& setup, SettingsEditor::Switches switches,
                            float width, float height) {
  const float room = width - frame.px(kPadding);  // beside it, a scroll bar
  const bool fits = SettingsEditor::groups_height(frame, groups_of(setup.kind), switches, room) <= height + 3;
  ImGui::BeginChild("groups", {width, height}, ImGuiChildFlags_NavFlattened,
                    fits ? ImGuiWindowFlags_NoScrollbar : ImGuiWindowFlags_None);
  bool changed = false;
  if (setup.kind == ComparisonKind::kSettings) {
    changed =
        settings_.draw_groups(frame, settings_.chosen(setup.variants), groups_of(setup.kind), switches, room);
  } else {
    ComparedSettings settings{.sampling = setup.sampling};
    changed = settings_.draw_groups(frame, settings, groups_of(setup.kind), switches, room);
    if (changed) setup.sampling = settings.sampling;
  }
  ImGui::EndChild();
  return changed;
}

void SetupView::draw_empty(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = std::min(frame.px(600), extent.x - frame.px(48));
  const float left = std::floor(low.x + (extent.x - width) * 0.5f);
  const float highest = frame.px(24), lowest = std::max(highest, extent.y * 0.26f);
  ImGui::SetCursorScreenPos({left, low.y + std::clamp(extent.y - frame.px(340), highest, lowest)});
  ImGui::BeginGroup();
  TextStyle title = heading_text(frame);
  title.em = 20;
  line(frame, title, "Compare answers");
  gap(frame, 8);
  paragraph(frame, small_text(frame),
            "One question, several answers side by side: samples, beams or different settings. The prompt is "
            "computed once and its blocks are shared. To bring a message from a chat here, choose “Compare” "
            "below it.",
            width);
  gap(frame, 16);
  if (appears(empty_frame_) && !has_dialog(state)) take_keyboard("##first_question");
  // A field on the bare background needs an edge to be seen.
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1.0f);
  text_area(frame, "##first_question", typed_, {width, frame.px(96)}, 0, "Ask a question to compare answers");
  ImGui::PopStyleVar();
  gap(frame, 12);
  ComparisonSetup setup = state.comparison.setup;
  if (draw_kinds(frame, setup.kind, look)) frame.actions.push(actions::ChangeComparison{setup});
  gap(frame, 12);
  const bool has_text = !is_blank(typed_);
  const bool key = ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Enter);
  const bool pressed = button(frame, "compare_question", "Compare",
                              {.kind = ButtonKind::kPrimary, .width = 110, .enabled = has_text});
  if ((pressed || key) && has_text) {
    frame.actions.push(actions::TypeComparison{typed_});
    frame.actions.push(actions::RunComparison{});
  }
  beside(frame, 16);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(7)});  // on the button's line
  if (link(frame, "two_models", "Two models…", "Compare two models over one text, token by token"))
    frame.actions.push(actions::ShowTwoModels{true});
  ImGui::EndGroup();
}

}  // namespace octavo::ui
