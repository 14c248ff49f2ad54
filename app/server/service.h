// What `octavo serve` answers: routes, the calls that are under way, and what is told about them. It knows
// HTTP as values (http/) and protocols as parsers (call.h).
//
// Thread: check_head and handle on the HTTP server's thread; bodies are read and tokens counted on workers,
// and answers are built on the router's thread, so that neither long bodies nor long answers keep others
// waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/server/access.h"
#include "app/server/call.h"
#include "app/server/http/message.h"
#include "app/server/http/server.h"
#include "app/server/request_log.h"
#include "app/server/request_router.h"
#include "app/server/server_metrics.h"
#include "engine/base/bounded_queue.h"
#include "engine/base/clock.h"
#include "engine/engine.h"

namespace octavo::app {

struct ServiceOptions {
  std::vector<std::string> model_names;  // that clients may say; at least one, the first is told
  AccessRules access = {};
  std::size_t max_waiting_requests = 256;  // beyond, calls are refused: 429
  std::string version = {};
  std::function<std::string()> new_hex = {};        // 32 digits of base 16, another each time
  std::function<std::int64_t()> unix_time_ms = {};  // the date
  const Clock* clock = nullptr;                     // outlives the service
  // Told a line about each request that has ended (RequestLog::line), from any thread; none: nobody wants it.
  std::function<void(const std::string& line)> write_line = {};
  bool lines_hold_texts = false;  // of prompts, around differences
};

class Service {
 public:
  // REQUIRES: nobody else polls the engine, which outlives this; the HTTP server that calls it ends first.
  Service(Engine& engine, ServiceOptions options);
  // Ends every call that is under way.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // For http::Server::listen().
  std::optional<http::Response> check_head(const http::Request& head) const;
  void handle(http::Request request, http::Reply reply);
  static http::Response refuse(int status, const std::string& sentence);

  // Where it turned out to listen, before the first request is let in with a port in its Host.
  void listens_at(std::uint16_t port, bool is_loopback);
  void cancel_all();

 private:
  struct Route;
  struct Exchange;  // one request and the place of its answer
  struct OpenCall;  // a call whose requests run

  static const std::vector<Route>& routes();
  static const Route* find_route(std::string_view path);

  void generate(const std::shared_ptr<Exchange>& exchange, const Json& body);
  void keep_streams_alive();
  void write_line(const EngineEvent& event);
  std::shared_ptr<const RenderedParts> parts_of(const Call& call) const;

  Json models() const;
  Json model(std::string_view id) const;
  Result<Json> tokenize(const Json& body) const;
  Result<Json> detokenize(const Json& body) const;
  Result<Json> count_tokens(const Json& body) const;
  Json tokenizer_info() const;
  http::Response metrics_text();
  void take_steps();
  Result<std::vector<TokenId>> encode_chat(const ChatPrompt& prompt) const;

  AccessRules access() const;
  void work();

  Engine& engine_;
  const ServiceOptions options_;
  ServedModel model_;
  std::atomic<std::uint16_t> port_;
  std::atomic<bool> is_loopback_;
  RequestLog log_;
  ServerMetrics metrics_;
  std::mutex steps_mutex_;
  std::uint64_t step_mark_ = 0;  // guarded by steps_mutex_
  BoundedQueue<std::function<void()>> jobs_;
  std::mutex streams_mutex_;
  std::vector<std::weak_ptr<OpenCall>> streams_;  // guarded by streams_mutex_
  RequestRouter router_;
  std::vector<std::jthread> workers_;  // last: they use all of the above
};

}  // namespace octavo::app
