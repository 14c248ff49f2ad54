// The desktop's message bus, played by this test on a real one: the theme, notifications, and what happens
// without anybody there.

#include "app/window/platform/desktop_bus.h"

#include <gtest/gtest.h>
#include <systemd/sd-bus.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/own_bus.h"

namespace octavo::app {
namespace {

using testing::OwnBus;

// The portal and the notifications of a desktop, in a thread.
class PlayedDesktop {
 public:
  explicit PlayedDesktop(const std::string& address, std::uint32_t scheme) : scheme_(scheme) {
    sd_bus_new(&bus_);
    sd_bus_set_address(bus_, address.c_str());
    sd_bus_set_bus_client(bus_, 1);
    sd_bus_start(bus_);
    static const sd_bus_vtable kSettings[] = {
        SD_BUS_VTABLE_START(0), SD_BUS_METHOD("Read", "ss", "v", read, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("SettingChanged", "ssv", 0), SD_BUS_VTABLE_END};
    static const sd_bus_vtable kNotifications[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Notify", "susssasa{sv}i", "u", notify, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("ActionInvoked", "us", 0), SD_BUS_VTABLE_END};
    sd_bus_add_object_vtable(bus_, nullptr, "/org/freedesktop/portal/desktop",
                             "org.freedesktop.portal.Settings", kSettings, this);
    sd_bus_add_object_vtable(bus_, nullptr, "/org/freedesktop/Notifications", "org.freedesktop.Notifications",
                             kNotifications, this);
    sd_bus_request_name(bus_, "org.freedesktop.portal.Desktop", 0);
    sd_bus_request_name(bus_, "org.freedesktop.Notifications", 0);
    thread_ = std::thread([this] { run(); });
  }
  ~PlayedDesktop() {
    stopping_ = true;
    thread_.join();
    sd_bus_flush_close_unref(bus_);
  }

  void change_scheme(std::uint32_t scheme) {
    later([this, scheme] {
      sd_bus_emit_signal(bus_, "/org/freedesktop/portal/desktop", "org.freedesktop.portal.Settings",
                         "SettingChanged", "ssv", "org.freedesktop.appearance", "color-scheme", "u", scheme);
    });
  }
  void press(std::uint32_t id) {
    later([this, id] {
      sd_bus_emit_signal(bus_, "/org/freedesktop/Notifications", "org.freedesktop.Notifications",
                         "ActionInvoked", "us", id, "default");
    });
  }
  std::vector<Notification> shown() {
    const std::lock_guard lock(mutex_);
    return shown_;
  }

 private:
  // The portal wraps what it reads into two variants.
  static int read(sd_bus_message* message, void* data, sd_bus_error*) {
    return sd_bus_reply_method_return(message, "v", "v", "u", static_cast<PlayedDesktop*>(data)->scheme_);
  }
  static int notify(sd_bus_message* message, void* data, sd_bus_error*) {
    auto& self = *static_cast<PlayedDesktop*>(data);
    const char *program = nullptr, *icon = nullptr, *title = nullptr, *text = nullptr;
    std::uint32_t replaced = 0;
    if (sd_bus_message_read(message, "susss", &program, &replaced, &icon, &title, &text) < 0) return -EINVAL;
    const std::lock_guard lock(self.mutex_);
    self.shown_.push_back({title, text});
    return sd_bus_reply_method_return(message, "u", 40U + static_cast<std::uint32_t>(self.shown_.size()));
  }
  void later(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  void run() {
    while (!stopping_) {
      while (sd_bus_process(bus_, nullptr) > 0) {
      }
      std::vector<std::function<void()>> jobs;
      {
        const std::lock_guard lock(mutex_);
        jobs = std::exchange(jobs_, {});
      }
      for (const auto& job : jobs) job();
      sd_bus_wait(bus_, 5'000);
    }
  }

  sd_bus* bus_ = nullptr;
  const std::uint32_t scheme_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<Notification> shown_;          // guarded by mutex_
  std::vector<std::function<void()>> jobs_;  // guarded by mutex_
  std::thread thread_;
};

bool soon(const std::function<bool()>& done) {
  for (int i = 0; i < 2'000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

class DesktopBusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (own_.address().empty()) GTEST_SKIP() << "dbus-daemon is not installed";
  }
  OwnBus own_;
  std::atomic<int> num_woken_ = 0;
};

TEST_F(DesktopBusTest, TheThemeIsReadAndFollowed) {
  PlayedDesktop desktop(own_.address(), 2);
  DesktopBus bus(own_.address(), [this] { ++num_woken_; });
  std::optional<ui::ThemeName> theme;
  ASSERT_TRUE(soon([&] { return (theme = bus.take_theme()).has_value(); }));
  EXPECT_EQ(*theme, ui::ThemeName::kLight);
  EXPECT_GE(num_woken_, 1);
  EXPECT_FALSE(bus.take_theme()) << "once";
  desktop.change_scheme(1);
  ASSERT_TRUE(soon([&] { return (theme = bus.take_theme()).has_value(); }));
  EXPECT_EQ(*theme, ui::ThemeName::kDark);
}

TEST_F(DesktopBusTest, ANotificationIsShownAsDataAndItsPressComesBack) {
  PlayedDesktop desktop(own_.address(), 0);
  DesktopBus bus(own_.address(), [this] { ++num_woken_; });
  bus.notify({"An answer is ready", "“a <b> & c”"});
  ASSERT_TRUE(soon([&] { return desktop.shown().size() == 1; }));
  EXPECT_EQ(desktop.shown()[0].title, "An answer is ready");
  EXPECT_EQ(desktop.shown()[0].text, "“a &lt;b&gt; &amp; c”");
  EXPECT_FALSE(bus.take_pressed());
  desktop.press(7);  // another program's
  // The reply with our id may still be on its way.
  EXPECT_TRUE(soon([&] {
    desktop.press(41);
    return bus.take_pressed();
  }));
  EXPECT_FALSE(bus.take_theme()) << "no preference says nothing";
}

TEST_F(DesktopBusTest, NobodyOnTheBusIsNoMatter) {
  DesktopBus bus(own_.address(), [this] { ++num_woken_; });
  bus.notify({"An answer is ready", "into the void"});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(bus.take_theme());
  EXPECT_FALSE(bus.take_pressed());
}

TEST(DesktopWithoutABus, NothingHappens) {
  DesktopBus none({}, [] {}), wrong("unix:path=/nonexistent/bus", [] {}), nonsense("nonsense", [] {});
  for (DesktopBus* bus : {&none, &wrong, &nonsense}) {
    bus->notify({"An answer is ready", ""});
    EXPECT_FALSE(bus->take_theme());
    EXPECT_FALSE(bus->take_pressed());
  }
}

TEST(DesktopWithoutABus, TheThemeIsAsGtkSaysElseDark) {
  EXPECT_EQ(theme_without_bus(nullptr), ui::ThemeName::kDark);
  EXPECT_EQ(theme_without_bus(""), ui::ThemeName::kDark);
  EXPECT_EQ(theme_without_bus("Adwaita:dark"), ui::ThemeName::kDark);
  EXPECT_EQ(theme_without_bus("Yaru-dark"), ui::ThemeName::kDark);
  EXPECT_EQ(theme_without_bus("Adwaita"), ui::ThemeName::kLight);
}

}  // namespace
}  // namespace octavo::app
