#include "app/hub/hub_client.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include "app/http_client/address.h"
#include "app/hub/hub_json.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::hub {
namespace {

using std::chrono::milliseconds;

constexpr int kMostRedirects = 5;
constexpr int kMostAttempts = 4;
constexpr int kMostPages = 20;
constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{20'000};  // somebody waits: later is for them to decide
constexpr milliseconds kLook{50};
constexpr std::size_t kMostAnswerBytes = std::size_t{4} << 20;
constexpr milliseconds kConnectTime{15'000};
constexpr milliseconds kIdleTime{30'000};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool may_pass(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::string in_quotes(std::string_view text) { return "'" + escape_for_message(text) + "'"; }

// <https://…>; rel="next"
std::string next_page(std::string_view link) {
  const std::size_t open = link.find('<'), close = link.find('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  if (link.find("rel=\"next\"", close) == std::string_view::npos) return {};
  return std::string(link.substr(open + 1, close - open - 1));
}

bool is_revision(std::string_view text) {
  return !text.empty() && text.size() <= 200 && std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != 0x7f && c != '?' && c != '#';
  });
}

}  // namespace

std::optional<milliseconds> read_retry_after(std::string_view value) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc{} || end != value.data() + value.size() || seconds < 0) return std::nullopt;
  return milliseconds(std::min<std::int64_t>(seconds, 3600) * 1000);
}

Error refusal(const HubPlace& place, std::string_view about, const http::AnswerHead& head,
              std::string_view body) {
  const std::string host = place.host();
  const std::string what = about.empty() ? std::string("this") : in_quotes(about);
  const std::string_view code = head.header("x-error-code");
  const bool asks = code == "GatedRepo" || (head.status == 403 && code.empty());
  if (asks) {
    return {ErrorCode::kUnsupported,
            what + " is gated: accept its terms at " + place.endpoint + "/" + std::string(about) +
                (place.token.empty() ? ", then set HF_TOKEN to a token of your account"
                                     : "; your token's account has not, or may not read it")};
  }
  if (head.status == 401 || head.status == 404) {
    return {ErrorCode::kNotFound,
            host + " has no " + what +
                (head.status == 401 && place.token.empty() ? ", or only for whoever sets HF_TOKEN"
                 : head.status == 401                      ? ", or your token may not read it"
                                                           : "; check its name")};
  }
  if (head.status == 429) {
    const auto pause = read_retry_after(head.header("retry-after"));
    return {ErrorCode::kIo,
            host + " takes no more requests from here for now; try again " +
                (pause ? "in " + duration_text(static_cast<double>(pause->count())) : std::string("later"))};
  }
  std::string said = read_error(body);
  if (!said.empty()) said = ": " + said;
  return {ErrorCode::kIo,
          host + " answered " + std::to_string(head.status) + " when asked for " + what + said};
}

HubClient::HubClient(HubPlace place, const Clock& clock, std::function<bool()> is_stopped)
    : place_(std::move(place)), is_stopped_(std::move(is_stopped)), client_(clock, place_.ca_file) {}

Result<void> HubClient::check_place() const {
  if (place_.is_offline) {
    return Error{ErrorCode::kUnsupported,
                 "HF_HUB_OFFLINE is set, so nothing is contacted; unset it to search and download"};
  }
  if (!http::origin_of(place_.endpoint).empty()) return {};
  return Error{ErrorCode::kInvalidArgument,
               "HF_ENDPOINT is " + in_quotes(place_.endpoint) + ", which is no address of http or https"};
}

http::ClientRequest HubClient::request_for(const std::string& url) const {
  http::ClientRequest request{.url = url};
  request.headers.push_back({"User-Agent", "octavo"});
  request.headers.push_back({"Accept-Encoding", "identity"});
  if (!place_.token.empty() && http::origin_of(url) == http::origin_of(place_.endpoint))
    request.headers.push_back({"Authorization", "Bearer " + place_.token});
  request.limits = {.connect_time = kConnectTime, .idle_time = kIdleTime, .body_bytes = kMostAnswerBytes};
  return request;
}

Result<void> HubClient::wait(milliseconds time) {
  for (milliseconds waited{0}; waited < time; waited += kLook) {
    if (is_stopped()) return Error{ErrorCode::kCancelled, "the request was stopped"};
    std::this_thread::sleep_for(std::min(kLook, time - waited));
  }
  return {};
}

Result<HubClient::Answer> HubClient::fetch_once(const std::string& url,
                                                const std::optional<ByteRange>& range) {
  http::ClientRequest request = request_for(url);
  if (range) {
    request.headers.push_back(
        {"Range", "bytes=" + std::to_string(range->begin) + "-" + std::to_string(range->end - 1)});
    request.limits.body_bytes = static_cast<std::size_t>(range->size()) + kMostAnswerBytes;
  }
  OCTAVO_TRY(http::Response response, http::fetch(client_, std::move(request), is_stopped_));
  return Answer{{response.status, std::move(response.headers)}, std::move(response.body)};
}

// Again where that may help: nobody answered, or the hub asks for a pause that a person may wait for.
Result<HubClient::Answer> HubClient::get_with_retries(const std::string& url, std::string_view about,
                                                      const std::optional<ByteRange>& range) {
  milliseconds pause = kFirstPause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    auto answer = fetch_once(url, range);
    const bool may_help = answer ? may_pass(answer->head.status) : answer.error().code == ErrorCode::kIo;
    if (!may_help) return answer;
    milliseconds wanted = pause;
    if (answer) wanted = read_retry_after(answer->head.header("retry-after")).value_or(pause);
    if (attempt == kMostAttempts || wanted > kLongestPause) {
      if (!answer) return answer;
      return refusal(place_, about, answer->head, answer->body);
    }
    OCTAVO_TRY_VOID(wait(wanted));
  }
}

Result<HubClient::Answer> HubClient::get(std::string url, std::string_view about,
                                         std::optional<ByteRange> range) {
  OCTAVO_TRY_VOID(check_place());
  for (int num_redirects = 0; num_redirects <= kMostRedirects; ++num_redirects) {
    OCTAVO_TRY(Answer answer, get_with_retries(url, about, range));
    if (is_redirect(answer.head.status)) {
      OCTAVO_TRY(url, http::resolve_location(url, answer.head.header("location")));
      continue;
    }
    if (answer.head.status != 200 && answer.head.status != 206)
      return refusal(place_, about, answer.head, answer.body);
    return answer;
  }
  return Error{ErrorCode::kUnsupported,
               place_.host() + " leads in a circle when asked for " + in_quotes(about)};
}

std::string HubClient::api_url(const std::string& name) const {
  return place_.endpoint + "/api/models/" + http::percent_encoded(name, "/");
}

std::string HubClient::file_url(const HubRepository& repository, const HubFile& file) const {
  return place_.endpoint + "/" + http::percent_encoded(repository.name, "/") + "/resolve/" +
         repository.commit + "/" + http::percent_encoded(file.path, "/");
}

Result<std::vector<HubModel>> HubClient::search(const std::string& text, int limit) {
  std::string url = place_.endpoint + "/api/models?search=" + http::percent_encoded(text) +
                    "&filter=gguf&sort=downloads&direction=-1&limit=" + std::to_string(limit);
  OCTAVO_TRY(const Answer answer, get(url, {}));
  return read_search(answer.body, place_.host());
}

Result<HubRepository> HubClient::repository(const std::string& name, const std::string& revision) {
  if (!is_repository_name(name) || !is_revision(revision)) {
    return Error{ErrorCode::kInvalidArgument,
                 in_quotes(is_repository_name(name) ? revision : name) + " names no model; give org/name"};
  }
  const std::string at = http::percent_encoded(revision);
  OCTAVO_TRY(const Answer answer,
             get(revision == "main" ? api_url(name) : api_url(name) + "/revision/" + at, name));
  OCTAVO_TRY(HubRepository repository, read_repository(answer.body, place_.host()));
  repository.name = name;
  repository.revision = revision;
  // Of that commit, whatever is written meanwhile.
  std::string url =
      api_url(name) + "/tree/" + (repository.commit.empty() ? at : repository.commit) + "?recursive=1";
  for (int page = 0; !url.empty(); ++page) {
    if (page == kMostPages || repository.files.size() > kMostFiles)
      return Error{ErrorCode::kUnsupported, in_quotes(name) + " has more files than are read here"};
    OCTAVO_TRY(const Answer listed, get(url, name));
    OCTAVO_TRY(std::vector<HubFile> files, read_files(listed.body, place_.host()));
    repository.files.insert(repository.files.end(), files.begin(), files.end());
    if (repository.commit.empty() && is_hex(listed.head.header("x-repo-commit"), 40))
      repository.commit = listed.head.header("x-repo-commit");
    const std::string next = next_page(listed.head.header("link"));
    url.clear();
    if (next.empty()) break;
    OCTAVO_TRY(url, http::resolve_location(api_url(name), next));
  }
  if (repository.commit.empty())
    return Error{ErrorCode::kUnsupported,
                 place_.host() + " does not say which commit " + in_quotes(name) + " is"};
  std::ranges::sort(repository.files, {}, &HubFile::path);
  return repository;
}

Result<std::string> HubClient::read(const HubRepository& repository, const HubFile& file, ByteRange range) {
  OCTAVO_TRY(Answer answer, get(file_url(repository, file), repository.name, range));
  const auto wanted = static_cast<std::size_t>(range.size());
  if (answer.head.status == 200 && range.begin == 0 && answer.body.size() > wanted)
    answer.body.resize(wanted);
  if ((answer.head.status == 206 || range.begin == 0) && answer.body.size() == wanted)
    return std::move(answer.body);
  return Error{ErrorCode::kUnsupported, place_.host() + " sent other bytes of " + in_quotes(file.path) +
                                            " than were asked for, so it cannot be looked into"};
}

}  // namespace octavo::hub
