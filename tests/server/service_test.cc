// The service on an engine that tests speak for, over real sockets.

#include "app/server/service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/service_fixture.h"

namespace octavo::app {
namespace {

TEST_F(ServiceTest, EveryProtocolAnswersAndStreams) {
  start();
  answer_all("Rain.");
  const std::string message = R"([{"role": "user", "content": "Hello"}])";
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"/v1/completions", R"({"prompt": "Hello")"},
      {"/v1/chat/completions", "{\"messages\": " + message},
      {"/v1/responses", R"({"input": "Hello")"},
      {"/v1/messages", "{\"max_tokens\": 9, \"model\": \"tiny\", \"messages\": " + message}};
  for (const auto& [path, body] : calls) {
    const std::string whole = ask("POST", path, body + "}");
    EXPECT_EQ(status_of(whole), "200") << path << whole;
    EXPECT_NE(whole.find("\"Rain.\""), std::string::npos) << whole;
    http::HttpClient client;
    ASSERT_TRUE(client.connect(server_->port()));
    ASSERT_TRUE(client.send(request_text("POST", path, body + ", \"stream\": true}")));
    const std::string stream = client.read_until("0\r\n\r\n");
    EXPECT_EQ(status_of(stream), "200") << path;
    EXPECT_NE(stream.find("text/event-stream"), std::string::npos) << stream;
    EXPECT_NE(stream.find("Rain."), std::string::npos) << stream;
    EXPECT_EQ(status_of(client.ask(request_text("GET", "/version", ""))), "200") << "the connection goes on";
  }
}

TEST_F(ServiceTest, WhatFailsBeforeTheFirstEventHasItsStatusAlsoInAStream) {
  start();
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) {
    engine_.fail(id, ErrorCode::kTooLong, "the prompt has 9 tokens; the limit is 8");
  };
  for (const char* stream : {"true", "false"}) {
    const std::string answer =
        ask("POST", "/v1/completions", std::string(R"({"prompt": "a", "stream": )") + stream + "}");
    EXPECT_EQ(status_of(answer), "400");
    EXPECT_EQ(body_of(answer)["error"]["code"], "context_length_exceeded");
  }
}

TEST_F(ServiceTest, WhatFailsLaterEndsTheStreamWithAnErrorAndTheOthersWithIt) {
  start();
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) {
    if (id == RequestId{1}) engine_.accept(id, {5});
    if (id == RequestId{2}) engine_.fail(id, ErrorCode::kDevice, "it broke");
  };
  http::HttpClient client;
  ASSERT_TRUE(client.connect(server_->port()));
  client.send(request_text("POST", "/v1/completions", R"({"prompt": ["a", "b"], "stream": true})"));
  const std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_EQ(status_of(stream), "200");
  EXPECT_NE(stream.find("it broke"), std::string::npos) << stream;
  EXPECT_TRUE(http::becomes_true([this] { return !engine_.cancelled().empty(); }))
      << "the first is of no use alone";
}

TEST_F(ServiceTest, WhoLeavesCancelsWhatRunsForThem) {
  start();
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) { engine_.accept(id, {5}); };
  for (const char* stream : {"true", "false"}) {
    const std::size_t num_before = engine_.cancelled().size(), num_asked = engine_.requests().size();
    http::HttpClient client;
    ASSERT_TRUE(client.connect(server_->port()));
    client.send(
        request_text("POST", "/v1/completions", std::string(R"({"prompt": "a", "stream": )") + stream + "}"));
    ASSERT_TRUE(http::becomes_true([&] { return engine_.requests().size() > num_asked; }));
    client.close();
    EXPECT_TRUE(http::becomes_true([&] { return engine_.cancelled().size() > num_before; })) << stream;
  }
}

TEST_F(ServiceTest, AFullQueueAsksToComeAgain) {
  start(/*max_waiting_requests=*/2);
  http::HttpClient first;
  ASSERT_TRUE(first.connect(server_->port()));
  first.send(request_text("POST", "/v1/completions", R"({"prompt": ["a", "b"]})"));
  ASSERT_TRUE(http::becomes_true([this] { return engine_.requests().size() == 2; }));
  const std::string answer = ask("POST", "/v1/completions", R"({"prompt": "c"})");
  EXPECT_EQ(status_of(answer), "429");
  EXPECT_NE(answer.find("Retry-After: "), std::string::npos) << answer;
  engine_.admit(RequestId{1});
  engine_.admit(RequestId{2});
  answer_all("d");
  EXPECT_TRUE(http::becomes_true(
      [this] { return status_of(ask("POST", "/v1/completions", R"({"prompt": "c"})")) == "200"; }));
}

TEST_F(ServiceTest, TheInputsOfOneCallForEmbeddingsAreOneOfTheQueue) {
  start(/*max_waiting_requests=*/2);
  engine_.on_submit = [this](RequestId id, const GenerationRequest& request) {
    EXPECT_TRUE(request.embedding);
    engine_.accept(id, {5});
    engine_.give(EmbeddingComputed{id, {1.0f}});
    engine_.end(id, FinishReason::kStop, /*num_outputs=*/0);
  };
  const std::string answer = ask("POST", "/v1/embeddings", R"({"input": ["a", "b", "c", "d"]})");
  EXPECT_EQ(status_of(answer), "200") << answer;
  EXPECT_EQ(body_of(answer)["data"].size(), 4u);
  EXPECT_EQ(body_of(ask("GET", "/v1/models/tiny"))["embeddings"]["pooling"][0], "last");
}

TEST_F(ServiceTest, ARequestMayComeAfterOthersAndNotBeforeThem) {
  start();
  answer_all("a");
  EXPECT_EQ(status_of(ask("POST", "/v1/completions", R"({"prompt": "a"})")), "200");
  EXPECT_EQ(status_of(ask("POST", "/v1/completions", R"({"prompt": "a", "priority": 0})")), "200");
  EXPECT_EQ(status_of(ask("POST", "/v1/completions", R"({"prompt": "a", "priority": 3})")), "200");
  const std::string refused = ask("POST", "/v1/completions", R"({"prompt": "a", "priority": -1})");
  EXPECT_EQ(status_of(refused), "400");
  EXPECT_EQ(body_of(refused)["error"]["param"], "priority");
  const auto requests = engine_.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].priority, RequestPriority::kInteractive) << "nobody else uses the engine";
  EXPECT_EQ(requests[1].priority, RequestPriority::kInteractive);
  EXPECT_EQ(requests[2].priority, RequestPriority::kBackground);
}

TEST_F(ServiceTest, BesideAWindowEveryRequestIsOfTheBackground) {
  priority_ = RequestPriority::kBackground;
  start();
  answer_all("a");
  ask("POST", "/v1/completions", R"({"prompt": "a", "priority": 0})");
  ask("POST", "/v1/responses", R"({"input": "a"})");
  ASSERT_EQ(engine_.requests().size(), 2u);
  for (const GenerationRequest& request : engine_.requests())
    EXPECT_EQ(request.priority, RequestPriority::kBackground);
}

TEST_F(ServiceTest, ASilentStreamSaysThatWorkGoesOn) {
  start();
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) { engine_.accept(id, {5}); };
  http::HttpClient client;
  ASSERT_TRUE(client.connect(server_->port()));
  client.send(request_text("POST", "/v1/responses", R"({"input": "a", "stream": true})"));
  EXPECT_NE(client.read_until("response.in_progress\"").find("response.created"), std::string::npos);
  engine_.give(RequestAdmitted{RequestId{1}, 0, 0});
  std::atomic<bool> over = false;
  std::thread time([&] {  // a stream may begin after time was moved on: go on moving it
    while (!over) {
      clock_.advance_us(11'000'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_NE(client.read_until("\"type\":\"response.in_progress\"").find("in_progress"), std::string::npos);
  EXPECT_NE(client.read_until("event: response.in_progress").find("in_progress"), std::string::npos);
  over = true;
  time.join();
}

TEST_F(ServiceTest, RoutesMethodsKeysAndPages) {
  start();
  EXPECT_EQ(status_of(ask("GET", "/health", "", "")), "200");
  EXPECT_EQ(status_of(ask("GET", "/v1/models", "", "")), "401");
  EXPECT_EQ(status_of(ask("GET", "/nothing", "", "")), "401") << "what is there is nobody's business";
  EXPECT_EQ(status_of(ask("GET", "/nothing")), "404");
  EXPECT_EQ(status_of(ask("GET", "/v1/completions")), "405");
  EXPECT_EQ(status_of(ask("POST", "/v1/completions", "{")), "400");
  EXPECT_EQ(status_of(ask("POST", "/v1/completions", "[]")), "400");
  EXPECT_EQ(status_of(ask("POST", "/v1/embeddings", "{}")), "400");
  EXPECT_EQ(status_of(ask("GET", "/health", "", "Origin: https://a.example\r\n")), "403");
  const std::string allowed = ask("GET", "/health", "", "Origin: http://localhost:3000\r\n");
  EXPECT_NE(allowed.find("Access-Control-Allow-Origin: http://localhost:3000"), std::string::npos) << allowed;
  EXPECT_EQ(status_of(ask("OPTIONS", "/v1/completions", "", "Origin: http://localhost:3000\r\n")), "204");
  EXPECT_EQ(status_of(ask("POST", "/reset_prefix_cache", "")), "200");
  EXPECT_EQ(engine_.num_resets, 1);
}

TEST_F(ServiceTest, TheModelIsKnownByEachOfItsNames) {
  start();
  answer_all("a");
  EXPECT_EQ(body_of(ask("GET", "/v1/models"))["data"].size(), 2u);
  EXPECT_EQ(body_of(ask("GET", "/v1/models/org%2Ftiny"))["id"], "org/tiny");
  EXPECT_EQ(status_of(ask("GET", "/v1/models/another")), "404");
  EXPECT_EQ(status_of(ask("POST", "/v1/completions", R"({"prompt": "a", "model": "org/tiny"})")), "200");
  const Json refused = body_of(ask("POST", "/v1/completions", R"({"prompt": "a", "model": "another"})"));
  EXPECT_EQ(refused["error"]["code"], "model_not_found");
  const Json other =
      body_of(ask("POST", "/v1/messages",
                  R"({"model": "b", "max_tokens": 1, "messages": [{"role": "user", "content": "a"}]})"));
  EXPECT_EQ(other["error"]["type"], "not_found_error");
}

TEST_F(ServiceTest, TokensAreCountedWithoutTheEngine) {
  start();
  EXPECT_EQ(body_of(ask("POST", "/tokenize", R"({"prompt": "12345678"})"))["count"], 3);
  EXPECT_EQ(status_of(ask("POST", "/tokenize", "{}")), "400");
  engine_.spelling().token("Rain");
  EXPECT_EQ(body_of(ask("POST", "/detokenize", R"({"tokens": [3]})"))["prompt"], "Rain");
  EXPECT_EQ(status_of(ask("POST", "/detokenize", R"({"tokens": [-1]})")), "400");
  const std::string counted = ask("POST", "/v1/messages/count_tokens",
                                  R"({"model": "tiny", "messages": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(body_of(counted)["input_tokens"], 1);
  const std::string with_tools =
      ask("POST", "/v1/messages/count_tokens",
          R"({"model": "tiny", "tools": [{"name": "f", "input_schema": {"type": "object"}}],
              "messages": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(body_of(with_tools)["input_tokens"], 2) << "tools are a part of the prompt";
  EXPECT_EQ(body_of(ask("GET", "/tokenizer_info"))["eos_token"], "</s>");
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(ServiceTest, RequestsAndMetricsTellWhatWasAnswered) {
  start();
  answer_all("a");
  ask("POST", "/v1/completions", R"({"prompt": "a"})",
      "Authorization: Bearer right\r\nUser-Agent: a program\r\n");
  const Json requests = body_of(ask("GET", "/octavo/requests"));
  EXPECT_EQ(requests["data"][0]["client"], "a program");
  EXPECT_EQ(requests["data"][0]["prompt"]["tokens"], 3);
  const std::string metrics = ask("GET", "/metrics");
  EXPECT_NE(metrics.find("vllm:prompt_tokens_total{model_name=\"tiny\",engine=\"0\"} 3"), std::string::npos)
      << metrics;
}

TEST_F(ServiceTest, EveryAnswerHasAnIdAndIsNotKept) {
  start();
  const std::string no_key = "X-Nothing: a\r\n";
  for (const std::string& answer :
       {ask("GET", "/v1/models"), ask("GET", "/v1/models", "", no_key), ask("GET", "/v1/models/another"),
        ask("POST", "/v1/completions", "{}"), ask("POST", "/v1/completions", "[")}) {
    EXPECT_NE(answer.find("x-request-id: req_"), std::string::npos) << answer;
    EXPECT_NE(answer.find("Cache-Control: no-store"), std::string::npos) << answer;
  }
  const std::string refused = ask("POST", "/v1/messages", "{}", no_key);
  EXPECT_NE(refused.find("request-id: req_"), std::string::npos) << refused;
  EXPECT_TRUE(body_of(refused)["request_id"].get<std::string>().starts_with("req_")) << refused;
}

TEST_F(ServiceTest, EveryGetIsAlsoAHead) {
  start();
  for (const char* const path : {"/health", "/v1/models", "/v1/models/tiny", "/metrics", "/octavo/requests",
                                 "/version", "/tokenizer_info"}) {
    http::HttpClient client;
    ASSERT_TRUE(client.connect(server_->port()));
    ASSERT_TRUE(client.send(request_text("HEAD", path, "")));
    EXPECT_EQ(status_of(client.read_head()), "200") << path;
    ASSERT_TRUE(client.send(request_text("GET", "/health", "")));
    EXPECT_EQ(status_of(client.read_head()), "200") << "no body of " << path;
  }
}

TEST_F(ServiceTest, EachRequestIsALineWithoutTextsAndKeys) {
  start();
  answer_all("a");
  ask("POST", "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "secret words"}]})",
      "Authorization: Bearer right\r\nUser-Agent: a program\r\n");
  ASSERT_TRUE(http::becomes_true([this] { return lines().size() == 1; }));
  EXPECT_TRUE(lines()[0].starts_with("chatcmpl-")) << lines()[0];
  EXPECT_NE(lines()[0].find(" finished (stop): /v1/chat/completions of a program; prompt 3 tokens"),
            std::string::npos)
      << lines()[0];
  EXPECT_EQ(lines()[0].find("secret"), std::string::npos);
  EXPECT_EQ(lines()[0].find("right"), std::string::npos);
}

TEST_F(ServiceTest, MessagesSayWhereTheyPartFromTheOneThatTheyName) {
  start();
  std::vector<TokenId> prompt = {5, 6, 7};
  engine_.on_submit = [&](RequestId id, const GenerationRequest&) {
    engine_.accept(id, prompt);
    engine_.admit(id);
    engine_.say(id, "a");
    engine_.end(id);
  };
  const auto told = [&](const std::string& more) {
    return body_of(ask(
        "POST", "/v1/messages",
        R"({"model": "tiny", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}])" + more + "}"));
  };
  const Json first = told(R"(, "diagnostics": {"previous_message_id": null})");
  EXPECT_TRUE(first.contains("diagnostics") && first["diagnostics"].is_null()) << first;
  EXPECT_FALSE(told("").contains("diagnostics")) << "nobody asked";
  const std::string named =
      R"(, "diagnostics": {"previous_message_id": ")" + first["id"].get<std::string>() + "\"}";
  EXPECT_TRUE(told(named)["diagnostics"].is_null()) << "the same prompt";
  prompt = {5, 9, 9, 9};
  const Json reason = told(named)["diagnostics"]["cache_miss_reason"];
  EXPECT_EQ(reason["type"], "messages_changed");
  EXPECT_EQ(reason["cache_missed_input_tokens"], 3);
  EXPECT_EQ(told(R"(, "diagnostics": {"previous_message_id": "msg_other"})")["diagnostics"]
                                                                            ["cache_miss_reason"]["type"],
            "previous_message_not_found");
}

TEST_F(ServiceTest, ResponsesAreComparedWithTheOneThatTheyName) {
  start();
  std::vector<TokenId> prompt = {5, 6, 7};
  engine_.on_submit = [&](RequestId id, const GenerationRequest&) {
    engine_.accept(id, prompt);
    engine_.admit(id);
    engine_.say(id, "a");
    engine_.end(id);
  };
  const Json first = body_of(ask("POST", "/v1/responses", R"({"input": "a"})"));
  EXPECT_FALSE(first.contains("prompt_cache_diagnostics"));
  const std::string named = R"({"input": "a", "prompt_cache_options": {"comparison_response_id": ")" +
                            first["id"].get<std::string>() + "\"}}";
  EXPECT_EQ(body_of(ask("POST", "/v1/responses", named))["prompt_cache_diagnostics"]["type"], "cache_hit");
  prompt = {5, 6, 8, 9};
  const Json told = body_of(ask("POST", "/v1/responses", named))["prompt_cache_diagnostics"];
  EXPECT_EQ(told["type"], "cache_miss");
  EXPECT_EQ(told["reason"], "input_changed");
  EXPECT_EQ(told["cache_missed_tokens"], 2);
}

TEST_F(ServiceTest, TheServersEndIsToldToWhoWaits) {
  start();
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) { engine_.accept(id, {5}); };
  http::HttpClient client;
  ASSERT_TRUE(client.connect(server_->port()));
  client.send(request_text("POST", "/v1/completions", R"({"prompt": "a"})"));
  ASSERT_TRUE(http::becomes_true([this] { return engine_.requests().size() == 1; }));
  server_->stop_accepting();
  service_->cancel_all();
  const std::string answer = client.read_answer();
  EXPECT_EQ(status_of(answer), "200");
  EXPECT_EQ(body_of(answer)["choices"][0]["finish_reason"], "abort");
  EXPECT_TRUE(client.has_ended());
}

TEST_F(ServiceTest, WithoutAModelWhoMayAskIsToldToTryAgain) {
  const AccessRules rules{.port = 8000, .key = "right"};
  http::Request head{
      .method = "POST",
      .path = "/v1/messages",
      .headers = {{"host", "localhost:8000"}, {"x-api-key", "right"}, {"content-type", "application/json"}}};
  const http::Response told = Service::refuse_without_model(rules, head, "a model is being loaded");
  EXPECT_EQ(told.status, 503);
  EXPECT_NE(told.body.find("a model is being loaded"), std::string::npos);
  EXPECT_NE(told.body.find("\"type\":\"error\""), std::string::npos) << "in the protocol's own shape";
  EXPECT_TRUE(std::any_of(told.headers.begin(), told.headers.end(),
                          [](const http::Header& header) { return header.name == "Retry-After"; }));
  head.headers[1].value = "wrong";
  EXPECT_EQ(Service::refuse_without_model(rules, head, "none").status, 401);
  head.path = "/health";
  EXPECT_EQ(Service::refuse_without_model(rules, head, "none").status, 503) << "it cannot answer yet";
}

TEST_F(ServiceTest, AKeyThatIsChangedCountsFromTheNextRequestOn) {
  start();
  EXPECT_EQ(status_of(ask("GET", "/v1/models")), "200");
  service_->set_access({.port = server_->port(), .key = "another"});
  EXPECT_EQ(status_of(ask("GET", "/v1/models")), "401");
  EXPECT_EQ(status_of(ask("GET", "/v1/models", "", "x-api-key: another\r\n")), "200");
}

// As in the window, where another model's service takes over.
TEST_F(ServiceTest, ItMayEndBeforeTheConnectionsOfItsClients) {
  start();
  std::atomic<bool> is_asked = false;
  engine_.on_submit = [&](RequestId id, const GenerationRequest&) {
    engine_.accept(id, {5});
    engine_.say(id, "So far");
    is_asked = true;
  };
  http::HttpClient client;
  ASSERT_TRUE(client.connect(server_->port()));
  client.send(request_text("POST", "/v1/completions", R"({"prompt": "a", "stream": true})"));
  EXPECT_NE(client.read_until("So far").find("200"), std::string::npos);
  service_.reset();  // nobody asks it any more
  EXPECT_NE(client.read_until("0\r\n\r\n").find("[DONE]"), std::string::npos)
      << "the answer ends as any does";
  client.close();
  server_.reset();
}

TEST_F(ServiceTest, WhatClientsAskSharesNothingWithOtherSalts) {
  ServiceOptions options{.model_names = {"tiny"},
                         .new_hex = [] { return std::string(32, 'a'); },
                         .unix_time_ms = [] { return std::int64_t{0}; },
                         .clock = &clock_,
                         .cache_salt = "clients/"};
  service_ = std::make_unique<Service>(engine_, std::move(options));
  auto server = http::Server::listen(
      {.port = 0}, [this](const http::Request& head) { return service_->check_head(head); },
      [this](http::Request request, http::Reply reply) {
        service_->handle(std::move(request), std::move(reply));
      },
      Service::refuse);
  ASSERT_TRUE(server);
  server_ = *std::move(server);
  service_->listens_at(server_->port(), true);
  answer_all("x");
  ask("POST", "/v1/completions", R"({"prompt": "a", "cache_salt": "mine"})");
  ask("POST", "/v1/completions", R"({"prompt": "a"})");
  ASSERT_EQ(engine_.requests().size(), 2u);
  EXPECT_EQ(engine_.requests()[0].cache_salt, "clients/mine");
  EXPECT_EQ(engine_.requests()[1].cache_salt, "clients/");
}

TEST_F(ServiceTest, EachAnswerIsToldToWhoeverKeepsALog) {
  std::mutex mutex;
  std::vector<std::string> lines;
  ServiceOptions options{.model_names = {"tiny"},
                         .new_hex = [] { return std::string(32, 'a'); },
                         .unix_time_ms = [] { return std::int64_t{0}; },
                         .clock = &clock_,
                         .answered =
                             [&](const AnsweredCall& call) {
                               const std::lock_guard lock(mutex);
                               lines.push_back(std::string(call.method) + " " + std::string(call.path) + " " +
                                               std::to_string(call.status));
                             }};
  service_ = std::make_unique<Service>(engine_, std::move(options));
  auto server = http::Server::listen(
      {.port = 0}, [this](const http::Request& head) { return service_->check_head(head); },
      [this](http::Request request, http::Reply reply) {
        service_->handle(std::move(request), std::move(reply));
      },
      Service::refuse);
  ASSERT_TRUE(server);
  server_ = *std::move(server);
  service_->listens_at(server_->port(), true);
  answer_all("x");
  ask("POST", "/v1/completions", R"({"prompt": "a"})");
  ask("POST", "/v1/completions", R"({"prompt": 5})");
  ask("GET", "/v1/models");
  EXPECT_TRUE(http::becomes_true([&] {
    const std::lock_guard lock(mutex);
    return lines.size() == 3;
  }));
  const std::lock_guard lock(mutex);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (std::vector<std::string>{"GET /v1/models 200", "POST /v1/completions 200",
                                             "POST /v1/completions 400"}));
}

}  // namespace
}  // namespace octavo::app
