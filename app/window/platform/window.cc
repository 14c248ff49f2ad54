#include "app/window/platform/window.h"

#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>
#include <implot.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "app/window/platform/chord_order.h"
#include "app/window/platform/window_icon.h"
#include "engine/base/text.h"

namespace octavo::app {

// Size, focus, pointer and its shape are asked of the display in the frames after input (a frame's pointer
// has the shape that the frame before chose), and this often without.
constexpr int kFramesToAsk = 3;
constexpr double kAskDisplaySeconds = 0.25;

struct WindowInbox {
  bool input = true;  // since take_input()
  int frames_to_ask = kFramesToAsk;
  bool iconified = false;
  std::vector<std::string> dropped;
};

namespace {

// What GLFW said last, for messages.
std::string& last_glfw_error() {
  static std::string text;
  return text;
}

void remember_error(int, const char* description) { last_glfw_error() = escape_for_message(description); }

Error no_display() {
  return {.code = ErrorCode::kDevice,
          .message = "no display available (" + last_glfw_error() + "); use `octavo chat` in the terminal"};
}

Error no_opengl() {
  return {.code = ErrorCode::kDevice,
          .message =
              "the window needs OpenGL 3.3 (" + last_glfw_error() + "); use `octavo chat` in the terminal"};
}

// Input goes to Dear ImGui, whose backend calls these, set before it, first. They only note that there was
// some.
WindowInbox& inbox_of(GLFWwindow* handle) {
  return *static_cast<WindowInbox*>(glfwGetWindowUserPointer(handle));
}

void note_input(GLFWwindow* handle) {
  inbox_of(handle).input = true;
  inbox_of(handle).frames_to_ask = kFramesToAsk;
}

// GLFW tells of a drop when it has happened; while something is dragged over the window nothing is known.
void note_drop(GLFWwindow* handle, int count, const char** paths) {
  WindowInbox& inbox = inbox_of(handle);
  inbox.dropped.insert(inbox.dropped.end(), paths, paths + count);
  note_input(handle);
}

void note_iconified(GLFWwindow* handle, int iconified) {
  inbox_of(handle).iconified = iconified == GLFW_TRUE;
  note_input(handle);
}

void set_icon(GLFWwindow* handle) {
  std::vector<IconPicture> pictures;
  std::vector<GLFWimage> images;
  for (const int extent : kIconExtents) pictures.push_back(draw_icon(extent));
  for (IconPicture& picture : pictures)
    images.push_back({picture.extent, picture.extent, picture.pixels.data()});
  glfwSetWindowIcon(handle, static_cast<int>(images.size()), images.data());
}

void install_input_notes(GLFWwindow* handle) {
  glfwSetCursorPosCallback(handle, [](GLFWwindow* w, double, double) { note_input(w); });
  glfwSetCursorEnterCallback(handle, [](GLFWwindow* w, int) { note_input(w); });
  glfwSetMouseButtonCallback(handle, [](GLFWwindow* w, int, int, int) { note_input(w); });
  glfwSetScrollCallback(handle, [](GLFWwindow* w, double, double) { note_input(w); });
  glfwSetKeyCallback(handle, [](GLFWwindow* w, int, int, int, int) { note_input(w); });
  glfwSetCharCallback(handle, [](GLFWwindow* w, unsigned int) { note_input(w); });
  glfwSetWindowFocusCallback(handle, [](GLFWwindow* w, int) { note_input(w); });
  glfwSetWindowRefreshCallback(handle, note_input);
  glfwSetWindowIconifyCallback(handle, note_iconified);
  glfwSetFramebufferSizeCallback(handle, [](GLFWwindow* w, int, int) { note_input(w); });
  glfwSetWindowContentScaleCallback(handle, [](GLFWwindow* w, float, float) { note_input(w); });
  glfwSetWindowCloseCallback(handle, note_input);
  glfwSetDropCallback(handle, note_drop);
}

// ImGui's part goes by what stands on the keys, but does not know "+": where it has a key of its own, as on
// German and Nordic keyboards, Ctrl++ would be another chord. The keypad's key means the same.
void pass_key(GLFWwindow* handle, int key, int scancode, int action, int modifiers) {
  const char* label = glfwGetKeyName(key, scancode);
  const bool is_plus = label != nullptr && std::string_view(label) == "+";
  ImGui_ImplGlfw_KeyCallback(handle, is_plus ? GLFW_KEY_KP_ADD : key, scancode, action, modifiers);
}

void upload_textures() {
  for (ImTextureData* texture : *ImGui::GetDrawData()->Textures) {
    if (texture->Status != ImTextureStatus_OK) ImGui_ImplOpenGL3_UpdateTexture(texture);
  }
}

}  // namespace

Result<std::unique_ptr<Window>> Window::open(const std::string& title, WindowSize size) {
  glfwSetErrorCallback(remember_error);
  if (glfwInit() == GLFW_FALSE) return no_display();
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "octavo");  // the desktop file's StartupWMClass
  glfwWindowHintString(GLFW_X11_INSTANCE_NAME, "octavo");
  size = fitting(size);
  GLFWwindow* handle = glfwCreateWindow(size.width, size.height, title.c_str(), nullptr, nullptr);
  if (handle == nullptr) {
    glfwTerminate();
    return no_opengl();
  }
  std::unique_ptr<Window> window(new Window(handle));
  OCTAVO_TRY_VOID(window->start_imgui());
  return window;
}

// A size that was saved on a larger screen, or at another scale.
WindowSize Window::fitting(WindowSize wanted) {
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  if (monitor == nullptr) return wanted;
  int x = 0, y = 0, width = 0, height = 0;
  glfwGetMonitorWorkarea(monitor, &x, &y, &width, &height);
  if (width <= 0 || height <= 0) return wanted;
  return {std::min(wanted.width, width), std::min(wanted.height, height)};
}

Window::Window(GLFWwindow* handle) : handle_(handle), inbox_(std::make_unique<WindowInbox>()) {
  glfwSetWindowUserPointer(handle_, inbox_.get());
  set_icon(handle_);
  glfwSetWindowSizeLimits(handle_, 480, 360, GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwMakeContextCurrent(handle_);
  glfwSwapInterval(1);
  install_input_notes(handle_);
}

Result<void> Window::start_imgui() {
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigErrorRecoveryEnableTooltip = false;
  // Ctrl+Tab goes to the next chat.
  ImGui::GetCurrentContext()->ConfigNavWindowingKeyNext = 0;
  ImGui::GetCurrentContext()->ConfigNavWindowingKeyPrev = 0;
  if (!ImGui_ImplGlfw_InitForOpenGL(handle_, /*install_callbacks=*/true)) return no_opengl();
  glfwSetKeyCallback(handle_, pass_key);
  if (!ImGui_ImplOpenGL3_Init("#version 330 core")) return no_opengl();
  backends_started_ = true;
  return {};
}

Window::~Window() {
  if (backends_started_) {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
  if (ImPlot::GetCurrentContext() != nullptr) ImPlot::DestroyContext();
  if (ImGui::GetCurrentContext() != nullptr) ImGui::DestroyContext();
  glfwDestroyWindow(handle_);
  glfwTerminate();
}

void Window::wait_events(double seconds) {
  if (seconds < 0) {
    glfwWaitEvents();
  } else if (seconds == 0) {
    glfwPollEvents();
  } else {
    glfwWaitEventsTimeout(seconds);
  }
}

bool Window::take_input() { return std::exchange(inbox_->input, false); }

bool Window::has_queued_input() const { return !ImGui::GetCurrentContext()->InputEventsQueue.empty(); }

std::vector<std::string> Window::take_dropped() { return std::exchange(inbox_->dropped, {}); }

void Window::come_to_front() {
  if (glfwGetWindowAttrib(handle_, GLFW_ICONIFIED) == GLFW_TRUE) glfwRestoreWindow(handle_);
  glfwFocusWindow(handle_);
  glfwRequestWindowAttention(handle_);
}

bool Window::is_in_front() const {
  return !inbox_->iconified && glfwGetWindowAttrib(handle_, GLFW_FOCUSED) == GLFW_TRUE;
}

bool Window::should_close() const { return glfwWindowShouldClose(handle_) == GLFW_TRUE; }

bool Window::hidden() const { return inbox_->iconified; }

// Each question to the display wakes another process and waits for it: six of them a frame, for text that
// streams while the cores compute, cost more tokens than drawing it.
void Window::begin_platform_frame() {
  const double now = glfwGetTime();
  if (inbox_->frames_to_ask > 0 || now - display_asked_at_ >= kAskDisplaySeconds) {
    ImGui_ImplGlfw_NewFrame();
    inbox_->frames_to_ask = std::max(inbox_->frames_to_ask - 1, 0);
    display_asked_at_ = now;
  }
  ImGui::GetIO().DeltaTime = static_cast<float>(std::max(now - last_frame_at_, 1e-5));
  last_frame_at_ = now;
}

void Window::draw_frame(const std::function<void()>& draw) {
  ImGui_ImplOpenGL3_NewFrame();
  begin_platform_frame();
  ImVector<ImGuiInputEvent>& queue = ImGui::GetCurrentContext()->InputEventsQueue;
  const ImVector<ImGuiInputEvent> later = take_later_input(queue);
  ImGui::NewFrame();
  for (const ImGuiInputEvent& event : later) queue.push_back(event);
  focus_.after_new_frame();
  draw();
  focus_.end_frame();
  ImGui::Render();
  if (!draws_pixels_) return upload_textures();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

void Window::present() {
  if (draws_pixels_) glfwSwapBuffers(handle_);
}

Picture Window::read_pixels() const {
  Picture picture;
  glfwGetFramebufferSize(handle_, &picture.width, &picture.height);
  const std::size_t row = static_cast<std::size_t>(picture.width) * 3;
  std::vector<std::uint8_t> bottom_up(row * static_cast<std::size_t>(picture.height));
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, picture.width, picture.height, GL_RGB, GL_UNSIGNED_BYTE, bottom_up.data());
  picture.pixels.resize(bottom_up.size());
  for (int y = 0; y < picture.height; ++y) {
    const std::size_t from = row * static_cast<std::size_t>(picture.height - 1 - y);
    std::memcpy(picture.pixels.data() + row * static_cast<std::size_t>(y), bottom_up.data() + from, row);
  }
  return picture;
}

float Window::content_scale() const {
  float x = 1, y = 1;
  glfwGetWindowContentScale(handle_, &x, &y);
  return std::clamp(std::max(x, y), 0.5f, 4.0f);
}

WindowSize Window::size() const {
  WindowSize size;
  glfwGetWindowSize(handle_, &size.width, &size.height);
  return size;
}

void Window::wake_up() { glfwPostEmptyEvent(); }

}  // namespace octavo::app
