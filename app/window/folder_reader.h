// Lists folders for the file browser on a thread of its own: a disk may be slow, or far away. Of several
// listings only the newest is made.
//
// Thread: calls from the window's; `wake_up` is called from the reading one.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/window/job_thread.h"
#include "ui/file_state.h"

namespace octavo::app {

struct ListFolder {
  std::uint64_t serial = 0;
  std::string text = {};                     // a path, whole or in part; "~" is the person's folder
  std::vector<std::string> extensions = {};  // of the files that are listed, with their dots; empty: of any
  std::vector<std::string> recent = {};      // folders; those that are there become places
  bool saves = false;                        // what is typed last is a name: it leaves nothing out
  bool newest_first = false;                 // else by name
  bool chooses = false;                      // `text` is what the person wants
};

// What a text that was chosen is.
enum class ChosenPath { kNothing, kFolder, kFile, kNewFile };

struct FolderListed {
  std::uint64_t serial = 0;
  std::string folder = {};
  std::vector<ui::FolderEntry> entries = {};  // folders first
  std::vector<ui::FilePlace> places = {};
  std::string problem = {};  // one sentence
  bool chooses = false;
  ChosenPath chosen = ChosenPath::kNothing;
  std::string path = {};  // that was chosen; absolute, with the extension that it gets
};

// In the calling thread.
FolderListed read_folder(const ListFolder& job, const std::filesystem::path& home);

class FolderReader {
 public:
  FolderReader(std::filesystem::path home, std::function<void()> wake_up);

  void give(ListFolder job);
  // Since the last call.
  std::vector<FolderListed> take_listed() { return jobs_.take_outcomes(); }

 private:
  std::atomic<std::uint64_t> newest_ = 0;
  JobThread<ListFolder, FolderListed> jobs_;
};

}  // namespace octavo::app
