#include "ui/views/remote_model_view.h"

#include <algorithm>

#include "engine/base/format.h"
#include "ui/model_actions.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 560, kModelHeight = 38;
constexpr std::size_t kMostModelsAtOnce = 7;

std::string model_note(const RemoteModelRow& model) {
  return model.context_len > 0 ? with_thousands(model.context_len) + " tokens"
                               : std::string("context unknown");
}

}  // namespace

void RemoteModelView::draw(const Frame& frame, const RemoteDialogState& dialog) {
  if (dialog.open && !was_open_) address_ = dialog.address;
  if (!dialog.open) key_.clear();
  was_open_ = dialog.open;
  const DialogOptions options{.id = "remote_models", .title = "Remote model", .width = kWidth};
  if (!begin_dialog(frame, options, dialog.open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  paragraph(
      frame, small_text(frame),
      "Any server that speaks OpenAI's protocol: vLLM, llama.cpp, Ollama or another Octavo. What you ask "
      "is sent there.",
      width);
  gap(frame, 12);
  draw_fields(frame, dialog, width);
  gap(frame, 14);
  draw_models(frame, dialog, width);
  if (end_dialog(frame, dialog.open)) frame.actions.push(actions::CloseRemoteDialog{});
}

void RemoteModelView::draw_fields(const Frame& frame, const RemoteDialogState& dialog, float width) {
  if (ImGui::IsWindowAppearing()) take_keyboard("##remote_address");
  line(frame, small_text(frame), "Address");
  gap(frame, 4);
  bool asks = text_field(frame, "##remote_address", address_, "http://127.0.0.1:8000/v1", width,
                         ImGuiInputTextFlags_EnterReturnsTrue);
  gap(frame, 10);
  line(frame, small_text(frame), "Key");
  gap(frame, 4);
  asks |= text_field(frame, "##remote_key", key_, dialog.has_kept_key ? "The kept key" : "None", width,
                     ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_Password);
  if (!dialog.key_note.empty()) {
    gap(frame, 6);
    paragraph(frame, tiny_text(frame), dialog.key_note, width);
  }
  gap(frame, 12);
  const bool can_ask = !dialog.asking && !is_blank(address_);
  asks |= button(frame, "ask_for_models", dialog.asking ? "Asking…" : "Show its models",
                 {.kind = ButtonKind::kPrimary, .enabled = can_ask});
  if (asks && can_ask) frame.actions.push(actions::AskForRemoteModels{address_, key_});
  if (dialog.has_kept_key) {
    beside(frame, 8);
    if (button(frame, "forget_key", "Forget the key", {.enabled = !dialog.asking}))
      frame.actions.push(actions::ForgetRemoteKey{dialog.address});
  }
}

void RemoteModelView::draw_models(const Frame& frame, const RemoteDialogState& dialog, float width) {
  if (!dialog.problem.empty())
    return paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, dialog.problem, width);
  if (dialog.models.empty()) return;
  const auto num_shown = static_cast<float>(std::min(dialog.models.size(), kMostModelsAtOnce));
  ImGui::BeginChild("models", {width, frame.px(kModelHeight * num_shown)}, ImGuiChildFlags_NavFlattened);
  const float inner = ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < dialog.models.size(); ++i) {
    const RemoteModelRow& model = dialog.models[i];
    ImGui::PushID(static_cast<int>(i));
    const ImVec2 low = ImGui::GetCursorScreenPos();
    const ButtonOptions use{.width = 64};
    const float right = low.x + inner - frame.px(64);
    const TextStyle tiny = tiny_text(frame);
    const std::string note = model_note(model);
    const float note_width = text_width(frame, tiny, note);
    TextStyle name = small_text(frame);
    name.colour = frame.theme.text;
    ImDrawList* const list = ImGui::GetWindowDrawList();
    const float note_left = right - frame.px(14) - note_width;
    draw_text(frame, list, {low.x, low.y + frame.px(7)}, name, model.id, note_left - low.x - frame.px(10));
    draw_text(frame, list, {note_left, low.y + frame.px(8)}, tiny, note);
    ImGui::SetCursorScreenPos({right, low.y});
    if (button(frame, "use_model", "Use", use))
      frame.actions.push(actions::UseRemoteModel{dialog.address, model.id});
    tooltip(frame, model.id);
    gap(frame, 6);
    ImGui::PopID();
  }
  ImGui::EndChild();
}

}  // namespace octavo::ui
