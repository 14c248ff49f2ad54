// Models that run elsewhere: what a person asked of the dialog, and what the server said, into
// ui::RemoteDialogState; the load that a server tells of, into ui::RemoteLoadState. What it wants done comes
// out of `take_effects`.
//
// A value type without socket, thread or clock. UI thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/remote/endpoint.h"
#include "app/remote/remote_metrics.h"
#include "app/window/models/remote_keys.h"
#include "ui/model_actions.h"
#include "ui/state.h"

namespace octavo::app {

// ---- what a server is asked, by remote_link.h

struct RemoteJob {
  std::string address;       // normal
  std::string key = {};      // typed; empty: the one that is kept
  bool forgets_key = false;  // and asks nothing
  std::uint64_t serial = 0;
};

struct RemoteListed {
  std::uint64_t serial = 0;
  Result<std::vector<RemoteModel>> models = std::vector<RemoteModel>{};
  KeyPlace key_place = KeyPlace::kNowhere;
  std::string key_problem = {};  // why a key could not be kept or forgotten; empty: nothing went wrong
  bool asked_nothing = false;    // the key alone is told of
};

struct RemoteLoadTold {
  double seconds = 0.0;
  Result<RemoteLoad> load = RemoteLoad{};
};

struct RemoteEffects {
  std::vector<RemoteJob> jobs = {};
  std::optional<std::string> load_path = {};  // of a model that is to be used
};

class RemoteModels {
 public:
  explicit RemoteModels(ui::UiState& state) : state_(state) {}

  void apply(const ui::actions::RemoteModelAction& action);
  void take(const RemoteListed& listed);
  void take(const RemoteLoadTold& told);
  // The model that answers from now on; none: it is a local one.
  void describe(const std::string& address);

  RemoteEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  void apply_one(const ui::actions::OpenRemoteDialog& a);
  void apply_one(const ui::actions::CloseRemoteDialog& a);
  void apply_one(const ui::actions::AskForRemoteModels& a);
  void apply_one(const ui::actions::ForgetRemoteKey& a);
  void apply_one(const ui::actions::UseRemoteModel& a);

  ui::RemoteDialogState& dialog() { return state_.picker.remote; }

  ui::UiState& state_;
  RemoteEffects effects_;
  std::uint64_t newest_serial_ = 0;
  std::optional<RemoteLoadTold> load_before_;
};

}  // namespace octavo::app
