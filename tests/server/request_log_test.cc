#include "app/requests/request_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/spelling_tokenizer.h"

namespace octavo::app {
namespace {

using octavo::testing::SpellingTokenizer;
using LoggedIds = std::vector<TokenId>;

// A log with a small pool's block size, and requests whose lives are one call each.
class RequestLogTest : public ::testing::Test {
 protected:
  RequestLog log_{{.tokenizer = &tokenizer_, .block_size = 4}};

  LoggedIds logged_words(const std::string& text) {
    LoggedIds ids;
    std::string word;
    for (const char c : text) {
      if (c == ' ' && !word.empty()) ids.push_back(tokenizer_.token(std::exchange(word, "")));
      word += c;
    }
    if (!word.empty()) ids.push_back(tokenizer_.token(word));
    return ids;
  }

  static RequestOrigin logged_origin(std::uint64_t number, const std::string& client_key = "") {
    return {.id = "cmpl-" + std::to_string(number),
            .route = "/v1/completions",
            .client = "test/1",
            .client_key = client_key,
            .unix_ms = 1'000'000 + static_cast<std::int64_t>(number) * 1000};
  }

  struct Life {
    std::int32_t num_reused = 0;
    MissCause cause = MissCause::kFirstUse;
    std::uint64_t evicted_by = 0;
    LoggedIds answer = {};
    std::string client_key = {};
  };
  void live(RequestLog& log, std::uint64_t number, const LoggedIds& prompt, const Life& life) {
    const RequestId request_id{number};
    log.begin(request_id, logged_origin(number, life.client_key));
    log.add(RequestAccepted{.request_id = request_id, .prompt_token_ids = prompt});
    log.add(RequestAdmitted{.request_id = request_id,
                            .num_cached_tokens = life.num_reused,
                            .queue_us = 2000,
                            .sequence_id = {number * 10}});
    if (!life.answer.empty())
      log.add(TokensGenerated{.request_id = request_id,
                              .output_index = 0,
                              .token_ids = life.answer,
                              .logprobs = {},
                              .top_logprobs = {},
                              .text = "",
                              .ttft_us = 12'000});
    log.add(OutputFinished{.request_id = request_id});
    RequestMetrics metrics{.queue_us = 2000, .ttft_us = 12'000, .tpot_us = 4000, .e2e_us = 52'000};
    metrics.prompt.num_hit_cached = life.num_reused;
    metrics.prompt.num_computed = static_cast<std::int32_t>(prompt.size()) - life.num_reused;
    metrics.prefix_miss = {
        .cause = life.cause, .position = life.num_reused, .evicted_step = 3, .evicted_by = life.evicted_by};
    log.add(RequestFinished{.request_id = request_id, .prompt_logprobs = {}, .metrics = metrics});
  }
  void live(std::uint64_t number, const LoggedIds& prompt) { live(log_, number, prompt, {}); }
  void live(std::uint64_t number, const LoggedIds& prompt, const Life& life) {
    live(log_, number, prompt, life);
  }

  // What is told of the newest request's prompt.
  Json newest_difference() { return log_.to_json()["data"][0]["difference"]; }

  SpellingTokenizer tokenizer_;
};

TEST_F(RequestLogTest, AnEmptyLogIsAnEmptyList) {
  EXPECT_EQ(dump(log_.to_json()), R"({"object":"list","data":[],"causes":{},)"
                                  R"("known":{"requests":0,"token_ids":0,"forgotten_prompts":0}})");
}

TEST_F(RequestLogTest, TellsALifeAsItGoes) {
  const RequestId request_id{7};
  RequestOrigin origin = logged_origin(7, "chat-1");
  origin.notes = {"dropped a billing header line"};
  log_.begin(request_id, origin);
  const auto told = [&](const char* name) { return log_.to_json()["data"][0][name]; };
  EXPECT_EQ(told("state"), "waiting");
  EXPECT_TRUE(told("difference").is_null());
  EXPECT_EQ(dump(told("prompt")),
            R"({"tokens":null,"cached":null,"computed":null,"hit_live":null,"hit_cached":null,)"
            R"("copied_partial":null,"restored":null})");
  log_.add(RequestAccepted{.request_id = request_id, .prompt_token_ids = logged_words("one two three")});
  EXPECT_EQ(told("state"), "waiting");
  EXPECT_EQ(told("prompt")["tokens"], 3);
  log_.add(RequestAdmitted{
      .request_id = request_id, .num_cached_tokens = 2, .queue_us = 1500, .sequence_id = {4}});
  EXPECT_EQ(told("state"), "running");
  EXPECT_EQ(told("prompt")["cached"], 2);
  EXPECT_EQ(told("queue_ms"), 1.5);
  EXPECT_TRUE(told("ttft_ms").is_null());
  log_.add(TokensGenerated{.request_id = request_id,
                           .output_index = 0,
                           .token_ids = {5, 6},
                           .logprobs = {},
                           .top_logprobs = {},
                           .text = "",
                           .ttft_us = 9000});
  EXPECT_EQ(told("ttft_ms"), 9.0);
  EXPECT_TRUE(told("difference")["cause"].is_null());  // the account comes with the end
  log_.add(
      OutputFinished{.request_id = request_id, .output_index = 0, .finish_reason = FinishReason::kLength});
  RequestMetrics metrics{
      .queue_us = 1500, .ttft_us = 9000, .tpot_us = 4000, .e2e_us = 13'000, .num_preemptions = 1};
  metrics.prompt = {.num_computed = 1, .num_hit_live = 1, .num_copied_partial = 1};
  metrics.prefix_miss = {.cause = MissCause::kFirstUse, .position = 2};
  log_.add(RequestFinished{.request_id = request_id, .prompt_logprobs = {}, .metrics = metrics});
  EXPECT_EQ(
      dump(log_.to_json()["data"][0]),
      R"({"id":"cmpl-7","number":7,"arrived_ms":1007000,"route":"/v1/completions","client":"test/1",)"
      R"("client_key":"chat-1","notes":["dropped a billing header line"],"state":"finished","finish":"length",)"
      R"("error":null,"prompt":{"tokens":3,"cached":2,"computed":1,"hit_live":1,"hit_cached":0,)"
      R"("copied_partial":1,"restored":0},"generated_tokens":2,"num_preemptions":1,"queue_ms":1.5,"ttft_ms":9.0,)"
      R"("e2e_ms":13.0,"tokens_per_second":250.0,"difference":{"request":null,"number":null,"common_tokens":0,)"
      R"("position":null,"in_answer":null,"mine":null,"theirs":null,"cause":{"name":"none",)"
      R"("sentence":"All that may be reused of this prompt was reused."},"lost_tokens":0,"lost_seconds":0.0,)"
      R"("advice":"Nothing to do."}})");
}

TEST_F(RequestLogTest, AFailureIsTold) {
  log_.begin({3}, logged_origin(3));
  log_.add(RequestFailed{.request_id = {3}, .error = {ErrorCode::kTooLong, "9 tokens > 8"}, .metrics = {}});
  const Json told = log_.to_json()["data"][0];
  EXPECT_EQ(told["state"], "failed");
  EXPECT_EQ(told["error"], "9 tokens > 8");
  EXPECT_TRUE(told["difference"].is_null());
  log_.add(RequestAccepted{.request_id = {3}, .prompt_token_ids = {1}});  // nothing comes behind an end
  EXPECT_EQ(log_.to_json()["known"]["token_ids"], 0);
}

TEST_F(RequestLogTest, TextsOfClientsAreCutAndPrintable) {
  RequestOrigin origin = logged_origin(1);
  origin.client = "evil\x1b[2J\r\n" + std::string(1000, 'x');
  origin.client_key = "\xff";
  origin.notes.assign(1000, "note\n");
  log_.begin({1}, origin);
  const Json told = log_.to_json()["data"][0];
  const auto client = told["client"].get<std::string>();
  EXPECT_TRUE(client.starts_with("evil\\x1b[2J\\x0d\\x0axxx")) << client;
  EXPECT_LE(client.size(), 210u);
  EXPECT_EQ(told["client_key"], "\\xff");
  EXPECT_LE(told["notes"].size(), 16u);
  EXPECT_EQ(told["notes"][0], "note\\x0a");
}

TEST_F(RequestLogTest, EventsOfOthersAreLeftOut) {
  log_.add(RequestAccepted{.request_id = {5}, .prompt_token_ids = {1, 2}});
  EXPECT_EQ(log_.to_json()["known"]["token_ids"], 0);
}

TEST_F(RequestLogTest, BothTextsStandAroundTheFirstDifference) {
  live(1, logged_words("a b c d e f g h"));
  live(2, logged_words("a b c d e F g h"), {.num_reused = 4});
  const Json told = newest_difference();
  EXPECT_EQ(told["request"], "cmpl-1");
  EXPECT_EQ(told["number"], 1);
  EXPECT_EQ(told["common_tokens"], 5);
  EXPECT_EQ(told["position"], 5);
  EXPECT_EQ(dump(told["mine"]), R"({"before":"a b c d e","token":" F","after":" g h","part":null})");
  EXPECT_EQ(dump(told["theirs"]), R"({"before":"a b c d e","token":" f","after":" g h","part":null})");
  EXPECT_EQ(told["cause"]["name"], "differs");
  EXPECT_EQ(told["cause"]["sentence"], "The prompt differs from cmpl-1 at token 5.");
  EXPECT_EQ(told["lost_tokens"], 1);  // the fifth, which stood in a block that is not whole
  EXPECT_DOUBLE_EQ(told["lost_seconds"].get<double>(), 0.010 / 4);
}

TEST_F(RequestLogTest, DifferencesAtTheFirstAndTheLastToken) {
  live(1, logged_words("a b c d e f g h"));
  live(2, logged_words("A b c d e f g h"));
  EXPECT_TRUE(newest_difference()["request"].is_null());
  EXPECT_EQ(newest_difference()["common_tokens"], 0);
  EXPECT_EQ(newest_difference()["cause"]["name"], "first_of_its_kind");
  EXPECT_EQ(newest_difference()["cause"]["sentence"], "First request of its kind.");
  live(3, logged_words("a b c d e f g H"), {.num_reused = 7});
  EXPECT_EQ(newest_difference()["position"], 7);
  EXPECT_EQ(newest_difference()["mine"]["token"], " H");
  EXPECT_EQ(newest_difference()["mine"]["after"], "");
  EXPECT_EQ(newest_difference()["lost_tokens"], 0);
}

TEST_F(RequestLogTest, PrefixesAndTheSamePromptAgain) {
  live(1, logged_words("a b c d e f"));
  live(2, logged_words("a b c d e f g h i j"), {.num_reused = 6});  // goes on
  EXPECT_EQ(newest_difference()["cause"]["name"], "continues");
  EXPECT_EQ(newest_difference()["position"], 6);
  EXPECT_EQ(newest_difference()["theirs"]["token"], "");
  live(3, logged_words("a b c d"), {.num_reused = 3});  // ends before
  EXPECT_EQ(newest_difference()["cause"]["name"], "none");
  EXPECT_EQ(newest_difference()["mine"]["token"], "");
  EXPECT_EQ(newest_difference()["theirs"]["token"], " e");
  live(4, logged_words("a b c d e f g h i j"), {.num_reused = 9});  // the same again
  EXPECT_EQ(newest_difference()["request"], "cmpl-2");
  EXPECT_EQ(newest_difference()["common_tokens"], 10);
  EXPECT_EQ(newest_difference()["cause"]["name"], "none");
  EXPECT_EQ(newest_difference()["lost_tokens"], 0);
}

TEST_F(RequestLogTest, AnAnswerCountsAsWhatCanBeFoundAgain) {
  live(1, logged_words("a b c d e"), {.answer = logged_words(" f g h i")});
  live(2, logged_words("a b c d e f g X i j k l"), {.num_reused = 7});
  EXPECT_EQ(newest_difference()["in_answer"], true);
  EXPECT_EQ(newest_difference()["position"], 7);
  EXPECT_EQ(newest_difference()["theirs"]["token"], " h");
  EXPECT_EQ(newest_difference()["cause"]["sentence"],
            "The prompt differs from cmpl-1, in its answer, at token 7.");
}

TEST_F(RequestLogTest, AnAnswerThatCameTooLateDoesNotCount) {
  const LoggedIds prompt = logged_words("a b c d e");
  log_.begin({1}, logged_origin(1));
  log_.add(RequestAccepted{.request_id = {1}, .prompt_token_ids = prompt});
  live(2, logged_words("a b c d e f g h i j"), {});
  log_.add(TokensGenerated{.request_id = {1},
                           .output_index = 0,
                           .token_ids = logged_words(" f g"),
                           .logprobs = {},
                           .top_logprobs = {},
                           .text = ""});
  log_.add(RequestFinished{.request_id = {1}, .prompt_logprobs = {}, .metrics = {}});
  EXPECT_EQ(newest_difference()["common_tokens"], 5);
  EXPECT_EQ(newest_difference()["cause"]["name"], "being_computed");
}

TEST_F(RequestLogTest, OnlyEarlierPromptsAreCompared) {
  live(1, logged_words("a b c d e"));
  live(2, logged_words("a b c d e"), {.num_reused = 4});
  EXPECT_TRUE(log_.to_json()["data"][1]["difference"]["request"].is_null());
}

TEST_F(RequestLogTest, OfEquallyNearThoseOfTheSameClientThenTheNewest) {
  live(1, logged_words("a b c d e 1"), {.client_key = "mine"});
  live(2, logged_words("a b c d e 2"), {.client_key = "other"});
  live(3, logged_words("a b c d e 3"), {});
  live(4, logged_words("a b c d e 4"), {.client_key = "mine"});
  EXPECT_EQ(newest_difference()["request"], "cmpl-1");
  live(5, logged_words("a b c d e 5"), {});  // no key is no client
  EXPECT_EQ(newest_difference()["request"], "cmpl-4");
}

TEST_F(RequestLogTest, WhoEvictedTheBlocksIsNamed) {
  live(1, logged_words("a b c d e f g h i"));
  live(2, logged_words("q r s t"));
  live(3, logged_words("a b c d e f g h j"),
       {.num_reused = 4, .cause = MissCause::kEvicted, .evicted_by = 20});
  EXPECT_EQ(newest_difference()["cause"]["name"], "evicted");
  EXPECT_EQ(newest_difference()["cause"]["sentence"],
            "The blocks behind token 4 were evicted for cmpl-2, which began 1.0 s earlier.");
  EXPECT_EQ(newest_difference()["lost_tokens"], 4);
  live(4, logged_words("a b c d e f g h k"),
       {.num_reused = 4, .cause = MissCause::kEvicted, .evicted_by = 25});
  EXPECT_EQ(newest_difference()["cause"]["sentence"],
            "The blocks behind token 4 were evicted for a request that is no longer known.");
}

TEST_F(RequestLogTest, LogProbabilitiesOfThePromptDoNotReadTheCache) {
  live(1, logged_words("a b c d"));
  log_.begin({2}, logged_origin(2));
  log_.add(RequestAccepted{.request_id = {2}, .prompt_token_ids = logged_words("a b c d")});
  RequestMetrics metrics{.ttft_us = 1000, .e2e_us = 1000};
  metrics.prompt.num_computed = 4;
  metrics.prefix_miss.cause = MissCause::kNotRead;
  log_.add(RequestFinished{.request_id = {2}, .prompt_logprobs = {std::nullopt, -1.0f}, .metrics = metrics});
  EXPECT_EQ(newest_difference()["cause"]["name"], "not_read");
  EXPECT_TRUE(newest_difference()["cause"]["sentence"].get<std::string>().starts_with("Prompt log-prob"));
  EXPECT_EQ(newest_difference()["lost_tokens"], 3);
}

TEST_F(RequestLogTest, ATimestampInTheSystemPromptIsNamedWithWhatItCosts) {
  std::string rest;
  for (int i = 0; i < 50; ++i) rest += " w" + std::to_string(i);
  live(1, logged_words("You are kind. Today is 2026-12-10." + rest));
  live(2, logged_words("You are kind. Today is 2026-12-11." + rest + " more"), {.num_reused = 4});
  const Json told = newest_difference();
  EXPECT_EQ(told["mine"]["token"], " 2026-12-11.");
  EXPECT_EQ(told["theirs"]["token"], " 2026-12-10.");
  EXPECT_EQ(told["lost_tokens"], 1 + 50);
  EXPECT_EQ(told["advice"],
            "The differing text looks like a date or a time: move it to the end of the prompt; 50 tokens "
            "behind the "
            "difference are the same as before.");
}

TEST_F(RequestLogTest, CausesAreSummedUp) {
  live(1, logged_words("a b c d e f g h"));
  live(2, logged_words("a b c d e F g h"), {.num_reused = 4});
  live(3, logged_words("a b c d e G g h"), {.num_reused = 4});
  EXPECT_EQ(
      dump(log_.to_json()["causes"]),
      R"({"differs":{"requests":2,"lost_tokens":2},"first_of_its_kind":{"requests":1,"lost_tokens":0}})");
  EXPECT_EQ(log_.to_json(1)["data"].size(), 1u);
  EXPECT_EQ(log_.to_json(1)["data"][0]["id"], "cmpl-3");
}

// ---- bounds

TEST_F(RequestLogTest, TheOldestRequestsGoAndRunningOnesStay) {
  RequestLog log({.tokenizer = &tokenizer_, .block_size = 4, .most_requests = 3});
  log.begin({1}, logged_origin(1));
  log.add(RequestAccepted{.request_id = {1}, .prompt_token_ids = {1, 2}});
  for (std::uint64_t number = 2; number <= 9; ++number) live(log, number, {3, 4}, {});
  const Json told = log.to_json();
  ASSERT_EQ(told["data"].size(), 3u);
  EXPECT_EQ(told["data"][0]["id"], "cmpl-9");
  EXPECT_EQ(told["data"][1]["id"], "cmpl-8");
  EXPECT_EQ(told["data"][2]["id"], "cmpl-1");
  EXPECT_EQ(told["known"]["forgotten_prompts"], 6);
  EXPECT_EQ(told["known"]["token_ids"], 6);
  for (std::uint64_t number = 10; number <= 15; ++number) log.begin({number}, logged_origin(number));
  EXPECT_EQ(log.to_json()["data"].size(), 3u);
}

TEST_F(RequestLogTest, TheIdsOfTheOldestGoAndThatIsSaid) {
  RequestLog log({.tokenizer = &tokenizer_, .block_size = 4, .most_token_ids = 20});
  const LoggedIds prompt = logged_words("a b c d e f g h");
  live(log, 1, prompt, {});
  live(log, 2, prompt, {.num_reused = 7});
  const std::string known = dump(log.to_json()["data"][0]["difference"]);
  live(log, 3, prompt, {.num_reused = 7});
  live(log, 4, prompt, {.num_reused = 7, .answer = {5, 6, 7, 8}});
  const Json told = log.to_json();
  EXPECT_LE(told["known"]["token_ids"].get<std::int64_t>(), 20);
  EXPECT_EQ(told["known"]["requests"], 4);
  EXPECT_EQ(told["known"]["forgotten_prompts"], 2);
  EXPECT_EQ(told["data"][0]["difference"]["request"], "cmpl-3");
  // Asked before it went, and so still known; the next was never asked in time.
  EXPECT_EQ(dump(told["data"][2]["difference"]), known);
  EXPECT_NE(known.find("cmpl-1"), std::string::npos);
}

TEST_F(RequestLogTest, WhatNobodyAskedInTimeIsNoLongerKnown) {
  RequestLog log({.tokenizer = &tokenizer_, .block_size = 4, .most_token_ids = 10});
  live(log, 1, logged_words("a b c d e f g h"), {});
  live(log, 2, logged_words("q r s t u v w x"), {});
  const Json told = log.to_json();
  EXPECT_EQ(told["data"][1]["difference"]["cause"]["name"], "no_longer_known");
  EXPECT_TRUE(told["data"][1]["difference"]["lost_tokens"].is_null());
  EXPECT_EQ(told["data"][1]["prompt"]["computed"], 8);
  EXPECT_EQ(told["data"][0]["difference"]["cause"]["sentence"],
            "First request of its kind among the prompts that are still known.");
  live(log, 3, LoggedIds(11, 5), {.answer = LoggedIds(100, 6)});  // alone too long
  EXPECT_EQ(log.to_json()["known"]["token_ids"], 0);
}

TEST_F(RequestLogTest, BoundsHoldWhateverComes) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    RequestLog log({.tokenizer = &tokenizer_, .block_size = 4, .most_requests = 8, .most_token_ids = 64});
    std::uint64_t newest = 0;
    for (int i = 0; i < 300; ++i) {
      const RequestId some{newest - std::min<std::uint64_t>(newest, random() % 12)};
      switch (random() % 4) {
        case 0: log.begin({++newest}, logged_origin(newest)); break;
        case 1:
          log.add(RequestAccepted{.request_id = {newest}, .prompt_token_ids = LoggedIds(random() % 30, 1)});
          break;
        case 2:
          log.add(TokensGenerated{.request_id = some,
                                  .output_index = static_cast<std::int32_t>(random() % 2),
                                  .token_ids = LoggedIds(random() % 5, 2),
                                  .logprobs = {},
                                  .top_logprobs = {},
                                  .text = ""});
          break;
        case 3: log.add(RequestFinished{.request_id = some, .prompt_logprobs = {}, .metrics = {}}); break;
      }
      if (i % 10 != 0) continue;
      const Json known = log.to_json()["known"];
      ASSERT_LE(known["requests"].get<std::size_t>(), 8u);
      ASSERT_LE(known["token_ids"].get<std::size_t>(), 64u);
    }
  }
}

TEST_F(RequestLogTest, TheNearestOfTheLogIsThatOfABruteForce) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    RequestLog log({.tokenizer = &tokenizer_, .block_size = 4});
    std::vector<LoggedIds> prompts;
    for (std::uint64_t number = 1; number <= 40; ++number) {
      LoggedIds prompt(1 + random() % 12);
      for (TokenId& token_id : prompt) token_id = static_cast<TokenId>(random() % 3);
      live(log, number, prompt, {});
      prompts.push_back(prompt);
    }
    const Json told = log.to_json(1000)["data"];
    ASSERT_EQ(told.size(), prompts.size());
    for (std::size_t mine = 0; mine < prompts.size(); ++mine) {
      std::size_t best = 0, best_common = 0;
      for (std::size_t theirs = 0; theirs < mine; ++theirs) {
        std::size_t num_common = 0;
        while (num_common < std::min(prompts[mine].size(), prompts[theirs].size()) &&
               prompts[mine][num_common] == prompts[theirs][num_common])
          ++num_common;
        if (num_common > 0 && num_common >= best_common) best = theirs, best_common = num_common;
      }
      const Json& difference = told[prompts.size() - 1 - mine]["difference"];
      ASSERT_EQ(difference["common_tokens"], best_common) << mine;
      if (best_common > 0) {
        ASSERT_EQ(difference["number"], best + 1) << mine;
      }
    }
  }
}

TEST_F(RequestLogTest, ReadersDoNotDisturbEvents) {
  const LoggedIds prompt = logged_words("a b c d e f g h");
  std::atomic<bool> is_over{false};
  std::size_t num_most = 0;
  std::thread reader([&] {
    do num_most = std::max(num_most, log_.to_json()["data"].size());
    while (!is_over);
  });
  for (std::uint64_t number = 1; number <= 100; ++number) live(number, prompt, {.answer = {1, 2}});
  is_over = true;
  reader.join();
  EXPECT_LE(num_most, 50u);
  const Json told = log_.to_json();
  EXPECT_EQ(told["known"]["requests"], 100);
  EXPECT_EQ(told["data"][0]["difference"]["request"], "cmpl-99");
}

// ---- who sees what

// A log as the window keeps it: what nobody began is the person's.
class WindowLogTest : public RequestLogTest {
 protected:
  RequestLog window_{
      {.tokenizer = &tokenizer_, .block_size = 4, .unix_time_ms = [] { return std::int64_t{5'000}; }}};

  void chat(std::uint64_t number, const LoggedIds& prompt, std::int32_t num_reused = 0) {
    const RequestId request_id{number};
    window_.add(RequestAccepted{.request_id = request_id, .prompt_token_ids = prompt});
    window_.name(request_id, "chat", "Trip to Lisbon", "chat-3");
    window_.add(RequestAdmitted{
        .request_id = request_id, .num_cached_tokens = num_reused, .sequence_id = {number * 10}});
    window_.add(TokensGenerated{.request_id = request_id, .token_ids = {9}, .ttft_us = 12'000});
    RequestMetrics metrics{.queue_us = 2000, .ttft_us = 12'000, .e2e_us = 52'000};
    metrics.prompt.num_hit_cached = num_reused;
    metrics.prompt.num_computed = static_cast<std::int32_t>(prompt.size()) - num_reused;
    window_.add(RequestFinished{.request_id = request_id, .metrics = metrics});
  }
};

TEST_F(WindowLogTest, WhatNobodyBeganIsThePersonsAndIsNamedLater) {
  chat(1, logged_words("a b c d e"));
  const auto requests = window_.look(Principal::kPerson, 10);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].origin.principal, Principal::kPerson);
  EXPECT_EQ(requests[0].origin.client, "Trip to Lisbon");
  EXPECT_EQ(requests[0].origin.unix_ms, 5'000);
  EXPECT_EQ(requests[0].num_prompt, 5u);
}

TEST_F(WindowLogTest, EventsMayComeBeforeTheOriginOfAClient) {
  window_.add(RequestAccepted{.request_id = {4}, .prompt_token_ids = logged_words("a b c")});
  window_.begin({4}, logged_origin(4));
  const auto requests = window_.look(Principal::kPerson, 10);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].origin.principal, Principal::kClient);
  EXPECT_EQ(requests[0].origin.id, "cmpl-4");
  EXPECT_EQ(requests[0].num_prompt, 3u);
}

TEST_F(WindowLogTest, ThePersonSeesTheNearestOfAllAndAClientThatOfClients) {
  live(window_, 1, logged_words("a b x y z"), {});
  chat(2, logged_words("a b c d e f g h"));
  live(window_, 3, logged_words("a b c d e f G H"), {.num_reused = 1});  // like a client by less than a block
  const auto person = window_.look(Principal::kPerson, 10);
  ASSERT_TRUE(person[0].difference && person[0].difference->nearest);
  EXPECT_EQ(person[0].difference->nearest->value, 2u);
  EXPECT_EQ(person[0].difference->num_common, 6u);
  EXPECT_EQ(person[0].difference->nearest_name, "request 2 (Trip to Lisbon)");
  const Json clients = window_.to_json(10, Principal::kClient);
  EXPECT_EQ(clients["data"][0]["difference"]["request"], "cmpl-1");
  EXPECT_EQ(clients["data"][0]["difference"]["common_tokens"], 2);
}

TEST_F(WindowLogTest, WhatChatsAndProgramsShareCouldNotHaveBeenReusedAndTheNearestThatCouldComesFirst) {
  chat(1, logged_words("a b c d e f g h"));
  live(window_, 2, logged_words("a b c d e f g H"), {});
  auto story = window_.look(Principal::kPerson, 10)[0].difference->story;
  ASSERT_TRUE(story);
  EXPECT_EQ(story->cause, "other_salt");
  EXPECT_EQ(story->lost_tokens, 0);
  EXPECT_EQ(
      story->sentence,
      "The first 7 tokens are those of request 1 (Trip to Lisbon), but chats and programs share no blocks.");
  live(window_, 3, logged_words("a b c d X f g H"), {.num_reused = 4});
  live(window_, 4, logged_words("a b c d e f g h i"), {.num_reused = 7});
  const auto newest = window_.look(Principal::kPerson, 10)[0].difference;
  EXPECT_EQ(newest->nearest->value, 2u) << "the chat has one token more in common, and shares nothing";
}

TEST_F(WindowLogTest, AClientReadsNothingOfWhatAPersonWroteAndNoIds) {
  const std::string secret = "a b c secret-word e f g h";
  chat(1, logged_words(secret));
  live(window_, 2, logged_words("a b c secret-word e f G H"), {});
  chat(3, logged_words("a b c secret-word E"), 2);
  const Json told = window_.to_json(10, Principal::kClient);
  const std::string text = dump(told);
  EXPECT_EQ(told["data"].size(), 3u);
  for (const char* const hidden : {"Lisbon", "chat-3"})
    EXPECT_EQ(text.find(hidden), std::string::npos) << text;
  for (const std::size_t index : {0, 2}) {
    EXPECT_TRUE(told["data"][index]["difference"].is_null());
    EXPECT_TRUE(told["data"][index]["client"].is_null());
    EXPECT_EQ(told["data"][index]["route"], "window");
  }
  EXPECT_EQ(told["data"][0]["prompt"]["tokens"], 5) << "how much memory there is to share is no secret";
  EXPECT_TRUE(told["data"][1]["difference"]["request"].is_null())
      << "how far a prompt is like a chat's would say what the chat says";
  EXPECT_EQ(told["data"][1]["difference"]["common_tokens"], 0);
  EXPECT_NE(dump(window_.to_json(10, Principal::kPerson)).find("Lisbon"), std::string::npos);
}

TEST_F(WindowLogTest, BothPromptsAreSpeltTokenByToken) {
  chat(1, logged_words("a b c d"));
  live(window_, 2, logged_words("a b X d"), {.num_reused = 1});
  const auto prompts = window_.compared_prompts({2});
  ASSERT_TRUE(prompts);
  EXPECT_EQ(prompts->mine.text, "a b X d");
  EXPECT_EQ(prompts->mine.ends, (std::vector<std::uint32_t>{1, 3, 5, 7}));
  EXPECT_EQ(prompts->theirs.ends.size(), 5u) << "with the answer behind it";
  EXPECT_EQ(prompts->num_theirs_prompt, 4u);
  EXPECT_EQ(prompts->request.difference->num_common, 2u);
  EXPECT_FALSE(window_.compared_prompts({77}));
}

TEST_F(WindowLogTest, AClosedLogSaysWhatWasFoundOutAndSpellsNothing) {
  chat(1, logged_words("a b c d e f g h"));
  chat(2, logged_words("a b c d e f G h"));
  window_.look(Principal::kPerson, 10);
  chat(3, logged_words("a b c d e f H h"));
  window_.close();
  const auto requests = window_.look(Principal::kPerson, 10);
  EXPECT_TRUE(requests[1].difference->nearest.has_value()) << "was found out before";
  EXPECT_TRUE(requests[0].difference->nearest.has_value()) << "is found out when it is closed";
  EXPECT_FALSE(window_.compared_prompts({2}));
}

TEST_F(WindowLogTest, WhatIsToldChangesTheVersion) {
  const std::uint64_t before = window_.version();
  chat(1, logged_words("a"));
  EXPECT_NE(window_.version(), before);
}

}  // namespace
}  // namespace octavo::app
