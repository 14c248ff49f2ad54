// What the server has done, as Prometheus reads it (text format 0.0.4, GET /metrics): vLLM's names, meanings
// and buckets, so that dashboards and load generators find what they look for, and names of our own
// (octavo:...) for what vLLM does not tell.
//
// Requests count when they end, by exactly what their usage says: prompt tokens of requests that were let in,
// generated tokens as they were told, and of requests that came to a first token what the prefix cache had at
// their first admission. Requests that were refused or failed count as request_success of finished_reason
// "error" and in the tokens they used, not in latencies.
// Events have no times between tokens: each token behind the first counts in time_per_output_token and
// inter_token_latency as the mean of its request, so that the count is exact, the sum but for microseconds,
// and the buckets blur. Preempted requests wait; that they go on is seen at their next token.
//
// Thread: begin() and add() on one thread, text() on any.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/metrics.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"

namespace octavo::app {

// Levels and totals of the pools at the moment of asking (Engine::kv_totals, the newest StepRecord or
// KvFigures).
struct PoolLevels {
  KvTotals totals = {};
  std::int32_t used_blocks = 0, cached_blocks = 0;  // the rest of totals.num_blocks is free
  std::int32_t logical_blocks = 0;  // sum of table lengths: beyond used_blocks by what sequences share
};

struct ServerMetricsOptions {
  std::string model_name = {};     // as clients know it
  std::int32_t max_model_len = 0;  // tokens: where the buckets of token counts end
};

class ServerMetrics {
 public:
  explicit ServerMetrics(const ServerMetricsOptions& options);

  // Before the request's events. Events of requests that did not begin here are left out.
  void begin(RequestId request_id);
  void add(const EngineEvent& event);
  // Steps of the engine, of whomever. iteration_tokens_total is told once there was one.
  void add(const StepRecord& step);

  std::string text(const PoolLevels& levels) const;

 private:
  // Whole numbers in the unit of `scale` to one, so that sums are exact.
  struct Histogram {
    std::vector<std::int64_t> bounds = {};  // ascending; a value counts at the first it does not exceed
    std::int64_t scale = 1;
    std::vector<std::int64_t> counts = {};  // one more than bounds
    std::int64_t sum = 0, count = 0;

    void observe(std::int64_t value, std::int64_t times = 1);
  };
  static Histogram histogram(std::span<const std::int64_t> bounds, std::int64_t scale);

  enum class Place { kWaiting, kRunning };
  struct Live {
    Place place = Place::kWaiting;
    bool was_admitted = false;
    std::int64_t num_prompt = 0, num_cached = 0;
    std::vector<std::int64_t> num_generated = {};  // of each output
    std::optional<FinishReason> finish = {};       // of the first output
  };
  void note(Live& live, const EngineEvent& event);
  void count_usage(const Live& live, const RequestMetrics& metrics);
  void count_times(const Live& live, const RequestMetrics& metrics);

  const std::string labels_;  // model_name and engine, escaped
  mutable std::mutex mutex_;  // guards what follows
  std::map<RequestId, Live> live_;
  std::int64_t prompt_tokens_ = 0, generation_tokens_ = 0;
  std::int64_t cache_queries_ = 0, cache_hits_ = 0;  // tokens
  std::int64_t preemptions_ = 0;
  std::int64_t draft_tokens_ = 0, accepted_tokens_ = 0;
  std::array<std::int64_t, 4> ended_ = {};           // index: FinishReason
  std::array<std::int64_t, 5> prompt_sources_ = {};  // tokens; in the order of PromptAccount
  std::array<std::int64_t, 8> misses_ = {};          // requests; index: MissCause
  Histogram ttft_, token_time_, e2e_, queue_, prefill_, decode_, request_token_time_;  // us
  Histogram prompt_lengths_, output_lengths_, step_tokens_;
};

}  // namespace octavo::app
