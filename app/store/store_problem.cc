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
      return "The disk of " + folder +
             " is full: new text is kept in memory and saved as soon as there is room.";
    case StoreProblemKind::kIoError:
      return "The chats in " + folder + " cannot be saved (" + detail +
             "): new text is kept in memory and saved as soon as that is possible.";
    case StoreProblemKind::kReadOnlyFolder:
      return "The folder " + folder +
             " cannot be written: new text is kept in memory and saved as soon as you allow writing there.";
    case StoreProblemKind::kOtherProcess:
      return "Another window of Octavo has these chats open: here they can be read, and nothing new is "
             "saved.";
    case StoreProblemKind::kNewerVersion:
      return "These chats were written by a newer Octavo: here they can be read, and nothing new is saved; "
             "update "
             "Octavo to go on with them.";
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
