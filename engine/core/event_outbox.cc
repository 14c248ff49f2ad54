#include "engine/core/event_outbox.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace octavo {
namespace {

template <class Value>
void move_to_end(std::vector<Value>& target, std::vector<Value>& source) {
  target.insert(target.end(), std::make_move_iterator(source.begin()), std::make_move_iterator(source.end()));
}

void join(TokensGenerated& earlier, TokensGenerated& later) {
  move_to_end(earlier.token_ids, later.token_ids);
  move_to_end(earlier.logprobs, later.logprobs);
  move_to_end(earlier.top_logprobs, later.top_logprobs);
  earlier.text += later.text;
}

void join(PromptProgress& earlier, const PromptProgress& later) { earlier = later; }

void join(BeamsAdvanced& earlier, BeamsAdvanced& later) { move_to_end(earlier.steps, later.steps); }

void join(RequestPreempted& earlier, const RequestPreempted& later) {
  earlier.first_output_index = std::min(earlier.first_output_index, later.first_output_index);
  earlier.num_tokens_dropped += later.num_tokens_dropped;
}

}  // namespace

void EventOutbox::add(std::vector<EngineEvent> events) {
  if (events.empty()) return;
  {
    std::lock_guard lock(mutex_);
    for (EngineEvent& event : events) add_locked(std::move(event));
  }
  not_empty_.notify_all();
}

void EventOutbox::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  not_empty_.notify_all();
}

std::vector<EngineEvent> EventOutbox::take(std::chrono::microseconds timeout) {
  std::unique_lock lock(mutex_);
  not_empty_.wait_for(lock, timeout, [&] { return closed_ || !waiting_.empty(); });
  tokens_at_.clear();
  beams_at_.clear();
  preempted_at_.clear();
  progress_at_.clear();
  return std::exchange(waiting_, {});
}

void EventOutbox::add_locked(EngineEvent event) {
  if (auto* tokens = std::get_if<TokensGenerated>(&event)) {
    const auto [place, is_first] =
        tokens_at_.try_emplace({tokens->request_id, tokens->output_index}, waiting_.size());
    if (!is_first) return join(std::get<TokensGenerated>(waiting_[place->second]), *tokens);
  } else if (const auto* progress = std::get_if<PromptProgress>(&event)) {
    const auto [place, is_first] = progress_at_.try_emplace(progress->request_id, waiting_.size());
    if (!is_first) return join(std::get<PromptProgress>(waiting_[place->second]), *progress);
  } else if (auto* beams = std::get_if<BeamsAdvanced>(&event)) {
    const auto [place, is_first] = beams_at_.try_emplace(beams->request_id, waiting_.size());
    if (!is_first) return join(std::get<BeamsAdvanced>(waiting_[place->second]), *beams);
  } else if (auto* preempted = std::get_if<RequestPreempted>(&event)) {
    const auto [place, is_first] = preempted_at_.try_emplace(preempted->request_id, waiting_.size());
    if (!is_first) return join(std::get<RequestPreempted>(waiting_[place->second]), *preempted);
  }
  waiting_.push_back(std::move(event));
}

}  // namespace octavo
