// What a comparison asks of the engine, and what becomes of its reports.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/window/compare/compared_settings.h"
#include "app/window/compare/comparison.h"
#include "app/window/compare/comparison_export.h"
#include "app/window/controller.h"
#include "tests/window/compare_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

using app::Comparison;
using ui::ColumnPhase;
using ui::ComparisonKind;

class ComparisonFold : public ::testing::Test {
 protected:
  void SetUp() override {
    comparison_.attach_engine(engine_);
    open();
  }
  void open() {
    SamplingParams sampling;
    sampling.max_tokens = 20;
    comparison_.open(
        {.messages = {{Role::kUser, "Why?"}}, .chat_id = {1}, .message_id = {1}, .sampling = sampling});
  }
  void choose(ComparisonKind kind, std::int32_t count = 3) {
    ui::ComparisonSetup setup = state_.setup;
    setup.kind = kind;
    setup.num_samples = count;
    setup.beam_width = count;
    comparison_.change_setup(setup);
  }
  // As the workspace does when nothing has to leave the context.
  void ask() {
    const bool settings = state_.setup.kind == ComparisonKind::kSettings;
    const std::size_t num_lanes = settings ? state_.setup.variants.size() : 1;
    std::vector<Comparison::LanePrompt> prompts(num_lanes, {{state_.messages}, 0});
    for (std::size_t i = 0; settings && i < num_lanes; ++i) {
      const std::string& system = state_.setup.variants[i].system_prompt;
      auto& messages = prompts[i].prompt.messages;
      if (!system.empty()) messages.insert(messages.begin(), {Role::kSystem, system});
    }
    comparison_.run(prompts);
  }
  void fold(const EngineEvent& event) {
    EXPECT_TRUE(comparison_.fold(event));
    comparison_.finish_poll();
  }
  void accept(RequestId id, std::uint64_t seed = 11) {
    fold(RequestAccepted{id, std::vector<TokenId>(40, 5), seed});
    fold(RequestAdmitted{id, 16, 100});
  }
  void say(RequestId id, std::int32_t output, const std::vector<std::string>& tokens) {
    clock_.advance_us(10'000);
    fold(engine_.say(id, output, tokens));
  }
  void end(RequestId id, std::int32_t num_outputs, FinishReason reason = FinishReason::kStop) {
    for (std::int32_t i = 0; i < num_outputs; ++i) {
      OutputFinished finished;
      finished.request_id = id;
      finished.output_index = i;
      finished.finish_reason = reason;
      fold(finished);
    }
    fold(RequestFinished{id, {}, {}});
  }
  const ui::ComparedColumn& column(std::size_t index) const { return state_.columns.at(index); }

  ManualClock clock_;
  CompareEngine engine_;
  ui::ComparisonState state_;
  std::uint64_t next_seed_ = 100;
  Comparison comparison_{clock_, [this] { return next_seed_++; }, state_};
};

constexpr RequestId kFirst{1};

TEST_F(ComparisonFold, SequencesAreNamedByTheirColumnsAndBeamsByTheirSeats) {
  choose(ComparisonKind::kSamples, 3);
  EXPECT_FALSE(comparison_.name_of(kFirst, 0)) << "nothing was asked yet";
  ask();
  EXPECT_EQ(comparison_.name_of(kFirst, 0), "Compare · Sample 1");
  EXPECT_EQ(comparison_.name_of(kFirst, 2), "Compare · Sample 3");
  EXPECT_FALSE(comparison_.name_of(kFirst, 3));
  EXPECT_FALSE(comparison_.name_of(RequestId{99}, 0)) << "a chat's";
  choose(ComparisonKind::kBeams, 4);
  ask();
  EXPECT_EQ(comparison_.name_of(RequestId{2}, 3), "Compare · Seat 4");
  EXPECT_FALSE(comparison_.name_of(kFirst, 0)) << "of a comparison that is gone";
}

TEST_F(ComparisonFold, SamplesAreOneRequestWhoseOutputsAreColumns) {
  choose(ComparisonKind::kSamples, 3);
  ask();
  ASSERT_EQ(engine_.requests.size(), 1u);
  EXPECT_EQ(engine_.requests[0].sampling.n, 3);
  EXPECT_GT(engine_.requests[0].sampling.logprobs, 0);
  accept(kFirst);
  say(kFirst, 0, {"The", " rain", " sings"});
  say(kFirst, 1, {"The", " rain", " falls"});
  say(kFirst, 2, {"A"});
  say(kFirst, 0, {" on"});
  EXPECT_EQ(column(0).text, "The rain sings on");
  EXPECT_EQ(column(0).name, "Sample 1");
  EXPECT_EQ(column(1).seed, 11u);
  EXPECT_EQ(column(1).output_index, 1);
  EXPECT_EQ(column(0).shared_prefix, 2);
  EXPECT_EQ(column(2).shared_prefix, 0);
  EXPECT_NEAR(*column(0).mean_logprob(), -0.5, 1e-6);
  EXPECT_NEAR(*column(0).tokens_per_second, 3.0 / 0.03,
              1e-6);  // three tokens after the first report's first, in 30 ms
  EXPECT_TRUE(state_.running);
  EXPECT_EQ(state_.num_prompt_tokens, 40);
  EXPECT_EQ(state_.num_cached_tokens, 16);
  end(kFirst, 3);
  EXPECT_FALSE(state_.running);
  EXPECT_EQ(column(2).finish, "finished");
  EXPECT_DOUBLE_EQ(state_.progress, 1.0);
}

TEST_F(ComparisonFold, ACharacterOfSeveralTokensBelongsToTheLastOfThem) {
  ask();
  accept(kFirst);
  fold(engine_.say(kFirst, 0, {"a", "\xe2\x86"}));
  EXPECT_EQ(column(0).text, "a");
  fold(engine_.say(kFirst, 0, {"\x93", "b"}));
  EXPECT_EQ(column(0).text,
            "a\xe2\x86\x93"
            "b");
  const auto& tokens = column(0).tokens;
  EXPECT_EQ(tokens[1].begin, tokens[1].end);
  EXPECT_EQ(tokens[2].begin, 1u);
  EXPECT_EQ(tokens[2].end, 4u);
  fold(engine_.say(kFirst, 0, {"\xe2\x86"}));
  end(kFirst, 4, FinishReason::kLength);
  EXPECT_EQ(column(0).text,
            "a\xe2\x86\x93"
            "b\xef\xbf\xbd")
      << "an unfinished character is shown as such";
}

TEST_F(ComparisonFold, AStopStringIsNoPartOfTheText) {
  ask();
  accept(kFirst);
  TokensGenerated event = engine_.say(kFirst, 0, {"One", ".", "\n\n"});
  event.text = "One.";
  fold(event);
  OutputFinished finished;
  finished.request_id = kFirst;
  finished.stop_reason = std::string("\n\n");
  fold(finished);
  EXPECT_EQ(column(0).text, "One.");
  EXPECT_EQ(column(0).tokens.size(), 3u);
  EXPECT_EQ(column(0).finish, "stopped at \\x0a\\x0a");
  EXPECT_TRUE(comparison_.message_of(column(0).id)->token_ids.empty())
      << "ids that are not the text are not used again";
}

TEST_F(ComparisonFold, PreemptedColumnsSayThatTheyWaitAndGoOn) {
  ask();
  accept(kFirst);
  say(kFirst, 0, {"x"});
  fold(RequestPreempted{kFirst, 0, 41});
  EXPECT_EQ(column(0).phase, ColumnPhase::kPreempted);
  say(kFirst, 0, {"y"});
  EXPECT_EQ(column(0).phase, ColumnPhase::kRunning);
  EXPECT_EQ(column(0).text, "xy");
  fold(RequestPreempted{kFirst, 1, 41});
  EXPECT_EQ(column(0).phase, ColumnPhase::kRunning) << "only the second output is paused";
  EXPECT_EQ(column(1).phase, ColumnPhase::kPreempted);
}

TEST_F(ComparisonFold, AFailedRequestEndsItsColumnsWithTheSentence) {
  ask();
  accept(kFirst);
  say(kFirst, 1, {"half"});
  fold(RequestFailed{kFirst, {ErrorCode::kDevice, "the device gave up"}, {}});
  EXPECT_EQ(column(1).phase, ColumnPhase::kFailed);
  EXPECT_EQ(column(1).error, "the device gave up");
  EXPECT_EQ(column(1).text, "half");
  EXPECT_FALSE(state_.running);
}

TEST_F(ComparisonFold, StoppingCancelsAndKeepsWhatThereIs) {
  ask();
  accept(kFirst);
  say(kFirst, 0, {"half", " a", " line"});
  comparison_.stop();
  ASSERT_EQ(engine_.cancelled.size(), 1u);
  end(kFirst, 4, FinishReason::kAbort);
  EXPECT_EQ(column(0).phase, ColumnPhase::kStopped);
  EXPECT_EQ(column(0).text, "half a line");
  EXPECT_EQ(comparison_.message_of(column(0).id)->content, "half a line");
}

TEST_F(ComparisonFold, OneColumnIsStoppedAndTheOthersGoOn) {
  choose(ComparisonKind::kSamples, 3);
  ask();
  accept(kFirst);
  say(kFirst, 1, {"The", " rain"});
  comparison_.stop_column(column(1).id);
  EXPECT_EQ(engine_.cancelled_outputs,
            (std::vector<std::pair<RequestId, std::int32_t>>{{kFirst, column(1).output_index}}));
  EXPECT_TRUE(engine_.cancelled.empty());
  fold(OutputFinished{.request_id = kFirst, .output_index = 1, .finish_reason = FinishReason::kAbort});
  EXPECT_EQ(column(1).phase, ColumnPhase::kStopped);
  EXPECT_EQ(column(1).text, "The rain");
  EXPECT_TRUE(state_.running);
  say(kFirst, 0, {"A"});
  EXPECT_EQ(column(0).phase, ColumnPhase::kRunning);
  EXPECT_TRUE(comparison_.message_of(column(1).id)) << "what was written can be kept meanwhile";
  comparison_.stop_column(ui::ColumnId{999});
  EXPECT_EQ(engine_.cancelled_outputs.size(), 1u);
}

TEST_F(ComparisonFold, UnloadingTheModelEndsWhatRunsAndKeepsItsText) {
  ask();
  accept(kFirst);
  say(kFirst, 0, {"half"});
  comparison_.detach_engine("Stopped because the model was unloaded.");
  EXPECT_FALSE(state_.running);
  EXPECT_EQ(column(0).phase, ColumnPhase::kFailed);
  EXPECT_EQ(column(0).text, "half");
  EXPECT_EQ(column(0).error, "Stopped because the model was unloaded.");
  EXPECT_EQ(comparison_.message_of(column(0).id)->content, "half");
  EXPECT_FALSE(comparison_.can_run_again());
  ask();
  EXPECT_FALSE(state_.problem.empty());
  EXPECT_FALSE(comparison_.fold(RequestFinished{kFirst, {}, {}})) << "late events belong to nobody";
}

TEST_F(ComparisonFold, EventsOfARunThatWasReplacedArePassedOver) {
  ask();
  accept(kFirst);
  ask();
  EXPECT_EQ(engine_.cancelled.size(), 1u);
  EXPECT_FALSE(comparison_.fold(engine_.say(kFirst, 0, {"late"})));
  EXPECT_TRUE(comparison_.fold(engine_.say(RequestId{2}, 0, {"new"})));
  EXPECT_EQ(column(0).text, "new");
}

TEST_F(ComparisonFold, RunAgainAsksWithTheSameSeedAndTokensAndSaysWhetherTheTextIsTheSame) {
  choose(ComparisonKind::kSamples, 2);
  ask();
  accept(kFirst, 77);
  say(kFirst, 0, {"same", " text"});
  say(kFirst, 1, {"other"});
  end(kFirst, 2);
  comparison_.run_again();
  ASSERT_EQ(engine_.requests.size(), 2u);
  EXPECT_EQ(engine_.requests[1].sampling.seed, 77u);
  EXPECT_EQ(std::get<TokenPrompt>(engine_.requests[1].prompt).token_ids, std::vector<TokenId>(40, 5));
  EXPECT_TRUE(column(0).tokens.empty());
  accept(RequestId{2}, 77);
  say(RequestId{2}, 0, {"same", " text"});
  say(RequestId{2}, 1, {"changed"});
  end(RequestId{2}, 2);
  EXPECT_EQ(column(0).repeats, true);
  EXPECT_EQ(column(1).repeats, false);
}

TEST_F(ComparisonFold, AForkBeginsWithTheTokensBeforeAndTheAlternative) {
  choose(ComparisonKind::kSamples, 2);
  ask();
  accept(kFirst, 5);
  say(kFirst, 0, {"The"});
  fold(engine_.say_one_of(kFirst, 0, " cat", {" dog", ""}));
  say(kFirst, 0, {" sleeps"});
  end(kFirst, 2);
  comparison_.fork(column(0).id, 1, 2);
  EXPECT_EQ(engine_.requests.size(), 1u) << "an alternative that ends the text has nothing behind it";
  comparison_.fork(column(0).id, 1, 1);
  ASSERT_EQ(engine_.requests.size(), 2u);
  std::vector<TokenId> wanted(40, 5);
  wanted.push_back(engine_.spelling().token("The"));
  wanted.push_back(engine_.spelling().token(" dog"));
  EXPECT_EQ(std::get<TokenPrompt>(engine_.requests[1].prompt).token_ids, wanted);
  EXPECT_EQ(engine_.requests[1].sampling.n, 1);
  EXPECT_EQ(engine_.requests[1].sampling.max_tokens, 18);
  EXPECT_EQ(engine_.requests[1].sampling.seed, 5u);
  ASSERT_EQ(state_.columns.size(), 3u);
  const ui::ComparedColumn& fork = column(1);  // beside the column that it came from
  EXPECT_EQ(fork.name, "Fork 1 of Sample 1");
  EXPECT_EQ(fork.text, "The dog");
  EXPECT_EQ(fork.num_forced, 2);
  EXPECT_EQ(fork.shared_prefix, 1);
  fold(RequestAccepted{RequestId{2}, wanted, 5});
  EXPECT_EQ(state_.num_prompt_tokens, 40) << "the fork's prompt is longer than the question's";
  say(RequestId{2}, 0, {" barks"});
  end(RequestId{2}, 1);
  EXPECT_EQ(column(1).text, "The dog barks");
  comparison_.run_again();
  EXPECT_EQ(column(1).text, "The dog");
  EXPECT_EQ(std::get<TokenPrompt>(engine_.requests[3].prompt).token_ids, wanted);
}

TEST_F(ComparisonFold, SettingsAreARequestEachWithOneSeedAndSayWhatDiffers) {
  choose(ComparisonKind::kSettings);
  ui::ComparisonSetup setup = state_.setup;
  setup.variants.assign(2, {});
  setup.variants[0].sampling.temperature = 0.2;
  setup.variants[1].sampling.temperature = 0.9;
  setup.variants[1].sampling.top_p = 0.8;
  comparison_.change_setup(setup);
  ask();
  ASSERT_EQ(engine_.requests.size(), 2u);
  EXPECT_EQ(engine_.requests[1].sampling.n, 1);
  EXPECT_EQ(engine_.requests[0].sampling.seed, 100u);
  EXPECT_EQ(engine_.requests[1].sampling.seed, 100u) << "the seed makes no difference between them";
  EXPECT_EQ(column(0).name, "Settings A");
  EXPECT_EQ(column(1).differences, "temperature 0.9 · top-p 0.8");
  accept(RequestId{1}, 100);
  accept(RequestId{2}, 100);
  say(RequestId{2}, 0, {"hot"});
  EXPECT_EQ(column(1).text, "hot");
  EXPECT_EQ(column(1).seed, 100u);
  end(RequestId{1}, 1);
  EXPECT_TRUE(state_.running);
  end(RequestId{2}, 1);
  EXPECT_FALSE(state_.running);
  setup.sampling.seed = 7;
  comparison_.change_setup(setup);
  ask();
  EXPECT_EQ(engine_.requests[2].sampling.seed, 7u);
  EXPECT_EQ(engine_.requests[3].sampling.seed, 7u);
}

TEST(SettingsDifferences, NameEverySettingThatDiffersAndNoOther) {
  std::vector<ui::ComparedSettings> all(2);
  EXPECT_EQ(app::settings_differences(all[0], all), "");
  SamplingParams& other = all[1].sampling;
  other.temperature = 0.5;
  other.top_p = 0.9;
  other.top_k = 40;
  other.min_p = 0.05;
  other.repetition_penalty = 1.1;
  other.presence_penalty = 0.5;
  other.frequency_penalty = -0.5;
  other.max_tokens = 99;
  other.min_tokens = 3;
  other.stop = {"END", "\n\n"};
  all[1].system_prompt = "Be brief.\nAnd kind.";
  EXPECT_EQ(app::settings_differences(all[1], all),
            "temperature 0.5 · top-p 0.9 · top-k 40 · min-p 0.05 · repetition 1.1 · presence 0.5 · frequency "
            "-0.5 · length 99 · at least 3 · stop “END”, “\\x0a\\x0a” · system prompt “Be brief. And kind.”");
  EXPECT_EQ(
      app::settings_differences(all[0], all),
      "temperature 1 · top-p 1 · top-k off · min-p 0 · repetition 1 · presence 0 · frequency 0 · length "
      "16 · at least 0 · stop none · system prompt none");
  all.assign(3, {});
  all[1].template_values = {{"enable_thinking", false}, {"reasoning_effort", "low"}};
  all[2].template_values = {{"enable_thinking", true}, {"reasoning_effort", "low"}};
  EXPECT_EQ(app::settings_differences(all[0], all), "enable thinking as usual · reasoning effort as usual");
  EXPECT_EQ(app::settings_differences(all[1], all), "enable thinking off · reasoning effort low");
  EXPECT_EQ(app::settings_differences(all[2], all), "enable thinking on · reasoning effort low");
  all.erase(all.begin());
  EXPECT_EQ(app::settings_differences(all[1], all), "enable thinking on");
  all.assign(2, {});
  all[0].sampling.seed = 1;
  EXPECT_EQ(app::settings_differences(all[0], all), "") << "a seed is shown by itself";
}

TEST_F(ComparisonFold, ALaneKnowsHowLongItsOwnPromptIs) {
  choose(ComparisonKind::kSettings);
  ui::ComparisonSetup setup = state_.setup;
  setup.variants[1].system_prompt = "Be brief.";
  comparison_.change_setup(setup);
  ask();
  ASSERT_EQ(engine_.requests.size(), 2u);
  fold(RequestAccepted{RequestId{1}, std::vector<TokenId>(40, 5), 100});
  fold(RequestAccepted{RequestId{2}, std::vector<TokenId>(47, 5), 100});
  EXPECT_EQ(column(0).num_prompt_tokens, 40);
  EXPECT_EQ(column(1).num_prompt_tokens, 47);
  EXPECT_EQ(state_.num_prompt_tokens, 40);
  EXPECT_EQ(column(1).differences, "temperature 0 · system prompt “Be brief.”");
}

TEST_F(ComparisonFold, WhereAnAnswerIsForkedItsBeginningIsAMessageThatCanBeContinued) {
  choose(ComparisonKind::kSamples, 2);
  ask();
  accept(kFirst, 5);
  say(kFirst, 0, {"The"});
  fold(engine_.say_one_of(kFirst, 0, " cat", {" dog", ""}));
  say(kFirst, 0, {" sleeps"});
  const auto beginning = comparison_.beginning_of(column(0).id, 1, 1);
  ASSERT_TRUE(beginning.has_value());
  EXPECT_EQ(beginning->content, "The dog");
  EXPECT_EQ(beginning->role, Role::kAssistant);
  EXPECT_NE(beginning->finish_reason, FinishReason::kStop) << "a finished answer does not go on";
  EXPECT_FALSE(comparison_.beginning_of(column(0).id, 1, 2)) << "it would end there";
  EXPECT_FALSE(comparison_.beginning_of(column(0).id, 1, 9));
  EXPECT_FALSE(comparison_.beginning_of(column(0).id, 99, 0));
}

BeamStep beam_step(std::int32_t first, std::vector<BeamNode> nodes, std::vector<std::int32_t> live,
                   std::vector<std::int32_t> ended = {}) {
  return {.first_node = first, .nodes = std::move(nodes), .live = std::move(live), .ended = std::move(ended)};
}

TEST_F(ComparisonFold, BeamsShowTheirPathsWhileTheyRunAndTheAnswersAtTheEnd) {
  choose(ComparisonKind::kBeams, 2);
  ask();
  EXPECT_EQ(engine_.requests[0].sampling.beam_width, 2);
  accept(kFirst);
  const auto id = [&](const char* text) { return engine_.spelling().token(text); };
  fold(BeamsAdvanced{kFirst,
                     {beam_step(0, {{-1, id("A"), -1.0f, -1.0}, {-1, id("B"), -2.0f, -2.0}}, {0, 1})}});
  EXPECT_EQ(column(0).text, "A");
  EXPECT_EQ(column(1).text, "B");
  const std::uint32_t rewritten = column(0).rewritten;
  // Both beams of the next step descend from A: B dies, and the second column shows another text.
  fold(BeamsAdvanced{kFirst, {beam_step(2, {{0, id("x"), -0.1f, -1.1}, {0, id("y"), -0.2f, -1.2}}, {2, 3})}});
  EXPECT_EQ(column(0).text, "Ax");
  EXPECT_EQ(column(0).rewritten, rewritten) << "it only grew";
  EXPECT_EQ(column(1).text, "Ay");
  EXPECT_EQ(state_.beams.nodes[3].rank, 1);
  EXPECT_EQ(state_.beams.num_steps, 2);
  for (const std::int32_t output : {0, 1}) {
    fold(engine_.say(kFirst, output, {"A", output == 0 ? "y" : "x"}));
    OutputFinished finished;
    finished.request_id = kFirst;
    finished.output_index = output;
    finished.score = -0.6 - output;
    fold(finished);
  }
  fold(RequestFinished{kFirst, {}, {}});
  EXPECT_EQ(column(0).text, "Ay");
  EXPECT_DOUBLE_EQ(*column(0).score, -0.6);
  EXPECT_EQ(state_.beams.final, (std::vector<std::int32_t>{3, 2}));
  EXPECT_TRUE(state_.beams.live.empty());
  EXPECT_FALSE(column(0).seed.has_value()) << "a beam search draws nothing";
}

TEST_F(ComparisonFold, BlocksOfThePromptAreCountedOnce) {
  choose(ComparisonKind::kSamples, 4);
  ask();
  accept(kFirst);
  const SampleScene scene = sample_scene(kFirst, 4, /*num_prompt_tokens=*/40, /*num_generated=*/20);
  Engine::Trace trace;
  trace.block_events = scene.copies;
  comparison_.fold_trace(trace);
  comparison_.fold_snapshot(*scene.snapshot);
  // 60 tokens: 4 blocks each, of which two are the prompt's full ones.
  EXPECT_EQ(column(0).memory.num_shared, 2);
  EXPECT_EQ(column(0).memory.num_own, 2);
  EXPECT_EQ(column(0).memory.num_copied, 0);
  EXPECT_EQ(column(3).memory.num_copied, 1);
  EXPECT_EQ(column(3).memory.blocks[2].copied_from, BlockId{2});
  EXPECT_EQ(state_.memory.num_tables, 4);
  EXPECT_EQ(state_.memory.num_logical_blocks, 16);
  EXPECT_EQ(state_.memory.num_blocks, 10);
  EXPECT_EQ(state_.memory.num_shared_blocks, 2);
  EXPECT_EQ(state_.memory.saved_bytes, 6 * (360 << 10));
  // What has ended keeps what was seen of it, and the count stays that of most tables at once.
  KvSnapshot later = *scene.snapshot;
  later.sequences.resize(1);
  comparison_.fold_snapshot(later);
  EXPECT_TRUE(column(0).memory.running);
  EXPECT_FALSE(column(1).memory.running);
  EXPECT_EQ(column(1).memory.blocks.size(), 4u);
  EXPECT_EQ(state_.memory.num_tables, 4);
}

TEST_F(ComparisonFold, SwappedOutColumnsSaySo) {
  ask();
  accept(kFirst);
  SampleScene scene = sample_scene(kFirst, 2, 40, 10);
  KvSnapshot snapshot = *scene.snapshot;
  for (SequenceSnapshot& sequence : snapshot.sequences) sequence.state = SequenceState::kSwapped;
  comparison_.fold_snapshot(snapshot);
  EXPECT_TRUE(column(0).memory.swapped_out);
  EXPECT_EQ(column(0).memory.blocks.back().filled, 1);  // 49 computed tokens
  EXPECT_EQ(state_.memory.num_tables, 0);
}

TEST_F(ComparisonFold, ExportedJsonHasSeedsAndTokensAndMarkdownKeepsTextInItsFence) {
  choose(ComparisonKind::kSamples, 2);
  ask();
  accept(kFirst, 9);
  say(kFirst, 0, {"```", "\n# no heading"});
  end(kFirst, 2);
  const auto json = nlohmann::json::parse(app::comparison_to_json(state_));
  EXPECT_EQ(json["columns"][0]["seed"], 9);
  EXPECT_EQ(json["columns"][1]["output_index"], 1);
  EXPECT_EQ(json["columns"][0]["text"], "```\n# no heading");
  EXPECT_EQ(json["columns"][0]["token_ids"].size(), 2u);
  EXPECT_EQ(json["messages"][0]["content"], "Why?");
  const std::string markdown = app::comparison_to_markdown(state_);
  EXPECT_NE(markdown.find("````text\n```\n# no heading\n````"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("seed 9, output 0"), std::string::npos);
}

// ---- through the controller

class ComparisonController : public ::testing::Test {
 protected:
  void SetUp() override {
    controller_.attach_engine(engine_, plan_at_once(controller_, engine_));
    controller_.apply(ui::actions::SendMessage{controller_.state().active_chat, "Why?"});
    chat_ = controller_.state().active_chat;
    question_ = controller_.state().chats[0].messages[0].id;
    finish(RequestId{1}, 0, "An answer.");
  }
  void finish(RequestId id, std::int32_t output, const std::string& text, bool last = true) {
    engine_.events.push_back(RequestAccepted{id, {5, 6, 7}, 21});
    engine_.events.push_back(engine_.say(id, output, {text, ""}));
    OutputFinished finished;
    finished.request_id = id;
    finished.output_index = output;
    engine_.events.push_back(finished);
    if (last) engine_.events.push_back(RequestFinished{id, {}, {}});
    controller_.poll_engine();
  }
  void compare() {
    controller_.apply(ui::actions::OpenComparison{chat_, question_});
    ui::ComparisonSetup setup = controller_.state().comparison.setup;
    setup.num_samples = 2;
    controller_.apply(ui::actions::ChangeComparison{setup});
    controller_.apply(ui::actions::RunComparison{});
    finish(RequestId{2}, 0, "First.", /*last=*/false);
    finish(RequestId{2}, 1, "Second.");
  }
  const ui::ChatState& chat() const { return *ui::find_chat(controller_.state(), chat_); }

  ManualClock clock_;
  CompareEngine engine_;
  app::Settings settings_ = app::default_settings();
  app::Controller controller_{clock_, settings_};
  ChatId chat_{};
  MessageId question_;
};

TEST_F(ComparisonController, OpensFromAMessageOfTheUserWithEverythingBeforeIt) {
  controller_.apply(ui::actions::ChangeSystemPrompt{chat_, "Be brief."});
  compare();
  const ui::ComparisonState& comparison = controller_.state().comparison;
  EXPECT_EQ(controller_.state().workspace, ui::Workspace::kCompare);
  EXPECT_EQ(comparison.question, "Why?");
  EXPECT_EQ(comparison.messages.front().content, "Be brief.");
  EXPECT_EQ(chat().messages.size(), 2u) << "the chat is not touched by a comparison";
  EXPECT_FALSE(controller_.busy());
}

TEST_F(ComparisonController, TheWorkspaceBeginsWithTheNewestQuestionOfTheChat) {
  controller_.apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
  EXPECT_EQ(controller_.state().comparison.question, "Why?");
  EXPECT_EQ(controller_.state().comparison.message_id, question_);
}

TEST_F(ComparisonController, KeepingOneMakesItTheActiveBranch) {
  compare();
  controller_.apply(ui::actions::KeepColumn{controller_.state().comparison.columns[1].id});
  EXPECT_EQ(controller_.state().workspace, ui::Workspace::kChat);
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_EQ(chat().messages[1].text, "Second.");
  EXPECT_EQ(chat().messages[1].num_siblings, 2);
  EXPECT_EQ(chat().messages[1].figures.seed, 21u);
  // The ids go on as they were drawn, without the token that ended them.
  controller_.apply(ui::actions::SendMessage{chat_, "And?"});
  const auto& messages = std::get<ChatPrompt>(engine_.requests.back().prompt).messages;
  EXPECT_EQ(messages[1].token_ids, std::vector<TokenId>{engine_.spelling().token("Second.")});
}

TEST_F(ComparisonController, KeepingAllMakesThemSiblings) {
  compare();
  controller_.apply(ui::actions::KeepAllColumns{});
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_EQ(chat().messages[1].num_siblings, 3);
  EXPECT_TRUE(controller_.state().banner.has_value());
}

TEST_F(ComparisonController, AnAnswerCanBecomeAChatOfItsOwn) {
  compare();
  controller_.apply(ui::actions::ContinueColumn{controller_.state().comparison.columns[0].id});
  const ui::ChatState& fresh = *ui::active_chat(controller_.state());
  EXPECT_NE(fresh.id, chat_);
  ASSERT_EQ(fresh.messages.size(), 2u);
  EXPECT_EQ(fresh.messages[0].text, "Why?");
  EXPECT_EQ(fresh.messages[1].text, "First.");
  EXPECT_EQ(chat().messages[1].text, "An answer.") << "the chat it came from stays as it was";
}

TEST_F(ComparisonController, ATypedQuestionThatIsKeptBecomesAChat) {
  controller_.apply(ui::actions::TypeComparison{"Typed?"});
  controller_.apply(ui::actions::RunComparison{});
  finish(RequestId{2}, 0, "Yes.");
  controller_.apply(ui::actions::KeepColumn{controller_.state().comparison.columns[0].id});
  EXPECT_EQ(ui::active_chat(controller_.state())->messages[0].text, "Typed?");
  EXPECT_EQ(controller_.state().workspace, ui::Workspace::kChat);
}

TEST_F(ComparisonController, AnotherSystemPromptIsPlannedAndSentInItsLaneAlone) {
  controller_.apply(ui::actions::ChangeSystemPrompt{chat_, "Be brief."});
  controller_.apply(ui::actions::OpenComparison{chat_, question_});
  ui::ComparisonSetup setup = controller_.state().comparison.setup;
  setup.kind = ComparisonKind::kSettings;
  ASSERT_EQ(setup.variants.size(), 2u);
  EXPECT_EQ(setup.variants[1].system_prompt, "Be brief.") << "lanes begin with the chat's";
  setup.variants[1].system_prompt = "Answer in verse.";
  setup.variants.push_back(setup.variants[0]);
  setup.variants[2].system_prompt.clear();
  controller_.apply(ui::actions::ChangeComparison{setup});
  const std::size_t before = engine_.requests.size();
  controller_.apply(ui::actions::RunComparison{});
  ASSERT_EQ(engine_.requests.size(), before + 3);
  const auto messages = [&](std::size_t lane) {
    return std::get<ChatPrompt>(engine_.requests[before + lane].prompt).messages;
  };
  EXPECT_EQ(messages(0).front().content, "Be brief.");
  EXPECT_EQ(messages(1).front().content, "Answer in verse.");
  EXPECT_EQ(messages(2).front().content, "Why?");
  for (std::size_t lane = 0; lane < 3; ++lane) EXPECT_EQ(messages(lane).back().content, "Why?");
  for (std::size_t lane = 1; lane < 3; ++lane)
    EXPECT_EQ(engine_.requests[before + lane].sampling.seed, engine_.requests[before].sampling.seed);
}

TEST_F(ComparisonController, LanesTellTheTemplateWhatTheirChatDoesUntilTheyAreChanged) {
  const auto told = [&](std::size_t request) {
    return std::get<ChatPrompt>(engine_.requests[request].prompt).template_values;
  };
  const TemplateValues off = {{"enable_thinking", false}};
  controller_.apply(ui::actions::ChangeTemplateValue{chat_, "enable_thinking", false});
  controller_.apply(ui::actions::OpenComparison{chat_, question_});
  const std::size_t before = engine_.requests.size();
  controller_.apply(ui::actions::RunComparison{});
  ASSERT_EQ(engine_.requests.size(), before + 1);
  EXPECT_EQ(told(before), off) << "samples";
  ui::ComparisonSetup setup = controller_.state().comparison.setup;
  setup.kind = ComparisonKind::kSettings;
  EXPECT_EQ(setup.variants[1].template_values, off);
  setup.variants[1] = setup.variants[0];
  setup.variants[1].template_values.clear();
  controller_.apply(ui::actions::ChangeComparison{setup});
  controller_.apply(ui::actions::RunComparison{});
  ASSERT_EQ(engine_.requests.size(), before + 3);
  EXPECT_EQ(told(before + 1), off);
  EXPECT_TRUE(told(before + 2).empty());
  const auto& columns = controller_.state().comparison.columns;
  EXPECT_EQ(columns[0].differences, "enable thinking off");
  finish(RequestId{before + 3}, 0, "Yes.");
  finish(RequestId{before + 2}, 0, "No.");
  controller_.apply(ui::actions::ExportComparison{ui::actions::ComparisonFormat::kJson, "/tmp/c.json"});
  const app::Effects effects = controller_.take_effects();
  ASSERT_TRUE(effects.exported_comparison.has_value());
  EXPECT_NE(effects.exported_comparison->content.find("\"enable_thinking\": false"), std::string::npos);
  controller_.apply(ui::actions::ContinueColumn{columns[0].id});
  EXPECT_EQ(ui::active_chat(controller_.state())->template_values, off);
}

TEST_F(ComparisonController, ALaneThatCannotBeSentSaysWhichAndNothingRuns) {
  controller_.apply(ui::actions::OpenComparison{chat_, question_});
  ui::ComparisonSetup setup = controller_.state().comparison.setup;
  setup.kind = ComparisonKind::kSettings;
  setup.variants[1].system_prompt = std::string(200'000, 'x');
  controller_.apply(ui::actions::ChangeComparison{setup});
  const std::size_t before = engine_.requests.size();
  controller_.apply(ui::actions::RunComparison{});
  EXPECT_EQ(engine_.requests.size(), before);
  EXPECT_TRUE(controller_.state().comparison.problem.starts_with("Settings B: Shorten the system prompt"))
      << controller_.state().comparison.problem;
  EXPECT_FALSE(controller_.state().comparison.running);
}

TEST_F(ComparisonController, AForkBecomesAChatThatGoesOnBehindTheAlternative) {
  controller_.apply(ui::actions::OpenComparison{chat_, question_});
  controller_.apply(ui::actions::RunComparison{});
  const RequestId asked{engine_.requests.size()};
  engine_.events.push_back(RequestAccepted{asked, {5, 6, 7}, 21});
  engine_.events.push_back(engine_.say(asked, 0, {"It"}));
  engine_.events.push_back(engine_.say_one_of(asked, 0, " rains", {" snows"}));
  controller_.poll_engine();
  const ui::ColumnId column = controller_.state().comparison.columns[0].id;
  controller_.apply(ui::actions::ForkChatAtToken{column, 1, 1});
  EXPECT_EQ(controller_.state().workspace, ui::Workspace::kChat);
  const ui::ChatState& fresh = *ui::active_chat(controller_.state());
  EXPECT_NE(fresh.id, chat_);
  ASSERT_EQ(fresh.messages.size(), 2u);
  EXPECT_EQ(fresh.messages[1].text, "It snows");
  const auto& prompt = std::get<ChatPrompt>(engine_.requests.back().prompt);
  EXPECT_TRUE(prompt.continue_answer);
  EXPECT_EQ(prompt.messages.back().content, "It snows");
}

TEST_F(ComparisonController, ExportingHandsOutAFile) {
  compare();
  controller_.apply(ui::actions::ExportComparison{ui::actions::ComparisonFormat::kMarkdown, "/tmp/c.md"});
  const app::Effects effects = controller_.take_effects();
  ASSERT_TRUE(effects.exported_comparison.has_value());
  EXPECT_EQ(effects.exported_comparison->path, "/tmp/c.md");
  EXPECT_NE(effects.exported_comparison->content.find("First."), std::string::npos);
}

}  // namespace
}  // namespace octavo::testing
