// What the parts of the Chat workspace want done outside of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/window/chat/chat_transfer.h"
#include "app/window/chat/file_reader.h"

namespace octavo::app {

struct ChatEffects {
  std::vector<ChatExport> exports = {};
  std::optional<std::string> import_path = {};
  std::vector<FilesToRead> files_to_read = {};
  bool settings_changed = false;
};

}  // namespace octavo::app
