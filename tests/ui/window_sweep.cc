#include "tests/ui/window_sweep.h"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "tests/support/sweep.h"
#include "tests/ui/drawn_controls.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/keyboard_walk.h"

namespace octavo::testing {
namespace {

// What other threads count for a screen comes in this time, before it is looked at.
constexpr std::chrono::milliseconds kCounting{20};

struct Look {
  int width = 0, height = 0;
  double zoom = 1;
  ui::ThemeName theme = ui::ThemeName::kDark;
  std::string text() const {
    constexpr const char* kThemes[] = {"dark", "light", "high contrast"};
    return std::to_string(width) + "x" + std::to_string(height) + " at " +
           std::to_string(static_cast<int>(zoom * 100)) + " %, " + kThemes[static_cast<int>(theme)];
  }
};

std::vector<Look> sizes_and_zooms() {
  if (!test::is_full_sweep()) return {{900, 600, 3}, {1280, 720, 0.75}};
  std::vector<Look> all;
  for (const auto& [width, height] : {std::pair{900, 600},
                                      {1000, 700},
                                      {1024, 768},
                                      {1100, 620},
                                      {1280, 720},
                                      {1280, 1024},
                                      {1366, 768},
                                      {1440, 900},
                                      {1600, 1000},
                                      {1920, 1080},
                                      {1920, 1200},
                                      {2560, 1440}}) {
    for (const double zoom : {0.75, 1.0, 1.5, 3.0}) all.push_back({width, height, zoom});
  }
  return all;
}

std::vector<Look> themes() {
  std::vector<Look> all;
  for (const ui::ThemeName theme :
       {ui::ThemeName::kDark, ui::ThemeName::kLight, ui::ThemeName::kHighContrast})
    all.push_back({1440, 900, 1, theme});
  return all;
}

std::vector<Look> looks_of(Sweep sweep) {
  switch (sweep) {
    case Sweep::kLayout: return sizes_and_zooms();
    case Sweep::kContrast: return themes();
    case Sweep::kKeyboard: break;
  }
  return {{1440, 900, 1}};
}

// Of a short run, the first and the last screen stand for all.
std::vector<Screen> first_and_last(const std::vector<Screen>& screens) {
  return screens.size() < 2 ? screens : std::vector<Screen>{screens.front(), screens.back()};
}

std::vector<std::string> lines_of(const std::string& what, const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(what + line);
  return lines;
}

}  // namespace

std::vector<std::string> WindowSweep::faults() {
  const std::vector<DrawnText> texts = drawn_texts(application_->window());
  if (GetParam() == Sweep::kContrast) return lines_of("hard to read: ", hard_to_read(texts));
  if (GetParam() == Sweep::kKeyboard) {
    std::vector<std::string> unreached;
    play([&](ImGuiTestContext* context) { unreached = unreached_controls(context); });
    return unreached;
  }
  std::vector<std::string> found = lines_of("cut off: ", cut_off(texts));
  for (std::string& line : unexplained_ellipses(texts, [this](ImVec2 place) { point_at(place); }))
    found.push_back(std::move(line));
  point_at({1, 1});
  play([&](ImGuiTestContext* context) {
    for (std::string& line : misplaced_controls(context)) found.push_back(std::move(line));
  });
  return found;
}

void WindowSweep::sweep(const std::vector<Screen>& all) {
  struct Seen {
    std::string where;
    int times = 0;
  };
  const bool by_theme = GetParam() == Sweep::kContrast;
  const auto between_frames =
      std::exchange(between_frames_, std::chrono::milliseconds(0));  // nothing else is waited for
  const std::vector<Screen> screens = by_theme && !test::is_full_sweep() ? first_and_last(all) : all;
  std::map<std::string, Seen> seen_faults;
  std::map<std::string, int> times_shown;
  for (const Look& look : looks_of(GetParam())) {
    glfwSetWindowSize(glfwGetCurrentContext(), look.width, look.height);
    ui::SettingsState settings = state().settings;
    settings.ui_scale = look.zoom;
    settings.theme = look.theme;
    apply(ui::actions::ChangeSettings{settings});
    ASSERT_TRUE(loop_until([&] {
      draw_frames(1);
      return ImGui::GetIO().DisplaySize.x == static_cast<float>(look.width) &&
             ImGui::GetIO().DisplaySize.y == static_cast<float>(look.height);
    })) << look.text();
    draw_frames(2);
    for (const Screen& screen : screens) {
      is_shown_ = true;
      screen.show();
      draw_frames(4);
      std::this_thread::sleep_for(kCounting);
      draw_frames(2);
      times_shown[screen.name] += is_shown_ ? 1 : 0;
      for (const std::string& line : is_shown_ ? faults() : std::vector<std::string>()) {
        const std::size_t place = std::min(line.find(" ["), line.size());
        Seen& seen = seen_faults[screen.name + ": " + line.substr(0, place)];
        if (seen.times++ == 0) seen.where = look.text() + line.substr(place);
      }
      screen.hide();
      draw_frames(2);
    }
  }
  between_frames_ = between_frames;
  for (const auto& [fault, seen] : seen_faults)
    ADD_FAILURE() << fault << ", " << seen.times << " times, first in " << seen.where;
  for (const auto& [name, times] : times_shown) EXPECT_GT(times, 0) << name << " was never shown";
}

void WindowSweep::key(ImGuiKeyChord chord) {
  play([&](ImGuiTestContext* context) {
    context->KeyPress(chord);
    context->Yield(3);
  });
}

void WindowSweep::press(const std::string& control) {
  std::optional<ImVec2> at;
  play([&](ImGuiTestContext* context) {
    if (!context->ItemExists(control.c_str())) return;
    const ImRect seen = context->ItemInfo(control.c_str()).RectClipped;
    if (seen.GetWidth() > 2 && seen.GetHeight() > 2) at = seen.GetCenter();
  });
  is_shown_ = at.has_value();
  if (!at) return;
  point_at(*at);
  for (const bool down : {true, false}) {
    ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
    draw_frames(2);
  }
}

// The display's own pointer goes there, too: GLFW asks where it is while it is outside of the window.
void WindowSweep::point_at(ImVec2 place) {
  glfwSetCursorPos(glfwGetCurrentContext(), static_cast<double>(place.x), static_cast<double>(place.y));
  ImGui::GetIO().AddMousePosEvent(place.x, place.y);
  draw_frames(8);  // what is shown beside it takes a few to find its size
}

void WindowSweep::write_file(const std::string& name, const std::string& bytes) const {
  std::ofstream(folder_ / name, std::ios::binary) << bytes;
}

}  // namespace octavo::testing
