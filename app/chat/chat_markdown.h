// A chat as Markdown for people: its title, its system prompt, and the active path, each message
// under the name of who wrote it, with its time. Branches that are not active are left out; JSON keeps
// them. A line says where the context of the newest request began.
#pragma once

#include <string>

#include "app/chat/chat.h"

namespace octavo::app {

std::string chat_to_markdown(const Chat& chat);

}  // namespace octavo::app
