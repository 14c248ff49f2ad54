// The file browser without a window: what is listed, what is asked, and what a choice stands for.

#include "app/window/file_browsing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "app/window/file_questions.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
namespace fs = std::filesystem;

class FileBrowsingTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "12 bytes long";
    return path.string();
  }
  // What was wanted is listed, as the reader's thread would.
  void list() {
    while (const auto wanted = browsing_.take_effects().listing) {
      browsing_.take(read_folder(*wanted, folder_.path()));
    }
  }
  void ask_model() {
    questions_.apply(act::AskForFile{act::FileWish::kOpenModel});
    list();
  }
  void browse(const std::string& text, bool is_typed = true) {
    browsing_.apply(act::BrowseTo{text, is_typed});
    list();
  }
  void choose(const std::string& text) {
    browsing_.apply(act::ChooseFile{text});
    list();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const ui::FolderEntry& entry : state_.files.entries) result.push_back(entry.name);
    return result;
  }

  test::TemporaryFolder folder_;
  const test::EnvironmentVariable config_{"XDG_CONFIG_HOME", (folder_ / "config").string()};
  ui::UiState state_;
  FileBrowsing browsing_{{}, state_.files};
  FileQuestions questions_{
      {.exports = folder_.path(), .recordings = folder_ / "recordings"}, browsing_, state_};
};

TEST_F(FileBrowsingTest, ListsFoldersAndFilesByTheBeginningOfTheirNames) {
  write("elsewhere/one.gguf");
  write("elsewhere/other.gguf");
  write("elsewhere/one.txt");
  fs::create_directories(folder_ / "elsewhere" / "onwards");
  fs::create_directories(folder_ / "elsewhere" / ".hidden");
  ask_model();
  browse((folder_ / "elsewhere").string() + "/");
  EXPECT_EQ(names(), (std::vector<std::string>{"onwards", "one.gguf", "other.gguf"}));
  browse((folder_ / "elsewhere").string() + "/on");
  EXPECT_EQ(names(), (std::vector<std::string>{"onwards", "one.gguf"}));
  browse("~/elsewhere/.h");
  EXPECT_EQ(names(), (std::vector<std::string>{".hidden"}));
  browse("/no/such/folder/");
  EXPECT_TRUE(names().empty());
  EXPECT_NE(state_.files.problem.find("/no/such/folder cannot be read"), std::string::npos);
}

TEST_F(FileBrowsingTest, AFileThatIsChosenIsTheActionThatAskedForIt) {
  const std::string path = write("far/model.gguf");
  ask_model();
  choose("~/far");
  EXPECT_TRUE(state_.files.open) << "a folder is opened";
  EXPECT_EQ(names(), (std::vector<std::string>{"model.gguf"}));
  choose("~/far/none.gguf");
  EXPECT_TRUE(state_.files.open);
  EXPECT_NE(state_.files.problem.find("There is no file"), std::string::npos) << state_.files.problem;
  choose("~/far/model.gguf");
  EXPECT_FALSE(state_.files.open);
  const auto chosen = browsing_.take_chosen();
  ASSERT_TRUE(chosen);
  const auto& model = std::get<act::ModelPickerAction>(std::get<act::ModelAction>(*chosen));
  EXPECT_EQ(std::get<act::ChooseModel>(model).path, path);
  EXPECT_FALSE(browsing_.take_chosen()) << "once";
}

TEST_F(FileBrowsingTest, ReplacingAFileIsAsked) {
  const std::string path = write("octavo-chats.json");
  ASSERT_TRUE(questions_.asks_first(act::ExportAllChats{}));
  list();
  EXPECT_TRUE(state_.files.saves);
  EXPECT_EQ(state_.files.text, path);
  choose(state_.files.text);
  EXPECT_EQ(state_.files.overwrites, "octavo-chats.json");
  browsing_.apply(act::AnswerOverwrite{false});
  EXPECT_TRUE(state_.files.open);
  EXPECT_EQ(state_.files.overwrites, "");
  EXPECT_FALSE(browsing_.take_chosen());
  choose(path);
  browsing_.apply(act::AnswerOverwrite{true});
  EXPECT_FALSE(state_.files.open);
  const auto chosen = browsing_.take_chosen();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::get<act::ExportAllChats>(std::get<act::ChatAction>(*chosen)).path, path);
  EXPECT_FALSE(questions_.asks_first(*chosen)) << "now it names its file";
}

TEST_F(FileBrowsingTest, ANewFileGetsItsExtensionAndKeepsItsNameInOtherFolders) {
  fs::create_directories(folder_ / "deeper");
  questions_.asks_first(act::ExportAllChats{});
  list();
  browse((folder_ / "deeper").string() + "/", /*is_typed=*/false);
  EXPECT_EQ(state_.files.text, (folder_ / "deeper" / "octavo-chats.json").string());
  choose((folder_ / "deeper" / "mine").string());
  const auto chosen = browsing_.take_chosen();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::get<act::ExportAllChats>(std::get<act::ChatAction>(*chosen)).path,
            (folder_ / "deeper" / "mine.json").string());
}

TEST_F(FileBrowsingTest, WhatIsTypedWithoutAFolderIsInTheOneThatIsListed) {
  fs::create_directories(folder_ / "deeper");
  write("deeper/model.gguf");
  ask_model();
  browse((folder_ / "deeper").string() + "/", /*is_typed=*/false);
  browse("mod");
  EXPECT_EQ(names(), (std::vector<std::string>{"model.gguf"}));
  browse("");
  EXPECT_EQ(state_.files.folder, (folder_ / "deeper").string());
  choose("model.gguf");
  EXPECT_TRUE(browsing_.take_chosen());
  questions_.asks_first(act::ExportAllChats{});
  list();
  browse("mine");
  browse((folder_ / "deeper").string() + "/", /*is_typed=*/false);
  EXPECT_EQ(state_.files.text, (folder_ / "deeper" / "mine").string()) << "the name goes along";
}

TEST_F(FileBrowsingTest, FoldersThatFilesWereChosenInArePlacesAndWhereTheSameQuestionBegins) {
  fs::create_directories(folder_ / "Downloads");
  ask_model();
  for (int i = 0; i < 9; ++i) {
    const std::string path = write("folder" + std::to_string(i) + "/model.gguf");
    ask_model();
    choose(path);
  }
  EXPECT_EQ(browsing_.recent().size(), kMostRecentFolders);
  EXPECT_EQ(browsing_.recent().front(), (folder_ / "folder8").string());
  fs::remove_all(folder_ / "folder7");
  ask_model();
  EXPECT_EQ(state_.files.folder, (folder_ / "folder8").string());
  std::vector<std::string> places;
  for (const ui::FilePlace& place : state_.files.places) places.push_back(place.name);
  EXPECT_EQ(places, (std::vector<std::string>{"Home", "Downloads", "folder8", "folder6", "folder5", "folder4",
                                              "folder3"}));
}

TEST_F(FileBrowsingTest, TheFoldersOfThePersonAreTheirOwn) {
  fs::create_directories(folder_ / "Bilder und Texte");
  fs::create_directories(folder_ / "config");
  std::ofstream(folder_ / "config" / "user-dirs.dirs")
      << "# a comment\nXDG_DOCUMENTS_DIR=\"$HOME/Bilder und Texte\"\nXDG_DESKTOP_DIR=\"broken\n";
  ask_model();
  ASSERT_EQ(state_.files.places.size(), 2u);
  EXPECT_EQ(state_.files.places[1].name, "Bilder und Texte");
}

TEST_F(FileBrowsingTest, RecordingsAreListedNewestFirst) {
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 3; ++i)
    fs::last_write_time(write("recordings/" + std::to_string(i) + ".rec"), now + std::chrono::seconds(i));
  questions_.apply(act::AskForFile{act::FileWish::kOpenRecording});
  list();
  EXPECT_EQ(names(), (std::vector<std::string>{"2.rec", "1.rec", "0.rec"}));
}

TEST_F(FileBrowsingTest, PromptsOfABatchAreTextsAndTables) {
  const std::string path = write("batch/prompts.csv");
  write("batch/model.gguf");
  write("batch/lines.txt");
  questions_.apply(act::AskForFile{act::FileWish::kPrompts});
  browse((folder_ / "batch").string() + "/");
  EXPECT_EQ(names(), (std::vector<std::string>{"lines.txt", "prompts.csv"}));
  choose(path);
  const auto chosen = browsing_.take_chosen();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::get<act::ReadPrompts>(std::get<act::CompareAction>(*chosen)).path, path);
}

TEST_F(FileBrowsingTest, ATextToCompareIsReadFromAnyFile) {
  const std::string path = write("texts/notes");
  questions_.apply(act::AskForFile{act::FileWish::kTextToCompare});
  browse((folder_ / "texts").string() + "/");
  choose(path);
  const auto chosen = browsing_.take_chosen();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::get<act::ReadTextToCompare>(std::get<act::TwoModelsAction>(*chosen)).path, path);
}

TEST_F(FileBrowsingTest, AnOlderListingChangesNothing) {
  write("a/one.gguf");
  write("b/two.gguf");
  ask_model();
  browsing_.apply(act::BrowseTo{(folder_ / "a").string() + "/"});
  const auto first = browsing_.take_effects().listing;
  browsing_.apply(act::BrowseTo{(folder_ / "b").string() + "/"});
  const auto second = browsing_.take_effects().listing;
  browsing_.take(read_folder(*second, folder_.path()));
  browsing_.take(read_folder(*first, folder_.path()));
  EXPECT_EQ(names(), (std::vector<std::string>{"two.gguf"}));
}

TEST_F(FileBrowsingTest, TheReaderListsTheNewestOnItsThread) {
  write("a/one.gguf");
  std::atomic<int> num_woken = 0;
  FolderReader reader(folder_.path(), [&] { ++num_woken; });
  for (std::uint64_t i = 1; i <= 50; ++i)
    reader.give({.serial = i, .text = (folder_ / "a").string() + "/", .extensions = {".gguf"}});
  std::vector<FolderListed> listed;
  for (int i = 0; i < 2000 && (listed.empty() || listed.back().serial != 50); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (FolderListed& one : reader.take_listed()) listed.push_back(std::move(one));
  }
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed.back().serial, 50u);
  EXPECT_EQ(listed.back().entries.size(), 1u);
  EXPECT_EQ(static_cast<std::size_t>(num_woken), listed.size());
}

}  // namespace
}  // namespace octavo::app
