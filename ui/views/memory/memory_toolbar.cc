#include "ui/views/memory/memory_toolbar.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/base/format.h"
#include "ui/desktop_actions.h"
#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/memory/tiny_pool_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kHeight = 40, kButtons = 290 + kTinyPoolButton + 7, kPageWidth = 84;
constexpr float kGap = 20, kBackToLive = 130;
constexpr float kMiddle = 210;  // the least for the memory bar, or for the name of a recording

}  // namespace

void draw_memory_bar(const Frame& frame, const MemoryBar& bar, float width) {
  if (bar.total_bytes <= 0 || width < frame.px(120)) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle style = tiny_text(frame);
  const std::string ways[] = {bar.sentence, bar.short_sentence};
  draw_text(frame, list, at, style, first_that_fits(frame, style, ways, width), width);
  const ImVec2 low{at.x, at.y + frame.px(20)};
  const float height = frame.px(6);
  list->AddRectFilled(low, {low.x + width, low.y + height}, frame.theme.free, frame.px(3));
  float x = low.x;
  const auto part = [&](std::int64_t bytes, ImU32 colour) {
    const float share = static_cast<float>(static_cast<double>(bytes) / static_cast<double>(bar.total_bytes));
    const float end = std::min(low.x + width, x + std::max(share * width, bytes > 0 ? 1.0f : 0.0f));
    list->AddRectFilled({x, low.y}, {end, low.y + height}, colour);
    x = end;
  };
  part(bar.weight_bytes, frame.theme.owner(6));
  part(bar.kv_bytes, frame.theme.accent);
  part(bar.state_bytes, frame.theme.owner(2));
  part(bar.working_bytes, frame.theme.warning);
  ImGui::Dummy({width, frame.px(28)});
  std::string help =
      "Weights (" + bytes_text(bar.weight_bytes) + "), then the KV pool (" + bytes_text(bar.kv_bytes) + ")";
  if (bar.state_bytes > 0)
    help += ", then the states of recurrent layers (" + bytes_text(bar.state_bytes) + ")";
  if (bar.working_bytes > 0) {
    help += ", then working memory (" + bytes_text(bar.working_bytes) +
            ": activations, logits and scratch of the largest step)";
  }
  tooltip(frame, help + ", of " + bytes_text(bar.total_bytes) + " of memory.");
}

void MemoryToolbar::draw(const Frame& frame, const UiState& window, float width) {
  const MemoryWorkspaceState& state = window.memory_workspace;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  constexpr std::array<const char*, 5> kLabels = {"Pools", "Requests", "Explain", "Paper", "Experts"};
  constexpr std::array<const char*, 5> kIds = {"page_pools", "page_requests", "page_tour", "page_paper",
                                               "page_experts"};
  const std::size_t num_pages = offers_experts(state) ? 5 : 4;
  const float pages = kPageWidth * static_cast<float>(num_pages);
  const auto page = static_cast<std::size_t>(state.page);
  const std::size_t wanted =
      segments(frame, "pages", std::span(kLabels).first(num_pages), std::span(kIds).first(num_pages), page,
               std::min(frame.px(pages), width));
  if (wanted != page) frame.actions.push(actions::ShowMemoryPage{static_cast<MemoryPage>(wanted)});
  // Where one row has no room for all of it, the buttons stand in a second one, a third or a fourth.
  const bool is_lesson = state.source == MemorySource::kLesson;
  const bool is_recording = is_lesson || state.source == MemorySource::kRecording;
  const bool one_row = width >= frame.px(pages + kGap + kMiddle + kButtons);
  const bool beside_pages = one_row || width >= frame.px(pages + kGap + kMiddle);
  float x = at.x + (beside_pages ? frame.px(pages + kGap) : 0);
  const float y = at.y + (beside_pages ? 0 : frame.px(kHeight));
  const float end = one_row ? at.x + width - frame.px(kButtons) : at.x + width;
  ImGui::SetCursorScreenPos({x, y + frame.px(1)});
  if (is_recording) {
    TextStyle style = small_text(frame);
    style.colour = frame.theme.warning;
    const std::string text = (is_lesson ? "Lesson " : "Recording ") + state.pool.name;
    const float rest = std::max(frame.px(20), end - x - frame.px(kBackToLive));
    draw_text(frame, ImGui::GetWindowDrawList(), {x, y + frame.px(6)}, style, text, rest);
    x += std::min(text_width(frame, style, text), rest) + frame.px(12);
    ImGui::SetCursorScreenPos({x, y + frame.px(3)});
    if (chip(frame, "close_recording", "Back to live")) frame.actions.push(actions::CloseRecording{});
    tooltip(frame, is_lesson ? "Close the lesson (Esc)" : "Close the recording (Esc)");
  } else if (!window.model.is_remote) {
    draw_memory_bar(frame, state.bar, std::min(end - x - frame.px(16), frame.px(520)));
  }
  const ImVec2 buttons = one_row ? ImVec2{end, at.y} : ImVec2{at.x, y + frame.px(kHeight)};
  ImGui::SetCursorScreenPos(buttons);
  draw_tiny_pool_button(frame, window);
  ImVec2 files{buttons.x + frame.px(kTinyPoolButton + 7), buttons.y};
  if (width < frame.px(kButtons)) files = {at.x, buttons.y + frame.px(kHeight)};
  ImGui::SetCursorScreenPos(files);
  draw_files(frame, state);
  ImGui::SetCursorScreenPos({at.x, files.y + frame.px(kHeight)});
  ImGui::Dummy({width, 1});
}

void MemoryToolbar::draw_files(const Frame& frame, const MemoryWorkspaceState& state) {
  const bool is_recording = state.recording.is_recording;
  const ButtonOptions record{
      .width = 92,
      .height = 30,
      .enabled = is_recording || state.source == MemorySource::kLive,
      .help = is_recording
                  ? "Stop recording (R)"
                  : "Record memory events to a file (R). It includes chat titles but no other text."};
  if (button(frame, "record", is_recording ? "Stop" : "Record", record)) {
    if (is_recording) {
      frame.actions.push(actions::StopRecording{});
    } else {
      frame.actions.push(actions::StartRecording{});
    }
  }
  beside(frame, 7);
  if (button(frame, "open_recording", "Open",
             {.width = 92, .height = 30, .help = "Open a recording or a lesson"}))
    frame.actions.push(actions::AskForFile{actions::FileWish::kOpenRecording});
  beside(frame, 7);
  if (button(frame, "export", "Export", {.width = 92, .height = 30, .help = "Export what is shown"}))
    ImGui::OpenPopup("exports");
  // Below its button, which would else lie under it with its neighbours.
  const ImVec2 below{ImGui::GetItemRectMax().x, ImGui::GetItemRectMax().y + frame.px(4)};
  ImGui::SetNextWindowPos(below, ImGuiCond_Appearing, {1, 0});
  draw_export_popup(frame, state);
}

void MemoryToolbar::draw_export_popup(const Frame& frame, const MemoryWorkspaceState& state) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(14), frame.px(12)});
  if (ImGui::BeginPopup("exports")) {
    const auto offer = [&](const char* id, const char* text, actions::ExportFormat format) {
      if (!button(frame, id, text,
                  {.kind = ButtonKind::kPlain, .width = 240, .height = 30, .align_left = true}))
        return;
      frame.actions.push(actions::ExportMemory{format});
      ImGui::CloseCurrentPopup();
    };
    const auto offer_requests = [&](const char* id, const char* text, actions::ExportFormat format) {
      if (!button(frame, id, text,
                  {.kind = ButtonKind::kPlain, .width = 240, .height = 30, .align_left = true}))
        return;
      frame.actions.push(actions::ExportRequests{format});
      ImGui::CloseCurrentPopup();
    };
    if (state.slots) offer("lesson", "This chapter as a lesson…", actions::ExportFormat::kLesson);
    if (state.page == MemoryPage::kRequests) {
      offer_requests("requests_json", "Requests as JSON…", actions::ExportFormat::kJson);
      offer_requests("requests_csv", "Requests as CSV…", actions::ExportFormat::kCsv);
    }
    offer("json", "Blocks and tables as JSON…", actions::ExportFormat::kJson);
    offer("csv", "Steps as CSV…", actions::ExportFormat::kCsv);
    offer("png", "Screenshot of the window (PNG)", actions::ExportFormat::kPng);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace octavo::ui
