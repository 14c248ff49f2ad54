#include "app/remote/remote_metrics.h"

#include <charconv>
#include <cmath>
#include <map>

#include <algorithm>
#include <cstddef>

namespace octavo::app {
namespace {

struct KnownMetric {
  std::string_view name;
  std::optional<double> RemoteLoad::*figure;
};
// Of several names for one figure the first that is there counts: newer versions keep older names beside.
constexpr KnownMetric kKnownMetrics[] = {
    {"vllm:kv_cache_usage_perc", &RemoteLoad::kv_usage},
    {"vllm:gpu_cache_usage_perc", &RemoteLoad::kv_usage},
    {"llamacpp:kv_cache_usage_ratio", &RemoteLoad::kv_usage},
    {"sglang:token_usage", &RemoteLoad::kv_usage},
    {"vllm:num_requests_running", &RemoteLoad::num_running},
    {"llamacpp:requests_processing", &RemoteLoad::num_running},
    {"sglang:num_running_reqs", &RemoteLoad::num_running},
    {"vllm:num_requests_waiting", &RemoteLoad::num_waiting},
    {"llamacpp:requests_deferred", &RemoteLoad::num_waiting},
    {"sglang:num_queue_reqs", &RemoteLoad::num_waiting},
    {"vllm:num_requests_swapped", &RemoteLoad::num_swapped},
    {"vllm:num_preemptions_total", &RemoteLoad::num_preemptions},
    {"vllm:prefix_cache_queries_total", &RemoteLoad::prefix_queries},
    {"vllm:gpu_prefix_cache_queries_total", &RemoteLoad::prefix_queries},
    {"vllm:prefix_cache_hits_total", &RemoteLoad::prefix_hits},
    {"vllm:gpu_prefix_cache_hits_total", &RemoteLoad::prefix_hits},
    {"vllm:prompt_tokens_total", &RemoteLoad::prompt_tokens},
    {"llamacpp:prompt_tokens_total", &RemoteLoad::prompt_tokens},
    {"vllm:generation_tokens_total", &RemoteLoad::output_tokens},
    {"llamacpp:tokens_predicted_total", &RemoteLoad::output_tokens},
};

struct MetricSum {
  double sum = 0.0;
  int count = 0;
};

// The value of a label; nullopt when it is not there. Escapes stay as they are written.
std::optional<std::string_view> label_of(std::string_view labels, std::string_view name) {
  std::size_t at = 0;
  while (at < labels.size()) {
    const std::size_t equals = labels.find("=\"", at);
    if (equals == std::string_view::npos) return std::nullopt;
    std::string_view key = labels.substr(at, equals - at);
    key.remove_prefix(std::min(key.size(), key.find_first_not_of(", ")));
    const std::size_t begin = equals + 2;
    std::size_t end = begin;
    while (end < labels.size() && labels[end] != '"') end += labels[end] == '\\' ? 2 : 1;
    if (end >= labels.size()) return std::nullopt;
    if (key == name) return labels.substr(begin, end - begin);
    at = end + 1;
  }
  return std::nullopt;
}

// Where the labels end: a value may hold '}'.
std::size_t end_of_labels(std::string_view line, std::size_t begin) {
  bool is_quoted = false;
  for (std::size_t i = begin; i < line.size(); ++i) {
    if (is_quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && line[i] == '}') {
      return i;
    }
  }
  return std::string_view::npos;
}

void read_metric_line(std::string_view line, std::string_view model,
                      std::map<std::string_view, MetricSum>& sums) {
  if (line.empty() || line.front() == '#') return;
  const std::size_t name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos) return;
  const std::string_view name = line.substr(0, name_end);
  std::string_view rest = line.substr(name_end);
  if (rest.front() == '{') {
    const std::size_t end = end_of_labels(rest, 1);
    if (end == std::string_view::npos) return;
    const auto of_model = label_of(rest.substr(1, end - 1), "model_name");
    if (of_model && !model.empty() && *of_model != model) return;
    rest.remove_prefix(end + 1);
  }
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \t")));
  double value = 0.0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (problem != std::errc() || !std::isfinite(value)) return;
  MetricSum& sum = sums[name];
  sum.sum += value;
  ++sum.count;
}

}  // namespace

std::optional<double> RemoteLoad::hit_rate() const {
  if (!prefix_queries || !prefix_hits || *prefix_queries <= 0.0) return std::nullopt;
  return std::clamp(*prefix_hits / *prefix_queries, 0.0, 1.0);
}

bool RemoteLoad::knows_anything() const { return *this != RemoteLoad(); }

RemoteLoad read_remote_metrics(std::string_view text, std::string_view model) {
  std::map<std::string_view, MetricSum> sums;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    read_metric_line(line, model, sums);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  RemoteLoad load;
  for (const KnownMetric& known : kKnownMetrics) {
    const auto found = sums.find(known.name);
    if (found == sums.end() || (load.*known.figure).has_value()) continue;
    const bool is_share = known.figure == &RemoteLoad::kv_usage;
    load.*known.figure =
        is_share ? std::clamp(found->second.sum / found->second.count, 0.0, 1.0) : found->second.sum;
  }
  return load;
}

}  // namespace octavo::app
