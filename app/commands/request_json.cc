#include "app/commands/request_json.h"

#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/chat/sampling_json.h"
#include "app/chat/template_values_json.h"
#include "engine/base/text.h"

#include "app/json/stop_reason_json.h"

namespace octavo::app {
namespace {

Error wrong(std::string_view what, const std::string& sentence, std::string subject = {}) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = std::string(what) + ": " + sentence,
          .subject = std::move(subject)};
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json milliseconds(std::int64_t microseconds) { return static_cast<double>(microseconds) / 1000.0; }

Json top_logprobs_to_json(const std::vector<std::vector<TokenLogprob>>& positions) {
  Json json = Json::array();
  for (const auto& alternatives : positions) {
    Json entry = Json::array();
    for (const TokenLogprob& alternative : alternatives)
      entry.push_back({alternative.token_id, number_or_null(static_cast<double>(alternative.logprob))});
    json.push_back(std::move(entry));
  }
  return json;
}

Json output_to_json(const CompletionOutput& output, const SamplingParams& sampling) {
  Json json = {{"index", output.index}, {"text", output.text}, {"token_ids", output.token_ids}};
  Json logprobs = Json::array();
  for (const float logprob : output.logprobs)
    logprobs.push_back(number_or_null(static_cast<double>(logprob)));
  json["logprobs"] = std::move(logprobs);
  if (sampling.num_top_logprobs() > 0) json["top_logprobs"] = top_logprobs_to_json(output.top_logprobs);
  json["cumulative_logprob"] = number_or_null(output.cumulative_logprob);
  if (output.score.has_value()) json["score"] = number_or_null(*output.score);
  json["finish_reason"] = finish_reason_name(output.finish_reason);
  if (!output.finish_detail.empty()) json["finish_detail"] = output.finish_detail;
  json["stop_reason"] = stop_reason_json(output.stop_reason);
  return json;
}

}  // namespace

Result<std::vector<ChatMessage>> messages_from_json(const Json& json, std::string_view what) {
  if (!json.is_array() || json.empty())
    return wrong(what,
                 "messages must be a list of {\"role\": ..., \"content\": ...} with at least one entry");
  std::vector<ChatMessage> messages;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string where = "message " + std::to_string(i);
    const Json& entry = json[i];
    if (!entry.is_object() || !entry.contains("role") || !entry.contains("content") ||
        !entry["role"].is_string() || !entry["content"].is_string()) {
      return wrong(what, where + " must have a role and a content, both strings");
    }
    const std::string name = entry["role"].get<std::string>();
    const std::optional<Role> role = parse_role(name);
    if (!role.has_value())
      return wrong(what,
                   where + " has the role '" + escape_for_message(name) +
                       "'; roles are system, user, assistant and tool",
                   "role");
    messages.push_back({.role = *role, .content = entry["content"].get<std::string>()});
  }
  return messages;
}

Result<GenerationRequest> request_from_json(const Json& json, const SamplingParams& defaults,
                                            bool parse_special, std::string_view what) {
  if (!json.is_object()) return wrong(what, "a request must be a JSON object");
  GenerationRequest request;
  int num_prompts = 0;
  std::optional<TemplateValues> template_values;
  for (const auto& [key, value] : json.items()) {
    if (key == "prompt") {
      if (!value.is_string()) return wrong(what, "\"prompt\" must be a string", key);
      request.prompt = TextPrompt{.text = value.get<std::string>(), .parse_special = parse_special};
      ++num_prompts;
    } else if (key == "messages") {
      OCTAVO_TRY(std::vector<ChatMessage> messages, messages_from_json(value, what));
      request.prompt = ChatPrompt{.messages = std::move(messages)};
      ++num_prompts;
    } else if (key == "prompt_token_ids") {
      TokenPrompt prompt;
      if (!read_token_ids(value, prompt.token_ids))
        return wrong(what, "\"prompt_token_ids\" must be a list of token ids", key);
      request.prompt = std::move(prompt);
      ++num_prompts;
    } else if (key == "cache_salt") {
      if (!value.is_string()) return wrong(what, "\"cache_salt\" must be a string", key);
      request.cache_salt = value.get<std::string>();
    } else if (key == "chat_template_kwargs") {
      OCTAVO_TRY(template_values, template_values_from_json(value, std::string(what) + ": " + key));
    } else if (key != "sampling") {
      return wrong(what, "unknown request field '" + escape_for_message(key) + "'", key);
    }
  }
  if (num_prompts != 1)
    return wrong(what, "a request needs exactly one of \"prompt\", \"messages\" and \"prompt_token_ids\"");
  if (template_values) {
    auto* const chat = std::get_if<ChatPrompt>(&request.prompt);
    if (chat == nullptr)
      return wrong(what, "\"chat_template_kwargs\" goes with \"messages\"", "chat_template_kwargs");
    chat->template_values = *std::move(template_values);
  }
  request.sampling = defaults;
  if (json.contains("sampling")) {
    OCTAVO_TRY(request.sampling,
               sampling_from_json(json["sampling"], defaults, UnknownOptions::kRefuse, what));
  }
  return request;
}

Json to_json(const Error& error) {
  return {{"code", error_code_name(error.code)}, {"message", error.message}};
}

// What became of the prompt's tokens: where they came from adds up to their number.
Json to_json(const PromptAccount& account) {
  return {{"computed", account.num_computed},
          {"hit_live", account.num_hit_live},
          {"hit_cached", account.num_hit_cached},
          {"copied_partial", account.num_copied_partial},
          {"restored", account.num_restored}};
}

Json to_json(const PrefixMiss& miss) {
  Json json = {{"cause", miss_cause_name(miss.cause)}, {"position", miss.position}};
  if (miss.cause == MissCause::kEvicted) {
    json["evicted_step"] = miss.evicted_step;
    json["evicted_by"] = miss.evicted_by;
  }
  return json;
}

Json to_json(const RequestOutput& output, const SamplingParams& sampling) {
  Json json;
  json["prompt_token_ids"] = output.prompt_token_ids;
  if (sampling.prompt_logprobs) {
    Json logprobs = Json::array();
    for (const auto& logprob : output.prompt_logprobs)
      logprobs.push_back(logprob.has_value() ? number_or_null(static_cast<double>(*logprob)) : Json(nullptr));
    json["prompt_logprobs"] = std::move(logprobs);
    if (*sampling.prompt_logprobs > 0)
      json["prompt_top_logprobs"] = top_logprobs_to_json(output.prompt_top_logprobs);
  }
  json["num_cached_tokens"] = output.num_cached_tokens;
  json["seed"] = output.seed;
  json["outputs"] = Json::array();
  for (const CompletionOutput& completion : output.outputs)
    json["outputs"].push_back(output_to_json(completion, sampling));
  if (output.error.has_value()) json["error"] = to_json(*output.error);
  json["metrics"] = {{"queue_ms", milliseconds(output.metrics.queue_us)},
                     {"ttft_ms", milliseconds(output.metrics.ttft_us)},
                     {"tpot_ms", milliseconds(output.metrics.tpot_us)},
                     {"e2e_ms", milliseconds(output.metrics.e2e_us)},
                     {"num_preemptions", output.metrics.num_preemptions},
                     {"num_draft_tokens", output.metrics.num_draft_tokens},
                     {"num_accepted_tokens", output.metrics.num_accepted_tokens},
                     {"prompt_tokens", to_json(output.metrics.prompt)},
                     {"prefix_miss", to_json(output.metrics.prefix_miss)}};
  return json;
}

Json to_json(const StateTotals& states) {
  return {{"checkpoints", states.num_taken},       {"resumed", states.num_resumed},
          {"evicted", states.num_evicted},         {"copied", states.num_copied},
          {"swapped_out", states.num_swapped_out}, {"swapped_in", states.num_swapped_in}};
}

Json to_json(const WindowTotals& windows) {
  return {{"left_behind", windows.num_left},
          {"evicted", windows.num_evicted},
          {"peak_used", windows.peak_used},
          {"swapped_out", windows.num_swapped_out},
          {"swapped_in", windows.num_swapped_in}};
}

Json to_json(const KvTotals& totals) {
  Json json = {{"block_size", totals.block_size},
               {"num_blocks", totals.num_blocks},
               {"num_host_blocks", totals.num_host_blocks},
               {"bytes_per_block", totals.bytes_per_block},
               {"peak_used_blocks", totals.peak_used_blocks},
               {"peak_logical_blocks", totals.peak_logical_blocks},
               {"cow_copies", totals.cow_copies},
               {"partial_copies", totals.partial_copies},
               {"swapped_out_blocks", totals.swapped_out_blocks},
               {"swapped_in_blocks", totals.swapped_in_blocks},
               {"preempted_swap", totals.preempted_swap},
               {"preempted_recompute", totals.preempted_recompute},
               {"evicted_cached_blocks", totals.evicted_cached_blocks},
               {"prefix_hit_tokens", totals.prefix_hit_tokens},
               {"peak_host_used_blocks", totals.peak_host_used_blocks},
               {"swap_out_ms", milliseconds(totals.swap_out_us)},
               {"swap_in_ms", milliseconds(totals.swap_in_us)}};
  if (totals.num_states > 0) {
    json["num_states"] = totals.num_states;
    json["num_host_states"] = totals.num_host_states;
    json["bytes_per_state"] = totals.bytes_per_state;
    json["states"] = to_json(totals.states);
  }
  if (totals.window > 0) {
    json["window"] = totals.window;
    json["num_window_blocks"] = totals.num_window_blocks;
    json["num_host_window_blocks"] = totals.num_host_window_blocks;
    json["bytes_per_window_block"] = totals.bytes_per_window_block;
    json["windows"] = to_json(totals.windows);
  }
  return json;
}

std::string dump_for_output(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/isatty(STDOUT_FILENO) != 0, Json::error_handler_t::replace);
}

}  // namespace octavo::app
