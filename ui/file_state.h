// The file browser, as plain values: a folder, what a person looks for in it, and places to go to. There is
// one for everything that asks for a file: models, attachments, imports, exports, recordings.
//
// A `path` is the file system's own bytes and goes back with actions as it is; what is shown beside it is
// valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo::ui {

struct FolderEntry {
  std::string path;
  std::string name;
  bool is_folder = false;
  std::int64_t file_bytes = 0;
};

// A folder that is one click away.
struct FilePlace {
  std::string path;
  std::string name;
  bool is_recent = false;  // a file was chosen there before; else one of the person's folders
};

struct FileBrowser {
  bool open = false;
  bool saves = false;        // the file is written: its name is typed, and replacing one is asked
  std::string title = {};    // "Attach a text file"
  std::string button = {};   // "Attach"
  std::string note = {};     // one sentence below the title; may be empty
  std::string nothing = {};  // what is said when nothing fits
  std::string text = {};     // a path, as typed or as chosen; the field begins with it at each `serial`
  std::uint64_t serial = 0;
  std::string folder = {};                // that is listed
  std::vector<FolderEntry> entries = {};  // folders first, each part by name
  std::vector<FilePlace> places = {};     // the person's folders, then recent ones
  bool reading = false;
  std::string problem = {};  // one sentence
  std::string overwrites =
      {};  // name of the file that saving would replace, which is asked about; else empty
};

}  // namespace octavo::ui
