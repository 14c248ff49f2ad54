// The dialog in which a server is asked for its models, and one of them is taken. Stands in front of the
// picker.
//
// Keeps what is typed: the key is here until the dialog closes, and nowhere else in the window.
#pragma once

#include <string>

#include "ui/frame.h"
#include "ui/remote_state.h"

namespace octavo::ui {

class RemoteModelView {
 public:
  void draw(const Frame& frame, const RemoteDialogState& dialog);

 private:
  void draw_fields(const Frame& frame, const RemoteDialogState& dialog, float width);
  void draw_models(const Frame& frame, const RemoteDialogState& dialog, float width);

  bool was_open_ = false;
  std::string address_, key_;
};

}  // namespace octavo::ui
