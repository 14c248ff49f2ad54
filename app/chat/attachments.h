// Text files that go with a message, as part of its text: each a fenced block behind what was written,
//
//   What does this mean?
//
//   ```file: notes.txt
//   ...
//   ```
//
// so that a model reads them, and every store, export and search keeps them. The fence is longer than any run
// of backticks inside, which makes the way back exact.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::app {

struct AttachedFile {
  std::string name;  // one line
  std::string text;  // valid UTF-8
};

// `text` with the files behind it. A message of files alone begins with a line that names them, or with
// nothing where `text` is to stay as it was typed.
enum class BlankText { kNameFiles, kKeep };
std::string with_attachments(std::string_view text, const std::vector<AttachedFile>& files,
                             BlankText blank = BlankText::kNameFiles);

struct SplitMessage {
  std::string_view text;  // what was written
  struct File {
    std::string_view name, text;
  };
  std::vector<File> files;
};

// Views into `content`. What does not end in such blocks has no files.
SplitMessage split_attachments(std::string_view content);

// Of the parts as they were before `with_attachments`.
std::vector<AttachedFile> attached_files(const SplitMessage& message);

}  // namespace octavo::app
