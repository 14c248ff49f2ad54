// Schemas and their change: every past one becomes the newest, whatever interrupts it.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <iterator>

#include "app/store/database.h"
#include "app/store/schema.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/worker_fixture.h"
#include "tests/support/paths.h"

namespace octavo::testing {
namespace {

using app::StoreProblemKind;

// A schema that does not exist yet: a column more, filled from another.
app::Schema next_schema() {
  app::Schema schema = app::store_schema();
  schema.steps.push_back(
      "ALTER TABLE chats ADD COLUMN colour INTEGER NOT NULL DEFAULT 0;"
      "UPDATE chats SET colour = id;"
      "CREATE TABLE labels (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;"
      "INSERT INTO labels (id, name) SELECT id, title FROM chats;");
  return schema;
}

class SchemaChange : public WorkerTest {
 protected:
  SchemaChange() { FaultVfs::instance().reset(); }
  ~SchemaChange() override {
    FaultVfs::instance().reset();
    close();
  }
  void open_with(const app::Schema& schema) {
    app::StoreOptions changed = options();
    changed.schema = schema;
    worker_ = std::make_unique<app::StoreWorker>(changed);
    step_until_idle();
  }
  std::int64_t number(const std::string& sql) {
    app::Database database;
    EXPECT_TRUE(database.open(database_path(), app::OpenMode::kCopy));
    const auto value = database.integer(sql);
    EXPECT_TRUE(value.has_value()) << value.error().message;
    return value.has_value() ? value->value_or(-1) : -1;
  }
};

TEST_F(SchemaChange, EveryPastSchemaBecomesTheNewest) {
  for (int version = 1; version <= app::store_schema().version(); ++version) {
    const auto path = test::source_folder() / "tests/store/schemas" / (std::to_string(version) + ".sql");
    std::ifstream file(path);
    const std::string sql((std::istreambuf_iterator<char>(file)), {});
    ASSERT_FALSE(sql.empty()) << path << " is missing: keep a dump of every schema that was ever shipped";
    close();
    std::filesystem::remove_all(database_path().parent_path());
    std::filesystem::create_directories(database_path().parent_path());
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(database_path().c_str(), &handle), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
    reset_reports();
    open();
    EXPECT_FALSE(problem_) << problem_.sentence;
    EXPECT_TRUE(notices_.empty()) << notices_[0].sentence;
    ASSERT_EQ(contents_->chats.size(), 2u);
    EXPECT_EQ(contents_->chats[0].title, "Second");
    EXPECT_TRUE(contents_->chats[0].trashed_ms.has_value());
    const auto chat = load(1);
    ASSERT_TRUE(chat.has_value());
    ASSERT_EQ(chat->messages().size(), version < 3 ? 3u : 4u);
    EXPECT_EQ(chat->messages()[0].created_ms, version < 3 ? 0 : 1'790'000'000'100);
    EXPECT_EQ(chat->messages()[1].stop_text, version < 3 ? "" : "END");
    EXPECT_EQ(chat->messages()[1].edited, version >= 3);
    EXPECT_EQ(chat->find(MessageId{4}), nullptr) << "it is erased";
    EXPECT_EQ(contents_->chats[1].model_path, version < 3 ? "" : "/models/m.gguf");
    EXPECT_EQ(chat->messages()[1].content, "Hello! How can I help?");
    EXPECT_EQ(chat->messages()[1].token_ids, (std::vector<TokenId>{1, 256}));
    EXPECT_EQ(chat->messages()[2].content, "Half an answ");
    EXPECT_TRUE(chat->messages()[2].interrupted);
    EXPECT_EQ(contents_->chats[0].context_policy, version < 2 ? ContextPolicy::kRoll : ContextPolicy::kStop);
    EXPECT_EQ(chat->template_values,
              version < 4 ? TemplateValues{} : TemplateValues({{"enable_thinking", false}}));
    EXPECT_EQ(chat->summary_after(MessageId{1}), version < 2 ? "" : "They said hi.");
    EXPECT_EQ(contents_->folders.size(), 1u);
    ASSERT_EQ(contents_->presets.size(), 1u);
    EXPECT_EQ(contents_->presets[0].template_values,
              version < 5 ? TemplateValues{} : TemplateValues({{"enable_thinking", false}}));
  }
}

TEST_F(SchemaChange, AnOlderFileIsBackedUpAndThenChanged) {
  open();
  fill(3, 2);
  close();
  std::filesystem::remove_all(options().paths.backups());
  open_with(next_schema());
  EXPECT_FALSE(problem_) << problem_.sentence;
  close();
  EXPECT_EQ(number("PRAGMA user_version"), next_schema().version());
  EXPECT_EQ(number("SELECT sum(colour) FROM chats"), 6);
  EXPECT_EQ(number("SELECT count(*) FROM labels"), 3);
  const auto backups = options().paths.existing_backups();
  ASSERT_EQ(backups.size(), 1u);
  app::Database backup;
  ASSERT_TRUE(backup.open(backups[0].second, app::OpenMode::kCopy));
  EXPECT_EQ(backup.integer("PRAGMA user_version")->value_or(-1), app::store_schema().version());
  EXPECT_EQ(backup.integer("SELECT count(*) FROM messages")->value_or(-1), 12);
}

TEST_F(SchemaChange, InterruptedAtEveryWriteItIsTheOldSchemaOrTheNew) {
  vfs_ = FaultVfs::kName;
  FaultVfs& faults = FaultVfs::instance();
  open();
  fill(3, 2);
  close();
  const auto original = folder_ / "original";
  std::filesystem::copy(database_path().parent_path(), original, std::filesystem::copy_options::recursive);
  int num_old = 0, num_new = 0;
  for (std::int64_t nth = 0; num_new == 0 || nth < 40; ++nth) {
    ASSERT_LT(nth, 200);
    std::filesystem::remove_all(database_path().parent_path());
    std::filesystem::copy(original, database_path().parent_path(), std::filesystem::copy_options::recursive);
    faults.reset();
    faults.calls_left = nth;
    app::StoreOptions changed = options();
    changed.schema = next_schema();
    {
      app::FileLock lock;
      app::OpenedStore opened = app::open_store(changed, lock, false);
      faults.power_is_gone = true;  // as a kill: nothing is tidied up
    }
    faults.reset();
    const auto version = number("PRAGMA user_version");
    const bool is_old = version == app::store_schema().version();
    (is_old ? num_old : num_new) += 1;
    EXPECT_EQ(number("SELECT count(*) FROM sqlite_schema WHERE name = 'labels'"), is_old ? 0 : 1);
    EXPECT_EQ(number("SELECT count(*) FROM pragma_table_info('chats') WHERE name = 'colour'"),
              is_old ? 0 : 1);
    EXPECT_EQ(number("SELECT count(*) FROM messages"), 12);
  }
  EXPECT_GT(num_old, 3);
  EXPECT_GT(num_new, 0);
}

TEST_F(SchemaChange, ANewerFileIsReadAndNeverWritten) {
  open_with(next_schema());
  fill(2, 2);
  close();
  const auto bytes = [this] {
    std::ifstream file(database_path(), std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const std::string before = bytes();
  reset_reports();
  open();
  EXPECT_EQ(problem_.kind, StoreProblemKind::kNewerVersion);
  EXPECT_EQ(problem_.sentence,
            "These chats were written by a newer version of Octavo. You can read them here, but nothing new "
            "is saved; update Octavo to continue them.");
  EXPECT_EQ(contents_->chats.size(), 2u);
  EXPECT_TRUE(load(1).has_value());
  push(app::changes::SaveChat{some_head(5)}, true);
  step_until_idle();
  close();
  EXPECT_EQ(bytes(), before);
}

}  // namespace
}  // namespace octavo::testing
