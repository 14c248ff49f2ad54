// The list of requests as the window shows it: of the engine that answers, and what is still known of those
// before it.
//
// UI thread; prompts are compared, spelt and written to files on a thread of its own. Logs are shared with
// the engines that fill them, and are closed before these end.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/requests/request_log.h"
#include "app/window/job_thread.h"
#include "app/window/memory/memory_export.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/result.h"
#include "ui/memory_actions.h"
#include "ui/state.h"

namespace octavo::app {

// What a request of this window is called.
struct RequestName {
  std::string route;  // "chat", "comparison", "batch", "summary"
  std::string client = {};
  ChatId chat_id = {};  // 0: of no chat
};

class RequestList {
 public:
  RequestList();

  void attach(std::shared_ptr<RequestLog> log);
  // Of a request that was accepted just now.
  void name(RequestId request_id, const RequestName& name);

  // What the sequences of a program's request are called; nullopt: no program asked.
  std::optional<std::string> name_of(RequestId request_id) const;

  void choose(std::uint64_t number, ui::UiState& state);
  void export_to(const ui::actions::ExportRequests& a);

  // Takes in what was found out, and asks for more where the list is shown and something is new. True when
  // something that is drawn changed.
  bool tick(std::int64_t now_us, ui::UiState& state);
  // Whether tick() has something to do without an event.
  bool is_busy() const { return num_under_way_ > 0 || wants_look_; }
  std::vector<WrittenFile> take_exported() { return std::exchange(exported_, {}); }

 private:
  using Logs = std::vector<std::shared_ptr<RequestLog>>;
  struct Look {
    Logs logs;
  };
  struct Compare {
    Logs logs;
    std::uint64_t number = 0;
    std::uint64_t serial = 0;
  };
  struct Export {
    Logs logs;
    ui::actions::ExportRequests wanted;
  };
  using Job = std::variant<Look, Compare, Export>;
  struct Compared {
    std::uint64_t number = 0;
    std::shared_ptr<const ui::RequestDetail> detail;  // null: it is no longer known
  };
  using Rows = std::vector<ui::ShownRequest>;
  using Outcome = std::variant<Rows, Compared, WrittenFile>;

  static std::optional<Outcome> perform(Job job);
  std::uint64_t version() const;
  void give(Job job);
  void take(Rows rows, ui::UiState& state);
  void take(Compared compared, ui::UiState& state);
  void compare(ui::RequestsState& requests);

  Logs logs_;                                    // oldest first
  std::uint64_t looked_at_ = ~std::uint64_t{0};  // version() of the newest look
  std::int64_t looked_us_ = 0;
  std::uint64_t compared_phase_ = 0;  // of the chosen request when it was compared
  std::uint64_t next_serial_ = 1;
  int num_under_way_ = 0;
  bool is_looking_ = false;
  bool wants_look_ = false;  // as soon as the time has come
  std::vector<WrittenFile> exported_;
  JobThread<Job, Outcome> jobs_;  // last: it uses all of the above
};

// A row of the list.
ui::ShownRequest shown_request(const LoggedRequest& request);
// A line for each, with a heading.
std::string requests_csv(const std::vector<ui::ShownRequest>& rows);
// The device blocks of the sequences of a request that runs; empty for any other.
std::vector<BlockId> blocks_of_request(std::uint64_t number, const KvSnapshot& snapshot);

}  // namespace octavo::app
