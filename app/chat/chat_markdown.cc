#include "app/chat/chat_markdown.h"

#include <cstddef>
#include <vector>

#include "engine/base/calendar.h"

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

// Between what has left the context and what is still in it.
void append_cut(std::string& text, const Chat& chat, std::size_t num_left) {
  text += "\n---\n\n> " + left_context_text(static_cast<std::int64_t>(num_left)) + ".\n";
  const std::string& summary = chat.summary_after(chat.find(chat.context_begin)->parent);
  if (!summary.empty()) append_section(text, "Summary of them", summary);
}

}  // namespace

std::string chat_to_markdown(const Chat& chat) {
  std::string text = "# " + chat.display_title(200) + "\n";
  if (!chat.system_prompt.empty()) append_section(text, "System", chat.system_prompt);
  const std::vector<MessageId> path = chat.active_path();
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Message& message = *chat.find(path[i]);
    if (i > 0 && message.id == chat.context_begin) append_cut(text, chat, i);
    append_section(text, heading_of(message), message.content);
    if (message.created_ms > 0) text += "\n*" + date_time_text(message.created_ms) + "*\n";
    if (!message.error.empty()) text += "\n> Failed: " + message.error + "\n";
    if (message.interrupted) text += "\n> This answer was interrupted.\n";
  }
  return text;
}

}  // namespace octavo::app
