// Prefill and decode speed of a running engine on random prompts: what `octavo bench speed` measures.
#pragma once

#include <cstdint>
#include <vector>

#include "app/commands/hardware_counters.h"
#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/engine.h"

namespace octavo::app {

// One combination. Each sequence's prompt is `cached_tokens` that the prefix cache holds already, then
// `prompt_tokens`, the first `shared_prefix_tokens` of which are the same for all sequences.
struct SpeedShape {
  std::int32_t prompt_tokens = 512;
  std::int32_t output_tokens = 64;
  std::int32_t sequences = 1;
  std::int32_t shared_prefix_tokens = 0;
  std::int32_t cached_tokens = 0;
};

// What one repeat of a combination measured.
struct SpeedRun {
  double prefill_tokens_per_s = 0.0;  // computed tokens
  // Of all sequences, from the last first token on; 0 when none was decoded
  double decode_tokens_per_s = 0.0;
  double ttft_ms = 0.0;                         // median over the sequences
  double step_p50_ms = 0.0, step_p99_ms = 0.0;  // of steps that only decode
  // Median between the work of two of them: what a device waits for while the host ends the one and makes the
  // other; 0 where that other was begun before
  double between_steps_us = 0.0;
  // All weights once, and the keys and values that a step must read, for each step
  double decode_bytes_per_s = 0.0;
  double read_bytes_per_s = 0.0;  // what the same threads could read around the run; 0: not measured
  double prefill_multiply_adds_per_s = 0.0;                // products with weights only, without attention
  HardwareCounters::Counts prefill_counts, decode_counts;  // for each token
};

double percentile(std::vector<double> values, double share);  // nearest rank; 0 when empty

// Greedy, end-of-sequence ignored. Used by one thread, on an engine that nobody else uses and that was made
// with EngineOptions::prefill_first. Every prompt is new.
class SpeedBenchmark {
 public:
  // `counters` must be older than the engine, or they do not see its threads.
  SpeedBenchmark(Engine& engine, const HardwareCounters& counters) : engine_(engine), counters_(counters) {}

  // Uses the whole pool once, by sequences that grow in turns and end at different times, so that the blocks
  // that a sequence is given afterwards lie apart: a pool after hours of chats. kCancelled as below.
  Result<void> scatter_blocks();

  // One repeat, with an empty prefix cache but for the cached tokens. An error when a request failed: a
  // measurement of less than was asked would be a lie. kCancelled on Ctrl+C (when an InterruptGuard lives).
  Result<SpeedRun> run(const SpeedShape& shape);

 private:
  struct Finished {
    std::vector<RequestOutput> outputs;
    HardwareCounters::Counts at_begin, at_last_first_token, at_end;
  };

  std::vector<TokenId> fresh_tokens(std::int32_t count);
  std::vector<GenerationRequest> draw_requests(const SpeedShape& shape, const std::vector<TokenId>& cached);
  Result<void> fill_cache(const std::vector<TokenId>& cached);
  Result<Finished> finish(std::vector<GenerationRequest> requests);
  void skip_trace();
  SpeedRun measure(const SpeedShape& shape, const Finished& finished);

  Engine& engine_;
  const HardwareCounters& counters_;
  std::uint64_t next_stream_ = 0;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
};

}  // namespace octavo::app
