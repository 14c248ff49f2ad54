// Looks at files that were dropped on the window, named on the command line or attached, on a thread of its
// own: what each of them is, and the text or the chats that it holds.
//
// Thread: calls from the window's; `wake_up` is called from the reading one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat/chat.h"
#include "app/window/job_thread.h"

namespace octavo::app {

// A longer text is no attachment: it would fill any context many times over.
inline constexpr std::uintmax_t kLargestAttachment = std::uintmax_t{1} << 20;

enum class FileKind { kModel, kRecording, kChats, kText, kUnusable };

struct ReadFile {
  FileKind kind = FileKind::kUnusable;
  std::string path = {};
  std::string name = {};         // without folders, one line of valid UTF-8
  std::string text = {};         // of a text
  std::vector<Chat> chats = {};  // of chats, this or another program's
  std::string left_out = {};     // what of them was left out, one sentence; empty when nothing was
  std::string problem = {};      // of what cannot be used: one sentence
};

// What is wanted: whatever the file is; a text, or the chats of this or another program, and nothing else.
// What is wanted as one kind may be a path as people type it, with blanks around it and "~".
enum class ReadAs { kAny, kText, kChats };

// Whom the texts are for: the chat `chat_id`, as attachments, or the batch, as prompts.
enum class FilesFor { kChat, kBatch };

struct FilesToRead {
  FilesFor reader = FilesFor::kChat;
  ChatId chat_id = {};
  ReadAs as = ReadAs::kAny;
  std::vector<std::string> paths;
};

struct FilesRead {
  FilesFor reader = FilesFor::kChat;
  ChatId chat_id = {};
  std::vector<ReadFile> files;  // as many as paths, in their order
};

// What the file is, in the calling thread.
ReadFile read_file(const std::string& path, ReadAs as);

class FileReader {
 public:
  explicit FileReader(std::function<void()> wake_up);
  // Finishes the file it reads, and leaves the others.
  ~FileReader() = default;

  void read(FilesToRead files) { jobs_.give(std::move(files)); }
  // Since the last call.
  std::vector<FilesRead> take_results() { return jobs_.take_outcomes(); }

 private:
  FilesRead read_all(const FilesToRead& files) const;

  JobThread<FilesToRead, FilesRead> jobs_;
};

}  // namespace octavo::app
