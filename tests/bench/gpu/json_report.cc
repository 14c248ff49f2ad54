#include "tests/bench/gpu/json_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace octavo::bench {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const DeviceFigures& figures) {
  return {{"name", figures.name},
          {"compute_capability", std::to_string(figures.major) + "." + std::to_string(figures.minor)},
          {"multiprocessors", figures.num_multiprocessors},
          {"cache_bytes", figures.cache_bytes},
          {"total_bytes", figures.total_bytes},
          {"driver", figures.driver},
          {"runtime", figures.runtime},
          {"highest_clock_khz", figures.clock_khz},
          {"highest_memory_clock_khz", figures.memory_clock_khz},
          {"emulated", figures.is_emulated}};
}

void add_rates(const Record& record, double seconds, Json& json) {
  const double bytes_per_s = record.bytes / seconds, operations_per_s = record.operations / seconds;
  if (record.bytes > 0) json["bytes_per_s"] = bytes_per_s;
  if (record.operations > 0) json["operations_per_s"] = operations_per_s;
  if (record.tokens > 0) json["tokens_per_s"] = record.tokens / seconds;
  double bound_seconds = 0;
  if (record.bytes > 0 && record.limit_bytes > 0) {
    json["of_bandwidth"] = bytes_per_s / record.limit_bytes;
    bound_seconds = record.bytes / record.limit_bytes;
  }
  if (record.operations > 0 && record.limit_operations > 0) {
    json["of_peak"] = operations_per_s / record.limit_operations;
    bound_seconds = std::max(bound_seconds, record.operations / record.limit_operations);
  }
  if (bound_seconds > 0) json["of_roofline"] = bound_seconds / seconds;
}

Json json_of(const Record& record) {
  Json json = {{"section", record.section}, {"name", record.name}};
  for (const auto& [name, value] : record.facts) json[name] = value;
  if (!record.left_out.empty()) {
    json["left_out"] = record.left_out;
    return json;
  }
  const double median = record.median_seconds();
  json["seconds"] = median;
  json["rounds_seconds"] = record.seconds;
  if (median > 0) add_rates(record, median, json);
  return json;
}

}  // namespace

std::string json_report(const Bench& bench, const std::string& error) {
  Json json = {{"device", json_of(bench.figures())}, {"error", error}, {"records", Json::array()}};
  for (const Record& record : bench.records()) json["records"].push_back(json_of(record));
  return json.dump(1);
}

}  // namespace octavo::bench
