#include "app/server/server_metrics.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

// ---- vLLM's buckets

constexpr std::int64_t kMetricUsPerSecond = 1'000'000;

// Microseconds.
constexpr std::array<std::int64_t, 22> kFirstTokenBounds = {
    1'000,      5'000,      10'000,     20'000,      40'000,      60'000,       80'000,    100'000,
    250'000,    500'000,    750'000,    1'000'000,   2'500'000,   5'000'000,    7'500'000, 10'000'000,
    20'000'000, 40'000'000, 80'000'000, 160'000'000, 640'000'000, 2'560'000'000};
constexpr std::array<std::int64_t, 19> kTokenTimeBounds = {
    10'000,    25'000,     50'000,     75'000,     100'000,   150'000,   200'000,
    300'000,   400'000,    500'000,    750'000,    1'000'000, 2'500'000, 5'000'000,
    7'500'000, 10'000'000, 20'000'000, 40'000'000, 80'000'000};
constexpr std::array<std::int64_t, 21> kLatencyBounds = {
    300'000,    500'000,     800'000,     1'000'000,   1'500'000,   2'000'000,     2'500'000,
    5'000'000,  10'000'000,  15'000'000,  20'000'000,  30'000'000,  40'000'000,    50'000'000,
    60'000'000, 120'000'000, 240'000'000, 480'000'000, 960'000'000, 1'920'000'000, 7'680'000'000};
constexpr std::array<std::int64_t, 13> kStepTokenBounds = {1,   8,    16,   32,   64,   128,  256,
                                                           512, 1024, 2048, 4096, 8192, 16384};

// 1, 2, 5, 10, ... as far as `most`.
std::vector<std::int64_t> token_count_bounds(std::int64_t most) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * power > most) return bounds;
      bounds.push_back(digit * power);
    }
  }
}

// ---- the format

// The shortest digits that read as the same number, without an exponent.
std::string metric_number(double value) {
  std::array<char, 400> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return {buffer.data(), end.ptr};
}

// Bounds as Python writes a float: some tools compare the text.
std::string bound_text(std::int64_t bound, std::int64_t scale) {
  std::string text = metric_number(static_cast<double>(bound) / static_cast<double>(scale));
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string label_value(std::string_view value) {
  std::string escaped;
  for (const char c : sanitise_utf8(value)) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Families one after the other. Labels are given as "name=\"value\"", escaped.
class MetricsText {
 public:
  explicit MetricsText(std::string_view labels) : labels_(labels) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    for (const auto& [keyword, rest] :
         {std::pair<std::string_view, std::string_view>{"HELP", help}, {"TYPE", type}}) {
      text_.append("# ").append(keyword).append(" ").append(name).append(" ").append(rest).append("\n");
    }
  }
  void sample(std::string_view value, std::string_view more_labels = {}, std::string_view suffix = {}) {
    text_.append(name_).append(suffix).append("{").append(labels_);
    if (!more_labels.empty()) text_.append(",").append(more_labels);
    text_.append("} ").append(value).append("\n");
  }
  void sample(std::int64_t value, std::string_view more_labels = {}, std::string_view suffix = {}) {
    sample(std::to_string(value), more_labels, suffix);
  }
  void single(std::string_view name, std::string_view type, std::string_view help, std::int64_t value) {
    family(name, type, help);
    sample(value);
  }
  void counter(std::string_view name, std::string_view help, std::int64_t value) {
    single(name, "counter", help, value);
  }
  void gauge(std::string_view name, std::string_view help, std::int64_t value) {
    single(name, "gauge", help, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string_view labels_, name_;
  std::string text_;
};

std::string one_label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + "\"";
}

template <class Histogram>
void append_histogram(MetricsText& text, std::string_view name, std::string_view help,
                      const Histogram& histogram) {
  text.family(name, "histogram", help);
  std::int64_t so_far = 0;
  for (std::size_t i = 0; i < histogram.bounds.size(); ++i) {
    so_far += histogram.counts[i];
    text.sample(so_far, one_label("le", bound_text(histogram.bounds[i], histogram.scale)), "_bucket");
  }
  text.sample(histogram.count, one_label("le", "+Inf"), "_bucket");
  text.sample(metric_number(static_cast<double>(histogram.sum) / static_cast<double>(histogram.scale)), {},
              "_sum");
  text.sample(histogram.count, {}, "_count");
}

void append_levels(MetricsText& text, const PoolLevels& levels) {
  const KvTotals& totals = levels.totals;
  const double usage = totals.num_blocks > 0
                           ? static_cast<double>(levels.used_blocks) / static_cast<double>(totals.num_blocks)
                           : 0.0;
  for (const std::string_view name : {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}) {
    text.family(name, "gauge", "Share of the blocks of the KV cache that are in use, 0 to 1.");
    text.sample(metric_number(usage));
  }
  text.family("vllm:cache_config_info", "gauge", "The shape of the KV cache, in labels.");
  text.sample(1, one_label("block_size", std::to_string(totals.block_size)) + "," +
                     one_label("num_gpu_blocks", std::to_string(totals.num_blocks)) + "," +
                     one_label("num_cpu_blocks", std::to_string(totals.num_host_blocks)));

  text.family("octavo:kv_blocks", "gauge",
              "Blocks of the device pool: in use, kept to be found again, free.");
  text.sample(levels.used_blocks, one_label("state", "used"));
  text.sample(levels.cached_blocks, one_label("state", "cached"));
  text.sample(totals.num_blocks - levels.used_blocks - levels.cached_blocks, one_label("state", "free"));
  text.gauge("octavo:kv_logical_blocks",
             "Sum of the lengths of all block tables; above the used blocks by what sequences share.",
             levels.logical_blocks);
  text.gauge("octavo:kv_peak_used_blocks", "Most blocks that were in use.", totals.peak_used_blocks);
  text.gauge("octavo:kv_host_used_blocks", "Blocks of the host pool in use.", totals.host_used_blocks);
}

void append_pool_totals(MetricsText& text, const KvTotals& totals) {
  text.family("octavo:kv_block_copies_total", "counter",
              "Blocks copied within the device pool: on write, or for a prefix that ends inside a block.");
  text.sample(totals.cow_copies - totals.partial_copies, one_label("reason", "write"));
  text.sample(totals.partial_copies, one_label("reason", "partial_prefix"));
  text.counter("octavo:kv_swapped_out_blocks_total", "Blocks copied to the host pool.",
               totals.swapped_out_blocks);
  text.counter("octavo:kv_swapped_in_blocks_total", "Blocks copied back from the host pool.",
               totals.swapped_in_blocks);
  text.counter("octavo:kv_evicted_blocks_total", "Kept blocks whose contents were dropped.",
               totals.evicted_cached_blocks);
  text.family("octavo:preempted_groups_total", "counter",
              "Requests that lost their blocks, by what became of the contents.");
  text.sample(totals.preempted_swap, one_label("contents", "swapped"));
  text.sample(totals.preempted_recompute, one_label("contents", "dropped"));
  if (totals.num_states > 0) {
    const StateTotals& states = totals.states;
    text.family("octavo:states_total", "counter", "What happened to states of recurrent layers.");
    for (const auto& [what, count] : {std::pair<std::string_view, std::int64_t>{"taken", states.num_taken},
                                      {"resumed", states.num_resumed},
                                      {"evicted", states.num_evicted},
                                      {"copied", states.num_copied},
                                      {"swapped_out", states.num_swapped_out},
                                      {"swapped_in", states.num_swapped_in}})
      text.sample(count, one_label("what", what));
  }
  if (totals.num_window_blocks > 0) {
    const WindowTotals& windows = totals.windows;
    text.family("octavo:window_parts_total", "counter", "What happened to blocks of layers with a window.");
    for (const auto& [what, count] : {std::pair<std::string_view, std::int64_t>{"left", windows.num_left},
                                      {"evicted", windows.num_evicted},
                                      {"swapped_out", windows.num_swapped_out},
                                      {"swapped_in", windows.num_swapped_in}})
      text.sample(count, one_label("what", what));
  }
}

}  // namespace

// ---- counting

void ServerMetrics::Histogram::observe(std::int64_t value, std::int64_t times) {
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), value);
  counts[static_cast<std::size_t>(bound - bounds.begin())] += times;
  sum += value * times;
  count += times;
}

ServerMetrics::Histogram ServerMetrics::histogram(std::span<const std::int64_t> bounds, std::int64_t scale) {
  Histogram made{.bounds = {bounds.begin(), bounds.end()}, .scale = scale};
  made.counts.resize(bounds.size() + 1);
  return made;
}

ServerMetrics::ServerMetrics(const ServerMetricsOptions& options)
    : labels_(one_label("model_name", label_value(options.model_name)) + "," + one_label("engine", "0")),
      ttft_(histogram(kFirstTokenBounds, kMetricUsPerSecond)),
      token_time_(histogram(kTokenTimeBounds, kMetricUsPerSecond)),
      e2e_(histogram(kLatencyBounds, kMetricUsPerSecond)),
      queue_(e2e_),
      prefill_(e2e_),
      decode_(e2e_),
      request_token_time_(token_time_),
      prompt_lengths_(histogram(token_count_bounds(options.max_model_len), 1)),
      output_lengths_(prompt_lengths_),
      step_tokens_(histogram(kStepTokenBounds, 1)) {}

void ServerMetrics::begin(RequestId request_id) {
  std::lock_guard lock(mutex_);
  live_.try_emplace(request_id);
}

void ServerMetrics::add(const EngineEvent& event) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(request_id_of(event));
  if (found == live_.end()) return;
  Live& live = found->second;
  if (const auto* const finished = std::get_if<RequestFinished>(&event)) {
    count_usage(live, finished->metrics);
    count_times(live, finished->metrics);
    ++ended_[static_cast<std::size_t>(live.finish.value_or(FinishReason::kAbort))];
    live_.erase(found);
  } else if (const auto* const failed = std::get_if<RequestFailed>(&event)) {
    count_usage(live, failed->metrics);
    ++ended_[static_cast<std::size_t>(FinishReason::kError)];
    live_.erase(found);
  } else {
    note(live, event);
  }
}

void ServerMetrics::note(Live& live, const EngineEvent& event) {
  if (const auto* const accepted = std::get_if<RequestAccepted>(&event)) {
    live.num_prompt = static_cast<std::int64_t>(accepted->prompt_token_ids.size());
  } else if (const auto* const admitted = std::get_if<RequestAdmitted>(&event)) {
    live.was_admitted = true;
    live.place = Place::kRunning;
    live.num_cached = admitted->num_cached_tokens;
  } else if (const auto* const generated = std::get_if<TokensGenerated>(&event)) {
    live.place = Place::kRunning;
    const auto index = static_cast<std::size_t>(std::max(0, generated->output_index));
    if (index >= live.num_generated.size()) live.num_generated.resize(index + 1);
    live.num_generated[index] += static_cast<std::int64_t>(generated->token_ids.size());
  } else if (std::holds_alternative<BeamsAdvanced>(event)) {
    live.place = Place::kRunning;
  } else if (const auto* const preempted = std::get_if<RequestPreempted>(&event)) {
    if (preempted->first_output_index == 0) live.place = Place::kWaiting;
  } else if (const auto* const output = std::get_if<OutputFinished>(&event)) {
    if (output->output_index == 0) live.finish = output->finish_reason;
  }
}

void ServerMetrics::add(const StepRecord& step) {
  std::lock_guard lock(mutex_);
  step_tokens_.observe(std::int64_t{step.num_prefill_tokens} + step.num_decode_tokens +
                       step.num_accepted_tokens);
}

void ServerMetrics::count_usage(const Live& live, const RequestMetrics& metrics) {
  preemptions_ += metrics.num_preemptions;
  draft_tokens_ += metrics.num_draft_tokens;
  accepted_tokens_ += metrics.num_accepted_tokens;
  for (const std::int64_t count : live.num_generated) generation_tokens_ += count;
  if (!live.was_admitted) return;
  prompt_tokens_ += live.num_prompt;
  if (metrics.ttft_us <= 0) return;  // the account is not made up yet
  if (metrics.prefix_miss.cause != MissCause::kNotRead) {
    cache_queries_ += live.num_prompt;
    cache_hits_ += live.num_cached;
  }
  ++misses_[static_cast<std::size_t>(metrics.prefix_miss.cause)];
  const PromptAccount& prompt = metrics.prompt;
  const std::array<std::int64_t, 5> parts = {prompt.num_computed, prompt.num_hit_live, prompt.num_hit_cached,
                                             prompt.num_copied_partial, prompt.num_restored};
  for (std::size_t i = 0; i < parts.size(); ++i) prompt_sources_[i] += parts[i];
}

void ServerMetrics::count_times(const Live& live, const RequestMetrics& metrics) {
  e2e_.observe(metrics.e2e_us);
  queue_.observe(metrics.queue_us);
  if (!live.was_admitted) return;
  std::int64_t longest = 0, all = 0;
  for (const std::int64_t count : live.num_generated) {
    longest = std::max(longest, count);
    all += count;
  }
  prompt_lengths_.observe(live.num_prompt);
  output_lengths_.observe(all);
  if (metrics.ttft_us <= 0) return;
  ttft_.observe(metrics.ttft_us);
  prefill_.observe(metrics.ttft_us - metrics.queue_us);
  decode_.observe(metrics.e2e_us - metrics.ttft_us);
  if (longest < 2) return;
  token_time_.observe(metrics.tpot_us, longest - 1);
  request_token_time_.observe(metrics.tpot_us);
}

// ---- telling

std::string ServerMetrics::text(const PoolLevels& levels) const {
  MetricsText text(labels_);
  std::lock_guard lock(mutex_);
  const auto num_running = std::count_if(
      live_.begin(), live_.end(), [](const auto& entry) { return entry.second.place == Place::kRunning; });
  text.gauge("vllm:num_requests_running", "Requests that run.", num_running);
  text.gauge("vllm:num_requests_waiting", "Requests that wait for blocks.",
             static_cast<std::int64_t>(live_.size()) - num_running);
  append_levels(text, levels);

  text.counter("vllm:prompt_tokens_total", "Prompt tokens of requests that ended.", prompt_tokens_);
  text.counter("vllm:generation_tokens_total", "Tokens generated for requests that ended.",
               generation_tokens_);
  text.counter("vllm:prefix_cache_queries_total", "Prompt tokens that were looked for in the prefix cache.",
               cache_queries_);
  text.counter("vllm:prefix_cache_hits_total", "Prompt tokens that were found in the prefix cache.",
               cache_hits_);
  text.counter("vllm:num_preemptions_total", "How often requests that ended had lost their blocks.",
               preemptions_);
  text.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens guessed ahead.", draft_tokens_);
  text.counter("vllm:spec_decode_num_accepted_tokens_total",
               "Guessed tokens that became tokens of an output.", accepted_tokens_);
  text.family("vllm:request_success_total", "counter", "Requests that ended, by why the first output did.");
  for (std::size_t i = 0; i < ended_.size(); ++i)
    text.sample(ended_[i], one_label("finished_reason", finish_reason_name(static_cast<FinishReason>(i))));

  append_histogram(text, "vllm:time_to_first_token_seconds", "From submission to the first token.", ttft_);
  append_histogram(text, "vllm:time_per_output_token_seconds",
                   "Between two tokens of an output, each counted as its request's mean.", token_time_);
  append_histogram(text, "vllm:inter_token_latency_seconds",
                   "Between two tokens of an output, each counted as its request's mean.", token_time_);
  append_histogram(text, "vllm:request_time_per_output_token_seconds",
                   "Mean time between two tokens of a request's longest output.", request_token_time_);
  append_histogram(text, "vllm:e2e_request_latency_seconds", "From submission to the end.", e2e_);
  append_histogram(text, "vllm:request_queue_time_seconds", "From submission until blocks were given.",
                   queue_);
  append_histogram(text, "vllm:request_prefill_time_seconds", "From then to the first token.", prefill_);
  append_histogram(text, "vllm:request_decode_time_seconds", "From the first token to the end.", decode_);
  append_histogram(text, "vllm:request_prompt_tokens", "Prompt tokens of a request.", prompt_lengths_);
  append_histogram(text, "vllm:request_generation_tokens",
                   "Tokens generated for a request, of all its outputs.", output_lengths_);
  if (step_tokens_.count > 0)
    append_histogram(text, "vllm:iteration_tokens_total", "Tokens that a step of the engine computed.",
                     step_tokens_);

  static constexpr std::array<std::string_view, 5> kSources = {"computed", "hit_live", "hit_cached",
                                                               "copied_partial", "restored"};
  text.family("octavo:prompt_tokens_total", "counter",
              "Prompt tokens by what became of them until the first token.");
  for (std::size_t i = 0; i < kSources.size(); ++i)
    text.sample(prompt_sources_[i], one_label("source", kSources[i]));
  text.family("octavo:prefix_misses_total", "counter", "Requests by why their reuse ended where it did.");
  for (std::size_t i = 0; i < misses_.size(); ++i)
    text.sample(misses_[i], one_label("cause", miss_cause_name(static_cast<MissCause>(i))));
  append_pool_totals(text, levels.totals);
  return text.take();
}

}  // namespace octavo::app
