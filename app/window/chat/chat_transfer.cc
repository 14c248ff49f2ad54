#include "app/window/chat/chat_transfer.h"

#include <optional>
#include <system_error>
#include <utility>

#include "app/chat/chat_file.h"
#include "app/chat/chat_import.h"
#include "app/chat/chat_json.h"
#include "app/chat/chat_markdown.h"
#include "app/window/chat/file_reader.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

std::string count_of_chats(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " chat" : " chats");
}

std::string content_of(const ChatExport& chats) {
  if (chats.format == ui::actions::ChatFormat::kMarkdown) {
    std::string text;
    for (const Chat& chat : chats.chats) text += chat_to_markdown(chat);
    return text;
  }
  if (chats.chats.size() == 1) return chat_to_json(chats.chats.front()) + "\n";
  return chats_to_json(chats.chats);
}

TransferResult write_chats(const ChatExport& chats) {
  const auto written = write_private_file(chats.path, content_of(chats));
  if (!written) return {.failed = true, .sentence = written.error().message};
  return {
      .sentence = count_of_chats(chats.chats.size()) + " written to " + escape_for_message(chats.path) + ".",
      .written = chats.path};
}

TransferResult import_from(const std::string& path) {
  ReadFile file = read_file(path, ReadAs::kChats);
  if (file.kind != FileKind::kChats) return {.failed = true, .sentence = std::move(file.problem)};
  const std::string sentence = count_of_chats(file.chats.size()) + " imported from " +
                               escape_for_message(file.path) + "." + (file.left_out.empty() ? "" : " ") +
                               file.left_out;
  return {.imported = std::move(file.chats), .sentence = sentence};
}

}  // namespace

ChatTransfer::ChatTransfer(std::function<void()> wake_up)
    : jobs_(
          [](const Job& job) -> std::optional<TransferResult> {
            if (const auto* chats = std::get_if<ChatExport>(&job)) return write_chats(*chats);
            return import_from(std::get<std::string>(job));
          },
          std::move(wake_up), JobsLeft::kDone) {}

fs::path default_export_folder() {
  const fs::path folder = environment_path("HOME").value_or(".");
  std::error_code ignored;
  return fs::is_directory(folder / "Downloads", ignored) ? folder / "Downloads" : folder;
}

}  // namespace octavo::app
