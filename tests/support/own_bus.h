// A message bus of the test's own: dbus-daemon, with an address of its own.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

extern char** environ;

namespace octavo::testing {

class OwnBus {
 public:
  OwnBus() {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    std::array<const char*, 4> arguments = {
        "sh", "-c", "exec dbus-daemon --session --nofork --print-address=3 2> /dev/null", nullptr};
    if (::posix_spawnp(&process_, arguments[0], &actions, nullptr, const_cast<char* const*>(arguments.data()),
                       environ) != 0)
      process_ = 0;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char c = 0;
    while (process_ != 0 && ::read(ends[0], &c, 1) == 1 && c != '\n') address_ += c;
    ::close(ends[0]);
  }
  ~OwnBus() {
    if (process_ == 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  OwnBus(const OwnBus&) = delete;
  OwnBus& operator=(const OwnBus&) = delete;
  const std::string& address() const { return address_; }  // empty: there is no dbus-daemon here

 private:
  pid_t process_ = 0;
  std::string address_;
};

}  // namespace octavo::testing
