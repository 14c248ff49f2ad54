// A server of this machine that speaks OpenAI's protocol as a test tells it to, for tests of clients: real
// sockets, no model.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/server/http/server.h"

namespace octavo::testing {

class OpenAiServer {
 public:
  // Answers one request, on the server's thread: must not wait.
  using Answer = std::function<void(const http::Request&, const http::Reply&)>;

  explicit OpenAiServer(Answer answer) : answer_(std::move(answer)) {
    auto server = http::Server::listen(
        {.port = 0}, [](const http::Request&) { return std::nullopt; },
        [this](http::Request request, http::Reply reply) {
          {
            const std::lock_guard lock(mutex_);
            requests_.push_back(request);
          }
          answer_(request, reply);
        },
        [](int status, const std::string& sentence) {
          return http::Response{.status = status, .body = sentence};
        });
    EXPECT_TRUE(server.has_value()) << (server ? "" : server.error().message);
    if (server) server_ = *std::move(server);
  }

  std::string root() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::string address() const { return root() + "/v1"; }
  http::Server& server() { return *server_; }
  // Every request so far.
  std::vector<http::Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static void send_json(const http::Reply& reply, const std::string& json, int status = 200) {
    reply.send({.status = status, .headers = {{"Content-Type", "application/json"}}, .body = json});
  }
  // The events of a stream, whole, and its end.
  static void stream(const http::Reply& reply, const std::vector<std::string>& data) {
    begin_stream(reply);
    for (const std::string& event : data) reply.write("data: " + event + "\n\n");
    reply.end();
  }
  static void begin_stream(const http::Reply& reply) {
    reply.begin(200, {{"Content-Type", "text/event-stream"}});
  }
  static void send_models(const http::Reply& reply, const std::string& id = "tiny") {
    send_json(reply,
              R"({"object":"list","data":[{"id":")" + id + R"(","object":"model","max_model_len":512}]})");
  }

 private:
  mutable std::mutex mutex_;
  std::vector<http::Request> requests_;
  Answer answer_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace octavo::testing
