// A model that runs elsewhere, as plain values: the dialog in which a server is asked for its models, and the
// load that the server tells of. What it does not tell is nullopt, and shown as unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo::ui {

struct RemoteModelRow {
  std::string id;                // as the server names it, and asked for by
  std::int32_t context_len = 0;  // tokens; 0: not told
};

struct RemoteDialogState {
  bool open = false;
  bool asking = false;
  std::string address = {};   // that was asked last; with which the dialog begins
  std::string problem = {};   // why it gave no models, one sentence
  std::string key_note = {};  // where the key of this address is kept, or who can read it on its way
  bool has_kept_key = false;
  std::vector<RemoteModelRow> models = {};  // of `address`
};

// The server's load at one moment.
struct RemoteLoadPoint {
  double seconds = 0.0;                 // of the window's clock
  std::optional<double> kv_usage = {};  // 0 .. 1
  std::optional<double> num_running = {}, num_waiting = {}, num_swapped = {};
  std::optional<double> hit_rate = {};  // of all prompt tokens so far, found in the prefix cache
  std::optional<double> num_preemptions = {};
  std::optional<double> prompt_tokens_per_s = {}, output_tokens_per_s = {};
};
struct RemoteLoadState {
  std::string address = {};
  std::string problem = {};                  // why nothing is known, one sentence
  std::vector<RemoteLoadPoint> points = {};  // oldest first, of the last minutes
};

}  // namespace octavo::ui
