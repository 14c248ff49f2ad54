// A person who selects, copies, finds and follows links in a chat.

#include <imgui.h>
#include <imgui_internal.h>

#include <string>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

using octavo::ui::Activity;

constexpr float kQuestion = 133;  // pixels above the first answer, behind a question of one line

class ChatText : public WindowTest {
 protected:
  // A chat with one question for each answer.
  void open_chat(const std::vector<std::string>& answers) {
    open();
    for (const std::string& answer : answers) {
      engine_->answers.push_back(answer);
      application_->controller().apply(ui::actions::SendMessage{state().active_chat, "Say something"});
      ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
    }
    draw_frames(3);
  }
  // The transcript itself, and not what is drawn inside of it.
  static ImGuiWindow* transcript() {
    ImGuiWindow* found = nullptr;
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
      const std::string name = window->Name;
      if (name.find("transcript") != std::string::npos &&
          window->LastFrameActive >= ImGui::GetFrameCount() - 1)
        found = window;
    }
    IM_CHECK_RETV(found != nullptr, nullptr);
    return found;
  }
  static float scroll() {
    const ImGuiWindow* window = transcript();
    return window == nullptr ? -1 : window->Scroll.y;
  }
  // On screen, from the left end of the column and the top of all messages.
  static ImVec2 place(float x, float y) {
    const ImGuiWindow* window = transcript();
    if (window == nullptr) return {};
    const float measure = std::min(720.0f, window->Size.x - 48);
    return {window->Pos.x + std::floor((window->Size.x - measure) * 0.5f) + x,
            window->Pos.y + y - window->Scroll.y};
  }
  static void click(ImGuiTestContext* context, ImVec2 at, int count = 1) {
    context->MouseMoveToPos(at);
    context->MouseClickMulti(ImGuiMouseButton_Left, count);
    context->Yield(2);
  }
  static void drag(ImGuiTestContext* context, ImVec2 from, ImVec2 to) {
    context->MouseMoveToPos(from);
    context->MouseDown();
    context->Yield();
    context->MouseMoveToPos(to);
    context->Yield();
    context->MouseUp();
    context->Yield(2);
  }
  static std::string copied(ImGuiTestContext* context) {
    ImGui::SetClipboardText("nothing");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    context->Yield(2);
    return ImGui::GetClipboardText();
  }
};

TEST_F(ChatText, DraggedTextIsCopiedAsTextAndAsMarkdown) {
  open_chat({"Alpha **beta** gamma delta."});
  play([](ImGuiTestContext* context) {
    drag(context, place(1, kQuestion + 11), place(500, kQuestion + 11));
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha beta gamma delta.");
    context->MouseMoveToPos(place(20, kQuestion + 11));
    context->MouseClick(ImGuiMouseButton_Right);
    context->Yield(2);
    context->ItemClick("//$FOCUSED/menu_copy_markdown");
    context->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "Alpha **beta** gamma delta.");
    drag(context, place(500, kQuestion + 11), place(1, kQuestion + 11));
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha beta gamma delta.");
  });
}

TEST_F(ChatText, ClicksTakeWordsAndParagraphsAndShiftGoesOn) {
  open_chat({"Alpha beta gamma.\n\nAnother paragraph."});
  play([](ImGuiTestContext* context) {
    click(context, place(10, kQuestion + 11), 2);
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha");
    context->SleepNoSkip(1.0f, 0.1f);
    click(context, place(10, kQuestion + 11), 3);
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha beta gamma.");
    context->SleepNoSkip(1.0f, 0.1f);
    click(context, place(1, kQuestion + 11));
    context->KeyDown(ImGuiMod_Shift);
    click(context, place(500, kQuestion + 46));
    context->KeyUp(ImGuiMod_Shift);
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha beta gamma.\n\nAnother paragraph.");
  });
}

TEST_F(ChatText, EverythingIsSelectedOverAllMessages) {
  open_chat({"First answer.", "- one\n- two"});
  play([](ImGuiTestContext* context) {
    click(context, place(500, 5));
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->Yield(2);
    IM_CHECK_STR_EQ(copied(context).c_str(),
                    "Say something\n\nFirst answer.\n\nSay something\n\n- one\n- two");
  });
  write_screenshot("chat-selected");
}

TEST_F(ChatText, SelectionSurvivesWhileTextStreams) {
  open();
  std::string answer = "Alpha beta gamma.\n\n";
  for (int i = 0; i < 400; ++i) answer += "word" + std::to_string(i) + " ";
  engine_->answers = {answer};
  engine_->steps_allowed = 8;
  application_->controller().apply(ui::actions::SendMessage{state().active_chat, "Say something"});
  for (int i = 0; i < 12; ++i) application_->update();
  draw_frames(3);
  play([this](ImGuiTestContext* context) {
    click(context, place(10, kQuestion + 11), 2);
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha");
    const std::size_t before = chat().messages.back().text.size();
    engine_->steps_allowed = 40;
    for (int i = 0; i < 60; ++i) application_->update();
    context->Yield(3);
    IM_CHECK_GT(chat().messages.back().text.size(), before);
    IM_CHECK_STR_EQ(copied(context).c_str(), "Alpha");
  });
}

TEST_F(ChatText, WordsAreFoundAndScrolledTo) {
  std::string text = "The needle lies here.\n\n";
  for (int i = 0; i < 200; ++i) text += "Line " + std::to_string(i) + " of hay.\n\n";
  open_chat({text});
  play([](ImGuiTestContext* context) {
    IM_CHECK_GT(scroll(), 1000.0f);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(3);
    context->ItemClick("**/##find");
    context->KeyChars("NEEDLE");
    context->Yield(4);
    IM_CHECK_LT(scroll(), 200.0f);
    context->KeyCharsReplace("line 1");
    context->Yield(4);
    const float last = scroll();
    context->ItemClick("**/find_previous");
    context->ItemClick("**/find_previous");
    context->Yield(3);
    context->ItemClick("**/find_next");
    context->Yield(3);
    context->KeyPress(ImGuiKey_F3);
    context->Yield(3);
    context->KeyPress(ImGuiKey_F3);
    context->Yield(3);
    IM_CHECK_LT(scroll(), last);
  });
  write_screenshot("chat-find");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/find_close");
    context->Yield(2);
    IM_CHECK(!context->ItemExists("**/find_next"));
  });
}

TEST_F(ChatText, TheFindBarTakesTheKeyboardFromTheComposer) {
  open_chat({"The needle lies here."});
  play([](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(4);
    context->KeyChars("needle");
    context->Yield(3);
    IM_CHECK((context->ItemInfo("**/find_next").ItemFlags & ImGuiItemFlags_Disabled) == 0);
  });
  write_screenshot("chat-find-typed");
}

TEST_F(ChatText, AddressesAreAskedAboutBeforeTheyAreOpened) {
  open_chat({"[docs](https://bank.example.evil.example/x?y=1)"});
  play([](ImGuiTestContext* context) {
    click(context, place(10, kQuestion + 11));
    context->Yield(2);
    IM_CHECK(context->ItemExists("//$FOCUSED/open_link_now"));
    context->ItemClick("//$FOCUSED/copy_link");
    context->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "https://bank.example.evil.example/x?y=1");
  });
}

TEST_F(ChatText, CodeIsCopiedWithoutItsFence) {
  open_chat({"Look:\n\n```cpp\nint a = 1;\n\nint b;\n```\n"});
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/copy_code");
    context->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "int a = 1;\n\nint b;");
    context->ItemClick("**/copy_plain");
    context->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "Look:\n\nint a = 1;\n\nint b;");
  });
}

TEST_F(ChatText, DraggingPastTheEdgeScrolls) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "Line " + std::to_string(i) + ".\n\n";
  open_chat({text});
  play([](ImGuiTestContext* context) {
    const float end = scroll();
    const ImGuiWindow* window = transcript();
    IM_CHECK(window != nullptr);
    context->MouseMoveToPos({window->Pos.x + 60, window->Pos.y + window->Size.y * 0.5f});
    context->MouseDown();
    context->MouseMoveToPos({window->Pos.x + 60, window->Pos.y - 40});
    context->Yield(20);
    IM_CHECK_LT(scroll(), end - 50);
    context->MouseUp();
    context->Yield();
  });
}

constexpr const char* kEverything =
    "## What Markdown can do\n\nText with **bold**, *italic*, ***both***, ~~struck~~, `inline code` and a "
    "[link](https://example.org/a). An image stays text: ![a map](https://example.org/map.png)\n\n"
    "1. First\n2. Second\n   - inner\n   - [x] done\n   - [ ] open\n3. Third\n\n> A quote\n>\n> > in a "
    "quote\n\n"
    "```python\n# counts blocks\ndef blocks(tokens: int, size: int = 16) -> int:\n    return (tokens + size "
    "- 1) // size  \n\nprint(\"one\", "
    "blocks(17))\n```\n\n| manager | held | batch |\n|:--|--:|:-:|\n| paged | **96.3 %** | 30 |\n| Orca Max "
    "| 20.4 % | 7 |\n\n---\n\n"
    "Marks: a\xe2\x80\xae"
    "b\x1b[31m\xe2\x80\x8b, CJK \xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c, emoji \xf0\x9f\x98\x80, "
    "RTL \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d, <b>HTML</b>, %n ##id ###id\n";

TEST_F(ChatText, PicturesOfEverythingAMessageCanHold) {
  open({}, large_settings());
  engine_->answers = {kEverything};
  application_->controller().apply(
      ui::actions::SendMessage{state().active_chat, "Show me everything: ##title %n"});
  ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
  in_every_look([this](const std::string& look) { write_screenshot("chat-text-" + look); });
  EXPECT_EQ(chat().messages.size(), 2u);
}

}  // namespace
}  // namespace octavo::testing
