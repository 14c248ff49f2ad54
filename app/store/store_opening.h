// Opens the file of the chats, whatever state it is in, and says what came of it.
//
// One process writes: it holds chats.lock. Another one, and one that may not write where the file lies, reads
// a copy of it. A damaged file is rescued first (rescue.h), one of an older version backed up and brought up
// to date; one of a newer version is only read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/store/database.h"
#include "app/store/schema.h"
#include "app/store/store_files.h"
#include "app/store/store_problem.h"

namespace octavo::app {

struct StoreOptions {
  StorePaths paths;
  Schema schema = store_schema();
  const char* vfs = nullptr;                   // SQLite's layer of files; null: the system's
  std::function<std::int64_t()> unix_time_ms;  // for the names and the age of backups
};

struct OpenedStore {
  Database database;  // not open when nothing could be read
  bool writable = false;
  StoreProblem problem;  // why it is not writable
  std::string notice;    // what was done to a damaged file, one sentence; else empty
};

// `lock` is held afterwards exactly when the store is writable or was written by a newer Octavo. After an I/O
// error (`distrust`) what SQLite believes to be in the log is written to the main file first: a failed sync
// may have lost pages that reading still shows.
OpenedStore open_store(const StoreOptions& options, FileLock& lock, bool distrust);

}  // namespace octavo::app
