// What the window itself draws, as plain values: which workspace and which panels are open, what a person
// settled on for the window, and the banner.
#pragma once

#include <memory>
#include <string>

namespace octavo::ui {

struct BranchTree;  // chat_state.h

enum class Workspace { kChat, kCompare, kMemory };
enum class ThemeName { kDark, kLight, kHighContrast };
enum class SendKey { kEnter, kControlEnter };

struct SettingsState {
  ThemeName theme = ThemeName::kDark;
  double ui_scale = 1.0;  // 0.75 .. 3
  SendKey send_key = SendKey::kEnter;
  bool sidebar_shown = true;
};

enum class BannerKind { kNotice, kError };
enum class BannerOffer { kNone, kContinueOnCpu };
struct Banner {
  BannerKind kind = BannerKind::kNotice;
  std::string text;  // one sentence
  BannerOffer offer = BannerOffer::kNone;
};

struct DesktopState {
  bool attach_open = false;                // the question which file to attach
  bool presets_open = false;               // the panel of presets
  bool tree_open = false;                  // all branches of the active chat
  std::shared_ptr<const BranchTree> tree;  // of the active chat, while it is open; never changed
};

}  // namespace octavo::ui
