// A second start and the first window, without windows.

#include "app/window/platform/first_window.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

using std::chrono::milliseconds;

class FirstWindowTest : public ::testing::Test {
 protected:
  void listen() {
    first_ = FirstWindow::listen(socket_, [this] { woken_ = true; });
    ASSERT_NE(first_, nullptr);
  }
  // A start in another thread, while this one does what a window's loop does.
  HandOver start(const std::vector<std::string>& files) {
    std::atomic<bool> done = false;
    HandOver outcome = HandOver::kNobody;
    std::thread other([&] {
      outcome = hand_over(socket_, files);
      done = true;
    });
    while (!done) {
      for (OtherStart& taken : first_->take_starts()) starts_.push_back(std::move(taken));
      std::this_thread::sleep_for(milliseconds(1));
    }
    other.join();
    return outcome;
  }
  // Writes bytes to the socket as an untrusted process would; the answer.
  std::string say(const std::string& bytes) {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<std::size_t>(count);
    }
    ::shutdown(connection, SHUT_WR);
    char answer[16] = {};
    const ssize_t count = ::recv(connection, answer, sizeof answer, 0);
    ::close(connection);
    return {answer, answer + std::max<ssize_t>(count, 0)};
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path socket_ = folder_ / "window.socket";
  std::atomic<bool> woken_ = false;
  std::unique_ptr<FirstWindow> first_;
  std::vector<OtherStart> starts_;
};

TEST_F(FirstWindowTest, NobodyIsThere) {
  EXPECT_EQ(hand_over(socket_, {}), HandOver::kNobody);
  EXPECT_EQ(hand_over(folder_ / "no" / "such" / "folder", {}), HandOver::kNobody);
}

TEST_F(FirstWindowTest, TakesAStartWithItsFiles) {
  listen();
  EXPECT_EQ(start({"/tmp/a b.txt", "relative.txt"}), HandOver::kTaken);
  EXPECT_TRUE(woken_);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].files,
            (std::vector<std::string>{"/tmp/a b.txt", std::filesystem::absolute("relative.txt").string()}));
  EXPECT_EQ(start({}), HandOver::kTaken);
  ASSERT_EQ(starts_.size(), 2u);
  EXPECT_TRUE(starts_[1].files.empty());
}

TEST_F(FirstWindowTest, OneThatHangsIsGivenUpAfterASecondAndDoesNothingLater) {
  listen();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(hand_over(socket_, {"/tmp/a"}), HandOver::kNoAnswer);
  const auto waited = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(waited, milliseconds(1500));
  EXPECT_TRUE(first_->take_starts().empty());
}

TEST_F(FirstWindowTest, OneSocketForOneWindow) {
  listen();
  EXPECT_EQ(FirstWindow::listen(socket_, [] {}), nullptr);
  EXPECT_EQ(start({}), HandOver::kTaken);
  first_.reset();
  EXPECT_EQ(hand_over(socket_, {}), HandOver::kNobody);
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(FirstWindowTest, ASocketThatAKilledProcessLeftIsInNobodysWay) {
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  EXPECT_EQ(hand_over(socket_, {}), HandOver::kNobody);
  listen();
  EXPECT_EQ(start({}), HandOver::kTaken);
}

TEST_F(FirstWindowTest, OnlyItsOwnerCanReachIt) {
  listen();
  struct stat status {};
  ASSERT_EQ(::stat(socket_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(FirstWindowTest, WhatIsNotOursIsNotAnswered) {
  listen();
  for (const std::string& message :
       {std::string("GET / HTTP/1.1\r\n"), std::string("octavo 1\nrelative\0", 18),
        std::string("octavo 1\n/unended"), std::string("octavo 1\n\0", 10),
        "octavo 1\n" + std::string(2 * kLongestMessage, 'x')}) {
    EXPECT_EQ(say(message), "");
  }
  EXPECT_TRUE(first_->take_starts().empty());
  EXPECT_EQ(start({}), HandOver::kTaken);
}

TEST_F(FirstWindowTest, FoldersMayBeDeep) {
  const std::filesystem::path deep = folder_ / std::string(200, 'd');
  std::filesystem::create_directories(deep);
  const auto first = FirstWindow::listen(deep / "window.socket", [] {});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(hand_over(deep / "window.socket", {}, milliseconds(50)), HandOver::kNoAnswer);
}

TEST(SocketPath, IsOneForEachFileOfChats) {
  const test::EnvironmentVariable runtime("XDG_RUNTIME_DIR", "/run/user/1");
  EXPECT_EQ(default_socket_path("/a/chats.db"), default_socket_path("/a/../a/chats.db"));
  EXPECT_NE(default_socket_path("/a/chats.db"), default_socket_path("/b/chats.db"));
  EXPECT_EQ(default_socket_path("/a/chats.db").parent_path(), "/run/user/1");
}

TEST(SocketPath, IsBesideTheChatsWithoutAFolderOfTheChat) {
  const test::EnvironmentVariable runtime("XDG_RUNTIME_DIR", "");
  EXPECT_EQ(default_socket_path("/a/chats.db"), "/a/window.socket");
}

}  // namespace
}  // namespace octavo::app
