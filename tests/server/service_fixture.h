// The service on an engine that tests speak for, over real sockets of this machine.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/server/http/server.h"
#include "app/server/service.h"
#include "tests/server/http_client.h"
#include "tests/server/scripted_engine.h"

namespace octavo::app {

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
        .clock = &clock_,
        .write_line =
            [this](const std::string& line) {
              const std::lock_guard lock(lines_mutex_);
              lines_.push_back(line);
            }};
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

  std::vector<std::string> lines() {
    const std::lock_guard lock(lines_mutex_);
    return lines_;
  }

  RequestPriority priority_ = RequestPriority::kInteractive;
  std::mutex lines_mutex_;
  std::vector<std::string> lines_;  // guarded by lines_mutex_
  octavo::testing::ScriptedEngine engine_;
  MovedClock clock_;
  std::atomic<int> num_hex_ = 0;
  std::unique_ptr<Service> service_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo::app
