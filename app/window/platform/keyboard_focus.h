// Keeps the keyboard's focus of Dear ImGui out of two dead ends:
//   - Alt, pressed and let go, moves the focus to the menu bar of the outermost window. There is none, and a
//     chord with Alt that comes within one frame counts as Alt alone.
//   - Tab looks for what follows the focused control. Once that is gone (another page, a button that became
//     another one), nothing ever follows it.
//
// UI thread.
#pragma once

namespace octavo::app {

class KeyboardFocus {
 public:
  void after_new_frame();
  // Behind the last control of the frame.
  void end_frame();

 private:
  int frames_lost_ = 0;  // since the focused control was last drawn
};

}  // namespace octavo::app
