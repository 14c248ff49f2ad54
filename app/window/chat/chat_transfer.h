// Reads and writes files of chats on a thread of its own: an export of years is hundreds of megabytes, which
// no frame must wait for.
//
// Thread: calls from the window's; `wake_up` is called from the transferring one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/chat/chat.h"
#include "app/window/job_thread.h"
#include "ui/chat_actions.h"

namespace octavo::app {

// Chats to be written to a file.
struct ChatExport {
  std::vector<Chat> chats;
  ui::actions::ChatFormat format = ui::actions::ChatFormat::kJson;
  std::string path;  // a file that is there already is replaced
};

struct TransferResult {
  std::vector<Chat> imported = {};
  bool failed = false;
  std::string sentence = {};  // what was done, or why it was not
  std::string written = {};   // the file of an export
};

class ChatTransfer {
 public:
  explicit ChatTransfer(std::function<void()> wake_up);
  // Finishes what was begun and what waits.
  ~ChatTransfer() = default;

  void export_chats(ChatExport chats) { jobs_.give(std::move(chats)); }
  void import_chats(std::string path) { jobs_.give(std::move(path)); }
  // Since the last call.
  std::vector<TransferResult> take_results() { return jobs_.take_outcomes(); }

 private:
  using Job = std::variant<ChatExport, std::string>;

  JobThread<Job, TransferResult> jobs_;
};

// ~/Downloads when it exists, else the home folder.
std::filesystem::path default_export_folder();

}  // namespace octavo::app
