// One window for each set of chats: a second start tells the first window to come to the front, with the
// files that it was given, and ends.
//
// The first window listens on a Unix socket that only its owner can reach. One message is a line
// "octavo 1\n", then paths that each end in a zero byte, at most kLongestMessage bytes; then the sender has
// said all. The answer is "ok\n", given when the window took the message in: a window that hangs gives none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "app/files/file_descriptor.h"
#include "app/store/store_files.h"

namespace octavo::app {

inline constexpr std::size_t kLongestMessage = std::size_t{1} << 20;
inline constexpr std::chrono::milliseconds kReplyTimeout{1000};  // with a first window that does not answer

// $XDG_RUNTIME_DIR/octavo-HASH.socket, or beside the chats. One for each file of chats.
std::filesystem::path default_socket_path(const std::filesystem::path& chats_path);

// What another start wants.
struct OtherStart {
  std::vector<std::string> files;  // absolute paths
};

// Thread: the window's, except `wake_up`, which is called from the listening one.
class FirstWindow {
 public:
  // nullptr when another process listens there, or when nobody can: then a later start reads only, as
  // without this.
  static std::unique_ptr<FirstWindow> listen(const std::filesystem::path& socket_path,
                                             std::function<void()> wake_up);
  ~FirstWindow();
  FirstWindow(const FirstWindow&) = delete;
  FirstWindow& operator=(const FirstWindow&) = delete;

  // Starts since the last call; this answers them.
  std::vector<OtherStart> take_starts();

 private:
  FirstWindow(std::filesystem::path socket_path, std::function<void()> wake_up);
  bool open();
  void run();
  void serve(int connection);

  const std::filesystem::path socket_path_;
  const std::function<void()> wake_up_;
  FileLock lock_;
  FileDescriptor listener_;
  FileDescriptor stop_reader_, stop_writer_;  // a pipe; closing its end wakes the thread
  std::mutex mutex_;
  std::condition_variable taken_;
  std::vector<OtherStart> starts_;  // guarded by mutex_
  std::size_t num_received_ = 0;    // guarded by mutex_
  std::size_t num_taken_ = 0;       // guarded by mutex_
  bool stopping_ = false;           // guarded by mutex_
  std::thread thread_;
};

enum class HandOver {
  kTaken,     // the first window has come to the front, and opens the files
  kNobody,    // there is no first window
  kNoAnswer,  // there is one, which does not answer
};

HandOver hand_over(const std::filesystem::path& socket_path, const std::vector<std::string>& files,
                   std::chrono::milliseconds timeout = kReplyTimeout);

}  // namespace octavo::app
