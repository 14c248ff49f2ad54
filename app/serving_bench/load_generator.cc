#include "app/serving_bench/load_generator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/http_client/event_stream.h"
#include "app/remote/answer_stream.h"

namespace octavo::app {
namespace {

constexpr std::int64_t kLookUs = 100'000;           // in which a stop is noticed
constexpr std::size_t kMostErrorBytes = 64 * 1024;  // of an answer that is no success

Json messages_of(const PlannedChat& chat, std::size_t turn, const std::vector<std::string>& answers) {
  Json messages = Json::array();
  if (!chat.system_prompt.empty()) messages.push_back({{"role", "system"}, {"content", chat.system_prompt}});
  for (std::size_t i = 0; i <= turn; ++i) {
    messages.push_back({{"role", "user"}, {"content", chat.turns[i].text}});
    if (i < turn) messages.push_back({{"role", "assistant"}, {"content", answers[i]}});
  }
  return messages;
}

std::string text_of(const PlannedChat& chat, std::size_t turn, const std::vector<std::string>& answers) {
  std::string text = chat.system_prompt;
  for (std::size_t i = 0; i <= turn; ++i) {
    if (!text.empty()) text += i == 0 ? " " : "\n";
    text += chat.turns[i].text;
    if (i < turn) text += "\n" + answers[i];
  }
  return text;
}

std::int64_t asked_prompt_tokens(const PlannedChat& chat, std::size_t turn) {
  std::int64_t count = chat.num_system_tokens;
  for (std::size_t i = 0; i <= turn; ++i) {
    count += chat.turns[i].num_tokens;
    if (i < turn) count += chat.turns[i].num_output_tokens;
  }
  return count;
}

class Load {
 public:
  Load(http::Client& client, const Clock& clock, const LoadTarget& target,
       const std::vector<PlannedChat>& chats, const std::vector<std::int64_t>& arrivals,
       std::size_t most_running)
      : client_(client),
        clock_(clock),
        target_(target),
        chats_(chats),
        arrivals_(arrivals),
        most_running_(most_running),
        begin_us_(clock.now_us()) {
    answers_.resize(chats.size());
    for (const PlannedChat& chat : chats) progress_.num_turns += chat.turns.size();
  }

  LoadRun run(const GoOnLoading& go_on) {
    while (!is_over()) {
      progress_.elapsed_us = now_us();
      progress_.num_running = running_.size();
      if (go_on && !go_on(progress_)) {
        stop();
        break;
      }
      send_due();
      // A millisecond is as fine as waiting goes: what is due sooner is waited for in turns without a pause.
      client_.wait(std::chrono::milliseconds{std::clamp<std::int64_t>(us_to_next(), 0, kLookUs) / 1000});
    }
    return std::move(result_);
  }

 private:
  struct Running {
    http::TransferId transfer = 0;
    RequestRecord record;
    http::EventStream events;
    int status = 0;
    std::string error_body;
    std::string text;
    std::optional<AnswerUsage> usage;
    bool has_end = false;  // a finish reason, or [DONE]
  };
  struct Due {
    std::size_t chat, turn;
    std::int64_t planned_us;
  };

  std::int64_t now_us() const { return clock_.now_us() - begin_us_; }
  bool is_over() const { return next_arrival_ == chats_.size() && due_.empty() && running_.empty(); }

  std::int64_t us_to_next() const {
    const bool may_send = most_running_ == 0 || running_.size() < most_running_;
    if (!may_send) return kLookUs;
    if (!due_.empty()) return 0;
    return next_arrival_ < chats_.size() ? arrivals_[next_arrival_] - now_us() : kLookUs;
  }

  void send_due() {
    for (; next_arrival_ < chats_.size() && arrivals_[next_arrival_] <= now_us(); ++next_arrival_)
      due_.push_back({next_arrival_, 0, arrivals_[next_arrival_]});
    while (!due_.empty() && (most_running_ == 0 || running_.size() < most_running_)) {
      send(due_.front());
      due_.pop_front();
    }
    result_.most_running = std::max(result_.most_running, running_.size());
  }

  void send(const Due& due) {
    auto running = std::make_unique<Running>();
    running->record = {.chat = due.chat, .turn = due.turn, .planned_us = due.planned_us};
    const std::size_t number = next_number_++;
    http::ClientRequest request = request_at(
        target_.url, target_.endpoint, request_body(target_, chats_[due.chat], due.turn, answers_[due.chat]));
    request.limits = target_.limits;
    running->record.sent_us = now_us();
    running->transfer = client_.start(
        std::move(request),
        {.on_head = [this,
                     number](const http::AnswerHead& head) { running_.at(number)->status = head.status; },
         .on_body = [this, number](std::string_view bytes) { take(*running_.at(number), bytes); },
         .on_end = [this, number](const http::TransferEnd& end) { finish(number, end); }});
    running_.emplace(number, std::move(running));
  }

  void take(Running& running, std::string_view bytes) {
    if (running.status != 200) {
      running.error_body +=
          bytes.substr(0, kMostErrorBytes - std::min(kMostErrorBytes, running.error_body.size()));
      return;
    }
    for (const http::ServerEvent& event : running.events.feed(bytes)) {
      if (running.record.error) return;
      Result<AnswerChunk> chunk = read_answer_chunk(event.data);
      if (!chunk) {
        running.record.error = std::move(chunk).error();
      } else {
        take_chunk(running, *std::move(chunk));
      }
    }
  }

  void take_chunk(Running& running, AnswerChunk chunk) {
    if (chunk.usage) running.usage = chunk.usage;
    running.has_end = running.has_end || chunk.is_last;
    for (AnswerPiece& piece : chunk.pieces) {
      running.has_end = running.has_end || !piece.finish_reason.empty();
      if (piece.text.empty() && piece.thinking.empty()) continue;
      running.record.piece_us.push_back(now_us());
      running.text += piece.text;
      ++progress_.num_output_tokens;
    }
  }

  void finish(std::size_t number, const http::TransferEnd& end) {
    const std::unique_ptr<Running> running = std::move(running_.at(number));
    running_.erase(number);
    RequestRecord& record = running->record;
    record.end_us = now_us();
    note_failure(*running, end);
    const PlannedChat& chat = chats_[record.chat];
    record.is_counted_by_server = running->usage.has_value();
    record.num_prompt_tokens =
        running->usage ? running->usage->num_prompt_tokens : asked_prompt_tokens(chat, record.turn);
    record.num_output_tokens = running->usage ? running->usage->num_output_tokens
                                              : static_cast<std::int64_t>(record.piece_us.size());
    if (running->usage) record.num_cached_tokens = running->usage->num_cached_tokens;
    ++(record.ok() ? progress_.num_done : progress_.num_failed);
    if (record.ok() && record.turn + 1 < chat.turns.size()) {
      answers_[record.chat].push_back(std::move(running->text));
      due_.push_back({record.chat, record.turn + 1, record.end_us});
    }
    result_.duration_us = record.end_us;
    result_.records.push_back(std::move(record));
  }

  void note_failure(Running& running, const http::TransferEnd& end) const {
    RequestRecord& record = running.record;
    if (record.error) return;
    if (end.error) {
      record.error = end.error;
    } else if (running.status != 200) {
      record.error = error_of_answer(running.status, running.error_body, target_.endpoint.address);
    } else if (running.events.has_overflowed() || !running.has_end) {
      record.error = Error{ErrorCode::kIo, "the answer broke off before its end"};
    }
  }

  void stop() {
    for (const auto& [number, running] : running_) client_.cancel(running->transfer);
    result_.num_cut = running_.size();
    result_.is_stopped = true;
    result_.duration_us = now_us();
    running_.clear();
  }

  http::Client& client_;
  const Clock& clock_;
  const LoadTarget& target_;
  const std::vector<PlannedChat>& chats_;
  const std::vector<std::int64_t>& arrivals_;
  const std::size_t most_running_;
  const std::int64_t begin_us_;
  std::vector<std::vector<std::string>> answers_;  // of each chat
  std::size_t next_arrival_ = 0;
  std::size_t next_number_ = 0;
  std::deque<Due> due_;
  std::map<std::size_t, std::unique_ptr<Running>> running_;
  LoadProgress progress_;
  LoadRun result_;
};

}  // namespace

std::string request_body(const LoadTarget& target, const PlannedChat& chat, std::size_t turn,
                         const std::vector<std::string>& answers) {
  Json body = {{"model", target.model}};
  if (target.form == RequestForm::kChatCompletions) {
    body["messages"] = messages_of(chat, turn, answers);
    body["max_completion_tokens"] = chat.turns[turn].num_output_tokens;
    body["max_tokens"] = chat.turns[turn].num_output_tokens;  // some servers know the older name alone
  } else {
    body["prompt"] = text_of(chat, turn, answers);
    body["max_tokens"] = chat.turns[turn].num_output_tokens;
  }
  if (target.temperature) body["temperature"] = *target.temperature;
  if (target.ignore_eos) body["ignore_eos"] = true;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (!target.extra_body.empty()) {
    const Result<Json> extra = parse_json(target.extra_body, "--extra-body");
    if (extra && extra->is_object()) body.update(*extra);
  }
  return dump(body);
}

LoadRun run_load(http::Client& client, const Clock& clock, const LoadTarget& target,
                 const std::vector<PlannedChat>& chats, const std::vector<std::int64_t>& arrivals,
                 std::size_t most_running, const GoOnLoading& go_on) {
  return Load(client, clock, target, chats, arrivals, most_running).run(go_on);
}

}  // namespace octavo::app
