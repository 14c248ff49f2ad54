// What the window itself draws, as plain values: which workspace and which panels are open, what a person
// settled on for the window, and the banner.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/ids.h"
#include "ui/server_state.h"

namespace octavo::ui {

struct BranchTree;  // chat_state.h

enum class Workspace { kChat, kCompare, kMemory };
enum class ThemeName { kDark, kLight, kHighContrast, kSystem };
enum class SendKey { kEnter, kControlEnter };
enum class OnRepeats { kTell, kStop };  // what becomes of an answer that goes round in circles

inline constexpr double kLeastUiScale = 0.75, kMostUiScale = 3.0;

struct SettingsState {
  ThemeName theme = ThemeName::kSystem;
  double ui_scale = 1.0;  // kLeastUiScale .. kMostUiScale; a small window shows less of it
  SendKey send_key = SendKey::kEnter;
  bool sidebar_shown = true;
  bool notifies = true;  // the desktop, when a long answer ends while nobody looks
  // What new chats begin with; a preset has a system prompt, sampling and thinking of its own.
  std::string system_prompt = {};
  PresetId preset = {};  // 0: none
  OnRepeats on_repeats = OnRepeats::kTell;
  ServerSettings server = {};
};

enum class BannerKind { kNotice, kError };
enum class BannerOffer { kNone, kContinueOnCpu, kShowInFolder };
// What an error is about: it leaves when that works again.
enum class BannerTopic { kOther, kSettings, kModel, kQuestion };
// A notice leaves by itself, an error when it is closed or no longer holds.
struct Banner {
  BannerKind kind = BannerKind::kNotice;
  std::string text = {};  // one sentence
  BannerOffer offer = BannerOffer::kNone;
  BannerTopic topic = BannerTopic::kOther;
  std::string path = {};  // of kShowInFolder: the file
};

// What the banner said of this holds no longer.
inline void settle(std::optional<Banner>& banner, BannerTopic topic) {
  if (banner && banner->topic == topic) banner.reset();
}

struct DesktopState {
  bool keys_open = false;                     // the list of all keys
  ThemeName system_theme = ThemeName::kDark;  // what kSystem means now
  bool presets_open = false;                  // the panel of presets
  bool tree_open = false;                     // all branches of the active chat
  std::shared_ptr<const BranchTree> tree;     // of the active chat, while it is open; never changed
};

}  // namespace octavo::ui
