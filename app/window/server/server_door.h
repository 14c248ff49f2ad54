// Where requests of programs arrive, whichever model answers: they go to the service of the model that is
// loaded, and are told to try again while there is none. Says what came, a line for each.
//
// Thread: any. What the HTTP server calls returns soon: a service only takes a request in.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/server/access.h"
#include "app/server/http/message.h"
#include "app/server/http/server.h"
#include "app/server/service.h"
#include "ui/server_state.h"

namespace octavo::app {

class ServerDoor {
 public:
  // `changed` is called when there is something to show, on whichever thread it happened.
  ServerDoor(std::function<std::int64_t()> unix_time_ms, std::function<void()> changed)
      : unix_time_ms_(std::move(unix_time_ms)), changed_(std::move(changed)) {}

  // Who may ask from now on, whether a service is there or not.
  void set_access(const AccessRules& rules);
  // Requests go to this service from now on; when this returns, none goes to the one before. Null: there is
  // none, because of `why`, one sentence.
  void lead_to(Service* service, std::string why);

  // For http::Server::listen().
  std::optional<http::Response> check_head(const http::Request& head);
  void handle(http::Request request, http::Reply reply);

  // For ServiceOptions::answered.
  void note(const AnsweredCall& call);

  static constexpr std::size_t kMostLines = 200;
  std::vector<ui::ServerLogLine> lines() const;  // oldest first
  std::uint64_t version() const;                 // changes with the lines

 private:
  // REQUIRES: mutex_ is held
  void note_refused(const http::Request& head, const http::Response& response);
  void add_line(ui::ServerLogLine line);

  const std::function<std::int64_t()> unix_time_ms_;
  const std::function<void()> changed_;
  std::mutex door_mutex_;       // held while a service is asked
  Service* service_ = nullptr;  // guarded by door_mutex_, as are the next two
  std::string why_not_ = "no model is loaded: try again soon";
  AccessRules rules_;
  mutable std::mutex mutex_;  // guards what follows; a service may note while it is asked
  std::deque<ui::ServerLogLine> lines_;
  std::uint64_t version_ = 0;
};

}  // namespace octavo::app
