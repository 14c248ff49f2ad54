// The application's part that has to do with its server: whom programs ask, and where it listens.

#include <utility>

#include "app/window/application.h"

namespace octavo::app {

// The model that answers the chats answers programs, too; what it was asked before another one came it
// finishes.
void Application::lead_programs() {
  const bool is_wanted = controller_.server().is_wanted();
  if (is_wanted && served_ != nullptr) return door_.lead_to(&served_->service(door_), {});
  door_.lead_to(nullptr, !is_wanted          ? "the server is being switched off"
                         : loader_.loading() ? "a model is being loaded: try again soon"
                                             : "no model is loaded: choose one in the window of Octavo");
}

void Application::perform(const ServerEffects& effects) {
  if (effects.access_changed || effects.start) door_.set_access(controller_.server().access());
  if (effects.start || effects.stop) lead_programs();
  if (effects.start) server_->start(controller_.server().port());
  if (effects.stop) {
    if (served_ != nullptr) served_->cancel_all();
    for (const HeldEngine& held : retired_)
      if (auto* const served = dynamic_cast<ServedEngine*>(held.reader.get())) served->cancel_all();
    server_->stop();
  }
}

bool Application::update_server() {
  const auto reports = server_->take_reports();
  for (const ServerReport& report : reports) controller_.server().show_listening(report.port, report.problem);
  if (!reports.empty()) perform_effects();
  bool changed = controller_.server().show_answering(server_->num_open_answers()) || !reports.empty();
  if (const std::uint64_t version = door_.version(); version != shown_log_) {
    shown_log_ = version;
    controller_.server().show_log(door_.lines());
    changed = true;
  }
  return changed;
}

}  // namespace octavo::app
