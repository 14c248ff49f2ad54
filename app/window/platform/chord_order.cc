#include "app/window/platform/chord_order.h"

namespace octavo::app {
namespace {

bool changes_modifier(const ImGuiInputEvent& event) {
  return event.Type == ImGuiInputEventType_Key && (event.Key.Key & ImGuiMod_Mask_) != 0;
}

// The modifiers' own keys stand beside the modifiers.
bool needs_modifiers(const ImGuiInputEvent& event) {
  if (event.Type == ImGuiInputEventType_MouseWheel) return true;
  if (event.Type != ImGuiInputEventType_Key || !event.Key.Down || changes_modifier(event)) return false;
  return event.Key.Key < ImGuiKey_LeftCtrl || event.Key.Key > ImGuiKey_RightSuper;
}

}  // namespace

ImVector<ImGuiInputEvent> take_later_input(ImVector<ImGuiInputEvent>& queue) {
  ImVector<ImGuiInputEvent> later;
  bool has_key = false;
  int end = 0;
  for (; end < queue.Size; ++end) {
    if (has_key && changes_modifier(queue[end])) break;
    has_key = has_key || needs_modifiers(queue[end]);
  }
  for (int i = end; i < queue.Size; ++i) later.push_back(queue[i]);
  queue.resize(end);
  return later;
}

}  // namespace octavo::app
