#include "app/commands/bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/request_json.h"
#include "app/commands/start_engine.h"
#include "engine/base/hash.h"
#include "engine/engine.h"
#include "engine/output_collector.h"
#include "kernels/machine_limits.h"

namespace octavo::app {
namespace {

struct SpeedOptions {
  EngineFlags engine;
  std::vector<std::int32_t> prompt_tokens = {512};
  std::int32_t output_tokens = 64;
  std::vector<std::int32_t> sequences = {1};
  std::int32_t shared_prefix_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t repeat = 5;
  bool json = false;
};

// One combination of prompt length and number of sequences.
struct Shape {
  std::int32_t prompt_tokens;
  std::int32_t sequences;
};

// What one repeat of a combination measured.
struct Run {
  double prefill_tokens_per_s = 0.0;
  double decode_tokens_per_s = 0.0;
  double ttft_ms = 0.0;
  std::vector<double> step_ms;  // of the steps that only decode
  double decode_bytes_per_s = 0.0;
  double prefill_multiply_adds_per_s = 0.0;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const double index = std::ceil(share * static_cast<double>(values.size())) - 1.0;
  return values[static_cast<std::size_t>(std::max(0.0, index))];
}

// Different numbers give unrelated prompts. Ids of the upper half of the vocabulary: ordinary words, no control tokens.
std::vector<TokenId> random_tokens(std::uint64_t stream, std::int32_t count, std::int32_t vocabulary_size) {
  std::vector<TokenId> token_ids;
  const auto half = static_cast<std::uint64_t>(std::max(vocabulary_size / 2, 1));
  for (std::int32_t i = 0; i < count; ++i) {
    const std::uint64_t bits = hash_combine(stream, static_cast<std::uint64_t>(i));
    token_ids.push_back(static_cast<TokenId>((static_cast<std::uint64_t>(vocabulary_size) - half) + bits % half));
  }
  return token_ids;
}

class SpeedBenchmark {
 public:
  SpeedBenchmark(Engine& engine, const SpeedOptions& options) : engine_(engine), options_(options) {}

  // An error when a request failed: a measurement of less than was asked would be a lie.
  Result<Run> run(const Shape& shape) {
    engine_.reset_prefix_cache();
    const std::vector<TokenId> shared = fresh(options_.shared_prefix_tokens);
    const std::vector<TokenId> cached = fresh(options_.cached_tokens);
    if (!cached.empty()) OCTAVO_TRY_VOID(fill_cache(shared, cached));

    std::vector<GenerationRequest> requests;
    for (std::int32_t i = 0; i < shape.sequences; ++i) {
      std::vector<TokenId> prompt = shared;
      prompt.insert(prompt.end(), cached.begin(), cached.end());
      const std::vector<TokenId> own = fresh(shape.prompt_tokens - options_.shared_prefix_tokens);
      prompt.insert(prompt.end(), own.begin(), own.end());
      requests.push_back(greedy(std::move(prompt), options_.output_tokens));
    }
    skip_trace();
    OCTAVO_TRY(const std::vector<RequestOutput> outputs, finish(std::move(requests)));
    return measure(shape, outputs);
  }

 private:
  std::vector<TokenId> fresh(std::int32_t count) {
    return random_tokens(mix64(++next_stream_), count, engine_.description().model.vocabulary_size);
  }

  static GenerationRequest greedy(std::vector<TokenId> prompt, std::int32_t output_tokens) {
    GenerationRequest request;
    request.prompt = TokenPrompt{.token_ids = std::move(prompt)};
    request.sampling.temperature = 0.0;
    request.sampling.max_tokens = output_tokens;
    request.sampling.ignore_eos = true;
    return request;
  }

  Result<void> fill_cache(const std::vector<TokenId>& shared, const std::vector<TokenId>& cached) {
    std::vector<TokenId> prompt = shared;
    prompt.insert(prompt.end(), cached.begin(), cached.end());
    prompt.push_back(cached.back());  // at least one token of a request is always computed
    std::vector<GenerationRequest> requests;
    requests.push_back(greedy(std::move(prompt), 1));
    OCTAVO_TRY(const std::vector<RequestOutput> unused, finish(std::move(requests)));
    return {};
  }

  Result<std::vector<RequestOutput>> finish(std::vector<GenerationRequest> requests) {
    const std::vector<RequestId> ids = engine_.submit_all(std::move(requests));
    OutputCollector collector;
    for (const RequestId id : ids) collector.expect(id, 1);
    while (!collector.done()) {
      if (InterruptGuard::interrupted()) {
        for (const RequestId id : ids) engine_.cancel(id);
      }
      for (const EngineEvent& event : engine_.poll(std::chrono::milliseconds(100))) collector.add(event);
    }
    if (InterruptGuard::interrupted()) return Error{.code = ErrorCode::kCancelled, .message = "interrupted"};
    std::vector<RequestOutput> outputs = collector.take();
    for (const RequestOutput& output : outputs) {
      if (output.error.has_value()) return *output.error;
    }
    return outputs;
  }

  void skip_trace() {
    const Engine::Trace trace = engine_.trace_since(step_mark_, event_mark_);
    step_mark_ = trace.next_step_mark;
    event_mark_ = trace.next_event_mark;
  }

  // The engine's own step records: prompts first, then decode steps only (EngineOptions::prefill_first).
  Run measure(const Shape& shape, const std::vector<RequestOutput>& outputs) {
    const Engine::Trace trace = engine_.trace_since(step_mark_, event_mark_);
    const EngineDescription& description = engine_.description();
    Run run;
    std::int64_t prefill_begin_us = -1, prefill_end_us = 0, decode_end_us = 0, num_prefill_tokens = 0;
    for (const StepRecord& step : trace.steps) {
      const std::int64_t end_us = step.begin_us + step.schedule_us + step.execute_us + step.commit_us;
      if (step.num_prefill_tokens > 0) {
        if (prefill_begin_us < 0) prefill_begin_us = step.begin_us;
        prefill_end_us = end_us;
        num_prefill_tokens += step.num_prefill_tokens;
      } else if (step.num_decode_tokens > 0) {
        decode_end_us = end_us;
        run.step_ms.push_back(static_cast<double>(end_us - step.begin_us) / 1000.0);
      }
    }
    const double prefill_s = static_cast<double>(std::max<std::int64_t>(prefill_end_us - prefill_begin_us, 1)) * 1e-6;
    const double decode_s = static_cast<double>(std::max<std::int64_t>(decode_end_us - prefill_end_us, 1)) * 1e-6;
    run.prefill_tokens_per_s = static_cast<double>(num_prefill_tokens) / prefill_s;
    run.prefill_multiply_adds_per_s = run.prefill_tokens_per_s * static_cast<double>(description.model.num_parameters);
    if (options_.output_tokens > 1) {
      run.decode_tokens_per_s = static_cast<double>(shape.sequences) * (options_.output_tokens - 1) / decode_s;
      // Bytes of a step: all weights once, and the KV of every sequence at its mean length.
      const double mean_context = shape.prompt_tokens + options_.cached_tokens + 0.5 * options_.output_tokens;
      const double kv_bytes = mean_context * shape.sequences * static_cast<double>(description.bytes_per_block) / description.block_size;
      const double steps_per_s = run.decode_tokens_per_s / shape.sequences;
      run.decode_bytes_per_s = steps_per_s * (static_cast<double>(description.weight_bytes) + kv_bytes);
    }
    std::vector<double> ttft_ms;
    for (const RequestOutput& output : outputs) ttft_ms.push_back(static_cast<double>(output.metrics.ttft_us) / 1000.0);
    run.ttft_ms = median(std::move(ttft_ms));
    return run;
  }

  Engine& engine_;
  const SpeedOptions& options_;
  std::uint64_t next_stream_ = 0;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
};

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

double peak_rss_mb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

double rounded(double value) { return std::round(value * 1000.0) / 1000.0; }

Json machine_json(const EngineDescription& description, const kernels::MachineLimits& limits) {
  return {{"cpu", cpu_model()},
          {"isa", description.isa},
          {"threads", description.threads},
          {"read_gb_per_s", rounded(limits.read_bytes_per_s * 1e-9)},
          {"int8_gmac_per_s", rounded(limits.int8_multiply_adds_per_s * 1e-9)},
          {"float_gmac_per_s", rounded(limits.float_multiply_adds_per_s * 1e-9)}};
}

Json result_json(const SpeedOptions& options, const Shape& shape, const std::vector<Run>& runs, const kernels::MachineLimits& limits) {
  const auto median_of = [&](double Run::*figure) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*figure);
    return median(std::move(values));
  };
  std::vector<double> step_ms;
  for (const Run& run : runs) step_ms.insert(step_ms.end(), run.step_ms.begin(), run.step_ms.end());
  const double prefill_rate = median_of(&Run::prefill_multiply_adds_per_s);
  return {{"prompt_tokens", shape.prompt_tokens},
          {"output_tokens", options.output_tokens},
          {"sequences", shape.sequences},
          {"shared_prefix_tokens", options.shared_prefix_tokens},
          {"cached_tokens", options.cached_tokens},
          {"repeat", options.repeat},
          {"prefill_tokens_per_s", rounded(median_of(&Run::prefill_tokens_per_s))},
          {"decode_tokens_per_s", rounded(median_of(&Run::decode_tokens_per_s))},
          {"ttft_ms", rounded(median_of(&Run::ttft_ms))},
          {"step_ms", {{"p50", rounded(percentile(step_ms, 0.5))}, {"p99", rounded(percentile(step_ms, 0.99))}}},
          {"decode_read_fraction", rounded(median_of(&Run::decode_bytes_per_s) / limits.read_bytes_per_s)},
          {"prefill_int8_fraction", rounded(prefill_rate / limits.int8_multiply_adds_per_s)},
          {"prefill_float_fraction", rounded(prefill_rate / limits.float_multiply_adds_per_s)},
          {"peak_rss_mb", rounded(peak_rss_mb())}};
}

Error usage(std::string option, const std::string& sentence) {
  return {.code = ErrorCode::kInvalidArgument, .message = option + " " + sentence, .subject = std::move(option)};
}

Result<void> check(const SpeedOptions& options) {
  for (const std::int32_t count : options.prompt_tokens) {
    if (count < 1) return usage("--prompt-tokens", "must be at least 1");
    if (count <= options.shared_prefix_tokens) return usage("--shared-prefix-tokens", "must be below every --prompt-tokens");
  }
  for (const std::int32_t count : options.sequences) {
    if (count < 1 || count > 4096) return usage("--sequences", "must be 1 to 4096");
  }
  if (options.output_tokens < 1) return usage("--output-tokens", "must be at least 1");
  if (options.shared_prefix_tokens < 0) return usage("--shared-prefix-tokens", "must not be negative");
  if (options.cached_tokens < 0) return usage("--cached-tokens", "must not be negative");
  if (options.repeat < 1) return usage("--repeat", "must be at least 1");
  return {};
}

// A pool that holds the largest combination, so that nothing is preempted while it is measured.
void size_for(const SpeedOptions& options, EngineOptions& engine) {
  const std::int64_t longest = *std::max_element(options.prompt_tokens.begin(), options.prompt_tokens.end()) + std::int64_t{options.cached_tokens} + options.output_tokens;
  const std::int32_t most = *std::max_element(options.sequences.begin(), options.sequences.end());
  engine.max_num_seqs = std::max(engine.max_num_seqs, most);
  if (!engine.num_kv_blocks.has_value() && !engine.kv_cache_memory.has_value()) {
    const std::int64_t blocks_each = (longest + engine.block_size - 1) / engine.block_size + 1;
    engine.num_kv_blocks = static_cast<std::int32_t>(std::min<std::int64_t>((most + 1) * blocks_each + most + 16, 1 << 22));
  }
  engine.prefill_first = true;
}

Result<void> run_speed(SpeedOptions& options) {
  OCTAVO_TRY_VOID(check(options));
  size_for(options, options.engine.options);
  Progress progress(options.engine.verbose);
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, start_engine(options.engine, progress));
  OCTAVO_TRY(const kernels::MachineLimits limits, kernels::measure_machine_limits(engine->description().threads));
  SpeedBenchmark benchmark(*engine, options);
  Json results = Json::array();
  for (const std::int32_t prompt_tokens : options.prompt_tokens) {
    for (const std::int32_t sequences : options.sequences) {
      const Shape shape = {prompt_tokens, sequences};
      std::vector<Run> runs;
      for (std::int32_t i = 0; i <= options.repeat; ++i) {  // the first one warms up
        OCTAVO_TRY(Run run, benchmark.run(shape));
        if (i > 0) runs.push_back(std::move(run));
      }
      results.push_back(result_json(options, shape, runs, limits));
      if (!options.json) {
        const Json& result = results.back();
        std::printf("prompt %d, output %d, sequences %d: prefill %.1f tok/s, decode %.1f tok/s, first token %.1f ms\n", prompt_tokens, options.output_tokens,
                    sequences, result["prefill_tokens_per_s"].get<double>(), result["decode_tokens_per_s"].get<double>(), result["ttft_ms"].get<double>());
        std::fflush(stdout);
      }
    }
  }
  if (options.json) std::cout << dump({{"machine", machine_json(engine->description(), limits)}, {"results", std::move(results)}}) << '\n';
  return {};
}

}  // namespace

void add_bench_command(CLI::App& program, int& status) {
  CLI::App* const bench = program.add_subcommand("bench", "Measurements on this machine");
  bench->require_subcommand(1);
  auto options = std::make_shared<SpeedOptions>();
  CLI::App* const speed = bench->add_subcommand("speed", "Prefill and decode speed on random prompts");
  speed->add_option("--prompt-tokens", options->prompt_tokens, "Prompt lengths, comma between")->delimiter(',')->capture_default_str();
  speed->add_option("--output-tokens", options->output_tokens, "Tokens generated by each sequence")->capture_default_str();
  speed->add_option("--sequences", options->sequences, "Numbers of sequences at once, comma between")->delimiter(',')->capture_default_str();
  speed->add_option("--shared-prefix-tokens", options->shared_prefix_tokens, "So many first tokens are the same for all")->capture_default_str();
  speed->add_option("--cached-tokens", options->cached_tokens, "So many further tokens are in the prefix cache already")->capture_default_str();
  speed->add_option("--repeat", options->repeat, "Timed repeats; medians are reported")->capture_default_str();
  speed->add_flag("--json", options->json, "One JSON object on standard output");
  add_engine_flags(*speed, options->engine);
  speed->callback([options, &status] {
    const InterruptGuard guard;
    const Result<void> result = run_speed(*options);
    status = result.has_value() ? kExitOk : InterruptGuard::interrupted() ? kExitInterrupted : report_error(result.error());
  });
}

}  // namespace octavo::app
