#include "app/store/rescue.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "app/store/database.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
// Reads that may fail in one table before the rest of it is given up.
constexpr int kMostFailures = 5'000;

void remove_database(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  fs::remove(wal_of(path), ignored);
  fs::remove(path.string() + "-journal", ignored);
  fs::remove(path.string() + "-shm", ignored);
}

// A database under a name of its own that is gone with the object.
struct Scratch {
  explicit Scratch(fs::path scratch_path) : path(std::move(scratch_path)) { remove_database(path); }
  ~Scratch() {
    database.close();
    remove_database(path);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Result<void> copy_from(const fs::path& source) {
    database.close();
    remove_database(path);
    OCTAVO_TRY_VOID(copy_file_durably(source, path));
    std::error_code ignored;
    if (fs::exists(wal_of(source), ignored)) return copy_file_durably(wal_of(source), wal_of(path));
    return {};
  }

  fs::path path;
  Database database;
};

// Copies rows between two databases of one schema, table by table.
class RowCopier {
 public:
  enum class Existing { kReplaced, kKept };

  RowCopier(Database& from, Database& to, Existing existing) : from_(from), to_(to), existing_(existing) {}

  // An Error only when the target cannot be written.
  Result<void> copy_all() {
    OCTAVO_TRY(const auto tables,
               names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
                     "ESCAPE '\\' ORDER BY name"));
    for (const std::string& table : tables) OCTAVO_TRY_VOID(copy_table(table));
    return copy_last_ids();
  }

  bool complete() const { return complete_; }

 private:
  struct Statements {
    std::string ascending, descending, insert;
    std::size_t num_columns = 0;
  };
  // Where reading stopped: the number of the last row that was read, and whether the end was reached.
  struct Reach {
    std::int64_t number;
    bool to_end;
  };

  Result<std::vector<std::string>> names(const std::string& sql) {
    OCTAVO_TRY(Rows rows, to_.query(sql));
    std::vector<std::string> found;
    while (true) {
      OCTAVO_TRY(const bool more, rows.next());
      if (!more) return found;
      found.emplace_back(rows.text(0));
    }
  }

  Result<Statements> statements_for(const std::string& table) {
    OCTAVO_TRY(const auto columns, names("SELECT name FROM pragma_table_info('" + table + "')"));
    std::string list, places;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      list += ", " + columns[i];
      places += (i > 0 ? ", ?" : "?") + std::to_string(i + 1);
    }
    const std::string select =
        "SELECT rowid" + list + " FROM " + table + " NOT INDEXED WHERE rowid > ?1 AND rowid < ?2";
    const std::string conflict = existing_ == Existing::kReplaced ? "REPLACE" : "IGNORE";
    return Statements{
        select + " ORDER BY rowid", select + " ORDER BY rowid DESC",
        "INSERT OR " + conflict + " INTO " + table + " (" + list.substr(2) + ") VALUES (" + places + ")",
        columns.size()};
  }

  Result<void> copy_table(const std::string& table) {
    num_failures_ = 0;
    OCTAVO_TRY(const Statements statements, statements_for(table));
    return copy_between(statements, kFirst, kLast);
  }

  // The rows with numbers between the two, these not included.
  Result<void> copy_between(const Statements& statements, std::int64_t low, std::int64_t high) {
    OCTAVO_TRY(const Reach up, read(statements, statements.ascending, low, high));
    if (up.to_end) return {};
    low = up.number;
    OCTAVO_TRY(const Reach down, read(statements, statements.descending, low, high));
    if (down.to_end) return {};
    high = std::min(high, down.number);
    const bool one_row = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) <= 2;
    if (one_row || num_failures_ > kMostFailures) return {};
    const std::int64_t middle = std::midpoint(low, high) + 1;
    OCTAVO_TRY_VOID(copy_between(statements, low, middle));
    return copy_between(statements, middle - 1, high);
  }

  Result<Reach> read(const Statements& statements, const std::string& sql, std::int64_t low,
                     std::int64_t high) {
    Reach reach{sql == statements.ascending ? low : high, false};
    auto rows = from_.query(sql, {low, high});
    std::vector<SqlValue> values(statements.num_columns);
    while (rows) {
      const auto more = rows->next();
      if (!more) break;
      if (!*more) return Reach{reach.number, true};
      reach.number = rows->integer(0);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = rows->value(static_cast<int>(i) + 1);
      OCTAVO_TRY_VOID(insert(statements, values));
    }
    complete_ = false;
    ++num_failures_;
    return reach;
  }

  Result<void> insert(const Statements& statements, const std::vector<SqlValue>& values) {
    auto inserted = to_.run(statements.insert, values);
    if (inserted) return {};
    const DatabaseFault fault = to_.fault();
    if (fault == DatabaseFault::kDiskFull || fault == DatabaseFault::kIo || fault == DatabaseFault::kReadOnly)
      return inserted;
    complete_ = false;  // the row's own cells are damaged
    return {};
  }

  // So that ids of erased chats are not given again.
  Result<void> copy_last_ids() {
    auto rows = from_.query("SELECT name, seq FROM sqlite_sequence");
    while (rows) {
      const auto more = rows->next();
      if (!more || !*more) break;
      OCTAVO_TRY_VOID(to_.run("UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
                              {rows->text(0), rows->integer(1)}));
    }
    return {};
  }

  Database& from_;
  Database& to_;
  const Existing existing_;
  bool complete_ = true;
  int num_failures_ = 0;
};

// Gives a file the first page that an empty database of this schema has, with the file's own length in it.
Result<void> transplant_first_page(const fs::path& path, const fs::path& empty) {
  std::array<char, kPageSize> page{};
  std::ifstream source(empty, std::ios::binary);
  source.read(page.data(), page.size());
  std::error_code error;
  const auto num_pages = static_cast<std::uint32_t>(
      std::min<std::uintmax_t>(fs::file_size(path, error) / kPageSize, 0xfffffffeu));
  for (std::size_t i = 0; i < 4; ++i) {
    page[28 + i] = static_cast<char>(num_pages >> (24 - 8 * i));  // length in pages, big-endian
    page[92 + i] = page[24 + i];                                  // which counts while these two agree
    page[32 + i] = page[36 + i] = 0;                              // no list of free pages
  }
  std::fstream target(path, std::ios::binary | std::ios::in | std::ios::out);
  target.write(page.data(), page.size());
  target.flush();
  if (source.good() && target.good() && !error) return {};
  return Error{.code = ErrorCode::kDamagedFile, .message = "the first page cannot be replaced"};
}

bool names_are_readable(Database& database, const Schema& schema) {
  const auto age = schema_age(database, schema);
  return age && (*age == SchemaAge::kCurrent || *age == SchemaAge::kOlder);
}

// Opens the copy of the damaged file with whatever first page can be had; false when there is none.
bool open_damaged(Scratch& scratch, const fs::path& kept, const fs::path& empty, const Schema& schema) {
  if (!scratch.copy_from(kept)) return false;
  if (scratch.database.open(scratch.path, OpenMode::kCopy) && names_are_readable(scratch.database, schema))
    return true;
  if (!scratch.copy_from(kept)) return false;
  std::error_code ignored;
  fs::remove(wal_of(scratch.path), ignored);
  return transplant_first_page(scratch.path, empty) && scratch.database.open(scratch.path, OpenMode::kCopy) &&
         names_are_readable(scratch.database, schema);
}

int version_of(Database& database, const Schema& schema) {
  const auto version = database.integer("PRAGMA user_version");
  const auto number = version ? version->value_or(0) : 0;
  return number >= 1 && number <= schema.version() ? static_cast<int>(number) : schema.version();
}

// An empty database of a version, under that path.
Result<void> make_empty(Database& database, const fs::path& path, const Schema& schema, int version) {
  remove_database(path);
  OCTAVO_TRY_VOID(make_private_file(path));
  OCTAVO_TRY_VOID(database.open(path, OpenMode::kCopy));
  return migrate(database, Schema{{schema.steps.begin(), schema.steps.begin() + version}});
}

class Rescuer {
 public:
  Rescuer(const StorePaths& paths, const Schema& schema) : paths_(paths), schema_(schema) {}

  Result<RescueReport> run() {
    OCTAVO_TRY_VOID(keep_damaged());
    Scratch fresh(scratch_path("new"));
    OCTAVO_TRY_VOID(collect_rows(fresh));
    if (!report_.complete) OCTAVO_TRY_VOID(fill_from_backup(fresh));
    OCTAVO_TRY_VOID(adopt_orphans(fresh.database));
    OCTAVO_TRY_VOID(count(fresh.database));
    OCTAVO_TRY_VOID(replace(fresh));
    return report_;
  }

 private:
  fs::path scratch_path(const char* what) const {
    return paths_.folder() / (paths_.database.stem().string() + "." + what + ".db");
  }

  // From here on the damaged file may go: its copy is on the disk, and the mark says where.
  Result<void> keep_damaged() {
    if (std::ifstream mark(paths_.rescue_mark()); mark) {
      const std::string name(std::istreambuf_iterator<char>(mark), {});
      report_.kept_as = paths_.folder() / fs::path(name).filename();
      std::error_code ignored;
      if (!name.empty() && fs::exists(report_.kept_as, ignored)) return {};
    }
    report_.kept_as = paths_.unused_damaged_name();
    std::error_code ignored;
    if (fs::exists(wal_of(paths_.database), ignored))
      OCTAVO_TRY_VOID(copy_file_durably(wal_of(paths_.database), wal_of(report_.kept_as)));
    OCTAVO_TRY_VOID(copy_file_durably(paths_.database, report_.kept_as));
    OCTAVO_TRY_VOID(write_file_durably(paths_.rescue_mark(), report_.kept_as.filename().string()));
    return sync_folder(paths_.folder());
  }

  Result<void> collect_rows(Scratch& fresh) {
    Scratch empty(scratch_path("empty")), damaged(scratch_path("scratch"));
    OCTAVO_TRY_VOID(make_empty(empty.database, empty.path, schema_, schema_.version()));
    empty.database.close();
    const bool opened = open_damaged(damaged, report_.kept_as, empty.path, schema_);
    const int version = opened ? version_of(damaged.database, schema_) : schema_.version();
    OCTAVO_TRY_VOID(make_empty(fresh.database, fresh.path, schema_, version));
    if (opened) {
      OCTAVO_TRY(report_.complete,
                 copy_rows(damaged.database, fresh.database, RowCopier::Existing::kReplaced));
    }
    return migrate(fresh.database, schema_);
  }

  static Result<bool> copy_rows(Database& from, Database& to, RowCopier::Existing existing) {
    OCTAVO_TRY_VOID(to.begin());
    RowCopier copier(from, to, existing);
    OCTAVO_TRY_VOID(copier.copy_all());
    OCTAVO_TRY_VOID(to.commit());
    return copier.complete();
  }

  // The newest backup that is whole.
  Result<void> fill_from_backup(Scratch& fresh) {
    for (const auto& [time, path] : paths_.existing_backups()) {
      Scratch backup(scratch_path("backup"));
      if (!backup.copy_from(path) || !backup.database.open(backup.path, OpenMode::kCopy)) continue;
      if (!backup.database.check() || !names_are_readable(backup.database, schema_)) continue;
      if (!migrate(backup.database, schema_)) continue;
      OCTAVO_TRY_VOID(copy_rows(backup.database, fresh.database, RowCopier::Existing::kKept));
      report_.backup_ms = time;
      return {};
    }
    return {};
  }

  // Messages whose chat is lost are shown in a chat again.
  static Result<void> adopt_orphans(Database& database) {
    return database.run(
        "INSERT INTO chats (id, title, shown_title, system_prompt, sampling, draft, folder, pinned, "
        "position, "
        "created_ms, updated_ms, trashed_ms, active_root_child) "
        "SELECT DISTINCT chat, 'Recovered chat', 'Recovered chat', '', '{}', '', 0, 0, chat, 0, 0, NULL, 0 "
        "FROM messages "
        "WHERE chat > 0 AND chat NOT IN (SELECT id FROM chats)");
  }

  Result<void> count(Database& database) {
    OCTAVO_TRY(const auto num_chats, database.integer("SELECT count(*) FROM chats"));
    OCTAVO_TRY(const auto num_messages, database.integer("SELECT count(*) FROM messages"));
    report_.num_chats = num_chats.value_or(0);
    report_.num_messages = num_messages.value_or(0);
    return {};
  }

  Result<void> replace(Scratch& fresh) {
    OCTAVO_TRY_VOID(fresh.database.check());
    fresh.database.close();
    OCTAVO_TRY_VOID(sync_file(fresh.path));
    // The log first: beside the new file it would be taken for its own.
    std::error_code error;
    fs::remove(wal_of(paths_.database), error);
    OCTAVO_TRY_VOID(sync_folder(paths_.folder()));
    OCTAVO_TRY_VOID(rename_durably(fresh.path, paths_.database));
    fs::remove(paths_.rescue_mark(), error);
    return sync_folder(paths_.folder());
  }

  const StorePaths& paths_;
  const Schema& schema_;
  RescueReport report_;
};

std::string count_of(std::int64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string date_of(std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  std::array<char, 32> text{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts)};
}

}  // namespace

std::string RescueReport::sentence() const {
  std::string text = "The chat database was damaged: " + count_of(num_chats, "chat", "chats") + " with " +
                     count_of(num_messages, "message", "messages") + " were recovered";
  if (complete) {
    text += ", which is everything";
  } else if (backup_ms) {
    text += ", with gaps filled from the backup of " + date_of(*backup_ms) +
            "; newer text that could not be read is lost";
  } else {
    text += "; text that could not be read is lost";
  }
  return text + ". The damaged file is kept as " + escape_for_message(kept_as.filename().string()) + ".";
}

Result<RescueReport> rescue(const StorePaths& paths, const Schema& schema) {
  return Rescuer(paths, schema).run();
}

bool rescue_is_pending(const StorePaths& paths) {
  std::error_code ignored;
  return fs::exists(paths.rescue_mark(), ignored);
}

}  // namespace octavo::app
