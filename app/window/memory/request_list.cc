#include "app/window/memory/request_list.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "app/json/csv_field.h"
#include "app/json/json_text.h"
#include "engine/base/calendar.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostLogs = 4, kMostRows = 1000;
constexpr std::int64_t kBetweenLooksUs = 200'000;
constexpr std::string_view kChatKey = "chat-";

double known_ms(std::int64_t us, bool is_known) { return is_known ? static_cast<double>(us) / 1000.0 : -1; }

ChatId chat_of_key(const LoggedRequest& request) {
  if (request.origin.principal != Principal::kPerson || !request.origin.client_key.starts_with(kChatKey))
    return {};
  return {std::strtoull(request.origin.client_key.c_str() + kChatKey.size(), nullptr, 10)};
}

// "curl/7.88.1" of "curl/7.88.1 (linux) and more".
std::string program_of(const std::string& user_agent) { return user_agent.substr(0, user_agent.find(' ')); }

void fill_cause(const RequestDifference& difference, ui::ShownRequest& row) {
  row.num_common = static_cast<std::int64_t>(difference.num_common);
  if (difference.nearest) row.nearest = difference.nearest->value;
  if (difference.was_dropped) {
    row.num_common = -1;
    row.cause = "no_longer_known";
    row.sentence = "The prompt was dropped to make room, before anybody asked about it.";
  }
  if (!difference.story) return;
  row.cause = difference.story->cause;
  row.sentence = difference.story->sentence;
  row.advice = difference.story->advice;
  row.lost_tokens = difference.story->lost_tokens;
  row.lost_seconds = difference.story->lost_seconds;
}

// Of all logs, newest first.
std::vector<ui::ShownRequest> rows_of(const std::vector<std::shared_ptr<RequestLog>>& logs) {
  std::vector<ui::ShownRequest> rows;
  for (auto log = logs.rbegin(); log != logs.rend(); ++log)
    for (const LoggedRequest& request : (*log)->look(Principal::kPerson, kMostRows))
      rows.push_back(shown_request(request));
  return rows;
}

ui::ShownTokens shown_tokens(TokenisedText text, std::size_t num_prompt) {
  return {.text = std::move(text.text), .ends = std::move(text.ends), .num_prompt = num_prompt};
}

std::shared_ptr<const ui::RequestDetail> detail_of(ComparedPrompts prompts, std::uint64_t serial) {
  auto detail = std::make_shared<ui::RequestDetail>();
  detail->number = prompts.request.request_id.value;
  detail->serial = serial;
  detail->request = shown_request(prompts.request);
  const std::size_t num_mine = prompts.mine.ends.size();
  detail->mine = shown_tokens(std::move(prompts.mine), num_mine);
  detail->theirs = shown_tokens(std::move(prompts.theirs), prompts.num_theirs_prompt);
  if (const auto& difference = prompts.request.difference) {
    detail->nearest_name = difference->nearest_name;
    for (const SameRun& run : difference->same) detail->same.push_back({run.mine, run.theirs, run.length});
    detail->mine_before = difference->mine.before;
    detail->mine_token = difference->mine.token;
    detail->mine_after = difference->mine.after;
    detail->theirs_before = difference->theirs.before;
    detail->theirs_token = difference->theirs.token;
    detail->theirs_after = difference->theirs.after;
  }
  return detail;
}

// As GET /octavo/requests tells it, of all logs together.
std::string requests_json(const std::vector<std::shared_ptr<RequestLog>>& logs) {
  Json data = Json::array();
  for (auto log = logs.rbegin(); log != logs.rend(); ++log) {
    Json list = (*log)->to_json(kMostRows, Principal::kPerson);
    for (Json& request : list["data"]) data.push_back(std::move(request));
  }
  return Json{{"object", "list"}, {"data", std::move(data)}}.dump(2, ' ', /*ensure_ascii=*/false,
                                                                  Json::error_handler_t::replace) +
         "\n";
}

}  // namespace

ui::ShownRequest shown_request(const LoggedRequest& request) {
  const RequestOrigin& origin = request.origin;
  const bool has_first = request.ttft_us > 0;
  ui::ShownRequest row{.number = request.request_id.value,
                       .client = origin.client,
                       .group = origin.client,
                       .route = origin.route,
                       .key = origin.client_key,
                       .id = origin.id,
                       .notes = origin.notes,
                       .chat_id = chat_of_key(request),
                       .is_of_window = origin.principal == Principal::kPerson,
                       .arrived = full_time_text(origin.unix_ms),
                       .arrived_ms = origin.unix_ms,
                       .phase = static_cast<ui::RequestPhase>(request.state),
                       .error = request.failure,
                       .num_generated = request.num_generated,
                       .num_preemptions = request.metrics.num_preemptions};
  if (row.client.empty()) row.client = row.is_of_window ? "This window" : "A client";
  if (!row.is_of_window) row.group = program_of(row.client);
  if (row.group.empty()) row.group = row.client;
  row.arrived = row.arrived.substr(row.arrived.rfind(' ') + 1);
  if (request.finish) row.finish = finish_reason_name(*request.finish);
  if (request.num_prompt > 0) row.num_prompt = static_cast<std::int64_t>(request.num_prompt);
  if (request.is_admitted) row.num_cached = request.num_cached_tokens;
  row.queue_ms = known_ms(request.queue_us, request.is_admitted);
  row.ttft_ms = known_ms(request.ttft_us, has_first);
  row.prompt_ms = known_ms(request.ttft_us - request.queue_us, has_first);
  row.e2e_ms = known_ms(request.metrics.e2e_us, request.metrics.e2e_us > 0);
  if (request.tokens_per_s > 0) row.tokens_per_s = request.tokens_per_s;
  if (request.has_account()) row.account = request.metrics.prompt;
  if (request.difference) fill_cause(*request.difference, row);
  return row;
}

namespace {

// A program's name for itself is no formula of a spreadsheet.
std::string plain_text(const std::string& text) {
  const bool is_formula =
      !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos;
  return is_formula ? "'" + text : text;
}

}  // namespace

std::string requests_csv(const std::vector<ui::ShownRequest>& rows) {
  std::string text =
      "number,id,arrived_ms,client,route,key,phase,finish,error,prompt_tokens,reused_live,reused_cached,"
      "copied,"
      "restored,computed,waiting_ms,prompt_ms,first_token_ms,total_ms,tokens_per_second,generated_tokens,"
      "preemptions,cause,sentence,common_tokens,nearest,lost_tokens,lost_seconds,advice\r\n";
  constexpr const char* kPhases[] = {"waiting", "running", "finished", "failed"};
  const auto number = [](double value) {
    char digits[40] = "";
    if (value >= 0) std::snprintf(digits, sizeof digits, "%.6g", value);
    return std::string(digits);
  };
  const auto count = [](std::int64_t value) { return value < 0 ? std::string() : std::to_string(value); };
  for (const ui::ShownRequest& row : rows) {
    std::vector<std::string> fields = {std::to_string(row.number),
                                       row.id,
                                       std::to_string(row.arrived_ms),
                                       plain_text(row.client),
                                       row.route,
                                       plain_text(row.key),
                                       kPhases[static_cast<std::size_t>(row.phase)],
                                       row.finish,
                                       row.error,
                                       count(row.num_prompt)};
    for (std::size_t part = 0; part < ui::kNumTokenAccounts; ++part)
      fields.push_back(row.account
                           ? std::to_string(tokens_of(*row.account, static_cast<ui::TokenAccount>(part)))
                           : std::string());
    for (const double time : {row.queue_ms, row.prompt_ms, row.ttft_ms, row.e2e_ms, row.tokens_per_s})
      fields.push_back(number(time));
    fields.insert(fields.end(), {std::to_string(row.num_generated), std::to_string(row.num_preemptions),
                                 row.cause, row.sentence, count(row.num_common),
                                 row.nearest == 0 ? std::string() : std::to_string(row.nearest),
                                 count(row.lost_tokens), number(row.lost_seconds.value_or(-1)), row.advice});
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) text += ',';
      text += csv_field(fields[i]);
    }
    text += "\r\n";
  }
  return text;
}

std::vector<BlockId> blocks_of_request(std::uint64_t number, const KvSnapshot& snapshot) {
  std::set<BlockId> blocks;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.request_id.value != number || sequence.state == SequenceState::kSwapped) continue;
    blocks.insert(sequence.block_table.begin(), sequence.block_table.end());
  }
  blocks.erase(BlockId{-1});
  return {blocks.begin(), blocks.end()};
}

// ---- on the thread

std::optional<RequestList::Outcome> RequestList::perform(Job job) {
  if (const auto* look = std::get_if<Look>(&job)) return Outcome(rows_of(look->logs));
  if (const auto* wanted = std::get_if<Compare>(&job)) {
    Compared compared{.number = wanted->number, .detail = nullptr};
    for (const auto& log : wanted->logs) {
      auto prompts = log->compared_prompts(RequestId{wanted->number});
      if (prompts) compared.detail = detail_of(*std::move(prompts), wanted->serial);
    }
    return Outcome(std::move(compared));
  }
  const auto& [logs, wanted] = std::get<Export>(job);
  const bool is_json = wanted.format == ui::actions::ExportFormat::kJson;
  const auto written = write_export(wanted.path, is_json ? requests_json(logs) : requests_csv(rows_of(logs)));
  WrittenFile exported{.path = wanted.path};
  if (!written) exported.problem = written.error();
  return Outcome(std::move(exported));
}

// ---- on the window's

RequestList::RequestList()
    : jobs_([](Job job) { return perform(std::move(job)); }, [] {}, JobsLeft::kDropped) {}

void RequestList::attach(std::shared_ptr<RequestLog> log) {
  logs_.push_back(std::move(log));
  if (logs_.size() > kMostLogs) logs_.erase(logs_.begin());
  looked_at_ = ~std::uint64_t{0};
}

void RequestList::name(RequestId request_id, const RequestName& name) {
  const std::string key =
      name.chat_id == ChatId{} ? std::string() : std::string(kChatKey) + std::to_string(name.chat_id.value);
  for (const auto& log : logs_) log->name(request_id, name.route, name.client, key);
}

std::optional<std::string> RequestList::name_of(RequestId request_id) const {
  for (const auto& log : logs_) {
    const auto program = log->program_of(request_id);
    if (program)
      return (program->empty() ? "A client" : program_of(*program)) + " · request " +
             std::to_string(request_id.value);
  }
  return std::nullopt;
}

std::uint64_t RequestList::version() const {
  std::uint64_t version = 0;
  for (const auto& log : logs_) version += log->version();
  return version;
}

void RequestList::give(Job job) {
  ++num_under_way_;
  jobs_.give(std::move(job));
}

void RequestList::choose(std::uint64_t number, ui::UiState& state) {
  ui::RequestsState& requests = state.memory_workspace.requests;
  requests.chosen = number;
  requests.detail = nullptr;
  requests.is_gone = false;
  if (number != 0) compare(requests);
}

void RequestList::compare(ui::RequestsState& requests) {
  compared_phase_ = 0;
  for (const ui::ShownRequest& row : *requests.rows)
    if (row.number == requests.chosen) compared_phase_ = static_cast<std::uint64_t>(row.phase);
  give(Compare{.logs = logs_, .number = requests.chosen, .serial = next_serial_++});
}

void RequestList::export_to(const ui::actions::ExportRequests& a) {
  if (!a.path.empty()) give(Export{.logs = logs_, .wanted = a});
}

void RequestList::take(Rows rows, ui::UiState& state) {
  is_looking_ = false;
  for (ui::ShownRequest& row : rows) {
    const ui::ChatState* const chat = row.chat_id == ChatId{} ? nullptr : ui::find_chat(state, row.chat_id);
    if (chat != nullptr) row.client = row.group = chat->title;
  }
  ui::RequestsState& requests = state.memory_workspace.requests;
  requests.rows = std::make_shared<const Rows>(std::move(rows));
  if (requests.chosen == 0) return;
  for (const ui::ShownRequest& row : *requests.rows)
    if (row.number == requests.chosen && static_cast<std::uint64_t>(row.phase) != compared_phase_)
      compare(requests);
}

void RequestList::take(Compared compared, ui::UiState& state) {
  ui::RequestsState& requests = state.memory_workspace.requests;
  if (compared.number != requests.chosen) return;
  requests.is_gone = compared.detail == nullptr;
  if (compared.detail != nullptr) requests.detail = std::move(compared.detail);
}

bool RequestList::tick(std::int64_t now_us, ui::UiState& state) {
  bool changed = false;
  for (Outcome& outcome : jobs_.take_outcomes()) {
    --num_under_way_;
    changed = true;
    if (auto* rows = std::get_if<Rows>(&outcome)) {
      take(std::move(*rows), state);
    } else if (auto* compared = std::get_if<Compared>(&outcome)) {
      take(std::move(*compared), state);
    } else {
      exported_.push_back(std::get<WrittenFile>(std::move(outcome)));
    }
  }
  const bool is_shown =
      state.workspace == ui::Workspace::kMemory && state.memory_workspace.page == ui::MemoryPage::kRequests;
  wants_look_ = is_shown && !is_looking_ && version() != looked_at_;
  if (!wants_look_ || now_us < looked_us_ + kBetweenLooksUs) return changed;
  looked_at_ = version();
  looked_us_ = now_us;
  is_looking_ = true;
  wants_look_ = false;
  give(Look{.logs = logs_});
  return changed;
}

}  // namespace octavo::app
