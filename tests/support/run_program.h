// Runs `octavo` as a person's shell would, and keeps what it printed.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace octavo::tests {

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when it was killed
  std::string out, err;

  // Lines of standard error.
  std::size_t num_error_lines() const {
    std::size_t lines = 0;
    for (const char c : err) lines += c == '\n' ? 1u : 0u;
    return lines;
  }
};

struct ProgramOptions {
  std::string input = {};  // standard input
  // Set in addition; an empty value unsets
  std::vector<std::pair<std::string, std::string>> environment = {};
  bool output_is_terminal = false;      // standard output on a pseudo-terminal
  unsigned short terminal_columns = 0;  // of it; 0: it does not say
  int interrupt_after_ms = -1;          // send SIGINT then
  int timeout_ms = 120'000;             // kill then
};

inline std::filesystem::path default_model() {
  const char* const data_home = std::getenv("XDG_DATA_HOME");
  const std::filesystem::path base = data_home != nullptr && *data_home != '\0'
                                         ? std::filesystem::path(data_home)
                                         : std::filesystem::path(std::getenv("HOME")) / ".local/share";
  return base / "octavo/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

inline ProgramResult run_program(const std::vector<std::string>& arguments,
                                 const ProgramOptions& options = {}) {
  int in[2], out[2], err[2];
  if (pipe(in) != 0 || pipe(err) != 0) std::abort();
  const winsize size = {.ws_row = 24, .ws_col = options.terminal_columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (options.output_is_terminal ? openpty(&out[0], &out[1], nullptr, nullptr, &size) != 0 : pipe(out) != 0)
    std::abort();
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], STDIN_FILENO), dup2(out[1], STDOUT_FILENO), dup2(err[1], STDERR_FILENO);
    for (const int descriptor : {in[0], in[1], out[0], out[1], err[0], err[1]}) close(descriptor);
    for (const auto& [name, value] : options.environment) {
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> pointers;
    std::string program = test::program();
    pointers.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string& argument : copies) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(program.c_str(), pointers.data());
    _exit(127);
  }
  close(in[0]), close(out[1]), close(err[1]);
  signal(SIGPIPE, SIG_IGN);
  if (!options.input.empty() && write(in[1], options.input.data(), options.input.size()) < 0) perror("write");
  close(in[1]);

  ProgramResult result;
  const auto started = std::chrono::steady_clock::now();
  bool interrupted = false;
  std::array<pollfd, 2> files = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    poll(files.data(), files.size(), 20);
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].fd < 0 || (files[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      std::array<char, 65536> buffer;
      const ssize_t count = read(files[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        (i == 0 ? result.out : result.err).append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        files[i].fd = -1;
      }
    }
    const auto elapsed_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started)
            .count();
    if (options.interrupt_after_ms >= 0 && elapsed_ms >= options.interrupt_after_ms && !interrupted) {
      interrupted = true;
      kill(child, SIGINT);
    }
    if (elapsed_ms >= options.timeout_ms) kill(child, SIGKILL);
  }
  close(out[0]), close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace octavo::tests
