// What the window costs the engine, and what the window makes the engine compute.

#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/backends.h"
#include "tests/bench/window/bar_window.h"
#include "tests/bench/window/bars.h"
#include "tests/bench/window/timed_engine.h"

namespace octavo::bench {
namespace {

constexpr int kNumStreams = 16, kNumRounds = 3;
constexpr std::int32_t kStreamTokens = 512;
constexpr double kStretchSeconds = 0.5;

// Sixteen chats in the window, one of them in sight. In every second stretch of time the window stands still:
// nobody draws, nobody asks the engine anything. The pace of a machine drifts by more than the window costs,
// so that only neighbouring stretches of the same answers can be compared.
struct StreamRound {
  std::vector<std::int64_t> turns_us;  // when stretches began; the window is at work in those of even index
  std::vector<StepRecord> steps;       // oldest first
  double window_share = 0;             // processor time of the window's thread while at work, of all cores
};

Result<StreamRound> stream_in_turns(BarWindow& window, Engine& engine, int round) {
  const Engine::Trace before = engine.trace_since(0, 0);
  for (int i = 0; i < kNumStreams; ++i) {
    window.ask("Round " + std::to_string(round) + ", question " + std::to_string(i) +
                   ": tell a long story about a ship that comes home with the morning tide.",
               kStreamTokens);
  }
  window.loop_for(1);  // prompts are computed
  StreamRound result;
  double at_work = 0, computed = 0;
  while (!window.is_idle()) {
    result.turns_us.push_back(SteadyClock().now_us());
    const double begin = wall_seconds(), own = thread_seconds();
    window.loop_for(kStretchSeconds);
    at_work += wall_seconds() - begin;
    computed += thread_seconds() - own;
    result.turns_us.push_back(SteadyClock().now_us());
    std::this_thread::sleep_for(std::chrono::duration<double>(kStretchSeconds));
    if (result.turns_us.size() > 1000) return Error{ErrorCode::kIo, "sixteen answers took too long"};
  }
  result.steps = engine.trace_since(before.next_step_mark, before.next_event_mark).steps;
  result.window_share = computed / at_work / kernels::num_physical_cores();
  return result;
}

// Mean seconds of the steps of each stretch, from the beginning of one to that of the next: what the engine
// does between steps counts. 0 where not all sixteen generated.
std::vector<double> step_seconds(const StreamRound& round) {
  std::vector<double> seconds;
  std::size_t next = 0;
  for (std::size_t turn = 0; turn + 1 < round.turns_us.size(); ++turn) {
    double sum_us = 0;
    int num_steps = 0;
    bool full = true;
    for (; next + 1 < round.steps.size() && round.steps[next + 1].begin_us <= round.turns_us[turn + 1];
         ++next) {
      const StepRecord& step = round.steps[next];
      if (step.begin_us < round.turns_us[turn]) continue;  // in two stretches
      full = full && step.num_decode_tokens == kNumStreams && step.num_prefill_tokens == 0;
      sum_us += static_cast<double>(round.steps[next + 1].begin_us - step.begin_us);
      ++num_steps;
    }
    seconds.push_back(full && num_steps > 0 ? sum_us / num_steps / 1e6 : 0.0);
  }
  return seconds;
}

struct StretchPaces {
  std::vector<double> losses;  // of tokens/s in each stretch at work, beside the mean of the two around it
  std::vector<double> with, without;
};

void compare_stretches(const std::vector<double>& seconds, StretchPaces& paces) {
  for (std::size_t i = 2; i + 1 < seconds.size(); i += 2) {
    if (seconds[i - 1] == 0 || seconds[i] == 0 || seconds[i + 1] == 0) continue;
    const double alone = (seconds[i - 1] + seconds[i + 1]) / 2;
    paces.losses.push_back(1 - alone / seconds[i]);
    paces.with.push_back(kNumStreams / seconds[i]);
    paces.without.push_back(kNumStreams / alone);
  }
}

std::int32_t num_computed_before(const ui::AnswerFigures& figures, std::int32_t num_answered) {
  return figures.num_prompt_tokens.value_or(0) + num_answered -
         1;  // the last token was drawn, and not computed
}

}  // namespace

Rows measure_streams() {
  TimedEngine* timed = nullptr;
  const auto factory = [&](const EngineOptions& options,
                           LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
    OCTAVO_TRY(auto engine, Engine::create(options, std::move(progress)));
    auto made = std::make_unique<TimedEngine>(std::move(engine));
    timed = made.get();
    return std::unique_ptr<Engine>(std::move(made));
  };
  OCTAVO_TRY(auto window, BarWindow::open(factory, Pixels::kLeftOut));
  StretchPaces paces;
  std::vector<double> shares;
  double longest_wait = 0, longest_call = 0;
  for (int round = 0; round < kNumRounds; ++round) {
    timed->forget_waits();
    OCTAVO_TRY(const StreamRound streams, stream_in_turns(*window, timed->inner(), round));
    longest_wait = std::max(longest_wait, timed->longest_wait_ms());
    longest_call = std::max(longest_call, timed->longest_call_ms());
    compare_stretches(step_seconds(streams), paces);
    shares.push_back(streams.window_share);
    window->loop_for(0.5);
  }
  if (paces.losses.empty()) return Error{ErrorCode::kIo, "sixteen answers never ran together"};
  const double loss = median(paces.losses);
  return std::vector<BarRow>{
      {"16 streams: longest wait of the window for the engine",
       number(longest_wait, 2) + " ms (by the clock: " + number(longest_call, 2) + " ms)", "<= 8 ms",
       longest_wait <= 8},
      {"16 streams: tokens/s lost to the window",
       number(loss * 100, 1) + " % (" + number(median(paces.with), 0) + " of " +
           number(median(paces.without), 0) + ", " + std::to_string(paces.losses.size()) + " stretches)",
       "< 3 %", loss < 0.03},
      {"16 streams: processor time of the window's thread, of all cores",
       number(median(shares) * 100, 2) + " %", "< 3 %", median(shares) < 0.03}};
}

// Two chats in turns; the second question of the first finds everything that its first turn computed.
Rows measure_chat_switch() {
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kLeftOut));
  const ChatId one = window->ask("Tell me about the sea.", 64);
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  window->ask("Tell me about mountains.", 64);
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  const ui::AnswerFigures first = ui::find_chat(window->state(), one)->messages.back().figures;
  window->controller().apply(ui::actions::SelectChat{one});
  window->controller().apply(ui::actions::SendMessage{one, "And about its tides?"});
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  const ui::AnswerFigures second = ui::find_chat(window->state(), one)->messages.back().figures;
  const std::int32_t before = num_computed_before(first, 64);
  const std::int32_t again = std::max(0, before - second.num_cached_tokens.value_or(0));
  return std::vector<BarRow>{{"chat switch: tokens computed again, of " + std::to_string(before),
                              std::to_string(again), "0", again == 0}};
}

Rows measure_samples() {
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kLeftOut));
  auto& controller = window->controller();
  controller.apply(
      ui::actions::TypeComparison{"Write a short story about a lighthouse keeper who counts the ships that "
                                  "pass, and say which of them came back "
                                  "in the end."});
  ui::ComparisonSetup setup = window->state().comparison.setup;
  setup.kind = ui::ComparisonKind::kSamples;
  setup.num_samples = 8;
  setup.sampling.temperature = 1.0;
  setup.sampling.max_tokens = 48;
  controller.apply(ui::actions::ChangeComparison{setup});
  controller.apply(ui::actions::RunComparison{});
  std::size_t num_distinct = 0;
  std::int32_t num_full = 0;
  OCTAVO_TRY_VOID(window->loop_until([&] {
    const auto& snapshot = window->state().memory.snapshot;
    num_full = window->state().comparison.num_prompt_tokens / window->state().model.block_size;
    if (snapshot != nullptr && snapshot->sequences.size() == 8 && num_full > 0) {
      std::set<std::int32_t> distinct;
      bool all_have_them = true;
      for (const SequenceSnapshot& sequence : snapshot->sequences) {
        for (std::int32_t i = 0; i < num_full; ++i) {
          all_have_them = all_have_them && static_cast<std::size_t>(i) < sequence.block_table.size();
          if (all_have_them) distinct.insert(sequence.block_table[static_cast<std::size_t>(i)].value);
        }
      }
      if (all_have_them) num_distinct = std::max(num_distinct, distinct.size());
    }
    return !window->state().comparison.running;
  }));
  const bool met = num_full > 0 && num_distinct == static_cast<std::size_t>(num_full);
  return std::vector<BarRow>{
      {"8 samples: blocks that hold the prompt's " + std::to_string(num_full) + " full blocks",
       std::to_string(num_distinct), std::to_string(num_full), met}};
}

}  // namespace octavo::bench
