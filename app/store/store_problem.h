// Why chats are not being saved, as a kind for programs and one sentence for people.
#pragma once

#include <filesystem>
#include <string>

#include "app/store/database.h"

namespace octavo::app {

enum class StoreProblemKind {
  kNone,
  kDiskFull,
  kIoError,
  kReadOnlyFolder,
  kOtherProcess,  // another window of Octavo has the chats
  kNewerVersion,  // a newer Octavo wrote the file
};

struct StoreProblem {
  StoreProblemKind kind = StoreProblemKind::kNone;
  std::string sentence = {};

  explicit operator bool() const { return kind != StoreProblemKind::kNone; }
  // Whether what is not saved waits in memory for the problem to pass. Else nothing will be saved at all.
  bool passing() const {
    return kind == StoreProblemKind::kDiskFull || kind == StoreProblemKind::kIoError ||
           kind == StoreProblemKind::kReadOnlyFolder;
  }
};

// `detail` is what the system or SQLite said; used where the kind alone does not tell enough.
StoreProblem store_problem(StoreProblemKind kind, const std::filesystem::path& database,
                           const std::string& detail = {});
StoreProblem store_problem(DatabaseFault fault, const std::filesystem::path& database,
                           const std::string& detail);

}  // namespace octavo::app
