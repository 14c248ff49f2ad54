// What importing one very long chat costs:
//   octavo_import_bench [MESSAGES] [FOLDER]        a million messages, in a folder of its own under /tmp
// 1. reads an export of Octavo (answers with token ids and figures) as the window does.
// 2. the same into a window's controller with a store, until the chat is drawn and all of it is on the disk.
// Each in a process of its own: its seconds, those of its processor time (of both threads; what else runs
// counts in the first only), and the most memory that it held. Exits 1 above 10 s or 2 GiB.

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "app/chat/chat_file.h"
#include "app/window/chat/file_reader.h"
#include "app/window/controller.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr double kMostSeconds = 10;
constexpr double kMostGib = 2;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Chat long_chat(std::uint64_t num_messages) {
  Chat chat;
  for (std::uint64_t i = 0; i < num_messages; ++i) {
    const std::string number = std::to_string(i);
    Message message;
    message.parent = MessageId{i};
    message.content = "Question " + number + ": how long is a chat that never ends?";
    if (i % 2 == 1) {
      message.role = Role::kAssistant;
      message.content =
          "Answer " + number + ": as long as its readers read on, and a little longer than that.";
      message.finish_reason = FinishReason::kStop;
      message.seed = i;
      message.model = "SmolLM2 135M Instruct";
      message.metrics = AnswerMetrics{.num_prompt_tokens = 500, .num_cached_tokens = 480, .request = {}};
      message.token_ids.assign(20, static_cast<TokenId>(i % 49'000));
    }
    chat.add(std::move(message));
  }
  return chat;
}

bool read_alone(const fs::path& file) {
  const ReadFile read = read_file(file.string(), ReadAs::kChats);
  return read.kind == FileKind::kChats;
}

bool open_in_window(const fs::path& file) {
  SteadyClock clock;
  StoreOptions options;
  options.paths.database = file.parent_path() / "store" / "chats.db";
  options.unix_time_ms = [] { return std::int64_t{1'800'000'000'000}; };
  Controller controller(clock, default_settings());
  {
    ChatStore store(options, clock, [] {});
    controller.attach_store(store);
    while (!controller.store_opened()) controller.poll_store();
    FilesRead files;
    files.files.push_back(read_file(file.string(), ReadAs::kChats));
    const double begin = thread_seconds();
    controller.take_read_files(std::move(files));
    std::printf("   of these the window's thread, until it is drawn: %.2f s\n", thread_seconds() - begin);
    while (!controller.all_given_to_store()) {
      controller.poll_store();
      std::this_thread::sleep_for(std::chrono::milliseconds(8));  // as frames follow each other
    }
  }  // the store ends when all is on the disk
  return !controller.state().chats.empty() && !controller.state().chats.front().messages.empty();
}

// In a process of its own, whose memory is its own.
bool measure(const char* name, const fs::path& file, bool (*run)(const fs::path&)) {
  const auto begin = steady_clock::now();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const bool good = run(file);
    std::fflush(stdout);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  const double work = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  const double seconds = seconds_since(begin), gib = static_cast<double>(usage.ru_maxrss) / (1 << 20);
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::printf("%s: %.2f s, %.2f s of work, %.2f GiB%s\n", name, seconds, work, gib, good ? "" : ": FAILED");
  return good && seconds < kMostSeconds && gib < kMostGib;
}

int run(std::uint64_t num_messages, const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path file = folder / "chat.json";
  // Written by a child, so that the memory of this process stays small.
  if (const pid_t child = fork(); child == 0) {
    _exit(write_chat(long_chat(num_messages), file) ? 0 : 1);
  } else {
    int status = 0;
    waitpid(child, &status, 0);
  }
  std::error_code error;
  std::printf("%llu messages, %.0f MB\n", static_cast<unsigned long long>(num_messages),
              static_cast<double>(fs::file_size(file, error)) / 1e6);
  const bool read = measure("read", file, read_alone);
  const bool kept = measure("read, drawn and saved", file, open_in_window);
  fs::remove_all(folder, error);
  return read && kept ? 0 : 1;
}

}  // namespace
}  // namespace octavo::app

int main(int argc, char** argv) {
  const std::uint64_t num_messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::filesystem::path folder = argc > 2 ? argv[2] : "/tmp/octavo_import_" + std::to_string(getpid());
  return octavo::app::run(num_messages, folder);
}
