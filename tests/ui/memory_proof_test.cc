// The proof that memory is seen: chats, samples and beams of the default model in a pool that is too small
// for them. What the Memory workspace shows is asserted from the engine's events, and once more from a
// recording that a second window opens without a model. Pictures: tests/output/proof-*.png.

#include <imgui.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/support/environment.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

constexpr std::int32_t kNumBlocks = 150;
// Keys and values, f16, layers, KV heads, head, tokens
constexpr double kBytesOfABlock = 2.0 * 2 * 30 * 3 * 64 * 16;
constexpr double kNumHostBlocks = 120;
constexpr std::size_t kNumChats = 4;
constexpr std::int32_t kAnswerTokens = 800;

constexpr const char* kGuide =
    "You are the guide of a small museum of the sea. The museum stands at the end of a stone pier, and it "
    "has nine "
    "rooms: the hall of charts, the room of knots, the room of lamps, the room of storms, the quiet room, "
    "the room of "
    "letters, the room of instruments, the room of birds and the workshop. Visitors are of every age. Answer "
    "each of "
    "them in complete sentences, warmly and without haste. Say what is known and what is only told. Name the "
    "room in "
    "which a thing can be seen, and the way to it from the hall. Do not make up dates: if you are not sure, "
    "say about "
    "when it was. Never use more than three paragraphs, and never a list. When somebody asks about a thing "
    "that the "
    "museum does not have, say so in the first sentence and then tell what comes nearest to it. When a child "
    "asks, "
    "explain the words that a child may not know. Things must not be touched except in the workshop, where "
    "everything "
    "may be touched. The lamps are lit at noon and at four; the storm machine runs every full hour; the "
    "birds are "
    "counted in the evening from the roof, and whoever wants to count with us is welcome. The café is closed "
    "on "
    "Mondays. End every answer with one short question to the visitor, so that the chat may go on.";

constexpr std::array<const char*, kNumChats> kQuestions = {
    "Tell me about the lamp of the old lighthouse.",
    "How did people find their way before there were clocks?", "Which storm does everybody here remember?",
    "What do the birds on the roof eat in winter?"};

// What a view of memory shows at a moment, without what only a live engine knows (the tokens' text, why a
// block stays).
struct Shown {
  std::shared_ptr<const KvSnapshot> snapshot;
  std::vector<ui::ShownBlock> blocks;
  std::vector<ui::ShownHostBlock> host;
  std::vector<ui::TableLine> lines;
  std::vector<ui::SharingGroup> groups;
  std::vector<ui::PrefixRun> tree;
  std::vector<ui::HealthFigure> health;
  std::vector<ui::HealthSentence> sentences;
};

Shown shown_in(const ui::MemoryWorkspaceState& state) {
  return {state.snapshot, state.blocks, state.host,   state.lines,
          state.groups,   state.tree,   state.health, state.sentences};
}

void expect_same_pools(const Shown& live, const Shown& recorded) {
  ASSERT_EQ(live.snapshot->blocks.size(), recorded.snapshot->blocks.size());
  for (std::size_t i = 0; i < live.snapshot->blocks.size(); ++i) {
    const BlockSnapshot &a = live.snapshot->blocks[i], &b = recorded.snapshot->blocks[i];
    EXPECT_EQ(a.state, b.state) << i;
    EXPECT_EQ(a.ref_count, b.ref_count) << i;
    EXPECT_EQ(a.num_pins, b.num_pins) << i;
    EXPECT_EQ(a.filled, b.filled) << i;
    EXPECT_EQ(a.parent, b.parent) << i;
    EXPECT_EQ(a.findable, b.findable) << i;
    EXPECT_EQ(a.last_step, b.last_step) << i;
    EXPECT_EQ(a.first_owner, b.first_owner) << i;
    EXPECT_EQ(live.blocks[i].owner, recorded.blocks[i].owner) << i;
    EXPECT_EQ(live.blocks[i].group, recorded.blocks[i].group) << i;
    EXPECT_EQ(live.blocks[i].last_us, recorded.blocks[i].last_us) << i;
  }
  ASSERT_EQ(live.host.size(), recorded.host.size());
  for (std::size_t i = 0; i < live.host.size(); ++i) {
    EXPECT_EQ(live.host[i].is_used, recorded.host[i].is_used) << i;
    EXPECT_EQ(live.host[i].filled, recorded.host[i].filled) << i;
    EXPECT_EQ(live.host[i].owner, recorded.host[i].owner) << i;
  }
}

void expect_same_tables(const Shown& live, const Shown& recorded) {
  ASSERT_EQ(live.lines.size(), recorded.lines.size());
  for (std::size_t i = 0; i < live.lines.size(); ++i) {
    const ui::TableLine &a = live.lines[i], &b = recorded.lines[i];
    EXPECT_EQ(a.label, b.label) << i;
    EXPECT_EQ(a.sequence, b.sequence) << a.label;
    EXPECT_EQ(a.blocks, b.blocks) << a.label;
    EXPECT_EQ(a.state, b.state) << a.label;
    EXPECT_EQ(a.is_heading, b.is_heading) << a.label;
    EXPECT_EQ(a.is_indented, b.is_indented) << a.label;
    EXPECT_EQ(a.num_shared_prefix, b.num_shared_prefix) << a.label;
    EXPECT_EQ(a.colour_index, b.colour_index) << a.label;
  }
  ASSERT_EQ(live.groups.size(), recorded.groups.size());
  for (std::size_t i = 0; i < live.groups.size(); ++i) {
    EXPECT_EQ(live.groups[i].label, recorded.groups[i].label);
    EXPECT_EQ(live.groups[i].num_blocks, recorded.groups[i].num_blocks);
  }
  ASSERT_EQ(live.tree.size(), recorded.tree.size());
  for (std::size_t i = 0; i < live.tree.size(); ++i) {
    EXPECT_EQ(live.tree[i].blocks, recorded.tree[i].blocks) << i;
    EXPECT_EQ(live.tree[i].parent, recorded.tree[i].parent) << i;
    EXPECT_EQ(live.tree[i].num_references, recorded.tree[i].num_references) << i;
    EXPECT_EQ(live.tree[i].num_hits, recorded.tree[i].num_hits) << i;
    EXPECT_EQ(live.tree[i].eviction_place, recorded.tree[i].eviction_place) << i;
  }
}

// Every full block of the guide's text stands in all four tables, and nowhere twice.
void expect_shared_guide(const Shown& shown) {
  const auto& sequences = shown.snapshot->sequences;
  ASSERT_EQ(sequences.size(), kNumChats);
  std::size_t num_common = 0;
  const auto& table = sequences.front().block_table;
  while (std::ranges::all_of(sequences, [&](const SequenceSnapshot& sequence) {
    return num_common < sequence.block_table.size() && sequence.block_table[num_common] == table[num_common];
  })) {
    EXPECT_EQ(shown.snapshot->blocks[static_cast<std::size_t>(table[num_common].value)].ref_count,
              static_cast<std::int32_t>(kNumChats));
    ++num_common;
  }
  EXPECT_GE(num_common, 15u) << "240 tokens of the system prompt";
  const KvFigures& figures = shown.snapshot->figures;
  EXPECT_EQ(figures.logical_blocks - figures.used_blocks, static_cast<std::int32_t>(3 * num_common));
  EXPECT_EQ(figures.saved_bytes,
            static_cast<std::int64_t>(3 * num_common) * shown.snapshot->totals.bytes_per_block);
}

void expect_same_figures(const Shown& live, const Shown& recorded) {
  ASSERT_EQ(live.health.size(), recorded.health.size());
  for (std::size_t i = 0; i < live.health.size(); ++i) {
    EXPECT_EQ(live.health[i].value, recorded.health[i].value) << live.health[i].label;
    EXPECT_EQ(live.health[i].note, recorded.health[i].note) << live.health[i].label;
    EXPECT_EQ(live.health[i].samples.size(), recorded.health[i].samples.size()) << live.health[i].label;
  }
  ASSERT_EQ(live.sentences.size(), recorded.sentences.size());
  for (std::size_t i = 0; i < live.sentences.size(); ++i)
    EXPECT_EQ(live.sentences[i].text, recorded.sentences[i].text);
}

class MemoryProof : public WindowTest {
 protected:
  void open_small_pool(const std::string& model) {
    app::Settings settings = large_settings();
    settings.sampling.temperature = 0.7;
    settings.sampling.max_tokens = kAnswerTokens;
    settings.sampling.ignore_eos = true;  // long enough to be seen together on any machine
    const auto factory = [](EngineOptions options, LoadProgress progress) {
      options.num_kv_blocks = kNumBlocks;
      options.swap_space = (kNumHostBlocks + 0.5) * kBytesOfABlock / (1 << 30);
      options.preemption_mode = PreemptionPolicy::kSwap;
      return Engine::create(options, std::move(progress));
    };
    open_with(factory, model, settings);
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  void inspect(const ui::actions::MemoryAction& action) { apply(action); }
  const ui::MemoryWorkspaceState& memory_workspace() const { return state().memory_workspace; }

  // On a machine that does other things besides, the model may need minutes.
  bool wait_until(const std::function<bool()>& done) {
    for (int attempt = 0; attempt < 15; ++attempt) {
      if (loop_until(done)) return true;
    }
    return false;
  }

  void ask(std::size_t index) {
    apply(ui::actions::NewChat{});
    SamplingParams sampling = chat().sampling;
    sampling.seed = 100 + index;
    apply(ui::actions::ChangeSystemPrompt{chat().id, kGuide});
    apply(ui::actions::ChangeSampling{chat().id, sampling});
    apply(ui::actions::SendMessage{chat().id, kQuestions[index]});
    ids_[index] = chat().id;
  }
  const ui::ChatState& asked(std::size_t index) const { return *ui::find_chat(state(), ids_[index]); }
  void compare(std::size_t index, ui::ComparisonKind kind, std::int32_t max_tokens) {
    apply(ui::actions::OpenComparison{ids_[index], asked(index).messages.front().id});
    ui::ComparisonSetup setup = state().comparison.setup;
    setup.kind = kind;
    setup.num_samples = setup.beam_width = 4;
    setup.sampling.temperature = 1.0;
    setup.sampling.seed = 7;
    setup.sampling.max_tokens = max_tokens;
    apply(ui::actions::ChangeComparison{setup});
    apply(ui::actions::RunComparison{});
  }
  bool is_swapped(const ui::ChatState& chat) const { return chat.activity == ui::Activity::kSwapped; }
  bool all_idle() const {
    return !state().comparison.running && std::ranges::all_of(state().chats, [](const ui::ChatState& chat) {
      return chat.activity == ui::Activity::kIdle;
    });
  }
  bool every_chat_generates() const {
    return std::ranges::all_of(ids_, [this](ChatId id) {
      const ui::ChatState* chat = ui::find_chat(state(), id);
      return chat->activity == ui::Activity::kGenerating && !chat->messages.empty() &&
             chat->messages.back().text.size() > 40;
    });
  }
  // The first line of the log of this kind; its mark is that of its first event.
  const ui::LogLine& first(BlockEventKind kind) const {
    const auto& log = memory_workspace().timeline->log;
    const auto found = std::ranges::find(log, kind, &ui::LogLine::kind);
    if (found == log.end())
      throw std::runtime_error("it never happened: " + std::string(block_event_kind_name(kind)));
    return *found;
  }
  std::int64_t count(BlockEventKind kind) const {
    std::int64_t total = 0;
    for (const ui::LogLine& line : memory_workspace().timeline->log)
      total += line.kind == kind ? line.count : 0;
    return total;
  }
  // Whether a sequence of the comparison whose name ends so ran while a chat did.
  bool ran_beside_a_chat(const std::string& end) const {
    const auto& names = memory_workspace().timeline->names;
    const auto is_chat = [&](const ui::ScheduleSpan& span) {
      const auto name = names.find(span.sequence);
      return name != names.end() && name->second.chat_id != ChatId{};
    };
    const auto runs = [](const ui::ScheduleSpan& span) { return span.state == SequenceState::kRunning; };
    for (const ui::ScheduleSpan& span : memory_workspace().timeline->spans) {
      const auto name = names.find(span.sequence);
      if (!runs(span) || name == names.end() || !name->second.label.ends_with(end)) continue;
      for (const ui::ScheduleSpan& other : memory_workspace().timeline->spans) {
        if (is_chat(other) && runs(other) && other.begin_us < span.end_us && span.begin_us < other.end_us)
          return true;
      }
    }
    return false;
  }
  // When the step to which this event belongs was done.
  std::uint64_t end_of_step(std::uint64_t mark) const {
    for (const ui::TimelineStep& step : memory_workspace().timeline->steps) {
      if (step.mark > mark) return step.mark;
    }
    return memory_workspace().timeline->newest_mark;
  }
  Shown show_at(std::uint64_t mark) {
    inspect(ui::actions::SeekMark{mark});
    EXPECT_EQ(memory_workspace().cursor.problem, "");
    return shown_in(memory_workspace());
  }
  void shoot(const std::string& name) {
    draw_frames(3);
    write_screenshot("proof-" + name);
  }
  void press_here(ImGuiKey key) {
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddKeyEvent(key, down);
      draw_frames(1);
    }
  }
  void open_recording_alone(const std::string& path) {
    application_.reset();
    app::WindowOptions options;
    options.settings_path = folder_ / "settings.json";
    options.chats_path.clear();
    options.recording = path;
    const auto no_engine = [](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> {
      return Error{ErrorCode::kNotFound, "this window has no model"};
    };
    auto application = app::Application::start(options, no_engine, *clock_);
    ASSERT_TRUE(application) << application.error().message;
    application_ = *std::move(application);
    ASSERT_TRUE(loop_until([this] { return memory_workspace().source == ui::MemorySource::kRecording; }));
  }

  std::array<ChatId, kNumChats> ids_;
};

TEST_F(MemoryProof, SharingCopiesAndSwapsOfTheRealModelAreSeenLiveAndInARecording) {
  if (IsSkipped()) return;
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const std::string model = model::default_model_path().string();
  const test::EnvironmentVariable recordings("XDG_DATA_HOME", folder_.string());
  open_small_pool(model);
  if (HasFatalFailure()) return;
  inspect(ui::actions::StartRecording{});
  ASSERT_TRUE(memory_workspace().recording.is_recording);
  const std::string recording = memory_workspace().recording.path;

  // Four chats, the first a little ahead: its prompt is what the others find.
  ask(0);
  ASSERT_TRUE(wait_until([this] { return asked(0).activity == ui::Activity::kGenerating; }));
  for (std::size_t i = 1; i < kNumChats; ++i) ask(i);
  ASSERT_TRUE(wait_until([this] { return every_chat_generates(); }));
  inspect(ui::actions::PauseMemory{});
  const std::uint64_t shared_mark = memory_workspace().cursor.mark;

  // Samples, then beams, of the chats' own questions, while the chats go on.
  compare(0, ui::ComparisonKind::kSamples, 96);
  apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
  shoot("sharing");
  inspect(ui::actions::FollowNewest{});
  bool saw_swapped_chat = false;
  const auto watch = [&] {
    const auto swapped =
        std::ranges::find_if(state().chats, [this](const auto& chat) { return is_swapped(chat); });
    if (!saw_swapped_chat && swapped != state().chats.end() && !swapped->memory.host_blocks.empty()) {
      saw_swapped_chat = true;
      apply(ui::actions::SelectChat{swapped->id});
      apply(ui::actions::ShowWorkspace{ui::Workspace::kChat});
      shoot("swapped-chat");
    }
    return !state().comparison.running;
  };
  ASSERT_TRUE(wait_until(watch));
  apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
  shoot("samples");
  compare(1, ui::ComparisonKind::kBeams, 96);
  bool saw_beams = false;
  ASSERT_TRUE(wait_until([&] {
    if (!saw_beams && state().comparison.beams.live.size() == 4 && state().comparison.seats.size() == 4) {
      saw_beams = true;
      shoot("beams");
    }
    return watch();
  }));
  ASSERT_TRUE(wait_until([&] {
    (void)watch();
    return all_idle();
  }));
  for (std::size_t i = 0; i < kNumChats; ++i)
    EXPECT_EQ(asked(i).messages.size(), 2u)
        << "a pool that is too small slows chats down and never ends them";
  EXPECT_TRUE(saw_beams);

  // What really happened, by the engine's events.
  apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
  draw_frames(2);
  inspect(ui::actions::StopRecording{});
  apply(ui::actions::DismissBanner{});
  EXPECT_GE(count(BlockEventKind::kHit), 3 * 15)
      << "three chats found the beginning that the first one computed";
  EXPECT_GE(count(BlockEventKind::kShare), 6) << "three samples and three beams took the prompt over by fork";
  EXPECT_GE(count(BlockEventKind::kCopyOnWrite), 4) << "who writes into a shared block first gets a copy";
  EXPECT_GE(count(BlockEventKind::kSwapOut), 1);
  EXPECT_EQ(count(BlockEventKind::kSwapOut), state().memory.snapshot->totals.swapped_out_blocks);
  EXPECT_EQ(count(BlockEventKind::kSwapIn), state().memory.snapshot->totals.swapped_in_blocks);
  EXPECT_GE(count(BlockEventKind::kSwapIn), 1);
  EXPECT_TRUE(saw_swapped_chat) << "some chat had to wait in the host pool";

  EXPECT_TRUE(ran_beside_a_chat("Sample 1"));
  EXPECT_TRUE(ran_beside_a_chat("Seat 1"));

  // Moments to look at, now and in the recording.
  const ui::LogLine swap_out = first(BlockEventKind::kSwapOut), swap_in = first(BlockEventKind::kSwapIn);
  const ui::LogLine copy = first(BlockEventKind::kCopyOnWrite);
  const std::map<std::string, std::uint64_t> marks = {{"sharing", shared_mark},
                                                      {"before-swap", swap_out.mark},
                                                      {"first-swap", end_of_step(swap_out.last_mark)},
                                                      {"swap-in", end_of_step(swap_in.last_mark)},
                                                      {"copy", end_of_step(copy.last_mark)},
                                                      {"end", memory_workspace().timeline->newest_mark}};
  std::map<std::string, Shown> live;
  for (const auto& [name, mark] : marks) live[name] = show_at(mark);

  expect_shared_guide(live["sharing"]);
  EXPECT_EQ(live["before-swap"].snapshot->figures.host_used_blocks, 0);
  const Shown& swapped = live["first-swap"];
  EXPECT_GE(swapped.snapshot->figures.host_used_blocks, swap_out.count);
  EXPECT_TRUE(std::ranges::any_of(swapped.snapshot->sequences, [](const SequenceSnapshot& sequence) {
    return sequence.state == SequenceState::kSwapped && !sequence.block_table.empty();
  }));
  EXPECT_TRUE(std::ranges::any_of(swapped.sentences, [](const ui::HealthSentence& sentence) {
    return sentence.text.find("was swapped out") != std::string::npos;
  }));
  EXPECT_GT(live["sharing"].snapshot->figures.internal_fragmentation, 0.0);
  EXPECT_LT(live["sharing"].snapshot->figures.internal_fragmentation, 0.25)
      << "fewer than a block a sequence";

  show_at(marks.at("copy"));
  inspect(ui::actions::ChooseBlock{copy.aux});
  ASSERT_TRUE(memory_workspace().card);
  EXPECT_EQ(memory_workspace().card->copied_from, copy.first_block);
  shoot("copy-on-write");
  inspect(ui::actions::ChooseBlock{-1});
  show_at(marks.at("first-swap"));
  shoot("first-swap");
  show_at(marks.at("swap-in"));
  shoot("swap-in");
  show_at(marks.at("sharing"));
  press_here(ImGuiKey_M);
  shoot("figures");
  press_here(ImGuiKey_M);

  // The same without the model.
  open_recording_alone(recording);
  EXPECT_EQ(memory_workspace().timeline->newest_mark, marks.at("end"));
  for (const auto& [name, mark] : marks) {
    SCOPED_TRACE(name);
    const Shown recorded = show_at(mark);
    expect_same_pools(live[name], recorded);
    expect_same_tables(live[name], recorded);
    expect_same_figures(live[name], recorded);
  }
  show_at(marks.at("first-swap"));
  shoot("recording-first-swap");
}

}  // namespace
}  // namespace octavo::testing
