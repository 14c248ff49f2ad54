// A GLFW window with an OpenGL 3.3 core context and Dear ImGui's backends on it. One at a time in a process.
//
// Thread: the main one, except `wake_up`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/window/platform/keyboard_focus.h"
#include "engine/base/result.h"

struct GLFWwindow;

namespace octavo::app {

struct WindowSize {
  int width = 1280;
  int height = 800;
};

struct WindowInbox;  // what GLFW's callbacks note

// Pixels as three bytes, top row first.
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

class Window {
 public:
  // Opens the window and creates the Dear ImGui context. A size that is larger than the screen is cut to it.
  // Without a display: one sentence that says so.
  static Result<std::unique_ptr<Window>> open(const std::string& title, WindowSize size);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // Sleeps until there is input, `wake_up` is called or the time is over; handles the input. 0: only what is
  // there already; below 0: no limit.
  void wait_events(double seconds);

  // Whether there was input since the last call.
  bool take_input();
  // Dear ImGui has taken in only a part of what was typed: each frame takes a key once.
  bool has_queued_input() const;
  // Paths of files that were dropped on the window since the last call.
  std::vector<std::string> take_dropped();
  // Whether it has the keyboard of the desktop.
  bool is_in_front() const;
  // In front of the other windows, where the system allows it; else it asks for attention.
  void come_to_front();
  bool should_close() const;
  // Nothing of it can be seen, so nothing need be drawn.
  bool hidden() const;

  // Draws one frame: `draw` submits Dear ImGui's widgets.
  void draw_frame(const std::function<void()>& draw);
  // Shows what was drawn; apart, so that a test can look at it before.
  void present();
  // For measurements on machines where software draws the pixels: frames are built and their textures
  // uploaded as ever, but their triangles are not drawn, and nothing is shown.
  void leave_out_pixels() { draws_pixels_ = false; }
  Picture read_pixels() const;

  float content_scale() const;
  WindowSize size() const;

  // Makes wait_events return. Any thread.
  static void wake_up();

 private:
  explicit Window(GLFWwindow* handle);
  static WindowSize fitting(WindowSize wanted);
  Result<void> start_imgui();
  void begin_platform_frame();

  GLFWwindow* handle_;
  double last_frame_at_ = 0, display_asked_at_ = 0;  // glfwGetTime()
  bool backends_started_ = false;
  bool draws_pixels_ = true;
  std::unique_ptr<WindowInbox> inbox_;
  KeyboardFocus focus_;
};

}  // namespace octavo::app
