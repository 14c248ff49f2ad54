#include "app/http_client/client.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "engine/base/ascii.h"
#include "engine/base/check.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::http {
namespace {

constexpr std::size_t kHeaderBytes = 64 * 1024;  // all of an answer's together
constexpr std::chrono::milliseconds kStopTick{100};

// "https://host:8000", for sentences: neither path nor what else an address may hold.
std::string place_of(const std::string& url) {
  const std::size_t scheme_end = url.find("://");
  const std::size_t host = scheme_end == std::string::npos ? 0 : scheme_end + 3;
  const std::size_t end = url.find_first_of("/?#", host);
  const std::string_view authority = std::string_view(url).substr(host, end - host);
  const std::size_t at = authority.rfind('@');  // in front of it may stand a password
  const std::string_view shown = at == std::string_view::npos ? authority : authority.substr(at + 1);
  return escape_for_message(std::string(url, 0, host) + std::string(shown));
}

// This machine is never reached by a proxy.
std::string without_proxy() {
  std::string hosts = "localhost,127.0.0.1,::1";
  for (const char* const name : {"no_proxy", "NO_PROXY"}) {
    const char* const more = std::getenv(name);
    if (more != nullptr && *more != '\0') return hosts + "," + more;
  }
  return hosts;
}

// Else a value could end its line and begin a header of its own.
bool are_single_lines(const std::vector<Header>& headers) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return std::ranges::none_of(headers, [&](const Header& header) {
    return std::ranges::any_of(header.name, is_control) || std::ranges::any_of(header.value, is_control);
  });
}

void initialise_curl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  OCTAVO_CHECK(code == CURLE_OK, "libcurl does not start: %s", curl_easy_strerror(code));
}

}  // namespace

std::string_view AnswerHead::header(std::string_view name) const {
  for (const Header& header : headers)
    if (header.name == name) return header.value;
  return {};
}

class Client::Transfers {
 public:
  Transfers(const Clock& clock, std::string ca_file)
      : clock_(clock), ca_file_(std::move(ca_file)), no_proxy_(without_proxy()) {
    initialise_curl();
    multi_ = curl_multi_init();
    OCTAVO_CHECK(multi_ != nullptr, "libcurl has no memory");
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1024L);  // kept open for the next requests
  }
  ~Transfers() {
    for (auto& [id, transfer] : open_)
      if (transfer->is_added) curl_multi_remove_handle(multi_, transfer->easy.get());
    open_.clear();
    curl_multi_cleanup(multi_);
  }
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  TransferId start(ClientRequest request, TransferHandlers handlers) {
    auto transfer = std::make_unique<Transfer>();
    transfer->id = ++newest_;
    transfer->request = std::move(request);
    transfer->handlers = std::move(handlers);
    transfer->owner = this;
    waiting_.push_back(transfer->id);
    open_.emplace(transfer->id, std::move(transfer));
    return newest_;
  }

  void cancel(TransferId id) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    found->second->is_cancelled = true;
    if (!is_within_curl_) drop(id);
  }

  void wait(std::chrono::milliseconds timeout) {
    const bool has_begun = begin_waiting();
    if (has_begun) timeout = std::chrono::milliseconds{0};
    perform();
    if (finish_ended() || end_idle()) return;
    const auto limit = std::min<std::int64_t>(timeout.count(), time_to_idle_limit().count());
    int num_ready = 0;
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::max<std::int64_t>(0, limit)), &num_ready);
    perform();
    finish_ended();
    end_idle();
  }

  void wake_up() { curl_multi_wakeup(multi_); }
  std::size_t num_open() const { return open_.size(); }

 private:
  struct EasyDeleter {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct ListDeleter {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  struct Transfer {
    TransferId id = 0;
    ClientRequest request;
    TransferHandlers handlers;
    Transfers* owner = nullptr;
    std::unique_ptr<CURL, EasyDeleter> easy = {};
    std::unique_ptr<curl_slist, ListDeleter> headers = {};
    bool is_added = false;
    bool is_cancelled = false;
    AnswerHead head = {};
    std::size_t header_bytes = 0;
    bool is_head_told = false;
    std::size_t body_bytes = 0;
    std::optional<Error> broken_limit = {};
    std::int64_t heard_us = 0;  // when something came last
  };

  // ---- what libcurl calls

  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    return transfer.owner->take_header(transfer, {bytes, size * count}) ? size * count : CURL_WRITEFUNC_ERROR;
  }
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    return transfer.owner->take_body(transfer, {bytes, size * count}) ? size * count : CURL_WRITEFUNC_ERROR;
  }

  bool take_header(Transfer& transfer, std::string_view line) {
    if (transfer.is_cancelled) return false;
    transfer.heard_us = clock_.now_us();
    transfer.header_bytes += line.size();
    if (transfer.header_bytes > kHeaderBytes)
      return broke(transfer, "sent headers of more than " + bytes_text(kHeaderBytes));
    line = without_blanks(line);
    if (transfer.is_head_told) return true;  // trailers
    if (line.starts_with("HTTP/")) {
      transfer.head = {};
      const std::size_t space = std::min(line.find(' '), line.size());
      const std::string_view status = without_blanks(line.substr(space));
      std::from_chars(status.data(), status.data() + status.size(), transfer.head.status);
    } else if (line.empty()) {
      tell_head(transfer);
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      transfer.head.headers.push_back(
          {ascii_lower_case(line.substr(0, colon)), std::string(without_blanks(line.substr(colon + 1)))});
    }
    return !transfer.is_cancelled;
  }

  void tell_head(Transfer& transfer) {
    if (transfer.head.status < 200) return;  // 100 Continue
    transfer.is_head_told = true;
    if (transfer.handlers.on_head) transfer.handlers.on_head(transfer.head);
  }

  bool take_body(Transfer& transfer, std::string_view piece) {
    if (transfer.is_cancelled) return false;
    transfer.heard_us = clock_.now_us();
    transfer.body_bytes += piece.size();
    if (transfer.body_bytes > transfer.request.limits.body_bytes) {
      return broke(transfer, "sent more than " +
                                 bytes_text(static_cast<std::int64_t>(transfer.request.limits.body_bytes)));
    }
    if (transfer.handlers.on_body) transfer.handlers.on_body(piece);
    return !transfer.is_cancelled;
  }

  bool broke(Transfer& transfer, const std::string& what) {
    transfer.broken_limit =
        Error{.code = ErrorCode::kTooLong,
              .message = place_of(transfer.request.url) + " " + what + ", which is refused"};
    return false;
  }

  // ---- the loop

  bool begin_waiting() {
    for (const TransferId id : std::exchange(waiting_, {})) {
      const auto found = open_.find(id);
      if (found == open_.end()) continue;
      Transfer& transfer = *found->second;
      if (!are_single_lines(transfer.request.headers)) {
        end(id, {.error = Error{ErrorCode::kInvalidArgument,
                                "a key or header holds a line break or another control character"}});
        continue;
      }
      set_up(transfer);
      transfer.heard_us = clock_.now_us();
      transfer.is_added = curl_multi_add_handle(multi_, transfer.easy.get()) == CURLM_OK;
      if (!transfer.is_added) end(id, {.error = Error{ErrorCode::kInternal, "libcurl starts no request"}});
    }
    return !waiting_.empty();
  }

  void set_up(Transfer& transfer) {
    transfer.easy.reset(curl_easy_init());
    CURL* const easy = transfer.easy.get();
    OCTAVO_CHECK(easy != nullptr, "libcurl has no memory");
    const ClientRequest& request = transfer.request;
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    curl_easy_setopt(easy, CURLOPT_NOPROXY, no_proxy_.c_str());
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.limits.connect_time.count()));
    if (!ca_file_.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file_.c_str());
    if (request.method == "POST") {
      curl_easy_setopt(easy, CURLOPT_POST, 1L);
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    } else if (request.method != "GET") {
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    const auto add_header = [&](const std::string& line) {
      transfer.headers.reset(curl_slist_append(transfer.headers.release(), line.c_str()));
    };
    add_header("Expect:");  // no round trip before a body
    for (const Header& header : request.headers) add_header(header.name + ": " + header.value);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfers::on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfers::on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  }

  void perform() {
    is_within_curl_ = true;
    int num_running = 0;
    curl_multi_perform(multi_, &num_running);
    is_within_curl_ = false;
    std::vector<TransferId> cancelled;
    for (const auto& [id, transfer] : open_)
      if (transfer->is_cancelled) cancelled.push_back(id);
    for (const TransferId id : cancelled) drop(id);
  }

  bool finish_ended() {
    bool any = false;
    int num_left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &num_left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      char* user = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
      Transfer& transfer = *reinterpret_cast<Transfer*>(user);
      end(transfer.id, end_of(transfer, code));
      any = true;
    }
    return any;
  }

  TransferEnd end_of(const Transfer& transfer, CURLcode code) const {
    curl_off_t num_sent = 0;
    long request_bytes = 0;
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_SIZE_UPLOAD_T, &num_sent);
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_REQUEST_SIZE, &request_bytes);
    TransferEnd result{.error = {}, .may_have_arrived = num_sent > 0 || request_bytes > 0};
    if (transfer.broken_limit) {
      result.error = transfer.broken_limit;
    } else if (code != CURLE_OK) {
      result.error = error_of(transfer, code);
    }
    return result;
  }

  // kIo where asking again may help.
  static Error error_of(const Transfer& transfer, CURLcode code) {
    const std::string place = place_of(transfer.request.url);
    switch (code) {
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
        return {ErrorCode::kInvalidArgument,
                "'" + escape_for_message(place) + "' is no address; it looks like http://127.0.0.1:8000/v1"};
      case CURLE_COULDNT_RESOLVE_HOST:
        return {ErrorCode::kNotFound, "no machine is called as in " + place + "; check its name"};
      case CURLE_COULDNT_RESOLVE_PROXY:
        return {ErrorCode::kNotFound, "no machine is called as the proxy on the way to " + place};
      case CURLE_COULDNT_CONNECT:
        return {ErrorCode::kIo,
                "nobody answers at " + place + "; check the address, and whether the server runs"};
      case CURLE_OPERATION_TIMEDOUT:
        return {ErrorCode::kIo,
                place + " did not answer within " +
                    duration_text(static_cast<double>(transfer.request.limits.connect_time.count())) +
                    "; check the address, and whether the server runs"};
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
        return {ErrorCode::kUnsupported,
                "the certificate of " + place + " is not one that this machine trusts"};
      case CURLE_SSL_CONNECT_ERROR:
        return {ErrorCode::kUnsupported,
                place + " speaks no TLS that this machine knows; is it http:// there?"};
      case CURLE_WEIRD_SERVER_REPLY:
        return {ErrorCode::kUnsupported, place + " does not speak HTTP as we do; check the port"};
      case CURLE_GOT_NOTHING:
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
      case CURLE_SEND_ERROR:
        return {ErrorCode::kIo, place + " closed the connection before the end of its answer"};
      default:
        return {ErrorCode::kIo,
                "the request to " + place + " failed: " + escape_for_message(curl_easy_strerror(code))};
    }
  }

  bool end_idle() {
    const std::int64_t now_us = clock_.now_us();
    std::vector<TransferId> idle;
    for (const auto& [id, transfer] : open_) {
      const auto limit = transfer->request.limits.idle_time;
      if (transfer->is_added && limit.count() > 0 && now_us - transfer->heard_us >= limit.count() * 1000)
        idle.push_back(id);
    }
    for (const TransferId id : idle) {
      const auto found = open_.find(id);
      if (found == open_.end()) continue;  // a handler has cancelled it
      const Transfer& transfer = *found->second;
      const double limit_ms = static_cast<double>(transfer.request.limits.idle_time.count());
      end(id, {.error = Error{ErrorCode::kIo, place_of(transfer.request.url) + " sent nothing for " +
                                                  duration_text(limit_ms) + ", so the request was ended"},
               .may_have_arrived = true});
    }
    return !idle.empty();
  }

  std::chrono::milliseconds time_to_idle_limit() const {
    std::int64_t least_ms = 60'000;
    const std::int64_t now_us = clock_.now_us();
    for (const auto& [id, transfer] : open_) {
      const auto limit = transfer->request.limits.idle_time;
      if (limit.count() > 0)
        least_ms = std::min(least_ms, limit.count() - (now_us - transfer->heard_us) / 1000 + 1);
    }
    return std::chrono::milliseconds{least_ms};
  }

  void drop(TransferId id) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    if (found->second->is_added) curl_multi_remove_handle(multi_, found->second->easy.get());
    open_.erase(found);
  }

  // Gone before its handler is called, which may do anything.
  void end(TransferId id, TransferEnd result) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    const TransferHandlers handlers = std::move(found->second->handlers);
    drop(id);
    if (handlers.on_end) handlers.on_end(result);
  }

  const Clock& clock_;
  const std::string ca_file_, no_proxy_;
  CURLM* multi_ = nullptr;
  TransferId newest_ = 0;
  std::map<TransferId, std::unique_ptr<Transfer>> open_;
  std::vector<TransferId> waiting_;  // that libcurl does not know yet
  bool is_within_curl_ = false;
};

Client::Client(const Clock& clock, std::string ca_file)
    : transfers_(std::make_unique<Transfers>(clock, std::move(ca_file))) {}
Client::~Client() = default;
TransferId Client::start(ClientRequest request, TransferHandlers handlers) {
  return transfers_->start(std::move(request), std::move(handlers));
}
void Client::cancel(TransferId id) { transfers_->cancel(id); }
void Client::wait(std::chrono::milliseconds timeout) { transfers_->wait(timeout); }
void Client::wake_up() { transfers_->wake_up(); }
std::size_t Client::num_open() const { return transfers_->num_open(); }

Result<Response> fetch(Client& client, ClientRequest request, const std::function<bool()>& is_stopped) {
  Response response{.status = 0, .headers = {}, .body = {}};
  std::optional<TransferEnd> end;
  const TransferId id =
      client.start(std::move(request), {.on_head =
                                            [&](const AnswerHead& head) {
                                              response.status = head.status;
                                              response.headers = head.headers;
                                            },
                                        .on_body = [&](std::string_view piece) { response.body += piece; },
                                        .on_end = [&](const TransferEnd& how) { end = how; }});
  while (!end) {
    if (is_stopped && is_stopped()) {
      client.cancel(id);
      return Error{ErrorCode::kCancelled, "the request was stopped"};
    }
    client.wait(kStopTick);
  }
  if (end->error) return *std::move(end->error);
  return response;
}

}  // namespace octavo::http
