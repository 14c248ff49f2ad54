#include "app/hub/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "app/files/file_descriptor.h"
#include "app/files/whole_file.h"
#include "app/http_client/address.h"
#include "app/hub/checksum.h"
#include "app/hub/download_plan.h"
#include "app/hub/hub_cache.h"
#include "app/hub/hub_client.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kReportTime{100};
constexpr std::int64_t kSaveUs = 2'000'000;                   // what a crash may cost
constexpr std::int64_t kSpareBytes = std::int64_t{16} << 20;  // of the disk, left for others
constexpr std::size_t kVerifyBytes = std::size_t{1} << 20;    // at a time
constexpr std::size_t kErrorBytes = 4096;                     // of an answer that is none
constexpr std::size_t kSlackBytes = std::size_t{1} << 20;
constexpr int kMostHops = 5;
constexpr std::size_t kMostPlanBytes = std::size_t{1} << 20;

std::string quoted(const HubFile& file) { return "'" + escape_for_message(file.path) + "'"; }

// "bytes 0-99/1234": where it begins, and the size of the whole; -1 where that is not told.
struct ContentRange {
  std::int64_t begin = -1, total = -1;
};
ContentRange read_content_range(std::string_view text) {
  ContentRange range;
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return range;
  text.remove_prefix(kUnit.size());
  std::from_chars(text.data(), text.data() + text.size(), range.begin);
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos)
    std::from_chars(text.data() + slash + 1, text.data() + text.size(), range.total);
  return range;
}

Result<void> write_at(int descriptor, std::string_view bytes, std::int64_t offset, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return disk_error("cannot write", path, written < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

// One file, from its lock to its name.
class FileDownload {
 public:
  // `report` gets what is known of this file, and says what is wished.
  using Report = std::function<DownloadWish(DownloadProgress)>;

  FileDownload(HubClient& client, const HubRepository& repository, const HubFile& file, const Clock& clock,
               const DownloadOptions& options, Report report)
      : client_(client),
        repository_(repository),
        file_(file),
        clock_(clock),
        options_(options),
        report_(std::move(report)),
        paths_(blob_paths(client.place().cache, repository.name, file.blob_name())),
        plan_(file.bytes) {}
  ~FileDownload() { stop_transfers(); }
  FileDownload(const FileDownload&) = delete;
  FileDownload& operator=(const FileDownload&) = delete;

  Result<void> run() {
    OCTAVO_TRY_VOID(lock());
    if (is_here(client_.place().cache, repository_.name, file_)) return {};  // by whom had the lock
    OCTAVO_TRY_VOID(open());
    const Result<void> received = receive();
    if (!received) {
      stop_transfers();
      return end_early(received.error());
    }
    if (const Result<void> right = verify(); !right) return end_early(right.error());
    return take_its_name();
  }

 private:
  struct Worker {
    int number = 0;
    bool is_busy = false;
    http::TransferId transfer = 0;
    std::string url;
    int num_redirects = 0;
    bool takes_body = false;  // what comes is the range
    http::AnswerHead head = {};
    std::string error_body = {};
  };

  // ---- before and after

  Result<void> lock() {
    while (true) {
      OCTAVO_TRY(lock_, try_lock(paths_));
      if (lock_.ok()) return {};
      OCTAVO_TRY_VOID(report(DownloadStage::kWaiting));
      client_.http().wait(kReportTime);
    }
  }

  // With what an earlier download has left, as far as that is known.
  Result<void> open() {
    std::error_code error;
    fs::create_directories(paths_.blob.parent_path(), error);
    data_ = app::FileDescriptor(::open(paths_.incomplete.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!data_.ok()) return disk_error("cannot open", paths_.incomplete, errno);
    const off_t has = ::lseek(data_.get(), 0, SEEK_END);
    std::string text;
    const bool is_told = has == file_.bytes && fs::file_size(paths_.missing, error) <= kMostPlanBytes &&
                         !error && app::read_whole_file(paths_.missing, text) == 0;
    if (auto plan = is_told ? DownloadPlan::parse(text, file_.bytes) : std::nullopt) {
      plan_ = *std::move(plan);
      return {};
    }
    return begin_anew();
  }

  Result<void> begin_anew() {
    plan_ = DownloadPlan(file_.bytes);
    if (::ftruncate(data_.get(), 0) != 0 || ::ftruncate(data_.get(), file_.bytes) != 0)
      return disk_error("cannot write", paths_.incomplete, errno);
    return save();
  }

  // First the bytes, then what is known of them.
  Result<void> save() {
    saved_us_ = clock_.now_us();
    if (::fdatasync(data_.get()) != 0) return disk_error("cannot write", paths_.incomplete, errno);
    if (const int reason = app::write_whole_file(paths_.missing, plan_.text()); reason != 0)
      return disk_error("cannot write", paths_.missing, reason);
    return {};
  }

  Error end_early(Error error) {
    if (is_cancelled_ || is_wrong_) {
      std::error_code ignored;
      fs::remove(paths_.missing, ignored);
      fs::remove(paths_.incomplete, ignored);
    } else if (const Result<void> saved = save(); !saved && error.code == ErrorCode::kCancelled) {
      return saved.error();
    }
    return error;
  }

  Result<void> verify() {
    Checksum checksum(file_.sha256.empty() ? ChecksumKind::kGitBlob : ChecksumKind::kSha256, file_.bytes);
    std::vector<std::byte> buffer(kVerifyBytes);
    for (std::int64_t at = 0; at < file_.bytes;) {
      const ssize_t count = ::pread(data_.get(), buffer.data(), buffer.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return disk_error("cannot read", paths_.incomplete, count < 0 ? errno : EIO);
      checksum.add(std::span(buffer).first(static_cast<std::size_t>(count)));
      at += count;
      OCTAVO_TRY_VOID(report(DownloadStage::kVerifying));
    }
    if (checksum.finish() == file_.blob_name()) return {};
    is_wrong_ = true;
    return Error{ErrorCode::kDamagedFile, quoted(file_) + " is not what " + client_.place().host() +
                                              " says that it is (its checksum differs), so it was removed; "
                                              "download it again"};
  }

  Result<void> take_its_name() {
    if (::fsync(data_.get()) != 0) return disk_error("cannot write", paths_.incomplete, errno);
    std::error_code error;
    fs::rename(paths_.incomplete, paths_.blob, error);
    if (error) return disk_error("cannot write", paths_.blob, error.value());
    sync_folder(paths_.blob.parent_path());
    fs::remove(paths_.missing, error);
    return {};
  }

  // ---- the bytes

  Result<void> receive() {
    const bool in_parts = file_.bytes >= options_.parallel_bytes;
    workers_.resize(static_cast<std::size_t>(in_parts ? std::max(1, options_.num_connections) : 1));
    for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i].number = static_cast<int>(i);
    while (!plan_.is_complete()) {
      if (clock_.now_us() >= resume_us_) {
        for (Worker& worker : workers_) give_work(worker);
      }
      client_.http().wait(kReportTime);
      if (fatal_) return *std::exchange(fatal_, std::nullopt);
      OCTAVO_TRY_VOID(report(trouble_.empty() ? DownloadStage::kReceiving : DownloadStage::kRetrying));
      if (clock_.now_us() - saved_us_ >= kSaveUs) OCTAVO_TRY_VOID(save());
    }
    return {};
  }

  void give_work(Worker& worker) {
    if (worker.is_busy || (!has_ranges_ && worker.number > 0)) return;
    const auto range = plan_.take(worker.number, has_ranges_ ? options_.range_bytes : file_.bytes);
    if (!range) return;
    worker.is_busy = true;
    worker.num_redirects = 0;
    ask(worker, direct_url_.empty() ? client_.file_url(repository_, file_) : direct_url_);
  }

  void ask(Worker& worker, std::string url) {
    const ByteRange range = plan_.in_work(worker.number);
    http::ClientRequest request = client_.request_for(url);
    if (has_ranges_) {
      request.headers.push_back(
          {"Range", "bytes=" + std::to_string(range.begin) + "-" + std::to_string(range.end - 1)});
    }
    request.limits.idle_time = options_.idle_time;
    request.limits.body_bytes = static_cast<std::size_t>(file_.bytes) + kSlackBytes;
    worker.url = std::move(url);
    worker.takes_body = false;
    worker.error_body.clear();
    Worker* const who = &worker;
    worker.transfer = client_.http().start(
        std::move(request), {.on_head = [this, who](const http::AnswerHead& head) { take_head(*who, head); },
                             .on_body = [this, who](std::string_view piece) { take_body(*who, piece); },
                             .on_end = [this, who](const http::TransferEnd& end) { take_end(*who, end); }});
  }

  void take_head(Worker& worker, const http::AnswerHead& head) {
    worker.head = head;
    const ByteRange range = plan_.in_work(worker.number);
    if (head.status == 206) {
      const ContentRange told = read_content_range(head.header("content-range"));
      if (told.begin != range.begin || (told.total >= 0 && told.total != file_.bytes))
        return stop_for(Error{ErrorCode::kUnsupported, http::host_of(worker.url) + " sends other bytes of " +
                                                           quoted(file_) +
                                                           " than were asked for; try again later"});
      worker.takes_body = true;
    } else if (head.status == 200) {
      if (range.begin == 0 && range.end == file_.bytes) {
        worker.takes_body = true;
      } else {
        restart_whole();  // it knows no ranges
      }
    }
  }

  void take_body(Worker& worker, std::string_view piece) {
    if (!worker.takes_body) {
      worker.error_body.append(
          piece.substr(0, kErrorBytes - std::min(kErrorBytes, worker.error_body.size())));
      return;
    }
    const ByteRange range = plan_.in_work(worker.number);
    if (static_cast<std::int64_t>(piece.size()) > range.size()) {
      return stop_for(Error{ErrorCode::kUnsupported, http::host_of(worker.url) + " sends more of " +
                                                         quoted(file_) + " than it has; try again later"});
    }
    if (const auto written = write_at(data_.get(), piece, range.begin, paths_.incomplete); !written)
      return stop_for(written.error());
    plan_.receive(worker.number, static_cast<std::int64_t>(piece.size()));
    retries_.after_progress();
    trouble_.clear();
  }

  void take_end(Worker& worker, const http::TransferEnd& end) {
    worker.is_busy = false;
    const int status = worker.head.status;
    const bool is_answer = worker.takes_body && plan_.in_work(worker.number).size() == 0;
    if (is_answer) {
      if (worker.num_redirects > 0) direct_url_ = worker.url;  // the next ranges go there at once
      return plan_.give_back(worker.number);
    }
    if (!end.error && (status == 301 || status == 302 || status == 303 || status == 307 || status == 308))
      return follow(worker);
    const bool was_direct =
        std::exchange(direct_url_, std::string()) == worker.url && worker.num_redirects == 0;
    plan_.give_back(worker.number);
    // A name that is not found may be a network that is gone for a while.
    const bool may_help =
        !end.error || end.error->code == ErrorCode::kIo || end.error->code == ErrorCode::kNotFound;
    if (!may_help) return stop_for(*end.error);
    std::optional<milliseconds> asked;
    Error problem = end.error.value_or(
        Error{ErrorCode::kIo,
              http::host_of(worker.url) + " closed the connection before the end of " + quoted(file_)});
    if (!end.error && !worker.takes_body) {
      problem = refusal(client_.place(), repository_.name, worker.head, worker.error_body);
      asked = read_retry_after(worker.head.header("retry-after"));
      const bool may_pass = status == 429 || status >= 500 || was_direct || worker.num_redirects > 0;
      if (!may_pass) return stop_for(problem);
    }
    try_again(problem, asked);
  }

  void follow(Worker& worker) {
    auto target = http::resolve_location(worker.url, worker.head.header("location"));
    if (target && ++worker.num_redirects <= kMostHops) {
      worker.is_busy = true;
      return ask(worker, *std::move(target));
    }
    plan_.give_back(worker.number);
    stop_for(target ? Error{ErrorCode::kUnsupported,
                            client_.place().host() + " leads in a circle when asked for " + quoted(file_)}
                    : target.error());
  }

  void try_again(const Error& problem, std::optional<milliseconds> asked) {
    const std::int64_t now_us = clock_.now_us();
    if (now_us < resume_us_) return;  // another connection has failed with this one
    const auto pause = retries_.after_failure(asked);
    if (!pause) return stop_for(problem);
    trouble_ = problem.message;
    resume_us_ = now_us + pause->count() * 1000;
  }

  // From the beginning, over one connection.
  void restart_whole() {
    has_ranges_ = false;
    stop_transfers();
    if (++num_restarts_ > Retries::kMostFailures) {
      return stop_for(Error{ErrorCode::kIo, client_.place().host() + " never sends all of " + quoted(file_) +
                                                ", and no parts of it; try again later"});
    }
    if (const auto begun = begin_anew(); !begun) stop_for(begun.error());
  }

  void stop_for(Error error) {
    if (!fatal_) fatal_ = std::move(error);
  }

  void stop_transfers() {
    for (Worker& worker : workers_) {
      if (!worker.is_busy) continue;
      client_.http().cancel(worker.transfer);
      worker.is_busy = false;
      plan_.give_back(worker.number);
    }
  }

  // ---- what is told

  Result<void> report(DownloadStage stage) {
    const std::int64_t now_us = clock_.now_us();
    speed_.note(now_us, plan_.received());
    if (now_us - reported_us_ < kReportTime.count() * 1000 && stage != DownloadStage::kWaiting) return {};
    reported_us_ = now_us;
    const double speed = stage == DownloadStage::kReceiving ? speed_.bytes_per_s(now_us) : 0;
    const DownloadWish wish = report_({.stage = stage,
                                       .file = file_.path,
                                       .received = plan_.received(),
                                       .total = file_.bytes,
                                       .bytes_per_s = speed,
                                       .trouble = trouble_});
    if (wish == DownloadWish::kGoOn) return {};
    is_cancelled_ = wish == DownloadWish::kCancel;
    return Error{ErrorCode::kCancelled,
                 is_cancelled_ ? "the download was cancelled" : "the download was paused"};
  }

  HubClient& client_;
  const HubRepository& repository_;
  const HubFile& file_;
  const Clock& clock_;
  const DownloadOptions& options_;
  const Report report_;
  const BlobPaths paths_;
  app::FileDescriptor lock_, data_;
  DownloadPlan plan_;
  Retries retries_;
  SpeedMeter speed_;
  std::vector<Worker> workers_;
  std::string direct_url_;  // where the hub led, while that works
  bool has_ranges_ = true;
  int num_restarts_ = 0;
  bool is_cancelled_ = false, is_wrong_ = false;
  std::string trouble_;
  std::optional<Error> fatal_;
  std::int64_t resume_us_ = 0, saved_us_ = 0, reported_us_ = 0;
};

std::int64_t free_bytes_of(fs::path folder, const DownloadOptions& options) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  if (options.free_bytes) return options.free_bytes(folder);
  const fs::space_info space = fs::space(folder, error);
  return error ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(space.available);
}

// What of a file stands on the disk already, also of one that is not complete.
std::int64_t bytes_on_disk(const fs::path& cache, const HubRepository& repository, const HubFile& file) {
  if (is_here(cache, repository.name, file)) return file.bytes;
  std::string text;
  if (app::read_whole_file(blob_paths(cache, repository.name, file.blob_name()).missing, text) != 0) return 0;
  const auto plan = DownloadPlan::parse(text, file.bytes);
  return plan ? plan->received() : 0;
}

Result<void> check_room(const fs::path& cache, const HubRepository& repository,
                        const DownloadOptions& options) {
  std::int64_t needed = 0;
  for (const HubFile& file : repository.files) needed += file.bytes - bytes_on_disk(cache, repository, file);
  const std::int64_t has = free_bytes_of(cache, options);
  if (needed == 0 || needed + kSpareBytes <= has) return {};
  return Error{ErrorCode::kOutOfMemory,
               "'" + escape_for_message(repository.name) + "' needs " + bytes_text(needed) + " more in " +
                   path_for_message(cache) + ", where " + bytes_text(has) +
                   " are free; make room, or set HF_HUB_CACHE to a folder on another disk"};
}

}  // namespace

Result<fs::path> download(const HubPlace& place, const HubRepository& repository, const Clock& clock,
                          const DownloadOptions& options) {
  if (repository.files.empty())
    return Error{ErrorCode::kNotFound, "'" + escape_for_message(repository.name) + "' has no such file"};
  if (place.is_offline) {
    return Error{ErrorCode::kUnsupported,
                 "HF_HUB_OFFLINE is set, so nothing is downloaded; unset it to do so"};
  }
  OCTAVO_TRY_VOID(check_room(place.cache, repository, options));
  HubClient client(place, clock);
  const std::int64_t total = repository.bytes();
  std::int64_t before = 0;  // of the files in front of this one
  for (const HubFile& file : repository.files) {
    const auto report = [&](DownloadProgress progress) {
      progress.received += before;
      progress.total = total;
      if (progress.bytes_per_s > 0)
        progress.seconds_left = static_cast<double>(total - progress.received) / progress.bytes_per_s;
      return options.on_progress ? options.on_progress(progress) : DownloadWish::kGoOn;
    };
    if (!is_here(place.cache, repository.name, file)) {
      FileDownload one(client, repository, file, clock, options, report);
      OCTAVO_TRY_VOID(one.run());
    }
    before += file.bytes;
  }
  // Only now: a model of several files is not to be found while some of them are missing.
  OCTAVO_TRY_VOID(link_snapshot(place.cache, repository));
  return snapshot_path(place.cache, repository, repository.files.front());
}

}  // namespace octavo::hub
