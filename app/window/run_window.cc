#include "app/window/application.h"

namespace octavo::app {

Result<void> run_window(const WindowOptions& options) {
  const SteadyClock clock;
  OCTAVO_TRY(auto application, Application::start(options, Engine::create, clock));
  while (application->step()) {
  }
  return {};
}

}  // namespace octavo::app
