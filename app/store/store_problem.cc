#include "app/store/store_problem.h"

#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string sentence_of(StoreProblemKind kind, const std::filesystem::path& database,
                        const std::string& detail) {
  const std::string folder = escape_for_message(database.parent_path().string());
  switch (kind) {
    case StoreProblemKind::kNone: return {};
    case StoreProblemKind::kDiskFull:
      return "The disk that holds " + folder +
             " is full. New text is kept in memory and saved once there is space.";
    case StoreProblemKind::kIoError:
      return "The chats in " + folder + " cannot be saved (" + detail +
             "). New text is kept in memory and saved once that works again.";
    case StoreProblemKind::kReadOnlyFolder:
      return "The folder " + folder +
             " is read-only. New text is kept in memory and saved once you make the folder writable.";
    case StoreProblemKind::kOtherProcess:
      return "These chats are open in another Octavo window. You can read them here, but nothing new is "
             "saved.";
    case StoreProblemKind::kNewerVersion:
      return "These chats were written by a newer version of Octavo. You can read them here, but nothing new "
             "is saved; update Octavo to continue them.";
  }
  return {};
}

}  // namespace

StoreProblem store_problem(StoreProblemKind kind, const std::filesystem::path& database,
                           const std::string& detail) {
  return {kind, sentence_of(kind, database, detail)};
}

StoreProblem store_problem(DatabaseFault fault, const std::filesystem::path& database,
                           const std::string& detail) {
  if (fault == DatabaseFault::kDiskFull) return store_problem(StoreProblemKind::kDiskFull, database);
  if (fault == DatabaseFault::kReadOnly) return store_problem(StoreProblemKind::kReadOnlyFolder, database);
  return store_problem(StoreProblemKind::kIoError, database, detail);
}

}  // namespace octavo::app
