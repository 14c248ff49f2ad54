#include "app/server/service.h"

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <variant>

#include "app/server/chat_completions.h"
#include "app/server/completions.h"
#include "app/server/embeddings.h"
#include "app/server/messages.h"
#include "app/server/request_fields.h"
#include "app/server/responses.h"
#include "engine/base/text.h"
#include "engine/chat_template/civil_time.h"

namespace octavo::app {

// Whose clients a route answers.
enum class Protocol { kOpenAi, kAnthropic };

namespace {

constexpr std::size_t kWorkers = 2;
constexpr std::size_t kMostJobs = 1024;                 // bodies that wait to be read
constexpr std::int64_t kLongestSilenceUs = 10'000'000;  // of a stream; some clients give up after minutes
constexpr const char* kRetryAfterSeconds = "2";         // clients wait that long, whatever it says

http::Response json_response(const Json& body, int status = 200) {
  return {.status = status, .headers = {{"Content-Type", "application/json"}}, .body = dump(body)};
}

// What a client says to be known again by, in whichever place its protocol has for that.
std::string client_key(const http::Request& request, const Json& body) {
  const auto text_of = [](const Json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  std::string key(request.header("x-session-affinity"));
  if (key.empty()) key = text_of(body, "prompt_cache_key");
  if (key.empty() && body.contains("metadata")) key = text_of(body["metadata"], "user_id");
  return key.empty() ? text_of(body, "user") : key;
}

http::Response error_response(Protocol protocol, const ApiError& error, std::string_view request_id) {
  const bool is_anthropic = protocol == Protocol::kAnthropic;
  return json_response(is_anthropic ? anthropic_error(error, request_id) : openai_error(error), error.status);
}

// Of every answer: clients show the id in their errors.
void add_usual_headers(Protocol protocol, const std::string& id, std::vector<http::Header>& headers) {
  headers.push_back({protocol == Protocol::kAnthropic ? "request-id" : "x-request-id", id});
  headers.push_back({"Cache-Control", "no-store"});
}

std::string rfc3339(std::int64_t seconds) {
  const auto text = tokenizer::format_time("%Y-%m-%dT%H:%M:%SZ", seconds);
  return text ? *text : std::string();
}

// An id with a slash arrives as org%2Fname. Nothing else of a path is decoded.
std::string with_slashes(std::string_view id) {
  std::string decoded;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const std::string_view rest = id.substr(i, 3);
    const bool is_slash = rest == "%2F" || rest == "%2f";
    decoded += is_slash ? '/' : id[i];
    if (is_slash) i += 2;
  }
  return decoded;
}

}  // namespace

// ---- routes

struct Service::Exchange {
  const Route& route;
  const ServiceOptions& options;
  http::Request request;
  http::Reply reply;
  std::int64_t began_us = 0;
  std::vector<http::Header> headers = {};  // of every answer to it
  std::string id = {};                     // that the client is told, for its log

  void send(http::Response response) const {
    response.headers.insert(response.headers.end(), headers.begin(), headers.end());
    const int status = response.status;
    reply.send(std::move(response));
    note_end(status);
  }
  void send_error(const ApiError& error) const;
  void note_end(int status) const {
    if (options.answered)
      options.answered({.method = request.method,
                        .path = request.path,
                        .client = request.header("user-agent"),
                        .status = status,
                        .took_us = options.clock->now_us() - began_us});
  }
};

// Connections outlive the service, so that a client may leave behind its end.
class Service::Canceller {
 public:
  explicit Canceller(RequestRouter& router) : router_(&router) {}

  void cancel(const std::vector<RequestId>& requests) {
    const std::lock_guard lock(mutex_);
    if (router_ != nullptr) router_->cancel(requests);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    router_ = nullptr;
  }

 private:
  std::mutex mutex_;
  RequestRouter* router_;  // guarded by mutex_
};

struct Service::Route {
  std::string_view path;
  std::string_view method;
  Protocol protocol = Protocol::kOpenAi;
  ParseCall parse = nullptr;        // of a route that generates
  std::string_view id_prefix = {};  // of its answers
  // Of the others; on a worker where a body comes with it.
  void (*answer)(Service& service, const Exchange& exchange, const Json& body) = nullptr;
  bool needs_key = true;
};

void Service::Exchange::send_error(const ApiError& error) const {
  http::Response response = error_response(route.protocol, error, id);
  if (error.status == 429) response.headers.push_back({"Retry-After", kRetryAfterSeconds});
  send(std::move(response));
}

const std::vector<Service::Route>& Service::routes() {
  static constexpr auto send_result = [](const Exchange& exchange, const Result<Json>& result) {
    if (result) return exchange.send(json_response(*result));
    exchange.send_error(api_error_of(result.error()));
  };
  static const std::vector<Route> kRoutes = {
      {.path = "/v1/completions", .method = "POST", .parse = parse_completion, .id_prefix = "cmpl-"},
      {.path = "/v1/chat/completions",
       .method = "POST",
       .parse = parse_chat_completion,
       .id_prefix = "chatcmpl-"},
      {.path = "/v1/responses", .method = "POST", .parse = parse_response_call, .id_prefix = "resp_"},
      {.path = "/v1/messages",
       .method = "POST",
       .protocol = Protocol::kAnthropic,
       .parse = parse_message_call,
       .id_prefix = "msg_"},
      {.path = "/v1/messages/count_tokens",
       .method = "POST",
       .protocol = Protocol::kAnthropic,
       .answer = [](Service& service, const Exchange& exchange,
                    const Json& body) { send_result(exchange, service.count_tokens(body)); }},
      {.path = "/v1/embeddings", .method = "POST", .parse = parse_embedding, .id_prefix = "embd-"},
      {.path = "/tokenize",
       .method = "POST",
       .answer = [](Service& service, const Exchange& exchange,
                    const Json& body) { send_result(exchange, service.tokenize(body)); }},
      {.path = "/detokenize",
       .method = "POST",
       .answer = [](Service& service, const Exchange& exchange,
                    const Json& body) { send_result(exchange, service.detokenize(body)); }},
      {.path = "/reset_prefix_cache",
       .method = "POST",
       .answer =
           [](Service& service, const Exchange& exchange, const Json&) {
             service.engine_.reset_prefix_cache();
             exchange.send({});
           }},
      {.path = "/v1/models",
       .method = "GET",
       .answer = [](Service& service, const Exchange& exchange,
                    const Json&) { exchange.send(json_response(service.models())); }},
      {.path = "/v1/models/",  // and an id
       .method = "GET",
       .answer =
           [](Service& service, const Exchange& exchange, const Json&) {
             const std::string id =
                 with_slashes(std::string_view(exchange.request.path).substr(exchange.route.path.size()));
             const Json named = {{"model", id}};
             FieldReader fields(named);
             read_model(fields, service.model_);
             if (const auto known = fields.check(); !known)
               return exchange.send_error(api_error_of(known.error()));
             exchange.send(json_response(service.model(id)));
           }},
      {.path = "/tokenizer_info",
       .method = "GET",
       .answer = [](Service& service, const Exchange& exchange,
                    const Json&) { exchange.send(json_response(service.tokenizer_info())); }},
      {.path = "/metrics",
       .method = "GET",
       .answer = [](Service& service, const Exchange& exchange,
                    const Json&) { exchange.send(service.metrics_text()); }},
      {.path = "/octavo/requests",
       .method = "GET",
       .answer = [](Service& service, const Exchange& exchange,
                    const Json&) { exchange.send(json_response(service.log_.to_json())); }},
      {.path = "/version",
       .method = "GET",
       .answer =
           [](Service& service, const Exchange& exchange, const Json&) {
             exchange.send(json_response({{"version", service.options_.version}}));
           }},
      {.path = "/health",
       .method = "GET",
       .answer = [](Service&, const Exchange& exchange, const Json&) { exchange.send({}); },
       .needs_key = false},
  };
  return kRoutes;
}

const Service::Route* Service::find_route(std::string_view path) {
  for (const Route& route : routes()) {
    const bool takes_id = route.path.ends_with('/');
    if (takes_id ? path.size() > route.path.size() && path.starts_with(route.path) : path == route.path)
      return &route;
  }
  return nullptr;
}

// ---- the service

Service::Service(Engine& engine, ServiceOptions options)
    : engine_(engine),
      options_(std::move(options)),
      model_{.names = options_.model_names,
             .created = options_.unix_time_ms() / 1000,
             .description = engine.description(),
             .tokenizer = &engine.tokenizer()},
      access_(options_.access),
      own_log_(options_.log != nullptr
                   ? nullptr
                   : std::make_unique<RequestLog>(RequestLogOptions{
                         .tokenizer = &engine.tokenizer(), .block_size = engine.description().block_size})),
      log_(options_.log != nullptr ? *options_.log : *own_log_),
      metrics_({.model_name = model_.name(), .max_model_len = engine.description().max_model_len}),
      jobs_(kMostJobs),
      router_(
          engine,
          [this](const EngineEvent& event) {
            if (own_log_) own_log_->add(event);
            metrics_.add(event);
            write_line(event);
          },
          [this] { keep_streams_alive(); }),
      canceller_(std::make_shared<Canceller>(router_)) {
  for (std::size_t i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { work(); });
}

Service::~Service() {
  jobs_.close();
  workers_.clear();  // before what they use
  canceller_->end();
}

void Service::listens_at(std::uint16_t port, bool is_loopback) {
  const std::lock_guard lock(access_mutex_);
  access_.port = port;
  access_.is_loopback = is_loopback;
}

void Service::set_access(AccessRules rules) {
  const std::lock_guard lock(access_mutex_);
  access_ = std::move(rules);
}

AccessRules Service::access() const {
  const std::lock_guard lock(access_mutex_);
  return access_;
}

void Service::cancel_all() { router_.cancel_all(); }

http::Response Service::refuse(int status, const std::string& sentence) {
  return json_response(openai_error(api_error(status, sentence)), status);
}

http::Response Service::refuse_without_model(const AccessRules& rules, const http::Request& head,
                                             const std::string& why) {
  const Route* route = find_route(head.path);
  const Protocol protocol = route != nullptr ? route->protocol : Protocol::kOpenAi;
  if (const auto error = refusal(rules, head, route == nullptr || route->needs_key))
    return error_response(protocol, *error, {});
  http::Response response = error_response(protocol, api_error(503, why), {});
  response.headers.push_back({"Retry-After", kRetryAfterSeconds});
  for (const http::Header& header : origin_headers(rules, head)) response.headers.push_back(header);
  return response;
}

std::optional<http::Response> Service::check_head(const http::Request& head) const {
  const Route* route = find_route(head.path);
  const AccessRules rules = access();
  if (const auto error = refusal(rules, head, route == nullptr || route->needs_key)) {
    const Protocol protocol = route != nullptr ? route->protocol : Protocol::kOpenAi;
    const std::string id = "req_" + options_.new_hex();
    http::Response response = error_response(protocol, *error, id);
    add_usual_headers(protocol, id, response.headers);
    return response;
  }
  const std::vector<http::Header> headers = origin_headers(rules, head);
  if (head.method == "OPTIONS" && !headers.empty())
    return http::Response{.status = 204, .headers = headers, .body = {}};
  const auto refused = [&](int status, const std::string& sentence) {
    http::Response response = refuse(status, sentence);
    response.headers.insert(response.headers.end(), headers.begin(), headers.end());
    return response;
  };
  if (route == nullptr) return refused(404, "there is nothing at '" + escape_for_message(head.path) + "'");
  if (head.method != route->method) {
    http::Response response = refused(405, std::string(route->path) + " takes " + std::string(route->method));
    response.headers.push_back({"Allow", std::string(route->method)});
    return response;
  }
  return std::nullopt;
}

void Service::handle(http::Request request, http::Reply reply) {
  const Route& route = *find_route(request.path);  // check_head() let it in
  auto exchange = std::make_shared<Exchange>(Exchange{.route = route,
                                                      .options = options_,
                                                      .request = std::move(request),
                                                      .reply = std::move(reply),
                                                      .began_us = options_.clock->now_us()});
  exchange->id = "req_" + options_.new_hex();
  exchange->headers = origin_headers(access(), exchange->request);
  add_usual_headers(route.protocol, exchange->id, exchange->headers);
  if (!route.needs_key) return route.answer(*this, *exchange, {});  // answered however much waits
  std::function<void()> job = [this, exchange] {
    Json body;
    if (exchange->route.method == "POST" && !exchange->request.body.empty()) {
      Result<Json> read = parse_json(exchange->request.body, "the body");
      if (!read) return exchange->send_error(api_error_of(read.error()));
      body = *std::move(read);
      exchange->request.body.clear();
    }
    if (exchange->route.answer != nullptr) return exchange->route.answer(*this, *exchange, body);
    generate(exchange, body);
  };
  if (!jobs_.try_push(job)) {
    exchange->send_error(api_error(429, "too many requests wait to be read: try again soon"));
  }
}

void Service::work() {
  while (auto job = jobs_.pop()) {
    try {
      (*job)();
    } catch (const std::exception&) {  // of the JSON library or for want of memory; its Reply answers 500
    }
  }
}

// ---- calls

// Its events come on the router's thread, and the first of them may come before submit() has returned.
struct Service::OpenCall {
  std::shared_ptr<Exchange> exchange;
  std::unique_ptr<Answer> answer;
  RequestRouter& router;
  const Clock& clock;
  const RequestLog& log;
  bool stream = false;
  std::optional<std::string> compared_with = {};
  std::vector<RequestId> requests = {};
  bool begun = false;  // the head of a stream was sent
  bool over = false;   // the client has its answer, or its error
  std::int64_t last_sent_us = 0;

  void keep_alive() {
    if (begun && !over && clock.now_us() - last_sent_us > kLongestSilenceUs) write(answer->waiting_frames());
  }
  void take(std::size_t request, const EngineEvent& event) {
    if (over) return;
    try {
      follow(request, event);
    } catch (const std::exception&) {  // of the JSON library, or for want of memory
      fail({.code = ErrorCode::kInternal, .message = "the answer cannot be written"});
    }
  }

 private:
  void follow(std::size_t request, const EngineEvent& event);
  void begin();
  void write(std::string frames);
  void end() const {
    exchange->reply.end();
    exchange->note_end(200);
  }
  void fail(const Error& failure);
};

// A stream begins with the first event that is no failure: until then the status can still say what is wrong.
void Service::OpenCall::follow(std::size_t request, const EngineEvent& event) {
  if (compared_with && std::holds_alternative<RequestAccepted>(event))
    answer->compared(log.divergence_from(request_id_of(event), *compared_with));
  const std::string frames = answer->add(request, event);
  if (const auto& failure = answer->failure()) return fail(*failure);
  over = answer->done();
  if (stream) {
    if (!begun) begin();
    write(over ? frames + answer->last_frames() : frames);
    if (over) end();
  } else if (over) {
    exchange->send({.headers = {{"Content-Type", "application/json"}}, .body = answer->body()});
  }
}

void Service::OpenCall::begin() {
  begun = true;
  std::vector<http::Header> headers = exchange->headers;
  headers.push_back({"Content-Type", "text/event-stream; charset=utf-8"});
  headers.push_back({"X-Accel-Buffering", "no"});
  exchange->reply.begin(200, std::move(headers));
  write(answer->first_frames());
}

void Service::OpenCall::write(std::string frames) {
  if (frames.empty()) return;
  last_sent_us = clock.now_us();
  exchange->reply.write(std::move(frames));
}

void Service::OpenCall::fail(const Error& failure) {
  over = true;
  router.cancel(requests);  // the others are of no use alone
  const ApiError error = api_error_of(failure);
  if (!begun) return exchange->send_error(error);
  write(answer->failure_frames(error));
  end();
}

void Service::generate(const std::shared_ptr<Exchange>& exchange, const Json& body) {
  const CallIdentity identity{.hex = options_.new_hex(), .created = options_.unix_time_ms() / 1000};
  Result<Call> call = exchange->route.parse(body, model_, identity);
  if (!call) return exchange->send_error(api_error_of(call.error()));
  FieldReader fields(body);
  const RequestPriority priority = read_priority(fields, options_.priority);
  if (const auto read = fields.check(); !read) return exchange->send_error(api_error_of(read.error()));
  for (GenerationRequest& request : call->requests) request.priority = priority;
  // The inputs of one call for embeddings are many and short: together they count as one.
  const std::size_t num_requests = call->requests.front().embedding ? 1 : call->requests.size();
  if (router_.num_waiting() + num_requests > options_.max_waiting_requests) {
    return exchange->send_error(api_error(429, "the queue is full: " + std::to_string(router_.num_waiting()) +
                                                   " requests wait; try again soon"));
  }
  for (GenerationRequest& request : call->requests)
    request.cache_salt = options_.cache_salt + request.cache_salt;
  const auto open = std::make_shared<OpenCall>(OpenCall{.exchange = exchange,
                                                        .answer = std::move(call->answer),
                                                        .router = router_,
                                                        .clock = *options_.clock,
                                                        .log = log_,
                                                        .stream = call->stream,
                                                        .compared_with = std::move(call->compared_with)});
  const RequestOrigin origin{.id = std::string(exchange->route.id_prefix) + identity.hex,
                             .route = std::string(exchange->route.path),
                             .client = std::string(exchange->request.header("user-agent")),
                             .client_key = client_key(exchange->request, body),
                             .unix_ms = options_.unix_time_ms(),
                             .notes = std::move(call->notes),
                             .parts = parts_of(*call)};
  const std::vector<RequestId> ids = router_.submit(
      std::move(call->requests),
      [open](std::size_t request, const EngineEvent& event) { open->take(request, event); },
      [&](const std::vector<RequestId>& submitted) {
        open->requests = submitted;
        for (const RequestId id : submitted) {
          log_.begin(id, origin);
          metrics_.begin(id);
        }
      });
  exchange->reply.on_client_left([canceller = canceller_, ids] { canceller->cancel(ids); });
  if (!open->stream) return;
  const std::lock_guard lock(streams_mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<OpenCall>& stream) { return stream.expired(); });
  streams_.push_back(open);
}

// Of a chat, which is one request.
std::shared_ptr<const RenderedParts> Service::parts_of(const Call& call) const {
  const auto* const chat = std::get_if<ChatPrompt>(&call.requests.front().prompt);
  if (chat == nullptr) return nullptr;
  auto rendered = render_parts(*chat, call.names, options_.unix_time_ms() / 1000, *model_.tokenizer);
  return rendered ? std::make_shared<const RenderedParts>(*std::move(rendered)) : nullptr;
}

// Comparing takes time, which the router's thread has not; a worker has.
void Service::write_line(const EngineEvent& event) {
  if (!options_.write_line || !is_last_event(event)) return;
  std::function<void()> job = [this, id = request_id_of(event)] {
    const std::string line = log_.line(id, options_.lines_hold_texts);
    if (!line.empty()) options_.write_line(line);
  };
  if (!jobs_.try_push(job)) job();  // too much waits, or the service ends
}

// On the router's thread, as all else that is written.
void Service::keep_streams_alive() {
  const std::lock_guard lock(streams_mutex_);
  for (const std::weak_ptr<OpenCall>& stream : streams_)
    if (const auto open = stream.lock()) open->keep_alive();
}

// ---- what needs no generation

Json Service::model(std::string_view id) const {
  const std::int64_t created = model_.created;
  return {{"id", id},
          {"object", "model"},
          {"created", created},
          {"owned_by", "octavo"},
          {"root", model_.description.model.name},
          {"parent", nullptr},
          {"max_model_len", model_.description.max_model_len},
          {"embeddings", embedding_description(model_)},
          {"type", "model"},
          {"display_name", model_.description.model.name},
          {"created_at", rfc3339(created)},
          {"lifecycle", "active"}};
}

// One list for the clients of both vendors. Codex wants a list of its own beside it, and reads an empty one.
Json Service::models() const {
  Json data = Json::array();
  for (const std::string& name : model_.names) data.push_back(model(name));
  return {{"object", "list"},
          {"data", std::move(data)},
          {"has_more", false},
          {"first_id", model_.names.front()},
          {"last_id", model_.names.back()},
          {"models", Json::array()}};
}

// The shapes are vLLM's.
Result<Json> Service::tokenize(const Json& body) const {
  FieldReader fields(body);
  read_model(fields, model_);
  std::vector<TokenId> tokens;
  if (fields.has("messages")) {
    OCTAVO_TRY(const Call call, parse_chat_completion(body, model_, {}));
    OCTAVO_TRY(tokens, encode_chat(std::get<ChatPrompt>(call.requests.front().prompt)));
  } else {
    const std::string prompt = fields.text("prompt").value_or("");
    const bool add_special_tokens = fields.flag("add_special_tokens").value_or(true);
    if (!fields.has("prompt")) fields.refuse("prompt", "a text, or messages in its place");
    OCTAVO_TRY_VOID(fields.check());
    OCTAVO_TRY(tokens, model_.tokenizer->encode(prompt, /*parse_special=*/true, add_special_tokens));
  }
  Json texts = Json::array();
  for (const TokenId id : tokens) texts.push_back(sanitise_utf8(model_.tokenizer->token_bytes(id)));
  return Json{{"count", tokens.size()},
              {"max_model_len", model_.description.max_model_len},
              {"tokens", tokens},
              {"token_strs", std::move(texts)}};
}

Result<Json> Service::detokenize(const Json& body) const {
  FieldReader fields(body);
  read_model(fields, model_);
  const auto tokens = fields.token_ids("tokens", model_.tokenizer->vocabulary_size());
  if (!tokens) fields.refuse("tokens", "a list of token ids");
  OCTAVO_TRY_VOID(fields.check());
  return Json{{"prompt", model_.tokenizer->decode(*tokens, /*skip_special=*/false)}};
}

Result<Json> Service::count_tokens(const Json& body) const {
  OCTAVO_TRY(const ChatPrompt prompt, parse_counted_messages(body, model_));
  OCTAVO_TRY(const std::vector<TokenId> tokens, encode_chat(prompt));
  return Json{{"input_tokens", tokens.size()}};
}

Result<std::vector<TokenId>> Service::encode_chat(const ChatPrompt& prompt) const {
  TemplateInputs inputs(options_.unix_time_ms() / 1000, prompt.template_values);
  inputs.tools = prompt.tools;
  const std::span<const ChatMessage> messages = prompt.messages;
  if (!prompt.continue_answer) return model_.tokenizer->encode_chat(messages, inputs);
  OCTAVO_TRY(std::vector<TokenId> tokens,
             model_.tokenizer->encode_chat(messages.first(messages.size() - 1), inputs));
  OCTAVO_TRY(const std::vector<TokenId> begun,
             model_.tokenizer->encode(messages.back().content, /*parse_special=*/false, /*add_bos=*/false));
  tokens.insert(tokens.end(), begun.begin(), begun.end());
  return tokens;
}

Json Service::tokenizer_info() const {
  const tokenizer::Tokenizer& tokenizer = *model_.tokenizer;
  Json end = nullptr;
  for (TokenId id = 0; id < tokenizer.vocabulary_size() && end.is_null(); ++id)
    if (tokenizer.is_end_of_sequence(id)) end = sanitise_utf8(tokenizer.token_bytes(id));
  const auto bos = tokenizer.bos_token_id();
  const std::string_view source = tokenizer.chat_template_source();
  return {{"bos_token", bos ? Json(sanitise_utf8(tokenizer.token_bytes(*bos))) : Json(nullptr)},
          {"eos_token", std::move(end)},
          {"chat_template", source.empty() ? Json(nullptr) : Json(sanitise_utf8(source))},
          {"vocab_size", tokenizer.vocabulary_size()},
          {"model_max_length", model_.description.max_model_len}};
}

http::Response Service::metrics_text() {
  take_steps();
  PoolLevels levels;
  if (const auto snapshot = engine_.kv_snapshot(SnapshotScope::kSequences))
    levels = {.totals = snapshot->totals,
              .used_blocks = snapshot->figures.used_blocks,
              .cached_blocks = snapshot->figures.cached_blocks,
              .logical_blocks = snapshot->figures.logical_blocks};
  return {.status = 200,
          .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
          .body = metrics_.text(levels)};
}

// Those since the last time that somebody asked; the history holds some minutes of them.
void Service::take_steps() {
  const auto history = engine_.history();
  if (history == nullptr) return;
  const std::lock_guard lock(steps_mutex_);
  const metrics::Trace trace = history->read_since(step_mark_, history->next_event_mark());
  step_mark_ = trace.next_step_mark;
  for (const StepRecord& step : trace.steps) metrics_.add(step);
}

}  // namespace octavo::app
