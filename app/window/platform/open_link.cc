#include "app/window/platform/open_link.h"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "engine/base/text.h"
#include "ui/widgets/markdown.h"

extern char** environ;

namespace octavo::app {
namespace {

// Programs that have been started and not yet been seen to end. Nobody waits for them: a browser may run for
// days.
void collect_ended(std::vector<pid_t>& started) {
  const auto ended = [](pid_t process) { return ::waitpid(process, nullptr, WNOHANG) != 0; };
  started.erase(std::remove_if(started.begin(), started.end(), ended), started.end());
}

Result<void> start(const char* program, const std::string& given, const char* what, const char* instead) {
  static std::vector<pid_t> started;
  collect_ended(started);
  std::string command = program, argument = given;
  const std::array<char*, 3> arguments = {command.data(), argument.data(), nullptr};
  pid_t process = 0;
  const int failed = ::posix_spawnp(&process, program, nullptr, nullptr, arguments.data(), environ);
  if (failed != 0) {
    return Error{ErrorCode::kUnsupported, std::string(what) + " could not be opened: " + command + ": " +
                                              std::strerror(failed) + "; install xdg-utils, or " + instead};
  }
  started.push_back(process);
  return {};
}

}  // namespace

Result<void> open_link(const std::string& address, const char* program) {
  if (!ui::is_openable(address)) {
    return Error{
        ErrorCode::kInvalidArgument,
        escape_for_message(address) + " was not opened: only http, https and mailto links are allowed"};
  }
  return start(program, address, "the link", "copy the link instead");
}

Result<void> show_in_folder(const std::string& file, const char* program) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return start(program, folder.string(), "the folder", "open it in a file manager");
}

}  // namespace octavo::app
