// A person who chooses how tokens are drawn, where answers end, and what the model's file advises.

#include <imgui.h>
#include <imgui_internal.h>

#include <fstream>
#include <string>
#include <string_view>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class SamplingWindow : public WindowTest {
 protected:
  void open_panel() {
    open({}, large_settings());
    application_->controller().apply(act::ShowSampling{true});
    draw_frames(3);
  }
  static void scroll_to_end() {
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
      if (std::string_view(window->Name).find("right_column") != std::string_view::npos)
        ImGui::SetScrollY(window, window->ScrollMax.y);
    }
  }
  // Types into a field that may have to be scrolled to.
  static void type(ImGuiTestContext* context, const char* field, const char* text) {
    context->ItemClick(field);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyPress(ImGuiKey_Delete);
    context->KeyChars(text);
    context->Yield(2);
  }
};

TEST_F(SamplingWindow, EverythingCanBeTyped) {
  open_panel();
  write_screenshot("sampling-panel");
  play([this](ImGuiTestContext* context) {
    type(context, "**/##temperature/##typed", "0.35");
    type(context, "**/##top_k/##typed", "500");
    type(context, "**/##presence_penalty/##typed", "-1.5");
    type(context, "**/##min_tokens/##typed", "7");
    type(context, "**/##seed", "42");
    IM_CHECK_EQ(chat().sampling.temperature, 0.35);
    IM_CHECK_EQ(chat().sampling.top_k, 500);
    IM_CHECK_EQ(chat().sampling.presence_penalty, -1.5);
    IM_CHECK_EQ(chat().sampling.min_tokens, 7);
    IM_CHECK(chat().sampling.seed == 42u);
    scroll_to_end();
    context->Yield(2);
    type(context, "**/##stop", "END\\nOF");
    context->KeyPress(ImGuiKey_Enter);
    context->KeyChars("STOP");
    context->Yield(2);
    IM_CHECK(chat().sampling.stop == (std::vector<std::string>{"END\nOF", "STOP"}));
    context->ItemClick("**/eos_ignored");
    context->Yield(2);
    IM_CHECK(chat().sampling.ignore_eos);
  });
  write_screenshot("sampling-panel-end");
}

TEST_F(SamplingWindow, AnswersCanHaveAForm) {
  open_panel();
  SamplingParams before = chat().sampling;
  before.ignore_eos = true;
  application_->controller().apply(act::ChangeSampling{chat().id, before});
  scroll_to_end();
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/form_json");
    context->Yield(2);
    IM_CHECK(chat().sampling.structured_output == StructuredOutput(AnyJsonObject{}));
    IM_CHECK(!chat().sampling.ignore_eos);
    context->ItemClick("**/form_choices");
    context->Yield(2);
    IM_CHECK(!chat().sampling.structured_output.has_value());  // until there is a choice
    scroll_to_end();
    context->Yield(2);
    type(context, "**/##form_choices_text", "yes");
    context->KeyPress(ImGuiKey_Enter);
    context->KeyChars("no");
    context->Yield(2);
    IM_CHECK(chat().sampling.structured_output == StructuredOutput(ChoiceOfTexts{{"yes", "no"}}));
    context->ItemClick("**/form_pattern");
    context->Yield(2);
    type(context, "**/##form_pattern_text", "[0-9]+");
    IM_CHECK(chat().sampling.structured_output == StructuredOutput(RegularExpression{"[0-9]+"}));
  });
  write_screenshot("sampling-form");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/form_choices");  // what was typed is still there
    context->Yield(2);
    IM_CHECK(chat().sampling.structured_output == StructuredOutput(ChoiceOfTexts{{"yes", "no"}}));
    context->ItemClick("**/form_free");
    context->Yield(2);
    IM_CHECK(!chat().sampling.structured_output.has_value());
  });
}

TEST_F(SamplingWindow, WhatIsOutOfRangeIsAnsweredByASentence) {
  open_panel();
  const SamplingParams before = chat().sampling;
  play([&](ImGuiTestContext* context) {
    type(context, "**/##temperature/##typed", "-1");
    type(context, "**/##top_p/##typed", "3");
    type(context, "**/##top_k/##typed", "many");
    type(context, "**/##seed", "-5");
    IM_CHECK_EQ(chat().sampling.temperature, before.temperature);
    IM_CHECK_EQ(chat().sampling.top_p, before.top_p);
    IM_CHECK_EQ(chat().sampling.top_k, before.top_k);
    IM_CHECK(!chat().sampling.seed.has_value());
  });
  write_screenshot("sampling-out-of-range");
  play([&](ImGuiTestContext* context) {
    type(context, "**/##temperature/##typed", "1.1");
    IM_CHECK_EQ(chat().sampling.temperature, 1.1);
  });
}

TEST_F(SamplingWindow, PresetsKeepEveryField) {
  open_panel();
  SamplingParams sampling = chat().sampling;
  sampling.presence_penalty = 0.5;
  sampling.stop = {"END"};
  sampling.bad_words = {"never"};
  application_->controller().apply(act::SavePreset{{{}, "Mine", "Be brief.", sampling}});
  ASSERT_EQ(state().library.presets.size(), 1u);
  application_->controller().apply(act::ShowPresets{true});
  draw_frames(3);
  write_screenshot("preset-fields");
  application_->controller().apply(act::ShowPresets{false});
  application_->controller().apply(act::ApplyPreset{chat().id, state().library.presets.front().id});
  EXPECT_EQ(chat().sampling.presence_penalty, 0.5);
  EXPECT_EQ(chat().sampling.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(chat().sampling.bad_words, std::vector<std::string>{"never"});
}

TEST_F(SamplingWindow, TheModelsAdviceIsShownAndCanBeTakenBack) {
  FakeEngine::Options options;
  options.advice = {.temperature = 0.6, .top_p = 0.95, .top_k = 20};
  open(options, large_settings());
  EXPECT_EQ(chat().sampling.temperature, 0.6);
  EXPECT_EQ(chat().sampling.top_k, 20);
  application_->controller().apply(act::ShowSampling{true});
  SamplingParams own = chat().sampling;
  own.temperature = 1.5;
  application_->controller().apply(act::ChangeSampling{chat().id, own});
  draw_frames(3);
  write_screenshot("sampling-advice");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/use_advice");
    context->Yield(2);
    IM_CHECK_EQ(chat().sampling.temperature, 0.6);
  });
}

// As a person sees gpt-oss and Qwen: the choices of their templates, the usual one chosen.
TEST_F(SamplingWindow, WhatTheTemplateReadsCanBeChosen) {
  FakeEngine::Options options;
  options.switches = thinking_switches();
  open(options, large_settings());
  application_->controller().apply(act::ShowSampling{true});
  draw_frames(3);
  write_screenshot("template-switches");
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/enable_thinking_1");
    context->Yield(2);
    IM_CHECK(chat().template_values == (TemplateValues{{"enable_thinking", false}}));
    context->ItemClick("**/reasoning_effort_2");
    context->Yield(2);
    IM_CHECK(chat().template_values ==
             (TemplateValues{{"enable_thinking", false}, {"reasoning_effort", "high"}}));
    context->ItemClick("**/enable_thinking_0");
    context->ItemClick("**/reasoning_effort_1");
    context->Yield(2);
    IM_CHECK(chat().template_values.empty());
  });
}

TEST_F(SamplingWindow, APresetTellsTheTemplateToo) {
  FakeEngine::Options options;
  options.switches = thinking_switches();
  open(options, large_settings());
  application_->controller().apply(act::ChangeTemplateValue{chat().id, "enable_thinking", false});
  application_->controller().apply(act::ShowPresets{true});
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/new_preset");
    context->Yield(3);
    context->ItemClick("**/reasoning_effort_0");
    context->Yield(2);
  });
  write_screenshot("preset-thinking");
  const TemplateValues both = {{"enable_thinking", false}, {"reasoning_effort", "low"}};
  ASSERT_EQ(state().library.presets.size(), 1u);
  EXPECT_EQ(state().library.presets[0].template_values, both);
  EXPECT_EQ(chat().template_values.size(), 1u) << "until it is used";
  play([this](ImGuiTestContext* context) {
    context->ItemClick("**/apply_preset");
    context->Yield(2);
  });
  EXPECT_EQ(chat().template_values, both);
}

TEST_F(SamplingWindow, AnImportSaysWhatItLeftOut) {
  open();
  std::ofstream(folder_ / "chats.json") << R"([{"title": "Holiday", "create_time": 1700000000, "mapping": {
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": [{"content_type": "image_asset_pointer"}, "Where is this?"]}}},
        "t": {"parent": "a", "message": {"author": {"role": "tool"}, "content": {"parts": ["search"]}}},
        "b": {"parent": "t", "message": {"author": {"role": "assistant"}, "content": {"parts": ["By the sea."]}}}}}])";
  application_->controller().apply(act::ImportChats{(folder_ / "chats.json").string()});
  ASSERT_TRUE(loop_until([this] {
    application_->draw_frame();
    return state().banner.has_value();
  }));
  EXPECT_NE(state().banner->text.find("Left out: 1 image and 1 tool message."), std::string::npos);
  EXPECT_EQ(chat().title, "Holiday");
  EXPECT_EQ(chat().sampling.max_tokens, app::default_settings().sampling.max_tokens);
  draw_frames(3);
  write_screenshot("import-left-out");
}

}  // namespace
}  // namespace octavo::testing
