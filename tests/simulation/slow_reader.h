// A client that takes its events from a real outbox whenever it is awake. What it has been told at the end
// must add up to what was said, however long it slept.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/core/event_outbox.h"
#include "tests/simulation/problem.h"

namespace octavo::simulation {

class SlowReader {
 public:
  void sleep(std::int32_t num_steps) {
    sleeps_for_ = std::max(sleeps_for_, num_steps);
    sleeps_at_all_ = true;
  }

  // Until it sleeps for the first time, every event is taken at once and there is nothing to learn.
  void step(std::span<const EngineEvent> events, Problem& problem) {
    if (!sleeps_at_all_) return;
    for (const EngineEvent& event : events) fold(event, said_);
    outbox_.add({events.begin(), events.end()});
    if (--sleeps_for_ > 0) return;
    for (const EngineEvent& event : outbox_.take(std::chrono::microseconds(0))) {
      fold(event, heard_);
      if (is_end(event)) compare(request_id_of(event), problem);
    }
  }

  void check_the_end(Problem& problem) {
    sleeps_for_ = 0;
    step({}, problem);
    if (!said_.empty() || !heard_.empty()) problem.note("a slow reader did not hear every end");
  }

 private:
  struct Heard {
    std::vector<TokenId> token_ids;
    std::string text;
    std::int32_t num_tokens_dropped = 0;
    std::size_t num_ends = 0;
    bool operator==(const Heard&) const = default;
  };
  using Story = std::map<RequestId, std::map<std::int32_t, Heard>>;  // of each output; -1: of the request

  static bool is_end(const EngineEvent& event) {
    return std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event);
  }

  static void fold(const EngineEvent& event, Story& story) {
    auto& request = story[request_id_of(event)];
    if (const auto* tokens = std::get_if<TokensGenerated>(&event)) {
      Heard& heard = request[tokens->output_index];
      heard.token_ids.insert(heard.token_ids.end(), tokens->token_ids.begin(), tokens->token_ids.end());
      heard.text += tokens->text;
    } else if (const auto* finished = std::get_if<OutputFinished>(&event)) {
      ++request[finished->output_index].num_ends;
    } else if (const auto* preempted = std::get_if<RequestPreempted>(&event)) {
      request[-1].num_tokens_dropped += preempted->num_tokens_dropped;
    } else if (is_end(event)) {
      ++request[-1].num_ends;
    }
  }

  // Events of before the first sleep were heard by nobody, in both stories.
  void compare(RequestId request_id, Problem& problem) {
    if (said_[request_id] != heard_[request_id])
      problem.note(request_id, "a slow reader was told something else");
    said_.erase(request_id);
    heard_.erase(request_id);
  }

  EventOutbox outbox_;
  bool sleeps_at_all_ = false;
  std::int32_t sleeps_for_ = 0;
  Story said_, heard_;
};

}  // namespace octavo::simulation
