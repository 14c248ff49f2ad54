// The list of requests as the window shows it.

#include "app/window/memory/request_list.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/spelling_tokenizer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

using octavo::testing::SpellingTokenizer;

// A log that is filled by hand, and the list of it.
class RequestListTest : public ::testing::Test {
 protected:
  RequestListTest() {
    state_.workspace = ui::Workspace::kMemory;
    state_.memory_workspace.page = ui::MemoryPage::kRequests;
    list_.attach(log_);
  }
  ~RequestListTest() override { log_->close(); }

  std::vector<TokenId> spelt(const std::string& text) {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(tokenizer_.token(std::string(1, c)));
    return ids;
  }
  void ask(std::uint64_t number, const std::string& prompt, std::int32_t num_cached = 0) {
    const RequestId id{number};
    log_->add(RequestAccepted{.request_id = id, .prompt_token_ids = spelt(prompt)});
    log_->add(RequestAdmitted{
        .request_id = id, .num_cached_tokens = num_cached, .queue_us = 3'000, .sequence_id = {number}});
  }
  void end(std::uint64_t number, std::int32_t num_prompt, std::int32_t num_cached = 0) {
    RequestMetrics metrics{.queue_us = 3'000, .ttft_us = 103'000, .tpot_us = 20'000, .e2e_us = 203'000};
    metrics.prompt.num_hit_cached = num_cached;
    metrics.prompt.num_computed = num_prompt - num_cached;
    log_->add(OutputFinished{.request_id = {number}, .finish_reason = FinishReason::kLength});
    log_->add(RequestFinished{.request_id = {number}, .metrics = metrics});
  }
  // Turns of the window until `done`.
  bool turn_until(const std::function<bool()>& done) {
    for (int i = 0; i < 4'000 && !done(); ++i) {
      now_us_ += 50'000;
      list_.tick(now_us_, state_);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  }
  const ui::RequestsState& shown() const { return state_.memory_workspace.requests; }

  SpellingTokenizer tokenizer_;
  std::shared_ptr<RequestLog> log_ = std::make_shared<RequestLog>(
      RequestLogOptions{.tokenizer = &tokenizer_, .block_size = 4, .unix_time_ms = [] {
                          return std::int64_t{1'800'000'000'000};
                        }});
  RequestList list_;
  ui::UiState state_;
  std::int64_t now_us_ = 0;
};

TEST_F(RequestListTest, IsLiveWhileARequestRuns) {
  ask(7, "abcdefgh");
  list_.name({7}, {.route = "chat", .client = "Trip", .chat_id = {3}});
  ASSERT_TRUE(
      turn_until([&] { return shown().rows->size() == 1 && shown().rows->front().client == "Trip"; }));
  EXPECT_EQ(shown().rows->front().phase, ui::RequestPhase::kRunning);
  EXPECT_EQ(shown().rows->front().num_prompt, 8);
  EXPECT_EQ(shown().rows->front().chat_id, ChatId{3});
  EXPECT_TRUE(shown().rows->front().is_of_window);
  EXPECT_FALSE(shown().rows->front().account);
  log_->add(TokensGenerated{.request_id = {7}, .token_ids = {5}, .ttft_us = 103'000});
  ASSERT_TRUE(turn_until([&] { return shown().rows->front().num_generated == 1; }));
  EXPECT_DOUBLE_EQ(shown().rows->front().ttft_ms, 103);
  end(7, 8);
  ASSERT_TRUE(turn_until([&] { return shown().rows->front().phase == ui::RequestPhase::kFinished; }));
  const ui::ShownRequest& row = shown().rows->front();
  EXPECT_DOUBLE_EQ(row.queue_ms, 3);
  EXPECT_DOUBLE_EQ(row.prompt_ms, 100);
  EXPECT_DOUBLE_EQ(row.tokens_per_s, 50);
  ASSERT_TRUE(row.account);
  EXPECT_EQ(row.account->num_computed, 8);
  EXPECT_EQ(row.cause, "first_of_its_kind");
}

TEST_F(RequestListTest, RestsWhileItIsNotShown) {
  state_.memory_workspace.page = ui::MemoryPage::kPools;
  ask(1, "abcd");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(list_.tick(now_us_ += 1'000'000, state_));
  EXPECT_FALSE(list_.is_busy());
  EXPECT_TRUE(shown().rows->empty());
}

TEST_F(RequestListTest, ATitleThatChangedCounts) {
  ask(7, "abcd");
  list_.name({7}, {.route = "chat", .client = "New chat", .chat_id = {3}});
  state_.chats.push_back({});
  state_.chats.back().id = ChatId{3};
  state_.chats.back().title = "Trip to Lisbon";
  ASSERT_TRUE(turn_until([&] { return !shown().rows->empty(); }));
  EXPECT_EQ(shown().rows->front().client, "Trip to Lisbon");
}

TEST_F(RequestListTest, TheChosenOneStandsBesideTheNearestEarlierOne) {
  ask(1, "the date is Monday, and here is a long text that stays the same");
  end(1, 64);
  ask(2, "the date is Friday, and here is a long text that stays the same", 12);
  end(2, 64, 12);
  ASSERT_TRUE(turn_until([&] { return shown().rows->size() == 2 && !shown().rows->front().cause.empty(); }));
  list_.choose(2, state_);
  ASSERT_TRUE(turn_until([&] { return shown().detail != nullptr; }));
  const ui::RequestDetail& detail = *shown().detail;
  EXPECT_EQ(detail.request.nearest, 1u);
  EXPECT_EQ(detail.request.num_common, 12);
  EXPECT_EQ(detail.mine_token, "F");
  EXPECT_EQ(detail.theirs_token, "M");
  EXPECT_EQ(detail.mine.ends.size(), 63u);
  EXPECT_EQ(detail.theirs.num_prompt, 63u);
  EXPECT_FALSE(detail.same.empty()) << "the text behind it is the same again";
  EXPECT_GT(detail.request.lost_tokens, 30);
  EXPECT_NE(detail.request.advice.find("date"), std::string::npos) << detail.request.advice;
  list_.choose(0, state_);
  EXPECT_EQ(shown().detail, nullptr);
}

TEST_F(RequestListTest, TheChosenOneIsComparedAnewWhenItHasEnded) {
  ask(1, "abcdefgh");
  ASSERT_TRUE(turn_until([&] { return shown().rows->size() == 1; }));
  list_.choose(1, state_);
  ASSERT_TRUE(turn_until([&] { return shown().detail != nullptr; }));
  EXPECT_FALSE(shown().detail->request.account);
  end(1, 8);
  ASSERT_TRUE(turn_until([&] { return shown().detail->request.account.has_value(); }));
}

TEST_F(RequestListTest, APromptThatIsNotKnownAnyMoreIsSaid) {
  list_.choose(99, state_);
  ASSERT_TRUE(turn_until([&] { return shown().is_gone; }));
  EXPECT_EQ(shown().detail, nullptr);
}

TEST_F(RequestListTest, WhatWasAskedOfAModelBeforeStaysInTheList) {
  ask(1, "abcdefgh");
  end(1, 8);
  log_->close();
  SpellingTokenizer another;
  const auto newer = std::make_shared<RequestLog>(RequestLogOptions{
      .tokenizer = &another, .block_size = 4, .unix_time_ms = [] { return std::int64_t{0}; }});
  list_.attach(newer);
  newer->add(RequestAccepted{.request_id = {2}, .prompt_token_ids = {another.token("x")}});
  ASSERT_TRUE(turn_until([&] { return shown().rows->size() == 2; }));
  EXPECT_EQ(shown().rows->at(0).number, 2u);
  EXPECT_EQ(shown().rows->at(1).number, 1u);
  EXPECT_EQ(shown().rows->at(1).cause, "first_of_its_kind") << "was found out when its model ended";
  newer->close();
}

TEST_F(RequestListTest, IsWrittenAsJsonAndAsCsv) {
  ask(1, "abcdefgh");
  list_.name({1}, {.route = "chat", .client = "One, \"two\"", .chat_id = {3}});
  end(1, 8);
  const test::TemporaryFolder folder;
  const auto written = [&](ui::actions::ExportFormat format, const std::string& name) {
    const std::string path = (folder.path() / name).string();
    list_.export_to({.format = format, .path = path});
    std::vector<WrittenFile> exported;
    EXPECT_TRUE(turn_until([&] {
      for (WrittenFile& one : list_.take_exported()) exported.push_back(std::move(one));
      return !exported.empty();
    }));
    EXPECT_FALSE(exported.front().problem);
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string json = written(ui::actions::ExportFormat::kJson, "requests.json");
  EXPECT_NE(json.find("\"client\": \"One, \\\"two\\\"\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"first_of_its_kind\""), std::string::npos);
  const std::string csv = written(ui::actions::ExportFormat::kCsv, "requests.csv");
  EXPECT_NE(csv.find("\"One, \"\"two\"\"\",chat,chat-3,finished,length,,8,0,0,0,0,8,3,100,103,203,50,"),
            std::string::npos)
      << csv;
}

TEST_F(RequestListTest, AFormulaFromAClientIsTextInATable) {
  ui::ShownRequest row{.number = 1, .client = "=cmd|' /C calc'!A0"};
  EXPECT_NE(requests_csv({row}).find(",'=cmd"), std::string::npos) << requests_csv({row});
}

TEST(BlocksOfRequest, AreThoseOfItsSequencesOnTheDevice) {
  KvSnapshot snapshot;
  snapshot.sequences = {
      {.sequence_id = {1}, .request_id = {4}, .state = SequenceState::kRunning, .block_table = {{3}, {1}}},
      {.sequence_id = {2}, .request_id = {4}, .state = SequenceState::kRunning, .block_table = {{3}, {8}}},
      {.sequence_id = {3}, .request_id = {4}, .state = SequenceState::kSwapped, .block_table = {{5}}},
      {.sequence_id = {4}, .request_id = {6}, .state = SequenceState::kRunning, .block_table = {{7}}}};
  EXPECT_EQ(blocks_of_request(4, snapshot), (std::vector<BlockId>{{1}, {3}, {8}}));
  EXPECT_TRUE(blocks_of_request(9, snapshot).empty());
}

}  // namespace
}  // namespace octavo::app
