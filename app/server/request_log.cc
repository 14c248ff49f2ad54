#include "app/server/request_log.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "app/server/prompt_difference.h"
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

bool has_account(const RequestMetrics& metrics) { return metrics.prompt != PromptAccount{}; }

Json prompt_json(std::size_t num_tokens, bool is_admitted, std::int32_t num_cached_tokens,
                 const RequestMetrics& metrics) {
  const bool is_known = has_account(metrics);
  const auto part = [&](std::int32_t count) { return is_known ? Json(count) : Json(nullptr); };
  const PromptAccount& account = metrics.prompt;
  return {{"tokens", num_tokens > 0 ? Json(num_tokens) : Json(nullptr)},
          {"cached", is_admitted ? Json(num_cached_tokens) : Json(nullptr)},
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
  known_.records.try_emplace(request_id, Record{.request_id = request_id, .origin = std::move(origin)});
  keep_bounds();
}

void RequestLog::add(const EngineEvent& event) {
  std::lock_guard lock(mutex_);
  const auto record = known_.records.find(request_id_of(event));
  if (record == known_.records.end() || record->second.has_ended()) return;
  ++order_;
  std::visit([&](const auto& one) { note(record->second, one); }, event);
  keep_bounds();
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
  record.state = State::kRunning;
  record.num_cached_tokens = event.num_cached_tokens;
  record.queue_us = event.queue_us;
  record.sequence_id = event.sequence_id;
}

void RequestLog::note(Record& record, const TokensGenerated& event) {
  if (record.first_token == 0) record.first_token = order_;
  record.ttft_us = event.ttft_us;
  record.last_output = std::max(record.last_output, event.output_index);
  record.num_generated += static_cast<std::int64_t>(event.token_ids.size());
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
  end(record, State::kFinished, event.metrics);
}

void RequestLog::note(Record& record, const RequestFailed& event) {
  record.failure = event.error.message;
  end(record, State::kFailed, event.metrics);
}

void RequestLog::end(Record& record, State state, const RequestMetrics& metrics) {
  record.state = state;
  record.ended = order_;
  record.metrics = metrics;
  record.queue_us = metrics.queue_us;
  record.ttft_us = metrics.ttft_us;
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

// ---- one prompt beside an earlier one

std::optional<RequestLog::Compared> RequestLog::compare(const Known& known, const Record& mine) {
  if (!mine.prompt) return std::nullopt;
  std::vector<const Record*> earlier;
  for (const auto& [request_id, record] : known.records)
    if (record.prompt && record.accepted < mine.accepted) earlier.push_back(&record);
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

PromptDivergence RequestLog::compare_with(RequestId request_id, const std::string& earlier_id) const {
  Record mine, earlier;
  {
    std::lock_guard lock(mutex_);
    const auto found = known_.records.find(request_id);
    if (found == known_.records.end()) return {};
    mine = found->second;
    for (const auto& [id, record] : known_.records)
      if (id < request_id && record.origin.id == earlier_id) earlier = record;
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
                                   const std::optional<Compared>& compared) const {
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
    NearestFacts beside{.name = nearest.origin.id,
                        .num_common = compared->num_common,
                        .num_prompt = theirs.prompt.size(),
                        .num_answer = theirs.answer.size(),
                        .was_read = nearest.first_token != 0 && nearest.first_token < mine.admitted};
    beside.same = same_runs(prompt, theirs, compared->num_common);
    beside.places = places_of(mine, *compared);
    beside.tools = tool_change(parts_of(mine).tools(), parts_of(nearest).tools());
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
    facts.evicted_by = other.origin.id;
    facts.evicted_by_ms_earlier = admitted_ms(mine) - admitted_ms(other);
  }
  return facts;
}

// Members that are null may be known later, while the request runs.
Json RequestLog::difference_of(const Known& known, const Record& mine) const {
  if (mine.num_prompt == 0) return nullptr;
  Json json = empty_difference_json();
  if (!mine.prompt) {
    json["cause"] = {{"name", "no_longer_known"},
                     {"sentence", "The prompt was dropped to make room, before anybody asked about it."}};
    return json;
  }
  const std::optional<Compared> compared = compare(known, mine);
  if (compared) {
    const PromptWithAnswer& theirs = compared->tokens;
    json["request"] = compared->nearest->origin.id;
    json["number"] = compared->nearest->request_id.value;
    json["position"] = compared->num_common;
    json["in_answer"] = compared->num_common >= theirs.prompt.size() && !theirs.answer.empty();
    const DifferingPlaces places = places_of(mine, *compared);
    json["mine"] = around_json(
        text_around(*options_.tokenizer, {.prompt = ids_of(mine.prompt)}, compared->num_common), places.mine);
    json["theirs"] =
        around_json(text_around(*options_.tokenizer, theirs, compared->num_common), places.theirs);
  }
  json["common_tokens"] = compared ? compared->num_common : 0;
  if (!mine.has_ended() || !has_account(mine.metrics)) return json;
  const ReuseStory story = reuse_story(reuse_facts(known, mine, compared));
  json["cause"] = {{"name", story.cause}, {"sentence", story.sentence}};
  json["lost_tokens"] = story.lost_tokens;
  json["lost_seconds"] = story.lost_seconds ? Json(*story.lost_seconds) : Json(nullptr);
  json["advice"] = story.advice;
  return json;
}

// ---- answers

Json RequestLog::record_json(const Record& record, const Json& difference) {
  static constexpr std::array<std::string_view, 4> kStateNames = {"waiting", "running", "finished", "failed"};
  const RequestMetrics& metrics = record.metrics;
  return {{"id", record.origin.id},
          {"number", record.request_id.value},
          {"arrived_ms", record.origin.unix_ms},
          {"route", record.origin.route},
          {"client", text_or_null(record.origin.client)},
          {"client_key", text_or_null(record.origin.client_key)},
          {"notes", record.origin.notes},
          {"state", kStateNames[static_cast<std::size_t>(record.state)]},
          {"finish", record.finish ? Json(finish_reason_name(*record.finish)) : Json(nullptr)},
          {"error", text_or_null(record.failure)},
          {"prompt", prompt_json(record.num_prompt, record.admitted != 0, record.num_cached_tokens, metrics)},
          {"generated_tokens", record.num_generated},
          {"num_preemptions", record.has_ended() ? Json(metrics.num_preemptions) : Json(nullptr)},
          {"queue_ms", record.admitted != 0 || record.has_ended()
                           ? Json(static_cast<double>(record.queue_us) / 1000.0)
                           : Json(nullptr)},
          {"ttft_ms", milliseconds_json(record.ttft_us)},
          {"e2e_ms", milliseconds_json(metrics.e2e_us)},
          {"tokens_per_second",
           metrics.tpot_us > 0 ? Json(1e6 / static_cast<double>(metrics.tpot_us)) : Json(nullptr)},
          {"difference", difference}};
}

std::string RequestLog::line(RequestId request_id, bool with_texts) {
  Known known;
  {
    std::lock_guard lock(mutex_);
    known = known_;
  }
  const auto record = known.records.find(request_id);
  return record == known.records.end()
             ? std::string()
             : request_line(record_json(record->second, difference_of(known, record->second)), with_texts);
}

Json RequestLog::to_json(std::size_t most_requests) {
  Known known;
  {
    std::lock_guard lock(mutex_);
    known = known_;
  }
  Json data = Json::array(), causes = Json::object();
  std::vector<std::pair<RequestId, std::shared_ptr<const Json>>> found_out;
  for (auto entry = known.records.rbegin(); entry != known.records.rend(); ++entry) {
    if (data.size() == most_requests) break;
    const Record& record = entry->second;
    std::shared_ptr<const Json> difference = record.difference;
    if (!difference) {
      difference = std::make_shared<const Json>(difference_of(known, record));
      if (record.has_ended()) found_out.emplace_back(record.request_id, difference);
    }
    data.push_back(record_json(record, *difference));
    count_cause(causes, *difference);
  }
  {
    std::lock_guard lock(mutex_);
    for (auto& [request_id, difference] : found_out) {
      const auto record = known_.records.find(request_id);
      if (record != known_.records.end()) record->second.difference = std::move(difference);
    }
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
