// SQLite behind values: one connection, its statements, and what went wrong as a kind that callers can act
// on. Only database.cc and backup.cc know sqlite3.h.
//
// One thread at a time. Debian's SQLite 3.40.1 can corrupt a database in WAL mode that two connections write,
// so there is never more than one: `open` takes the file for itself (locking_mode = EXCLUSIVE) until the
// object ends. Commits reach the disk before `commit` returns (synchronous = FULL), deleted text is
// overwritten (secure_delete), and nothing is memory-mapped, because an I/O error would then be a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace octavo::app {

inline constexpr std::size_t kPageSize = 4096;  // bytes: SQLite's default, which our files have

enum class DatabaseFault {
  kNone,
  kDiskFull,
  kIo,        // the device, also a failed sync: nothing since the last commit may be taken for written
  kReadOnly,  // the file or its folder may not be written
  kBusy,      // another process has the file
  kDamaged,   // not a database, or one that contradicts itself
  kOther,
};

// One cell. Text and bytes are borrowed until the statement has run.
using SqlValue =
    std::variant<std::nullptr_t, std::int64_t, double, std::string_view, std::span<const std::byte>>;

enum class OpenMode {
  kStore,  // created when it is missing; every commit reaches the disk, and survives whatever comes then
  kCopy,   // a copy that nobody relies on yet: quick, and synced as a whole by whoever makes it
};

// A statement that is being stepped through. It must end before the database does.
class Rows {
 public:
  ~Rows();
  Rows(Rows&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)), database_(other.database_) {}
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  // False after the last row.
  Result<bool> next();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  // Valid until the next call of `next`.
  std::string_view text(int column) const;
  std::span<const std::byte> bytes(int column) const;
  // As it stands in the row; borrows like `text`.
  SqlValue value(int column) const;

 private:
  friend class Database;
  Rows(sqlite3_stmt* statement, class Database& database) : statement_(statement), database_(&database) {}

  sqlite3_stmt* statement_;
  class Database* database_;
};

class Database {
 public:
  Database() = default;
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;

  // Takes the file for this connection. `vfs` names SQLite's layer of files; null: the system's.
  // REQUIRES: not open.
  Result<void> open(const std::filesystem::path& path, OpenMode mode, const char* vfs = nullptr);
  bool is_open() const { return handle_ != nullptr; }
  // Rolls back what was not committed.
  void close();

  // Statements are prepared once: `sql` must be the same text for every use, and values go in as ?1, ?2, ...
  Result<void> run(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return run(sql, std::span(values.begin(), values.size()));
  }
  Result<void> run(std::string_view sql, std::span<const SqlValue> values);
  Result<Rows> query(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return query(sql, std::span(values.begin(), values.size()));
  }
  Result<Rows> query(std::string_view sql, std::span<const SqlValue> values);
  // Several statements without values, or one that must not be kept.
  Result<void> run_script(const std::string& sql);
  // The first column of the first row; nullopt without one.
  Result<std::optional<std::int64_t>> integer(std::string_view sql,
                                              std::initializer_list<SqlValue> values = {});

  Result<void> begin() { return run("BEGIN IMMEDIATE"); }
  Result<void> commit() { return run("COMMIT"); }
  void roll_back();

  // Whether the pages and the indices contradict each other nowhere. An Error names the first place.
  Result<void> check();
  // Everything committed is in the main file after this, synced, and the -wal file is empty.
  Result<void> fold_wal();
  // Leaves the -wal file as it is when the connection ends.
  void keep_wal_on_close();

  // Of the newest call that failed.
  DatabaseFault fault() const { return fault_; }
  // What a caller found out about the file that SQLite itself does not mind.
  void set_fault(DatabaseFault fault) { fault_ = fault; }
  sqlite3* handle() { return handle_; }

 private:
  friend class Rows;
  Result<sqlite3_stmt*> prepare(std::string_view sql);
  Result<sqlite3_stmt*> bind(std::string_view sql, std::span<const SqlValue> values);
  Error failure();

  sqlite3* handle_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  DatabaseFault fault_ = DatabaseFault::kNone;
};

}  // namespace octavo::app
