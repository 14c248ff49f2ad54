#include "tests/simulation/simulation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/clock.h"
#include "engine/engine_core.h"
#include "tests/simulation/expected_output.h"
#include "tests/simulation/random.h"
#include "tests/simulation/simulated_runner.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

struct Scenario {
  scheduler::SchedulerOptions options;
  ToyModel model;
  std::int32_t num_requests = 0;
  std::int32_t longest_prompt = 0;
  std::int32_t longest_output = 0;
  double arrival_rate = 0.0;  // per step
  double cancel_rate = 0.0;   // of requests
  double failure_rate = 0.0;  // of steps
  double reset_rate = 0.0;    // of steps
  double shared_rate = 0.0;   // of prompts that start like another
  std::int32_t num_salts = 1;
};

// Many long outputs at once on a pool for two or three of them: what runs is preempted again and again.
void make_tight(Scenario& scenario, Random& random) {
  auto& options = scenario.options;
  options.block_size = random.between(1, 8);
  options.max_num_seqs = random.between(4, 32);
  options.max_num_batched_tokens = random.between(8, 128);
  options.max_model_len = 256;
  scenario.longest_prompt = random.between(4, 24);
  scenario.longest_output = random.between(32, 96);
  scenario.model.eos_period = 128;
  scenario.arrival_rate = 4.0;
  const std::int32_t longest = 3 * scenario.longest_prompt + scenario.longest_output;
  options.num_blocks = random.between(longest, 3 * longest) / options.block_size + 1;
}

Scenario draw_scenario(Random& random, std::int32_t vocabulary_size) {
  Scenario scenario;
  auto& options = scenario.options;
  options.num_blocks = random.between_powers(2, random.chance(0.1) ? 12 : 7);
  options.block_size = random.between(1, 32);
  options.bytes_per_block = 1024;
  options.max_num_seqs = random.between_powers(0, 6);
  options.max_num_batched_tokens = random.between_powers(0, 9);
  options.max_model_len = random.between_powers(3, 8);
  options.enable_prefix_caching = random.chance(0.8);
  options.prefill_first = random.chance(0.1);
  scenario.model.vocabulary_size = vocabulary_size;
  scenario.model.eos_period = static_cast<std::uint32_t>(random.between_powers(3, 7));
  scenario.model.invalid_logits_period = random.chance(0.3) ? 512 : 0;
  scenario.num_requests = random.between(4, 40);
  scenario.longest_prompt = random.between_powers(2, 7);
  scenario.longest_output = random.between_powers(1, 6);
  scenario.arrival_rate = random.chance(0.3) ? 4.0 : 0.2;
  scenario.cancel_rate = random.chance(0.5) ? 0.3 : 0.0;
  scenario.failure_rate = random.chance(0.3) ? 0.02 : 0.0;
  scenario.reset_rate = random.chance(0.2) ? 0.05 : 0.0;
  scenario.shared_rate = random.chance(0.7) ? 0.9 : 0.0;
  scenario.num_salts = random.chance(0.2) ? 2 : 1;
  if (random.chance(0.4)) make_tight(scenario, random);
  return scenario;
}

// What is known about a request that was submitted, and what was heard of it.
struct Known {
  RequestAlone alone;
  std::int64_t submitted_us = 0;
  bool must_fail = false;  // an impossible request
  bool accepted = false, admitted = false, ended = false;
  bool cancelled = false;  // the command was sent
  std::int32_t num_preemptions = 0;
  std::vector<CompletionOutput> outputs;
  std::vector<bool> output_ended;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Mutation mutation)
      : random_(seed),
        mutation_(mutation),
        scenario_(draw_scenario(random_, tokenizer_.vocabulary_size())),
        runner_({.block_size = scenario_.options.block_size,
                 .num_blocks = scenario_.options.num_blocks,
                 .max_num_seqs = scenario_.options.max_num_seqs,
                 .max_num_batched_tokens = scenario_.options.max_num_batched_tokens,
                 .model = scenario_.model},
                random_.next()),
        mutated_runner_(runner_, mutation),
        core_(scenario_.options, {.runner = &mutated_runner_,
                                  .clock = &clock_,
                                  .intake = {.tokenizer = &tokenizer_,
                                             .draw_seed = [this] { return drawn_seed_ = random_.next(); },
                                             .unix_time_s = [] { return std::int64_t{0}; }}}) {
    for (int index = 0; index < 3; ++index)
      shared_starts_.push_back(draw_tokens(2 * scenario_.longest_prompt));
    runner_.set_failure_rate(scenario_.failure_rate);
  }

  Report run() {
    while (!report_.problem && num_submitted_ < scenario_.num_requests) step(draw_commands());
    runner_.set_failure_rate(0.0);
    drain();
    if (!report_.problem) check_all_is_over();
    report_.num_requests = num_submitted_;
    report_.num_block_copies = num_block_copies_;
    report_.num_hit_tokens = core_.totals().prefix_hit_tokens;
    report_.num_evictions = core_.totals().evicted_cached_blocks;
    return report_;
  }

 private:
  // ---- commands ----
  std::vector<EngineCommand> draw_commands() {
    std::vector<EngineCommand> commands;
    double arrivals = scenario_.arrival_rate;
    for (; num_submitted_ < scenario_.num_requests && random_.chance(arrivals); arrivals -= 1.0) {
      commands.emplace_back(draw_submit());
    }
    if (random_.chance(scenario_.cancel_rate * 0.2)) draw_cancel(commands);
    if (random_.chance(scenario_.reset_rate)) commands.emplace_back(ResetPrefixCache{});
    return commands;
  }

  void draw_cancel(std::vector<EngineCommand>& commands) {
    std::vector<RequestId> open;
    for (const auto& [request_id, known] : known_) {
      if (!known.ended) open.push_back(request_id);
    }
    if (open.empty()) return;
    const RequestId chosen =
        open[static_cast<std::size_t>(random_.between(0, static_cast<int>(open.size()) - 1))];
    known_.at(chosen).cancelled = true;
    commands.emplace_back(CancelRequest{chosen});
  }

  SubmitRequest draw_submit() {
    const RequestId request_id{static_cast<std::uint64_t>(++num_submitted_)};
    Known& known = known_[request_id];
    GenerationRequest request;
    request.sampling = draw_sampling();
    request.prompt = draw_prompt(known);
    known.alone.salt = static_cast<std::uint64_t>(random_.between(0, scenario_.num_salts - 1));
    request.cache_salt = known.alone.salt == 0 ? "" : "salt";
    runner_.set_salt(request_id, known.alone.salt);
    known.alone.sampling = request.sampling;
    if (request.sampling.seed) known.alone.seed = *request.sampling.seed;
    known.outputs.resize(static_cast<std::size_t>(request.sampling.n));
    known.output_ended.resize(known.outputs.size());
    known.submitted_us = clock_.now_us();
    return SubmitRequest{request_id, std::move(request), known.submitted_us};
  }

  SamplingParams draw_sampling() {
    SamplingParams sampling;
    sampling.n = random_.chance(0.3) ? random_.between(1, 4) : 1;
    sampling.temperature = random_.chance(0.5) ? 0.0 : 1.0;
    if (random_.chance(0.5)) sampling.seed = random_.next();
    sampling.max_tokens = random_.between(1, scenario_.longest_output);
    if (random_.chance(0.2)) sampling.min_tokens = random_.between(0, sampling.max_tokens);
    if (random_.chance(0.3)) sampling.stop = {"abca", "b", "\u00e9", "e d", "\U0001f600", "bab"};
    if (random_.chance(0.2)) sampling.stop = {"dde", "cab"};
    if (random_.chance(0.2)) sampling.stop_token_ids = {random_.between(0, 8), 5};
    sampling.ignore_eos = random_.chance(0.2);
    sampling.prompt_logprobs = random_.chance(0.1);
    return sampling;
  }

  Prompt draw_prompt(Known& known) {
    auto& tokens = known.alone.prompt_token_ids;
    const std::int32_t length = random_.between(1, scenario_.longest_prompt);
    if (random_.chance(0.05)) {
      known.must_fail = true;
      return random_.chance(0.5) ? TokenPrompt{} : TokenPrompt{{5, tokenizer_.vocabulary_size()}};
    }
    if (random_.chance(0.1)) {
      tokens = {ToyTokenizer::kBos, ToyTokenizer::kNumSpecial};
      return TextPrompt{"a"};
    }
    if (random_.chance(scenario_.shared_rate)) {
      const auto& start = shared_starts_[static_cast<std::size_t>(random_.between(0, 2))];
      tokens.assign(start.begin(), start.begin() + random_.between(1, static_cast<int>(start.size())));
      if (random_.chance(0.5)) return TokenPrompt{tokens};
    }
    const std::vector<TokenId> rest = draw_tokens(length);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return TokenPrompt{tokens};
  }

  std::vector<TokenId> draw_tokens(std::int32_t length) {
    std::vector<TokenId> tokens;
    for (std::int32_t index = 0; index < length; ++index) {
      tokens.push_back(random_.between(0, tokenizer_.vocabulary_size() - 1));
    }
    return tokens;
  }

  // ---- one step and what must hold after it ----
  void step(std::vector<EngineCommand> commands) {
    const std::vector<EngineCommand> sent = commands;
    const std::int64_t num_steps_before = report_.num_steps;
    clock_.advance_us(random_.between(0, 1000));
    std::vector<EngineEvent> events =
        mutate_events(mutation_, core_.step(mutate_commands(mutation_, std::move(commands))));
    if (auto problem = runner_.problem()) note(*problem);
    check_events(events);
    check_cancels(sent);
    check_records();
    if (report_.num_steps > num_steps_before) check_progress(events);
    if (auto broken = core_.scheduler().broken_invariant()) note("invariant: " + *broken);
    if (scenario_.options.num_blocks <= 256 || random_.chance(0.1)) runner_.poison_unfilled(core_.snapshot());
  }

  void check_events(const std::vector<EngineEvent>& events) {
    std::vector<RequestId> preempted, admitted;
    for (const EngineEvent& event : events) {
      const RequestId request_id = request_id_of(event);
      const auto found = known_.find(request_id);
      if (found == known_.end()) return note("an event of a request that nobody submitted");
      if (found->second.ended) return note(name(request_id) + "an event after its end");
      if (std::holds_alternative<RequestPreempted>(event)) preempted.push_back(request_id);
      if (std::holds_alternative<RequestAdmitted>(event)) admitted.push_back(request_id);
      std::visit([&](const auto& kind) { hear(kind, found->second); }, event);
      if (report_.problem) return;
    }
    check_preemption_order(preempted, admitted);
  }

  void hear(const RequestAccepted& event, Known& known) {
    if (known.accepted) note(name(event.request_id) + "accepted twice");
    known.accepted = true;
    if (event.prompt_token_ids != known.alone.prompt_token_ids)
      note(name(event.request_id) + "another prompt");
    if (!known.alone.sampling.seed) {
      known.alone.seed = event.seed;
    } else if (event.seed != known.alone.seed) {
      note(name(event.request_id) + "another seed");
    }
  }

  // First come, first served: everyone submitted earlier has been admitted or is over.
  void hear(const RequestAdmitted& event, Known& known) {
    if (!known.accepted || known.admitted) note(name(event.request_id) + "admitted twice or unasked");
    known.admitted = true;
    for (const auto& [request_id, earlier] : known_) {
      if (request_id >= event.request_id) break;
      if (!earlier.ended && !earlier.admitted)
        note(name(event.request_id) + "admitted before an earlier one");
    }
    const auto num_prompt = static_cast<std::int32_t>(known.alone.prompt_token_ids.size());
    if (event.num_cached_tokens < 0 || event.num_cached_tokens >= num_prompt) {
      note(name(event.request_id) + "impossible number of cached tokens");
    }
    if (event.num_cached_tokens > 0 && !scenario_.options.enable_prefix_caching) {
      note(name(event.request_id) + "cached tokens without a prefix cache");
    }
    if (event.queue_us != clock_.now_us() - known.submitted_us)
      note(name(event.request_id) + "wrong time in queue");
  }

  void hear(const TokensGenerated& event, Known& known) {
    if (!known.admitted && !event.token_ids.empty())
      return note(name(event.request_id) + "a token before admission");
    const auto index = static_cast<std::size_t>(event.output_index);
    if (known.output_ended[index]) note(name(event.request_id) + "a token after the output's end");
    if (event.token_ids.size() != event.logprobs.size())
      note(name(event.request_id) + "tokens without logprobs");
    CompletionOutput& output = known.outputs[index];
    output.token_ids.insert(output.token_ids.end(), event.token_ids.begin(), event.token_ids.end());
    output.logprobs.insert(output.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    output.text += event.text;
    report_.num_tokens += static_cast<std::int64_t>(event.token_ids.size());
  }

  void hear(const RequestPreempted& event, Known& known) {
    if (!known.admitted) note(name(event.request_id) + "preempted before it ran");
    ++known.num_preemptions;
    ++report_.num_preemptions;
  }

  void hear(const OutputFinished& event, Known& known) {
    const auto index = static_cast<std::size_t>(event.output_index);
    if (known.output_ended[index]) note(name(event.request_id) + "an output ended twice");
    known.output_ended[index] = true;
    known.outputs[index].finish_reason = event.finish_reason;
    known.outputs[index].stop_reason = event.stop_reason;
  }

  void hear(const RequestFinished& event, Known& known) {
    known.ended = true;
    for (std::size_t index = 0; index < known.outputs.size(); ++index) {
      if (!known.output_ended[index]) note(name(event.request_id) + "finished before its outputs");
      check_output(event.request_id, known, static_cast<std::uint32_t>(index));
    }
    if (known.must_fail) note(name(event.request_id) + "should have been refused");
    if (event.metrics.num_preemptions != known.num_preemptions)
      note(name(event.request_id) + "wrong preemption count");
    if (event.metrics.e2e_us != clock_.now_us() - known.submitted_us)
      note(name(event.request_id) + "wrong e2e time");
    const auto expected = expected_prompt_logprobs(known.alone);
    if (known.cancelled && known.outputs[0].finish_reason == FinishReason::kAbort) {
      ++report_.num_cancelled;
    } else if (event.prompt_logprobs != expected) {
      note(name(event.request_id) + "wrong prompt log-probabilities");
    }
  }

  void hear(const RequestFailed& event, Known& known) {
    known.ended = true;
    switch (event.error.code) {
      case ErrorCode::kInvalidArgument:
        ++report_.num_refused;
        if (!known.must_fail && !asks_too_many_outputs(known))
          note(name(event.request_id) + "refused: " + event.error.message);
        return;
      case ErrorCode::kTooLong:
        ++report_.num_refused;
        if (!is_too_long(known)) note(name(event.request_id) + "refused: " + event.error.message);
        return;
      case ErrorCode::kDevice:
        ++report_.num_failed_steps;
        if (scenario_.failure_rate == 0.0) note(name(event.request_id) + "failed without a failing device");
        return check_prefixes(event.request_id, known);
      case ErrorCode::kInvalidLogits:
        if (!some_output_fails(known)) note(name(event.request_id) + "failed without invalid logits");
        return check_prefixes(event.request_id, known);
      default: note(name(event.request_id) + "failed: " + event.error.message);
    }
  }

  // ---- against the request alone ----
  ExpectedOutput expected_of(const Known& known, std::uint32_t index) const {
    return expected_output(scenario_.model, tokenizer_, known.alone, index, scenario_.options.max_model_len);
  }

  bool some_output_fails(const Known& known) const {
    for (std::uint32_t index = 0; index < known.outputs.size(); ++index) {
      if (expected_of(known, index).fails) return true;
    }
    return false;
  }

  void check_prefixes(RequestId request_id, const Known& known) {
    for (std::uint32_t index = 0; index < known.outputs.size(); ++index) {
      check_is_prefix(request_id, known.outputs[index], expected_of(known, index));
    }
  }

  void check_is_prefix(RequestId request_id, const CompletionOutput& output, const ExpectedOutput& expected) {
    const auto& tokens = output.token_ids;
    if (tokens.size() > expected.token_ids.size() ||
        !std::equal(tokens.begin(), tokens.end(), expected.token_ids.begin()) ||
        !std::equal(output.logprobs.begin(), output.logprobs.end(), expected.logprobs.begin())) {
      note(name(request_id) + "tokens differ from those of the request alone");
    }
  }

  void check_output(RequestId request_id, const Known& known, std::uint32_t index) {
    const CompletionOutput& output = known.outputs[index];
    const ExpectedOutput expected = expected_of(known, index);
    check_is_prefix(request_id, output, expected);
    const bool complete = !expected.fails && output.token_ids.size() == expected.token_ids.size() &&
                          output.finish_reason != FinishReason::kAbort;
    if (complete) {
      if (output.text != expected.text) note(name(request_id) + "wrong text");
      if (output.finish_reason != expected.finish_reason) note(name(request_id) + "wrong finish reason");
      if (output.stop_reason != expected.stop_reason) note(name(request_id) + "wrong stop reason");
      return;
    }
    if (output.text != tokenizer_.decode(output.token_ids, /*skip_special=*/true)) {
      note(name(request_id) + "wrong text of an output that was ended");
    }
    if (output.finish_reason == FinishReason::kAbort) {
      if (!known.cancelled) note(name(request_id) + "aborted, but nobody cancelled it");
    } else if (output.finish_reason == FinishReason::kLength && may_outgrow_pool(known)) {
      ++report_.num_out_of_memory;
    } else {
      note(name(request_id) + "ended too early");
    }
  }

  bool asks_too_many_outputs(const Known& known) const {
    return known.alone.sampling.n > scenario_.options.max_num_seqs;
  }

  bool is_too_long(const Known& known) const {
    const auto num_prompt = static_cast<std::int32_t>(known.alone.prompt_token_ids.size());
    return num_prompt >= scenario_.options.max_model_len ||
           blocks_of(known, num_prompt + 1) > scenario_.options.num_blocks;
  }

  bool may_outgrow_pool(const Known& known) const {
    std::int32_t num_tokens = 0;
    for (const auto& output : known.outputs) {
      num_tokens = std::max(num_tokens, static_cast<std::int32_t>(output.token_ids.size()));
    }
    num_tokens += static_cast<std::int32_t>(known.alone.prompt_token_ids.size()) + 1;
    return blocks_of(known, num_tokens) > scenario_.options.num_blocks;
  }

  // At most, sharing nothing.
  std::int32_t blocks_of(const Known& known, std::int32_t num_tokens) const {
    const std::int32_t block_size = scenario_.options.block_size;
    return known.alone.sampling.n * ((num_tokens + block_size - 1) / block_size);
  }

  // ---- the rules of scheduling ----
  // The latest goes first: nobody who arrived after a preempted request runs on, and nobody starts in that
  // step.
  void check_preemption_order(const std::vector<RequestId>& preempted,
                              const std::vector<RequestId>& admitted) {
    if (!preempted.empty() && !admitted.empty()) note("a request was admitted in a step that preempted");
    const std::vector<RequestId> running = runner_.take_scheduled_requests();
    for (const RequestId victim : preempted) {
      if (!running.empty() && running.back() > victim)
        note(name(victim) + "preempted though a later one runs");
    }
    if (!admitted.empty()) check_everyone_resumed(admitted.back());
  }

  // Before a newer request starts, whoever lost blocks has them again.
  void check_everyone_resumed(RequestId newest) {
    for (const SequenceSnapshot& sequence : core_.snapshot().sequences) {
      if (sequence.state == SequenceState::kRunning || sequence.request_id >= newest) continue;
      if (known_.at(sequence.request_id).num_preemptions > 0) {
        note(name(newest) + "admitted while request " + std::to_string(sequence.request_id.value) +
             " waits to resume");
      }
    }
  }

  void check_cancels(const std::vector<EngineCommand>& sent) {
    for (const EngineCommand& command : sent) {
      const auto* cancel = std::get_if<CancelRequest>(&command);
      if (cancel && !known_.at(cancel->request_id).ended)
        note(name(cancel->request_id) + "not ended by its cancel");
    }
  }

  // If anything can run, some token is drawn within ceil(tokens of a request / chunk) + 2 steps: after a
  // preemption a request computes the tokens of all its outputs again.
  void check_progress(const std::vector<EngineEvent>& events) {
    const bool progressed = std::any_of(events.begin(), events.end(), [](const EngineEvent& event) {
      return !std::holds_alternative<RequestAccepted>(event) &&
             !std::holds_alternative<RequestAdmitted>(event) &&
             !std::holds_alternative<RequestPreempted>(event);
    });
    num_steps_without_progress_ = progressed ? 0 : num_steps_without_progress_ + 1;
    const std::int32_t chunk = scenario_.options.max_num_batched_tokens;
    constexpr std::int32_t kMostOutputs = 4;
    const std::int32_t bound = (kMostOutputs * scenario_.options.max_model_len + chunk - 1) / chunk + 2;
    if (num_steps_without_progress_ > bound) note("no token in " + std::to_string(bound) + " steps");
  }

  void check_records() {
    const metrics::Trace trace = core_.recorder().read_since(step_mark_, event_mark_);
    step_mark_ = trace.next_step_mark;
    event_mark_ = trace.next_event_mark;
    if (trace.num_lost != 0 || trace.steps.size() > 1) note("a step left more than one record");
    for (const StepRecord& record : trace.steps) {
      ++report_.num_steps;
      num_block_copies_ += record.num_block_copies;
      if (record.used_blocks + record.cached_blocks + record.free_blocks != scenario_.options.num_blocks) {
        note("used, cached and free blocks are not the pool");
      }
    }
  }

  // ---- the end ----
  void drain() {
    std::int64_t bound = 100;
    for (const auto& [request_id, known] : known_) {
      const auto length =
          static_cast<std::int64_t>(known.alone.prompt_token_ids.size()) + known.alone.sampling.max_tokens;
      bound += known.ended ? 0
                           : 8 *
                                 (length / scenario_.options.max_num_batched_tokens +
                                  known.alone.sampling.max_tokens + 3) *
                                 known.alone.sampling.n;
    }
    for (; core_.has_work() && !report_.problem; --bound) {
      if (bound == 0) return note("does not drain");
      step({});
    }
  }

  void check_all_is_over() {
    for (const auto& [request_id, known] : known_) {
      if (!known.ended) note(name(request_id) + "never ended");
    }
    const KvSnapshot snapshot = core_.snapshot();
    if (snapshot.figures.used_blocks != 0 || !snapshot.sequences.empty())
      note("blocks are in use after the end");
    if (snapshot.figures.cached_blocks + snapshot.figures.free_blocks != scenario_.options.num_blocks) {
      note("the pool is not whole at the end");
    }
  }

  static std::string name(RequestId request_id) {
    return "request " + std::to_string(request_id.value) + ": ";
  }

  void note(const std::string& problem) {
    if (!report_.problem) report_.problem = "step " + std::to_string(report_.num_steps) + ": " + problem;
  }

  Random random_;
  const Mutation mutation_;
  const ToyTokenizer tokenizer_;
  ManualClock clock_;
  const Scenario scenario_;
  SimulatedRunner runner_;
  MutatedRunner mutated_runner_;
  std::uint64_t drawn_seed_ = 0;
  EngineCore core_;

  std::vector<std::vector<TokenId>> shared_starts_;
  std::map<RequestId, Known> known_;
  std::int32_t num_submitted_ = 0;
  std::int32_t num_steps_without_progress_ = 0;
  std::int64_t num_block_copies_ = 0;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  Report report_;
};

}  // namespace

Report simulate(std::uint64_t seed, Mutation mutation) { return Simulation(seed, mutation).run(); }

}  // namespace octavo::simulation
