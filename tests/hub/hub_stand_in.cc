#include "tests/hub/hub_stand_in.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/hub/checksum.h"

namespace octavo::testing {
namespace {

using nlohmann::json;

int open_port(int& port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(descriptor, 64) != 0)
    std::abort();
  socklen_t size = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return descriptor;
}

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string checksum_of(hub::ChecksumKind kind, const std::string& content) {
  hub::Checksum checksum(kind, static_cast<std::int64_t>(content.size()));
  checksum.add(std::as_bytes(std::span(content)));
  return checksum.finish();
}

std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

json row_of(const StandInRepository& repository) {
  return {{"id", repository.name},
          {"sha", repository.commit()},
          {"gated", repository.is_gated ? json("auto") : json(false)},
          {"downloads", 1234},
          {"likes", 56},
          {"tags", {"gguf", "license:" + repository.licence}}};
}

json entry_of(const StandInFile& file) {
  const auto bytes = file.told_bytes >= 0 ? file.told_bytes : static_cast<std::int64_t>(file.content.size());
  json entry = {{"type", "file"}, {"path", file.path}, {"size", bytes}, {"oid", git_oid_of(file.content)}};
  if (file.is_large) {
    const std::string sha256 = file.told_sha256.empty() ? sha256_of(file.content) : file.told_sha256;
    entry["lfs"] = {{"oid", sha256}, {"size", bytes}, {"pointerSize", 134}};
  }
  return entry;
}

}  // namespace

std::string sha256_of(const std::string& content) { return checksum_of(hub::ChecksumKind::kSha256, content); }
std::string git_oid_of(const std::string& content) {
  return checksum_of(hub::ChecksumKind::kGitBlob, content);
}
std::string StandInRepository::commit() const { return git_oid_of("commit of " + name); }

HubStandIn::HubStandIn(std::vector<StandInRepository> repositories) : repositories_(std::move(repositories)) {
  hub_ = open_port(hub_port_);
  behind_ = open_port(behind_port_);
  hub_thread_ = std::thread([this] { listen(hub_, true); });
  behind_thread_ = std::thread([this] { listen(behind_, false); });
}

HubStandIn::~HubStandIn() {
  stopping_ = true;
  ::shutdown(hub_, SHUT_RDWR);
  ::shutdown(behind_, SHUT_RDWR);
  hub_thread_.join();
  behind_thread_.join();
  ::close(hub_);
  ::close(behind_);
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(threads_mutex_);
    for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

std::string HubStandIn::address() const { return "http://127.0.0.1:" + std::to_string(hub_port_); }

std::vector<SeenRequest> HubStandIn::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}
void HubStandIn::forget_seen() {
  const std::lock_guard lock(mutex_);
  seen_.clear();
}
void HubStandIn::answer(const std::string& target_begin, int status, const std::string& body) {
  const std::lock_guard lock(mutex_);
  answers_[target_begin] = {status, body};
}

void HubStandIn::listen(int descriptor, bool at_hub) {
  while (!stopping_) {
    const int connection = ::accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const std::lock_guard lock(threads_mutex_);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection, at_hub] { serve(connection, at_hub); });
  }
}

void HubStandIn::serve(int connection, bool at_hub) {
  std::string bytes;
  bool goes_on = true;
  while (goes_on && !stopping_) {
    std::size_t end;
    while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
      char buffer[4096];
      const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(count));
    }
    if (end == std::string::npos) break;
    Request request;
    const std::string head = bytes.substr(0, end + 2);
    bytes.erase(0, end + 4);
    const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
    request.method = head.substr(0, first);
    request.target = head.substr(first + 1, second - first - 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      const std::size_t line_end = head.find("\r\n", at), colon = head.find(':', at);
      if (colon < line_end)
        request.headers[lower(head.substr(at, colon - at))] = head.substr(colon + 2, line_end - colon - 2);
      at = line_end + 2;
    }
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back({at_hub, request.target, request.headers["authorization"], request.headers["range"]});
    }
    goes_on = reply(connection, at_hub, request);
  }
  const std::lock_guard lock(threads_mutex_);
  std::erase(connections_, connection);
  ::shutdown(connection, SHUT_RDWR);
  ::close(connection);
}

bool HubStandIn::send(int connection, int status, const std::string& headers, const std::string& body) {
  return send_all(connection, "HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" + headers +
                                  "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

const StandInRepository* HubStandIn::find(const std::string& name) const {
  const auto found = std::ranges::find(repositories_, name, &StandInRepository::name);
  return found == repositories_.end() ? nullptr : &*found;
}

bool HubStandIn::reply(int connection, bool at_hub, const Request& request) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, what] : answers_)
      if (request.target.starts_with(begin)) return send(connection, what.first, "", what.second);
  }
  if (num_failures > 0) {
    --num_failures;
    const int pause = retry_after_s;
    return send(connection, failure_status,
                pause >= 0 ? "Retry-After: " + std::to_string(pause) + "\r\n" : "", R"({"error":"not now"})");
  }
  if (at_hub) return reply_as_hub(connection, request);
  // /blob/NUMBER/NUMBER of repository and file
  std::size_t repository = 0, file = 0;
  if (std::sscanf(request.target.c_str(), "/blob/%zu/%zu", &repository, &file) != 2 ||
      repository >= repositories_.size())
    return send(connection, 404, "", "");
  return send_file(connection, request, repositories_[repository].files[file]);
}

bool HubStandIn::reply_as_hub(int connection, const Request& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const std::string query = path.size() < request.target.size() ? request.target.substr(path.size() + 1) : "";
  constexpr std::string_view kApi = "/api/models";
  const bool has_token = [&] {
    const auto found = request.headers.find("authorization");
    return found != request.headers.end() && found->second == "Bearer " + token;
  }();
  if (path == kApi) {
    const std::size_t at = query.find("search=");
    const std::string words =
        lower(unescaped(at == std::string::npos ? "" : query.substr(at + 7, query.find('&', at) - at - 7)));
    json rows = json::array();
    for (const StandInRepository& repository : repositories_)
      if (lower(repository.name).find(words) != std::string::npos) rows.push_back(row_of(repository));
    return send(connection, 200, "Content-Type: application/json\r\n", rows.dump());
  }
  const bool is_api = path.starts_with(kApi);
  const std::string rest = is_api ? path.substr(kApi.size() + 1) : path.substr(1);
  for (std::size_t number = 0; number < repositories_.size(); ++number) {
    const StandInRepository& repository = repositories_[number];
    if (rest != repository.name && !rest.starts_with(repository.name + "/")) continue;
    const std::string below =
        rest.size() > repository.name.size() ? rest.substr(repository.name.size() + 1) : "";
    if (is_api && (below.empty() || below.starts_with("revision/")))
      return send(connection, 200, "", row_of(repository).dump());
    if (is_api && below.starts_with("tree/")) {
      const std::size_t at = query.find("cursor=");
      const std::size_t begin = at == std::string::npos ? 0 : std::stoul(query.substr(at + 7));
      const std::size_t end =
          std::min(repository.files.size(), begin + static_cast<std::size_t>(page_files.load()));
      json entries = json::array({{{"type", "directory"}, {"path", "folder"}, {"oid", "0"}, {"size", 0}}});
      for (std::size_t i = begin; i < end; ++i) entries.push_back(entry_of(repository.files[i]));
      std::string link;
      if (end < repository.files.size())
        link = "Link: <" + address() + path + "?recursive=1&cursor=" + std::to_string(end) +
               ">; rel=\"next\"\r\n";
      return send(connection, 200, link, entries.dump());
    }
    const std::string resolve = "resolve/" + repository.commit() + "/";
    if (is_api || !below.starts_with(resolve)) break;
    if (repository.is_gated && !has_token)
      return send(connection, 403, "X-Error-Code: GatedRepo\r\n",
                  R"({"error":"Access to this model is restricted."})");
    const std::string wanted = unescaped(below.substr(resolve.size()));
    for (std::size_t file = 0; file < repository.files.size(); ++file) {
      if (repository.files[file].path != wanted) continue;
      if (leads_in_circle) return send(connection, 302, "Location: " + path + "\r\n", "");
      if (!redirects) return send_file(connection, request, repository.files[file]);
      return send(connection, 302,
                  "Location: http://127.0.0.1:" + std::to_string(behind_port_) + "/blob/" +
                      std::to_string(number) + "/" + std::to_string(file) +
                      "?signature=1\r\nX-Repo-Commit: " + repository.commit() + "\r\n",
                  "");
    }
    break;
  }
  return send(connection, 404, "X-Error-Code: RepoNotFound\r\n", R"({"error":"Repository not found"})");
}

bool HubStandIn::send_file(int connection, const Request& request, const StandInFile& file) {
  std::size_t begin = 0, end = file.content.size();
  std::string head = "HTTP/1.1 200 OK\r\n";
  const auto range = request.headers.find("range");
  if (range != request.headers.end() && has_ranges) {
    std::size_t last = 0;
    if (std::sscanf(range->second.c_str(), "bytes=%zu-%zu", &begin, &last) != 2 || begin >= end)
      return send(connection, 416, "", "");
    end = std::min(end, last + 1);
    head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(begin) + "-" +
           std::to_string(end - 1) + "/" + std::to_string(file.content.size()) + "\r\n";
  }
  if (!send_all(connection, head + "Content-Length: " + std::to_string(end - begin) + "\r\n\r\n"))
    return false;
  const std::int64_t cut = cut_after;
  const bool cuts = cut > 0 && num_cuts > 0 && static_cast<std::int64_t>(end - begin) > cut;
  if (cuts) --num_cuts;
  if (cuts) end = begin + static_cast<std::size_t>(cut);
  constexpr std::size_t kPiece = 16 * 1024;
  while (begin < end && !stopping_) {
    const std::size_t size = std::min(kPiece, end - begin);
    if (!send_all(connection, std::string_view(file.content).substr(begin, size))) return false;
    begin += size;
    if (const std::int64_t speed = bytes_per_s; speed > 0)
      std::this_thread::sleep_for(
          std::chrono::microseconds(static_cast<std::int64_t>(size) * 1'000'000 / speed));
  }
  return !cuts && !stopping_;
}

}  // namespace octavo::testing
