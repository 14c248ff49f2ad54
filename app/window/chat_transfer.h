// Reads and writes files of chats on a thread of its own: an export of years is hundreds of megabytes, which
// no frame must wait for.
//
// Thread: calls from the window's; `wake_up` is called from the transferring one.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "app/conversation/conversation.h"
#include "app/window/controller.h"

namespace octavo::app {

struct TransferResult {
  std::vector<Conversation> imported;
  bool failed = false;
  std::string sentence;  // what was done, or why it was not
};

class ChatTransfer {
 public:
  // Exports without a path go into `folder`, under a name that is not taken there.
  ChatTransfer(std::filesystem::path folder, std::function<void()> wake_up);
  // Finishes what was begun.
  ~ChatTransfer();
  ChatTransfer(const ChatTransfer&) = delete;
  ChatTransfer& operator=(const ChatTransfer&) = delete;

  void export_chats(ChatExport chats) { give(std::move(chats)); }
  void import_chats(std::string path) { give(std::move(path)); }
  // Since the last call.
  std::vector<TransferResult> take_results();

 private:
  using Job = std::variant<ChatExport, std::string>;

  void give(Job job);
  void run();
  TransferResult perform(const ChatExport& chats) const;
  TransferResult perform(const std::string& path) const;

  const std::filesystem::path folder_;
  const std::function<void()> wake_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;                 // guarded by mutex_
  std::vector<TransferResult> results_;  // guarded by mutex_
  bool stopping_ = false;                // guarded by mutex_
  std::thread thread_;
};

// ~/Downloads when it exists, else the home folder.
std::filesystem::path default_export_folder();

}  // namespace octavo::app
