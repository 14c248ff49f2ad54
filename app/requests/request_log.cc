#include "app/requests/request_log.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "app/requests/prompt_difference.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostOriginBytes = 200;  // of each text
constexpr std::size_t kMostOriginNotes = 16;
constexpr std::size_t kMostTextBytes = 1000;  // around a difference, in a line

void make_printable(RequestOrigin& origin) {
  for (std::string* text : {&origin.id, &origin.route, &origin.client, &origin.client_key})
    *text = escape_for_message(*text, kMostOriginBytes);
  if (origin.notes.size() > kMostOriginNotes) origin.notes.resize(kMostOriginNotes);
  for (std::string& note : origin.notes) note = escape_for_message(note, kMostOriginBytes);
}

std::span<const TokenId> ids_of(const std::shared_ptr<const std::vector<TokenId>>& token_ids) {
  return token_ids ? std::span<const TokenId>(*token_ids) : std::span<const TokenId>();
}

Json milliseconds_json(std::int64_t us) {
  return us > 0 ? Json(static_cast<double>(us) / 1000.0) : Json(nullptr);
}

Json around_json(const TextAround& around, const PromptPart& part) {
  return {{"before", around.before},
          {"token", around.token},
          {"after", around.after},
          {"part", text_or_null(part.name)}};
}

Json prompt_json(const LoggedRequest& request) {
  const auto part = [&](std::int32_t count) { return request.has_account() ? Json(count) : Json(nullptr); };
  const PromptAccount& account = request.metrics.prompt;
  return {{"tokens", request.num_prompt > 0 ? Json(request.num_prompt) : Json(nullptr)},
          {"cached", request.is_admitted ? Json(request.num_cached_tokens) : Json(nullptr)},
          {"computed", part(account.num_computed)},
          {"hit_live", part(account.num_hit_live)},
          {"hit_cached", part(account.num_hit_cached)},
          {"copied_partial", part(account.num_copied_partial)},
          {"restored", part(account.num_restored)}};
}

// The same members whatever is known.
Json empty_difference_json() {
  return {{"request", nullptr},      {"number", nullptr},    {"common_tokens", nullptr},
          {"position", nullptr},     {"in_answer", nullptr}, {"mine", nullptr},
          {"theirs", nullptr},       {"cause", nullptr},     {"lost_tokens", nullptr},
          {"lost_seconds", nullptr}, {"advice", nullptr}};
}

// Members that are null may be known later, while the request runs.
Json difference_json(const RequestDifference* difference) {
  if (difference == nullptr) return nullptr;
  Json json = empty_difference_json();
  if (difference->was_dropped) {
    json["cause"] = {{"name", "no_longer_known"},
                     {"sentence", "The prompt was dropped to make room, before anybody asked about it."}};
    return json;
  }
  json["common_tokens"] = difference->num_common;
  if (difference->nearest) {
    json["request"] = difference->nearest_id;
    json["number"] = difference->nearest->value;
    json["position"] = difference->num_common;
    json["in_answer"] = difference->is_in_answer;
    json["mine"] = around_json(difference->mine, difference->places.mine);
    json["theirs"] = around_json(difference->theirs, difference->places.theirs);
  }
  if (!difference->story) return json;
  const ReuseStory& story = *difference->story;
  json["cause"] = {{"name", story.cause}, {"sentence", story.sentence}};
  json["lost_tokens"] = story.lost_tokens;
  json["lost_seconds"] = story.lost_seconds ? Json(*story.lost_seconds) : Json(nullptr);
  json["advice"] = story.advice;
  return json;
}

Json request_json(const LoggedRequest& request, const Json& difference) {
  static constexpr std::array<std::string_view, 4> kStateNames = {"waiting", "running", "finished", "failed"};
  const RequestMetrics& metrics = request.metrics;
  return {{"id", request.origin.id},
          {"number", request.request_id.value},
          {"arrived_ms", request.origin.unix_ms},
          {"route", request.origin.route},
          {"client", text_or_null(request.origin.client)},
          {"client_key", text_or_null(request.origin.client_key)},
          {"notes", request.origin.notes},
          {"state", kStateNames[static_cast<std::size_t>(request.state)]},
          {"finish", request.finish ? Json(finish_reason_name(*request.finish)) : Json(nullptr)},
          {"error", text_or_null(request.failure)},
          {"prompt", prompt_json(request)},
          {"generated_tokens", request.num_generated},
          {"num_preemptions", request.has_ended() ? Json(metrics.num_preemptions) : Json(nullptr)},
          {"queue_ms", request.is_admitted || request.has_ended()
                           ? Json(static_cast<double>(request.queue_us) / 1000.0)
                           : Json(nullptr)},
          {"ttft_ms", milliseconds_json(request.ttft_us)},
          {"e2e_ms", milliseconds_json(metrics.e2e_us)},
          {"tokens_per_second", request.tokens_per_s > 0 ? Json(request.tokens_per_s) : Json(nullptr)},
          {"difference", difference}};
}

// "chatcmpl-1 finished (stop): /v1/chat/completions of OpenAI/Python; prompt 812 tokens, 512 reused; 20
// generated; first token after 0.3 s, all after 1.2 s. CAUSE ADVICE"
std::string request_line(const Json& told, bool with_texts) {
  const auto text_of = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? std::string("-") : dump(value);
  };
  std::string line = text_of(told["id"]) + " " + text_of(told["state"]);
  if (!told["finish"].is_null()) line += " (" + text_of(told["finish"]) + ")";
  line += ": " + text_of(told["route"]);
  if (!told["client"].is_null()) line += " of " + text_of(told["client"]);
  const Json& prompt = told["prompt"];
  line += "; prompt " + text_of(prompt["tokens"]) + " tokens, " + text_of(prompt["cached"]) + " reused; " +
          text_of(told["generated_tokens"]) + " generated; waited " + text_of(told["queue_ms"]) +
          " ms, first token after " + text_of(told["ttft_ms"]) + " ms, all after " + text_of(told["e2e_ms"]) +
          " ms.";
  if (!told["error"].is_null()) line += " " + text_of(told["error"]);
  const Json& difference = told["difference"];
  if (difference.is_null() || difference["cause"].is_null()) return line;
  line += " " + text_of(difference["cause"]["sentence"]);
  if (difference.value("lost_tokens", Json(0)) != 0) {
    line += " Lost " + text_of(difference["lost_tokens"]) + " tokens";
    if (!difference["lost_seconds"].is_null()) line += ", " + text_of(difference["lost_seconds"]) + " s";
    line += ". " + text_of(difference["advice"]);
  }
  if (!with_texts || difference["mine"].is_null()) return line;
  const auto around = [&](const Json& side) {
    return "'" +
           escape_for_message(
               text_of(side["before"]) + "[" + text_of(side["token"]) + "]" + text_of(side["after"]),
               kMostTextBytes) +
           "'";
  };
  return line + " Here " + around(difference["mine"]) + ", there " + around(difference["theirs"]) + ".";
}

void count_cause(Json& causes, const Json& difference) {
  if (difference.is_null() || difference["cause"].is_null()) return;
  Json& count = causes[difference["cause"]["name"].get<std::string>()];
  if (count.is_null()) count = {{"requests", 0}, {"lost_tokens", 0}};
  count["requests"] = count["requests"].get<std::int64_t>() + 1;
  if (!difference["lost_tokens"].is_null())
    count["lost_tokens"] =
        count["lost_tokens"].get<std::int64_t>() + difference["lost_tokens"].get<std::int64_t>();
}

}  // namespace

// ---- events

void RequestLog::begin(RequestId request_id, RequestOrigin origin) {
  make_printable(origin);
  std::lock_guard lock(mutex_);
  known_.records[request_id].request_id = request_id;
  known_.records[request_id].origin = std::move(origin);
  keep_bounds();
  ++version_;
}

void RequestLog::name(RequestId request_id, std::string route, std::string client, std::string client_key) {
  std::lock_guard lock(mutex_);
  const auto record = known_.records.find(request_id);
  if (record == known_.records.end()) return;
  RequestOrigin& origin = record->second.origin;
  origin.route = std::move(route);
  origin.client = std::move(client);
  origin.client_key = std::move(client_key);
  make_printable(origin);
  ++version_;
}

void RequestLog::add(const EngineEvent& event) {
  const RequestId request_id = request_id_of(event);
  std::lock_guard lock(mutex_);
  auto record = known_.records.find(request_id);
  if (record == known_.records.end()) {
    if (!options_.unix_time_ms) return;
    record = known_.records.emplace(request_id, Record{}).first;
    record->second.request_id = request_id;
    record->second.origin.unix_ms = options_.unix_time_ms();
    record->second.origin.principal = Principal::kPerson;
  }
  if (record->second.has_ended()) return;
  ++order_;
  std::visit([&](const auto& one) { note(record->second, one); }, event);
  keep_bounds();
  ++version_;
}

void RequestLog::note(Record& record, const RequestAccepted& event) {
  if (record.accepted != 0) return;
  record.accepted = order_;
  record.num_prompt = event.prompt_token_ids.size();
  record.prompt = std::make_shared<const std::vector<TokenId>>(event.prompt_token_ids);
  if (const auto rendered = std::exchange(record.origin.parts, nullptr))
    record.parts =
        std::make_shared<const PromptParts>(*rendered, event.prompt_token_ids, *options_.tokenizer);
  known_.num_token_ids += record.num_prompt;
}

void RequestLog::note(Record& record, const RequestAdmitted& event) {
  record.admitted = order_;
  record.is_admitted = true;
  record.state = LoggedRequest::State::kRunning;
  record.num_cached_tokens = event.num_cached_tokens;
  record.queue_us = event.queue_us;
  record.sequence_id = event.sequence_id;
}

void RequestLog::note(Record& record, const TokensGenerated& event) {
  const std::int64_t now_us = options_.clock != nullptr ? options_.clock->now_us() : 0;
  if (record.first_token == 0) {
    record.first_token = order_;
    record.first_token_at_us = now_us;
  }
  record.ttft_us = event.ttft_us;
  record.last_output = std::max(record.last_output, event.output_index);
  record.num_generated += static_cast<std::int64_t>(event.token_ids.size());
  const std::int64_t since_first_us = now_us - record.first_token_at_us;
  if (since_first_us > 0)
    record.tokens_per_s = static_cast<double>(record.num_generated - 1) / (record.last_output + 1) * 1e6 /
                          static_cast<double>(since_first_us);
  if (event.output_index != 0 || !record.prompt) return;
  std::vector<TokenId>& answer = growing_[record.request_id];
  answer.insert(answer.end(), event.token_ids.begin(), event.token_ids.end());
  known_.num_token_ids += event.token_ids.size();
}

void RequestLog::note(Record& record, const BeamsAdvanced&) {
  if (record.first_token == 0) record.first_token = order_;
}

// Its metrics will count it.
void RequestLog::note(Record&, const RequestPreempted&) {}

void RequestLog::note(Record& record, const OutputFinished& event) {
  record.last_output = std::max(record.last_output, event.output_index);
  if (event.output_index == 0) record.finish = event.finish_reason;
}

void RequestLog::note(Record& record, const RequestFinished& event) {
  record.has_prompt_logprobs = !event.prompt_logprobs.empty();
  end(record, LoggedRequest::State::kFinished, event.metrics);
}

void RequestLog::note(Record& record, const RequestFailed& event) {
  record.failure = event.error.message;
  end(record, LoggedRequest::State::kFailed, event.metrics);
}

void RequestLog::end(Record& record, LoggedRequest::State state, const RequestMetrics& metrics) {
  record.state = state;
  record.ended = order_;
  record.metrics = metrics;
  record.queue_us = metrics.queue_us;
  record.ttft_us = metrics.ttft_us;
  record.tokens_per_s = metrics.tpot_us > 0 ? 1e6 / static_cast<double>(metrics.tpot_us) : 0;
  const auto answer = growing_.find(record.request_id);
  if (answer == growing_.end()) return;
  answer->second.shrink_to_fit();
  record.answer = std::make_shared<const std::vector<TokenId>>(std::move(answer->second));
  growing_.erase(answer);
}

// ---- bounds

void RequestLog::drop_ids(Record& record) {
  if (record.prompt) ++known_.num_forgotten;
  known_.num_token_ids -= ids_of(record.prompt).size() + ids_of(record.answer).size();
  record.prompt.reset();
  record.parts.reset();
  record.answer.reset();
  const auto answer = growing_.find(record.request_id);
  if (answer == growing_.end()) return;
  known_.num_token_ids -= answer->second.size();
  growing_.erase(answer);
}

void RequestLog::erase(Records::iterator record) {
  drop_ids(record->second);
  known_.records.erase(record);
}

void RequestLog::keep_bounds() {
  while (known_.records.size() > options_.most_requests) {
    const auto oldest_ended = std::find_if(known_.records.begin(), known_.records.end(),
                                           [](const auto& entry) { return entry.second.has_ended(); });
    erase(oldest_ended != known_.records.end() ? oldest_ended : known_.records.begin());
  }
  for (auto& [request_id, record] : known_.records) {
    if (known_.num_token_ids <= options_.most_token_ids) return;
    drop_ids(record);
  }
}

std::optional<std::string> RequestLog::program_of(RequestId request_id) const {
  std::lock_guard lock(mutex_);
  const auto record = known_.records.find(request_id);
  if (record == known_.records.end() || record->second.origin.principal != Principal::kClient)
    return std::nullopt;
  return record->second.origin.client;
}

void RequestLog::close() {
  const std::lock_guard reading(reading_);
  if (is_closed_) return;
  look_at(known_now(), Principal::kPerson, options_.most_requests);
  is_closed_ = true;
}

// ---- one prompt beside an earlier one

// As the answer's own client knows it; for the person by its number in the list, with who asked.
std::string RequestLog::name_of(const Record& record, Principal viewer) {
  if (viewer == Principal::kClient)
    return record.origin.principal == Principal::kClient ? record.origin.id : "a request of the window";
  const std::string number = "request " + std::to_string(record.request_id.value);
  return record.origin.client.empty() ? number : number + " (" + record.origin.client + ")";
}

// Of the same principal where it begins alike by a block: that is what could have been reused. Else of all
// that the viewer may see.
std::optional<RequestLog::Compared> RequestLog::compare(const Known& known, const Record& mine,
                                                        Principal viewer) const {
  if (!mine.prompt) return std::nullopt;
  const auto of_same = compare_with(known, mine, mine.origin.principal);
  const bool is_like = of_same && of_same->num_common >= static_cast<std::size_t>(options_.block_size);
  if (is_like || viewer == Principal::kClient) return of_same;
  const auto of_others = compare_with(
      known, mine, mine.origin.principal == Principal::kClient ? Principal::kPerson : Principal::kClient);
  const bool is_nearer = of_others && (!of_same || of_others->num_common > of_same->num_common);
  return is_nearer ? of_others : of_same;
}

std::optional<RequestLog::Compared> RequestLog::compare_with(const Known& known, const Record& mine,
                                                             Principal principal) {
  std::vector<const Record*> earlier;
  for (const auto& [request_id, record] : known.records) {
    if (record.origin.principal == principal && record.prompt && record.accepted < mine.accepted)
      earlier.push_back(&record);
  }
  std::sort(earlier.begin(), earlier.end(),
            [](const Record* left, const Record* right) { return left->accepted < right->accepted; });
  std::vector<EarlierPrompt> prompts;
  for (const Record* record : earlier) {
    const bool had_ended = record->has_ended() && record->ended < mine.accepted;
    prompts.push_back({.tokens = {.prompt = ids_of(record->prompt),
                                  .answer = had_ended ? ids_of(record->answer) : std::span<const TokenId>()},
                       .is_of_same_client = !mine.origin.client_key.empty() &&
                                            mine.origin.client_key == record->origin.client_key});
  }
  const auto nearest = nearest_prompt(ids_of(mine.prompt), prompts);
  if (!nearest) return std::nullopt;
  return Compared{.nearest = earlier[nearest->index],
                  .num_common = nearest->num_common,
                  .tokens = prompts[nearest->index].tokens};
}

const PromptParts& RequestLog::parts_of(const Record& record) {
  static const PromptParts kUnknown;
  return record.parts ? *record.parts : kUnknown;
}

DifferingPlaces RequestLog::places_of(const Record& mine, const Compared& compared) const {
  return differing_places(*options_.tokenizer, parts_of(mine), {.prompt = ids_of(mine.prompt)},
                          parts_of(*compared.nearest), compared.tokens, compared.num_common);
}

PromptDivergence RequestLog::divergence_from(RequestId request_id, const std::string& earlier_id) const {
  Record mine, earlier;
  {
    std::lock_guard lock(mutex_);
    const auto found = known_.records.find(request_id);
    if (found == known_.records.end()) return {};
    mine = found->second;
    for (const auto& [id, record] : known_.records) {
      const bool is_meant = record.origin.id == earlier_id && record.origin.principal == Principal::kClient;
      if (id < request_id && is_meant) earlier = record;
    }
  }
  if (earlier.origin.id != earlier_id) return {.found = PromptDivergence::Found::kNoSuchRequest};
  if (!mine.prompt || !earlier.prompt) return {};
  const bool had_ended = earlier.has_ended() && earlier.ended < mine.accepted;
  std::span<const TokenId> answer = had_ended ? ids_of(earlier.answer) : std::span<const TokenId>();
  if (!answer.empty()) answer = answer.first(answer.size() - 1);  // the last was drawn, and never computed
  return find_divergence(*options_.tokenizer, parts_of(mine), ids_of(mine.prompt), parts_of(earlier),
                         {.prompt = ids_of(earlier.prompt), .answer = answer});
}

ReuseFacts RequestLog::reuse_facts(const Known& known, const Record& mine,
                                   const std::optional<Compared>& compared, const std::vector<SameRun>& same,
                                   Principal viewer) const {
  ReuseFacts facts{.block_size = options_.block_size,
                   .num_prompt = mine.num_prompt,
                   .account = mine.metrics.prompt,
                   .miss = mine.metrics.prefix_miss,
                   .asked_prompt_logprobs = mine.has_prompt_logprobs,
                   .ttft_us = mine.ttft_us,
                   .queue_us = mine.queue_us,
                   .forgot_earlier = known.num_forgotten > 0};
  if (compared) {
    const Record& nearest = *compared->nearest;
    const std::span<const TokenId> prompt = ids_of(mine.prompt);
    const PromptWithAnswer& theirs = compared->tokens;
    NearestFacts beside{.name = name_of(nearest, viewer),
                        .num_common = compared->num_common,
                        .num_prompt = theirs.prompt.size(),
                        .num_answer = theirs.answer.size(),
                        .was_read = nearest.first_token != 0 && nearest.first_token < mine.admitted,
                        .shares_blocks = nearest.origin.principal == mine.origin.principal,
                        .same = same,
                        .places = places_of(mine, *compared),
                        .tools = tool_change(parts_of(mine).tools(), parts_of(nearest).tools())};
    if (compared->num_common < std::min(prompt.size(), theirs.size()))
      beside.change = change_kind(text_around(*options_.tokenizer, {.prompt = prompt}, compared->num_common),
                                  text_around(*options_.tokenizer, theirs, compared->num_common));
    facts.nearest = std::move(beside);
  }
  if (facts.miss.cause != MissCause::kEvicted) return facts;
  for (const auto& [request_id, other] : known.records) {
    if (!other.sequence_id || request_id == mine.request_id) continue;
    const std::uint64_t first = other.sequence_id->value;  // those of its other outputs follow it
    if (facts.miss.evicted_by < first) continue;
    if (facts.miss.evicted_by - first > static_cast<std::uint64_t>(other.last_output)) continue;
    const auto admitted_ms = [](const Record& record) {
      return record.origin.unix_ms + record.queue_us / 1000;
    };
    facts.evicted_by = name_of(other, viewer);
    facts.evicted_by_ms_earlier = admitted_ms(mine) - admitted_ms(other);
  }
  return facts;
}

std::shared_ptr<const RequestDifference> RequestLog::difference_of(const Known& known, const Record& mine,
                                                                   Principal viewer) const {
  const bool is_seen = viewer == Principal::kPerson || mine.origin.principal == Principal::kClient;
  if (mine.num_prompt == 0 || !is_seen) return nullptr;
  auto difference = std::make_shared<RequestDifference>();
  if (!mine.prompt || is_closed_) {
    difference->was_dropped = true;
    return difference;
  }
  const std::optional<Compared> compared = compare(known, mine, viewer);
  if (compared) {
    const PromptWithAnswer& theirs = compared->tokens;
    const PromptWithAnswer prompt{.prompt = ids_of(mine.prompt)};
    difference->nearest = compared->nearest->request_id;
    difference->nearest_id = compared->nearest->origin.id;
    difference->nearest_name = name_of(*compared->nearest, viewer);
    difference->num_common = compared->num_common;
    difference->is_in_answer = compared->num_common >= theirs.prompt.size() && !theirs.answer.empty();
    difference->mine = text_around(*options_.tokenizer, prompt, compared->num_common);
    difference->theirs = text_around(*options_.tokenizer, theirs, compared->num_common);
    difference->same = same_runs(prompt.prompt, theirs, compared->num_common);
    difference->places = places_of(mine, *compared);
  }
  if (mine.has_ended() && mine.has_account())
    difference->story = reuse_story(reuse_facts(known, mine, compared, difference->same, viewer));
  return difference;
}

// ---- answers

RequestLog::Known RequestLog::known_now() const {
  std::lock_guard lock(mutex_);
  return known_;
}

std::vector<LoggedRequest> RequestLog::look_at(const Known& known, Principal viewer,
                                               std::size_t most_requests) {
  struct Found {
    std::shared_ptr<const RequestDifference> difference;
    bool is_final = false;
  };
  const auto index = static_cast<std::size_t>(viewer);
  std::vector<LoggedRequest> requests;
  std::vector<std::pair<RequestId, Found>> found_out;
  for (auto entry = known.records.rbegin(); entry != known.records.rend(); ++entry) {
    if (requests.size() == most_requests) break;
    const Record& record = entry->second;
    LoggedRequest& request = requests.emplace_back(record);
    request.difference = record.found[index];
    const bool is_stale = !request.difference || (record.has_ended() && !record.is_final[index]);
    if (is_stale) {
      request.difference = difference_of(known, record, viewer);
      if (request.difference)
        found_out.emplace_back(record.request_id, Found{request.difference, record.has_ended()});
    }
    if (viewer == Principal::kPerson || record.origin.principal == Principal::kClient) continue;
    request.origin = {.route = "window", .unix_ms = record.origin.unix_ms, .principal = Principal::kPerson};
    request.failure.clear();
  }
  std::lock_guard lock(mutex_);
  for (auto& [request_id, found] : found_out) {
    const auto record = known_.records.find(request_id);
    if (record == known_.records.end()) continue;
    record->second.found[index] = std::move(found.difference);
    record->second.is_final[index] = found.is_final;
  }
  return requests;
}

std::vector<LoggedRequest> RequestLog::look(Principal viewer, std::size_t most_requests) {
  const std::lock_guard reading(reading_);
  return look_at(known_now(), viewer, most_requests);
}

std::string RequestLog::line(RequestId request_id, bool with_texts) {
  const std::lock_guard reading(reading_);
  const Known known = known_now();
  const auto record = known.records.find(request_id);
  if (record == known.records.end()) return {};
  const auto difference = difference_of(known, record->second, Principal::kClient);
  return request_line(request_json(record->second, difference_json(difference.get())), with_texts);
}

std::optional<ComparedPrompts> RequestLog::compared_prompts(RequestId request_id) {
  const std::lock_guard reading(reading_);
  const Known known = known_now();
  const auto record = known.records.find(request_id);
  if (is_closed_ || record == known.records.end() || !record->second.prompt) return std::nullopt;
  const Record& mine = record->second;
  ComparedPrompts prompts{.request = mine};
  prompts.request.difference = difference_of(known, mine, Principal::kPerson);
  prompts.mine = tokenised_text(*options_.tokenizer, {.prompt = ids_of(mine.prompt)});
  if (const auto compared = compare(known, mine, Principal::kPerson)) {
    prompts.theirs = tokenised_text(*options_.tokenizer, compared->tokens);
    prompts.num_theirs_prompt = compared->tokens.prompt.size();
  }
  return prompts;
}

Json RequestLog::to_json(std::size_t most_requests, Principal viewer) {
  const std::lock_guard reading(reading_);
  const Known known = known_now();
  Json data = Json::array(), causes = Json::object();
  for (const LoggedRequest& request : look_at(known, viewer, most_requests)) {
    const Json difference = difference_json(request.difference.get());
    data.push_back(request_json(request, difference));
    count_cause(causes, difference);
  }
  return {{"object", "list"},
          {"data", std::move(data)},
          {"causes", std::move(causes)},
          {"known",
           {{"requests", known.records.size()},
            {"token_ids", known.num_token_ids},
            {"forgotten_prompts", known.num_forgotten}}}};
}

}  // namespace octavo::app
