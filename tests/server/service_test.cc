// The service on an engine that tests speak for, over real sockets.

#include "app/server/service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "app/server/http/server.h"
#include "tests/server/http_client.h"
#include "tests/server/scripted_engine.h"

namespace octavo::app {
namespace {

using octavo::testing::ScriptedEngine;

// Moves only when it is told to, while the service reads it.
class MovedClock final : public Clock {
 public:
  std::int64_t now_us() const override { return now_us_; }
  void advance_us(std::int64_t by_us) { now_us_ += by_us; }

 private:
  std::atomic<std::int64_t> now_us_ = 0;
};

class ServiceTest : public ::testing::Test {
 protected:
  void start(std::size_t max_waiting_requests = 8) {
    ServiceOptions options{
        .model_names = {"tiny", "org/tiny"},
        .access = {.allowed_origins = {"http://localhost:3000"}, .key = "right"},
        .max_waiting_requests = max_waiting_requests,
        .priority = priority_,
        .version = "9.9",
        .new_hex = [this] { return std::string(32, static_cast<char>('a' + num_hex_++ % 6)); },
        .unix_time_ms = [] { return std::int64_t{1'800'000'000'000}; },
        .clock = &clock_};
    service_ = std::make_unique<Service>(engine_, std::move(options));
    auto server = http::Server::listen(
        {.port = 0}, [this](const http::Request& head) { return service_->check_head(head); },
        [this](http::Request request, http::Reply reply) {
          service_->handle(std::move(request), std::move(reply));
        },
        Service::refuse);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    service_->listens_at(server_->port(), server_->is_loopback());
  }
  void TearDown() override { server_.reset(); }

  std::string request_text(const std::string& method, const std::string& path, const std::string& body,
                           const std::string& headers = "Authorization: Bearer right\r\n") const {
    std::string text = method + " " + path +
                       " HTTP/1.1\r\nHost: localhost:" + std::to_string(server_->port()) + "\r\n" + headers;
    if (method == "POST")
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }
  // The whole answer, head and all.
  std::string ask(const std::string& method, const std::string& path, const std::string& body = "",
                  const std::string& headers = "Authorization: Bearer right\r\n") const {
    http::HttpClient client;
    EXPECT_TRUE(client.connect(server_->port()));
    return client.ask(request_text(method, path, body, headers));
  }
  static std::string status_of(const std::string& answer) { return answer.substr(9, 3); }
  static Json body_of(const std::string& answer) {
    const auto json = parse_json(answer.substr(answer.find("\r\n\r\n") + 4), "the answer");
    return json ? *json : Json(nullptr);
  }
  // All requests are admitted and say `text`.
  void answer_all(const std::string& text) {
    engine_.on_submit = [this, text](RequestId id, const GenerationRequest&) {
      engine_.accept(id, {5, 6, 7});
      engine_.admit(id);
      engine_.say(id, text);
      engine_.end(id);
    };
  }

  RequestPriority priority_ = RequestPriority::kInteractive;
  ScriptedEngine engine_;
  MovedClock clock_;
  std::atomic<int> num_hex_ = 0;
  std::unique_ptr<Service> service_;
  std::unique_ptr<http::Server> server_;
};

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

}  // namespace
}  // namespace octavo::app
