// Whole copies of the database, for the day it is damaged: made a few pages at a time while the store goes on
// writing, checked, and moved into place under their own name when they are on the disk.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "app/store/database.h"
#include "app/store/store_files.h"
#include "engine/base/result.h"

struct sqlite3_backup;

namespace octavo::app {

class Backup {
 public:
  // The database must outlive the backup, and be closed after it.
  static Result<std::unique_ptr<Backup>> start(Database& database, const StorePaths& paths,
                                               std::int64_t unix_ms);
  // Leaves no half of one behind.
  ~Backup();
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  // True when the backup is complete and in its place; the oldest of too many is then removed.
  Result<bool> step(int num_pages);

 private:
  Backup(const StorePaths& paths, std::filesystem::path target);
  Result<void> finish();
  void remove_oldest() const;

  const StorePaths paths_;
  const std::filesystem::path target_, part_;
  Database copy_;
  sqlite3_backup* backup_ = nullptr;
};

// One that is there when this returns.
Result<void> back_up(Database& database, const StorePaths& paths, std::int64_t unix_ms);

}  // namespace octavo::app
