// Asks for the path of a text file that goes with the next message.
#pragma once

#include <string>

#include "ui/frame.h"

namespace octavo::ui {

class AttachView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  std::string path_;
  bool was_open_ = false;
};

}  // namespace octavo::ui
