#include "app/window/platform/desktop_bus.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace octavo::app {
namespace {

constexpr const char* kPortal = "org.freedesktop.portal.Desktop";
constexpr const char* kPortalPath = "/org/freedesktop/portal/desktop";
constexpr const char* kPortalSettings = "org.freedesktop.portal.Settings";
constexpr const char* kAppearance = "org.freedesktop.appearance";
constexpr const char* kColorScheme = "color-scheme";
constexpr const char* kNotifications = "org.freedesktop.Notifications";
constexpr const char* kNotificationsPath = "/org/freedesktop/Notifications";
constexpr std::uint32_t kPrefersDark = 1, kPrefersLight = 2;  // 0: it has no preference

struct CloseBus {
  void operator()(sd_bus* bus) const { sd_bus_close_unref(bus); }
};

// Servers show a text with the markup of HTML; ours is data.
std::string without_markup(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else
      escaped += c;
  }
  return escaped;
}

// A number in a variant, which Read wraps into another one.
std::optional<std::uint32_t> read_number(sd_bus_message* message) {
  const char* contents = nullptr;
  char type = 0;
  if (sd_bus_message_peek_type(message, &type, &contents) <= 0) return std::nullopt;
  if (type == SD_BUS_TYPE_VARIANT) {
    if (sd_bus_message_enter_container(message, SD_BUS_TYPE_VARIANT, contents) < 0) return std::nullopt;
    return read_number(message);
  }
  std::uint32_t number = 0;
  if (type != SD_BUS_TYPE_UINT32 || sd_bus_message_read_basic(message, type, &number) < 0)
    return std::nullopt;
  return number;
}

std::optional<ui::ThemeName> theme_of(std::uint32_t scheme) {
  if (scheme == kPrefersDark) return ui::ThemeName::kDark;
  if (scheme == kPrefersLight) return ui::ThemeName::kLight;
  return std::nullopt;
}

}  // namespace

// What comes over the bus; called on its thread.
struct BusAnswers {
  static void take_theme(DesktopBus& self, sd_bus_message* message) {
    const auto scheme = read_number(message);
    const auto theme = scheme ? theme_of(*scheme) : std::nullopt;
    if (!theme) return;
    {
      const std::lock_guard lock(self.mutex_);
      self.theme_ = theme;
    }
    self.wake_up_();
  }

  static int on_read(sd_bus_message* message, void* data, sd_bus_error*) {
    if (sd_bus_message_is_method_error(message, nullptr) == 0)
      take_theme(*static_cast<DesktopBus*>(data), message);
    return 0;
  }

  static int on_setting(sd_bus_message* message, void* data, sd_bus_error*) {
    const char *name = nullptr, *key = nullptr;
    if (sd_bus_message_read(message, "ss", &name, &key) < 0) return 0;
    if (std::strcmp(name, kAppearance) == 0 && std::strcmp(key, kColorScheme) == 0)
      take_theme(*static_cast<DesktopBus*>(data), message);
    return 0;
  }

  static int on_shown(sd_bus_message* message, void* data, sd_bus_error*) {
    std::uint32_t id = 0;
    if (sd_bus_message_is_method_error(message, nullptr) != 0 || sd_bus_message_read(message, "u", &id) < 0)
      return 0;
    auto& self = *static_cast<DesktopBus*>(data);
    const std::lock_guard lock(self.mutex_);
    self.shown_.push_back(id);
    return 0;
  }

  static int on_pressed(sd_bus_message* message, void* data, sd_bus_error*) {
    std::uint32_t id = 0;
    if (sd_bus_message_read(message, "u", &id) < 0) return 0;
    auto& self = *static_cast<DesktopBus*>(data);
    {
      const std::lock_guard lock(self.mutex_);
      if (std::erase(self.shown_, id) == 0) return 0;  // another program's
      self.pressed_ = true;
    }
    self.wake_up_();
    return 0;
  }
};

DesktopBus::DesktopBus(std::string address, std::function<void()> wake_up)
    : address_(std::move(address)), wake_up_(std::move(wake_up)) {
  if (address_.empty()) return;
  woken_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { run(); });
}

DesktopBus::~DesktopBus() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(woken_.get(), 1);
  thread_.join();
}

std::optional<ui::ThemeName> DesktopBus::take_theme() {
  const std::lock_guard lock(mutex_);
  return std::exchange(theme_, std::nullopt);
}

bool DesktopBus::take_pressed() {
  const std::lock_guard lock(mutex_);
  return std::exchange(pressed_, false);
}

void DesktopBus::notify(Notification notification) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(notification));
  }
  ::eventfd_write(woken_.get(), 1);
}

// ---- the bus's thread

void DesktopBus::run() {
  sd_bus* opened = nullptr;
  if (sd_bus_new(&opened) < 0) return;
  const std::unique_ptr<sd_bus, CloseBus> bus(opened);
  if (sd_bus_set_address(opened, address_.c_str()) < 0 || sd_bus_set_bus_client(opened, 1) < 0 ||
      sd_bus_start(opened) < 0)
    return;
  ask_theme(opened);
  watch(opened);
}

void DesktopBus::ask_theme(sd_bus* bus) {
  sd_bus_match_signal_async(bus, nullptr, kPortal, kPortalPath, kPortalSettings, "SettingChanged",
                            BusAnswers::on_setting, nullptr, this);
  sd_bus_match_signal_async(bus, nullptr, kNotifications, kNotificationsPath, kNotifications, "ActionInvoked",
                            BusAnswers::on_pressed, nullptr, this);
  sd_bus_call_method_async(bus, nullptr, kPortal, kPortalPath, kPortalSettings, "Read", BusAnswers::on_read,
                           this, "ss", kAppearance, kColorScheme);
}

void DesktopBus::send_waiting(sd_bus* bus) {
  std::vector<Notification> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::exchange(waiting_, {});
  }
  for (const Notification& one : waiting) {
    sd_bus_call_method_async(bus, nullptr, kNotifications, kNotificationsPath, kNotifications, "Notify",
                             BusAnswers::on_shown, this, "susssasa{sv}i", "Octavo", 0U, "octavo",
                             one.title.c_str(), without_markup(one.text).c_str(), 2, "default", "Show", 1,
                             "desktop-entry", "s", "octavo", -1);
  }
}

// Until the end, or until the bus is gone.
void DesktopBus::watch(sd_bus* bus) {
  while (true) {
    int handled = 1;
    while (handled > 0) handled = sd_bus_process(bus, nullptr);
    if (handled < 0) return;
    eventfd_t ignored = 0;
    ::eventfd_read(woken_.get(), &ignored);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    send_waiting(bus);
    std::uint64_t deadline_us = 0, now_us = 0;
    sd_bus_get_timeout(bus, &deadline_us);
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    now_us =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000;
    const std::uint64_t left_ms = deadline_us > now_us ? (deadline_us - now_us) / 1'000 + 1 : 0;
    const int wait_ms =
        deadline_us == UINT64_MAX ? -1 : static_cast<int>(std::min<std::uint64_t>(left_ms, 60'000));
    const int events = sd_bus_get_events(bus);
    if (events < 0) return;
    pollfd watched[] = {{sd_bus_get_fd(bus), static_cast<short>(events), 0}, {woken_.get(), POLLIN, 0}};
    ::poll(watched, std::size(watched), wait_ms);
  }
}

std::string person_bus_address() {
  const char* address = std::getenv("DBUS_SESSION_BUS_ADDRESS");
  return address == nullptr ? std::string() : address;
}

ui::ThemeName theme_without_bus(const char* gtk_theme) {
  if (gtk_theme == nullptr || *gtk_theme == '\0') return ui::ThemeName::kDark;
  return std::strstr(gtk_theme, "dark") != nullptr ? ui::ThemeName::kDark : ui::ThemeName::kLight;
}

}  // namespace octavo::app
