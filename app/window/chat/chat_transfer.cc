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

fs::path unused_name(const fs::path& folder, const std::string& file_name) {
  const fs::path wanted = folder / file_name;
  fs::path path = wanted;
  std::error_code ignored;
  for (int number = 2; fs::exists(path, ignored); ++number)
    path = folder / (wanted.stem().string() + " " + std::to_string(number) + wanted.extension().string());
  return path;
}

TransferResult export_to(const fs::path& folder, const ChatExport& chats) {
  const fs::path path = chats.path.empty() ? unused_name(folder, chats.file_name) : fs::path(chats.path);
  const auto written = write_private_file(path, content_of(chats));
  if (!written) return {{}, true, written.error().message};
  return {{},
          false,
          count_of_chats(chats.chats.size()) + " written to " + escape_for_message(path.string()) + "."};
}

TransferResult import_from(const std::string& path) {
  ReadFile file = read_file(path, ReadAs::kChats);
  if (file.kind != FileKind::kChats) return {{}, true, std::move(file.problem)};
  const std::string sentence =
      count_of_chats(file.chats.size()) + " imported from " + escape_for_message(file.path) + ".";
  return {std::move(file.chats), false, sentence};
}

}  // namespace

ChatTransfer::ChatTransfer(fs::path folder, std::function<void()> wake_up)
    : jobs_(
          [folder = std::move(folder)](const Job& job) -> std::optional<TransferResult> {
            if (const auto* chats = std::get_if<ChatExport>(&job)) return export_to(folder, *chats);
            return import_from(std::get<std::string>(job));
          },
          std::move(wake_up), JobsLeft::kDone) {}

fs::path default_export_folder() {
  const fs::path folder = environment_path("HOME").value_or(".");
  std::error_code ignored;
  return fs::is_directory(folder / "Downloads", ignored) ? folder / "Downloads" : folder;
}

}  // namespace octavo::app
