// Every number of every panel about memory is what a recount from nothing gives, after each event of random
// lives: chats that share, are swapped, computed again, cancelled and compared, in pools that are too small
// for them, on one engine after the other.
//
// OCTAVO_MEMORY_EVENTS: so many events instead of 5,000 (tests/long/run memory). A failure prints its life:
// OCTAVO_MEMORY_LIFE=N runs that one alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/window/controller.h"
#include "tests/simulation/random.h"
#include "tests/window/core_engine.h"
#include "tests/window/memory_recount.h"
#include "tests/window/plan_at_once.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
using simulation::Random;
using testing::CoreEngine;
using testing::Recount;

constexpr std::int64_t kEventsOfALife = 500;
constexpr std::size_t kMostChats = 6;
constexpr std::size_t kMomentsKept = 24;

// What the lives of a run have come through: a run in which one of these is missing proves little.
struct Seen {
  std::int64_t events = 0, swapped_out = 0, swapped_in = 0, dropped = 0, copies = 0, evictions = 0, hits = 0,
               cancels = 0, forks = 0, model_changes = 0, past = 0, idle = 0, rows_ahead = 0,
               chats_shared = 0, columns_shared = 0, levels = 0;
  StateTotals states;
  WindowTotals windows;
  std::int64_t window_misses = 0, kept_windows = 0;
};

std::string newest_events(const metrics::StepRecorder& recorder, std::uint64_t mark) {
  std::string text = "the newest events:\n";
  for (const auto& stretch : recorder.events_between(mark - std::min<std::uint64_t>(mark, 40), mark)) {
    for (const BlockEvent& event : stretch.events) {
      text += std::to_string(event.step) + " " + std::string(block_event_kind_name(event.kind)) +
              " of block " + std::to_string(event.block) + ", sequence " + std::to_string(event.sequence) +
              ", " + std::to_string(event.aux) + "\n";
    }
  }
  return text;
}

class Life {
 public:
  Life(std::uint64_t number, Seen& seen)
      : random_(number), seen_(seen), controller_(clock_, default_settings()) {
    clock_.advance_us(1'000'000);
    change_model();
  }
  ~Life() { controller_.detach_engine(); }

  // Empty when all went well.
  std::string live() {
    for (std::int64_t i = 0; i < kEventsOfALife; ++i) {
      do_something();
      clock_.advance_us(random_.chance(0.02) ? 5'000'000 : 3'000);
      hear();
      const std::string difference = differences();
      if (!difference.empty()) return "after event " + std::to_string(i) + " (" + what_ + "):\n" + difference;
      ++seen_.events;
    }
    count_the_end();
    return {};
  }

 private:
  // ---- what happens
  void do_something() {
    const std::int32_t choice = random_.between(0, 999);
    if (choice < 70) return send();
    if (choice < 90) return stop_somebody();
    if (choice < 105) return compare();
    if (choice < 112) return stop_comparing();
    if (choice < 150) return look_elsewhere();
    if (choice < 165) return look_back();
    if (choice < 172) return regenerate();
    if (choice < 177) return delete_chat();
    if (choice < 187) return undo_delete();
    if (choice < 189) return change_model();
    what_ = "step";
    for (const auto& engine : engines_) engine->step();
    if (!engines_.back()->has_work()) ++seen_.idle;
  }

  void change_model() {
    what_ = "another model";
    const bool has_states = random_.chance(0.35);
    const bool has_windows = !has_states && random_.chance(0.5);
    const CoreEngine::Options options{
        .num_blocks = random_.between(has_windows ? 34 : 20, 48),
        .num_host_blocks = random_.chance(0.2) ? 0 : random_.between(6, 20),
        .num_states = has_states ? random_.between(8, 14) : 0,
        .num_host_states = has_states ? random_.between(2, 8) : 0,
        .window = has_windows ? random_.between(5, 9) : 0,
        .num_window_blocks = has_windows ? random_.between(26, 32) : 0,
        .num_host_window_blocks = has_windows ? random_.between(8, 20) : 0,
        .preemption_mode = random_.chance(has_states || has_windows ? 0.9 : 0.5) ? PreemptionPolicy::kSwap
                                                                                 : PreemptionPolicy::kAuto,
        .speculative = !has_states && random_.chance(0.3) ? Speculation::kNgram : Speculation::kOff,
        .runs_ahead = random_.chance(0.5),
        .seed = random_.next() % 1'000,
        .first_request = engines_.empty() ? 1 : engines_.back()->next_request().value};
    engines_.push_back(std::make_unique<CoreEngine>(options, clock_));
    CoreEngine& engine = *engines_.back();
    controller_.attach_engine(engine, testing::plan_at_once(controller_, engine));
    requests_.clear();
    left_.clear();
    columns_.begin({}, false);
    moments_.clear();
    seen_.model_changes += engines_.size() > 1 ? 1 : 0;
  }

  const ui::UiState& state() const { return controller_.state(); }
  const ui::ChatState* any_chat() {
    const auto& chats = state().chats;
    if (chats.empty()) return nullptr;
    return &chats[static_cast<std::size_t>(random_.between(0, static_cast<std::int32_t>(chats.size()) - 1))];
  }

  // Does it, and notes what was asked of the engine for this chat.
  template <class Action>
  void ask_for(ChatId chat, Action action) {
    const RequestId first = engines_.back()->next_request();
    controller_.apply(std::move(action));
    for (std::uint64_t id = first.value; id < engines_.back()->next_request().value; ++id)
      requests_[chat].push_back(RequestId{id});
  }

  std::string some_text() {
    static const std::vector<std::string> kBeginnings = {"the sea is wide and ", "tell me about lamps "};
    std::string text = kBeginnings[static_cast<std::size_t>(random_.between(0, 1))];
    const std::int32_t count = random_.between(1, 24);
    for (std::int32_t i = 0; i < count; ++i) text += static_cast<char>('a' + random_.between(0, 3));
    return text;
  }

  void send() {
    what_ = "send";
    if (state().chats.size() < kMostChats && random_.chance(0.3)) controller_.apply(act::NewChat{});
    const ui::ChatState* chat = any_chat();
    if (chat == nullptr || chat->activity != ui::Activity::kIdle) return;
    const ChatId id = chat->id;
    SamplingParams sampling = chat->sampling;
    sampling.max_tokens = random_.between(1, 60);
    sampling.ignore_eos = random_.chance(0.5);
    sampling.seed = random_.next() % 1'000;
    controller_.apply(act::ChangeSampling{id, sampling});
    if (chat->messages.empty() && random_.chance(0.7))
      controller_.apply(act::ChangeSystemPrompt{id, "be brief and kind, and name the room of each thing"});
    ask_for(id, act::SendMessage{id, some_text()});
  }

  void regenerate() {
    what_ = "regenerate";
    const ui::ChatState* chat = any_chat();
    if (chat == nullptr || chat->activity != ui::Activity::kIdle || chat->messages.empty()) return;
    const ChatId id = chat->id;
    ask_for(id, act::Regenerate{id, chat->messages.back().id});
  }

  void stop_somebody() {
    what_ = "stop";
    for (const ui::ChatState& chat : state().chats) {
      if (chat.activity == ui::Activity::kIdle || random_.chance(0.5)) continue;
      ++seen_.cancels;
      return controller_.apply(act::StopAnswer{chat.id});
    }
  }

  void delete_chat() {
    what_ = "delete";
    const ui::ChatState* chat = any_chat();
    if (chat == nullptr || state().chats.size() < 3) return;
    const ChatId id = chat->id;
    controller_.apply(act::DeleteChat{id});
    if (random_.chance(0.5)) {
      deleted_ = true;
    } else {
      requests_.erase(id);
      left_.erase(id);
      deleted_ = false;
    }
  }

  void undo_delete() {
    what_ = "undo delete";
    if (std::exchange(deleted_, false)) controller_.apply(act::UndoDelete{});
  }

  void compare() {
    what_ = "compare";
    const ui::ChatState* chat = any_chat();
    if (chat == nullptr || chat->messages.empty() || state().comparison.running) return;
    controller_.apply(act::OpenComparison{chat->id, chat->messages.front().id});
    ui::ComparisonSetup setup = state().comparison.setup;
    setup.kind = static_cast<ui::ComparisonKind>(random_.between(0, 2));
    setup.num_samples = setup.beam_width = random_.between(2, 4);
    setup.sampling.max_tokens = random_.between(1, 30);
    setup.sampling.temperature = 1.0;
    setup.variants.assign(2, {.sampling = setup.sampling});
    setup.variants.back().sampling.temperature = 0.5;
    controller_.apply(act::ChangeComparison{setup});
    const RequestId first = engines_.back()->next_request();
    controller_.apply(act::RunComparison{});
    std::vector<testing::ColumnsRecount::Column> columns;
    const bool are_seats = setup.kind == ui::ComparisonKind::kBeams;
    const std::int32_t num_outputs = setup.kind == ui::ComparisonKind::kSettings ? 1 : setup.num_samples;
    for (std::uint64_t id = first.value; id < engines_.back()->next_request().value; ++id) {
      for (std::int32_t output = 0; output < num_outputs; ++output)
        columns.push_back({RequestId{id}, output});
    }
    columns_.begin(std::move(columns), are_seats);
  }

  void stop_comparing() {
    what_ = "stop comparing";
    if (state().comparison.running) controller_.apply(act::StopComparison{});
  }

  void look_elsewhere() {
    what_ = "another workspace";
    const std::int32_t choice = random_.between(0, 5);
    controller_.apply(act::ShowWorkspace{choice == 0   ? ui::Workspace::kChat
                                         : choice == 1 ? ui::Workspace::kCompare
                                                       : ui::Workspace::kMemory});
    controller_.apply(act::FollowNewest{});
  }

  void look_back() {
    if (moments_.empty() || state().workspace != ui::Workspace::kMemory) return;
    what_ = "look back";
    const auto index = random_.between(0, static_cast<std::int32_t>(moments_.size()) - 1);
    const Recount& truth = moments_[static_cast<std::size_t>(index)];
    controller_.apply(act::SeekMark{truth.mark});
    testing::Differences differences;
    differences.compare_past(truth, state().memory_workspace);
    past_ = differences.text();
    ++seen_.past;
    controller_.apply(act::FollowNewest{});
  }

  // ---- what is drawn
  // The window is woken by events and by snapshots, and asks once more.
  void hear() {
    controller_.poll_engine();
    for (const auto& engine : engines_) engine->wake();
    controller_.poll_engine();
  }

  std::string differences() {
    const CoreEngine& engine = *engines_.back();
    const Recount truth = testing::recount(engine);
    testing::Differences found;
    found.compare_chats(engine, truth, requests_, left_, state());
    found.compare_timeline(truth, *state().memory.timeline);
    found.compare_bar(engine.description(), state().memory_workspace.bar);
    if (state().workspace == ui::Workspace::kMemory) found.compare_workspace(truth, state().memory_workspace);
    columns_.look(truth);
    std::string text = std::exchange(past_, {}) + found.text() + columns_.difference(state().comparison);
    if (const auto broken = engine.core().scheduler().broken_invariant()) text += "the engine: " + *broken;
    if (!text.empty()) text += newest_events(*engine.core().recorder(), truth.mark);
    if (moments_.empty() || moments_.back().mark != truth.mark) moments_.push_back(truth);
    if (moments_.size() > kMomentsKept) moments_.pop_front();
    count(truth);
    return text;
  }

  void count(const Recount& truth) {
    for (const ui::ChatState& chat : state().chats) seen_.chats_shared += chat.memory.num_shared > 0 ? 1 : 0;
    for (const ui::ComparedColumn& column : state().comparison.columns)
      seen_.columns_shared += column.memory.num_shared > 0 ? 1 : 0;
    seen_.kept_windows += truth.kept_windows;
  }

  void count_the_end() {
    for (const auto& engine : engines_) {
      const KvTotals& totals = engine->core().totals();
      seen_.swapped_out += totals.swapped_out_blocks;
      seen_.swapped_in += totals.swapped_in_blocks;
      seen_.dropped += totals.preempted_recompute;
      seen_.copies += totals.cow_copies;
      seen_.evictions += totals.evicted_cached_blocks;
      seen_.hits += totals.prefix_hit_tokens;
      seen_.rows_ahead += engine->counts().rows_ahead;
      seen_.states.num_taken += totals.states.num_taken;
      seen_.states.num_resumed += totals.states.num_resumed;
      seen_.states.num_evicted += totals.states.num_evicted;
      seen_.states.num_swapped_out += totals.states.num_swapped_out;
      seen_.windows.num_left += totals.windows.num_left;
      seen_.windows.num_evicted += totals.windows.num_evicted;
      seen_.windows.num_swapped_out += totals.windows.num_swapped_out;
      seen_.windows.num_swapped_in += totals.windows.num_swapped_in;
    }
    for (const ui::LogLine& line : state().memory.timeline->log) {
      seen_.forks += line.kind == BlockEventKind::kFork ? 1 : 0;
      seen_.window_misses += line.kind == BlockEventKind::kWindowMiss ? 1 : 0;
    }
    seen_.levels += static_cast<std::int64_t>(state().memory.timeline->levels.size());
  }

  Random random_;
  Seen& seen_;
  ManualClock clock_;
  std::vector<std::unique_ptr<CoreEngine>> engines_;  // the newest last; older ones end what they were asked
  Controller controller_;
  std::map<ChatId, std::vector<RequestId>> requests_;  // of the newest engine
  std::map<ChatId, testing::Differences::Left> left_;
  testing::ColumnsRecount columns_;
  std::deque<Recount> moments_;  // of the newest engine
  std::string what_, past_;
  bool deleted_ = false;  // a chat that may come back
};

std::int64_t number_from(const char* name, std::int64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::max<std::int64_t>(1, std::atoll(text));
}

TEST(MemoryTruth, EveryNumberIsWhatARecountGivesAfterEachEventOfRandomLives) {
  const std::int64_t num_events = number_from("OCTAVO_MEMORY_EVENTS", 5'000);
  const std::int64_t only = number_from("OCTAVO_MEMORY_LIFE", 0);
  Seen seen;
  for (std::uint64_t number = 1; seen.events < num_events; ++number) {
    if (only > 0) number = static_cast<std::uint64_t>(only);
    const std::string difference = Life(number, seen).live();
    ASSERT_EQ(difference, "") << "life " << number << ", event " << seen.events;
    if (only > 0) return;
  }
  EXPECT_GT(seen.swapped_out, 0);
  EXPECT_GT(seen.swapped_in, 0);
  EXPECT_GT(seen.dropped, 0) << "computed again";
  EXPECT_GT(seen.copies, 0);
  EXPECT_GT(seen.evictions, 0);
  EXPECT_GT(seen.hits, 0);
  EXPECT_GT(seen.forks, 0) << "samples and beams";
  EXPECT_GT(seen.cancels, 0);
  EXPECT_GT(seen.model_changes, 0);
  EXPECT_GT(seen.past, 0);
  EXPECT_GT(seen.idle, 0);
  EXPECT_GT(seen.rows_ahead, 0);
  EXPECT_GT(seen.chats_shared, 0);
  EXPECT_GT(seen.columns_shared, 0);
  EXPECT_GT(seen.levels, 0) << "pools that changed without a step";
  EXPECT_GT(seen.states.num_taken, 0) << "checkpoints";
  EXPECT_GT(seen.states.num_resumed, 0);
  EXPECT_GT(seen.states.num_evicted, 0);
  EXPECT_GT(seen.states.num_swapped_out, 0);
  EXPECT_GT(seen.windows.num_left, 0) << "window parts";
  EXPECT_GT(seen.windows.num_evicted, 0);
  EXPECT_GT(seen.windows.num_swapped_out, 0);
  EXPECT_GT(seen.windows.num_swapped_in, 0);
  EXPECT_GT(seen.kept_windows, 0);
  EXPECT_GT(seen.window_misses, 0);
}

}  // namespace
}  // namespace octavo::app
