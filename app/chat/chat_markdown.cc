#include "app/chat/chat_markdown.h"

namespace octavo::app {
namespace {

std::string heading_of(const Message& message) {
  switch (message.role) {
    case Role::kUser: return "You";
    case Role::kAssistant: return message.model.empty() ? "Assistant" : "Assistant (" + message.model + ")";
    case Role::kSystem: return "System";
    case Role::kTool: return "Tool";
  }
  return {};
}

void append_section(std::string& text, const std::string& heading, const std::string& body) {
  text += "\n## " + heading + "\n\n" + body;
  if (!body.ends_with('\n')) text += '\n';
}

}  // namespace

std::string chat_to_markdown(const Chat& chat) {
  std::string text = "# " + chat.display_title(200) + "\n";
  if (!chat.system_prompt.empty()) append_section(text, "System", chat.system_prompt);
  for (const MessageId id : chat.active_path()) {
    const Message& message = *chat.find(id);
    append_section(text, heading_of(message), message.content);
    if (!message.error.empty()) text += "\n> Failed: " + message.error + "\n";
    if (message.interrupted) text += "\n> This answer was interrupted.\n";
  }
  return text;
}

}  // namespace octavo::app
