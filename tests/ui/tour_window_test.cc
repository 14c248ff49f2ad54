// A visitor of the tour: words in slots, arrows, colours of beams, a text of their own, a lesson as a file.
// Pictures: tests/output/tour-*.png.

#include <imgui.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/environment.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class TourWindow : public WindowTest {
 protected:
  const ui::MemoryWorkspaceState& shown() const { return state().memory_workspace; }
  void apply(const act::MemoryAction& action) { application_->controller().apply(action); }

  void open_chapter(std::int32_t chapter) {
    application_->controller().apply(act::ShowWorkspace{ui::Workspace::kMemory});
    apply(act::ShowChapter{chapter});
    draw_frames(3);
  }
  // On to the first step with an arrow of this kind.
  void walk_to(ui::CopyKind kind) {
    const auto is_there = [&] {
      return std::ranges::any_of(shown().slots->arrows,
                                 [&](const ui::BlockArrow& arrow) { return arrow.kind == kind; });
    };
    while (!is_there() && shown().tour.step + 1 < shown().tour.num_steps) apply(act::MoveTour{+1});
    ASSERT_TRUE(is_there());
    draw_frames(3);
  }
  std::int64_t times_drawn(const std::string& text) const {
    const std::vector<DrawnText> texts = drawn_texts(application_->window());
    return std::ranges::count(texts, text, &DrawnText::text);
  }
  void wait_for_files(ImGuiTestContext* context) const {
    context->Yield(2);
    for (int i = 0; i < 2'000 && state().files.reading; ++i) context->Yield();
    context->Yield(3);
  }
};

TEST_F(TourWindow, EverySlotShowsItsWordAndTheStepIsCounted) {
  open({}, large_settings());
  open_chapter(2);
  for (int i = 0; i < 6; ++i) apply(act::MoveTour{+1});
  draw_frames(3);
  for (const char* word : {"Alan", "Turing", "scientist", "mathematician"})
    EXPECT_GE(times_drawn(word), 1) << word;
  EXPECT_EQ(shown().tour.figures, "This step: computed 1 word, reused 9 · 10 words computed so far");
  EXPECT_EQ(times_drawn(shown().tour.figures), 1);
  in_every_look([this](const std::string& look) { write_screenshot("tour-slots-" + look); });
}

TEST_F(TourWindow, CopiesAndSwapsAreArrows) {
  open({}, large_settings());
  open_chapter(4);
  walk_to(ui::CopyKind::kCopy);
  EXPECT_EQ(times_drawn("copied"), 1);
  EXPECT_GE(times_drawn("×2") + times_drawn("×3"), 1) << "references of the shared block";
  in_every_look([this](const std::string& look) { write_screenshot("tour-copy-arrows-" + look); });
  open_chapter(8);
  walk_to(ui::CopyKind::kSwapOut);
  EXPECT_EQ(times_drawn("swapped"), 1);
  write_screenshot("tour-swap-out");
  walk_to(ui::CopyKind::kSwapIn);
  write_screenshot("tour-swap-in");
}

TEST_F(TourWindow, EveryBeamHasItsColourInMapTablesAndLegend) {
  open({}, large_settings());
  open_chapter(6);
  std::size_t most = 0;
  for (std::int32_t step = 0; step < shown().tour.num_steps; ++step) {
    std::map<std::uint64_t, std::uint32_t> colours;
    std::set<std::uint32_t> different;
    for (std::size_t i = 0; i < shown().sequences.size(); ++i) {
      const std::uint32_t colour = shown().sequences[i].colour_index;
      colours[shown().snapshot->sequences[i].sequence_id.value] = colour;
      different.insert(colour);
    }
    EXPECT_EQ(different.size(), shown().sequences.size());
    most = std::max(most, different.size());
    for (const ui::TableLine& line : shown().lines) {
      if (!line.is_heading) {
        EXPECT_EQ(line.colour_index, colours.at(line.sequence));
      }
    }
    if (most == 4 && step >= 5 && different.size() == 4) break;
    apply(act::MoveTour{+1});
  }
  EXPECT_EQ(most, 4u);
  in_every_look([this](const std::string& look) { write_screenshot("tour-beams-" + look); });
}

TEST_F(TourWindow, AVisitorTypesATextAndItIsPlayed) {
  open({}, large_settings());
  open_chapter(12);  // the last one
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/##trial_first");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("Paging keeps my words in small blocks");
    context->ItemClick("**/##trial_second");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyPress(ImGuiKey_Delete);
    context->ItemClick("**/trial_beams");
    context->ItemClick("**/trial_run");
    context->Yield(3);
    IM_CHECK_STR_EQ(shown().tour.trial.prompts[0].c_str(), "Paging keeps my words in small blocks");
    IM_CHECK_STR_EQ(shown().tour.trial.prompts[1].c_str(), "");
    IM_CHECK(shown().tour.trial.answers == ui::TrialAnswers::kTwoBeams);
    IM_CHECK_EQ(shown().tour.step, 0);
    for (int i = 0; i < 4; ++i) {
      context->ItemClick("**/tour_next");
      context->Yield(2);
    }
  });
  EXPECT_GE(times_drawn("Paging"), 1);
  EXPECT_GE(times_drawn("small"), 1);
  in_every_look([this](const std::string& look) { write_screenshot("tour-try-" + look); });
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/##trial_first");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyPress(ImGuiKey_Delete);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(3);
    IM_CHECK_STR_EQ(shown().tour.problem.c_str(), "Type a few words first.");
  });
  EXPECT_EQ(times_drawn("Type a few words first."), 1);
  write_screenshot("tour-try-refused");
}

TEST_F(TourWindow, AChapterIsSavedAsALessonAndWalkedFromTheFile) {
  const test::EnvironmentVariable data("XDG_DATA_HOME", (folder_ / "data").string());
  open({}, large_settings());
  open_chapter(4);
  std::string path;
  play([&](ImGuiTestContext* context) {
    context->ItemClick("**/export");
    context->Yield(2);
    context->ItemClick("**/lesson");
    wait_for_files(context);
    IM_CHECK(state().files.open);
    path = (std::filesystem::path(state().files.folder) / "octavo-lesson.rec").string();
    context->KeyPress(ImGuiKey_Enter);
    for (int i = 0; i < 1'000 && state().files.open; ++i) context->Yield();
    IM_CHECK(!state().files.open);
  });
  ASSERT_TRUE(loop_until([this] { return state().banner.has_value(); }));
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  application_->controller().apply(act::DismissBanner{});
  apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/open_recording");
    wait_for_files(context);
    context->SetRef("file_browser");
    context->ItemClick("**/file_row");
    for (int i = 0; i < 2'000 && shown().source != ui::MemorySource::kLesson; ++i) context->Yield();
    context->Yield(3);
    context->SetRef("octavo");
    IM_CHECK(shown().source == ui::MemorySource::kLesson);
    IM_CHECK_EQ(shown().tour.step, 0);
    for (int i = 0; i < 3; ++i) {
      context->KeyPress(ImGuiKey_RightArrow);
      context->Yield(2);
    }
    IM_CHECK_EQ(shown().tour.step, 3);
    context->ItemClick("**/tour_back");
    context->Yield(2);
    IM_CHECK_EQ(shown().tour.step, 2);
  });
  EXPECT_GE(times_drawn("warm"), 1) << "words need no model";
  write_screenshot("tour-lesson");
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
    IM_CHECK(shown().source == ui::MemorySource::kLive);
  });
}

}  // namespace
}  // namespace octavo::testing
