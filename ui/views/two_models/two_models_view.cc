#include "ui/views/two_models/two_models_view.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/format.h"
#include "ui/desktop_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/two_models_actions.h"
#include "ui/views/compare/token_card.h"
#include "ui/views/compare/token_colours.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kMargin = 16, kPadding = 16, kSetupHeight = 284, kLegendHeight = 44;
constexpr float kSourceWidth = 320, kFiguresWidth = 372, kTextHeight = 112;
// Where the workspace is narrow, what stands side by side elsewhere stands in rows.
constexpr float kNarrow = 640, kNarrowSetupHeight = 438, kNarrowTextHeight = 240, kNarrowFiguresHeight = 460;
constexpr float kModelRow = 34, kSourceHeight = 102, kLabelRow = 24;
constexpr float kWorstRow = 28;

constexpr std::array<std::int32_t, 4> kContexts = {256, 512, 1024, 2048};

// Of the workspace, or of what is inside its card.
bool is_narrow(const Frame& frame, float width) { return width < frame.px(kNarrow); }

std::string first_model(const ModelState& model) { return model.name + " " + model.quantisation; }

}  // namespace

void TwoModelsView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  const TwoModelsState& shown = state.two_models;
  if (text_serial_ != shown.text_serial) {
    text_serial_ = shown.text_serial;
    typed_ = shown.text;
  }
  const float margin = frame.px(kMargin), width = extent.x - 2 * margin;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({low.x + margin, low.y + margin});
  const bool narrow = is_narrow(frame, width);
  const float setup = narrow ? kNarrowSetupHeight : kSetupHeight;
  draw_setup(frame, state, {width, frame.px(setup)});
  if (!shown.result) return;
  const float legend = low.y + margin + frame.px(setup + 8);
  ImGui::SetCursorScreenPos({low.x + margin, legend});
  draw_legend(frame, width);
  const float top = legend + frame.px(kLegendHeight);
  if (narrow) {
    ImGui::SetCursorScreenPos({low.x + margin, top});
    text_.draw(frame, *shown.result, colour_, {width, frame.px(kNarrowTextHeight)});
    ImGui::SetCursorScreenPos({low.x + margin, top + frame.px(kNarrowTextHeight + 12)});
    return draw_figures(frame, *shown.result, {width, frame.px(kNarrowFiguresHeight)});
  }
  const float height = std::max(frame.px(200), low.y + extent.y - margin - top);
  const float figures = std::min(frame.px(kFiguresWidth), std::floor(width * 0.45f));
  ImGui::SetCursorScreenPos({low.x + margin, top});
  text_.draw(frame, *shown.result, colour_, {width - figures - frame.px(12), height});
  ImGui::SetCursorScreenPos({low.x + margin + width - figures, top});
  draw_figures(frame, *shown.result, {figures, height});
}

// ---- what is compared

void TwoModelsView::draw_setup(const Frame& frame, const UiState& state, ImVec2 extent) {
  const TwoModelsState& shown = state.two_models;
  begin_card(frame, "two_models", extent, kPadding);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  constexpr std::string_view kBack = "Back to answers";
  ImGui::SetCursorScreenPos(
      {low.x + width - text_width(frame, tiny_text(frame), kBack) - frame.px(8), low.y});
  if (link(frame, "back_to_answers", kBack, "Compare answers to one question"))
    frame.actions.push(actions::ShowTwoModels{false});
  ImGui::SetCursorScreenPos(low);
  heading_line(frame, "Two models over one text", "token by token, B held against A");
  gap(frame, 4);
  draw_models(frame, state, width);
  const bool narrow = is_narrow(frame, extent.x);
  const float source = narrow ? width : std::min(frame.px(kSourceWidth), std::floor(width * 0.4f));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float text_room = narrow ? width : width - source - frame.px(16);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1.0f);
  text_area(frame, "##compared_text", typed_, {text_room, frame.px(kTextHeight)}, 0, "Paste a text");
  ImGui::PopStyleVar();
  const float below = at.y + frame.px(kTextHeight + 10);
  ImGui::SetCursorScreenPos(narrow ? ImVec2{at.x, below} : ImVec2{at.x + text_room + frame.px(16), at.y});
  ImGui::BeginGroup();
  draw_source(frame, shown, source);
  ImGui::EndGroup();
  draw_start(frame, shown, {at.x, narrow ? below + frame.px(kSourceHeight + kLabelRow) : below}, width);
  end_card();
}

void TwoModelsView::draw_models(const Frame& frame, const UiState& state, float width) {
  const TwoModelsState& shown = state.two_models;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool narrow = is_narrow(frame, width + frame.px(2 * kPadding));
  const float half = std::floor(width * 0.5f);
  TextStyle name = small_text(frame);
  name.colour = frame.theme.text;
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(frame, list, {low.x, low.y + frame.px(6)}, name, "A  " + first_model(state.model) + ", in use",
            narrow ? width : half - frame.px(12));
  const ImVec2 second = narrow ? ImVec2{low.x, low.y + frame.px(kModelRow)} : ImVec2{low.x + half, low.y};
  const bool is_chosen = !shown.second_path.empty();
  const ButtonOptions choose{.height = 30,
                             .enabled = shown.phase == TwoModelsPhase::kSetUp,
                             .help = "Choose the model that is held against A"};
  ImGui::SetCursorScreenPos(second);
  const std::string text = is_chosen ? "Change…" : "Choose a second model…";
  if (button(frame, "choose_second", text, choose)) frame.actions.push(actions::ChooseSecondModel{});
  if (is_chosen) {
    const float used = button_width(frame, text, choose) + frame.px(12);
    draw_text(frame, list, {second.x + used, second.y + frame.px(6)}, name, "B  " + shown.second_name,
              low.x + width - second.x - used);
  }
  ImGui::SetCursorScreenPos({low.x, second.y + frame.px(kModelRow)});
  TextStyle said = tiny_text(frame);
  if (!shown.problem.empty()) said.colour = frame.theme.error;
  const std::string& sentence = !shown.problem.empty() ? shown.problem : shown.needs;
  line(frame, said, shown.looking ? "Reading both files…" : sentence, width);
  ImGui::SetCursorScreenPos({low.x, second.y + frame.px(kModelRow + 24)});
}

void TwoModelsView::draw_source(const Frame& frame, const TwoModelsState& shown, float width) {
  if (button(frame, "read_text", "Read a file…",
             {.icon = Icon::kFolder, .height = 30, .help = "Compare over the text of a file"}))
    frame.actions.push(actions::AskForFile{actions::FileWish::kTextToCompare});
  gap(frame, 6);
  if (button(frame, "take_answer", "Question and answer of the chat", {.height = 30}))
    frame.actions.push(actions::TakeAnswerAsText{});
  gap(frame, 6);
  if (!shown.source.empty() && typed_ == shown.text) line(frame, tiny_text(frame), shown.source, width);
}

void TwoModelsView::draw_start(const Frame& frame, const TwoModelsState& shown, ImVec2 low, float width) {
  constexpr std::array kLabels = {"256", "512", "1,024", "2,048"};
  constexpr std::array kIds = {"256", "512", "1024", "2048"};
  constexpr float kSegments = 240, kButton = 104;
  const bool is_running = shown.phase != TwoModelsPhase::kSetUp;
  ImGui::SetCursorScreenPos({low.x + width - frame.px(kButton), low.y});
  if (is_running) {
    if (button(frame, "cancel_comparison", "Cancel", {.width = kButton, .enabled = !shown.is_cancelling}))
      frame.actions.push(actions::CancelTwoModels{});
  } else if (button(frame, "compare_models", "Compare",
                    {.kind = ButtonKind::kPrimary,
                     .width = kButton,
                     .enabled = shown.can_compare && !is_blank(typed_)})) {
    frame.actions.push(actions::CompareTwoModels{typed_});
  }
  const TextStyle small = small_text(frame);
  if (is_running) {
    const std::string words = (shown.is_cancelling                       ? "Cancelling"
                               : shown.phase == TwoModelsPhase::kLoading ? "Loading both models"
                                                                         : "Comparing") +
                              std::string(" · ") + percent_text(std::floor(shown.fraction * 100.0) / 100.0);
    ImGui::SetCursorScreenPos(low);
    line(frame, small, words, width - frame.px(kButton + 16));
    two_part_bar(frame, static_cast<float>(shown.fraction), 0, width - frame.px(kButton + 16), frame.px(8));
    return;
  }
  const bool narrow = is_narrow(frame, width + frame.px(2 * kPadding));
  const float label = narrow ? 0 : text_width(frame, small, "Tokens per window") + frame.px(12);
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x, low.y + (narrow ? -frame.px(kLabelRow) : frame.px(6))},
            small, "Tokens per window");
  ImGui::SetCursorScreenPos({low.x + label, low.y});
  const float room = std::min(frame.px(kSegments), width - label - frame.px(kButton + 16));
  const auto chosen = std::ranges::find(kContexts, shown.context);
  const auto before = static_cast<std::size_t>(chosen - kContexts.begin());
  const std::size_t after = segments(frame, "context", kLabels, kIds, before, room);
  if (after != before) frame.actions.push(actions::ChangeWindowOfText{kContexts[after]});
  tooltip(
      frame,
      "A longer text is read in windows that overlap by half, so that each token is scored once, after at "
      "least half a window.");
}

// ---- what came of it

void TwoModelsView::draw_legend(const Frame& frame, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  for (int i = 0; i < kNumTwoModelsColours; ++i) {
    const auto colour = static_cast<TwoModelsColour>(i);
    const std::string id = "mark_" + std::to_string(i + 1);
    if (chip(frame, id.c_str(), two_models_colour_name(colour), {.is_on = colour_ == colour}))
      colour_ = colour;
    tooltip(frame, two_models_colour_help(colour));
    beside(frame, 6);
  }
  const ColourLegend legend = two_models_legend(colour_);
  const TextStyle tiny = tiny_text(frame);
  float x = ImGui::GetItemRectMax().x + frame.px(24);
  const float y = low.y + frame.px(5);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::array steps = {legend.low, legend.middle, legend.high};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const float level = static_cast<float>(i) * 0.5f, text = text_width(frame, tiny, steps[i]);
    if (x + frame.px(34) + text > low.x + width) return;
    const float thickness = frame.px(2) + std::round(level * frame.px(2));
    list->AddRectFilled({x, y + frame.px(8)}, {x + frame.px(26), y + frame.px(8) + thickness},
                        surprise_colour(frame.theme, level), 1.0f);
    draw_text(frame, list, {x + frame.px(34), y}, tiny, steps[i]);
    x += frame.px(34) + text + frame.px(18);
  }
}

void TwoModelsView::draw_figures(const Frame& frame, const TwoModelsResult& result, ImVec2 extent) {
  begin_card(frame, "figures", extent, kPadding);
  const float width = ImGui::GetContentRegionAvail().x;
  line(frame, tiny_text(frame), "A  " + result.a, width);
  line(frame, tiny_text(frame), "B  " + result.b, width);
  if (!result.source.empty()) line(frame, tiny_text(frame), result.source, width);
  gap(frame, 6);
  TextStyle value = small_text(frame);
  value.colour = frame.theme.text;
  for (const ModelFact& fact : result.table) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float used = std::min(text_width(frame, value, fact.value), width * 0.62f);
    draw_text(frame, ImGui::GetWindowDrawList(), at, small_text(frame), fact.label,
              width - used - frame.px(8));
    draw_text(frame, ImGui::GetWindowDrawList(), {at.x + width - used, at.y}, value, fact.value, used + 1);
    ImGui::Dummy({width, line_pixels(frame, value)});
  }
  gap(frame, 10);
  heading_line(frame, "Worst tokens", "KL, p of A to B");
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("worst", {width, ImGui::GetContentRegionAvail().y}, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  const float inner = ImGui::GetContentRegionAvail().x, height = frame.px(kWorstRow);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(result.worst.size()), height);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const std::size_t index = result.worst[static_cast<std::size_t>(i)];
      const TwoModelsToken& figures = result.figures[index - result.first_scored];
      const ComparedToken& token = result.text.tokens[index];
      ImGui::PushID(i);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
      if (ImGui::InvisibleButton("worst_token", {inner, height}, ImGuiButtonFlags_EnableNav))
        text_.show(index);
      ImGui::PopStyleVar();
      ImDrawList* list = ImGui::GetWindowDrawList();
      if (ImGui::IsItemHovered() || ImGui::IsItemFocused() || text_.shown_token() == index)
        list->AddRectFilled(at, {at.x + inner, at.y + height - frame.px(2)}, frame.theme.raised, frame.px(6));
      const std::string numbers = fixed_text(figures.kl_divergence, 2) + "   " +
                                  percent_text(std::exp(figures.a.logprob)) + " → " +
                                  percent_text(std::exp(figures.b.logprob));
      const TextStyle tiny = tiny_text(frame);
      const float used = text_width(frame, tiny, numbers);
      draw_text(frame, list, {at.x + inner - used - frame.px(6), at.y + frame.px(4)}, tiny, numbers);
      const std::string words =
          visible_token(std::string_view(result.text.text).substr(token.begin, token.end - token.begin));
      draw_text(frame, list, {at.x + frame.px(6), at.y + frame.px(3)}, value, words,
                inner - used - frame.px(24));
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
  end_card();
}

}  // namespace octavo::ui
