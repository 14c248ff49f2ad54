#include "app/store/backup.h"

#include <sqlite3.h>

#include <system_error>
#include <utility>

namespace octavo::app {
namespace {

constexpr std::size_t kBackupsKept = 3;

}  // namespace

Backup::Backup(const StorePaths& paths, std::filesystem::path target)
    : paths_(paths), target_(std::move(target)), part_(target_.string() + ".part") {}

Result<std::unique_ptr<Backup>> Backup::start(Database& database, const StorePaths& paths,
                                              std::int64_t unix_ms) {
  OCTAVO_TRY_VOID(make_private_folder(paths.backups()));
  std::unique_ptr<Backup> backup(new Backup(paths, paths.backup(unix_ms)));
  std::error_code ignored;
  std::filesystem::remove(backup->part_, ignored);
  OCTAVO_TRY_VOID(make_private_file(backup->part_));
  OCTAVO_TRY_VOID(backup->copy_.open(backup->part_, OpenMode::kCopy));
  backup->backup_ = sqlite3_backup_init(backup->copy_.handle(), "main", database.handle(), "main");
  if (backup->backup_ == nullptr)
    return Error{.code = ErrorCode::kIo, .message = sqlite3_errmsg(backup->copy_.handle())};
  return backup;
}

Backup::~Backup() {
  if (backup_ != nullptr) sqlite3_backup_finish(backup_);
  copy_.close();
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

Result<bool> Backup::step(int num_pages) {
  const int code = sqlite3_backup_step(backup_, num_pages);
  if (code == SQLITE_OK) return false;
  if (code != SQLITE_DONE) return Error{.code = ErrorCode::kIo, .message = sqlite3_errstr(code)};
  OCTAVO_TRY_VOID(finish());
  return true;
}

Result<void> Backup::finish() {
  sqlite3_backup_finish(std::exchange(backup_, nullptr));
  // The copy says of itself that it has a log beside it, as the original has; it has none.
  OCTAVO_TRY_VOID(copy_.run_script("PRAGMA journal_mode = DELETE"));
  OCTAVO_TRY_VOID(copy_.check());
  copy_.close();
  OCTAVO_TRY_VOID(sync_file(part_));
  OCTAVO_TRY_VOID(rename_durably(part_, target_));
  remove_oldest();
  return {};
}

void Backup::remove_oldest() const {
  const auto existing = paths_.existing_backups();
  for (std::size_t i = kBackupsKept; i < existing.size(); ++i) {
    std::error_code ignored;
    std::filesystem::remove(existing[i].second, ignored);
  }
}

Result<void> back_up(Database& database, const StorePaths& paths, std::int64_t unix_ms) {
  OCTAVO_TRY(const auto backup, Backup::start(database, paths, unix_ms));
  OCTAVO_TRY(const bool complete, backup->step(-1));
  if (complete) return {};
  return Error{.code = ErrorCode::kIo, .message = "the backup did not finish"};
}

}  // namespace octavo::app
