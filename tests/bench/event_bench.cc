// What keeping events costs, as a share of a decode step:
//   octavo_event_bench
// 1. nanoseconds for each event: written by the block manager, stamped, and kept by the recorder with its
//    keyframes, measured on the events of a real scheduler's decode steps, for a small and for a large pool.
// 2. events in a decode step of 1, 8 and 64 sequences.
// 3. their product over the time of a decode step of the default model, where it is installed.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/block/block_event_log.h"
#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"
#include "engine/engine.h"
#include "engine/metrics/step_recorder.h"
#include "engine/output_collector.h"
#include "tests/simulation/toy_tokenizer.h"
#include "tests/support/model_files.h"

namespace octavo {
namespace {

constexpr std::int32_t kPromptTokens = 128;
constexpr std::int32_t kOutputTokens = 128;

using Steps = std::vector<std::vector<BlockEvent>>;  // the events of each step

// Of this thread's own work: another program on the machine does not count.
double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

class IdleRunner final : public runner::Runner {
 public:
  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    for (const auto& row : step.sequences) {
      for (const auto& target : row.samples) {
        output.tokens.push_back({.sequence_id = target.sequence_id, .token_id = 5});
      }
    }
    return {};
  }
};

GenerationRequest request_of(std::int32_t index, std::int32_t vocabulary_size) {
  TokenPrompt prompt;
  for (std::int32_t i = 0; i < kPromptTokens; ++i) {
    prompt.token_ids.push_back(4 + (i * 7 + index * 13) % (vocabulary_size - 4));
  }
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = kOutputTokens;
  request.sampling.temperature = 0.0;
  request.sampling.ignore_eos = true;
  return request;
}

// The decode steps of `num_sequences` requests that run together.
Steps decode_steps(std::int32_t num_sequences, std::int32_t num_blocks) {
  const simulation::ToyTokenizer tokenizer;
  const SteadyClock clock;
  IdleRunner runner;
  EngineCore core({.block_size = 16,
                   .num_blocks = num_blocks,
                   .max_num_seqs = 64,
                   .max_num_batched_tokens = 512,
                   .max_model_len = 2'048,
                   .prefill_first = true},
                  {.runner = &runner, .clock = &clock, .tokenizer = &tokenizer});
  RequestIntake intake(
      {.tokenizer = &tokenizer, .draw_seed = [] { return 1u; }, .unix_time_s = [] { return 0; }});
  std::vector<EngineCommand> commands;
  for (std::int32_t i = 0; i < num_sequences; ++i) {
    commands.push_back(intake.prepare(
        {RequestId{static_cast<std::uint64_t>(i) + 1}, request_of(i, tokenizer.vocabulary_size()), 0}));
  }
  Steps steps;
  std::uint64_t step_mark = 0, event_mark = 0;
  core.step(std::move(commands));
  while (core.has_work()) {
    core.step({});
    metrics::Trace trace = core.recorder()->read_since(step_mark, event_mark);
    step_mark = trace.next_step_mark;
    event_mark = trace.next_event_mark;
    const bool is_decode = !trace.steps.empty() && trace.steps.back().num_prefill_tokens == 0;
    if (is_decode && core.has_work()) steps.push_back(std::move(trace.block_events));
  }
  return steps;
}

std::int64_t count_events(const Steps& steps) {
  std::int64_t num_events = 0;
  for (const auto& events : steps) num_events += static_cast<std::int64_t>(events.size());
  return num_events;
}

// Blocks by turns in use and free, so that these events can follow each other for ever. With as many as the
// pool has, the recorder's keyframes are as large as they can be.
Steps endless_steps(std::int32_t num_blocks, std::size_t num_events) {
  Steps steps;
  std::int64_t step = 1;
  std::vector<bool> is_used(static_cast<std::size_t>(num_blocks));
  std::size_t next = 0;
  for (std::size_t made = 0; made < num_events; ++step) {
    auto& events = steps.emplace_back();
    for (int i = 0; i < 18; ++i, next = (next + 1) % is_used.size()) {
      const auto block = static_cast<std::int32_t>(next);
      const std::uint64_t sequence = 1 + next / 64;
      const auto add = [&](BlockEventKind kind, std::int32_t aux) {
        events.push_back({.step = step, .sequence = sequence, .block = block, .aux = aux, .kind = kind});
      };
      if (is_used[next]) {
        add(BlockEventKind::kUnref, 0);
        add(BlockEventKind::kFree, 0);
      } else {
        add(BlockEventKind::kAlloc, 0);
        for (std::int32_t filled = 1; filled <= 16; ++filled) add(BlockEventKind::kFill, filled);
        add(BlockEventKind::kSeal, 0);
      }
      is_used[next] = !is_used[next];
    }
    made += events.size();
  }
  return steps;
}

// Everything that an event passes through on the engine thread: the log, its time, the recorder.
double nanoseconds_per_event(const Steps& steps, std::int32_t num_blocks) {
  std::vector<double> runs;
  for (int repeat = 0; repeat < 5; ++repeat) {
    block::BlockEventLog log;
    metrics::StepRecorder recorder({.block_size = 16, .num_blocks = num_blocks});
    const SteadyClock clock;
    const double begin_s = thread_seconds();
    for (const auto& events : steps) {
      for (const BlockEvent& event : events) {
        log.record(event.kind, SequenceId{event.sequence}, BlockId{event.block}, event.aux);
      }
      std::vector<BlockEvent> taken = log.take();
      const std::int64_t now_us = clock.now_us();
      for (BlockEvent& event : taken) event.time_us = now_us;
      recorder.record(StepRecord{}, taken);
    }
    runs.push_back((thread_seconds() - begin_s) * 1e9 / static_cast<double>(count_events(steps)));
    const auto state = recorder.state_at(recorder.read_since(~0ull, ~0ull).next_event_mark);
    if (!state.has_value())
      std::printf("the events contradict themselves: %s\n", state.error().message.c_str());
  }
  return median(std::move(runs));
}

// Of the default model; nullopt when it is not installed.
std::optional<double> decode_step_seconds(Engine& engine, std::int32_t num_sequences) {
  engine.reset_prefix_cache();
  const std::uint64_t step_mark = engine.trace_since(~0ull, ~0ull).next_step_mark;
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < num_sequences; ++i) {
    requests.push_back(request_of(i, engine.description().model.vocabulary_size / 2));
  }
  OutputCollector collector;
  for (const RequestId id : engine.submit_all(std::move(requests))) collector.expect(id, 1);
  while (!collector.done()) {
    for (const EngineEvent& event : engine.poll(std::chrono::milliseconds(100))) collector.add(event);
  }
  std::vector<double> steps;
  for (const StepRecord& step : engine.trace_since(step_mark, ~0ull).steps) {
    if (step.num_prefill_tokens > 0 || step.num_decode_tokens < num_sequences) continue;
    steps.push_back(static_cast<double>(step.schedule_us + step.execute_us + step.commit_us) * 1e-6);
  }
  return median(std::move(steps));
}

std::unique_ptr<Engine> default_engine() {
  if (!test::missing_default_model().empty()) return nullptr;
  EngineOptions options;
  options.model = model::default_model_path().string();
  options.num_kv_blocks = 64 * (kPromptTokens + kOutputTokens) / 16 + 64;
  options.prefill_first = true;
  auto engine = Engine::create(options);
  return engine.has_value() ? std::move(*engine) : nullptr;
}

int run() {
  constexpr std::int32_t kSmallPool = 1'100, kLargePool = 65'536;
  double worst_ns = 0.0;
  const auto report = [&](const char* what, const Steps& steps, std::int32_t num_blocks) {
    const double ns = nanoseconds_per_event(steps, num_blocks);
    worst_ns = std::max(worst_ns, ns);
    std::printf("%s, pool of %d blocks: %.1f ns an event\n", what, num_blocks, ns);
  };
  report("every block in turn", endless_steps(kSmallPool, 2'000'000), kSmallPool);
  report("every block in turn", endless_steps(kLargePool, 2'000'000), kLargePool);
  const std::unique_ptr<Engine> engine = default_engine();
  if (!engine) std::printf("%s\n", test::missing_default_model().c_str());
  for (const std::int32_t num_sequences : {1, 8, 64}) {
    const Steps steps = decode_steps(num_sequences, kSmallPool);
    const double events_per_step =
        static_cast<double>(count_events(steps)) / static_cast<double>(steps.size());
    std::printf("%d sequences: %.1f events a decode step, %.2f us at the worst rate", num_sequences,
                events_per_step, events_per_step * worst_ns * 1e-3);
    if (engine) {
      const double step_s = decode_step_seconds(*engine, num_sequences).value_or(0.0);
      std::printf("; a step takes %.0f us: %.4f %%", step_s * 1e6,
                  100.0 * events_per_step * worst_ns * 1e-9 / step_s);
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace octavo

int main() { return octavo::run(); }
