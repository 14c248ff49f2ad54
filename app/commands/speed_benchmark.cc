#include "app/commands/speed_benchmark.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "app/commands/command.h"
#include "engine/base/hash.h"
#include "engine/base/median.h"
#include "engine/output_collector.h"

namespace octavo::app {
namespace {

// Different numbers give unrelated prompts. Ids of the upper half of the vocabulary: ordinary words, no
// control tokens.
std::vector<TokenId> random_tokens(std::uint64_t stream, std::int32_t count, std::int32_t vocabulary_size) {
  std::vector<TokenId> token_ids;
  token_ids.reserve(static_cast<std::size_t>(count));
  const auto half = static_cast<std::uint64_t>(std::max(vocabulary_size / 2, 1));
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint64_t bits = hash_combine(stream, static_cast<std::uint64_t>(i));
    token_ids.push_back(
        static_cast<TokenId>((static_cast<std::uint64_t>(vocabulary_size) - half) + bits % half));
  }
  return token_ids;
}

void append(std::vector<TokenId>& tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

GenerationRequest greedy(std::vector<TokenId> prompt, std::int32_t output_tokens) {
  GenerationRequest request;
  request.prompt = TokenPrompt{.token_ids = std::move(prompt)};
  request.sampling.temperature = 0.0;
  request.sampling.max_tokens = output_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

// When the phases of a run began and ended, by the engine's own step records: prompts first, then decode
// steps only.
struct Phases {
  std::int64_t prefill_begin_us = -1, prefill_end_us = 0, decode_end_us = 0;
  std::int64_t num_prefill_tokens = 0;
  std::vector<double> decode_step_ms, between_steps_us;

  double prefill_s() const { return seconds(prefill_begin_us, prefill_end_us); }
  double decode_s() const { return seconds(prefill_end_us, decode_end_us); }

 private:
  static double seconds(std::int64_t begin_us, std::int64_t end_us) {
    return static_cast<double>(std::max<std::int64_t>(end_us - begin_us, 1)) * 1e-6;
  }
};

// Of steps[index]; what it does while the next is computed is not its time.
std::int64_t end_of(const std::vector<StepRecord>& steps, std::size_t index) {
  const StepRecord& step = steps[index];
  const std::int64_t end_us = step.begin_us + step.schedule_us + step.execute_us + step.commit_us;
  return index + 1 < steps.size() ? std::min(end_us, steps[index + 1].begin_us) : end_us;
}

Phases find_phases(const std::vector<StepRecord>& steps) {
  Phases phases;
  std::int64_t decoded_us = -1;  // when the work of the step before ended, if it decoded
  for (std::size_t index = 0; index < steps.size(); ++index) {
    const StepRecord& step = steps[index];
    const std::int64_t work_us = step.begin_us + step.schedule_us;
    const bool decodes = step.num_prefill_tokens == 0 && step.num_decode_tokens > 0;
    if (decodes && decoded_us >= 0)
      phases.between_steps_us.push_back(static_cast<double>(work_us - decoded_us));
    decoded_us = decodes ? work_us + step.execute_us : -1;
    const std::int64_t end_us = end_of(steps, index);
    if (step.num_prefill_tokens > 0) {
      if (phases.prefill_begin_us < 0) phases.prefill_begin_us = step.begin_us;
      phases.prefill_end_us = end_us;
      phases.num_prefill_tokens += step.num_prefill_tokens;
    } else if (step.num_decode_tokens > 0) {
      phases.decode_end_us = end_us;
      phases.decode_step_ms.push_back(static_cast<double>(end_us - step.begin_us) / 1000.0);
    }
  }
  return phases;
}

// All weights once, of experts those that so many rows use if they choose at random; keys and values of every
// position at the mean length: those that all sequences share once, for one reading serves them all.
double bytes_of_decode_step(const SpeedShape& shape, const EngineDescription& description) {
  const double shared = shape.cached_tokens + shape.shared_prefix_tokens;
  const double own = shape.prompt_tokens - shape.shared_prefix_tokens + 0.5 * shape.output_tokens;
  const double bytes_per_token = static_cast<double>(description.bytes_per_block) / description.block_size;
  const ModelDescription& model = description.model;
  const double unused =
      model.num_experts == 0
          ? 0.0
          : std::pow(1.0 - static_cast<double>(model.num_used_experts) / model.num_experts, shape.sequences);
  return static_cast<double>(description.weight_bytes) - unused * static_cast<double>(model.expert_bytes) +
         (shared + own * shape.sequences) * bytes_per_token;
}

// Every computed token meets the layers' matrices; the output head only the last one of each prompt.
double multiply_adds_of_prefill(const SpeedShape& shape, double num_tokens, const ModelDescription& model) {
  return num_tokens * static_cast<double>(model.num_layer_parameters) +
         shape.sequences * static_cast<double>(model.vocabulary_size) *
             static_cast<double>(model.embedding_length);
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const double index = std::ceil(share * static_cast<double>(values.size())) - 1.0;
  return values[static_cast<std::size_t>(std::max(0.0, index))];
}

Result<void> SpeedBenchmark::scatter_blocks() {
  const EngineDescription& description = engine_.description();
  const std::int32_t sequences = std::min(description.max_num_seqs, description.num_blocks);
  const std::int32_t longest =
      std::min(description.num_blocks / sequences * description.block_size, description.max_model_len) - 1;
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < sequences; ++i) {
    const auto shorter =
        static_cast<std::int32_t>(mix64(++next_stream_) % static_cast<std::uint64_t>(description.block_size));
    requests.push_back(greedy(fresh_tokens(1), std::max(1, longest - shorter)));
  }
  OCTAVO_TRY(const Finished unused, finish(std::move(requests)));
  engine_.reset_prefix_cache();  // or blocks that nobody has used yet are given out before these
  return {};
}

Result<SpeedRun> SpeedBenchmark::run(const SpeedShape& shape) {
  engine_.reset_prefix_cache();
  const std::vector<TokenId> cached = fresh_tokens(shape.cached_tokens);
  if (!cached.empty()) OCTAVO_TRY_VOID(fill_cache(cached));
  skip_trace();
  OCTAVO_TRY(const Finished finished, finish(draw_requests(shape, cached)));
  return measure(shape, finished);
}

std::vector<TokenId> SpeedBenchmark::fresh_tokens(std::int32_t count) {
  return random_tokens(mix64(++next_stream_), count, engine_.description().model.vocabulary_size);
}

std::vector<GenerationRequest> SpeedBenchmark::draw_requests(const SpeedShape& shape,
                                                             const std::vector<TokenId>& cached) {
  const std::vector<TokenId> shared = fresh_tokens(shape.shared_prefix_tokens);
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < shape.sequences; ++i) {
    std::vector<TokenId> prompt = cached;
    append(prompt, shared);
    append(prompt, fresh_tokens(shape.prompt_tokens - shape.shared_prefix_tokens));
    requests.push_back(greedy(std::move(prompt), shape.output_tokens));
  }
  return requests;
}

Result<void> SpeedBenchmark::fill_cache(const std::vector<TokenId>& cached) {
  std::vector<TokenId> prompt = cached;
  prompt.push_back(cached.back());  // at least one token of a request is always computed
  std::vector<GenerationRequest> requests;
  requests.push_back(greedy(std::move(prompt), 1));
  OCTAVO_TRY(const Finished unused, finish(std::move(requests)));
  return {};
}

Result<SpeedBenchmark::Finished> SpeedBenchmark::finish(std::vector<GenerationRequest> requests) {
  Finished finished;
  finished.at_begin = counters_.read();
  const std::vector<RequestId> ids = engine_.submit_all(std::move(requests));
  OutputCollector collector;
  for (const RequestId id : ids) collector.expect(id, 1);
  std::set<RequestId> waiting(ids.begin(), ids.end());  // for their first token
  while (!collector.done()) {
    if (InterruptGuard::interrupted()) {
      for (const RequestId id : ids) engine_.cancel(id);
    }
    for (const EngineEvent& event : engine_.poll(std::chrono::milliseconds(100))) {
      collector.add(event);
      if (std::holds_alternative<TokensGenerated>(event) && waiting.erase(request_id_of(event)) == 1 &&
          waiting.empty()) {
        finished.at_last_first_token = counters_.read();
      }
    }
  }
  finished.at_end = counters_.read();
  if (InterruptGuard::interrupted()) return Error{.code = ErrorCode::kCancelled, .message = "interrupted"};
  finished.outputs = collector.take();
  for (const RequestOutput& output : finished.outputs) {
    if (output.error.has_value()) return *output.error;
  }
  return finished;
}

void SpeedBenchmark::skip_trace() {
  const Engine::Trace trace = engine_.trace_since(step_mark_, event_mark_);
  step_mark_ = trace.next_step_mark;
  event_mark_ = trace.next_event_mark;
}

SpeedRun SpeedBenchmark::measure(const SpeedShape& shape, const Finished& finished) {
  const Engine::Trace trace = engine_.trace_since(step_mark_, event_mark_);
  const EngineDescription& description = engine_.description();
  const Phases phases = find_phases(trace.steps);
  const auto num_prefill_tokens = static_cast<double>(phases.num_prefill_tokens);
  SpeedRun run;
  run.prefill_tokens_per_s = num_prefill_tokens / phases.prefill_s();
  run.prefill_multiply_adds_per_s =
      multiply_adds_of_prefill(shape, num_prefill_tokens, description.model) / phases.prefill_s();
  run.prefill_counts = counted_between(finished.at_begin, finished.at_last_first_token, num_prefill_tokens);
  if (shape.output_tokens > 1) {
    const double num_steps = shape.output_tokens - 1;
    run.decode_tokens_per_s = shape.sequences * num_steps / phases.decode_s();
    run.decode_bytes_per_s = num_steps / phases.decode_s() * bytes_of_decode_step(shape, description);
    run.decode_counts =
        counted_between(finished.at_last_first_token, finished.at_end, shape.sequences * num_steps);
  }
  run.step_p50_ms = percentile(phases.decode_step_ms, 0.5);
  run.step_p99_ms = percentile(phases.decode_step_ms, 0.99);
  run.between_steps_us = percentile(phases.between_steps_us, 0.5);
  std::vector<double> ttft_ms;
  for (const RequestOutput& output : finished.outputs)
    ttft_ms.push_back(static_cast<double>(output.metrics.ttft_us) / 1000.0);
  run.ttft_ms = median(std::move(ttft_ms));
  return run;
}

}  // namespace octavo::app
