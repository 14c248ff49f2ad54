// What the store does, without its thread: takes changes, writes them in batches, reads and searches, makes
// backups, and goes on when the disk fails. Whoever owns it calls `step` whenever `due_us` is over.
//
// Changes are written in the order they came in, several in one transaction; what could not be written stays
// in memory, in that order, and is tried again. One thread at a time; time comes in as an argument.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/store/backup.h"
#include "app/store/records.h"
#include "app/store/store_opening.h"
#include "app/store/store_problem.h"
#include "app/store/text_search.h"

namespace octavo::app {

// Ascending in the order of the changes.
using StoreTicket = std::uint64_t;

// ---- what comes back

// Once at the beginning, and again when what could not be read then can be read now.
struct StoreOpened {
  StoreContents contents;
};
// Whenever it changed. Without a kind the problem is over.
struct StoreProblemChanged {
  StoreProblem problem;
};
struct StoreNotice {
  std::string sentence;
  // A damaged file was replaced while the window has chats of it in memory: what it has is newer.
  bool save_everything_again = false;
};
struct ChatLoaded {
  ChatId chat_id;
  Chat chat;
};
struct SearchHit {
  ChatId chat_id;
  MessageId message_id;
  Role role = Role::kUser;
  TextMatch match;
  // Of the nearest message above, or this one, that has siblings; a count of 1 when none has.
  SiblingPosition branch;
  bool on_active_path = false;
};
struct SearchProgress {
  std::uint64_t search_id = 0;
  std::vector<SearchHit> hits;  // since the last report
  bool done = false;
};

using StoreReport = std::variant<StoreOpened, StoreProblemChanged, StoreNotice, ChatLoaded, SearchProgress>;

class StoreWorker {
 public:
  // An answer's text is on the disk within twice this: half of what may be lost.
  static constexpr std::int64_t kBatchUs = 100'000;
  static constexpr std::int64_t kRetryUs = 1'000'000;
  static constexpr std::size_t kMostHits = 200;

  explicit StoreWorker(StoreOptions options);
  // Tries once more to write what is pending.
  ~StoreWorker();
  StoreWorker(const StoreWorker&) = delete;
  StoreWorker& operator=(const StoreWorker&) = delete;

  // Urgent: written by the next step, with everything before it.
  void change(StoreTicket ticket, StoreChange change, bool urgent, std::int64_t now_us);
  void load(ChatId chat_id) { loads_.push_back(chat_id); }
  // Takes the place of the search that is going on. An empty query ends it.
  void search(std::uint64_t search_id, const std::string& query);

  void step(std::int64_t now_us);
  // When `step` has something to do; nullopt: not before something new comes in.
  std::optional<std::int64_t> due_us() const;

  // Every change up to this one is on the disk, or was refused with a notice.
  StoreTicket committed() const { return committed_; }
  std::vector<StoreReport> take_reports() { return std::exchange(reports_, {}); }

 private:
  struct Search {
    std::uint64_t id;
    TextQuery query;
    std::int64_t last_number = 0;
    std::size_t num_hits = 0;
  };

  void open(std::int64_t now_us);
  void take_opened(OpenedStore opened, std::int64_t now_us);
  Result<void> settle_interrupted();
  void load_small_store();
  void set_problem(StoreProblem problem);
  void fail(const std::string& detail, std::int64_t now_us);

  bool join_pending(const StoreChange& change);
  bool commit_due(std::int64_t now_us) const;
  void commit(std::int64_t now_us);
  Result<void> write_pending();
  void load_next(std::int64_t now_us);
  void search_on(std::int64_t now_us);
  Result<SearchProgress> search_some();
  Result<void> find_branches(std::vector<SearchHit>& hits);
  void back_up_on();
  // For good: the window said so, and nothing is kept for later.
  bool read_only() const { return problem_ && !problem_.passing(); }
  bool reading_possible() const { return database_.is_open(); }

  const StoreOptions options_;
  FileLock lock_;
  Database database_;
  bool opened_once_ = false, contents_known_ = false, writable_ = false, distrust_ = false;
  StoreProblem problem_;
  std::int64_t retry_us_ = 0;

  std::deque<StoreChange> pending_;
  bool urgent_ = false;
  std::int64_t oldest_us_ = 0;  // when the first of `pending_` came
  StoreTicket newest_ticket_ = 0, committed_ = 0;

  std::deque<ChatId> loads_;
  std::optional<Search> search_;
  std::unique_ptr<Backup> backup_;
  std::vector<StoreReport> reports_;
};

}  // namespace octavo::app
