// The controller with a store beneath it: what a person does is there after the next start.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "app/chat/chat_json.h"
#include "app/window/controller.h"
#include "tests/support/temporary_folder.h"
#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
using app::Chat;
using app::Message;

class StoredChats : public ::testing::Test {
 protected:
  StoredChats() { start(); }
  ~StoredChats() override { end(); }

  void start() {
    app::StoreOptions options;
    options.paths.database = folder_ / "chats" / "chats.db";
    options.unix_time_ms = [] { return std::int64_t{1'800'000'000'000}; };
    engine_ = std::make_unique<FakeEngine>();
    controller_ = std::make_unique<app::Controller>(clock_, settings_, [this] { return now_ms_; });
    store_ = std::make_unique<app::ChatStore>(options, clock_, [] {});
    controller_->attach_store(*store_);
    ASSERT_TRUE(until([this] { return controller_->store_opened(); }));
    controller_->attach_engine(*engine_, plan_at_once(*controller_, *engine_));
  }
  void end() {
    controller_->detach_engine();
    store_.reset();
    controller_.reset();
    engine_.reset();
  }
  void restart() {
    end();
    start();
    ASSERT_TRUE(until([this] {
      return std::all_of(state().chats.begin(), state().chats.end(),
                         [](const auto& s) { return !s.loading; });
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    controller_->poll_store();
  }

  bool until(const std::function<bool()>& done) {
    for (int i = 0; i < 2'000; ++i) {
      controller_->poll_store();
      controller_->poll_engine();
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  template <class Action>
  void apply(Action action) {
    controller_->apply(std::move(action));
  }
  void send(const std::string& text) { apply(act::SendMessage{chat().id, text}); }
  void send_and_finish(const std::string& text) {
    send(text);
    ASSERT_TRUE(until([this] { return !controller_->busy(); }));
  }
  const ui::UiState& state() const { return controller_->state(); }
  const ui::ChatState& chat() const { return *ui::active_chat(state()); }

  test::TemporaryFolder folder_;
  SteadyClock clock_;
  app::Settings settings_ = app::default_settings();
  std::int64_t now_ms_ = 1'800'000'000'000;
  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<app::Controller> controller_;
  std::unique_ptr<app::ChatStore> store_;
};

TEST_F(StoredChats, ChatsWithBranchesComeBackAsTheyWere) {
  send_and_finish("first question");
  apply(act::ChangeSystemPrompt{chat().id, "be brief"});
  apply(act::Regenerate{chat().id, chat().messages.back().id});
  ASSERT_TRUE(until([this] { return !controller_->busy(); }));
  apply(act::ShowSibling{chat().id, chat().messages.back().id, -1});
  apply(act::RenameChat{chat().id, "My title"});
  const auto id = chat().id;
  const std::string before = app::chat_to_json(*controller_->chat(id));
  apply(act::NewChat{});
  send_and_finish("second chat");
  restart();
  ASSERT_EQ(state().chats.size(), 2u);
  EXPECT_EQ(state().chats[0].title, "second chat");
  EXPECT_EQ(state().chats[1].title, "My title");
  EXPECT_EQ(state().chats[1].id, id);
  EXPECT_EQ(app::chat_to_json(*controller_->chat(id)), before);
  apply(act::SelectChat{id});
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_EQ(chat().messages.back().num_siblings, 2);
  EXPECT_EQ(chat().messages.back().sibling_index, 0);
  EXPECT_EQ(chat().messages.back().model, "SmolLM2 135M Instruct");
}

TEST_F(StoredChats, AMessageIsOnTheDiskBeforeTheEngineHearsOfIt) {
  send("a question");
  EXPECT_TRUE(engine_->requests().empty());
  EXPECT_EQ(chat().activity, ui::Activity::kWaiting);
  ASSERT_TRUE(until([this] { return !engine_->requests().empty(); }));
  // As another process sees the file at this moment.
  app::StoreOptions options;
  options.paths.database = folder_ / "chats" / "chats.db";
  const auto copy = folder_ / "copy.db";
  ASSERT_TRUE(app::copy_live_database(options.paths.database, copy));
  std::ifstream log(app::wal_of(copy), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(bytes.find("a question"), std::string::npos);
}

TEST_F(StoredChats, AnAnswerThatWasCutOffIsMarkedAndGoesOnWhereItEnded) {
  engine_->answers = {"one two three four"};
  engine_->steps_allowed = 2;
  send("count");
  ASSERT_TRUE(until([this] { return chat().messages.size() == 2 && chat().messages[1].text.size() == 8; }));
  restart();
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_EQ(chat().messages[1].text, "one two ");
  EXPECT_TRUE(chat().messages[1].interrupted);
  EXPECT_EQ(chat().messages[1].figures.stop_reason, "interrupted");
  EXPECT_FALSE(chat().messages[1].streaming);
  engine_->answers = {"three four"};
  apply(act::ContinueAnswer{chat().id, chat().messages[1].id});
  EXPECT_TRUE(chat().messages[1].streaming);
  ASSERT_TRUE(until([this] { return !controller_->busy(); }));
  const auto& prompt = std::get<ChatPrompt>(engine_->requests().back().prompt);
  EXPECT_TRUE(prompt.continue_answer);
  ASSERT_EQ(prompt.messages.size(), 2u);
  EXPECT_EQ(prompt.messages.back().content, "one two ");
  EXPECT_EQ(prompt.messages.back().token_ids.size(), 2u);
  EXPECT_EQ(chat().messages[1].text, "one two three four");
  EXPECT_FALSE(chat().messages[1].interrupted);
  restart();
  EXPECT_EQ(chat().messages[1].text, "one two three four");
  EXPECT_FALSE(chat().messages[1].interrupted);
  EXPECT_EQ(controller_->chat(chat().id)->messages()[1].token_ids.size(), 5u);
}

// Whatever a question waits for when the window is closed, it is there again and can be answered.
TEST_F(StoredChats, AQuestionThatWaitsForItsPlanIsThereAfterTheNextStart) {
  send_and_finish("first");
  FakeEngine busy({.first_request = 1000});
  controller_->attach_engine(busy, [](const app::PlanWanted&) {});
  send("long enough to be planned");
  send("and one behind it");
  EXPECT_TRUE(busy.requests().empty());
  restart();
  ASSERT_EQ(chat().messages.size(), 3u);
  EXPECT_EQ(chat().messages[2].text, "long enough to be planned");
  EXPECT_EQ(chat().messages[2].offer, ui::AnswerOffer::kGenerate);
  EXPECT_EQ(chat().activity, ui::Activity::kIdle);
  EXPECT_EQ(chat().draft, "and one behind it");
  apply(act::ContinueAnswer{chat().id, chat().messages[2].id});
  ASSERT_TRUE(until([this] { return !controller_->busy(); }));
  ASSERT_EQ(chat().messages.size(), 4u);
  EXPECT_EQ(chat().messages[3].text, "You said: long enough to be planned");
}

TEST_F(StoredChats, AQuestionThatWaitsForASummaryIsThereAfterTheNextStart) {
  FakeEngine small({.max_model_len = 512, .first_request = 1000});
  controller_->attach_engine(small, plan_at_once(*controller_, small));
  apply(act::ChangeContextPolicy{chat().id, ContextPolicy::kSummarise});
  for (int turn = 0; !chat().summarising; ++turn) {
    ASSERT_LT(turn, 100);
    ASSERT_TRUE(until([this] { return !controller_->busy(); }));
    send("question " + std::to_string(turn) + std::string(200, '.'));
  }
  const std::size_t num_messages = chat().messages.size();
  restart();
  ASSERT_EQ(chat().messages.size(), num_messages);
  EXPECT_EQ(chat().messages.back().role, Role::kUser);
  EXPECT_EQ(chat().messages.back().offer, ui::AnswerOffer::kGenerate);
}

TEST_F(StoredChats, AnAnswerThatFilledTheContextStillSaysSo) {
  FakeEngine small({.max_model_len = 512, .first_request = 1000});
  small.answers = {std::string(4'000, 'a')};
  controller_->attach_engine(small, plan_at_once(*controller_, small));
  SamplingParams sampling = chat().sampling;
  sampling.max_tokens = 4'000;
  apply(act::ChangeSampling{chat().id, sampling});
  send_and_finish("tell me all");
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "the context is full");
  restart();
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "the context is full");
  EXPECT_EQ(chat().messages.back().offer, ui::AnswerOffer::kContinue);
}

TEST_F(StoredChats, DeletedMessagesAreGoneAndUndoneOnesThere) {
  for (const char* text : {"one", "two", "three"}) send_and_finish(text);
  apply(act::DeleteMessage{chat().id, chat().messages[4].id, act::DeleteExtent::kBranch});
  apply(act::DeleteMessage{chat().id, chat().messages[1].id, act::DeleteExtent::kMessage});
  apply(act::UndoDelete{});
  apply(act::DeleteMessage{chat().id, chat().messages[2].id, act::DeleteExtent::kMessage});
  const auto texts = [this] {
    std::vector<std::string> texts;
    for (const ui::MessageState& message : chat().messages) texts.push_back(message.text);
    return texts;
  };
  const std::vector<std::string> expected = {"one", "You said: one", "You said: two"};
  EXPECT_EQ(texts(), expected);
  restart();
  EXPECT_EQ(texts(), expected);
  send_and_finish("four");
  restart();
  EXPECT_EQ(chat().messages.size(), 5u);
  std::ifstream file(folder_ / "chats" / "chats.db", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(bytes.find("three"), std::string::npos) << "the text itself is gone";
}

TEST_F(StoredChats, TimesModelsAndEditsComeBack) {
  send_and_finish("question");
  now_ms_ += 60'000;
  apply(act::WriteAnswer{chat().id, chat().messages[1].id, "my words", act::AnswerEnd::kFinished});
  const std::int64_t updated_ms = chat().updated_ms;
  restart();
  EXPECT_EQ(chat().messages[0].created_ms, now_ms_ - 60'000);
  EXPECT_EQ(chat().messages[1].created_ms, now_ms_);
  EXPECT_TRUE(chat().messages[1].edited);
  EXPECT_EQ(chat().updated_ms, updated_ms);
  EXPECT_EQ(chat().model_path, "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  EXPECT_EQ(chat().messages[1].model, "SmolLM2 135M Instruct");
}

TEST_F(StoredChats, AChatThatOnlyBeganAsSettledLeavesNothingBehind) {
  settings_.ui.system_prompt = "Be brief.";
  restart();
  EXPECT_EQ(chat().system_prompt, "Be brief.");
  apply(act::NewChat{});
  restart();
  EXPECT_EQ(chat().id, ChatId{1}) << "no row was written";
  send_and_finish("hello");
  restart();
  EXPECT_EQ(chat().system_prompt, "Be brief.");
  apply(act::ChangeSystemPrompt{chat().id, ""});
  restart();
  EXPECT_EQ(chat().system_prompt, "");
}

TEST_F(StoredChats, StoppingBeforeTheEngineHeardOfItEndsTheAnswer) {
  send("a question");
  apply(act::StopAnswer{chat().id});
  EXPECT_FALSE(controller_->busy());
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped");
  restart();
  EXPECT_TRUE(engine_->requests().empty());
  EXPECT_EQ(chat().messages.front().text, "a question");
  EXPECT_FALSE(chat().messages.back().interrupted);
}

TEST_F(StoredChats, DeletedChatsLieInTheTrashUntilTheyAreErased) {
  send_and_finish("keep me");
  apply(act::NewChat{});
  send_and_finish("throw me away");
  const auto thrown = chat().id;
  apply(act::DeleteChat{thrown});
  EXPECT_EQ(state().deleted, "“throw me away”");
  restart();
  ASSERT_EQ(state().chats.size(), 1u);
  ASSERT_EQ(state().library.trash.size(), 1u);
  EXPECT_EQ(state().library.trash[0].title, "throw me away");
  apply(act::RestoreChat{thrown});
  ASSERT_TRUE(until([this] { return chat().messages.size() == 2; }));
  EXPECT_EQ(chat().id, thrown);
  EXPECT_EQ(state().chats[0].id, thrown);
  apply(act::DeleteChat{thrown});
  apply(act::UndoDelete{});
  EXPECT_EQ(state().chats.size(), 2u);
  apply(act::DeleteChat{thrown});
  apply(act::EmptyTrash{});
  EXPECT_FALSE(state().deleted.has_value());
  restart();
  EXPECT_EQ(state().chats.size(), 1u);
  EXPECT_TRUE(state().library.trash.empty());
  apply(act::NewChat{});
  EXPECT_GT(chat().id, thrown) << "an id was given twice";
}

TEST_F(StoredChats, EmptyChatsLeaveNothingBehind) {
  apply(act::NewChat{});
  apply(act::NewChat{});
  restart();
  EXPECT_EQ(state().chats.size(), 1u);
  EXPECT_EQ(chat().id, ChatId{1});
}

TEST_F(StoredChats, DraftsFoldersPinsOrderAndPresetsComeBack) {
  send_and_finish("one");
  const auto one = chat().id;
  apply(act::NewChat{});
  send_and_finish("two");
  const auto two = chat().id;
  apply(act::ChangeDraft{two, "half a tho"});
  apply(act::CreateFolder{"Work"});
  const auto folder = state().library.folders.at(0).id;
  apply(act::MoveToFolder{one, folder});
  apply(act::PinChat{two, true});
  apply(act::MoveChat{one, two});
  SamplingParams cold;
  cold.temperature = 0;
  cold.max_tokens = 9;
  const TemplateValues values = {{"reasoning_effort", "low"}};
  apply(act::SavePreset{{{}, "Terse", "One word.", cold, values}});
  restart();
  ASSERT_EQ(state().chats.size(), 2u);
  EXPECT_EQ(state().chats[0].id, one);
  EXPECT_EQ(state().chats[0].folder, folder);
  EXPECT_TRUE(state().chats[1].pinned);
  EXPECT_EQ(state().chats[1].draft, "half a tho");
  EXPECT_EQ(state().library.folders.at(0).name, "Work");
  ASSERT_EQ(state().library.presets.size(), 1u);
  apply(act::ApplyPreset{one, state().library.presets[0].id});
  apply(act::DeleteFolder{folder});
  apply(act::ErasePreset{state().library.presets[0].id});
  restart();
  EXPECT_EQ(state().chats[0].system_prompt, "One word.");
  EXPECT_EQ(state().chats[0].sampling.max_tokens, 9);
  EXPECT_EQ(state().chats[0].template_values, values);
  EXPECT_EQ(state().chats[0].folder, FolderId{});
  EXPECT_TRUE(state().library.folders.empty());
  EXPECT_TRUE(state().library.presets.empty());
}

TEST_F(StoredChats, SearchFindsTitlesAndTextsAndOpensTheBranch) {
  engine_->answers = {"the needle is here", "another answer"};
  send_and_finish("haystack");
  const auto id = chat().id;
  apply(act::Regenerate{id, chat().messages.back().id});
  ASSERT_TRUE(until([this] { return !controller_->busy(); }));
  apply(act::NewChat{});
  apply(act::SearchChats{"NEEDLE"});
  ASSERT_TRUE(until([this] { return !state().library.search.running; }));
  ASSERT_EQ(state().library.search.hits.size(), 1u);
  const ui::SearchHitState hit = state().library.search.hits[0];
  EXPECT_EQ(hit.chat_id, id);
  EXPECT_EQ(hit.num_branches, 2);
  EXPECT_FALSE(hit.on_shown_path);
  apply(act::ShowMessage{hit.chat_id, hit.message_id});
  EXPECT_EQ(chat().id, id);
  EXPECT_EQ(chat().messages.back().text, "the needle is here");
  EXPECT_EQ(state().library.focus.message_id, hit.message_id);
  apply(act::SearchChats{"hayst"});
  EXPECT_EQ(state().library.search.hits.at(0).message_id, MessageId{}) << "titles come first, and at once";
}

TEST_F(StoredChats, ExportsAndImportsGoThroughFiles) {
  send_and_finish("export me / please");
  apply(act::ExportChat{chat().id, act::ChatFormat::kMarkdown, ""});
  auto effects = controller_->take_effects();
  EXPECT_TRUE(effects.chats.exports.empty()) << "it is asked first";
  ASSERT_TRUE(effects.listing);
  EXPECT_TRUE(effects.listing->text.ends_with("export me _ please.md")) << effects.listing->text;
  apply(act::CloseFileBrowser{});
  apply(act::ExportAllChats{"/tmp/all.json"});
  effects = controller_->take_effects();
  ASSERT_EQ(effects.chats.exports.size(), 1u);
  controller_->take_imported(effects.chats.exports[0].chats);
  EXPECT_EQ(state().chats.size(), 2u);
  EXPECT_EQ(chat().messages.size(), 2u);
  restart();
  EXPECT_EQ(state().chats.size(), 2u);
}

// More than two parts of a chat that goes to the disk in parts.
Chat very_long_chat() {
  Chat chat;
  chat.updated_ms = 1'700'000'000'000;
  for (std::uint64_t i = 0; i < 140'000; ++i) {
    Message message;
    message.parent = MessageId{i};
    message.role = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    if (i % 2 == 1) message.finish_reason = FinishReason::kStop;
    message.content = "message " + std::to_string(i);
    chat.add(std::move(message));
  }
  return chat;
}

TEST_F(StoredChats, AVeryLongChatGoesToTheDiskInParts) {
  const std::string exported = app::chat_to_json(very_long_chat());
  controller_->take_imported({very_long_chat()});
  const ChatId id = chat().id;
  EXPECT_EQ(chat().messages.size(), 140'000u) << "it is drawn before it is saved";
  EXPECT_FALSE(controller_->all_given_to_store());
  ASSERT_TRUE(until([this] { return controller_->all_given_to_store(); }));
  EXPECT_EQ(chat().updated_ms, 1'700'000'000'000) << "its later parts are nothing new";
  restart();
  apply(act::SelectChat{id});
  ASSERT_TRUE(until([this] { return !chat().loading; }));
  EXPECT_EQ(chat().updated_ms, 1'700'000'000'000);
  Chat kept = *controller_->chat(id);
  kept.updated_ms = 1'700'000'000'000;
  kept.context_begin = app::kRootMessage;  // what the meter found; it is not stored
  EXPECT_TRUE(app::chat_to_json(kept) == exported);
}

TEST_F(StoredChats, WhatOfAVeryLongChatIsNotGivenYetIsGivenAtTheEnd) {
  controller_->take_imported({very_long_chat()});
  const ChatId id = chat().id;
  EXPECT_FALSE(controller_->all_given_to_store());
  controller_->finish_saving();
  EXPECT_TRUE(controller_->all_given_to_store());
  restart();
  apply(act::SelectChat{id});
  ASSERT_TRUE(until([this] { return !chat().loading; }));
  EXPECT_EQ(chat().messages.size(), 140'000u);
}

TEST_F(StoredChats, AQuestionInAChatThatIsHalfwayToTheDiskTakesAllOfItAlong) {
  controller_->take_imported({very_long_chat()});
  const ChatId id = chat().id;
  send_and_finish("and now?");
  EXPECT_TRUE(controller_->all_given_to_store());
  EXPECT_EQ(chat().updated_ms, now_ms_) << "a question is something new";
  restart();
  apply(act::SelectChat{id});
  ASSERT_TRUE(until([this] { return !chat().loading; }));
  EXPECT_EQ(chat().messages.size(), 140'002u);
}

}  // namespace
}  // namespace octavo::testing
