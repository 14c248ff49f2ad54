#include "ui/views/empty_chat.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

struct Example {
  const char* id;
  const char* heading;
  const char* question;
};
constexpr Example kExamples[] = {
    {"example_explain", "Explain something", "Why is the sky blue, in a few words?"},
    {"example_write", "Write a few lines", "Write a thank-you note to a neighbour."},
    {"example_ideas", "Find ideas", "Give me five names for a grey cat."},
    {"example_code", "Understand code", "What is a list in Python good for?"},
};
constexpr float kWidth = 640, kCardHeight = 76, kGap = 12, kNarrowestTwo = 460;
constexpr float kDemonstrationRow = 32;

// True when pressed.
bool example_card(const Frame& frame, const Example& example, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos(), high{low.x + extent.x, low.y + extent.y};
  const bool pressed = ImGui::InvisibleButton(example.id, extent, ImGuiButtonFlags_EnableNav);
  const bool is_lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, is_lit ? frame.theme.raised : frame.theme.panel,
                      frame.px(size::kRadiusCard));
  list->AddRect(low, high, frame.theme.line, frame.px(size::kRadiusCard));
  TextStyle heading = tiny_text(frame);
  TextStyle question = small_text(frame);
  question.colour = frame.theme.text;
  const float padding = frame.px(16), room = extent.x - 2 * padding;
  draw_text(frame, list, {low.x + padding, low.y + frame.px(14)}, heading, example.heading, room);
  draw_text(frame, list, {low.x + padding, low.y + frame.px(36)}, question, example.question, room);
  return pressed;
}

void draw_middle(const Frame& frame, const TextStyle& style, std::string_view text, float middle, float top,
                 float room) {
  const float width = std::min(text_width(frame, style, text), room);
  draw_text(frame, ImGui::GetWindowDrawList(), {std::floor(middle - width * 0.5f), top}, style, text, room);
}

// That the model is small, and the way to a better one: the best for this computer by one click, others by
// another. A window of its own: the transcript's lies below, and would take the mouse.
void draw_demonstration(const Frame& frame, const CatalogueState& catalogue, float middle, float top,
                        float room) {
  const bool can_get =
      catalogue.better && catalogue.download.phase == DownloadPhase::kNone && !catalogue.is_offline;
  const bool is_here = can_get && !catalogue.better->here.empty();
  const std::string get_text =
      !can_get  ? std::string()
      : is_here ? "Open " + catalogue.better->name
                : "Get " + catalogue.better->name + " · " + bytes_text(catalogue.better->bytes);
  const std::string get_help =
      "A better model for this computer, from " + catalogue.host + "; chats go on while it comes";
  const ButtonOptions get{.kind = ButtonKind::kPrimary, .height = 28, .help = get_help};
  const ButtonOptions better{.height = 28, .help = "Choose another model (Ctrl+M)"};
  const float get_room = can_get ? button_width(frame, get_text, get) + frame.px(8) : 0;
  const float width = get_room + button_width(frame, "A better model…", better);
  draw_middle(frame, small_text(frame), "It is a small demonstration: quick, and often wrong.", middle, top,
              room);
  ImGui::SetCursorScreenPos({std::floor(middle - width * 0.5f), top + frame.px(kDemonstrationRow)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild("demonstration", {width + 1, frame.px(30)}, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  if (can_get) {
    if (button(frame, "get_better", get_text, get)) {
      const CatalogueRow& row = *catalogue.better;
      frame.actions.push(actions::GetModel{row.repository, row.file, row.name});
    }
    beside(frame, 8);
  }
  if (button(frame, "better_model", "A better model…", better))
    frame.actions.push(actions::OpenModelPicker{});
  ImGui::EndChild();
}

std::string who_answers(const ModelState& model) {
  if (model.phase != ModelPhase::kReady) return "There is no model yet to answer.";
  if (model.is_remote) return model.name + " runs on another server. What you write is sent there.";
  return model.name + " runs on this computer. Nothing leaves it.";
}

}  // namespace

void draw_empty_chat(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                     ImVec2 extent) {
  const TextStyle heading{.face = FontFace::kSemiBold, .em = 24, .colour = frame.theme.text};
  const float width = std::min(frame.px(kWidth), extent.x - frame.px(48));
  const bool two = width >= frame.px(kNarrowestTwo);
  const float columns = two ? 2.0f : 1.0f;
  const float rows = static_cast<float>(std::size(kExamples)) / columns;
  const float cards = rows * frame.px(kCardHeight) + (rows - 1) * frame.px(kGap);
  const bool has_model = state.model.phase == ModelPhase::kReady;
  const float words = frame.px(state.model.is_demonstration ? 140 + kDemonstrationRow : 104);
  const bool has_room = has_model && extent.y >= words + cards + frame.px(32);
  const float height = words + (has_room ? cards : 0);
  const float middle = low.x + extent.x * 0.5f;
  const float top = std::floor(low.y + std::max(frame.px(16), (extent.y - height) * 0.42f));
  draw_middle(frame, heading, "What would you like to talk about?", middle, top, width);
  draw_middle(frame, small_text(frame), who_answers(state.model), middle, top + frame.px(44), width);
  if (has_model && state.model.is_demonstration && extent.y >= words + frame.px(16))
    draw_demonstration(frame, state.catalogue, middle, top + frame.px(72), width);
  if (!has_room) return;
  const ImVec2 card{std::floor((width - (columns - 1) * frame.px(kGap)) / columns), frame.px(kCardHeight)};
  const float left = std::floor(middle - width * 0.5f);
  float x = left, y = top + words;
  // A window of its own: the transcript's lies below, and would take the mouse.
  ImGui::SetCursorScreenPos({x, y});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild("examples", {width, cards}, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  for (const Example& example : kExamples) {
    ImGui::SetCursorScreenPos({x, y});
    if (example_card(frame, example, card))
      frame.actions.push(actions::SendMessage{chat.id, example.question});
    x += card.x + frame.px(kGap);
    if (two && x < left + width) continue;
    x = left;
    y += card.y + frame.px(kGap);
  }
  ImGui::EndChild();
}

}  // namespace octavo::ui
