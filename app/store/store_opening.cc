#include "app/store/store_opening.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/store/backup.h"
#include "app/store/rescue.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

// Whether the file can be told to be no store of ours before SQLite sees it. What lies in a log beside it
// only SQLite can tell; a file of one page may be a database that was only begun.
bool is_foreign(const StorePaths& paths) {
  const fs::path& path = paths.database;
  std::error_code error;
  const std::uintmax_t log_size = fs::file_size(wal_of(path), error);
  if (!error && log_size > 0) return false;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || size == kPageSize) return false;
  if (size == 0) return !paths.existing_backups().empty();
  if (size < kPageSize) return true;
  std::array<char, 72> header{};
  std::ifstream file(path, std::ios::binary);
  file.read(header.data(), header.size());
  return file.good() && std::string_view(header.data() + 68, 4) != kApplicationMark;
}

class Opener {
 public:
  Opener(const StoreOptions& options, FileLock& lock, bool distrust)
      : options_(options), paths_(options.paths), lock_(lock), distrust_(distrust) {}

  OpenedStore open() {
    if (!lock_.held() && !take_lock()) return std::move(opened_);
    if (rescue_is_pending(paths_) && !rescue_file()) return std::move(opened_);
    if (!open_file() && opened_.database.fault() == DatabaseFault::kDamaged) {
      opened_.problem = {};
      if (rescue_file()) open_file();
    }
    const bool failed = opened_.problem.kind == StoreProblemKind::kDiskFull ||
                        opened_.problem.kind == StoreProblemKind::kIoError;
    if (failed) opened_.database.close();
    if (failed || opened_.problem.kind == StoreProblemKind::kReadOnlyFolder) lock_.release();
    return std::move(opened_);
  }

 private:
  bool take_lock() {
    const auto folder = make_private_folder(paths_.folder());
    switch (folder ? lock_.take(paths_.lock()) : LockOutcome::kNotPermitted) {
      case LockOutcome::kLocked: return true;
      case LockOutcome::kHeldByAnother: return read_copy(StoreProblemKind::kOtherProcess);
      case LockOutcome::kNotPermitted: return read_copy(StoreProblemKind::kReadOnlyFolder);
      case LockOutcome::kFailed: break;
    }
    opened_.problem =
        store_problem(StoreProblemKind::kIoError, paths_.database, "the lock file cannot be created");
    return false;
  }

  // Always false: the file itself is not open.
  bool read_copy(StoreProblemKind reason) {
    opened_.problem = store_problem(reason, paths_.database);
    std::string folder = (fs::temp_directory_path() / "octavo-chats-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return false;
    open_copy(fs::path(folder) / "chats.db");
    // The open file lives on without a name, and nothing of it stays behind.
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    return false;
  }

  void open_copy(const fs::path& copy) {
    Database& database = opened_.database;
    if (!copy_live_database(paths_.database, copy) || !database.open(copy, OpenMode::kCopy)) return;
    const auto age =
        database.check() ? schema_age(database, options_.schema) : Result<SchemaAge>(SchemaAge::kForeign);
    const bool readable = age && *age != SchemaAge::kForeign && *age != SchemaAge::kEmpty;
    const bool current = readable && (*age != SchemaAge::kOlder || migrate(database, options_.schema));
    // What lies in the log is read while the log has a name.
    if (!current || !database.run_script(
                        "PRAGMA journal_mode = DELETE; PRAGMA journal_mode = MEMORY; PRAGMA query_only = ON"))
      database.close();
  }

  // False with a problem, or with a fault that says that the file is damaged.
  bool open_file() {
    // SQLite would open another program's database, and change it.
    if (is_foreign(paths_)) return damaged();
    if (const auto made = make_private_file(paths_.database); !made) {
      if (::access(paths_.database.c_str(), R_OK) == 0) return read_copy(StoreProblemKind::kReadOnlyFolder);
      return fail(made.error());
    }
    Database& database = opened_.database;
    if (const auto opened = database.open(paths_.database, OpenMode::kStore, options_.vfs); !opened)
      return fail(opened.error());
    if (distrust_) {
      if (const auto folded = database.fold_wal(); !folded) return fail(folded.error());
    }
    if (const auto checked = database.check(); !checked) return fail(checked.error());
    const auto age = schema_age(database, options_.schema);
    if (!age) return fail(age.error());
    return take_version(*age);
  }

  bool take_version(SchemaAge age) {
    Database& database = opened_.database;
    if (age == SchemaAge::kForeign) return damaged();
    if (age == SchemaAge::kNewer) {
      database.keep_wal_on_close();
      if (const auto locked = database.run_script("PRAGMA query_only = ON"); !locked)
        return fail(locked.error());
      opened_.problem = store_problem(StoreProblemKind::kNewerVersion, paths_.database);
      return false;
    }
    if (age == SchemaAge::kOlder) {
      if (const auto saved = back_up(database, paths_, options_.unix_time_ms()); !saved)
        return fail(saved.error());
    }
    if (age != SchemaAge::kCurrent) {
      if (const auto migrated = migrate(database, options_.schema); !migrated) return fail(migrated.error());
    }
    opened_.writable = true;
    return true;
  }

  bool fail(const Error& error) {
    const DatabaseFault fault = opened_.database.fault();
    if (fault == DatabaseFault::kReadOnly) {
      opened_.database.close();
      return read_copy(StoreProblemKind::kReadOnlyFolder);
    }
    if (fault != DatabaseFault::kDamaged)
      opened_.problem = store_problem(fault, paths_.database, error.message);
    return false;
  }

  // Not a file of ours, though SQLite can read it.
  bool damaged() {
    opened_.database.set_fault(DatabaseFault::kDamaged);
    return false;
  }

  bool rescue_file() {
    if (opened_.database.is_open()) opened_.database.keep_wal_on_close();
    opened_.database.close();
    const auto report = rescue(paths_, options_.schema);
    opened_.database.set_fault(DatabaseFault::kNone);
    if (!report) {
      opened_.problem = store_problem(StoreProblemKind::kIoError, paths_.database, report.error().message);
      return false;
    }
    opened_.notice = report->sentence();
    return true;
  }

  const StoreOptions& options_;
  const StorePaths& paths_;
  FileLock& lock_;
  const bool distrust_;
  OpenedStore opened_;
};

}  // namespace

OpenedStore open_store(const StoreOptions& options, FileLock& lock, bool distrust) {
  return Opener(options, lock, distrust).open();
}

}  // namespace octavo::app
