#include "app/store/database.h"

#include <sqlite3.h>

#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

DatabaseFault fault_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return DatabaseFault::kDiskFull;
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_PROTOCOL: return DatabaseFault::kIo;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH: return DatabaseFault::kReadOnly;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return DatabaseFault::kBusy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_MISMATCH:
    case SQLITE_FORMAT: return DatabaseFault::kDamaged;
    default: return DatabaseFault::kOther;
  }
}

ErrorCode error_code_of(DatabaseFault fault) {
  if (fault == DatabaseFault::kDamaged) return ErrorCode::kDamagedFile;
  return fault == DatabaseFault::kOther ? ErrorCode::kInternal : ErrorCode::kIo;
}

int bind_value(sqlite3_stmt* statement, int index, const SqlValue& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int index;
    int operator()(std::nullptr_t) const { return sqlite3_bind_null(statement, index); }
    int operator()(std::int64_t number) const { return sqlite3_bind_int64(statement, index, number); }
    int operator()(double number) const { return sqlite3_bind_double(statement, index, number); }
    int operator()(std::string_view text) const {
      // A null pointer would bind NULL instead of the empty text.
      return sqlite3_bind_text64(statement, index, text.empty() ? "" : text.data(), text.size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
    }
    int operator()(std::span<const std::byte> bytes) const {
      return sqlite3_bind_blob64(statement, index,
                                 bytes.empty() ? static_cast<const void*>("") : bytes.data(), bytes.size(),
                                 SQLITE_STATIC);
    }
  };
  return std::visit(Binder{statement, index}, value);
}

// Nothing in the file is trusted, since anybody may have made it: no functions from its schema, and cells are
// checked before they are read.
constexpr const char* kSafety =
    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA foreign_keys = "
    "OFF;";
constexpr const char* kDurability =
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
    "PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 4194304;";

constexpr const char* kQuickness = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;";

}  // namespace

Rows::~Rows() {
  if (statement_ != nullptr) sqlite3_reset(statement_);
}

Result<bool> Rows::next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->failure();
}

bool Rows::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
std::int64_t Rows::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Rows::real(int column) const { return sqlite3_column_double(statement_, column); }

std::string_view Rows::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::span<const std::byte> Rows::bytes(int column) const {
  const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

SqlValue Rows::value(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER: return integer(column);
    case SQLITE_FLOAT: return real(column);
    case SQLITE_TEXT: return text(column);
    case SQLITE_BLOB: return bytes(column);
    default: return nullptr;
  }
}

Database::~Database() { close(); }

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      statements_(std::exchange(other.statements_, {})),
      fault_(other.fault_) {}

Database& Database::operator=(Database&& other) noexcept {
  if (this == &other) return *this;
  close();
  handle_ = std::exchange(other.handle_, nullptr);
  statements_ = std::exchange(other.statements_, {});
  fault_ = other.fault_;
  return *this;
}

Result<void> Database::open(const std::filesystem::path& path, OpenMode mode, const char* vfs) {
  OCTAVO_CHECK(!is_open(), "opened twice");
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle_, kFlags, vfs);
  if (code != SQLITE_OK) {
    Error error = failure();
    close();
    return error;
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  auto prepared = run_script(kSafety);
  if (prepared) prepared = run_script(mode == OpenMode::kStore ? kDurability : kQuickness);
  if (!prepared) close();
  return prepared;
}

void Database::close() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  statements_.clear();
  sqlite3_close(handle_);
  handle_ = nullptr;
}

Error Database::failure() {
  const int code = handle_ != nullptr ? sqlite3_extended_errcode(handle_) : SQLITE_NOMEM;
  fault_ = fault_of(code);
  const char* text = handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory";
  return {.code = error_code_of(fault_), .message = escape_for_message(text)};
}

Result<sqlite3_stmt*> Database::prepare(std::string_view sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return found->second;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return failure();
  statements_.emplace(sql, statement);
  return statement;
}

Result<sqlite3_stmt*> Database::bind(std::string_view sql, std::span<const SqlValue> values) {
  OCTAVO_TRY(sqlite3_stmt * statement, prepare(sql));
  int index = 0;
  for (const SqlValue& value : values) {
    if (bind_value(statement, ++index, value) != SQLITE_OK) return failure();
  }
  return statement;
}

Result<void> Database::run(std::string_view sql, std::span<const SqlValue> values) {
  OCTAVO_TRY(Rows rows, query(sql, values));
  while (true) {
    OCTAVO_TRY(const bool more, rows.next());
    if (!more) return {};
  }
}

Result<Rows> Database::query(std::string_view sql, std::span<const SqlValue> values) {
  OCTAVO_TRY(sqlite3_stmt * statement, bind(sql, values));
  return Rows(statement, *this);
}

Result<void> Database::run_script(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return failure();
  return {};
}

Result<std::optional<std::int64_t>> Database::integer(std::string_view sql,
                                                      std::initializer_list<SqlValue> values) {
  OCTAVO_TRY(Rows rows, query(sql, values));
  OCTAVO_TRY(const bool found, rows.next());
  if (!found || rows.is_null(0)) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(rows.integer(0));
}

void Database::roll_back() {
  if (is_open() && sqlite3_get_autocommit(handle_) == 0)
    sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> Database::check() {
  OCTAVO_TRY(Rows rows, query("PRAGMA quick_check(1)"));
  OCTAVO_TRY(const bool found, rows.next());
  if (found && rows.text(0) == "ok") return {};
  fault_ = DatabaseFault::kDamaged;
  return Error{.code = ErrorCode::kDamagedFile,
               .message = found ? escape_for_message(rows.text(0)) : "no answer"};
}

Result<void> Database::fold_wal() {
  OCTAVO_TRY(Rows rows, query("PRAGMA wal_checkpoint(TRUNCATE)"));
  OCTAVO_TRY(const bool found, rows.next());
  if (found && rows.integer(0) == 0) return {};
  fault_ = DatabaseFault::kIo;
  return Error{.code = ErrorCode::kIo, .message = "the write-ahead log could not be folded in"};
}

void Database::keep_wal_on_close() {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

}  // namespace octavo::app
