// The batch of the Compare workspace: which prompts a text holds, what is asked of the engine, the blind
// vote, and what is exported.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "app/json/csv_field.h"
#include "app/window/compare/batch_export.h"
#include "app/window/compare/blind_vote.h"
#include "app/window/compare/prompt_list.h"
#include "app/window/controller.h"
#include "tests/engine/default_model.h"
#include "tests/window/compare_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

using ui::ColumnPhase;
using ui::PromptFormat;

// ---- the prompts

std::vector<std::string> prompts_of(std::string_view text, PromptFormat format) {
  auto prompts = app::read_prompts(text, format);
  EXPECT_TRUE(prompts.has_value()) << prompts.error().message;
  return prompts ? *prompts : std::vector<std::string>{};
}
std::string problem_of(std::string_view text, PromptFormat format = PromptFormat::kCsv) {
  const auto prompts = app::read_prompts(text, format);
  return prompts ? "" : prompts.error().message;
}

TEST(PromptList, LinesAreAPromptEachAndBlankOnesAreNone) {
  EXPECT_EQ(prompts_of("\xef\xbb\xbf one \n\n two, and\r\n\t\nthree", PromptFormat::kLines),
            (std::vector<std::string>{"one", "two, and", "three"}));
  EXPECT_EQ(problem_of(" \n\t", PromptFormat::kLines),
            "There is no prompt. Write one on each line, or open a file.");
}

TEST(PromptList, ATableIsReadAsRfc4180HasIt) {
  EXPECT_EQ(prompts_of("id,Prompt,note\r\n1,\"Say \"\"hi\"\", please\",x\r\n\r\n2,\"two\nlines\",\r\n",
                       PromptFormat::kCsv),
            (std::vector<std::string>{"Say \"hi\", please", "two\nlines"}));
  EXPECT_EQ(prompts_of("why?\n\"how, then?\"", PromptFormat::kCsv),
            (std::vector<std::string>{"why?", "how, then?"}))
      << "one column needs no header";
}

TEST(PromptList, ABadRowIsNamedByItsLineWithWhatToDo) {
  EXPECT_EQ(problem_of("prompt,note\nfirst,1\n\"two\nlines\",2\nthird, and more,3\n"),
            "Line 5: 3 fields here, and 2 in line 1. Quote a field that has commas in it.");
  EXPECT_EQ(problem_of("prompt\n\"never closed\nmore\n"),
            "Line 2: a quoted field begins here and never ends. Close it with a quote.");
  EXPECT_EQ(problem_of("prompt\na \"b\" c\n"),
            "Line 2: a quote stands inside a field. Quote the whole field and write this one twice.");
  EXPECT_EQ(problem_of("prompt\n\"a\"b\n"),
            "Line 2: text stands behind a closing quote. Put a comma there, or write the quote twice.");
  EXPECT_EQ(problem_of("a,b\n1,2\n"),
            "Line 1: this table has 2 columns. Add a header that names one of them “prompt”.");
  EXPECT_EQ(problem_of("prompt,note\n,1\n"), "Line 2: the prompt is empty. Write one, or delete the row.");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "p\n";
  EXPECT_EQ(problem_of(many, PromptFormat::kLines), "These are 1,001 prompts. Cut them to 1,000 at most.");
}

TEST(PromptList, WhatIsWrittenAsAFieldIsReadBack) {
  for (const std::string field : {"plain", "a,b", "say \"x\"", "two\nlines", "\r\n", ""}) {
    if (field.find_first_not_of("\r\n") == std::string::npos) continue;
    EXPECT_EQ(prompts_of("prompt,other\n" + app::csv_field(field) + ",1\n", PromptFormat::kCsv),
              std::vector<std::string>{field});
  }
}

// ---- the vote

TEST(BlindVote, OrdersAreDrawnFromTheSeedAndEachIsEquallyLikely) {
  EXPECT_EQ(app::ballot_order(7, 3, 4), app::ballot_order(7, 3, 4));
  std::map<std::vector<std::size_t>, int> counts;
  constexpr int kDraws = 24'000;
  for (std::size_t ballot = 0; ballot < kDraws; ++ballot) ++counts[app::ballot_order(20261124, ballot, 4)];
  EXPECT_EQ(counts.size(), 24u);
  double chi_squared = 0;
  for (const auto& [order, count] : counts) chi_squared += std::pow(count - 1000.0, 2) / 1000.0;
  EXPECT_LT(chi_squared, 49.7) << "99.9 % of 23 degrees of freedom";
}

TEST(BlindVote, TheIntervalIsWilsons) {
  // Brown, Cai and DasGupta (2001), and R's prop.test(correct = FALSE).
  EXPECT_NEAR(app::wilson_interval(8, 10).low, 0.4902, 5e-5);
  EXPECT_NEAR(app::wilson_interval(8, 10).high, 0.9433, 5e-5);
  EXPECT_NEAR(app::wilson_interval(0, 10).low, 0.0, 1e-12);
  EXPECT_NEAR(app::wilson_interval(0, 10).high, 0.2775, 5e-5);
  EXPECT_DOUBLE_EQ(app::wilson_interval(0, 0).low, 0.0);
  EXPECT_DOUBLE_EQ(app::wilson_interval(0, 0).high, 1.0);
}

ui::BatchState answered_batch(std::size_t num_rows, std::size_t num_settings) {
  ui::BatchState batch;
  batch.settings.resize(num_settings);
  batch.differences.resize(num_settings);
  for (std::size_t row = 0; row < num_rows; ++row) {
    ui::BatchRow& added = batch.rows.emplace_back();
    added.prompt = "prompt " + std::to_string(row);
    for (std::size_t i = 0; i < num_settings; ++i)
      added.cells.push_back({.phase = ColumnPhase::kFinished,
                             .text = "row " + std::to_string(row) + " of " + std::to_string(i)});
  }
  return batch;
}

TEST(BlindVote, CountsWinsTiesAndLossesOfTheSettingsBehindThePlaces) {
  ui::BatchState batch = answered_batch(5, 3);
  batch.rows[1].cells[2].phase = ColumnPhase::kFailed;
  app::BlindVote vote(batch, 11);
  ASSERT_EQ(vote.num_ballots(), 4u);
  const auto choose = [&](std::size_t setting) {
    const auto answers = vote.shown(batch).ballot.answers;
    const std::string wanted = " of " + std::to_string(setting);
    const auto found = std::find_if(answers.begin(), answers.end(),
                                    [&](const std::string& text) { return text.ends_with(wanted); });
    vote.cast(static_cast<std::size_t>(found - answers.begin()));
  };
  choose(2);
  choose(0);
  vote.undo();
  choose(2);
  vote.cast(std::nullopt);
  choose(1);
  EXPECT_TRUE(vote.over());
  const ui::VoteResult result = vote.result();
  EXPECT_EQ(result.num_left_out, 1);
  EXPECT_EQ(result.scores[2].num_wins, 2);
  EXPECT_EQ(result.scores[2].num_losses, 1);
  EXPECT_EQ(result.scores[2].num_ties, 1);
  EXPECT_EQ(result.scores[1].num_wins, 1);
  EXPECT_EQ(result.scores[0].num_wins, 0);
  EXPECT_DOUBLE_EQ(result.scores[2].share, 0.5);
  EXPECT_EQ(result.ballots[1].row, 2u) << "the row that failed is left out";
}

// ---- through the controller

class BatchController : public ::testing::Test {
 protected:
  void SetUp() override { controller_.attach_engine(engine_, plan_at_once(controller_, engine_)); }
  const ui::BatchState& batch() const { return controller_.state().batch; }

  void choose_settings(std::size_t count) {
    ui::actions::ChangeBatch change{batch().setup, 40};
    change.settings.resize(1);
    change.settings.resize(count, change.settings.front());
    for (std::size_t i = 0; i < count; ++i)
      change.settings[i].sampling.temperature = 0.25 * static_cast<double>(i);
    controller_.apply(change);
  }
  void run(std::size_t num_prompts) {
    std::string prompts;
    for (std::size_t i = 0; i < num_prompts; ++i) prompts += "Question " + std::to_string(i) + "\n";
    controller_.apply(ui::actions::RunBatch{prompts, PromptFormat::kLines});
  }
  void finish(RequestId id, const std::string& text, std::int32_t num_computed = 40) {
    engine_.events.push_back(RequestAccepted{id, std::vector<TokenId>(40, 5), 1});
    engine_.events.push_back(RequestAdmitted{id, 0, 0});
    engine_.events.push_back(engine_.say(id, 0, {text, ""}));
    OutputFinished finished;
    finished.request_id = id;
    engine_.events.push_back(finished);
    RequestFinished last{id, {}, {}};
    last.metrics.prompt.num_computed = num_computed;
    engine_.events.push_back(last);
  }
  // Everything that is asked, in order.
  void finish_all() {
    for (std::size_t next = 0; next < engine_.requests.size();) {
      for (; next < engine_.requests.size(); ++next)
        finish(RequestId{next + 1}, "answer " + std::to_string(next + 1), next % 4 == 0 ? 40 : 8);
      controller_.poll_engine();
    }
  }
  const std::vector<ChatMessage>& messages(std::size_t request) const {
    return std::get<ChatPrompt>(engine_.requests[request].prompt).messages;
  }

  ManualClock clock_;
  CompareEngine engine_;
  app::Settings settings_ = app::default_settings();
  std::uint64_t next_seed_ = 500;
  app::Controller controller_{clock_, settings_, unix_time_ms, [this] { return next_seed_++; }};
};

TEST_F(BatchController, SettingsOfAPromptAreAskedTogetherWithOneSeedAndFewAreUnderWay) {
  choose_settings(4);
  run(64);
  EXPECT_TRUE(controller_.busy());
  EXPECT_EQ(engine_.requests.size(), 16u) << "a question of a chat does not wait behind 256 answers";
  finish_all();
  ASSERT_EQ(engine_.requests.size(), 256u);
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(messages(i).back().content, "Question " + std::to_string(i / 4));
    EXPECT_EQ(engine_.requests[i].sampling.temperature, 0.25 * static_cast<double>(i % 4));
    EXPECT_EQ(engine_.requests[i].sampling.seed, 40 + i / 4) << "one seed for all settings of a prompt";
  }
  EXPECT_FALSE(batch().running);
  EXPECT_DOUBLE_EQ(batch().progress, 1.0);
  ASSERT_EQ(batch().rows.size(), 64u);
  EXPECT_EQ(batch().rows[63].cells[3].text, "answer 256");
  EXPECT_EQ(batch().rows[63].cells[3].phase, ColumnPhase::kFinished);
  EXPECT_EQ(batch().rows[63].cells[3].num_computed_tokens, 8);
  EXPECT_EQ(batch().differences[3], "temperature 0.75");
}

TEST_F(BatchController, OtherSystemPromptsArePlannedAndSentByThemselves) {
  choose_settings(3);
  ui::actions::ChangeBatch change{batch().setup, 1};
  change.settings[1].system_prompt = "Be brief.";
  controller_.apply(change);
  run(1);
  ASSERT_EQ(engine_.requests.size(), 3u);
  std::multiset<std::string> first;
  for (std::size_t i = 0; i < 3; ++i) first.insert(messages(i).front().content);
  EXPECT_EQ(first, (std::multiset<std::string>{"Be brief.", "Question 0", "Question 0"}));
}

TEST_F(BatchController, WhatTheTemplateIsToldIsPlannedAndSentByItself) {
  choose_settings(2);
  ui::actions::ChangeBatch change{batch().setup, 1};
  change.settings[1] = change.settings[0];
  change.settings[1].template_values = {{"enable_thinking", false}};
  controller_.apply(change);
  run(1);
  ASSERT_EQ(engine_.requests.size(), 2u);
  std::multiset<std::size_t> num_told;
  for (const GenerationRequest& request : engine_.requests)
    num_told.insert(std::get<ChatPrompt>(request.prompt).template_values.size());
  EXPECT_EQ(num_told, (std::multiset<std::size_t>{0, 1}));
  EXPECT_EQ(batch().differences[1], "enable thinking off");
  EXPECT_NE(app::batch_to_json(batch()).find("\"enable_thinking\": false"), std::string::npos);
}

TEST_F(BatchController, ASettingThatCannotBeSentSaysWhyInItsCellsAndTheOthersRun) {
  choose_settings(2);
  ui::actions::ChangeBatch change{batch().setup, 1};
  change.settings[1].system_prompt = std::string(200'000, 'x');
  controller_.apply(change);
  run(2);
  finish_all();
  EXPECT_EQ(engine_.requests.size(), 2u);
  EXPECT_EQ(batch().rows[1].cells[0].phase, ColumnPhase::kFinished);
  EXPECT_EQ(batch().rows[1].cells[1].phase, ColumnPhase::kFailed);
  EXPECT_TRUE(batch().rows[1].cells[1].error.starts_with("Shorten the system prompt"))
      << batch().rows[1].cells[1].error;
  EXPECT_FALSE(batch().running);
}

TEST_F(BatchController, StoppingCancelsWhatRunsAndAsksNothingMore) {
  choose_settings(4);
  run(64);
  finish(RequestId{1}, "whole");
  controller_.poll_engine();
  controller_.apply(ui::actions::StopBatch{});
  EXPECT_EQ(engine_.cancelled.size(), 15u);
  EXPECT_FALSE(batch().running);
  EXPECT_EQ(batch().rows[0].cells[0].phase, ColumnPhase::kFinished);
  EXPECT_EQ(batch().rows[0].cells[1].phase, ColumnPhase::kStopped);
  EXPECT_EQ(batch().rows[63].cells[3].phase, ColumnPhase::kStopped);
  controller_.poll_engine();
  EXPECT_EQ(engine_.requests.size(), 16u);
}

TEST_F(BatchController, UnloadingTheModelEndsTheBatchWithTheReason) {
  choose_settings(2);
  run(4);
  controller_.detach_engine();
  EXPECT_FALSE(batch().running);
  EXPECT_EQ(batch().rows[0].cells[0].error, "Stopped because the model was unloaded.");
  controller_.apply(ui::actions::RunBatch{"again", PromptFormat::kLines});
  EXPECT_EQ(batch().problem, "No model is loaded. Load one, then run the batch.");
}

TEST_F(BatchController, ABadTableIsRefusedWithTheSentenceAndAFileIsTakenOver) {
  controller_.apply(ui::actions::RunBatch{"prompt\n\"open", PromptFormat::kCsv});
  EXPECT_TRUE(batch().problem.starts_with("Line 2: a quoted field")) << batch().problem;
  EXPECT_TRUE(engine_.requests.empty());
  controller_.apply(ui::actions::ReadPrompts{"~/prompts.csv"});
  EXPECT_EQ(controller_.take_effects().prompts_file, "~/prompts.csv");
  app::FilesRead read;
  read.reader = app::FilesFor::kBatch;
  read.files.push_back({.kind = app::FileKind::kText, .name = "prompts.CSV", .text = "prompt\na\n"});
  controller_.take_read_files(read);
  EXPECT_EQ(batch().file.text, "prompt\na\n");
  EXPECT_EQ(batch().file.format, PromptFormat::kCsv);
  EXPECT_EQ(batch().problem, "");
  read.files[0].problem = "It does not exist.";
  controller_.take_read_files(read);
  EXPECT_EQ(batch().problem, "It does not exist.");
}

TEST_F(BatchController, ExportsHoldSeedsAndComeBackAsPrompts) {
  choose_settings(2);
  run(2);
  finish_all();
  controller_.apply(ui::actions::ExportBatch{ui::actions::BatchFormat::kJson, "batch.json"});
  const auto json = nlohmann::json::parse(controller_.take_effects().exported_comparison->content);
  EXPECT_EQ(json["prompts"][1]["answers"][1]["seed"], 41);
  EXPECT_EQ(json["prompts"][1]["answers"][1]["text"], "answer 4");
  EXPECT_EQ(json["settings"][1]["sampling"]["temperature"], 0.25);
  controller_.apply(ui::actions::ExportBatch{ui::actions::BatchFormat::kCsv, "batch.csv"});
  const std::string csv = controller_.take_effects().exported_comparison->content;
  EXPECT_NE(csv.find("Question 1,Settings B,temperature 0.25,,41,answer 4,2,-0.5,finished,,\r\n"),
            std::string::npos)
      << csv;
  EXPECT_EQ(prompts_of(csv, PromptFormat::kCsv),
            (std::vector<std::string>{"Question 0", "Question 0", "Question 1", "Question 1"}));
}

TEST_F(BatchController, NothingIsExportedWhileAVoteIsUnderWay) {
  choose_settings(2);
  run(2);
  controller_.apply(ui::actions::StartVote{});
  EXPECT_FALSE(batch().vote.has_value()) << "answers are still missing";
  finish_all();
  controller_.apply(ui::actions::StartVote{});
  ASSERT_TRUE(batch().vote.has_value());
  EXPECT_EQ(batch().vote->count, 2u);
  for (const auto format : {ui::actions::BatchFormat::kJson, ui::actions::BatchFormat::kCsv}) {
    controller_.apply(ui::actions::ExportBatch{format, "batch"});
    EXPECT_FALSE(controller_.take_effects().exported_comparison.has_value());
  }
  EXPECT_TRUE(controller_.state().banner.has_value());
  controller_.apply(ui::actions::RunBatch{"other", PromptFormat::kLines});
  EXPECT_EQ(batch().rows.size(), 2u) << "what is voted about stays";
  const auto order = app::ballot_order(500, 0, 2);
  EXPECT_EQ(batch().vote->ballot.answers[0], batch().rows[0].cells[order[0]].text);
  controller_.apply(ui::actions::CastVote{std::size_t{0}});
  controller_.apply(ui::actions::CastVote{});
  EXPECT_FALSE(batch().vote.has_value());
  ASSERT_TRUE(batch().result.has_value());
  EXPECT_EQ(batch().result->scores[order[0]].num_wins, 1);
  EXPECT_EQ(batch().result->scores[order[1]].num_ties, 1);
  controller_.apply(ui::actions::ExportBatch{ui::actions::BatchFormat::kJson, "batch.json"});
  const auto json = nlohmann::json::parse(controller_.take_effects().exported_comparison->content);
  EXPECT_EQ(json["prompts"][0]["vote"], ui::settings_name(order[0]));
  EXPECT_EQ(json["prompts"][1]["vote"], "tie");
  EXPECT_EQ(json["vote"]["seed"], 500);
}

// ---- on the real engine

// 64 prompts with four settings each: by the engine's own account every full block of a prompt was computed
// for one of its four answers, and found by the three others.
TEST(BatchOnTheEngine, BlocksOfAPromptAreComputedOnce) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model();
  SteadyClock clock;
  app::Controller controller(clock, app::default_settings());
  controller.attach_engine(*engine, plan_at_once(controller, *engine));
  ui::actions::ChangeBatch change{controller.state().batch.setup, 7};
  change.settings.resize(4, change.settings.front());
  for (std::size_t i = 0; i < 4; ++i) {
    change.settings[i].sampling.temperature = 0.3 * static_cast<double>(i);
    change.settings[i].sampling.max_tokens = 2;
  }
  controller.apply(change);
  std::string prompts;
  for (int i = 0; i < 64; ++i)
    prompts += std::to_string(1000 + 37 * i) +
               " ships passed the lighthouse this year: write one line about the keeper who counted them.\n";
  controller.apply(ui::actions::RunBatch{prompts, PromptFormat::kLines});
  const std::int64_t give_up_us = clock.now_us() + 120'000'000;
  while (controller.state().batch.running && clock.now_us() < give_up_us) controller.poll_engine();
  const ui::BatchState& batch = controller.state().batch;
  ASSERT_FALSE(batch.running);
  const std::int32_t block_size = engine->description().block_size;
  std::int64_t num_tokens = 0, num_computed = 0;
  for (const ui::BatchRow& row : batch.rows) {
    int num_first = 0;
    for (const ui::BatchCell& cell : row.cells) {
      ASSERT_EQ(cell.phase, ColumnPhase::kFinished) << cell.error;
      ASSERT_GT(cell.num_prompt_tokens, 2 * block_size);
      const std::int32_t in_full_blocks = (cell.num_prompt_tokens - 1) / block_size * block_size;
      num_first += cell.num_computed_tokens > cell.num_prompt_tokens - in_full_blocks ? 1 : 0;
      num_tokens += cell.num_prompt_tokens;
      num_computed += cell.num_computed_tokens;
    }
    EXPECT_EQ(num_first, 1) << row.prompt;
  }
  std::printf("[ figures  ] 64 x 4 answers: %lld prompt tokens, %lld computed\n",
              static_cast<long long>(num_tokens), static_cast<long long>(num_computed));
  EXPECT_LT(num_computed * 2, num_tokens);
  controller.detach_engine();
}

}  // namespace
}  // namespace octavo::testing
