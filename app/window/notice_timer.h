// Lets notices leave by themselves once there was time to read them. Errors stay.
//
// Plain arithmetic on times that are given; tests drive it without a window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ui/desktop_state.h"

namespace octavo::app {

class NoticeTimer {
 public:
  // After everything that may have changed the banner. True when its time was over: it is gone.
  bool update(std::optional<ui::Banner>& banner, std::int64_t now_us);

  // When the notice leaves; nullopt: there is none.
  std::optional<std::int64_t> due_us() const { return due_us_; }

 private:
  std::string text_;  // of the notice whose time runs
  std::optional<std::int64_t> due_us_;
};

}  // namespace octavo::app
