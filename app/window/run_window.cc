#include <utility>

#include "app/probe/probe.h"
#include "app/window/application.h"

namespace octavo::app {
namespace {

// What an untrusted file might do to this process, with the chats in it, it does to a child first.
Result<std::unique_ptr<Engine>> check_and_load(const EngineOptions& options, const LoadProgress& progress) {
  ProbeOptions probe;
  probe.cancelled = [&] { return progress && !progress(0.0); };
  OCTAVO_TRY_VOID(probe_model(options.model, probe));
  return Engine::create(options, progress);
}

}  // namespace

Result<void> run_window(const WindowOptions& given) {
  WindowOptions options = given;
  options.bus_address = person_bus_address();
  options.model_places.probe = [](const std::string& path, ProbeDepth depth) {
    return probe_model(path, {.depth = depth});
  };
  const SteadyClock clock;
  OCTAVO_TRY(auto application, Application::start(options, check_and_load, clock));
  while (application->step()) {
  }
  return {};
}

}  // namespace octavo::app
