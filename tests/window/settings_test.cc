#include "app/window/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace octavo::app {
namespace {

class SettingsFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(path_) << text;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("octavo-settings-" + std::to_string(::getpid()));
  const std::filesystem::path path_ = folder_ / "deeper" / ".." / "settings.json";
};

TEST_F(SettingsFile, ComesBackAsItWasSavedAndOnlyItsOwnerReadsIt) {
  std::filesystem::create_directories(folder_ / "deeper");
  Settings settings = default_settings();
  settings.width = 900;
  settings.ui = {.theme = ui::ThemeName::kLight,
                 .ui_scale = 1.5,
                 .send_key = ui::SendKey::kControlEnter,
                 .sidebar_shown = false,
                 .notifies = false,
                 .on_repeats = ui::OnRepeats::kStop};
  settings.recent_folders = {"/home/somebody/ä", "/tmp"};
  settings.sampling.temperature = 0.3;
  settings.recent_models = {{"/models/b.gguf", 1'700'000'000'000}, {"/models/ä.gguf", 3}};
  ASSERT_TRUE(save_settings(path_, settings));
  const LoadedSettings loaded = load_settings(path_);
  EXPECT_EQ(loaded.notice, "");
  EXPECT_EQ(loaded.settings.width, 900);
  EXPECT_EQ(loaded.settings.ui.theme, ui::ThemeName::kLight);
  EXPECT_EQ(loaded.settings.ui.send_key, ui::SendKey::kControlEnter);
  EXPECT_FALSE(loaded.settings.ui.sidebar_shown);
  EXPECT_FALSE(loaded.settings.ui.notifies);
  EXPECT_EQ(loaded.settings.recent_folders, settings.recent_folders);
  EXPECT_EQ(loaded.settings.ui.on_repeats, ui::OnRepeats::kStop);
  EXPECT_DOUBLE_EQ(loaded.settings.ui.ui_scale, 1.5);
  EXPECT_DOUBLE_EQ(loaded.settings.sampling.temperature, 0.3);
  EXPECT_EQ(loaded.settings.recent_models, settings.recent_models);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(SettingsFile, AbsentFileGivesDefaultsWithoutANotice) {
  const LoadedSettings loaded = load_settings(folder_ / "none.json");
  EXPECT_EQ(loaded.notice, "");
  EXPECT_DOUBLE_EQ(loaded.settings.sampling.temperature, 0.7);
}

TEST_F(SettingsFile, DamagedFileGivesDefaultsAndANotice) {
  std::filesystem::create_directories(folder_ / "deeper");
  for (const std::string text :
       {"", "{", "[]", "{\"version\":2}", "{\"version\":1,\"ui_scale\":9}", "null",
        "{\"version\":1,\"width\":-4}", "{\"version\":1,\"theme\":\"pink\"}",
        "{\"version\":1,\"width\":1e99}", "{\"version\":1,\"sampling\":{\"top_p\":2}}",
        "{\"version\":1,\"sampling\":7}", "{\"version\":1,\"theme\":{}}",
        "{\"version\":1,\"recent_models\":7}", "{\"version\":1,\"recent_folders\":[7]}",
        "{\"version\":1,\"notifies\":1}", "{\"version\":1,\"recent_models\":[{\"path\":7,\"used_ms\":1}]}",
        "{\"version\":1,\"recent_models\":[{\"path\":\"a\"}]}"}) {
    write(text);
    const LoadedSettings loaded = load_settings(path_);
    EXPECT_NE(loaded.notice, "") << text;
    EXPECT_EQ(loaded.settings.width, 1280) << text;
    EXPECT_DOUBLE_EQ(loaded.settings.ui.ui_scale, 1.0) << text;
  }
}

TEST_F(SettingsFile, UnwritablePlaceIsAnErrorInOneSentence) {
  const auto saved = save_settings("/proc/octavo/settings.json", default_settings());
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("cannot save the settings"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
