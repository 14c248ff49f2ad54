#include <utility>

#include "app/probe/probe.h"
#include "app/remote/remote_engine.h"
#include "app/window/application.h"

namespace octavo::app {
namespace {

Result<std::unique_ptr<Engine>> connect(const std::string& path, const LoadProgress& progress,
                                        const RemoteKeys& keys) {
  OCTAVO_TRY(RemoteModelName name, parse_remote_model(path));
  std::string key = keys.find(name.address).key;
  return connect_remote_engine({.name = std::move(name), .key = std::move(key)}, progress);
}

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
  const RemoteKeys keys(options.bus_address, remote_keys_path(options.settings_path));
  const auto load = [&keys](const EngineOptions& engine, const LoadProgress& progress) {
    return is_remote_model(engine.model) ? connect(engine.model, progress, keys)
                                         : check_and_load(engine, progress);
  };
  OCTAVO_TRY(auto application, Application::start(options, load, clock));
  while (application->step()) {
  }
  return {};
}

}  // namespace octavo::app
