#include "tests/ui/window_fixture.h"

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "tests/support/paths.h"
#include "tests/ui/drawn_text.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <thirdparty/stb/imstb_image_write.h>

namespace octavo::testing {
namespace {

bool has_display() {
  const char* display = std::getenv("DISPLAY");
  return display != nullptr && *display != '\0';
}

void run_script(ImGuiTestContext* context) {
  const auto& script = *static_cast<std::function<void(ImGuiTestContext*)>*>(context->Test->UserData);
  context->SetRef("octavo");
  script(context);
}

}  // namespace

void WindowTest::SetUp() {
  if (!has_display()) GTEST_SKIP() << "DISPLAY is not set: these tests need a window";
  folder_ = std::filesystem::temp_directory_path() / ("octavo-ui-test-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder_);
}

void WindowTest::close_window() {
  if (test_engine_ != nullptr) ImGuiTestEngine_Stop(test_engine_);
  application_.reset();
  if (test_engine_ != nullptr) ImGuiTestEngine_DestroyContext(test_engine_);
  test_engine_ = nullptr;
}

void WindowTest::TearDown() {
  close_window();
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

app::Settings WindowTest::test_settings() {
  app::Settings settings = app::default_settings();
  settings.width = 1200;
  settings.height = 760;
  return settings;
}

std::vector<TemplateSwitch> WindowTest::thinking_switches() {
  TemplateSwitch thinking, effort;
  thinking.name = "enable_thinking";
  thinking.choices = {true, false};
  effort.kind = SwitchKind::kEffort;
  effort.name = "reasoning_effort";
  effort.choices = {"low", "medium", "high"};
  effort.usual = 1;
  return {thinking, effort};
}

app::Settings WindowTest::large_settings() {
  app::Settings settings = test_settings();
  settings.width = 1600;
  settings.height = 1000;
  return settings;
}

void WindowTest::open(FakeEngine::Options options, const app::Settings& settings) {
  const auto factory = [this, options](const EngineOptions&,
                                       LoadProgress) -> Result<std::unique_ptr<Engine>> {
    auto engine = std::make_unique<FakeEngine>(options);
    engine_ = engine.get();
    engine->clock = clock_;
    return std::unique_ptr<Engine>(std::move(engine));
  };
  open_with(factory, "/models/SmolLM2-135M-Instruct.Q4_1.gguf", settings);
}

void WindowTest::open_with(app::EngineFactory factory, const std::string& model,
                           const app::Settings& settings) {
  open_loading(std::move(factory), model, settings);
  ASSERT_TRUE(loop_until([this] { return state().model.phase != ui::ModelPhase::kLoading; }));
  draw_frames(3);
}

void WindowTest::open_loading(app::EngineFactory factory, const std::string& model,
                              const app::Settings& settings) {
  app::WindowOptions options;
  options.engine.model = model;
  options.settings_path = folder_ / "settings.json";
  options.chats_path = chats_path_;
  options.export_folder = folder_;
  options.socket_path = socket_path_;
  options.model_places = model_places();
  options.hub_place = hub_place_;
  if (options.hub_place.cache.empty()) options.hub_place.cache = folder_ / "hub";
  options.unix_time_ms = [this] { return unix_time_ms_ != 0 ? unix_time_ms_ : unix_time_ms(); };
  ASSERT_TRUE(app::save_settings(options.settings_path, settings));
  auto application = app::Application::start(options, std::move(factory), *clock_);
  if (!application) throw std::runtime_error(application.error().message);  // ends the test that wanted it
  application_ = *std::move(application);
  application_->window().leave_out_pixels();  // who wants to see some draws them: picture_of_frame
}

app::ScoutPlaces WindowTest::model_places() const {
  return {.models_folder = folder_ / "models",
          .default_model = folder_ / "models" / "default.gguf",
          .home = folder_,
          .available_bytes = [] { return std::int64_t{8} << 30; }};
}

void WindowTest::play(const Script& script) {
  if (test_engine_ == nullptr) {
    test_engine_ = ImGuiTestEngine_CreateContext();
    ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(test_engine_);
    io.ConfigSavedSettings = false;
    io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Info;
    io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
    io.ConfigFixedDeltaTime = 1.0f / 60.0f;  // on a busy machine slow frames would look like keys held down
    io.ConfigMouseDrawCursor = false;
    ImGuiTestEngine_Start(test_engine_, ImGui::GetCurrentContext());
    draw_frames(2);  // it counts frames from here, and refuses tests before it has seen one
  }
  Script copy = script;
  ImGuiTest* test = IM_REGISTER_TEST(test_engine_, "window", "script");
  test->UserData = &copy;
  test->TestFunc = run_script;
  ImGuiTestEngine_QueueTest(test_engine_, test);
  while (!ImGuiTestEngine_IsTestQueueEmpty(test_engine_)) draw_frames(1);
  EXPECT_EQ(test->Output.Status, ImGuiTestStatus_Success) << test->Output.Log.Buffer.c_str();
  ImGuiTestEngine_UnregisterTest(test_engine_, test);
}

// Without pixels a frame takes a millisecond. What waits for time, as tooltips do, sees the frames of a
// screen; what other threads do in the meantime gets a little time itself.
void WindowTest::draw_frames(int count) {
  constexpr double kFrameSeconds = 1.0 / 30;
  for (int i = 0; i < count; ++i) {
    glfwSetTime(glfwGetTime() + kFrameSeconds);
    std::this_thread::sleep_for(between_frames_);
    application_->window().wait_events(0);
    application_->update();
    application_->draw_frame();
    if (test_engine_ != nullptr) ImGuiTestEngine_PostSwap(test_engine_);
  }
}

bool WindowTest::loop_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    application_->step_for(0.005);  // a scripted engine takes a step for each update
    application_->update();         // also when the test's clock stands still
  }
  return true;
}

void WindowTest::in_every_look(const std::function<void(const std::string& look)>& shoot) {
  for (const auto& [theme, name] :
       {std::pair{ui::ThemeName::kDark, "dark"}, std::pair{ui::ThemeName::kLight, "light"}}) {
    for (const auto& [scale, suffix] : {std::pair{1.0, ""}, std::pair{1.5, "-150"}}) {
      ui::SettingsState settings = state().settings;
      settings.theme = theme;
      settings.ui_scale = scale;
      application_->controller().apply(ui::actions::ChangeSettings{settings});
      draw_frames(3);
      shoot(std::string(name) + suffix);
    }
  }
}

std::string WindowTest::words_shown() {
  std::string words;
  for (const DrawnText& drawn : drawn_texts(application_->window())) words += drawn.text + "\n";
  return words;
}

void WindowTest::write_screenshot(const std::string& name) {
  draw_frames(2);
  const std::vector<DrawnText> texts = drawn_texts(application_->window());
  EXPECT_FALSE(texts.empty()) << name;
  EXPECT_EQ(hard_to_read(texts), "") << name;
  EXPECT_EQ(cut_off(texts), "") << name;
  const app::Picture picture = picture_of_frame(application_->window());
  const std::filesystem::path folder = test::source_folder() / "tests" / "output";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / (name + ".png")).string();
  EXPECT_NE(stbi_write_png(path.c_str(), picture.width, picture.height, 3, picture.pixels.data(),
                           picture.width * 3),
            0);
}

}  // namespace octavo::testing
