#include "tests/hostile/measured_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/support/paths.h"

namespace octavo::test {
namespace {

void write_all(int descriptor, const void* bytes, std::size_t size) {
  if (write(descriptor, bytes, size) != static_cast<ssize_t>(size)) _exit(3);
}

bool read_all(int descriptor, void* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = read(descriptor, static_cast<char*>(bytes) + done, size - done);
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

struct Reply {
  int status;
  long peak_kibibytes;
};

// A program's peak counts what its parent held when it forked. So this one is forked off before any test has
// run, while the process is small, and starts every program that is measured.
class Starter {
 public:
  Starter() {
    int requests[2], replies[2];
    if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(replies, O_CLOEXEC) != 0) std::abort();
    requests_ = requests[1], replies_ = replies[0];
    if (fork() == 0) {
      close(requests[1]), close(replies[0]);
      serve(requests[0], replies[1]);
    }
    close(requests[0]), close(replies[1]);
  }

  // The first two are the files for standard output and error.
  Reply run(const std::vector<std::string>& words) const {
    const auto count = static_cast<std::uint32_t>(words.size());
    write_all(requests_, &count, sizeof count);
    for (const std::string& word : words) {
      const auto size = static_cast<std::uint32_t>(word.size());
      write_all(requests_, &size, sizeof size);
      write_all(requests_, word.data(), word.size());
    }
    Reply reply{};
    if (!read_all(replies_, &reply, sizeof reply)) std::abort();
    return reply;
  }

 private:
  [[noreturn]] static void serve(int requests, int replies) {
    for (std::uint32_t count = 0; read_all(requests, &count, sizeof count);) {
      std::vector<std::string> words(count);
      for (std::string& word : words) {
        std::uint32_t size = 0;
        if (!read_all(requests, &size, sizeof size)) _exit(0);
        word.resize(size);
        if (!read_all(requests, word.data(), size)) _exit(0);
      }
      const Reply reply = start(words);
      write_all(replies, &reply, sizeof reply);
    }
    _exit(0);  // the tests have ended
  }

  static Reply start(std::vector<std::string>& words) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
      dup2(open(words[0].c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
      dup2(open(words[1].c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
      std::string program = test::program();
      std::vector<char*> pointers = {program.data()};
      for (std::size_t i = 2; i < words.size(); ++i) pointers.push_back(words[i].data());
      pointers.push_back(nullptr);
      execv(program.c_str(), pointers.data());
      _exit(127);
    }
    int status = 0;
    struct rusage usage {};
    wait4(child, &status, 0, &usage);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), usage.ru_maxrss};
  }

  int requests_ = -1, replies_ = -1;
};

const Starter starter;

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Measured run_measured(const std::vector<std::string>& arguments, const std::string& folder) {
  std::vector<std::string> words = {folder + "/standard-output", folder + "/standard-error"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto started = std::chrono::steady_clock::now();
  const Reply reply = starter.run(words);
  Measured measured;
  measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  measured.status = reply.status;
  measured.peak_kibibytes = reply.peak_kibibytes;
  measured.out = contents_of(words[0]);
  measured.err = contents_of(words[1]);
  return measured;
}

}  // namespace octavo::test
