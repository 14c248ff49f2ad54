#include "app/store/schema.h"

#include <cstddef>

namespace octavo::app {
namespace {

constexpr std::int64_t kApplicationId = 0x4f435456;  // kApplicationMark

// AUTOINCREMENT: an id is never given to another chat, also not after the newest one was erased.
// Pieces are what a running answer has gained since its message was written; a message that is written whole
// takes their place.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE chats (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  shown_title TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  sampling TEXT NOT NULL,
  draft TEXT NOT NULL,
  folder INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  position INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  trashed_ms INTEGER,
  active_root_child INTEGER NOT NULL
) STRICT;
CREATE TABLE messages (
  number INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  id INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  active_child INTEGER NOT NULL,
  role TEXT NOT NULL,
  finish_reason TEXT,
  seed INTEGER,
  interrupted INTEGER NOT NULL,
  model TEXT NOT NULL,
  error TEXT NOT NULL,
  metrics TEXT,
  content TEXT NOT NULL,
  token_ids BLOB NOT NULL,
  UNIQUE (chat, id)
) STRICT;
CREATE TABLE answer_pieces (
  number INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  message INTEGER NOT NULL,
  content_begin INTEGER NOT NULL,
  content TEXT NOT NULL,
  tokens_begin INTEGER NOT NULL,
  token_ids BLOB NOT NULL,
  UNIQUE (chat, message, tokens_begin, content_begin)
) STRICT;
CREATE TABLE folders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  position INTEGER NOT NULL
) STRICT;
CREATE TABLE presets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  sampling TEXT NOT NULL
) STRICT;
)sql";

// What has left a chat's context, in other words.
constexpr const char* kVersion2 = R"sql(
ALTER TABLE chats ADD COLUMN context_policy TEXT NOT NULL DEFAULT 'roll';
CREATE TABLE summaries (
  number INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  message INTEGER NOT NULL,
  content TEXT NOT NULL,
  UNIQUE (chat, message)
) STRICT;
)sql";

// When messages came, why answers ended, and who wrote them; which were deleted; which model a chat has.
constexpr const char* kVersion3 = R"sql(
ALTER TABLE chats ADD COLUMN model_path TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN created_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN context_full INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN stop_text TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;
)sql";

// What a chat's model is told about thinking.
constexpr const char* kVersion4 = R"sql(
ALTER TABLE chats ADD COLUMN template_values TEXT NOT NULL DEFAULT '{}';
)sql";

// And a preset's.
constexpr const char* kVersion5 = R"sql(
ALTER TABLE presets ADD COLUMN template_values TEXT NOT NULL DEFAULT '{}';
)sql";

Result<std::vector<std::string>> describe(Database& database) {
  OCTAVO_TRY(
      Rows rows,
      database.query("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                     "ORDER BY type, name"));
  std::vector<std::string> description;
  while (true) {
    OCTAVO_TRY(const bool more, rows.next());
    if (!more) return description;
    for (int column = 0; column < 3; ++column) description.emplace_back(rows.text(column));
  }
}

Result<void> run_steps(Database& database, const Schema& schema, int from) {
  for (int version = from; version < schema.version(); ++version) {
    OCTAVO_TRY_VOID(database.run_script(schema.steps[static_cast<std::size_t>(version)]));
  }
  OCTAVO_TRY_VOID(database.run_script("PRAGMA application_id = " + std::to_string(kApplicationId)));
  return database.run_script("PRAGMA user_version = " + std::to_string(schema.version()));
}

// What a fresh file of that version holds.
Result<std::vector<std::string>> describe_version(const Schema& schema, int version) {
  const Schema older{{schema.steps.begin(), schema.steps.begin() + version}};
  Database fresh;
  OCTAVO_TRY_VOID(fresh.open(":memory:", OpenMode::kCopy));
  OCTAVO_TRY_VOID(run_steps(fresh, older, 0));
  return describe(fresh);
}

}  // namespace

const Schema& store_schema() {
  static const Schema kSchema{{kVersion1, kVersion2, kVersion3, kVersion4, kVersion5}};
  return kSchema;
}

Result<SchemaAge> schema_age(Database& database, const Schema& schema) {
  OCTAVO_TRY(const auto version, database.integer("PRAGMA user_version"));
  OCTAVO_TRY(const auto application, database.integer("PRAGMA application_id"));
  OCTAVO_TRY(const auto found, describe(database));
  if (version == 0 && found.empty()) return SchemaAge::kEmpty;
  if (application != kApplicationId || !version || *version < 1) return SchemaAge::kForeign;
  if (*version > schema.version()) return SchemaAge::kNewer;
  OCTAVO_TRY(const auto expected, describe_version(schema, static_cast<int>(*version)));
  if (found != expected) return SchemaAge::kForeign;
  return *version == schema.version() ? SchemaAge::kCurrent : SchemaAge::kOlder;
}

Result<void> migrate(Database& database, const Schema& schema) {
  OCTAVO_TRY(const auto version, database.integer("PRAGMA user_version"));
  OCTAVO_TRY_VOID(database.begin());
  auto migrated = run_steps(database, schema, static_cast<int>(version.value_or(0)));
  if (migrated) migrated = database.commit();
  if (!migrated) database.roll_back();
  return migrated;
}

}  // namespace octavo::app
