#include "app/window/server/server_door.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "app/json/json_text.h"
#include "engine/base/calendar.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostPathBytes = 80, kMostClientBytes = 80;

// "14:03:12"
std::string seconds_of_day(std::int64_t unix_ms) {
  const std::string full = full_time_text(unix_ms);
  return full.substr(full.rfind(' ') + 1);
}

// The sentence in an error of either protocol.
std::string sentence_of(const http::Response& response) {
  const auto json = parse_json(response.body, "the answer");
  if (!json || !json->is_object()) return {};
  const auto error = json->find("error");
  if (error == json->end() || !error->is_object()) return {};
  const auto message = error->find("message");
  return message != error->end() && message->is_string() ? message->get<std::string>() : std::string();
}

}  // namespace

void ServerDoor::set_access(const AccessRules& rules) {
  const std::lock_guard door(door_mutex_);
  rules_ = rules;
  if (service_ != nullptr) service_->set_access(rules_);
}

void ServerDoor::lead_to(Service* service, std::string why) {
  const std::lock_guard door(door_mutex_);
  service_ = service;
  why_not_ = std::move(why);
  if (service_ != nullptr) service_->set_access(rules_);
}

std::optional<http::Response> ServerDoor::check_head(const http::Request& head) {
  std::optional<http::Response> refused;
  {
    const std::lock_guard door(door_mutex_);
    refused = service_ != nullptr ? service_->check_head(head)
                                  : Service::refuse_without_model(rules_, head, why_not_);
  }
  if (!refused) return refused;
  {
    const std::lock_guard lock(mutex_);
    note_refused(head, *refused);
  }
  changed_();
  return refused;
}

// The service may have gone since the head was checked.
void ServerDoor::handle(http::Request request, http::Reply reply) {
  {
    const std::lock_guard door(door_mutex_);
    if (service_ != nullptr) return service_->handle(std::move(request), std::move(reply));
    reply.send(Service::refuse_without_model(rules_, request, why_not_));
  }
  changed_();
}

void ServerDoor::note(const AnsweredCall& call) {
  {
    const std::lock_guard lock(mutex_);
    add_line({.request = std::string(call.method) + " " + escape_for_message(call.path, kMostPathBytes),
              .client = escape_for_message(call.client, kMostClientBytes),
              .status = call.status,
              .took_ms = call.took_us / 1000});
  }
  changed_();
}

void ServerDoor::note_refused(const http::Request& head, const http::Response& response) {
  add_line({.request = escape_for_message(head.method, kMostPathBytes) + " " +
                       escape_for_message(head.path, kMostPathBytes),
            .client = escape_for_message(head.header("user-agent"), kMostClientBytes),
            .status = response.status,
            .why = sentence_of(response)});
}

void ServerDoor::add_line(ui::ServerLogLine line) {
  line.unix_ms = unix_time_ms_();
  line.time = seconds_of_day(line.unix_ms);
  lines_.push_back(std::move(line));
  if (lines_.size() > kMostLines) lines_.pop_front();
  ++version_;
}

std::vector<ui::ServerLogLine> ServerDoor::lines() const {
  const std::lock_guard lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

std::uint64_t ServerDoor::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

}  // namespace octavo::app
