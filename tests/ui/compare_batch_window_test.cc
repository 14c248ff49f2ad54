// A person in front of the batch: prompts times settings as a grid, and the blind vote.

#include <imgui.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/ui/compare_scene.h"
#include "tests/ui/drawn_text.h"

namespace octavo::testing {
namespace {

constexpr const char* kSystemPrompt = "Zebra rules.";

// How wide a space is depends on the font: a number may be read back as two.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

class BatchWindow : public CompareScene {
 protected:
  void open_batch() {
    open_compare(large_settings());
    batch_answers_ = true;
    apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
    draw_frames(2);
    play([](ImGuiTestContext* context) {
      context->ItemClick("**/kind/batch");
      context->Yield(2);
    });
  }
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  const ui::BatchState& batch() const { return state().batch; }

  void point_at(ImVec2 place) { ImGui::GetIO().AddMousePosEvent(place.x, place.y); }
  void press_mouse() {
    draw_frames(2);
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
      draw_frames(1);
    }
  }

  void choose_four_settings() {
    ui::actions::ChangeBatch change{batch().setup, 77123456};
    change.settings.resize(4, change.settings.front());
    const double temperatures[] = {0.15, 0.35, 0.65, 0.95};
    for (std::size_t i = 0; i < 4; ++i) change.settings[i].sampling.temperature = temperatures[i];
    change.settings[3].system_prompt = kSystemPrompt;
    apply(change);
  }
  void run(std::size_t num_prompts) {
    std::string prompts;
    for (std::size_t i = 0; i < num_prompts; ++i)
      prompts += "Write a line about rain on the roof of house number " + std::to_string(i + 1) + ".\n";
    apply(ui::actions::RunBatch{prompts, ui::PromptFormat::kLines});
    ASSERT_TRUE(loop_until([this] { return !batch().running; }));
    draw_frames(3);
  }
};

TEST_F(BatchWindow, PromptsAreTypedAndRunAndAnAnswerIsLookedAtClosely) {
  open_batch();
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/##prompts");
    context->KeyChars("One line about rain");
    context->KeyPress(ImGuiKey_Enter);
    context->KeyChars("One line about snow");
    context->Yield(2);
    context->ItemClick("**/add_variant");
    context->ItemInputValue("**/##top_k", 40);
    context->Yield(2);
  });
  write_screenshot("batch-setup");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/run_batch");
    context->Yield(2);
  });
  ASSERT_TRUE(loop_until([this] { return !batch().rows.empty() && !batch().running; }));
  ASSERT_EQ(batch().rows.size(), 2u);
  ASSERT_EQ(batch().settings.size(), 3u);
  EXPECT_EQ(batch().rows[1].prompt, "One line about snow");
  EXPECT_EQ(batch().settings[2].sampling.top_k, 40);
  ImVec2 cell;
  play([&cell](ImGuiTestContext* context) { cell = context->ItemInfo("**/cell_1_2").RectFull.GetCenter(); });
  point_at(cell);
  press_mouse();
  draw_frames(3);
  const std::string words = without_spaces(drawn_words());
  EXPECT_NE(words.find("SettingsC"), words.rfind("SettingsC")) << "over its column, and on the card";
  write_screenshot("batch-answer");
}

TEST_F(BatchWindow, KeysAloneWriteItRunItAndStopIt) {
  open_compare(large_settings());
  hold_plain_answers_ = true;
  apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
  draw_frames(2);
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Alt | ImGuiKey_4);
    context->Yield(4);
    context->KeyChars("One line about rain");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK_EQ(batch().rows.size(), 1u);
    IM_CHECK(batch().running);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!batch().running);
  });
}

TEST_F(BatchWindow, SixtyFourPromptsTimesFourSettingsAreAGrid) {
  open_batch();
  choose_four_settings();
  run(64);
  ASSERT_EQ(batch().rows.size(), 64u);
  for (const ui::BatchRow& row : batch().rows) {
    for (const ui::BatchCell& cell : row.cells) ASSERT_EQ(cell.phase, ui::ColumnPhase::kFinished);
  }
  EXPECT_EQ(compare_engine_->requests.size(), 256u);
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/edit_batch");  // hides the set-up
    context->Yield(2);
    IM_CHECK(context->ItemExists("**/cell_0_0"));
    for (const char* format : {"**/batch_csv", "**/batch_json"}) {
      context->ItemClick(format);
      context->Yield(4);
      context->KeyPress(ImGuiKey_Enter);
      context->Yield(4);
    }
  });
  EXPECT_TRUE(std::filesystem::exists(folder_ / "batch.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "batch.json"));
  in_every_look([this](const std::string& name) { write_screenshot("batch-" + name); });
}

TEST_F(BatchWindow, AFileOfPromptsIsReadAndABadOneSaysWhatToDo) {
  open_batch();
  std::ofstream(folder_ / "prompts.csv") << "prompt,note\n\"One, two\",x\nthree,four,five\n";
  apply(ui::actions::ReadPrompts{(folder_ / "prompts.csv").string()});
  ASSERT_TRUE(loop_until([this] {
    draw_frames(1);
    return batch().file.number == 1;
  }));
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/run_batch");
    context->Yield(3);
  });
  EXPECT_EQ(batch().problem, "Line 3: 3 fields here, and 2 in line 1. Quote a field that has commas in it.");
  write_screenshot("batch-problem");
  apply(ui::actions::ReadPrompts{(folder_ / "none.txt").string()});
  ASSERT_TRUE(loop_until([this] { return batch().problem.find("does not exist") != std::string::npos; }));
}

// Every frame of the vote is read back: what would tell settings apart is on none of them, whatever is
// pointed at.
TEST_F(BatchWindow, ABlindVoteRevealsNothing) {
  open_batch();
  choose_four_settings();
  run(3);
  const std::vector<std::string> secrets = {"Settings", "emperature", "0.15", "0.35", "0.65",    "0.95",
                                            "Zebra",    "seed",       "Seed", "3456", "logp",    "tokens",
                                            "JSON",     "CSV",        "0.9",  "7712", "variant", "top-p"};
  std::size_t num_frames = 0;
  const auto draw = [&] {
    draw_frames(1);
    if (!batch().vote) return;
    ++num_frames;
    const std::string words = without_spaces(drawn_words());
    EXPECT_NE(words.find("Answer4"), std::string::npos) << words;
    for (const std::string& secret : secrets)
      EXPECT_EQ(words.find(secret), std::string::npos) << secret << " in frame " << num_frames << "\n"
                                                       << words;
  };
  apply(ui::actions::StartVote{});
  for (std::size_t ballot = 0; ballot < 3; ++ballot) {
    ASSERT_TRUE(batch().vote.has_value());
    EXPECT_EQ(batch().vote->index, ballot);
    // Over the whole window, with time for what is shown beside the pointer.
    for (int step = 0; step < 12; ++step) {
      const ImVec2 size = ImGui::GetIO().DisplaySize;
      point_at({size.x * (0.2f + 0.21f * static_cast<float>(step % 4)),
                size.y * (0.05f + 0.3f * static_cast<float>(step / 4))});
      for (int frame = 0; frame < 2; ++frame) draw();
    }
    apply(ui::actions::ExportBatch{ui::actions::BatchFormat::kJson, "batch.json"});
    application_->update();
    EXPECT_FALSE(std::filesystem::exists(folder_ / "batch.json"));
    const ImGuiKey key = ballot == 1 ? ImGuiKey_0 : ImGuiKey_2;
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddKeyEvent(key, down);
      draw();
    }
  }
  ASSERT_TRUE(batch().result.has_value());
  EXPECT_GT(num_frames, 70u);
  std::int32_t wins = 0;
  for (const ui::VoteScore& score : batch().result->scores) wins += score.num_wins;
  EXPECT_EQ(wins, 2);
  EXPECT_EQ(batch().result->scores[0].num_ties, 1);
  EXPECT_EQ(batch().rows.size(), 3u);
  in_every_look([this](const std::string& name) { write_screenshot("batch-result-" + name); });
}

TEST_F(BatchWindow, AVoteIsCastUndoneAndEndedWithItsButtons) {
  open_batch();
  choose_four_settings();
  run(2);
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/start_vote");
    context->Yield(2);
    context->ItemClick("**/best");
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(batch().vote->index), 1);
    context->ItemClick("**/undo_vote");
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(batch().vote->index), 0);
    context->ItemClick("**/tie");
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(batch().vote->index), 1);
  });
  write_screenshot("batch-vote");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/end_vote");
    context->Yield(2);
  });
  ASSERT_TRUE(batch().result.has_value());
  EXPECT_EQ(batch().result->ballots.size(), 1u);
  EXPECT_EQ(batch().result->scores[2].num_ties, 1);
}

}  // namespace
}  // namespace octavo::testing
