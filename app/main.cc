// octavo: a command, or the window.
#include <string_view>

#include "app/commands/cli.h"
#include "app/commands/command.h"
#include "app/commands/wanted_model.h"
#include "app/probe/probe_child.h"

#if defined(OCTAVO_WINDOW)
#include "app/window/application.h"
#include "app/window/platform/first_window.h"
#include "engine/model/model_files.h"
#endif

namespace octavo::app {
namespace {

#if defined(OCTAVO_WINDOW)
// What the window that is open already should open.
std::vector<std::string> files_of(const EngineFlags& flags) {
  std::vector<std::string> files = flags.files;
  if (!flags.recording.empty()) files.push_back(flags.recording);
  if (flags.options.model.empty()) return files;
  if (const auto path = model::find_model(flags.options.model); path.has_value())
    files.push_back(path->string());
  return files;
}

// A model that is not there is told in the window, which can open another.
int open_window(const EngineFlags& flags) {
  if (const Result<void> valid = validate(flags.options); !valid.has_value())
    return report_error(valid.error());
  WindowOptions options;
  options.engine = flags.options;
  options.recording = flags.recording;
  options.files = flags.files;
  options.version = program_version();
  options.socket_path = default_socket_path(options.chats_path);
  if (!flags.new_window && hand_over(options.socket_path, files_of(flags)) == HandOver::kTaken)
    return kExitOk;
  options.prefers_recent_model = flags.recording.empty() && flags.options.model.empty();
  if (!flags.recording.empty()) {
    options.engine.model.clear();
    options.model_problem = "This window shows a recording.";
  } else if (const auto path = find_wanted_model(
                 flags.options.model, flags.downloads ? MissingModel::kDownload : MissingModel::kRefuse,
                 flags.sha256);
             path.has_value()) {
    options.engine.model = path->string();
  } else {
    options.engine.model.clear();
    // Whoever named no model has lost none: the first start offers some.
    if (!flags.options.model.empty() || flags.downloads || !flags.sha256.empty())
      options.model_problem = path.error().message;
  }
  const Result<void> ended = run_window(options);
  return ended.has_value() ? kExitOk : report_error(ended.error());
}
#else
const OpenWindow open_window;
#endif

}  // namespace
}  // namespace octavo::app

int main(int argc, char** argv) {
  // Not a command: how the window starts this program again to check a model file (app/probe).
  if (argc == 4 && std::string_view(argv[1]) == octavo::app::kProbeFlag)
    return octavo::app::run_probe_child(argv[2], argv[3]);
  return octavo::app::run_command_line(argc, argv, octavo::app::open_window);
}
