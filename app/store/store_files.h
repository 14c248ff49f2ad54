// The files of the store, and the few things that are done to them beside SQLite. All of them lie in one
// folder that only its owner can enter:
//
//   chats.db, chats.db-wal     the chats
//   chats.lock                 locked by the process that writes them
//   chats.rescue               exists while a damaged file is being replaced; names the copy that was kept
//   chats.damaged-1.db         such a copy, with its -wal; never written again
//   backups/chats-MS.db        whole copies, MS milliseconds after 1970
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/files/file_descriptor.h"
#include "engine/base/result.h"

namespace octavo::app {

struct StorePaths {
  std::filesystem::path database;

  std::filesystem::path folder() const { return database.parent_path(); }
  std::filesystem::path lock() const { return beside(".lock"); }
  std::filesystem::path rescue_mark() const { return beside(".rescue"); }
  std::filesystem::path backups() const { return folder() / "backups"; }
  // The first number that is free.
  std::filesystem::path unused_damaged_name() const;
  std::filesystem::path backup(std::int64_t unix_ms) const;
  // Newest first, with their times.
  std::vector<std::pair<std::int64_t, std::filesystem::path>> existing_backups() const;

 private:
  std::filesystem::path beside(const std::string& extension) const;
};

// The -wal file of a database.
std::filesystem::path wal_of(const std::filesystem::path& database);

// $XDG_DATA_HOME/octavo/chats.db or ~/.local/share/octavo/chats.db.
std::filesystem::path default_chats_path();

enum class LockOutcome { kLocked, kHeldByAnother, kNotPermitted, kFailed };

// A file that one process at a time can hold. The system lets go of it when the process ends, however it
// does.
class FileLock {
 public:
  LockOutcome take(const std::filesystem::path& path);
  bool held() const { return descriptor_.ok(); }
  void release() { descriptor_.reset(); }

 private:
  FileDescriptor descriptor_;
};

// Makes the folder and what is above it, and keeps others out of it.
Result<void> make_private_folder(const std::filesystem::path& folder);
bool may_write_to(const std::filesystem::path& folder);
// Exists afterwards, readable and writable by its owner only.
Result<void> make_private_file(const std::filesystem::path& path);

// A private copy, on the disk when this returns. Replaces what is there.
Result<void> copy_file_durably(const std::filesystem::path& from, const std::filesystem::path& to);
Result<void> write_file_durably(const std::filesystem::path& path, const std::string& text);
Result<void> sync_file(const std::filesystem::path& path);
// Names of files, and that they are gone, are on the disk when this returns.
Result<void> sync_folder(const std::filesystem::path& folder);
Result<void> rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// A copy of a database that another process may be writing, together with its -wal file: both from one
// moment.
Result<void> copy_live_database(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace octavo::app
