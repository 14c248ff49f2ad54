#include "app/commands/bench.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/bench_serving.h"
#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/request_json.h"
#include "app/commands/speed_benchmark.h"
#include "app/commands/start_engine.h"
#include "engine/base/machine_name.h"
#include "engine/base/median.h"
#include "engine/engine.h"
#include "kernels/backends.h"
#include "kernels/machine_limits.h"

namespace octavo::app {
namespace {

constexpr RefusedOption kNotForSpeed[] = {
    {"--target-step-ms",
     "all prompts are computed before any output here, so that no step has both; leave it out"},
};

struct SpeedOptions {
  EngineFlags engine;
  std::vector<std::int32_t> prompt_tokens = {512};
  std::int32_t output_tokens = 64;
  std::vector<std::int32_t> sequences = {1};
  std::int32_t shared_prefix_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t repeat = 5;
  bool scatter_blocks = false;
  bool json = false;
};

// A combination with all its timed repeats.
struct SpeedResult {
  SpeedShape shape;
  std::vector<SpeedRun> runs;
  double peak_rss_mb = 0.0;  // of the process so far

  template <class Figure>
  double median_of(const Figure& figure) const {
    std::vector<double> values;
    for (const SpeedRun& run : runs) values.push_back(std::invoke(figure, run));
    return median(std::move(values));
  }
};

double peak_rss_mb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtod(line.c_str() + 6, nullptr) / 1024.0;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

// The most memory that the process had resident, but for what measuring the machine takes, which is not the
// engine's. Where the system refuses to forget, the peak includes it.
class PeakMemory {
 public:
  void note() { mb_ = std::max(mb_, peak_rss_mb()); }
  void forget_since_note() { std::ofstream("/proc/self/clear_refs") << "5"; }
  double mb() const { return mb_; }

 private:
  double mb_ = 0.0;
};

// Interruptions only ever make a machine look slower.
kernels::MachineLimits better_of(const kernels::MachineLimits& a, const kernels::MachineLimits& b) {
  return {.read_bytes_per_s = std::max(a.read_bytes_per_s, b.read_bytes_per_s),
          .int8_multiply_adds_per_s = std::max(a.int8_multiply_adds_per_s, b.int8_multiply_adds_per_s),
          .float_multiply_adds_per_s = std::max(a.float_multiply_adds_per_s, b.float_multiply_adds_per_s)};
}

const char* activation_name(ActivationType type) {
  switch (type) {
    case ActivationType::kAuto: return "auto";
    case ActivationType::kF32: return "f32";
    case ActivationType::kInt16: return "int16";
    case ActivationType::kInt8: return "int8";
  }
  return "unknown";
}

double rounded(double value) { return std::round(value * 1000.0) / 1000.0; }

Json machine_json(const EngineDescription& description, const kernels::MachineLimits& limits) {
  return {{"cpu", processor_name()},
          {"isa", description.isa},
          {"threads", description.threads},
          {"read_gb_per_s", rounded(limits.read_bytes_per_s * 1e-9)},
          {"int8_gmac_per_s", rounded(limits.int8_multiply_adds_per_s * 1e-9)},
          {"float_gmac_per_s", rounded(limits.float_multiply_adds_per_s * 1e-9)}};
}

// Medians over the repeats of what was counted for each token; null where nothing could be counted.
Json counts_json(const std::vector<SpeedRun>& runs, HardwareCounters::Counts SpeedRun::*counts) {
  Json json = Json::object();
  bool any = false;
  for (std::size_t i = 0; i < HardwareCounters::kNumEvents; ++i) {
    std::vector<double> values;
    for (const SpeedRun& run : runs) {
      if ((run.*counts)[i].has_value()) values.push_back(*(run.*counts)[i]);
    }
    any = any || !values.empty();
    json[std::string(HardwareCounters::kNames[i]) + "_per_token"] =
        values.empty() ? Json(nullptr) : Json(rounded(median(std::move(values))));
  }
  return any ? json : Json(nullptr);
}

double decode_read_fraction(const SpeedRun& run) {
  return run.read_bytes_per_s > 0.0 ? run.decode_bytes_per_s / run.read_bytes_per_s : 0.0;
}

Json result_json(const SpeedResult& result, const EngineDescription& description,
                 const kernels::MachineLimits& limits) {
  const double prefill_rate = result.median_of(&SpeedRun::prefill_multiply_adds_per_s);
  return {{"prompt_tokens", result.shape.prompt_tokens},
          {"output_tokens", result.shape.output_tokens},
          {"sequences", result.shape.sequences},
          {"shared_prefix_tokens", result.shape.shared_prefix_tokens},
          {"cached_tokens", result.shape.cached_tokens},
          {"repeat", result.runs.size()},
          {"activation_dtype", activation_name(description.activation_dtype)},
          {"prefill_tokens_per_s", rounded(result.median_of(&SpeedRun::prefill_tokens_per_s))},
          {"decode_tokens_per_s", rounded(result.median_of(&SpeedRun::decode_tokens_per_s))},
          {"ttft_ms", rounded(result.median_of(&SpeedRun::ttft_ms))},
          {"step_ms",
           {{"p50", rounded(result.median_of(&SpeedRun::step_p50_ms))},
            {"p99", rounded(result.median_of(&SpeedRun::step_p99_ms))}}},
          {"between_steps_us", rounded(result.median_of(&SpeedRun::between_steps_us))},
          {"read_gb_per_s", rounded(result.median_of(&SpeedRun::read_bytes_per_s) * 1e-9)},
          {"decode_read_fraction", rounded(result.median_of(decode_read_fraction))},
          {"prefill_int8_fraction", rounded(prefill_rate / limits.int8_multiply_adds_per_s)},
          {"prefill_float_fraction", rounded(prefill_rate / limits.float_multiply_adds_per_s)},
          {"counters",
           {{"prefill", counts_json(result.runs, &SpeedRun::prefill_counts)},
            {"decode", counts_json(result.runs, &SpeedRun::decode_counts)}}},
          {"peak_rss_mb", rounded(result.peak_rss_mb)}};
}

void print_text(const Json& report) {
  const Json& machine = report["machine"];
  std::printf("%s, %s, %d threads: reads %.1f GB/s, %.0f G int8 and %.0f G float multiply-adds/s\n",
              machine["cpu"].get<std::string>().c_str(), machine["isa"].get<std::string>().c_str(),
              machine["threads"].get<int>(), machine["read_gb_per_s"].get<double>(),
              machine["int8_gmac_per_s"].get<double>(), machine["float_gmac_per_s"].get<double>());
  for (const Json& result : report["results"]) {
    std::printf(
        "prompt %d, output %d, sequences %d: prefill %.1f tok/s (%.0f %% of int8), decode %.1f tok/s (%.0f "
        "%% of reading), first token %.1f ms\n",
        result["prompt_tokens"].get<int>(), result["output_tokens"].get<int>(),
        result["sequences"].get<int>(), result["prefill_tokens_per_s"].get<double>(),
        100.0 * result["prefill_int8_fraction"].get<double>(), result["decode_tokens_per_s"].get<double>(),
        100.0 * result["decode_read_fraction"].get<double>(), result["ttft_ms"].get<double>());
  }
}

Error usage(std::string option, const std::string& sentence) {
  return {
      .code = ErrorCode::kInvalidArgument, .message = option + " " + sentence, .subject = std::move(option)};
}

Result<void> check(const SpeedOptions& options) {
  for (const std::int32_t count : options.prompt_tokens) {
    if (count < 1) return usage("--prompt-tokens", "must be at least 1");
    if (count <= options.shared_prefix_tokens)
      return usage("--shared-prefix-tokens", "must be below every --prompt-tokens");
  }
  for (const std::int32_t count : options.sequences) {
    if (count < 1 || count > 4096) return usage("--sequences", "must be 1 to 4096");
  }
  if (options.output_tokens < 1) return usage("--output-tokens", "must be at least 1");
  if (options.shared_prefix_tokens < 0) return usage("--shared-prefix-tokens", "must not be negative");
  if (options.cached_tokens < 0) return usage("--cached-tokens", "must not be negative");
  if (options.repeat < 1 || options.repeat > 10'000) return usage("--repeat", "must be 1 to 10000");
  return {};
}

std::int64_t longest_sequence(const SpeedOptions& options) {
  return *std::max_element(options.prompt_tokens.begin(), options.prompt_tokens.end()) +
         std::int64_t{options.cached_tokens} + options.output_tokens;
}

// A pool that holds the largest combination, so that nothing is preempted while it is measured.
void size_for(const SpeedOptions& options, EngineOptions& engine) {
  const std::int32_t most = *std::max_element(options.sequences.begin(), options.sequences.end());
  engine.max_num_seqs = std::max(engine.max_num_seqs, most);
  if (!engine.num_kv_blocks.has_value() && !engine.kv_cache_memory.has_value() &&
      !engine.gpu_memory_utilization.has_value()) {
    const std::int64_t blocks_each =
        (longest_sequence(options) + engine.block_size - 1) / engine.block_size + 1;
    engine.num_kv_blocks =
        static_cast<std::int32_t>(std::min<std::int64_t>((most + 1) * blocks_each + most + 16, 1 << 22));
  }
  engine.prefill_first = true;
}

Result<void> check_fits(const SpeedOptions& options, const EngineDescription& description) {
  if (longest_sequence(options) <= description.max_model_len) return {};
  return usage("--prompt-tokens",
               "plus --cached-tokens and --output-tokens is " + std::to_string(longest_sequence(options)) +
                   " tokens; this model allows at most " + std::to_string(description.max_model_len));
}

// The timed repeats of a combination, after one that warms up. Where they decode, in turns with what the
// threads can read.
Result<SpeedResult> run_shape(SpeedBenchmark& benchmark, const SpeedShape& shape, const SpeedOptions& options,
                              std::int32_t threads, PeakMemory& peak) {
  constexpr std::int32_t kReads = 5;
  SpeedResult result = {.shape = shape, .runs = {}};
  if (auto warm_up = benchmark.run(shape); !warm_up) return std::move(warm_up).error();
  peak.note();
  std::vector<double> before;
  const auto read = [&]() -> Result<std::vector<double>> {
    if (options.output_tokens == 1) return std::vector<double>{};
    Result<std::vector<double>> reads = kernels::measure_reads(threads, kReads);
    peak.forget_since_note();
    return reads;
  };
  OCTAVO_TRY(before, read());
  for (std::int32_t i = 0; i < options.repeat; ++i) {
    OCTAVO_TRY(SpeedRun run, benchmark.run(shape));
    peak.note();
    OCTAVO_TRY(std::vector<double> after, read());
    std::vector<double> around = before;
    around.insert(around.end(), after.begin(), after.end());
    run.read_bytes_per_s = median(std::move(around));
    result.runs.push_back(std::move(run));
    before = std::move(after);
  }
  result.peak_rss_mb = peak.mb();
  return result;
}

Result<std::vector<SpeedResult>> run_shapes(const SpeedOptions& options, SpeedBenchmark& benchmark,
                                            std::int32_t threads, PeakMemory& peak,
                                            const Progress& progress) {
  std::vector<SpeedResult> results;
  for (const std::int32_t prompt_tokens : options.prompt_tokens) {
    for (const std::int32_t sequences : options.sequences) {
      progress.say("measuring " + std::to_string(sequences) + " sequences of " +
                   std::to_string(prompt_tokens) + " prompt tokens");
      const SpeedShape shape = {.prompt_tokens = prompt_tokens,
                                .output_tokens = options.output_tokens,
                                .sequences = sequences,
                                .shared_prefix_tokens = options.shared_prefix_tokens,
                                .cached_tokens = options.cached_tokens};
      OCTAVO_TRY(SpeedResult result, run_shape(benchmark, shape, options, threads, peak));
      results.push_back(std::move(result));
    }
  }
  return results;
}

Result<Json> measure_speed(SpeedOptions& options) {
  EngineOptions& engine_options = options.engine.options;
  OCTAVO_TRY_VOID(check(options));
  size_for(options, engine_options);
  OCTAVO_TRY_VOID(validate(engine_options));
  const std::int32_t threads =
      engine_options.threads > 0 ? engine_options.threads : kernels::num_physical_cores();
  OCTAVO_TRY(const kernels::MachineLimits before, kernels::measure_machine_limits(threads));
  PeakMemory peak;
  peak.forget_since_note();

  const HardwareCounters counters;
  Progress progress(options.engine.verbose);
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, start_engine(options.engine, progress));
  OCTAVO_TRY_VOID(check_fits(options, engine->description()));
  SpeedBenchmark benchmark(*engine, counters);
  if (options.scatter_blocks) OCTAVO_TRY_VOID(benchmark.scatter_blocks());
  OCTAVO_TRY(const std::vector<SpeedResult> results, run_shapes(options, benchmark, threads, peak, progress));

  OCTAVO_TRY(const kernels::MachineLimits after, kernels::measure_machine_limits(threads));
  const kernels::MachineLimits limits = better_of(before, after);
  Json report = {{"machine", machine_json(engine->description(), limits)}, {"results", Json::array()}};
  for (const SpeedResult& result : results)
    report["results"].push_back(result_json(result, engine->description(), limits));
  return report;
}

Result<void> run_speed(SpeedOptions& options) {
  OCTAVO_TRY(const Json report, measure_speed(options));
  if (options.json) {
    std::cout << dump(report) << '\n';
  } else {
    print_text(report);
  }
  return {};
}

}  // namespace

void add_bench_command(CLI::App& program, int& status) {
  CLI::App* const bench = program.add_subcommand("bench", "Measurements on this machine");
  bench->require_subcommand(1);
  auto options = std::make_shared<SpeedOptions>();
  CLI::App* const speed = bench->add_subcommand("speed", "Prefill and decode speed on random prompts");
  speed->add_option("--prompt-tokens", options->prompt_tokens, "Prompt lengths, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  speed->add_option("--output-tokens", options->output_tokens, "Tokens generated by each sequence")
      ->capture_default_str();
  speed->add_option("--sequences", options->sequences, "Numbers of concurrent sequences, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  speed
      ->add_option("--shared-prefix-tokens", options->shared_prefix_tokens,
                   "Number of leading tokens that all prompts share")
      ->capture_default_str();
  speed
      ->add_option("--cached-tokens", options->cached_tokens,
                   "Number of tokens before the prompt that are already in the prefix cache")
      ->capture_default_str();
  speed->add_option("--repeat", options->repeat, "Number of timed repeats; medians are reported")
      ->capture_default_str();
  speed->add_flag("--scatter-blocks", options->scatter_blocks,
                  "Use the pool beforehand, so that a sequence's blocks are scattered");
  speed->add_flag("--json", options->json, "Print one JSON object to standard output");
  add_engine_flags(*speed, options->engine);
  refuse_options(*speed, kNotForSpeed);
  speed->callback([options, &status] {
    const InterruptGuard guard;
    const Result<void> result = run_speed(*options);
    status = result.has_value()              ? kExitOk
             : InterruptGuard::interrupted() ? kExitInterrupted
                                             : report_error(result.error());
  });
  add_bench_serving_command(*bench, status);
}

}  // namespace octavo::app
