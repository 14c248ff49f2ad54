// Five tasks of somebody who has never seen the window, each by mouse and by keyboard alone, from the window
// as it opens with a model. Clicks and key chords are counted, typing text is not; a task may take five of
// them.

#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "tests/ui/drawn_text.h"
#include "tests/ui/memory_scene.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

constexpr int kMostSteps = 5;

// Who is in front of the window.
class Newcomer {
 public:
  Newcomer(ImGuiTestContext* context, std::function<void()> wait)
      : context_(context), wait_(std::move(wait)) {}

  void click(const char* id) {
    ++num_clicks_;
    context_->ItemClick(id);
    settle();
  }
  void press(ImGuiKeyChord chord) {
    ++num_chords_;
    context_->KeyPress(chord);
    settle();
  }
  void type(const std::string& text) {
    context_->KeyChars(text.c_str());
    settle();
  }
  void look_in(const char* window) { context_->SetRef(window); }

  int num_clicks() const { return num_clicks_; }
  int num_chords() const { return num_chords_; }

 private:
  // Until what was asked for is on the screen.
  void settle() {
    context_->Yield(4);
    wait_();
    context_->Yield(2);
  }

  ImGuiTestContext* context_;
  std::function<void()> wait_;
  int num_clicks_ = 0, num_chords_ = 0;
};

// How wide a space looks depends on the letters beside it.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

enum class Hand { kMouse, kKeyboard };

class NewcomerWindow : public WindowTest, public ::testing::WithParamInterface<Hand> {
 protected:
  bool has_mouse() const { return GetParam() == Hand::kMouse; }

  void perform(const std::function<void(Newcomer&)>& task) {
    play([&](ImGuiTestContext* context) {
      if (!has_mouse()) context->MouseTeleportToPos({1, 1});
      Newcomer person(context, [this, context] {
        for (int i = 0; i < 500 && (state().files.reading || state().library.search.running); ++i)
          context->Yield();
      });
      task(person);
      std::printf("  %d clicks, %d key chords\n", person.num_clicks(), person.num_chords());
      IM_CHECK_LE(person.num_clicks() + person.num_chords(), kMostSteps);
      IM_CHECK(has_mouse() ? person.num_chords() == 0 : person.num_clicks() == 0);
    });
  }
  bool is_answered() {
    return loop_until([this] {
      return chat().activity == ui::Activity::kIdle && chat().messages.size() >= 2 &&
             !chat().messages.back().streaming;
    });
  }
  bool shows(const std::string& words) {
    draw_frames(3);
    const auto texts = drawn_texts(application_->window());
    return std::any_of(texts.begin(), texts.end(), [&](const DrawnText& drawn) {
      return without_spaces(drawn.text).find(without_spaces(words)) != std::string::npos;
    });
  }
  // What happened before the newcomer came.
  void ask_before(const std::string& question, const std::string& answer) {
    application_->controller().apply(act::NewChat{});
    engine_->answers = {answer};
    application_->controller().apply(act::SendMessage{chat().id, question});
    ASSERT_TRUE(is_answered());
  }
};

TEST_P(NewcomerWindow, GetsAFirstAnswer) {
  if (IsSkipped()) return;
  open();
  engine_->answers = {"Because they are content."};
  perform([&](Newcomer& person) {
    person.type("Why do cats purr?");
    if (has_mouse()) {
      person.click("**/send");
    } else {
      person.press(ImGuiKey_Enter);
    }
  });
  ASSERT_TRUE(is_answered());
  EXPECT_TRUE(shows("Because they are content."));
}

TEST_P(NewcomerWindow, FindsAnOldChat) {
  if (IsSkipped()) return;
  chats_path_ = folder_ / "chats.db";
  open();
  ask_before("Plans for the summer", "Row to the lighthouse at dawn.");
  const ChatId wanted = chat().id;
  for (int i = 0; i < 20; ++i) ask_before("Question " + std::to_string(i), "Nothing of note.");
  application_->controller().apply(act::NewChat{});
  draw_frames(3);
  ASSERT_FALSE(shows("Plans for the summer")) << "it must not lie in front";
  perform([&](Newcomer& person) {
    if (has_mouse()) {
      person.click("**/search");
    } else {
      person.press(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_F);
    }
    person.type("lighthouse");
    if (has_mouse()) {
      person.click("**/hit");
    } else {
      person.press(ImGuiKey_Enter);
    }
  });
  ASSERT_TRUE(loop_until([&] { return state().active_chat == wanted && !chat().messages.empty(); }));
  EXPECT_TRUE(shows("Row to the lighthouse at dawn."));
}

TEST_P(NewcomerWindow, ComparesTwoTemperaturesFairly) {
  if (IsSkipped()) return;
  open();
  engine_->answers = {"It is blue.", "It is a wide, bright blue."};
  perform([&](Newcomer& person) {
    if (has_mouse()) {
      person.click("**/workspace/compare");
      person.type("What colour is the sky?");
      person.click("**/kind/settings");
      person.click("**/compare_question");
    } else {
      person.press(ImGuiMod_Ctrl | ImGuiKey_2);
      person.type("What colour is the sky?");
      person.press(ImGuiMod_Alt | ImGuiKey_3);
      person.press(ImGuiMod_Ctrl | ImGuiKey_Enter);
    }
  });
  const auto& columns = state().comparison.columns;
  ASSERT_TRUE(loop_until([&] { return columns.size() == 2 && !state().comparison.running; }));
  EXPECT_NE(columns[0].sampling.temperature, columns[1].sampling.temperature);
  EXPECT_EQ(columns[0].sampling.top_p, columns[1].sampling.top_p);
  ASSERT_TRUE(columns[0].seed);
  EXPECT_EQ(columns[0].seed, columns[1].seed) << "chance makes no difference between them";
  EXPECT_EQ(columns[0].system_prompt, columns[1].system_prompt);
  for (const ui::ComparedColumn& column : columns) {  // this engine's tokens have no bytes to be shown
    EXPECT_EQ(column.phase, ui::ColumnPhase::kFinished);
    EXPECT_FALSE(column.tokens.empty());
    EXPECT_TRUE(shows(column.name));
  }
  EXPECT_TRUE(shows("temperature"));
  write_screenshot(std::string("newcomer-compare-") + (has_mouse() ? "mouse" : "keyboard"));
}

TEST_P(NewcomerWindow, SeesWhyAChatWasSlow) {
  if (IsSkipped()) return;
  open({.max_running = 1});
  // One answer holds up the next for a second.
  engine_->answers = {"A long one.", "A short one."};
  engine_->steps_allowed = 1;
  application_->controller().apply(act::SendMessage{chat().id, "Something long"});
  ASSERT_TRUE(loop_until([this] { return !chat().messages.empty() && chat().messages.back().text != ""; }));
  application_->controller().apply(act::NewChat{});
  application_->controller().apply(act::SendMessage{chat().id, "Something short"});
  draw_frames(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
  engine_->steps_allowed = -1;
  ASSERT_TRUE(is_answered());
  ASSERT_FALSE(shows("for its turn."));
  perform([&](Newcomer& person) {
    if (has_mouse()) {
      person.click("**/answer_more");
      person.click("//$FOCUSED/tell_story");
    } else {
      person.press(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Y);
    }
  });
  EXPECT_TRUE(shows("Waited 1.")) << chat().messages.back().figures.story;
  EXPECT_TRUE(shows("for its turn."));
  write_screenshot(std::string("newcomer-slow-") + (has_mouse() ? "mouse" : "keyboard"));
}

TEST_P(NewcomerWindow, OpensAColleaguesRecording) {
  if (IsSkipped()) return;
  const std::filesystem::path given = folder_ / "From Ana";
  std::filesystem::create_directories(given);
  MemoryScene().record(given / "evening.rec", 60);
  open();
  perform([&](Newcomer& person) {
    if (has_mouse()) {
      person.click("**/workspace/memory");
      person.click("**/open_recording");
      person.look_in("file_browser");
      person.click("**/place");  // the home folder
      ASSERT_EQ(state().files.entries.at(0).name, "From Ana");
      person.click("**/file_row");
      ASSERT_EQ(state().files.entries.at(0).name, "evening.rec");
      person.click("**/file_row");
    } else {
      person.press(ImGuiMod_Ctrl | ImGuiKey_K);
      person.type("open a recording");
      person.press(ImGuiKey_Enter);
      person.press(ImGuiMod_Ctrl | ImGuiKey_A);
      person.type("~/From Ana/evening.rec");
      person.press(ImGuiKey_Enter);
    }
  });
  ASSERT_TRUE(loop_until([this] { return state().memory_workspace.source == ui::MemorySource::kRecording; }));
  EXPECT_GT(state().memory_workspace.timeline->steps.size(), 0u);
  EXPECT_TRUE(shows("Recording evening"));
}

INSTANTIATE_TEST_SUITE_P(ByHand, NewcomerWindow, ::testing::Values(Hand::kMouse, Hand::kKeyboard),
                         [](const auto& info) {
                           return std::string(info.param == Hand::kMouse ? "Mouse" : "Keyboard");
                         });

}  // namespace
}  // namespace octavo::testing
