// What a server tells of its load at /metrics (Prometheus text), under the names that vLLM, llama.cpp and
// SGLang give it. What it does not tell is unknown here, never zero.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::app {

struct RemoteLoad {
  std::optional<double> kv_usage = {};  // of the pool in use, 0 .. 1; of several engines the mean
  std::optional<double> num_running = {}, num_waiting = {}, num_swapped = {};  // requests, as the next
  std::optional<double> num_preemptions = {};                   // since it started, as the next
  std::optional<double> prefix_queries = {}, prefix_hits = {};  // prompt tokens looked for and found
  std::optional<double> prompt_tokens = {}, output_tokens = {};

  // Of all prompt tokens so far; nullopt where it is not told, or nothing was looked for.
  std::optional<double> hit_rate() const;
  bool knows_anything() const;
  bool operator==(const RemoteLoad&) const = default;
};

// Lines that are no metrics, unknown ones and numbers that are not finite are passed over. Where a name
// stands for several models, those of others are (label model_name).
//   model  empty: all count
RemoteLoad read_remote_metrics(std::string_view text, std::string_view model = {});

}  // namespace octavo::app
