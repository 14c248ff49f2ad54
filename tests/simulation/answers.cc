#include "tests/simulation/answers.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

const ToyTokenizer kTokenizer;

std::int32_t next_power_of_two(std::int32_t number) {
  std::int32_t power = 1;
  while (power < number) power *= 2;
  return power;
}

bool are_equal(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  return std::ranges::equal(a, b, [](const TokenLogprob& x, const TokenLogprob& y) {
    return x.token_id == y.token_id && x.logprob == y.logprob;
  });
}

bool is_letter(TokenId token) { return token >= 0 && token < kTokenizer.vocabulary_size(); }

}  // namespace

// ---- what is sent

void Answers::submitted(RequestId request_id, const ScriptedRequest& asked, std::int64_t now_us) {
  Request& request = open_[request_id];
  request.alone = RequestAlone::of(asked, script_.options.max_model_len);
  request.submitted_us = now_us;
  last_submitted_ = request_id;
  ++counts_.requests;
}

void Answers::cancelled(RequestId request_id) {
  if (const auto found = open_.find(request_id); found != open_.end()) found->second.cancelled = true;
}

void Answers::output_cancelled(RequestId request_id, std::int32_t output_index) {
  const auto found = open_.find(request_id);
  const auto has_outputs = [](const ScriptedRequest& asked) {
    return !asked.is_beam_search() && !asked.is_embedding();
  };
  if (found == open_.end() || !has_outputs(found->second.alone.asked)) return;
  Request& request = found->second;
  if (output_index >= request.alone.asked.n || !request.cancelled_outputs.insert(output_index).second) return;
  const bool has_token =
      request.accepted && request.outputs[static_cast<std::size_t>(output_index)].num_tokens > 0;
  ++(has_token ? counts_.cancelled_outputs : counts_.cancelled_outputs_early);
}

bool Answers::goes_on_cancelled() const {
  return std::ranges::any_of(open_, [](const auto& entry) {
    const Request& request = entry.second;
    return request.accepted && std::ranges::any_of(request.cancelled_outputs, [&](std::int32_t index) {
             return !request.outputs[static_cast<std::size_t>(index)].has_ended;
           });
  });
}

bool Answers::is_open(RequestId request_id) const { return open_.contains(request_id); }

// ---- what is heard

void Answers::hear(std::span<const EngineEvent> events, const StepFacts& facts) {
  facts_ = facts;
  for (const EngineEvent& event : events) {
    if (problem_.exists()) return;
    const RequestId request_id = request_id_of(event);
    const auto found = open_.find(request_id);
    if (found != open_.end()) {
      std::visit([&](const auto& kind) { hear(kind, found->second); }, event);
    } else {
      problem_.note(request_id,
                    request_id <= last_submitted_ ? "an event after its end" : "nobody submitted it");
    }
  }
}

void Answers::hear(const RequestAccepted& event, Request& request) {
  const RequestId id = event.request_id;
  if (std::exchange(request.accepted, true)) problem_.note(id, "accepted twice");
  const ScriptedRequest& asked = request.alone.asked;
  if (is_impossible(asked) || is_too_long(asked)) problem_.note(id, "should have been refused");
  if (event.prompt_token_ids != asked.prompt) problem_.note(id, "another prompt");
  if (asked.seed && event.seed != request.alone.seed) problem_.note(id, "another seed");
  request.alone.seed = event.seed;
  if (asked.is_embedding()) return;
  if (asked.is_beam_search()) {
    request.beams.emplace(Beams{ExpectedBeams(script_.model, request.alone), {}, {}});
    request.beams->answers.resize(static_cast<std::size_t>(asked.beam_width));
    return;
  }
  for (std::int32_t index = 0; index < asked.n; ++index) {
    request.outputs.emplace_back(
        ExpectedOutput(script_.model, request.alone, static_cast<std::uint32_t>(index)));
  }
}

// First come, first served: everyone of its line who was submitted earlier has been admitted or is over, and
// no background request starts before one that a person waits for.
void Answers::hear(const RequestAdmitted& event, Request& request) {
  const RequestId id = event.request_id;
  if (!request.accepted || std::exchange(request.admitted, true))
    problem_.note(id, "admitted twice or unasked");
  const bool is_background = request.alone.asked.background;
  for (const auto& [other_id, other] : open_) {
    const bool is_ahead = other.alone.asked.background == is_background
                              ? other_id < id
                              : is_background && other.accepted && !other.cancelled;
    if (is_ahead && !other.admitted) problem_.note(id, "admitted before one that comes first");
  }
  const auto num_prompt = static_cast<std::int32_t>(request.alone.asked.prompt.size());
  if (event.num_cached_tokens < 0 || event.num_cached_tokens >= num_prompt)
    problem_.note(id, "impossible number of cached tokens");
  if (event.num_cached_tokens > 0 && !script_.options.enable_prefix_caching)
    problem_.note(id, "cached tokens without a prefix cache");
  request.queue_us = event.queue_us;
  if (event.queue_us != facts_.begin_us - request.submitted_us) problem_.note(id, "wrong time in queue");
}

void Answers::hear(const TokensGenerated& event, Request& request) {
  const RequestId id = event.request_id;
  if (!request.admitted && !event.token_ids.empty()) return problem_.note(id, "a token before admission");
  if (event.token_ids.size() != event.logprobs.size()) return problem_.note(id, "tokens without logprobs");
  if (event.top_logprobs.size() != (request.alone.asked.logprobs > 0 ? event.token_ids.size() : 0))
    return problem_.note(id, "tokens without alternatives, or with some that nobody asked for");
  const auto index = static_cast<std::size_t>(event.output_index);
  counts_.tokens += static_cast<std::int64_t>(event.token_ids.size());
  if (!event.token_ids.empty()) note_token(request);
  if (request.beams) {
    BeamAnswer& answer = request.beams->answers[index];
    if (answer.end || !answer.token_ids.empty()) problem_.note(id, "an answer of a beam search told twice");
    answer = {event.token_ids, event.logprobs, event.top_logprobs, event.text, {}};
    return;
  }
  Output& output = request.outputs[index];
  if (output.has_ended) problem_.note(id, "a token after the output's end");
  output.text += event.text;
  if (!event.token_ids.empty())
    request.num_told_together += static_cast<std::int32_t>(event.token_ids.size()) - 1;
  for (std::size_t i = 0; i < event.token_ids.size(); ++i) hear_token(event, i, output);
}

void Answers::note_token(Request& request) {
  if (!std::exchange(request.has_token, true)) request.first_token_us = facts_.end_us;
  request.last_token_us = facts_.end_us;
}

void Answers::hear_token(const TokensGenerated& event, std::size_t index, Output& output) {
  const RequestId id = event.request_id;
  ExpectedOutput& expected = output.expected;
  const std::size_t position = output.num_tokens++;
  expected.extend_to(output.num_tokens);
  if (position >= expected.token_ids().size()) return problem_.note(id, "more tokens than alone");
  if (event.token_ids[index] != expected.token_ids()[position])
    problem_.note(id, "tokens differ from those of the request alone");
  if (event.logprobs[index] != expected.logprobs()[position])
    problem_.note(id, "log-probabilities differ from those of the request alone");
  if (!event.top_logprobs.empty() && !are_equal(event.top_logprobs[index], expected.top_logprobs()[position]))
    problem_.note(id, "alternatives differ from those of the request alone");
}

void Answers::hear(const BeamsAdvanced& event, Request& request) {
  if (!request.beams) return problem_.note(event.request_id, "beams of a request without a beam search");
  note_token(request);
  for (const BeamStep& step : event.steps) check_beam_step(event.request_id, *request.beams, step);
}

void Answers::hear(const RequestPreempted& event, Request& request) {
  if (!request.admitted) problem_.note(event.request_id, "preempted before it ran");
  ++request.num_preemptions;
}

// Ascending, for who asked, and of a prompt that was admitted.
void Answers::hear(const PromptProgress& event, Request& request) {
  const auto num_prompt = static_cast<std::int32_t>(request.alone.asked.prompt.size());
  const bool is_right =
      request.alone.asked.progress && request.admitted && event.num_prompt_tokens == num_prompt &&
      event.num_computed_tokens <= num_prompt &&
      event.num_computed_tokens > std::max(request.num_computed_told, event.num_cached_tokens) &&
      event.elapsed_us >= 0;
  if (!is_right) problem_.note(event.request_id, "a wrong progress of its prompt");
  request.num_computed_told = event.num_computed_tokens;
  ++counts_.progress_told;
}

// The sum of what each token gives, or what the last one does; of length 1.
void Answers::hear(const EmbeddingComputed& event, Request& request) {
  const ScriptedRequest& asked = request.alone.asked;
  if (!asked.is_embedding() || !request.admitted || std::exchange(request.has_embedding, true))
    return problem_.note(event.request_id, "an embedding that nobody asked for, or two");
  std::vector<double> sums(ToyModel::kWidth);
  std::uint64_t prefix_hash = ToyModel::root_of(asked.salt);
  for (std::size_t position = 0; position < asked.prompt.size(); ++position) {
    prefix_hash = ToyModel::extend(prefix_hash, asked.prompt[position]);
    if (asked.embedding == 1 && position + 1 < asked.prompt.size()) continue;
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += double{ToyModel::hidden_state(prefix_hash, static_cast<std::int32_t>(i))};
  }
  double squares = 0.0;
  for (const double sum : sums) squares += sum * sum;
  bool is_right = event.values.size() == sums.size();
  for (std::size_t i = 0; is_right && i < sums.size(); ++i)
    is_right = event.values[i] == static_cast<float>(sums[i] / std::sqrt(squares));
  if (!is_right) problem_.note(event.request_id, "its embedding is not that of the request alone");
  ++counts_.embeddings;
}

void Answers::hear(const OutputFinished& event, Request& request) {
  const RequestId id = event.request_id;
  const auto index = static_cast<std::size_t>(event.output_index);
  if (!request.accepted) {
    const bool is_next = event.output_index == request.num_abandoned++;
    if (!request.cancelled || !is_next || event.finish_reason != FinishReason::kAbort)
      problem_.note(id, "an output ended before its request was accepted");
    return;
  }
  if (request.beams) {
    if (request.beams->answers[index].end) problem_.note(id, "an output ended twice");
    request.beams->answers[index].end = event;
    return;
  }
  Output& output = request.outputs[index];
  if (std::exchange(output.has_ended, true)) problem_.note(id, "an output ended twice");
  output.ended_us = facts_.end_us;
  output.finish_reason = event.finish_reason;
  output.stop_reason = event.stop_reason;
  output.detail = event.detail;
  if (event.score) problem_.note(id, "a score of an output that is no beam");
  check_output(id, request, output);
}

void Answers::hear(const RequestFinished& event, Request& request) {
  const RequestId id = event.request_id;
  const bool is_embedding = request.alone.asked.is_embedding();
  if (is_embedding && !request.has_embedding && !request.cancelled)
    problem_.note(id, "finished without its embedding");
  const std::int32_t num_outputs = is_embedding ? 0 : request.alone.asked.num_outputs();
  if (!request.accepted && (request.num_abandoned != num_outputs || !request.cancelled))
    return problem_.note(id, "finished without being accepted");
  if (!request.accepted && event.prompt_logprobs.empty()) {
    check_metrics(id, request, event.metrics);
    open_.erase(id);
    return;
  }
  bool was_aborted = request.cancelled && request.beams;
  for (const Output& output : request.outputs) {
    if (!output.has_ended) problem_.note(id, "finished before its outputs");
    was_aborted |= output.finish_reason == FinishReason::kAbort;
  }
  if (request.beams) check_beams(id, request);
  if (!was_aborted && event.prompt_logprobs != expected_prompt_logprobs(request.alone))
    problem_.note(id, "wrong prompt log-probabilities");
  check_metrics(id, request, event.metrics);
  open_.erase(id);
}

void Answers::check_metrics(RequestId id, const Request& request, const RequestMetrics& metrics) {
  if (metrics.num_preemptions != request.num_preemptions) problem_.note(id, "wrong preemption count");
  const std::int64_t earliest = facts_.begin_us - request.submitted_us;
  const std::int64_t latest = facts_.end_us - request.submitted_us;
  if (metrics.e2e_us != earliest && metrics.e2e_us != latest) problem_.note(id, "wrong e2e time");
  if (request.admitted && metrics.queue_us != request.queue_us) problem_.note(id, "wrong time in queue");
  if (metrics.ttft_us != (request.has_token ? request.first_token_us - request.submitted_us : 0))
    problem_.note(id, "wrong time to the first token");
  if (!request.beams && metrics.tpot_us != time_per_token(request)) problem_.note(id, "wrong time per token");
  if (metrics.num_accepted_tokens != request.num_told_together ||
      metrics.num_draft_tokens < metrics.num_accepted_tokens)
    problem_.note(id, "wrong counts of drafted tokens");
  check_account(id, request, metrics);
}

// Of the longest output, without its first token.
std::int64_t Answers::time_per_token(const Request& request) {
  std::size_t num_tokens = 0;
  for (const Output& output : request.outputs) num_tokens = std::max(num_tokens, output.num_tokens);
  if (num_tokens < 2) return 0;
  return (request.last_token_us - request.first_token_us) / static_cast<std::int64_t>(num_tokens - 1);
}

// Every prompt token is accounted for, once, and the last one is always computed.
void Answers::check_account(RequestId id, const Request& request, const RequestMetrics& metrics) {
  const PromptAccount& account = metrics.prompt;
  const std::int32_t num_found = account.num_hit_live + account.num_hit_cached + account.num_copied_partial;
  const std::int32_t sum = account.num_computed + num_found + account.num_restored;
  if (!request.has_token && !request.has_embedding) {
    if (sum != 0) problem_.note(id, "an account of its prompt before the first token");
    return;
  }
  const bool all_counted = account.num_hit_live >= 0 && account.num_hit_cached >= 0 &&
                           account.num_copied_partial >= 0 && account.num_restored >= 0;
  if (!all_counted || sum != static_cast<std::int32_t>(request.alone.asked.prompt.size()))
    problem_.note(id, "its prompt is not accounted for");
  if (account.num_computed < 1) problem_.note(id, "no token of its prompt was computed");
  const bool reads_cache = script_.options.enable_prefix_caching && !request.alone.asked.needs_all_rows() &&
                           script_.options.memory_manager == MemoryManager::kPaged;
  // What was swapped out is found again, or restored, by anybody.
  if (!reads_cache && num_found > 0 && request.num_preemptions == 0)
    problem_.note(id, "tokens found by a request that does not read the cache");
  if (reads_cache == (metrics.prefix_miss.cause == MissCause::kNotRead))
    problem_.note(id, "a wrong reason why its hit ended");
}

void Answers::hear(const RequestFailed& event, Request& request) {
  const RequestId id = event.request_id;
  switch (event.error.code) {
    case ErrorCode::kInvalidArgument:
      ++counts_.refused;
      if (!is_impossible(request.alone.asked)) problem_.note(id, "refused: " + event.error.message);
      break;
    case ErrorCode::kTooLong:
      ++counts_.refused;
      if (!is_too_long(request.alone.asked)) problem_.note(id, "refused: " + event.error.message);
      break;
    case ErrorCode::kDevice:
      ++counts_.failed_by_device;
      if (!facts_.device_failed || facts_.device_lost) problem_.note(id, "failed without a failing device");
      break;
    case ErrorCode::kDeviceLost:
      ++counts_.failed_by_device;
      if (!facts_.device_lost) problem_.note(id, "failed by the loss of a device that is there");
      break;
    case ErrorCode::kInvalidLogits:
      ++counts_.failed_by_logits;
      if (!some_output_fails(request)) problem_.note(id, "failed without invalid logits");
      break;
    default: problem_.note(id, "failed: " + event.error.message);
  }
  if (event.error.message.empty()) problem_.note(id, "failed without a word");
  check_metrics(id, request, event.metrics);
  open_.erase(id);
}

void Answers::check_all_ended() {
  for (const auto& [request_id, request] : open_) problem_.note(request_id, "never ended");
}

// ---- against the request alone

void Answers::check_output(RequestId id, const Request& request, Output& output) {
  ExpectedOutput& expected = output.expected;
  if (output.finish_reason == FinishReason::kAbort) {
    const auto index = static_cast<std::int32_t>(&output - request.outputs.data());
    if (!request.cancelled && !request.cancelled_outputs.contains(index))
      problem_.note(id, "aborted, but nobody cancelled it");
  } else {
    expected.extend_to(output.num_tokens + 1);
    const bool is_complete = expected.has_ended() && expected.token_ids().size() == output.num_tokens;
    if (is_complete) {
      if (output.text != expected.text().text()) problem_.note(id, "wrong text");
      if (output.finish_reason != expected.text().finish_reason()) problem_.note(id, "wrong finish reason");
      if (output.stop_reason != expected.text().stop_reason()) problem_.note(id, "wrong stop reason");
      if (!output.detail.empty()) problem_.note(id, "an explanation of an end that needs none");
      return;
    }
    if (output.finish_reason != FinishReason::kLength || !may_outgrow_pool(request, output))
      return problem_.note(id, "ended too early");
    ++counts_.out_of_memory_outputs;
  }
  const bool needs_explanation = output.finish_reason == FinishReason::kLength;
  if (output.detail.empty() == needs_explanation)
    problem_.note(id, "an end for want of memory that does not say so, or another one that does");
  const auto tokens = std::span(expected.token_ids()).first(output.num_tokens);
  if (output.text != kTokenizer.decode(tokens, /*skip_special=*/true))
    problem_.note(id, "wrong text of an output that was ended");
}

// The next token of an output cannot be drawn.
bool Answers::some_output_fails(Request& request) const {
  if (request.beams) return request.beams->expected.fails();
  return std::ranges::any_of(request.outputs, [](Output& output) {
    output.expected.extend_to(output.num_tokens + 1);
    return output.expected.fails() && output.expected.token_ids().size() == output.num_tokens;
  });
}

// ---- beams against the search alone

void Answers::check_beam_step(RequestId id, Beams& beams, const BeamStep& step) {
  ExpectedBeams& expected = beams.expected;
  if (expected.fails() || expected.is_over()) return problem_.note(id, "a step of a search that is over");
  expected.advance();
  if (step.first_node != static_cast<std::int32_t>(beams.nodes.size()))
    return problem_.note(id, "the nodes of its beams are not numbered in order");
  beams.nodes.insert(beams.nodes.end(), step.nodes.begin(), step.nodes.end());
  const auto compare = [&](const std::vector<std::int32_t>& nodes,
                           const std::vector<ExpectedHypothesis>& hypotheses) {
    const bool equal = std::ranges::equal(nodes, hypotheses, [&](std::int32_t node, const auto& hypothesis) {
      return is_beam(beams, node, hypothesis);
    });
    if (!equal) problem_.note(id, "its beams are not those of the search alone");
  };
  compare(step.live, expected.live());
  compare(step.ended, expected.just_ended());
  counts_.beam_steps += 1;
}

// Read from its end to the prompt.
bool Answers::is_beam(const Beams& beams, std::int32_t node, const ExpectedHypothesis& expected) const {
  const auto& tokens = expected.text.token_ids();
  const auto num_nodes = static_cast<std::int32_t>(beams.nodes.size());
  if (node < 0 || node >= num_nodes ||
      beams.nodes[static_cast<std::size_t>(node)].cumulative_logprob != expected.cumulative_logprob)
    return false;
  for (std::size_t index = tokens.size(); index-- > 0;) {
    if (node < 0 || node >= num_nodes) return false;
    const BeamNode& one = beams.nodes[static_cast<std::size_t>(node)];
    if (one.token_id != tokens[index] || one.logprob != expected.logprobs[index]) return false;
    node = one.parent;
  }
  return node == -1;
}

void Answers::check_beams(RequestId id, const Request& request) {
  const Beams& beams = *request.beams;
  const bool is_over = beams.expected.is_over();
  if (!is_over && !request.cancelled && !beams_may_outgrow_pool(request))
    problem_.note(id, "ended too early");
  if (!is_over && !request.cancelled) ++counts_.out_of_memory_outputs;
  const FinishReason cut = is_over || !request.cancelled ? FinishReason::kLength : FinishReason::kAbort;
  const std::vector<ExpectedHypothesis> expected = beams.expected.answers(cut);
  for (std::size_t index = 0; index < beams.answers.size(); ++index) {
    const BeamAnswer& answer = beams.answers[index];
    if (!answer.end) return problem_.note(id, "finished before its outputs");
    const bool is_short_of_memory = !is_over && cut == FinishReason::kLength;
    if (answer.end->detail.empty() == (is_short_of_memory && answer.end->finish_reason == cut))
      problem_.note(id, "its search ended for want of memory and does not say so, or the other way round");
    const bool is_right =
        index < expected.size()
            ? is_answer(answer, expected[index], beams.expected.score(expected[index]))
            : answer.token_ids.empty() && !answer.end->score && answer.end->finish_reason == cut;
    if (!is_right) problem_.note(id, "an answer of its beam search is not that of the search alone");
  }
}

bool Answers::is_answer(const BeamAnswer& answer, const ExpectedHypothesis& expected, double score) const {
  const ExpectedText& text = expected.text;
  // Empty where none are asked for.
  const auto& alternatives = answer.top_logprobs;
  return answer.token_ids == text.token_ids() && answer.logprobs == expected.logprobs &&
         (alternatives.empty() || std::ranges::equal(alternatives, expected.top_logprobs, are_equal)) &&
         answer.text == text.text() && answer.end->finish_reason == text.finish_reason() &&
         answer.end->stop_reason == text.stop_reason() && answer.end->score == score;
}

// ---- what cannot be

bool Answers::is_impossible(const ScriptedRequest& asked) const {
  const bool has_impossible_outputs =
      asked.num_outputs() < 1 || asked.num_outputs() > script_.options.max_num_seqs || asked.n < 1 ||
      asked.beam_width > kTokenizer.vocabulary_size() / 2 ||
      (asked.is_beam_search() && script_.options.memory_manager != MemoryManager::kPaged);
  return asked.prompt.empty() || !std::ranges::all_of(asked.prompt, is_letter) || asked.max_tokens < 1 ||
         asked.min_tokens < 0 || asked.min_tokens > asked.max_tokens || has_impossible_outputs ||
         asked.stop_token >= kTokenizer.vocabulary_size();
}

// The least that it can do with: the prompt, and where several outputs go on, a last block for each.
bool Answers::is_too_long(const ScriptedRequest& asked) const {
  const auto num_prompt = static_cast<std::int32_t>(asked.prompt.size());
  if (num_prompt >= script_.options.max_model_len) return true;
  if (script_.options.memory_manager != MemoryManager::kPaged) return reserves_too_much(asked);
  const std::int32_t num_full = num_prompt / script_.options.block_size;
  const bool many_go_on = asked.num_outputs() > 1 && asked.max_tokens > 1;
  const std::int32_t num_blocks =
      many_go_on ? num_full + asked.num_outputs() * (blocks_for(num_prompt + 1) - num_full)
                 : blocks_for(num_prompt);
  return num_blocks > script_.options.num_blocks;
}

// One chunk of a power of two of blocks for each output, at places that are multiples of its length.
bool Answers::reserves_too_much(const ScriptedRequest& asked) const {
  const std::int32_t max_model_len = script_.options.max_model_len;
  const auto num_prompt = static_cast<std::int32_t>(asked.prompt.size());
  std::int32_t estimate = asked.max_tokens;
  if (script_.options.memory_manager == MemoryManager::kOrcaMax) estimate = max_model_len;
  if (script_.options.memory_manager == MemoryManager::kOrcaPow2)
    estimate = next_power_of_two(asked.max_tokens);
  const std::int32_t chunk = next_power_of_two(blocks_for(std::min(num_prompt + estimate, max_model_len)));
  return asked.n > script_.options.num_blocks / chunk;
}

// In the empty pool, alone.
bool Answers::may_outgrow_pool(const Request& request, const Output& output) const {
  const std::size_t num_tokens = request.alone.asked.prompt.size() + output.num_tokens;
  return script_.options.memory_manager == MemoryManager::kPaged &&
         blocks_for(static_cast<std::int64_t>(num_tokens)) > script_.options.num_blocks;
}

bool Answers::beams_may_outgrow_pool(const Request& request) const {
  const auto& live = request.beams->expected.live();
  const std::size_t num_tokens =
      request.alone.asked.prompt.size() + (live.empty() ? 0 : live.front().text.token_ids().size()) + 1;
  return request.alone.asked.beam_width * blocks_for(static_cast<std::int64_t>(num_tokens)) >
         script_.options.num_blocks;
}

std::int32_t Answers::blocks_for(std::int64_t num_tokens) const {
  const std::int32_t block_size = script_.options.block_size;
  return static_cast<std::int32_t>((num_tokens + block_size - 1) / block_size);
}

}  // namespace octavo::simulation
