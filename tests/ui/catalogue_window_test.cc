// Models that are downloaded in the window, from a stand-in of the hub on this machine: the first start by
// mouse and by keyboard, the catalogue, a download that pauses and goes on, and what goes wrong.

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/hub/model_look.h"
#include "app/hub/recommended_models.h"
#include "tests/hub/hub_stand_in.h"
#include "tests/support/environment.h"
#include "tests/support/gguf_writer.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
namespace fs = std::filesystem;

constexpr std::int64_t kAvailable = std::int64_t{8} << 30;  // as window_fixture says

// A small model that loads, with weights enough to take a while.
std::string model_bytes(const fs::path& folder, std::uint32_t layers) {
  test::TinyLlamaOptions options;
  options.num_layers = layers;
  options.weight_type = kernels::TensorType::kQ8_0;
  const fs::path path = folder / "made.gguf";
  test::make_tiny_llama(11, options).write(path);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CatalogueWindow : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    if (IsSkipped()) return;
    const hub::RecommendedModel* const best =
        hub::best_model_for(hub::recommended_models(), kAvailable, hub::kUsualReadBytesPerS);
    ASSERT_NE(best, nullptr);
    best_ = *best;
    const std::string content = model_bytes(folder_, 8);
    std::string broken = content;
    broken[0] = 'X';
    hub_ = std::make_unique<HubStandIn>(std::vector<StandInRepository>{
        {.name = best_.repository,
         .files = {{.path = "m-" + best_.type + ".gguf", .content = content},
                   {.path = "m-Q8_0.gguf", .content = content + std::string(32, '\0')},
                   {.path = "m-Q2_K.gguf", .content = broken}}},
        {.name = "org/another-model", .files = {{.path = "a-Q4_0.gguf", .content = content}}}});
    hub_place_ = {.endpoint = hub_->address(), .cache = folder_ / "hub"};
    // Nothing is here yet.
    home_.emplace("XDG_DATA_HOME", (folder_ / "data").string());
    cache_.emplace("HF_HUB_CACHE", hub_place_.cache.string());
  }
  void TearDown() override {
    WindowTest::TearDown();
    hub_.reset();
    home_.reset();
    cache_.reset();
  }

  void open_without_model() {
    open_with(load(), "", test_settings());
    ASSERT_TRUE(loop_until([this] { return state().catalogue.better.has_value(); }));
    draw_frames(3);
  }
  app::EngineFactory load() {
    return [this](const EngineOptions& options, LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
      progress(1.0);
      auto engine =
          std::make_unique<FakeEngine>(FakeEngine::Options{.name = "Loaded", .path = options.model});
      engine->clock = clock_;
      engine_ = engine.get();
      return std::unique_ptr<Engine>(std::move(engine));
    };
  }
  bool is_loaded_from_hub() {
    return state().model.phase == ui::ModelPhase::kReady &&
           state().model.path.find("models--") != std::string::npos;
  }
  void perform(const ui::Action& action) {
    application_->controller().apply(action);
    application_->update();
    draw_frames(2);
  }
  const ui::CatalogueState& catalogue() const { return state().catalogue; }

  hub::RecommendedModel best_;
  std::unique_ptr<HubStandIn> hub_;
  std::optional<test::EnvironmentVariable> home_, cache_;
};

TEST_F(CatalogueWindow, AFirstStartLeadsToABiggerModelByMouse) {
  if (IsSkipped()) return;
  open_without_model();
  in_every_look([&](const std::string& look) { write_screenshot("first-start-" + look); });
  EXPECT_TRUE(hub_->seen().empty()) << "nothing is contacted before somebody asks for it";
  hub_->bytes_per_s = 400'000;
  play([](ImGuiTestContext* context) { context->ItemClick("**/get_better"); });  // one
  ASSERT_TRUE(loop_until([this] { return catalogue().download.phase == ui::DownloadPhase::kReceiving; }))
      << catalogue().download.sentence;
  write_screenshot("first-start-download");
  hub_->bytes_per_s = 0;
  ASSERT_TRUE(loop_until([this] { return is_loaded_from_hub(); }))
      << catalogue().download.sentence << state().model.problem;
  draw_frames(3);
  EXPECT_EQ(catalogue().download.phase, ui::DownloadPhase::kNone) << "nothing is left to say of it";
  write_screenshot("first-start-ready");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/##draft");  // two
    context->KeyChars("Hello");
    context->ItemClick("**/send");  // three
  });
  EXPECT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
}

// One script: the end of a script gives the keyboard back to the window that had it when it began, and would
// take it from the composer where the model becomes ready at that moment.
TEST_F(CatalogueWindow, AFirstStartLeadsToABiggerModelByKeyboard) {
  if (IsSkipped()) return;
  open_without_model();
  play([this](ImGuiTestContext* context) {
    context->MouseTeleportToPos({1, 1});
    // To the button: what the arrows and Tab reach.
    for (int i = 0; i < 40; ++i) {
      const ImGuiContext& imgui = *ImGui::GetCurrentContext();
      const ImGuiTestItemInfo wanted = context->ItemInfo("**/get_better");
      if (wanted.ID != 0 && imgui.NavId == wanted.ID) break;
      context->KeyPress(ImGuiKey_Tab);
      context->Yield(2);
    }
    context->KeyPress(ImGuiKey_Space);
    for (int i = 0; i < 4000 && !is_loaded_from_hub(); ++i) context->Yield();
    context->Yield(4);
    context->KeyChars("Hello");
    context->KeyPress(ImGuiKey_Enter);
  });
  ASSERT_TRUE(is_loaded_from_hub()) << catalogue().download.sentence << state().model.problem;
  EXPECT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
}

TEST_F(CatalogueWindow, TheCatalogueSearchesLooksIntoFilesAndGetsOne) {
  if (IsSkipped()) return;
  open_with(load(), "/models/SmolLM2-135M-Instruct.Q4_1.gguf", test_settings());
  play([this](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_M);
    context->Yield(3);
    context->SetRef("model_picker");
    context->ItemClick("**/open_catalogue");
    context->Yield(6);
    IM_CHECK(catalogue().open);
  });
  EXPECT_TRUE(hub_->seen().empty());
  draw_frames(4);
  play([](ImGuiTestContext* context) {
    context->SetRef("model_catalogue");
    context->ItemClick("**/##hub_query");
    context->KeyChars("another");
    context->KeyPress(ImGuiKey_Enter);
  });
  ASSERT_TRUE(loop_until([this] { return !catalogue().is_searching && catalogue().found.size() == 1; }))
      << catalogue().problem << " searched for " << catalogue().query.value_or("nothing") << ", found "
      << catalogue().found.size();
  perform(act::SearchHub{});
  in_every_look([&](const std::string& look) { write_screenshot("catalogue-" + look); });
  perform(act::ShowRepository{best_.repository, best_.type});
  ASSERT_TRUE(loop_until([this] {
    const auto& files = catalogue().repository.files;
    return std::ranges::any_of(files, &ui::CatalogueFile::is_checked);
  })) << catalogue().repository.problem;
  perform(act::ChooseHubFile{"m-Q2_K.gguf"});
  ASSERT_TRUE(loop_until([this] {
    const auto& files = catalogue().repository.files;
    return std::ranges::any_of(
        files, [](const auto& file) { return file.path == "m-Q2_K.gguf" && file.is_checked; });
  }));
  for (const ui::CatalogueFile& file : catalogue().repository.files) {
    if (file.path == "m-Q2_K.gguf") {
      EXPECT_EQ(file.fit, ui::CatalogueFit::kUnsupported) << file.sentence;
    } else if (file.is_checked) {
      EXPECT_EQ(file.fit, ui::CatalogueFit::kFits) << file.sentence;
      EXPECT_EQ(file.sentence.find("Needs "), 0u) << file.sentence;
    }
  }
  draw_frames(2);
  in_every_look([&](const std::string& look) { write_screenshot("catalogue-files-" + look); });
  std::string ranges;
  for (const SeenRequest& seen : hub_->seen()) ranges += seen.range;
  EXPECT_NE(ranges, "") << "headers come by ranges";
  perform(act::ChooseHubFile{"m-" + best_.type + ".gguf"});
  draw_frames(2);
  play([](ImGuiTestContext* context) {
    context->SetRef("model_catalogue");
    context->ItemClick("**/get_model");
  });
  ASSERT_TRUE(loop_until([this] { return is_loaded_from_hub(); })) << catalogue().download.sentence;
  EXPECT_FALSE(catalogue().open);
}

TEST_F(CatalogueWindow, ADownloadPausesGoesOnAndIsCancelledWhileChatsGoOn) {
  if (IsSkipped()) return;
  open_with(load(), "/models/SmolLM2-135M-Instruct.Q4_1.gguf", test_settings());
  hub_->bytes_per_s = 100'000;
  perform(act::GetModel{best_.repository, best_.type, best_.name});
  ASSERT_TRUE(loop_until([this] { return catalogue().download.received > 30'000; }))
      << catalogue().download.sentence;
  hub_->bytes_per_s = 4'000;  // pictures take as long as a busy machine makes them
  perform(act::SendMessage{chat().id, "meanwhile"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
  in_every_look([&](const std::string& look) { write_screenshot("download-" + look); });
  play([](ImGuiTestContext* context) { context->ItemClick("**/pause_download"); });
  ASSERT_TRUE(loop_until([this] { return catalogue().download.phase == ui::DownloadPhase::kPaused; }));
  const std::int64_t before = catalogue().download.received;
  draw_frames(2);
  write_screenshot("download-paused");
  hub_->bytes_per_s = 100'000;
  play([](ImGuiTestContext* context) { context->ItemClick("**/resume_download"); });
  ASSERT_TRUE(loop_until([&] {
    return catalogue().download.phase == ui::DownloadPhase::kReceiving &&
           catalogue().download.received >= before;
  }));
  play([](ImGuiTestContext* context) { context->ItemClick("**/cancel_download"); });
  ASSERT_TRUE(loop_until([this] { return catalogue().download.phase == ui::DownloadPhase::kNone; }));
  for (fs::recursive_directory_iterator entry(hub_place_.cache), end; entry != end; ++entry)
    EXPECT_TRUE(entry->is_directory() || entry->path().extension() == ".lock") << entry->path();
}

// 95 of 100 frames at rest and while bytes come: what receives them has threads of its own.
TEST_F(CatalogueWindow, ADownloadCostsTheWindowNoFrames) {
  if (IsSkipped()) return;
  open_with(load(), "/models/SmolLM2-135M-Instruct.Q4_1.gguf", test_settings());
  const auto slow_frame_ms = [this] {
    std::vector<double> frames;
    for (int i = 0; i < 60; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      application_->update();
      draw_frames(1);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      frames.push_back(took.count());
    }
    std::ranges::sort(frames);
    return frames[frames.size() * 95 / 100];
  };
  const double at_rest = slow_frame_ms();
  hub_->bytes_per_s = 50'000;
  perform(act::GetModel{best_.repository, best_.type, best_.name});
  ASSERT_TRUE(loop_until([this] { return catalogue().download.phase == ui::DownloadPhase::kReceiving; }));
  const double meanwhile = slow_frame_ms();
  ASSERT_EQ(catalogue().download.phase, ui::DownloadPhase::kReceiving) << "it ended before it was measured";
  RecordProperty("frame_ms_at_rest", std::to_string(at_rest));
  RecordProperty("frame_ms_meanwhile", std::to_string(meanwhile));
  EXPECT_LT(meanwhile, 2 * at_rest + 16) << "at rest " << at_rest << " ms";
}

TEST_F(CatalogueWindow, WhatGoesWrongIsASentenceInItsPlace) {
  if (IsSkipped()) return;
  open_without_model();
  perform(act::OpenCatalogue{});
  hub_->answer("/api/models?search=", 200, "{\"no\":\"list\"}");
  perform(act::SearchHub{"x"});
  ASSERT_TRUE(loop_until([this] { return !catalogue().problem.empty(); }));
  EXPECT_NE(catalogue().problem.find("makes no sense"), std::string::npos);
  perform(act::ShowRepository{"org/nothing", ""});
  ASSERT_TRUE(loop_until([this] { return !catalogue().repository.problem.empty(); }));
  perform(act::GetModel{best_.repository, "m-Q2_K.gguf", "Broken"});
  ASSERT_TRUE(loop_until([this] { return catalogue().download.phase == ui::DownloadPhase::kFailed; }));
  EXPECT_NE(catalogue().download.sentence.find("m-Q2_K.gguf"), std::string::npos)
      << catalogue().download.sentence;
  draw_frames(3);
  write_screenshot("catalogue-problems");
}

}  // namespace
}  // namespace octavo::testing
