// What a person asked for around the chat, as values: files for the next message, and the panels of
// desktop_state.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ui/desktop_state.h"

namespace octavo::ui::actions {

struct ShowAttach {
  bool open;
};
struct AttachFile {  // as text, whatever its name says
  ChatId chat_id;
  std::string path;
};
struct RemoveAttachment {
  ChatId chat_id;
  std::uint64_t attachment_id;
};
// Files that were dropped on the window or named on the command line: what each of them is decides.
struct OpenFiles {
  std::vector<std::string> paths;
};
struct ShowPresets {
  bool open;
};
struct ShowTree {
  bool open;
};

using DesktopAction =
    std::variant<ShowAttach, AttachFile, RemoveAttachment, OpenFiles, ShowPresets, ShowTree>;

struct Desktop {
  DesktopAction action;
};

}  // namespace octavo::ui::actions
