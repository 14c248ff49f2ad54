#include "app/commands/bench_serving.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/input.h"
#include "app/files/whole_file.h"
#include "app/http_client/client.h"
#include "app/json/json_text.h"
#include "app/remote/endpoint.h"
#include "app/serving_bench/load_generator.h"
#include "app/serving_bench/serving_figures.h"
#include "app/serving_bench/serving_report.h"
#include "app/serving_bench/workload.h"
#include "engine/base/calendar.h"
#include "engine/base/clock.h"
#include "engine/base/format.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"
#include "engine/model/tokenizer_loader.h"

namespace octavo::app {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kProgressUs = 200'000;

struct ServingOptions {
  std::vector<std::string> servers;  // NAME=ADDRESS
  std::string base_url, host = "127.0.0.1", endpoint;
  std::uint16_t port = 8000;
  std::string backend = "openai", model, key, key_file, ca_file;
  std::vector<std::string> headers;
  std::string dataset = "random", dataset_path, tokenizer;
  WorkloadOptions workload;
  std::vector<std::string> rates = {"inf"};
  std::string burstiness = "1";
  std::size_t max_concurrency = 0;
  std::int32_t rounds = 1, num_warmups = 1;
  std::uint64_t seed = 0;
  bool ignore_eos = false;
  std::string temperature = "0", extra_body;
  double ready_timeout_s = 600, idle_timeout_s = 600;
  std::string percentile_metrics = "ttft,tpot,itl", metric_percentiles = "99";
  std::vector<std::string> goodput;
  bool save_result = false, save_detailed = false, json = false, quiet = false;
  std::string result_dir, result_filename, plot;
  std::vector<std::string> metadata;
};

Error refused(const std::string& option, const std::string& sentence) {
  return {.code = ErrorCode::kInvalidArgument, .message = option + " " + sentence, .subject = option};
}

// A number above 0, or inf.
Result<double> positive_or_infinite(const std::string& option, const std::string& text) {
  if (text == "inf") return kInfinity;
  double value = 0.0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && end == text.data() + text.size() && value > 0.0 && std::isfinite(value))
    return value;
  return refused(option, "takes a number above 0, or inf, but it is '" + escape_for_message(text) + "'");
}

std::vector<std::string> parts_of(const std::string& list, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(separator, begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "NAME=VALUE"
Result<std::pair<std::string, std::string>> named_value(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return refused(option, "takes NAME=VALUE, but it is '" + escape_for_message(text) + "'");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<std::string> key_of(const ServingOptions& options) {
  if (!options.key.empty() && !options.key_file.empty())
    return refused("--api-key", "and --api-key-file are two ways to say one thing; leave one out");
  if (!options.key_file.empty()) {
    OCTAVO_TRY(std::string key, read_input(options.key_file));
    key.erase(std::min(key.find_first_of("\r\n"), key.size()));
    return key;
  }
  if (!options.key.empty()) return options.key;
  const char* const known = std::getenv("OPENAI_API_KEY");  // as vLLM and OpenAI's clients take it
  return known != nullptr ? std::string(known) : std::string();
}

// ---- what is asked of whom

Result<Dataset> dataset_of(const std::string& name) {
  static const std::map<std::string, Dataset> kDatasets = {
      {"random", Dataset::kRandom},  {"sharegpt", Dataset::kShareGpt},
      {"alpaca", Dataset::kAlpaca},  {"prefix_repetition", Dataset::kPrefixRepetition},
      {"chat", Dataset::kChatTurns}, {"custom", Dataset::kCustom}};
  const auto found = kDatasets.find(name);
  if (found != kDatasets.end()) return found->second;
  return refused("--dataset-name",
                 "is one of random, sharegpt, alpaca, prefix_repetition, chat and custom, not '" +
                     escape_for_message(name) + "'");
}

Result<void> check_workload(const WorkloadOptions& workload) {
  const auto at_least = [](std::int32_t value, std::int32_t least, const char* option) -> Result<void> {
    if (value >= least) return {};
    return refused(option, "must be at least " + std::to_string(least));
  };
  OCTAVO_TRY_VOID(at_least(workload.num_prompts, 1, "--num-prompts"));
  OCTAVO_TRY_VOID(at_least(workload.input_len, 1, "--random-input-len"));
  OCTAVO_TRY_VOID(at_least(workload.output_len, 1, "--random-output-len"));
  OCTAVO_TRY_VOID(at_least(workload.prefix_len, 0, "--random-prefix-len"));
  OCTAVO_TRY_VOID(at_least(workload.num_prefixes, 1, "--prefix-repetition-num-prefixes"));
  OCTAVO_TRY_VOID(at_least(workload.repeated_prefix_len, 1, "--prefix-repetition-prefix-len"));
  OCTAVO_TRY_VOID(at_least(workload.suffix_len, 1, "--prefix-repetition-suffix-len"));
  OCTAVO_TRY_VOID(at_least(workload.num_turns, 1, "--chat-turns"));
  OCTAVO_TRY_VOID(at_least(workload.fixed_output_len.value_or(1), 1, "--sharegpt-output-len"));
  OCTAVO_TRY_VOID(at_least(workload.max_model_len, 0, "--max-model-len"));
  if (workload.max_model_len > 0 && workload.max_model_len < 64)
    return refused("--max-model-len", "must be at least 64, or no request of the paper's lengths fits");
  if (workload.range_ratio < 0.0 || workload.range_ratio >= 1.0)
    return refused("--random-range-ratio", "must be from 0 to below 1");
  return {};
}

// A text that is read once; empty: none is.
struct DatasetSource {
  std::string text;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;

  CountTokens count() const {
    if (tokenizer == nullptr) return {};
    return [this](std::string_view words) {
      const auto ids = tokenizer->encode(words, /*parse_special=*/false, /*add_bos=*/false);
      return ids ? static_cast<std::int32_t>(ids->size()) : 0;
    };
  }
};

Result<DatasetSource> read_source(const ServingOptions& options) {
  DatasetSource source;
  if (!options.tokenizer.empty()) {
    OCTAVO_TRY(const std::filesystem::path path, model::find_model(options.tokenizer));
    OCTAVO_TRY(source.tokenizer, model::load_tokenizer(path));
  }
  const bool takes_file =
      options.workload.dataset == Dataset::kCustom || options.workload.dataset == Dataset::kShareGpt;
  if (!options.dataset_path.empty() && !takes_file)
    return refused("--dataset-path", "goes with --dataset-name sharegpt and custom");
  if (options.dataset_path.empty() && options.workload.dataset == Dataset::kCustom)
    return refused("--dataset-name", "custom needs --dataset-path with lines of {\"prompt\": ...}");
  if (!options.dataset_path.empty()) {
    OCTAVO_TRY(source.text, read_input(options.dataset_path));
  }
  return source;
}

Result<std::vector<PlannedChat>> plan(const ServingOptions& options, const DatasetSource& source,
                                      std::uint64_t seed) {
  if (options.dataset_path.empty()) return plan_chats(options.workload, seed, source.count());
  return plan_from_file(options.workload, source.text, seed, source.count());
}

Result<LoadTarget> target_at(const ServingOptions& options, const std::string& name,
                             const std::string& address) {
  LoadTarget target{.name = name};
  OCTAVO_TRY(target.endpoint.address, normal_address(address));
  OCTAVO_TRY(target.endpoint.key, key_of(options));
  for (const std::string& header : options.headers) {
    OCTAVO_TRY(auto parts, named_value("--header", header));
    target.endpoint.headers.push_back({std::move(parts.first), std::move(parts.second)});
  }
  const bool is_chat = options.backend == "openai-chat";
  if (!is_chat && options.backend != "openai" && options.backend != "vllm")
    return refused("--backend", "is one of openai, vllm (the same) and openai-chat");
  target.form = is_chat ? RequestForm::kChatCompletions : RequestForm::kCompletions;
  target.url = target.endpoint.address + (is_chat ? "/chat/completions" : "/completions");
  if (!options.endpoint.empty()) {  // as vLLM's: from the server's root
    if (options.endpoint.front() != '/') return refused("--endpoint", "must begin with '/'");
    target.url = server_root(target.endpoint.address) + options.endpoint;
    if (options.endpoint.ends_with("/chat/completions") != is_chat)
      return refused("--endpoint", "and --backend do not go together: openai-chat asks chat completions");
  }
  target.model = options.model;
  target.ignore_eos = options.ignore_eos;
  if (options.temperature == "server") {
    target.temperature = std::nullopt;
  } else {
    double value = 0.0;
    const std::string& text = options.temperature;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < 0.0)
      return refused("--temperature", "takes a number from 0 on, or 'server' for the server's own");
    target.temperature = value;
  }
  if (!options.extra_body.empty()) {
    OCTAVO_TRY(const Json extra, parse_json(options.extra_body, "--extra-body"));
    if (!extra.is_object()) return refused("--extra-body", "takes a JSON object");
    target.extra_body = options.extra_body;
  }
  target.limits.idle_time =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(options.idle_timeout_s * 1000.0)));
  return target;
}

Result<std::vector<LoadTarget>> targets_of(const ServingOptions& options) {
  std::vector<LoadTarget> targets;
  if (!options.servers.empty() && !options.base_url.empty())
    return refused("--base-url", "and --server are two ways to say one thing; leave one out");
  for (const std::string& server : options.servers) {
    OCTAVO_TRY(const auto parts, named_value("--server", server));
    const auto is_same = [&](const LoadTarget& target) { return target.name == parts.first; };
    if (std::ranges::any_of(targets, is_same))
      return refused("--server", "has one name twice: " + parts.first);
    OCTAVO_TRY(LoadTarget target, target_at(options, parts.first, parts.second));
    targets.push_back(std::move(target));
  }
  if (targets.empty()) {
    const bool is_v6 = options.host.find(':') != std::string::npos;
    const std::string host = is_v6 ? "[" + options.host + "]" : options.host;
    const std::string address =
        options.base_url.empty() ? "http://" + host + ":" + std::to_string(options.port) : options.base_url;
    OCTAVO_TRY(LoadTarget target, target_at(options, address, address));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<FigureOptions> figure_options_of(const ServingOptions& options) {
  FigureOptions figures{.percents = {}};
  for (const std::string& text : parts_of(options.metric_percentiles, ',')) {
    double value = 0.0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < 0.0 || value > 100.0)
      return refused("--metric-percentiles", "takes numbers from 0 to 100, separated by commas");
    figures.percents.push_back(value);
  }
  for (const std::string& text : options.goodput) {
    OCTAVO_TRY(const GoodputLimit limit, parse_goodput_limit(text));
    figures.goodput.push_back(limit);
  }
  return figures;
}

Result<std::vector<LatencyMetric>> metrics_of(const ServingOptions& options) {
  std::vector<LatencyMetric> metrics;
  for (const std::string& name : parts_of(options.percentile_metrics, ',')) {
    const auto metric = parse_metric(name);
    if (!metric)
      return refused("--percentile-metrics", "takes ttft, tpot, itl and e2el, separated by commas");
    metrics.push_back(*metric);
  }
  return metrics;
}

// ---- the measurement

// Waits until the server answers, and takes its first model where none was named.
Result<void> make_ready(http::Client& client, const Clock& clock, LoadTarget& target, double timeout_s,
                        const Progress& progress) {
  const std::int64_t end_us = clock.now_us() + static_cast<std::int64_t>(timeout_s * 1e6);
  bool is_told = false;
  while (true) {
    Result<std::vector<RemoteModel>> listed =
        list_models(client, target.endpoint, InterruptGuard::interrupted);
    if (listed) {
      if (!target.model.empty()) return {};
      if (listed->empty())
        return Error{ErrorCode::kNotFound, target.name + " has no model; name one with --model"};
      target.model = listed->front().id;
      return {};
    }
    const bool may_come = listed.error().code == ErrorCode::kIo;  // it loads, or is not there yet
    if (!may_come || clock.now_us() >= end_us) return std::move(listed).error();
    if (!std::exchange(is_told, true)) progress.say("waiting for " + target.name);
    const std::int64_t pause_end_us = clock.now_us() + 500'000;
    while (clock.now_us() < pause_end_us && !InterruptGuard::interrupted())
      client.wait(std::chrono::milliseconds(100));
  }
}

class ProgressLine {
 public:
  explicit ProgressLine(std::string what) : what_(std::move(what)) {}
  ~ProgressLine() {
    if (is_shown_) std::fputs("\r\x1b[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const LoadProgress& load) {
    if (isatty(STDERR_FILENO) == 0 || load.elapsed_us < next_us_) return;
    next_us_ = load.elapsed_us + kProgressUs;
    is_shown_ = true;
    const double seconds = std::max(0.001, static_cast<double>(load.elapsed_us) / 1e6);
    std::fprintf(stderr, "\r\x1b[K%s: %zu of %zu answered, %zu running, %zu failed, %s pieces/s, %.0f s",
                 what_.c_str(), load.num_done, load.num_turns, load.num_running, load.num_failed,
                 short_number(static_cast<double>(load.num_output_tokens) / seconds).c_str(), seconds);
    std::fflush(stderr);
  }

 private:
  const std::string what_;
  std::int64_t next_us_ = 0;
  bool is_shown_ = false;
};

struct Measurement {
  std::vector<ServingResult> results;
  bool is_stopped = false;
};

class ServingBenchmark {
 public:
  ServingBenchmark(const ServingOptions& options, const FigureOptions& figures, DatasetSource source,
                   std::vector<LoadTarget> targets)
      : options_(options),
        figures_(figures),
        source_(std::move(source)),
        targets_(std::move(targets)),
        progress_(/*verbose=*/false),
        client_(clock_, options.ca_file) {}

  // Servers take turns within each round, so that what else the machine does meets all of them.
  Result<Measurement> measure(const std::vector<double>& rates, double burstiness) {
    for (LoadTarget& target : targets_) {
      OCTAVO_TRY_VOID(make_ready(client_, clock_, target, options_.ready_timeout_s, progress_));
      OCTAVO_TRY_VOID(warm_up(target));
    }
    Measurement measured;
    for (const double rate : rates)
      for (const LoadTarget& target : targets_)
        measured.results.push_back({.server = target.name, .request_rate = rate});
    for (std::size_t r = 0; r < rates.size(); ++r) {
      for (std::int32_t round = 0; round < options_.rounds; ++round) {
        // Prompts of each rate and round are new, or the server would know them; all servers get the same.
        const std::uint64_t seed =
            hash_combine(hash_combine(options_.seed, r), static_cast<std::uint64_t>(round));
        OCTAVO_TRY(const std::vector<PlannedChat> chats, plan(options_, source_, seed));
        const auto arrivals = arrival_times_us(chats.size(), rates[r], burstiness, seed);
        for (std::size_t i = 0; i < targets_.size() && !measured.is_stopped; ++i) {
          const std::size_t place = (i + static_cast<std::size_t>(round)) % targets_.size();
          measure_one(targets_[place], chats, arrivals, round, measured.results[r * targets_.size() + place],
                      measured.is_stopped);
        }
      }
    }
    std::erase_if(measured.results, [](const ServingResult& result) { return result.rounds.empty(); });
    return measured;
  }

  const std::vector<LoadTarget>& targets() const { return targets_; }

 private:
  Result<void> warm_up(const LoadTarget& target) {
    if (options_.num_warmups == 0) return {};
    WorkloadOptions workload = options_.workload;
    workload.num_prompts = options_.num_warmups;
    const std::uint64_t seed = ~options_.seed;
    ServingOptions options = options_;
    options.workload = workload;
    OCTAVO_TRY(const auto chats, plan(options, source_, seed));
    const LoadRun run = run_load(
        client_, clock_, target, chats, arrival_times_us(chats.size(), kInfinity, 1.0, seed),
        options_.max_concurrency, [](const LoadProgress&) { return !InterruptGuard::interrupted(); });
    for (const RequestRecord& record : run.records)
      if (record.error) return Error{ErrorCode::kIo, "the first request failed: " + record.error->message};
    return {};
  }

  void measure_one(const LoadTarget& target, const std::vector<PlannedChat>& chats,
                   const std::vector<std::int64_t>& arrivals, std::int32_t round, ServingResult& result,
                   bool& is_stopped) {
    ProgressLine line(escape_for_message(target.name) + ", rate " +
                      (std::isfinite(result.request_rate) ? short_number(result.request_rate) : "inf") +
                      ", round " + std::to_string(round + 1) + " of " + std::to_string(options_.rounds));
    LoadRun run = run_load(client_, clock_, target, chats, arrivals, options_.max_concurrency,
                           [&](const LoadProgress& load) {
                             line.show(load);
                             return !InterruptGuard::interrupted();
                           });
    is_stopped = run.is_stopped;
    result.rounds.push_back(figures_of(run, figures_));
    result.records = std::move(run.records);
  }

  const ServingOptions& options_;
  const FigureOptions& figures_;
  const DatasetSource source_;
  std::vector<LoadTarget> targets_;
  const SteadyClock clock_;
  const Progress progress_;
  http::Client client_;
};

// ---- what is told

Result<void> write_file(const std::filesystem::path& path, std::string_view bytes) {
  const int problem = write_whole_file(path, bytes);
  if (problem == 0) return {};
  return Error{ErrorCode::kIo,
               path_for_message(path) + " could not be written: " + std::string(std::strerror(problem))};
}

Result<Json> told_json(const ServingOptions& options, const Measurement& measured,
                       const ReportOptions& report, const std::vector<LoadTarget>& targets) {
  Json json = {
      {"date", full_time_text(unix_time_ms())},
      {"backend", options.backend},
      {"model_id", targets.front().model},
      {"dataset", options.dataset},
      {"num_prompts", options.workload.num_prompts},
      {"burstiness", options.burstiness},
      {"max_concurrency", options.max_concurrency == 0 ? Json(nullptr) : Json(options.max_concurrency)},
      {"seed", options.seed},
      {"num_rounds", options.rounds},
      {"interrupted", measured.is_stopped}};
  for (const std::string& entry : options.metadata) {
    OCTAVO_TRY(const auto parts, named_value("--metadata", entry));
    json[parts.first] = parts.second;
  }
  Json results = Json::array();
  for (const ServingResult& result : measured.results) {
    Json told = result_json(result, report);
    if (options.save_detailed) told.update(details_json(result.records));
    results.push_back(std::move(told));
  }
  if (results.size() == 1) {
    json.update(results.front());  // vLLM's form
  } else {
    json["results"] = std::move(results);
  }
  return json;
}

Result<int> run_serving(ServingOptions& options) {
  OCTAVO_TRY(options.workload.dataset, dataset_of(options.dataset));
  OCTAVO_TRY_VOID(check_workload(options.workload));
  if (options.rounds < 1 || options.rounds > 1'000) return refused("--rounds", "must be 1 to 1000");
  if (options.num_warmups < 0) return refused("--num-warmups", "must not be negative");
  std::vector<double> rates;
  for (const std::string& text : options.rates) {
    OCTAVO_TRY(const double rate, positive_or_infinite("--request-rate", text));
    rates.push_back(rate);
  }
  OCTAVO_TRY(const double burstiness, positive_or_infinite("--burstiness", options.burstiness));
  ReportOptions report;
  OCTAVO_TRY(report.figures, figure_options_of(options));
  OCTAVO_TRY(report.metrics, metrics_of(options));
  OCTAVO_TRY(std::vector<LoadTarget> targets, targets_of(options));
  OCTAVO_TRY(DatasetSource source, read_source(options));

  ServingBenchmark benchmark(options, report.figures, std::move(source), std::move(targets));
  OCTAVO_TRY(const Measurement measured, benchmark.measure(rates, burstiness));
  if (measured.results.empty()) return kExitInterrupted;
  OCTAVO_TRY(const Json json, told_json(options, measured, report, benchmark.targets()));
  if (options.json) {
    std::cout << dump(json) << '\n';
  } else {
    std::cout << report_text(measured.results, report);
  }
  std::cout.flush();
  if (options.save_result || options.save_detailed || !options.result_filename.empty()) {
    const std::string name = options.result_filename.empty()
                                 ? options.backend + "-" + std::to_string(unix_time_ms() / 1000) + ".json"
                                 : options.result_filename;
    OCTAVO_TRY_VOID(write_file(std::filesystem::path(options.result_dir) / name, dump(json, 2) + "\n"));
  }
  if (!options.plot.empty()) {
    OCTAVO_TRY(const std::string picture, charts_picture(measured.results, picture_format_of(options.plot)));
    OCTAVO_TRY_VOID(write_file(options.plot, picture));
  }
  if (measured.is_stopped) return kExitInterrupted;
  const bool any_failed = std::ranges::any_of(
      measured.results, [](const ServingResult& result) { return median_of(result.rounds).num_failed > 0; });
  return any_failed ? kExitFailed : kExitOk;
}

void add_target_options(CLI::App& command, ServingOptions& options) {
  command
      .add_option("--server", options.servers,
                  "NAME=ADDRESS of a server (repeatable: they take turns); else --base-url, --host, --port")
      ->allow_extra_args(false);
  command.add_option("--base-url", options.base_url, "Address of the server, such as http://127.0.0.1:8000");
  command.add_option("--host", options.host, "Host of the server")->capture_default_str();
  command.add_option("--port", options.port, "Port of the server")->capture_default_str();
  command.add_option("--endpoint", options.endpoint, "Path of requests, such as /v1/completions");
  command
      .add_option("--backend,--endpoint-type", options.backend,
                  "openai: completions; openai-chat: chat completions")
      ->capture_default_str();
  command.add_option("--model", options.model, "Model as the server names it (default: its first)");
  command.add_option("--api-key", options.key, "Key to send (default: OPENAI_API_KEY)");
  command.add_option("--api-key-file", options.key_file, "File whose first line is the key");
  command.add_option("--header", options.headers, "NAME=VALUE of a further header (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--ca-file", options.ca_file, "Certificates to trust instead of the system's");
  command
      .add_option("--ready-check-timeout-sec", options.ready_timeout_s,
                  "Seconds to wait for a server to answer")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--idle-timeout-sec", options.idle_timeout_s,
                  "Seconds without a byte after which a request has failed; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_workload_options(CLI::App& command, ServingOptions& options) {
  WorkloadOptions& workload = options.workload;
  command
      .add_option("--dataset-name", options.dataset,
                  "random, sharegpt, alpaca (lengths of the paper's), prefix_repetition, chat (turns that "
                  "grow) or custom")
      ->capture_default_str();
  command.add_option("--dataset-path", options.dataset_path,
                     "File for sharegpt (its JSON) or custom (lines of {\"prompt\": ...})");
  command.add_option("--tokenizer", options.tokenizer,
                     "Model file whose vocabulary counts tokens (default: common words, one token each)");
  command.add_option("--num-prompts", workload.num_prompts, "Number of requests, or of chats with turns")
      ->capture_default_str();
  command.add_option("--random-input-len", workload.input_len, "Prompt tokens; of a turn of chat")
      ->capture_default_str();
  command.add_option("--random-output-len", workload.output_len, "Output tokens; of a turn of chat")
      ->capture_default_str();
  command
      .add_option("--random-range-ratio", workload.range_ratio,
                  "Lengths are uniform within this share of theirs, up and down")
      ->capture_default_str();
  command
      .add_option("--random-prefix-len", workload.prefix_len,
                  "Tokens that all prompts begin with; of chat the system prompt's")
      ->capture_default_str();
  command.add_option("--prefix-repetition-prefix-len", workload.repeated_prefix_len, "Tokens of each prefix")
      ->capture_default_str();
  command.add_option("--prefix-repetition-suffix-len", workload.suffix_len, "Tokens behind a prefix")
      ->capture_default_str();
  command.add_option("--prefix-repetition-num-prefixes", workload.num_prefixes, "Number of prefixes")
      ->capture_default_str();
  command.add_option("--prefix-repetition-output-len", workload.output_len,
                     "The same as --random-output-len");
  command.add_option("--chat-turns", workload.num_turns, "Turns of each chat")->capture_default_str();
  command.add_option("--sharegpt-output-len,--custom-output-len", workload.fixed_output_len,
                     "Output tokens of every request instead of the dataset's");
  command
      .add_option("--max-model-len", workload.max_model_len,
                  "Lengths beyond it are drawn again, chats end before; 0: no limit")
      ->capture_default_str();
  command.add_flag("--ignore-eos", options.ignore_eos, "Ask for outputs of exactly the planned length");
  command.add_option("--temperature", options.temperature, "Sampling temperature, or 'server' for its own")
      ->capture_default_str();
  command.add_option("--extra-body", options.extra_body, "JSON object whose members go into every request");
}

void add_load_options(CLI::App& command, ServingOptions& options) {
  command
      .add_option("--request-rate", options.rates,
                  "Requests per second, separated by commas; inf: all at once")
      ->delimiter(',')
      ->capture_default_str();
  command
      .add_option("--burstiness", options.burstiness,
                  "1: arrivals are a Poisson process; below: bursts; above: evener; inf: fixed gaps")
      ->capture_default_str();
  command.add_option("--max-concurrency", options.max_concurrency, "Most requests at a time; 0: no limit")
      ->capture_default_str();
  command.add_option("--rounds", options.rounds, "Rounds of each rate; medians are reported")
      ->capture_default_str();
  command.add_option("--num-warmups", options.num_warmups, "Requests before anything is measured")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of texts, lengths and arrivals")->capture_default_str();
}

void add_report_options(CLI::App& command, ServingOptions& options) {
  command.add_option("--percentile-metrics", options.percentile_metrics, "Of ttft, tpot, itl, e2el")
      ->capture_default_str();
  command.add_option("--metric-percentiles", options.metric_percentiles, "Percentiles, separated by commas")
      ->capture_default_str();
  command.add_option(
      "--goodput", options.goodput,
      "Limits in milliseconds, such as ttft:200 tpot:50: requests that meet all of them count");
  command.add_flag("--save-result", options.save_result, "Write the result as a JSON file");
  command.add_flag("--save-detailed", options.save_detailed, "With times and lengths of every request");
  command.add_option("--result-dir", options.result_dir, "Folder of the JSON file");
  command.add_option("--result-filename", options.result_filename, "Name of the JSON file");
  command.add_option("--metadata", options.metadata, "NAME=VALUE to put into the JSON (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--plot", options.plot, "Write charts to this file: PNG by that ending, else SVG");
  command.add_flag("--json", options.json, "Print one JSON object to standard output");
}

}  // namespace

void add_bench_serving_command(CLI::App& bench, int& status) {
  auto options = std::make_shared<ServingOptions>();
  CLI::App* const command =
      bench.add_subcommand("serving", "Latency and throughput of a server under load, ours or another");
  add_target_options(*command, *options);
  add_workload_options(*command, *options);
  add_load_options(*command, *options);
  add_report_options(*command, *options);
  command->callback([options, &status] {
    const InterruptGuard guard;
    const Result<int> result = run_serving(*options);
    status = result.has_value()              ? *result
             : InterruptGuard::interrupted() ? kExitInterrupted
                                             : report_error(result.error());
  });
}

}  // namespace octavo::app
