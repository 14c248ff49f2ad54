// Decides when a frame is drawn: after input, when something that is drawn changed, and while a caret blinks;
// otherwise never, so that an idle window costs nothing.
//
// Plain arithmetic on times that are given; tests drive it without a window.
#pragma once

#include <cstdint>

namespace octavo::app {

class FramePacing {
 public:
  void on_input(std::int64_t now_us);
  // Something that is drawn changed by itself: an answer grew, a model loaded further.
  void on_change(std::int64_t now_us);

  bool frame_due(std::int64_t now_us) const;
  // How long to sleep at most before asking again; below 0: until something happens.
  double seconds_to_wait(std::int64_t now_us) const;
  // `caret`: a text field has the keyboard.
  void on_frame(std::int64_t now_us, bool caret);

  // The caret stands still once nobody has typed for a while.
  bool caret_blinks(std::int64_t now_us) const;

 private:
  std::int64_t next_frame_us() const;
  std::int64_t next_settling_us() const;

  bool changed_ = false;
  bool caret_ = false;
  int frames_left_ = 3;  // the first frames lay things out
  std::int64_t last_input_us_ = 0;
  std::int64_t last_frame_us_ = -1'000'000'000;
};

}  // namespace octavo::app
