// The graphics processor fails while an answer streams: what a person sees, and the way on.

#include <memory>
#include <string>
#include <vector>

#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class LostDeviceWindow : public WindowTest {
 protected:
  void open_on_gpu() {
    open_with(
        [this](const EngineOptions& options, LoadProgress) -> Result<std::unique_ptr<Engine>> {
          devices_.push_back(options.device);
          FakeEngine::Options scripted;
          scripted.device = options.device == Device::kCpu ? "cpu" : "cuda";
          scripted.first_request = 1000 * devices_.size();
          auto engine = std::make_unique<FakeEngine>(scripted);
          made_ = engine.get();
          return std::unique_ptr<Engine>(std::move(engine));
        },
        "/models/SmolLM2-135M-Instruct.Q4_1.gguf", test_settings());
  }
  void ask(const std::string& text) { application_->controller().apply(act::SendMessage{chat().id, text}); }
  bool answered(std::size_t num_messages) {
    return loop_until([&] {
      const bool is_idle = chat().activity == ui::Activity::kIdle || chat().activity == ui::Activity::kFailed;
      return is_idle && chat().messages.size() == num_messages && !chat().messages.back().streaming;
    });
  }

  std::vector<Device> devices_;  // that loads were asked for
  FakeEngine* made_ = nullptr;   // the newest
};

TEST_F(LostDeviceWindow, OffersTheCpuKeepsTheChatAndGoesOnThere) {
  open_on_gpu();
  made_->steps_allowed = 2;
  ask("one two three four five six seven eight");
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].text.empty(); }));
  const std::string begun = chat().messages.back().text;
  made_->lose_device();
  ASSERT_TRUE(loop_until([this] { return state().banner.has_value(); }));
  EXPECT_EQ(state().banner->offer, ui::BannerOffer::kContinueOnCpu);
  EXPECT_EQ(state().banner->text, "the device failed: choose the CPU");
  EXPECT_TRUE(chat().messages.back().text.starts_with(begun));
  draw_frames(2);
  write_screenshot("lost-device");
  play([](ImGuiTestContext* context) { context->ItemClick("**/continue_on_cpu"); });
  ASSERT_TRUE(loop_until([this] {
    return devices_.size() == 2 && state().model.phase == ui::ModelPhase::kReady &&
           state().model.details.find("cpu") != std::string::npos;
  }));
  EXPECT_EQ(devices_.back(), Device::kCpu);
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_TRUE(chat().messages[1].text.starts_with(begun));
  ask("again");
  ASSERT_TRUE(answered(4));
  EXPECT_EQ(chat().messages.back().text, "You said: again");
}

TEST_F(LostDeviceWindow, AFailureOnTheCpuOffersNothing) {
  open();
  engine_->lose_device();
  ask("hello");
  ASSERT_TRUE(answered(2));
  draw_frames(1);
  EXPECT_FALSE(state().banner && state().banner->offer != ui::BannerOffer::kNone);
  EXPECT_FALSE(chat().messages.back().error.empty());
}

}  // namespace
}  // namespace octavo::testing
