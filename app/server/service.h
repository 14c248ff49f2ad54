// What `octavo serve` answers: routes, the calls that are under way, and what is told about them. It knows
// HTTP as values (http/) and protocols as parsers (call.h).
//
// Thread: check_head and handle on the HTTP server's thread; bodies are read and tokens counted on workers,
// and answers are built on the router's thread, so that neither long bodies nor long answers keep others
// waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/requests/request_log.h"
#include "app/server/access.h"
#include "app/server/call.h"
#include "app/server/http/message.h"
#include "app/server/http/server.h"
#include "app/server/request_router.h"
#include "app/server/server_metrics.h"
#include "engine/base/bounded_queue.h"
#include "engine/base/clock.h"
#include "engine/engine.h"

namespace octavo::app {

// One answer, for a log of a line each. What a client said is as it said it.
struct AnsweredCall {
  std::string_view method, path,
      client;  // client: its User-Agent; they live as long as the call of `answered`
  int status = 0;
  std::int64_t took_us = 0;  // from the end of the request's body
};

struct ServiceOptions {
  std::vector<std::string> model_names;  // that clients may say; at least one, the first is told
  AccessRules access = {};
  std::size_t max_waiting_requests = 256;  // beyond, calls are refused: 429
  // Of requests that do not say less: kBackground where people use the same engine.
  RequestPriority priority = RequestPriority::kInteractive;
  std::string version = {};
  std::function<std::string()> new_hex = {};        // 32 digits of base 16, another each time
  std::function<std::int64_t()> unix_time_ms = {};  // the date
  const Clock* clock = nullptr;                     // outlives the service
  // Where the requests of others stand, too, and whose owner adds the engine's events; it outlives the
  // service. Null: the service keeps one of its own.
  RequestLog* log = nullptr;
  // Of every request, in front of what its client says: who asks here shares no blocks with those who do not,
  // so that nobody can find out by how much is reused what the others asked.
  std::string cache_salt = {};
  // Told of each answer when it has ended, on any thread.
  std::function<void(const AnsweredCall& call)> answered = {};
  // Told a line about each request that has ended (RequestLog::line), from any thread; none: nobody wants it.
  std::function<void(const std::string& line)> write_line = {};
  bool lines_hold_texts = false;  // of prompts, around differences
};

class Service {
 public:
  // REQUIRES: nobody else polls the engine, which outlives this (engine/shared_engine.h makes several of
  // one); whoever calls it has stopped to when it ends.
  Service(Engine& engine, ServiceOptions options);
  // Ends every call that is under way: their clients get what there is, and its end. Nothing of it is called
  // afterwards, though their connections may live on.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // For http::Server::listen().
  std::optional<http::Response> check_head(const http::Request& head) const;
  void handle(http::Request request, http::Reply reply);
  static http::Response refuse(int status, const std::string& sentence);
  // The same while no service is there to ask: who may not ask is told so, everybody else to try again (503).
  //   why  one sentence
  static http::Response refuse_without_model(const AccessRules& rules, const http::Request& head,
                                             const std::string& why);

  // Where it turned out to listen, before the first request is let in with a port in its Host.
  void listens_at(std::uint16_t port, bool is_loopback);
  // Of requests that come from now on; on any thread.
  void set_access(AccessRules rules);
  void cancel_all();
  std::size_t num_open_requests() const { return router_.num_open(); }

 private:
  struct Route;
  struct Exchange;  // one request and the place of its answer
  struct OpenCall;  // a call whose requests run
  class Canceller;  // of the calls of clients that have left

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
  mutable std::mutex access_mutex_;
  AccessRules access_;  // guarded by access_mutex_
  std::unique_ptr<RequestLog> own_log_;
  RequestLog& log_;
  ServerMetrics metrics_;
  std::mutex steps_mutex_;
  std::uint64_t step_mark_ = 0;  // guarded by steps_mutex_
  BoundedQueue<std::function<void()>> jobs_;
  std::mutex streams_mutex_;
  std::vector<std::weak_ptr<OpenCall>> streams_;  // guarded by streams_mutex_
  RequestRouter router_;
  std::shared_ptr<Canceller> canceller_;
  std::vector<std::jthread> workers_;  // last: they use all of the above
};

}  // namespace octavo::app
