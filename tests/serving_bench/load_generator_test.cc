// The load generator against a server that a test scripts: what is sent when, and that the figures are what
// the server did.

#include "app/serving_bench/load_generator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/serving_bench/serving_figures.h"
#include "tests/support/openai_server.h"

namespace octavo::app {
namespace {

using testing::OpenAiServer;

std::string text_chunk(const std::string& text) {
  return R"({"choices":[{"index":0,"text":")" + text + R"(","finish_reason":null}]})";
}
const std::string kEnd = R"({"choices":[{"index":0,"text":"","finish_reason":"length"}]})";
const std::string kUsage =
    R"({"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":4}}})";

std::vector<PlannedChat> chats_of(std::size_t count) {
  std::vector<PlannedChat> chats;
  for (std::size_t i = 0; i < count; ++i)
    chats.push_back(
        {.turns = {{.text = "prompt " + std::to_string(i), .num_tokens = 2, .num_output_tokens = 3}}});
  return chats;
}

LoadTarget target_of(const OpenAiServer& server) {
  return {.name = "scripted",
          .endpoint = {.address = server.address()},
          .url = server.address() + "/completions",
          .model = "tiny"};
}

class LoadTest : public ::testing::Test {
 protected:
  LoadRun run(const OpenAiServer& server, const std::vector<PlannedChat>& chats, std::size_t most_running = 0,
              const GoOnLoading& go_on = {}) {
    return run_load(client_, clock_, target_of(server), chats, std::vector<std::int64_t>(chats.size(), 0),
                    most_running, go_on);
  }
  SteadyClock clock_;
  http::Client client_{clock_};
};

TEST(RequestBody, IsWhatTheOptionsSay) {
  const PlannedChat chat{
      .system_prompt = "system",
      .turns = {{.text = "one", .num_output_tokens = 5}, {.text = "two", .num_output_tokens = 6}}};
  LoadTarget target;
  target.model = "m";
  target.ignore_eos = true;
  target.extra_body = R"({"top_p":0.5,"seed":3})";
  const Json completion = Json::parse(request_body(target, chat, 1, {"first answer"}));
  EXPECT_EQ(completion["prompt"], "system one\nfirst answer\ntwo");
  EXPECT_EQ(completion["max_tokens"], 6);
  EXPECT_EQ(completion["ignore_eos"], true);
  EXPECT_EQ(completion["temperature"], 0.0);
  EXPECT_EQ(completion["top_p"], 0.5);
  EXPECT_EQ(completion["stream_options"]["include_usage"], true);
  target.form = RequestForm::kChatCompletions;
  target.temperature = std::nullopt;
  target.ignore_eos = false;
  const Json messages = Json::parse(request_body(target, chat, 1, {"first answer"}));
  EXPECT_EQ(messages["messages"].dump(),
            R"([{"role":"system","content":"system"},{"role":"user","content":"one"},)"
            R"({"role":"assistant","content":"first answer"},{"role":"user","content":"two"}])");
  EXPECT_FALSE(messages.contains("temperature"));
  EXPECT_FALSE(messages.contains("ignore_eos"));
}

TEST_F(LoadTest, EveryRequestIsAnsweredOnceAndCountedAsTheServerCounts) {
  OpenAiServer server([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {text_chunk("a"), text_chunk("b c"), kEnd, kUsage, "[DONE]"});
  });
  const LoadRun result = run(server, chats_of(40));
  ASSERT_EQ(result.records.size(), 40u);
  std::map<std::size_t, int> answered;
  for (const RequestRecord& record : result.records) {
    ++answered[record.chat];
    EXPECT_FALSE(record.error) << record.error->message;
    EXPECT_TRUE(record.is_counted_by_server);
    EXPECT_EQ(record.num_prompt_tokens, 11);
    EXPECT_EQ(record.num_output_tokens, 6);
    EXPECT_EQ(record.num_cached_tokens, 4);
    EXPECT_EQ(record.piece_us.size(), 2u);
    EXPECT_LE(record.sent_us, record.first_us());
    EXPECT_LE(record.first_us(), record.end_us);
  }
  EXPECT_EQ(answered.size(), 40u);
  EXPECT_EQ(server.requests().size(), 40u);
  EXPECT_EQ(Json::parse(server.requests().front().body)["model"], "tiny");
}

TEST_F(LoadTest, WithoutUsageThePiecesAreCountedAndThatIsSaid) {
  OpenAiServer server([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {text_chunk("a"), text_chunk("b"), text_chunk(""), kEnd, "[DONE]"});
  });
  const LoadRun result = run(server, chats_of(1));
  ASSERT_EQ(result.records.size(), 1u);
  EXPECT_FALSE(result.records[0].is_counted_by_server);
  EXPECT_EQ(result.records[0].num_output_tokens, 2);
  EXPECT_EQ(result.records[0].num_prompt_tokens, 2) << "as asked";
  EXPECT_FALSE(result.records[0].num_cached_tokens);
  EXPECT_FALSE(figures_of(result, {}).is_counted_by_server);
}

TEST_F(LoadTest, NoMoreRunAtATimeThanMay) {
  std::atomic<int> running = 0, most = 0;
  std::mutex mutex;
  std::vector<http::Reply> held;
  OpenAiServer server([&](const http::Request&, const http::Reply& reply) {
    most = std::max(most.load(), ++running);
    // Answers come in threes, so that some always wait.
    const std::lock_guard lock(mutex);
    held.push_back(reply);
    if (held.size() < 3) return;
    for (const http::Reply& each : held) {
      --running;
      OpenAiServer::stream(each, {text_chunk("a"), kEnd, "[DONE]"});
    }
    held.clear();
  });
  const LoadRun result = run(server, chats_of(30), /*most_running=*/3);
  EXPECT_EQ(result.records.size(), 30u);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(result.most_running, 3u);
}

TEST_F(LoadTest, FailuresAreTheirRequestsOwn) {
  OpenAiServer server([](const http::Request& request, const http::Reply& reply) {
    const std::string prompt = Json::parse(request.body)["prompt"];
    if (prompt == "prompt 0") return OpenAiServer::send_json(reply, R"({"error":{"message":"no"}})", 400);
    if (prompt == "prompt 1")
      return OpenAiServer::stream(reply, {text_chunk("a"), R"({"error":{"message":"burst"}})"});
    if (prompt == "prompt 2") return OpenAiServer::stream(reply, {text_chunk("a")});
    if (prompt == "prompt 3") return OpenAiServer::stream(reply, {"not json"});
    OpenAiServer::stream(reply, {text_chunk("a"), kEnd, kUsage, "[DONE]"});
  });
  const LoadRun result = run(server, chats_of(6));
  ASSERT_EQ(result.records.size(), 6u);
  std::map<std::size_t, std::string> errors;
  for (const RequestRecord& record : result.records)
    errors[record.chat] = record.error ? record.error->message : "";
  EXPECT_NE(errors[0].find("answered 400: no"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("burst"), std::string::npos);
  EXPECT_NE(errors[2].find("broke off"), std::string::npos);
  EXPECT_NE(errors[3], "");
  EXPECT_EQ(errors[4] + errors[5], "");
  const ServingFigures figures = figures_of(result, {});
  EXPECT_EQ(figures.num_failed, 4u);
  EXPECT_EQ(figures.num_completed, 2u);
  EXPECT_EQ(figures.num_output_tokens, 12) << "of answers that failed nothing counts";
}

TEST_F(LoadTest, TurnsOfAChatFollowEachOtherAndCarryTheAnswers) {
  OpenAiServer server([](const http::Request& request, const http::Reply& reply) {
    const Json messages = Json::parse(request.body)["messages"];
    OpenAiServer::stream(reply, {R"({"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]})",
                                 R"({"choices":[{"index":0,"delta":{"content":"answer )" +
                                     std::to_string(messages.size()) + R"("},"finish_reason":"stop"}]})",
                                 "[DONE]"});
  });
  std::vector<PlannedChat> chats(3, PlannedChat{.system_prompt = "be brief",
                                                .turns = {{.text = "q1", .num_output_tokens = 4},
                                                          {.text = "q2", .num_output_tokens = 4},
                                                          {.text = "q3", .num_output_tokens = 4}}});
  LoadTarget target = target_of(server);
  target.form = RequestForm::kChatCompletions;
  const LoadRun result = run_load(client_, clock_, target, chats, {0, 0, 0}, 0);
  ASSERT_EQ(result.records.size(), 9u);
  std::map<std::size_t, std::vector<RequestRecord>> by_chat;
  for (const RequestRecord& record : result.records) by_chat[record.chat].push_back(record);
  for (const auto& [chat, records] : by_chat) {
    for (std::size_t turn = 0; turn < 3; ++turn) EXPECT_EQ(records[turn].turn, turn);
    EXPECT_GE(records[1].sent_us, records[0].end_us);
    EXPECT_EQ(records[0].piece_us.size(), 2u) << "thinking is output, too";
  }
  const Json last = Json::parse(server.requests().back().body)["messages"];
  EXPECT_EQ(last.dump(), R"([{"role":"system","content":"be brief"},{"role":"user","content":"q1"},)"
                         R"({"role":"assistant","content":"answer 2"},{"role":"user","content":"q2"},)"
                         R"({"role":"assistant","content":"answer 4"},{"role":"user","content":"q3"}])");
}

TEST_F(LoadTest, AStopCancelsWhatRunsAndKeepsWhatWasMeasured) {
  std::mutex mutex;
  std::vector<http::Reply> held;
  std::atomic<int> num_left = 0;
  OpenAiServer server([&](const http::Request&, const http::Reply& reply) {
    const std::lock_guard lock(mutex);
    if (held.size() == 5) return OpenAiServer::stream(reply, {text_chunk("a"), kEnd, "[DONE]"});
    held.push_back(reply);  // answered by nobody
    OpenAiServer::begin_stream(reply);
    reply.on_client_left([&] { ++num_left; });
  });
  const LoadRun result =
      run(server, chats_of(12), 0, [](const LoadProgress& progress) { return progress.num_done < 7; });
  EXPECT_TRUE(result.is_stopped);
  EXPECT_EQ(result.records.size(), 7u);
  EXPECT_EQ(result.num_cut, 5u);
  EXPECT_EQ(client_.num_open(), 0u);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (num_left < 5 && std::chrono::steady_clock::now() < end) client_.wait(std::chrono::milliseconds(10));
  EXPECT_EQ(num_left, 5);
}

TEST_F(LoadTest, RequestsAreSentAtTheirTimesAndNotBefore) {
  OpenAiServer server([](const http::Request&, const http::Reply& reply) {
    OpenAiServer::stream(reply, {text_chunk("a"), kEnd, "[DONE]"});
  });
  const auto chats = chats_of(20);
  const auto arrivals = arrival_times_us(chats.size(), 200.0, 1.0, 3);
  const LoadRun result = run_load(client_, clock_, target_of(server), chats, arrivals, 0);
  ASSERT_EQ(result.records.size(), 20u);
  for (const RequestRecord& record : result.records) {
    EXPECT_EQ(record.planned_us, arrivals[record.chat]);
    EXPECT_GE(record.sent_us, record.planned_us);
  }
}

}  // namespace
}  // namespace octavo::app
