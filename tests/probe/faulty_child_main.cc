// Stands in for `octavo --probe DEPTH PATH` and does what the file's name says: the faults that no known file
// provokes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "app/probe/probe_child.h"

namespace {

void say(const std::string& text) {
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(3);
}

void eat_memory() {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  for (int i = 0; i < 1024; ++i) {
    void* piece = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) std::abort();  // as a program does that does not check
    for (std::size_t at = 0; at < kPiece; at += 4096) static_cast<volatile char*>(piece)[at] = 1;
  }
}

// What a confined process may still do: a letter for each thing that it should not be able to.
std::string what_is_possible(const std::string& path) {
  std::string possible;
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) possible += "n";  // network
  if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) possible += "u";  // other programs of this machine
  if (open(path.c_str(), O_RDWR) >= 0) possible += "w";       // writing to the file
  if (open((path + ".new").c_str(), O_CREAT | O_WRONLY, 0600) >= 0) possible += "c";
  if (open("/etc/passwd", O_RDONLY) >= 0) possible += "o";  // other files
  if (fork() >= 0) possible += "f";
  const char* const arguments[] = {"/bin/true", nullptr};
  execv(arguments[0], const_cast<char* const*>(arguments));
  if (kill(getppid(), 0) == 0) possible += "k";
  if (open(path.c_str(), O_RDONLY) < 0) possible += "!";  // it cannot even read what it should
  return possible;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string path = argv[3], fault = std::filesystem::path(path).filename().string();
  const octavo::app::Confinement confinement = octavo::app::confine_for_probe(path);
  const std::string fine = "{\"in_force\":[],\"missing\":[],\"refusal\":null}\n";
  if (fault == "crash") {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  } else if (fault == "abort") {
    std::abort();
  } else if (fault == "hang") {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  } else if (fault == "spin") {
    for (std::atomic<bool> goes_on = true; goes_on;) {
    }
  } else if (fault == "memory") {
    eat_memory();
    say(fine);
  } else if (fault == "garbage") {
    say("Segmentation fault (core dumped)\x1b[2J\n");
  } else if (fault == "silence") {
    return 0;
  } else if (fault == "flood") {
    for (;;) say(std::string(4096, 'x'));
  } else if (fault == "two-lines") {
    say(fine + fine);
  } else if (fault == "half-a-line") {
    say(fine.substr(0, fine.size() - 1));
  } else if (fault == "line-then-crash") {
    say(fine);
    std::abort();
  } else if (fault == "line-then-hang") {
    say(fine);
    close(STDOUT_FILENO);
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  } else if (fault == "status") {
    say(fine);
    return 1;
  } else if (fault == "escape") {
    say("{\"in_force\":[],\"missing\":[],\"refusal\":{\"code\":\"unsupported\",\"message\":\"possible:" +
        what_is_possible(path) + "\",\"subject\":\"\"}}\n");
  } else {
    say(fine);
  }
  return 0;
}
