#include "app/remote/remote_engine.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include "app/http_client/event_stream.h"
#include "app/remote/answer_stream.h"
#include "app/remote/remote_request.h"
#include "app/remote/remote_tokenizer.h"
#include "engine/base/draw_seed.h"
#include "engine/base/overloaded.h"
#include "engine/base/request_counter.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::string_view kRemoteDevice = "remote";
constexpr std::chrono::milliseconds kLongestWait{1'000};
constexpr int kMostTries = 4;
constexpr std::int64_t kFirstRetryUs = 500'000;
constexpr std::int64_t kLongestRetryUs = 30'000'000;  // that a server may ask us to wait
constexpr std::size_t kMostErrorBytes = 64 * 1024;
constexpr std::uint64_t kMostSeed = (std::uint64_t{1} << 53) - 1;  // that survives any JSON reader

// One output of a request as its text grows: thinking comes in the marks that answers have here.
struct GrowingOutput {
  bool is_thinking = false;
  bool has_thought = false;
  bool has_ended = false;
  bool is_cancelled = false;  // ended here: what the server still sends of it is thrown away
};

struct RemoteRequest {
  RequestId id;
  std::int32_t num_outputs = 1;
  GenerationRequest asked;
  RemoteCall call;
  std::int32_t first_output =
      0;  // that this call brings: servers that know no `n` are asked for one after another
  std::uint64_t seed = 0;
  std::int64_t submitted_us = 0;
  int num_tries = 0;
  std::int64_t retry_us = 0;                      // when it is sent again, while nothing is under way
  std::optional<http::TransferId> transfer = {};  // none: it waits
  int status = 0;
  std::string retry_after = {};
  std::string error_body = {};
  http::EventStream events = http::EventStream();
  std::vector<GrowingOutput> outputs = {};
  std::optional<AnswerUsage> usage = {};
  std::optional<Error> error = {};
  bool is_accepted = false;
  std::int64_t first_us = 0, newest_us = 0;
  std::int64_t num_pieces = 0;
};

struct SubmitCommand {
  RemoteRequest request;
};
struct CancelCommand {
  RequestId id;
};
struct CancelOutputCommand {
  RequestId id;
  std::int32_t output_index = 0;
};
using RemoteCommand = std::variant<SubmitCommand, CancelCommand, CancelOutputCommand>;

FinishReason finish_of(const std::string& reason, std::string& detail) {
  if (reason == "stop") return FinishReason::kStop;
  if (reason == "length") return FinishReason::kLength;
  if (reason == "tool_calls" || reason == "function_call") {
    detail = "the model asked for a function to be called, which chats here do not do";
  } else {
    detail = "the server ended the answer: " + escape_for_message(reason, 80);
  }
  return FinishReason::kStop;
}

// "2" seconds; anything else, a date included, is our own time.
std::int64_t retry_delay_us(const RemoteRequest& request) {
  std::int64_t delay_us = kFirstRetryUs << std::max(0, request.num_tries - 1);
  int seconds = 0;
  const std::string& text = request.retry_after;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem == std::errc() && end == text.data() + text.size() && seconds >= 0)
    delay_us = std::max<std::int64_t>(delay_us, std::int64_t{seconds} * 1'000'000);
  return std::min(delay_us, kLongestRetryUs);
}

class RemoteEngine final : public Engine {
 public:
  RemoteEngine(const RemoteEngineOptions& options, EngineDescription description)
      : options_(options),
        endpoint_{.address = options.name.address, .key = options.key},
        description_(std::move(description)),
        clock_(options.clock != nullptr ? *options.clock : own_clock_),
        client_(clock_, options.ca_file),
        history_(std::make_shared<metrics::StepRecorder>(metrics::PoolShape{})),
        thread_([this] { run(); }) {}
  ~RemoteEngine() override { stop(); }

  const EngineDescription& description() const override { return description_; }
  const tokenizer::Tokenizer& tokenizer() const override { return tokenizer_; }

  RequestId submit(GenerationRequest request) override {
    std::vector<GenerationRequest> requests;
    requests.push_back(std::move(request));
    return submit_all(std::move(requests)).front();
  }

  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override {
    std::vector<RequestId> ids;
    std::vector<EngineEvent> refused;
    {
      const std::lock_guard lock(mutex_);
      for (const GenerationRequest& request : requests) {
        ids.push_back(next_request_id());
        RemoteRequest remote;
        remote.id = ids.back();
        remote.num_outputs = std::max(1, request.sampling.n);
        remote.submitted_us = clock_.now_us();
        remote.seed = request.sampling.seed ? *request.sampling.seed : draw_seed() & kMostSeed;
        remote.outputs.resize(static_cast<std::size_t>(remote.num_outputs));
        Result<RemoteCall> call = remote_call(request, options_.name.model, remote.seed);
        if (is_stopping_) call = Error{ErrorCode::kCancelled, "the model was unloaded"};
        if (!call) {
          refused.push_back(RequestFailed{remote.id, std::move(call).error(), {}});
          continue;
        }
        remote.call = *std::move(call);
        remote.asked = request;
        commands_.push_back(SubmitCommand{std::move(remote)});
      }
    }
    tell(std::move(refused));
    client_.wake_up();
    return ids;
  }

  void cancel(RequestId id) override { command(CancelCommand{id}); }
  void cancel_output(RequestId id, std::int32_t output_index) override {
    command(CancelOutputCommand{id, output_index});
  }

  void reset_prefix_cache() override {}  // it is the server's

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    client_.wake_up();
    const std::lock_guard joining(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override {
    std::unique_lock lock(events_mutex_);
    if (events_.empty() && timeout.count() > 0)
      told_.wait_for(lock, timeout, [&] { return !events_.empty() || has_ended_; });
    return std::exchange(events_, {});
  }
  void set_wake_up(std::function<void()> wake_up) override {
    const std::lock_guard lock(events_mutex_);
    wake_up_ = std::move(wake_up);
  }

  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope) override { return nullptr; }
  void watch_block(std::optional<BlockId>) override {}
  KvTotals kv_totals() const override { return {}; }
  std::shared_ptr<const metrics::StepRecorder> history() const override { return history_; }

 private:
  void command(RemoteCommand command) {
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back(std::move(command));
    }
    client_.wake_up();
  }

  std::uint64_t draw_seed() const { return options_.draw_seed ? options_.draw_seed() : octavo::draw_seed(); }

  // ---- the thread

  void run() {
    while (take_commands()) {
      send_waiting();
      client_.wait(time_to_wait());
    }
    while (!requests_.empty()) abort(requests_.begin()->first);
    const std::lock_guard lock(events_mutex_);
    has_ended_ = true;
    told_.notify_all();
  }

  // False: it is the end.
  bool take_commands() {
    std::vector<RemoteCommand> commands;
    bool is_end = false;
    {
      const std::lock_guard lock(mutex_);
      commands = std::exchange(commands_, {});
      is_end = is_stopping_;
    }
    for (RemoteCommand& command : commands) {
      std::visit(Overloaded{[&](SubmitCommand& submitted) {
                              const RequestId id = submitted.request.id;
                              requests_.emplace(id, std::move(submitted.request));
                            },
                            [&](const CancelCommand& cancelled) { abort(cancelled.id); },
                            [&](const CancelOutputCommand& cancelled) {
                              abort_output(cancelled.id, cancelled.output_index);
                            }},
                 command);
    }
    return !is_end;
  }

  void send_waiting() {
    for (auto& [id, request] : requests_)
      if (!request.transfer && request.retry_us <= clock_.now_us()) send(request);
  }

  std::chrono::milliseconds time_to_wait() const {
    auto wait = kLongestWait;
    for (const auto& [id, request] : requests_) {
      if (request.transfer) continue;
      const auto until = std::chrono::milliseconds((request.retry_us - clock_.now_us()) / 1000 + 1);
      wait = std::clamp(until, std::chrono::milliseconds(0), wait);
    }
    return wait;
  }

  void send(RemoteRequest& request) {
    ++request.num_tries;
    request.status = 0;
    request.error_body.clear();
    request.retry_after.clear();
    http::ClientRequest wanted =
        request_at(endpoint_.address + request.call.path, endpoint_, request.call.body);
    wanted.limits = options_.limits;
    const RequestId id = request.id;
    request.transfer = client_.start(
        std::move(wanted),
        {.on_head =
             [this, id](const http::AnswerHead& head) {
               requests_.at(id).status = head.status;
               requests_.at(id).retry_after = head.header("retry-after");
             },
         .on_body = [this, id](std::string_view bytes) { take(requests_.at(id), bytes); },
         .on_end = [this, id](const http::TransferEnd& end) { finish(requests_.at(id), end); }});
  }

  // ---- what comes back

  void take(RemoteRequest& request, std::string_view bytes) {
    if (request.status != 200) {
      const std::size_t room = kMostErrorBytes - std::min(kMostErrorBytes, request.error_body.size());
      request.error_body += bytes.substr(0, room);
      return;
    }
    std::vector<EngineEvent> events;
    for (const http::ServerEvent& event : request.events.feed(bytes)) {
      if (request.error) break;
      const Result<AnswerChunk> chunk = read_answer_chunk(event.data);
      if (!chunk) {
        request.error = chunk.error();
      } else {
        take_chunk(request, *chunk, events);
      }
    }
    tell(std::move(events));
    if (!request.error && !request.events.has_overflowed()) return;
    client_.cancel(*request.transfer);  // what follows would only be thrown away
    finish(request, {});
  }

  void take_chunk(RemoteRequest& request, const AnswerChunk& chunk, std::vector<EngineEvent>& events) {
    accept(request, events);
    if (chunk.usage) request.usage = chunk.usage;
    for (const AnswerPiece& piece : chunk.pieces) {
      const std::int32_t output = piece.index + request.first_output;
      if (output >= request.num_outputs || request.outputs[static_cast<std::size_t>(output)].has_ended)
        continue;
      add_piece(request, output, piece, events);
      if (!piece.finish_reason.empty()) end_output(request, output, piece.finish_reason, events);
    }
  }

  void accept(RemoteRequest& request, std::vector<EngineEvent>& events) {
    if (!std::exchange(request.is_accepted, true))
      events.push_back(RequestAccepted{request.id, {}, request.seed});
  }

  void add_piece(RemoteRequest& request, std::int32_t index, const AnswerPiece& piece,
                 std::vector<EngineEvent>& events) {
    GrowingOutput& output = request.outputs[static_cast<std::size_t>(index)];
    if (!piece.thinking.empty()) {
      const bool begins =
          !std::exchange(output.is_thinking, true) && !std::exchange(output.has_thought, true);
      add_text(request, index, (begins ? "<think>\n" : "") + piece.thinking, {}, events);
    }
    if (piece.text.empty() && piece.scores.empty()) return;
    const bool ends_thinking = !piece.text.empty() && std::exchange(output.is_thinking, false);
    if (ends_thinking) add_text(request, index, "\n</think>\n\n", {}, events);
    add_text(request, index, piece.text, piece.scores, events);
  }

  void add_text(RemoteRequest& request, std::int32_t index, const std::string& text,
                const std::vector<TokenScore>& scores, std::vector<EngineEvent>& events) {
    const std::int64_t now_us = clock_.now_us();
    if (request.num_pieces++ == 0) request.first_us = now_us;
    request.newest_us = now_us;
    TokensGenerated event;
    event.request_id = request.id;
    event.output_index = index;
    event.text = sanitise_utf8(text);
    event.ttft_us = request.first_us - request.submitted_us;
    for (const TokenScore& score : scores) {
      event.token_ids.push_back(tokenizer_.token(score.token.text));
      event.logprobs.push_back(static_cast<float>(score.token.logprob));
      std::vector<TokenLogprob>& top = event.top_logprobs.emplace_back();
      for (const TextLogprob& other : score.top)
        top.push_back({tokenizer_.token(other.text), static_cast<float>(other.logprob)});
    }
    if (scores.empty()) event.token_ids.push_back(tokenizer_.token(text));
    events.push_back(std::move(event));
  }

  void end_output(RemoteRequest& request, std::int32_t index, const std::string& reason,
                  std::vector<EngineEvent>& events) {
    request.outputs[static_cast<std::size_t>(index)].has_ended = true;
    OutputFinished event{.request_id = request.id, .output_index = index};
    event.finish_reason = finish_of(reason, event.detail);
    events.push_back(std::move(event));
  }

  // ---- ends

  void finish(RemoteRequest& request, const http::TransferEnd& end) {
    request.transfer.reset();
    if (may_try_again(request, end)) {
      request.retry_us = clock_.now_us() + retry_delay_us(request);
      return;
    }
    std::optional<Error> error = request.error;
    if (!error) error = end.error;
    if (!error && request.status != 200)
      error = error_of_answer(request.status, request.error_body, endpoint_.address);
    if (!error && brings_next_output(request)) return;
    const auto has_ended = [](const GrowingOutput& output) { return output.has_ended; };
    if (!error && !std::ranges::all_of(request.outputs, has_ended)) {
      error = Error{ErrorCode::kIo, std::string(request.events.has_overflowed()
                                                    ? "the server sent an event that is too long"
                                                    : "the server's answer broke off before its end")};
    }
    EngineEvent event = RequestFinished{request.id, {}, metrics_of(request)};
    if (error) event = RequestFailed{request.id, *std::move(error), metrics_of(request)};
    requests_.erase(request.id);
    tell({std::move(event)});
  }

  // Whether a server that knows no `n` is asked for the next answer: it has given one more, and it alone.
  bool brings_next_output(RemoteRequest& request) const {
    const auto asked_for = std::span(request.outputs).subspan(static_cast<std::size_t>(request.first_output));
    const auto is_given = [](const GrowingOutput& output) {
      return output.has_ended && !output.is_cancelled;
    };
    const auto open = std::ranges::find_if_not(asked_for, &GrowingOutput::has_ended);
    const bool gave_one = open != asked_for.begin() && open != asked_for.end() &&
                          std::ranges::none_of(asked_for.subspan(1), is_given);
    if (!gave_one) return false;
    request.first_output += static_cast<std::int32_t>(open - asked_for.begin());
    GenerationRequest next = request.asked;
    next.sampling.n = 1;
    const std::uint64_t seed = (request.seed + static_cast<std::uint64_t>(request.first_output)) & kMostSeed;
    Result<RemoteCall> call = remote_call(next, options_.name.model, seed);
    if (!call) return false;
    request.call = *std::move(call);
    request.events = http::EventStream();
    request.retry_us = 0;
    return true;
  }

  static bool may_try_again(const RemoteRequest& request, const http::TransferEnd& end) {
    if (request.num_tries >= kMostTries || request.is_accepted || request.error) return false;
    if (end.error) return end.error->code == ErrorCode::kIo && !end.may_have_arrived;
    return request.status == 429 || request.status == 503;
  }

  // What is known of an answer: the prompt by the server's usage, and nothing where it does not say how much
  // of it was cached.
  RequestMetrics metrics_of(const RemoteRequest& request) const {
    RequestMetrics metrics;
    metrics.e2e_us = clock_.now_us() - request.submitted_us;
    if (request.num_pieces == 0) return metrics;
    metrics.ttft_us = request.first_us - request.submitted_us;
    const std::int64_t num_tokens = request.usage && request.usage->num_output_tokens > 0
                                        ? request.usage->num_output_tokens / request.num_outputs
                                        : request.num_pieces / request.num_outputs;
    if (num_tokens > 1) metrics.tpot_us = (request.newest_us - request.first_us) / (num_tokens - 1);
    if (request.usage && request.usage->num_cached_tokens) {
      const auto within = [](std::int64_t count) {
        return static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, INT32_MAX));
      };
      metrics.prompt.num_hit_cached =
          within(std::min(*request.usage->num_cached_tokens, request.usage->num_prompt_tokens));
      metrics.prompt.num_computed = within(request.usage->num_prompt_tokens) - metrics.prompt.num_hit_cached;
    }
    return metrics;
  }

  void abort(RequestId id) {
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    RemoteRequest& request = found->second;
    if (request.transfer) client_.cancel(*request.transfer);
    std::vector<EngineEvent> events;
    for (std::int32_t i = 0; i < request.num_outputs; ++i) {
      if (request.outputs[static_cast<std::size_t>(i)].has_ended) continue;
      events.push_back(
          OutputFinished{.request_id = id, .output_index = i, .finish_reason = FinishReason::kAbort});
    }
    events.push_back(RequestFinished{id, {}, metrics_of(request)});
    requests_.erase(found);
    tell(std::move(events));
  }

  void abort_output(RequestId id, std::int32_t output_index) {
    const auto found = requests_.find(id);
    if (found == requests_.end() || output_index < 0 || output_index >= found->second.num_outputs) return;
    RemoteRequest& request = found->second;
    GrowingOutput& output = request.outputs[static_cast<std::size_t>(output_index)];
    if (output.has_ended) return;
    if (std::ranges::count_if(request.outputs, &GrowingOutput::has_ended) == request.num_outputs - 1)
      return abort(id);  // it was the last
    output.has_ended = output.is_cancelled = true;
    tell({OutputFinished{
        .request_id = id, .output_index = output_index, .finish_reason = FinishReason::kAbort}});
  }

  void tell(std::vector<EngineEvent> events) {
    if (events.empty()) return;
    std::function<void()> wake_up;
    {
      const std::lock_guard lock(events_mutex_);
      std::ranges::move(events, std::back_inserter(events_));
      wake_up = wake_up_;
    }
    told_.notify_all();
    if (wake_up) wake_up();
  }

  const RemoteEngineOptions options_;
  const Endpoint endpoint_;
  const EngineDescription description_;
  const SteadyClock own_clock_;
  const Clock& clock_;
  RemoteTokenizer tokenizer_;
  http::Client client_;  // of the thread, but for its wake_up
  std::shared_ptr<const metrics::StepRecorder> history_;
  std::map<RequestId, RemoteRequest> requests_;  // of the thread

  std::mutex mutex_;
  std::vector<RemoteCommand> commands_;  // guarded by mutex_
  bool is_stopping_ = false;             // guarded by mutex_

  std::mutex events_mutex_;
  std::condition_variable told_;
  std::vector<EngineEvent> events_;  // guarded by events_mutex_, as the next two
  std::function<void()> wake_up_;
  bool has_ended_ = false;

  std::mutex join_mutex_;
  std::thread thread_;
};

Result<EngineDescription> describe(const RemoteEngineOptions& options, RemoteModelName& name,
                                   const LoadProgress& progress) {
  const SteadyClock clock;
  http::Client client(clock, options.ca_file);
  const auto is_stopped = [&] { return progress && !progress(0.1); };
  OCTAVO_TRY(const std::vector<RemoteModel> models,
             list_models(client, {.address = name.address, .key = options.key}, is_stopped));
  auto found = models.begin();
  if (!name.model.empty()) found = std::ranges::find(models, name.model, &RemoteModel::id);
  if (found == models.end()) {
    const std::string what =
        name.model.empty() ? "no model" : "no model '" + escape_for_message(name.model) + "'";
    return Error{ErrorCode::kNotFound, "the server has " + what + "; choose one of its list"};
  }
  name.model = found->id;
  EngineDescription description;
  description.model.path = remote_model_path(name);
  description.model.name = sanitise_utf8(found->id);
  description.model.has_chat_template = true;
  description.device = kRemoteDevice;
  description.max_model_len = found->context_len;
  return description;
}

}  // namespace

bool is_remote_model(std::string_view path) {
  return path.starts_with("http://") || path.starts_with("https://");
}

std::string remote_model_path(const RemoteModelName& name) { return name.address + "#" + name.model; }

Result<RemoteModelName> parse_remote_model(std::string_view path) {
  const std::size_t hash = std::min(path.find('#'), path.size());
  RemoteModelName name;
  OCTAVO_TRY(name.address, normal_address(path.substr(0, hash)));
  name.model = path.substr(std::min(path.size(), hash + 1));
  return name;
}

Result<std::unique_ptr<Engine>> connect_remote_engine(const RemoteEngineOptions& given,
                                                      LoadProgress progress) {
  RemoteEngineOptions options = given;
  OCTAVO_TRY(EngineDescription description, describe(options, options.name, progress));
  if (progress && !progress(1.0)) return Error{ErrorCode::kCancelled, "loading was cancelled"};
  return std::unique_ptr<Engine>(std::make_unique<RemoteEngine>(options, std::move(description)));
}

bool is_remote(const EngineDescription& description) { return description.device == kRemoteDevice; }

}  // namespace octavo::app
