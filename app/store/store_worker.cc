#include "app/store/store_worker.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "app/store/chat_tables.h"
#include "app/store/rescue.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Of a store no larger than this every chat is read at the start.
constexpr std::uintmax_t kSmallStoreBytes = 8 << 20;
constexpr std::int64_t kBackupAgeMs = 24LL * 3600 * 1000;
constexpr int kBackupPages = 64;  // a step's worth: about a millisecond
constexpr int kSearchMessages = 256;

}  // namespace

StoreWorker::StoreWorker(StoreOptions options) : options_(std::move(options)) {}

StoreWorker::~StoreWorker() {
  backup_.reset();
  if (pending_.empty()) return;
  if (!database_.is_open()) open(retry_us_);
  if (writable_) commit(retry_us_);
}

void StoreWorker::change(StoreTicket ticket, StoreChange change, bool urgent, std::int64_t now_us) {
  if (read_only()) {
    committed_ = newest_ticket_ = ticket;
    return;
  }
  if (pending_.empty()) oldest_us_ = now_us;
  newest_ticket_ = ticket;
  urgent_ = urgent_ || urgent;
  if (!join_pending(change)) pending_.push_back(std::move(change));
}

// The pieces of one batch become one row. Only changes of other answers may stand between them.
bool StoreWorker::join_pending(const StoreChange& change) {
  const auto* piece = std::get_if<changes::AppendToAnswer>(&change);
  if (piece == nullptr) return false;
  for (auto pending = pending_.rbegin(); pending != pending_.rend(); ++pending) {
    auto* before = std::get_if<changes::AppendToAnswer>(&*pending);
    if (before == nullptr) return false;
    if (before->chat_id != piece->chat_id || before->message_id != piece->message_id) continue;
    if (before->content_begin + before->content.size() != piece->content_begin ||
        before->tokens_begin + before->token_ids.size() != piece->tokens_begin)
      return false;
    before->content += piece->content;
    before->token_ids.insert(before->token_ids.end(), piece->token_ids.begin(), piece->token_ids.end());
    return true;
  }
  return false;
}

void StoreWorker::search(std::uint64_t search_id, const std::string& query) {
  search_.reset();
  TextQuery text(query);
  if (!text.empty()) search_ = Search{search_id, std::move(text)};
}

void StoreWorker::step(std::int64_t now_us) {
  if (!opened_once_ || (problem_.passing() && now_us >= retry_us_)) open(now_us);
  if (commit_due(now_us)) commit(now_us);
  if (reading_possible() && !loads_.empty()) return load_next(now_us);
  if (reading_possible() && search_) return search_on(now_us);
  if (backup_ != nullptr) back_up_on();
}

std::optional<std::int64_t> StoreWorker::due_us() const {
  if (!opened_once_) return 0;
  std::optional<std::int64_t> due;
  const auto at = [&due](std::int64_t time_us) { due = due ? std::min(*due, time_us) : time_us; };
  if (problem_.passing()) at(retry_us_);
  if (writable_ && !pending_.empty()) at(urgent_ ? 0 : oldest_us_ + kBatchUs);
  if (reading_possible() && (!loads_.empty() || search_)) at(0);
  if (backup_ != nullptr) at(0);
  return due;
}

// ---- opening and failing

void StoreWorker::open(std::int64_t now_us) {
  // A copy of what may not be written is made once, not with every try.
  const bool has_copy = problem_.kind == StoreProblemKind::kReadOnlyFolder && database_.is_open();
  if (has_copy && !may_write_to(options_.paths.folder())) {
    retry_us_ = now_us + kRetryUs;
    return;
  }
  database_.close();
  take_opened(open_store(options_, lock_, distrust_), now_us);
}

void StoreWorker::take_opened(OpenedStore opened, std::int64_t now_us) {
  const bool first = !std::exchange(opened_once_, true);
  retry_us_ = now_us + kRetryUs;
  database_ = std::move(opened.database);
  writable_ = opened.writable;
  if (!opened.notice.empty()) reports_.push_back(StoreNotice{opened.notice, contents_known_});
  if (writable_) {
    distrust_ = false;
    if (const auto settled = settle_interrupted(); !settled) return fail(settled.error().message, now_us);
  }
  Result<StoreContents> contents =
      database_.is_open() ? read_contents(database_) : Result<StoreContents>(Error{});
  const bool known = contents.has_value();
  if (!known && first) {
    // Whatever the file holds, new ids must not be those of its chats.
    const auto base = static_cast<std::uint64_t>(options_.unix_time_ms());
    contents = StoreContents{{}, {}, {}, ChatId{base}, FolderId{base}, PresetId{base}};
  }
  const bool has_chats = known && !contents->chats.empty();
  if (first || (known && !contents_known_)) reports_.push_back(StoreOpened{*std::move(contents)});
  if (known && !std::exchange(contents_known_, true)) load_small_store();
  // A store that was opened before is sound again only when it has written.
  if (first || !writable_ || pending_.empty()) set_problem(std::move(opened.problem));
  if (read_only() && !pending_.empty()) {
    committed_ = newest_ticket_;
    pending_.clear();
  }
  const auto backups = options_.paths.existing_backups();
  const bool fresh = !backups.empty() && backups.front().first > options_.unix_time_ms() - kBackupAgeMs;
  if (writable_ && first && has_chats && !fresh) {
    auto backup = Backup::start(database_, options_.paths, options_.unix_time_ms());
    if (backup) backup_ = *std::move(backup);
  }
}

// Pieces of answers that nobody generates any more become part of their messages.
Result<void> StoreWorker::settle_interrupted() {
  std::map<std::int64_t, std::vector<std::int64_t>> found;
  {
    OCTAVO_TRY(Rows rows, database_.query("SELECT DISTINCT chat, message FROM answer_pieces"));
    while (true) {
      OCTAVO_TRY(const bool more, rows.next());
      if (!more) break;
      found[rows.integer(0)].push_back(rows.integer(1));
    }
  }
  // Not while answers of this window are going on: their pieces are alive.
  if (found.empty() || contents_known_) return {};
  OCTAVO_TRY_VOID(database_.begin());
  for (const auto& [number, messages] : found) {
    const ChatId chat_id{static_cast<std::uint64_t>(number)};
    const auto chat = read_chat(database_, chat_id);
    if (!chat && chat.error().code != ErrorCode::kNotFound) return chat.error();
    for (const std::int64_t id : messages) {
      const Message* message = chat ? chat->find(MessageId{static_cast<std::uint64_t>(id)}) : nullptr;
      if (message != nullptr)
        OCTAVO_TRY_VOID(write_change(database_, changes::SaveMessage{chat_id, *message}));
    }
  }
  OCTAVO_TRY_VOID(database_.run("DELETE FROM answer_pieces"));
  return database_.commit();
}

void StoreWorker::load_small_store() {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(options_.paths.database, error);
  if (error || size > kSmallStoreBytes) return;
  auto rows =
      database_.query("SELECT id FROM chats WHERE trashed_ms IS NULL ORDER BY position DESC, id DESC");
  while (rows) {
    const auto more = rows->next();
    if (!more || !*more) return;
    loads_.push_back(ChatId{static_cast<std::uint64_t>(rows->integer(0))});
  }
}

void StoreWorker::set_problem(StoreProblem problem) {
  if (problem.kind == problem_.kind && problem.sentence == problem_.sentence) return;
  problem_ = problem;
  reports_.push_back(StoreProblemChanged{std::move(problem)});
}

// The newest call failed. Nothing that was not committed counts, and the file is opened anew before the next
// try.
void StoreWorker::fail(const std::string& detail, std::int64_t now_us) {
  const DatabaseFault fault = database_.fault();
  backup_.reset();
  search_.reset();
  if (fault == DatabaseFault::kDamaged) database_.keep_wal_on_close();
  database_.close();
  writable_ = false;
  if (fault == DatabaseFault::kDamaged && lock_.held()) {
    const auto report = rescue(options_.paths, options_.schema);
    if (report) {
      reports_.push_back(StoreNotice{report->sentence(), true});
      return open(now_us);
    }
    set_problem(store_problem(StoreProblemKind::kIoError, options_.paths.database, report.error().message));
  } else {
    set_problem(store_problem(fault, options_.paths.database, detail));
  }
  distrust_ = distrust_ || fault == DatabaseFault::kIo;
  retry_us_ = now_us + kRetryUs;
}

// ---- writing

bool StoreWorker::commit_due(std::int64_t now_us) const {
  if (pending_.empty() || !writable_) return false;
  return urgent_ || now_us - oldest_us_ >= kBatchUs || !loads_.empty() || search_ || problem_;
}

void StoreWorker::commit(std::int64_t now_us) {
  if (const auto written = write_pending(); !written) return fail(written.error().message, now_us);
  committed_ = newest_ticket_;
  pending_.clear();
  urgent_ = false;
  set_problem({});
}

Result<void> StoreWorker::write_pending() {
  OCTAVO_TRY_VOID(database_.begin());
  for (const StoreChange& change : pending_) {
    const auto written = write_change(database_, change);
    if (written) continue;
    if (database_.fault() != DatabaseFault::kOther) return written.error();
    // Nothing that waiting would mend; the rest must not wait for it.
    reports_.push_back(
        StoreNotice{"A change to a chat could not be saved (" + written.error().message + ").", false});
  }
  return database_.commit();
}

// ---- reading

void StoreWorker::load_next(std::int64_t now_us) {
  const ChatId chat_id = loads_.front();
  auto chat = read_chat(database_, chat_id);
  if (!chat && chat.error().code != ErrorCode::kNotFound) return fail(chat.error().message, now_us);
  loads_.pop_front();
  if (chat) reports_.push_back(ChatLoaded{chat_id, *std::move(chat)});
}

void StoreWorker::search_on(std::int64_t now_us) {
  auto progress = search_some();
  if (!progress) return fail(progress.error().message, now_us);
  if (progress->done) search_.reset();
  if (progress->done || !progress->hits.empty()) reports_.push_back(*std::move(progress));
}

Result<SearchProgress> StoreWorker::search_some() {
  SearchProgress progress{search_->id, {}, true};
  {
    OCTAVO_TRY(
        Rows rows,
        database_.query("SELECT number, chat, id, role, content FROM messages WHERE number > ?1 ORDER BY "
                        "number LIMIT ?2",
                        {search_->last_number, std::int64_t{kSearchMessages}}));
    while (search_->num_hits < kMostHits) {
      OCTAVO_TRY(const bool more, rows.next());
      if (!more) break;
      progress.done = false;
      search_->last_number = rows.integer(0);
      auto match = search_->query.find_in(sanitise_utf8(rows.text(4)));
      if (!match) continue;
      ++search_->num_hits;
      SearchHit& hit = progress.hits.emplace_back();
      hit.chat_id = ChatId{static_cast<std::uint64_t>(rows.integer(1))};
      hit.message_id = MessageId{static_cast<std::uint64_t>(rows.integer(2))};
      hit.role = parse_role(rows.text(3)).value_or(Role::kUser);
      hit.match = *std::move(match);
    }
  }
  OCTAVO_TRY_VOID(find_branches(progress.hits));
  if (search_->num_hits >= kMostHits) progress.done = true;
  return progress;
}

// Says of every hit in which branch it stands.
Result<void> StoreWorker::find_branches(std::vector<SearchHit>& hits) {
  std::map<ChatId, Chat> trees;
  for (SearchHit& hit : hits) {
    auto found = trees.find(hit.chat_id);
    if (found == trees.end()) {
      OCTAVO_TRY(Chat tree, read_tree(database_, hit.chat_id));
      found = trees.emplace(hit.chat_id, std::move(tree)).first;
    }
    const Chat& tree = found->second;
    hit.on_active_path = true;
    for (const Message* message = tree.find(hit.message_id); message != nullptr;
         message = tree.find(message->parent)) {
      const SiblingPosition position = tree.position_among_siblings(message->id);
      if (hit.branch.count == 1) hit.branch = position;
      hit.on_active_path = hit.on_active_path && tree.is_chosen(message->id);
    }
  }
  return {};
}

void StoreWorker::back_up_on() {
  const auto complete = backup_->step(kBackupPages);
  // One that fails is tried again at the next start; what matters is the file itself.
  if (!complete || *complete) backup_.reset();
}

}  // namespace octavo::app
