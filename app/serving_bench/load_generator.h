// Sends planned chats to one server at their times and writes down when each piece of each answer came. One
// thread and one event loop for all connections: a thread for each would measure itself.
//
// Thread: one. The clock is an argument; nothing here is random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/http_client/client.h"
#include "app/json/json_text.h"
#include "app/remote/endpoint.h"
#include "app/serving_bench/workload.h"
#include "engine/base/clock.h"

namespace octavo::app {

enum class RequestForm { kCompletions, kChatCompletions };

// Who is asked, and how.
struct LoadTarget {
  std::string name;  // in tables and plots
  Endpoint endpoint = {};
  std::string url = {};  // where requests go: the endpoint's address and a path
  RequestForm form = RequestForm::kCompletions;
  std::string model = {};
  bool ignore_eos = false;
  std::optional<double> temperature = 0.0;  // none: the server's own
  std::string extra_body = {};              // members of a JSON object, put into every request; empty: none
  http::TransferLimits limits = {};
};

// One request and its answer. Times are microseconds since the load began.
struct RequestRecord {
  std::size_t chat = 0, turn = 0;
  std::int64_t planned_us = 0;  // when it was to be sent
  std::int64_t sent_us = 0;
  std::int64_t end_us = 0;
  std::vector<std::int64_t> piece_us = {};  // when each piece with text came; the first is the first token
  std::int64_t num_prompt_tokens = 0;       // as the server counts, else as asked
  std::int64_t num_output_tokens = 0;       // as the server counts, else the pieces
  std::optional<std::int64_t> num_cached_tokens = {};
  bool is_counted_by_server = false;
  std::optional<Error> error = {};

  bool ok() const { return !error.has_value(); }
  std::int64_t first_us() const { return piece_us.empty() ? end_us : piece_us.front(); }
};

struct LoadProgress {
  std::size_t num_done = 0, num_failed = 0, num_running = 0;
  std::size_t num_turns = 0;  // of all chats
  std::int64_t num_output_tokens = 0;
  std::int64_t elapsed_us = 0;
};

struct LoadRun {
  std::vector<RequestRecord> records;  // that have ended, in this order
  std::int64_t duration_us = 0;        // until the last of them
  std::size_t most_running = 0;
  std::size_t num_cut = 0;  // that were under way when the run was stopped
  bool is_stopped = false;
};

// The body of a request: everything said so far.
//   answers  to the turns before this one
std::string request_body(const LoadTarget& target, const PlannedChat& chat, std::size_t turn,
                         const std::vector<std::string>& answers);

// Asked at least ten times a second; false ends the run: what is under way is cancelled and not counted.
using GoOnLoading = std::function<bool(const LoadProgress&)>;

//   arrivals  when each chat begins, as many as chats, ascending
//   most_running  requests at a time, those beyond wait here; 0: no limit
LoadRun run_load(http::Client& client, const Clock& clock, const LoadTarget& target,
                 const std::vector<PlannedChat>& chats, const std::vector<std::int64_t>& arrivals,
                 std::size_t most_running, const GoOnLoading& go_on = {});

}  // namespace octavo::app
