// What the window costs the engine, and what the window makes the engine compute.

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "kernels/backends.h"
#include "tests/bench/window/bar_window.h"
#include "tests/bench/window/bars.h"
#include "tests/bench/window/timed_engine.h"

namespace octavo::bench {
namespace {

constexpr int kNumStreams = 16, kNumRounds = 5;
constexpr std::int32_t kStreamTokens = 256;

std::string question(int round, int index) {
  return "Round " + std::to_string(round) + ", question " + std::to_string(index) +
         ": tell a long story about a ship that comes home with the morning tide.";
}

struct StreamRound {
  double tokens_per_second = 0;
  double window_share = 0;  // processor time of the window's thread, of all cores
};

// Sixteen chats in the window, one of them in sight.
Result<StreamRound> stream_in_window(BarWindow& window, int round) {
  const double begin = wall_seconds(), own = thread_seconds();
  for (int i = 0; i < kNumStreams; ++i) window.ask(question(round, i), kStreamTokens);
  OCTAVO_TRY_VOID(window.loop_until([&] { return window.is_idle(); }));
  const double seconds = wall_seconds() - begin;
  return StreamRound{kNumStreams * kStreamTokens / seconds,
                     (thread_seconds() - own) / seconds / kernels::num_physical_cores()};
}

// The same of the engine alone: this thread takes in what there is and sleeps.
Result<StreamRound> stream_alone(Engine& engine, int round, const SamplingParams& sampling) {
  const double begin = wall_seconds();
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < kNumStreams; ++i) {
    ChatMessage message;
    message.role = Role::kUser;
    message.content = question(round, i);
    GenerationRequest request;
    request.prompt = ChatPrompt{{std::move(message)}};
    request.sampling = sampling;
    request.sampling.max_tokens = kStreamTokens;
    requests.push_back(std::move(request));
  }
  engine.submit_all(std::move(requests));
  int num_ended = 0;
  while (num_ended < kNumStreams) {
    for (const EngineEvent& event : engine.poll(std::chrono::milliseconds(200))) {
      if (const auto* failed = std::get_if<RequestFailed>(&event)) return failed->error;
      num_ended += std::holds_alternative<RequestFinished>(event) ? 1 : 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (wall_seconds() - begin > 300) return Error{ErrorCode::kIo, "sixteen answers took longer than 300 s"};
  }
  return StreamRound{kNumStreams * kStreamTokens / (wall_seconds() - begin), 0};
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
  const SamplingParams sampling = ui::active_session(window->state())->sampling;
  OCTAVO_TRY(const StreamRound warm_up, stream_in_window(*window, 0));
  (void)warm_up;
  timed->forget_waits();
  std::vector<double> with, without, shares;
  double longest_wait = 0, longest_call = 0;
  for (int round = 0; round < kNumRounds; ++round) {
    OCTAVO_TRY(const StreamRound alone, stream_alone(timed->inner(), 1000 + round, sampling));
    window->loop_for(0.3);
    timed->forget_waits();
    OCTAVO_TRY(const StreamRound drawn, stream_in_window(*window, 1 + round));
    longest_wait = std::max(longest_wait, timed->longest_wait_ms());
    longest_call = std::max(longest_call, timed->longest_call_ms());
    without.push_back(alone.tokens_per_second);
    with.push_back(drawn.tokens_per_second);
    shares.push_back(drawn.window_share);
    window->loop_for(0.5);
  }
  const double loss = 1 - median(with) / median(without);
  return std::vector<BarRow>{
      {"16 streams: longest wait of the window for the engine",
       number(longest_wait, 2) + " ms (by the clock: " + number(longest_call, 2) + " ms)", "<= 8 ms",
       longest_wait <= 8},
      {"16 streams: tokens/s lost to the window",
       number(loss * 100, 1) + " % (" + number(median(with), 0) + " of " + number(median(without), 0) + ")",
       "< 3 %", loss < 0.03},
      {"16 streams: processor time of the window's thread, of all cores",
       number(median(shares) * 100, 2) + " %", "< 3 %", median(shares) < 0.03}};
}

// Two chats in turns; the second question of the first finds everything that its first turn computed.
Rows measure_chat_switch() {
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kLeftOut));
  const ui::SessionId one = window->ask("Tell me about the sea.", 64);
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  window->ask("Tell me about mountains.", 64);
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  const ui::AnswerFigures first = ui::find_session(window->state(), one)->messages.back().figures;
  window->controller().apply(ui::actions::SelectSession{one});
  window->controller().apply(ui::actions::SendMessage{one, "And about its tides?"});
  OCTAVO_TRY_VOID(window->loop_until([&] { return window->is_idle(); }));
  const ui::AnswerFigures second = ui::find_session(window->state(), one)->messages.back().figures;
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
