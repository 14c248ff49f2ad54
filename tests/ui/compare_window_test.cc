// A person in front of the Compare workspace.

#include <imgui.h>
#include <imgui_internal.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/ui/compare_scene.h"
#include "tests/ui/drawn_text.h"
#include "ui/views/compare/compare_view.h"

namespace octavo::testing {
namespace {

using ui::ColumnPhase;

class CompareWindow : public CompareScene {
 protected:
  static void show_settings_side_by_side(ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(2);
    context->ItemClick("**/kind/settings");
    context->Yield(2);
  }
};

TEST_F(CompareWindow, IsReachedByKeyAndByTheTabsAndHasAHintWhenEmpty) {
  open_compare();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(2);
    IM_CHECK(state().workspace == ui::Workspace::kCompare);
    IM_CHECK(context->ItemExists("**/compare_question"));
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
    context->Yield(2);
    IM_CHECK(state().workspace == ui::Workspace::kMemory);
    context->ItemClick("**/workspace/compare");
    context->Yield(2);
    IM_CHECK(state().workspace == ui::Workspace::kCompare);
  });
}

TEST_F(CompareWindow, ATypedQuestionRunsFromTheEmptyWorkspace) {
  open_compare();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(2);
    context->ItemClick("**/##first_question");
    context->KeyChars("Why does rain sound?");
    context->ItemClick("**/compare_question");
    context->Yield(4);
    IM_CHECK_STR_EQ(state().comparison.question.c_str(), "Why does rain sound?");
    IM_CHECK_EQ(static_cast<int>(state().comparison.columns.size()), 4);
  });
}

TEST_F(CompareWindow, TheButtonBelowAQuestionBringsItHere) {
  open_compare();
  ask_in_chat("Write two lines about rain.");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/compare");
    context->Yield(2);
    IM_CHECK(state().workspace == ui::Workspace::kCompare);
    IM_CHECK_STR_EQ(state().comparison.question.c_str(), "Write two lines about rain.");
    context->ItemClick("**/run");
    context->Yield(12);
    IM_CHECK_EQ(static_cast<int>(state().comparison.columns.size()), 4);
    IM_CHECK(state().comparison.columns[0].phase == ColumnPhase::kFinished);
  });
}

TEST_F(CompareWindow, EveryLayoutAndColourHasAKeyThatShowsIt) {
  open_compare();
  run_samples(4);
  play([this](ImGuiTestContext* context) {
    const auto key = [&](ImGuiKeyChord chord) {
      context->KeyPress(chord);
      context->Yield(2);
    };
    key(ImGuiKey_S);
    IM_CHECK(context->ItemExists("**/next_column"));
    key(ImGuiKey_C);
    IM_CHECK(!context->ItemExists("**/next_column"));
    key(ImGuiKey_D);
    IM_CHECK(context->ItemExists("**/reference"));
    key(ImGuiKey_G);
    IM_CHECK(!context->ItemExists("**/reference"));
    key(ImGuiKey_M);
    IM_CHECK(context->ItemExists("**/next_column"));
    key(ImGuiKey_RightBracket);
    key(ImGuiKey_M);
    IM_CHECK(!context->ItemExists("**/next_column"));
    for (int colour = 0; colour < ui::kNumTextColours; ++colour) {
      key(ImGuiKey_1 + colour);
      IM_CHECK(look().colour == static_cast<ui::TextColour>(colour));
    }
    IM_CHECK(look().scroll_locked);
    key(ImGuiKey_L);
    IM_CHECK(!look().scroll_locked);
  });
}

TEST_F(CompareWindow, ButtonsOfTheToolbarDoWhatTheKeysDo) {
  open_compare();
  run_samples(3);
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/layout/grid");
    context->Yield(2);
    IM_CHECK(look().layout == ui::CompareLayout::kGrid);
    context->ItemClick("**/layout/columns");
    context->Yield(2);
    context->ItemClick("**/colour_5");
    context->Yield(2);
    IM_CHECK(look().colour == ui::TextColour::kEntropy);
    context->ItemClick("**/scroll_lock");
    context->Yield(2);
    IM_CHECK(!look().scroll_locked);
  });
}

TEST_F(CompareWindow, TheCursorWalksTokensAndItsCardForks) {
  open_compare();
  run_samples(2);
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Period);
    context->KeyPress(ImGuiKey_Period);
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(look().cursor.value_or(99)), 1);
    context->KeyPress(ImGuiKey_Comma);
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(look().cursor.value_or(99)), 0);
    context->KeyPress(ImGuiKey_Period);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK(look().card.has_value());
    context->KeyPress(ImGuiKey_DownArrow);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(12);
    IM_CHECK_EQ(static_cast<int>(state().comparison.columns.size()), 3);
    IM_CHECK_STR_EQ(state().comparison.columns[1].name.c_str(), "Fork 1 of Sample 1");
    IM_CHECK_EQ(state().comparison.columns[1].num_forced, 2);
    IM_CHECK(!look().card.has_value());
  });
}

TEST_F(CompareWindow, ClickingATokenOpensItsCardAndEscapeClosesIt) {
  open_compare();
  run_samples(2);
  play([this](ImGuiTestContext* context) {
    const ImGuiTestItemInfo seed = context->ItemInfo("**/seed");  // of some column: its text begins below
    context->MouseMoveToPos({seed.RectFull.Min.x + 10, seed.RectFull.Max.y + 42});
    context->Yield(2);
    context->MouseClick(ImGuiMouseButton_Left);
    context->Yield(3);
    IM_CHECK(look().card.has_value());
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(!look().card.has_value());
    IM_CHECK_EQ(static_cast<int>(state().comparison.columns.size()), 2);
  });
}

TEST_F(CompareWindow, KeysRunStopRunAgainKeepAndExport) {
  open_compare();
  ask_in_chat("Write two lines about rain.");
  hold_answers_ = true;
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(2);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK(state().comparison.running);
    IM_CHECK(context->ItemExists("**/stop"));
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!state().comparison.running);
    IM_CHECK(state().comparison.columns[0].phase == ColumnPhase::kStopped);
    hold_answers_ = false;
    context->KeyPress(ImGuiKey_A);
    context->Yield(12);
    IM_CHECK(state().comparison.columns[0].phase == ColumnPhase::kFinished);
    const auto save = [&](const char* name) {
      for (int i = 0; i < 200 && (!state().files.open || state().files.reading); ++i) context->Yield();
      context->Yield(2);
      context->KeyPress(ImGuiKey_Enter);
      for (int i = 0; i < 200 && state().files.open; ++i) context->Yield();
      context->Yield(3);
      IM_CHECK(std::filesystem::exists(folder_ / name));
    };
    context->KeyPress(ImGuiKey_E);
    save("comparison.json");
    IM_CHECK(state().banner.has_value());
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_E);
    save("comparison.md");
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_K);
    context->Yield(2);
    IM_CHECK_EQ(chat().messages.back().num_siblings, 5);
    context->KeyPress(ImGuiKey_RightBracket);
    context->KeyPress(ImGuiKey_K);
    context->Yield(2);
    IM_CHECK(state().workspace == ui::Workspace::kChat);
    IM_CHECK_STR_EQ(chat().messages.back().text.c_str(), state().comparison.columns[1].text.c_str());
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(2);
    const ChatId before = chat().id;
    context->KeyPress(ImGuiKey_N);
    context->Yield(2);
    IM_CHECK(chat().id != before);
    IM_CHECK(state().workspace == ui::Workspace::kChat);
  });
}

TEST_F(CompareWindow, OneAnswerIsStoppedBelowItsColumnOrByItsKey) {
  open_compare();
  ask_in_chat("Write two lines about rain.");
  hold_answers_ = true;
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    context->Yield(2);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    context->Yield(4);
    IM_CHECK(state().comparison.running);
    context->ItemClick("**/stop_column");
    context->Yield(2);
    IM_CHECK_EQ(compare_engine_->cancelled_outputs.size(), 1u);
    context->KeyPress(ImGuiKey_X);
    context->Yield(2);
    IM_CHECK_EQ(compare_engine_->cancelled_outputs.size(), 2u);
  });
  write_screenshot("compare-stop-one");
  play([this](ImGuiTestContext* context) {
    hold_answers_ = false;
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK(!context->ItemExists("**/stop_column"));
  });
}

TEST_F(CompareWindow, KeysDoNothingWhileAQuestionIsTyped) {
  open_compare();
  run_samples(2);
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/other_question");
    context->Yield(3);
    context->KeyChars(" dcgm");
    context->Yield(2);
    IM_CHECK(look().layout == ui::CompareLayout::kColumns);
    IM_CHECK(state().workspace == ui::Workspace::kCompare);
  });
}

TEST_F(CompareWindow, TheSetupChoosesKindNumberAndSettings) {
  open_compare();
  ask_in_chat("Write two lines about rain.");
  play([this](ImGuiTestContext* context) {
    show_settings_side_by_side(context);
    context->ItemClick("**/add_variant");
    context->Yield(2);
    IM_CHECK_EQ(static_cast<int>(state().comparison.setup.variants.size()), 3);
    context->ItemInputValue("**/##temperature", 1.25f);
    context->Yield(2);
    IM_CHECK_EQ(state().comparison.setup.variants[2].sampling.temperature, 1.25);
    context->ItemClick("**/remove_variant");
    context->Yield(2);
    context->ItemClick("**/kind/beams");
    context->Yield(2);
    context->ItemInputValue("**/##width", 5);
    context->Yield(2);
    IM_CHECK_EQ(state().comparison.setup.beam_width, 5);
    context->ItemClick("**/kind/samples");
    context->Yield(2);
    context->ItemInputValue("**/##samples", 6);
    context->ItemClick("**/run");
    context->Yield(12);
    IM_CHECK_EQ(static_cast<int>(state().comparison.columns.size()), 6);
  });
}

TEST_F(CompareWindow, ABeamSearchShowsItsTreeAndItsScores) {
  open_compare();
  run_beams();
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_T);
    context->Yield(2);
    IM_CHECK(context->ItemExists("**/show_tree"));
    IM_CHECK(look().layout == ui::CompareLayout::kTree);
    context->KeyPress(ImGuiKey_P);
    context->Yield(2);
    IM_CHECK(look().show_scores);
    context->ItemClick("**/show_tree");
    context->Yield(2);
    IM_CHECK(!look().show_scores);
  });
}

TEST_F(CompareWindow, DraggingABorderMakesOneColumnWiderAndTheOtherNarrower) {
  open_compare();
  run_samples(2);
  play([](ImGuiTestContext* context) {
    ImGuiTestItemInfo border = context->ItemInfo("**/border");
    IM_CHECK(border.ID != 0);
    const float before = border.RectFull.Min.x;
    context->ItemDragWithDelta("**/border", {60, 0});
    context->Yield(2);
    border = context->ItemInfo("**/border");
    IM_CHECK_GT(border.RectFull.Min.x, before + 40);
  });
}

TEST_F(CompareWindow, AnySettingOfALaneCanDifferAndTheColumnsSayWhichWithOneSeed) {
  open_compare(large_settings());
  ask_in_chat("Write two lines about rain.");
  play([this](ImGuiTestContext* context) {
    const auto& setup = state().comparison.setup;
    show_settings_side_by_side(context);
    context->ItemClick("**/variant_B");
    context->Yield(2);
    context->ItemInputValue("**/##min_p", 0.1f);
    context->ItemInputValue("**/##presence_penalty", 0.5f);
    context->ItemInputValue("**/##frequency_penalty", -0.5f);
    context->ItemClick("**/##stop");
    context->KeyChars("END");
    context->ItemClick("**/##lane_system_prompt");
    context->KeyChars("Be brief.");
    context->Yield(2);
    IM_CHECK_EQ(setup.variants[1].sampling.min_p, 0.1);
    IM_CHECK_EQ(setup.variants[1].sampling.presence_penalty, 0.5);
    IM_CHECK_EQ(setup.variants[1].sampling.frequency_penalty, -0.5);
    IM_CHECK(setup.variants[1].sampling.stop == std::vector<std::string>{"END"});
    IM_CHECK_STR_EQ(setup.variants[1].system_prompt.c_str(), "Be brief.");
    IM_CHECK_STR_EQ(setup.variants[0].system_prompt.c_str(), "");
  });
  write_screenshot("compare-lanes-setup");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/run");
    context->Yield(2);
  });
  ASSERT_TRUE(
      loop_until([this] { return state().comparison.columns.size() == 2 && !state().comparison.running; }));
  const auto& columns = state().comparison.columns;
  EXPECT_TRUE(columns[1].differences.ends_with("stop “END” · system prompt “Be brief.”"))
      << columns[1].differences;
  EXPECT_EQ(columns[0].seed, columns[1].seed);
  const auto& requests = compare_engine_->requests;
  const auto& sent = std::get<ChatPrompt>(requests.back().prompt).messages;
  EXPECT_EQ(sent.front().content, "Be brief.");
  write_screenshot("compare-lanes");
}

TEST_F(CompareWindow, LanesCanDifferInWhatTheTemplateIsTold) {
  switches_ = thinking_switches();
  open_compare(large_settings());
  ask_in_chat("Write two lines about rain.");
  play([this](ImGuiTestContext* context) {
    show_settings_side_by_side(context);
    context->ItemClick("**/variant_B");
    context->Yield(2);
    context->ItemClick("**/enable_thinking_1");
    context->ItemClick("**/reasoning_effort_2");
    context->Yield(2);
  });
  const auto& setup = state().comparison.setup;
  EXPECT_TRUE(setup.variants[0].template_values.empty());
  EXPECT_EQ(setup.variants[1].template_values,
            (TemplateValues{{"enable_thinking", false}, {"reasoning_effort", "high"}}));
  write_screenshot("compare-thinking-setup");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/run");
    context->Yield(2);
  });
  ASSERT_TRUE(
      loop_until([this] { return state().comparison.columns.size() == 2 && !state().comparison.running; }));
  EXPECT_TRUE(
      state().comparison.columns[1].differences.ends_with("enable thinking off · reasoning effort high"))
      << state().comparison.columns[1].differences;
  write_screenshot("compare-thinking");
}

TEST_F(CompareWindow, TheTreeOfSamplesOpensTheCardOfABranchAndForksAChatThere) {
  open_compare(large_settings());
  run_samples(4);
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_T);
    context->Yield(3);
    IM_CHECK(look().layout == ui::CompareLayout::kTree);
    IM_CHECK(context->ItemExists("**/run_0"));
    context->ItemClick("**/run_1");
    context->Yield(3);
    IM_CHECK(look().card.has_value());
    context->ItemClick("**/fork_chat");
    context->Yield(2);
    IM_CHECK(look().card.has_value());
    context->ItemClick("**/alternative");
    context->Yield(3);
    IM_CHECK(state().workspace == ui::Workspace::kChat);
  });
  EXPECT_TRUE(chat().messages.back().text.starts_with("The rain")) << chat().messages.back().text;
  const auto* prompt = std::get_if<ChatPrompt>(&compare_engine_->requests.back().prompt);
  ASSERT_NE(prompt, nullptr);
  EXPECT_TRUE(prompt->continue_answer);
}

TEST_F(CompareWindow, MarkdownReplacesTheColoursUnderTheWordsAndComesBack) {
  open_compare();
  run_samples(2);
  play([this](ImGuiTestContext* context) {
    IM_CHECK(context->ItemExists("**/colour_3"));
    context->ItemClick("**/formatted");
    context->Yield(3);
    IM_CHECK(look().formatted);
    IM_CHECK(!context->ItemExists("**/colour_3"));
    context->KeyPress(ImGuiKey_F);
    context->Yield(3);
    IM_CHECK(!look().formatted);
    IM_CHECK(context->ItemExists("**/colour_3"));
  });
}

// The requests of settings end one after the other here: no snapshot shows both.
TEST_F(CompareWindow, SharingThatWasNeverSeenOfAllColumnsSaysOfHowManyItIs) {
  open_compare();
  run_settings();
  ASSERT_EQ(state().comparison.columns.size(), 2u);
  draw_frames(2);
  EXPECT_TRUE(is_said("Only 1 of 2 columns was in memory at once"));
  run_samples(4);
  draw_frames(2);
  EXPECT_TRUE(is_said("4 columns share "));
}

// 8 columns of 2,000 tokens, as they stand and while they grow by a token each a frame.
TEST_F(CompareWindow, EightLongAnswersAreDrawnInTime) {
  open_compare();
  hold_answers_ = true;
  run_samples(8);
  const RequestId request{compare_engine_->requests.size()};
  std::vector<std::string> tokens;
  for (int i = 0; i < 2000; ++i) tokens.push_back(i % 3 == 0 ? " word" : i % 3 == 1 ? "s" : " rain");
  for (std::int32_t output = 0; output < 8; ++output)
    compare_engine_->events.push_back(compare_engine_->say(request, output, tokens, -0.1f));
  draw_frames(3);
  ASSERT_GE(state().comparison.columns[7].tokens.size(), 2000u);
  double best_growing = 1e9, best_still = 1e9;
  for (int i = 0; i < 24; ++i) {
    for (std::int32_t output = 0; output < 8; ++output)
      compare_engine_->events.push_back(compare_engine_->say(request, output, {" more"}));
    application_->update();
    best_growing = std::min(best_growing, ui_milliseconds());
    best_still = std::min(best_still, ui_milliseconds());
  }
  RecordProperty("growing_ms", std::to_string(best_growing));
  RecordProperty("still_ms", std::to_string(best_still));
  std::printf("[ figures  ] 8 columns of 2,000 tokens: %.2f ms a frame growing, %.2f ms still\n",
              best_growing, best_still);
  EXPECT_LT(best_still, 4.0);
  EXPECT_LT(best_growing, 4.0);
}

}  // namespace
}  // namespace octavo::testing
