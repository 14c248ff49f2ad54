// What the desktop says and is told over the person's message bus (D-Bus): whether windows are to be dark,
// and that an answer is there. Where there is no bus, or nobody on it answers, nothing happens.
//
// Speaks to org.freedesktop.portal.Settings (appearance, color-scheme) and org.freedesktop.Notifications, on
// a thread of its own: a desktop that hangs makes nobody wait.
//
// Thread: calls from the window's; `wake_up` is called from the bus's.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/files/file_descriptor.h"
#include "ui/desktop_state.h"

struct sd_bus;

namespace octavo::app {

struct Notification {
  std::string title;
  std::string text;  // valid UTF-8; shown as data
};

class DesktopBus {
 public:
  // `address` as DBUS_SESSION_BUS_ADDRESS names it; empty: there is none.
  DesktopBus(std::string address, std::function<void()> wake_up);
  // Notifications that were not sent yet are dropped.
  ~DesktopBus();
  DesktopBus(const DesktopBus&) = delete;
  DesktopBus& operator=(const DesktopBus&) = delete;

  // What the desktop has said since the last call: kDark or kLight.
  std::optional<ui::ThemeName> take_theme();
  // Whether a notification of ours was pressed since the last call.
  bool take_pressed();
  void notify(Notification notification);

 private:
  void run();
  void watch(sd_bus* bus);
  void send_waiting(sd_bus* bus);
  void ask_theme(sd_bus* bus);

  const std::string address_;
  const std::function<void()> wake_up_;
  FileDescriptor woken_;  // an eventfd: something waits, or it is the end
  std::mutex mutex_;
  std::vector<Notification> waiting_;  // guarded by mutex_, as are the next four
  std::optional<ui::ThemeName> theme_;
  std::vector<std::uint32_t> shown_;  // ids of notifications
  bool pressed_ = false;
  bool stopping_ = false;
  std::thread thread_;

  friend struct BusAnswers;
};

// Of the person for whom this process runs; empty: there is none.
std::string person_bus_address();

// What kSystem means where the bus says nothing: as GTK_THEME says ("Adwaita:dark"; nullptr: not set), else
// dark.
ui::ThemeName theme_without_bus(const char* gtk_theme);

}  // namespace octavo::app
