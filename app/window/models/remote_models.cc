#include "app/window/models/remote_models.h"

#include <algorithm>
#include <variant>

#include "app/remote/remote_engine.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

constexpr double kKeptSeconds = 150.0;  // of loads: what is drawn, and a little more

std::string key_note_of(const RemoteListed& listed, const std::string& address) {
  if (!listed.key_problem.empty()) return listed.key_problem;
  std::string note;
  if (listed.key_place == KeyPlace::kKeyring) note = "The key is kept in your keyring.";
  if (listed.key_place == KeyPlace::kFile)
    note = "There is no open keyring; the key is kept in a file that only you can read.";
  if (is_readable_on_the_way(address) && listed.key_place != KeyPlace::kNowhere)
    note += " Without https, others on the network can read it.";
  return note;
}

// Per second between two moments; nullopt where one of them is not told, or the server started anew.
std::optional<double> rate_of(const std::optional<double>& before, const std::optional<double>& now,
                              double seconds) {
  if (!before || !now || seconds <= 0.0 || *now < *before) return std::nullopt;
  return (*now - *before) / seconds;
}

}  // namespace

void RemoteModels::apply(const act::RemoteModelAction& action) {
  std::visit([this](const auto& a) { apply_one(a); }, action);
}

void RemoteModels::apply_one(const act::OpenRemoteDialog&) {
  dialog().open = true;
  dialog().problem.clear();
}

void RemoteModels::apply_one(const act::CloseRemoteDialog&) { dialog().open = false; }

void RemoteModels::apply_one(const act::AskForRemoteModels& a) {
  dialog().models.clear();
  dialog().problem.clear();
  dialog().key_note.clear();
  dialog().has_kept_key = false;
  auto address = normal_address(a.address);
  if (!address) {
    dialog().problem = address.error().message;
    return;
  }
  dialog().address = *address;
  dialog().asking = true;
  effects_.jobs.push_back({.address = *std::move(address), .key = a.key, .serial = ++newest_serial_});
}

void RemoteModels::apply_one(const act::ForgetRemoteKey& a) {
  dialog().has_kept_key = false;
  dialog().key_note = "The key is forgotten.";
  effects_.jobs.push_back({.address = a.address, .forgets_key = true, .serial = ++newest_serial_});
}

void RemoteModels::apply_one(const act::UseRemoteModel& a) {
  dialog().open = false;
  effects_.load_path = remote_model_path({.address = a.address, .model = a.model});
}

void RemoteModels::take(const RemoteListed& listed) {
  if (listed.serial != newest_serial_) return;  // another server was asked meanwhile
  if (listed.asked_nothing) {
    dialog().key_note = listed.key_problem;
    return;
  }
  dialog().asking = false;
  dialog().key_note = key_note_of(listed, dialog().address);
  dialog().has_kept_key = listed.key_place != KeyPlace::kNowhere;
  if (!listed.models) {
    dialog().problem = sanitise_utf8(listed.models.error().message);
    return;
  }
  for (const RemoteModel& model : *listed.models)
    dialog().models.push_back({sanitise_utf8(model.id), model.context_len});
  if (dialog().models.empty()) dialog().problem = "The server has no models.";
}

void RemoteModels::describe(const std::string& address) {
  state_.remote_load = {};
  state_.remote_load.address = address;
  load_before_.reset();
}

void RemoteModels::take(const RemoteLoadTold& told) {
  ui::RemoteLoadState& shown = state_.remote_load;
  if (!told.load || !told.load->knows_anything()) {
    shown.problem = told.load ? "The server reports nothing that is known here at /metrics."
                              : sanitise_utf8("The server reports no load: " + told.load.error().message);
    load_before_.reset();
    if (!shown.points.empty()) shown.points.push_back({.seconds = told.seconds});
    return;
  }
  shown.problem.clear();
  const RemoteLoad& load = *told.load;
  ui::RemoteLoadPoint point{.seconds = told.seconds,
                            .kv_usage = load.kv_usage,
                            .num_running = load.num_running,
                            .num_waiting = load.num_waiting,
                            .num_swapped = load.num_swapped,
                            .hit_rate = load.hit_rate(),
                            .num_preemptions = load.num_preemptions};
  if (load_before_) {
    const double seconds = told.seconds - load_before_->seconds;
    point.prompt_tokens_per_s = rate_of(load_before_->load->prompt_tokens, load.prompt_tokens, seconds);
    point.output_tokens_per_s = rate_of(load_before_->load->output_tokens, load.output_tokens, seconds);
  }
  load_before_ = told;
  shown.points.push_back(point);
  std::erase_if(shown.points,
                [&](const ui::RemoteLoadPoint& old) { return old.seconds < told.seconds - kKeptSeconds; });
}

}  // namespace octavo::app
