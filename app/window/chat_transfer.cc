#include "app/window/chat_transfer.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "app/conversation/conversation_file.h"
#include "app/conversation/conversation_import.h"
#include "app/conversation/conversation_json.h"
#include "app/conversation/conversation_markdown.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

// Beyond this the text alone would take more memory than a chat program should.
constexpr std::uintmax_t kLargestImport = std::uintmax_t{1} << 30;

std::string count_of_chats(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " chat" : " chats");
}

std::string content_of(const ChatExport& chats) {
  if (chats.format == ui::actions::ChatFormat::kMarkdown) {
    std::string text;
    for (const Conversation& conversation : chats.conversations)
      text += conversation_to_markdown(conversation);
    return text;
  }
  if (chats.conversations.size() == 1) return conversation_to_json(chats.conversations.front()) + "\n";
  return conversations_to_json(chats.conversations);
}

fs::path unused_name(const fs::path& folder, const std::string& file_name) {
  const fs::path wanted = folder / file_name;
  fs::path path = wanted;
  std::error_code ignored;
  for (int number = 2; fs::exists(path, ignored); ++number)
    path = folder / (wanted.stem().string() + " " + std::to_string(number) + wanted.extension().string());
  return path;
}

}  // namespace

ChatTransfer::ChatTransfer(fs::path folder, std::function<void()> wake_up)
    : folder_(std::move(folder)), wake_up_(std::move(wake_up)), thread_([this] { run(); }) {}

ChatTransfer::~ChatTransfer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ChatTransfer::give(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

std::vector<TransferResult> ChatTransfer::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void ChatTransfer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    TransferResult result = std::visit([this](const auto& j) { return perform(j); }, job);
    lock.lock();
    results_.push_back(std::move(result));
    lock.unlock();
    wake_up_();
    lock.lock();
  }
}

TransferResult ChatTransfer::perform(const ChatExport& chats) const {
  const fs::path path = chats.path.empty() ? unused_name(folder_, chats.file_name) : fs::path(chats.path);
  const auto written = write_private_file(path, content_of(chats));
  if (!written) return {{}, true, written.error().message};
  return {
      {},
      false,
      count_of_chats(chats.conversations.size()) + " written to " + escape_for_message(path.string()) + "."};
}

TransferResult ChatTransfer::perform(const std::string& path) const {
  const std::string name = escape_for_message(path);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return {{}, true, name + " cannot be read: " + error.message()};
  if (size > kLargestImport) return {{}, true, name + " is larger than 1 GiB: import it in parts"};
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto conversations = import_conversations(text, fs::path(path).filename().string());
  if (!conversations) return {{}, true, conversations.error().message};
  const std::string sentence = count_of_chats(conversations->size()) + " imported from " + name + ".";
  return {*std::move(conversations), false, sentence};
}

fs::path default_export_folder() {
  const char* const home = std::getenv("HOME");
  const fs::path folder = home != nullptr && *home != '\0' ? fs::path(home) : fs::path(".");
  std::error_code ignored;
  return fs::is_directory(folder / "Downloads", ignored) ? folder / "Downloads" : folder;
}

}  // namespace octavo::app
