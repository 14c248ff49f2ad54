// A hub on this machine that tests script: its API, files in ranges, redirects to another address, and what
// goes wrong with any of it. Two ports: the hub's, and one behind its redirects, which no token may reach.
//
// Thread: its own, one for each connection; settings may change at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace octavo::testing {

struct StandInFile {
  std::string path;
  std::string content;
  bool is_large = true;          // has an "lfs" entry with its SHA-256
  std::string told_sha256 = {};  // instead of the right one
  std::int64_t told_bytes = -1;  // instead of the right number
};

struct StandInRepository {
  std::string name;
  bool is_gated = false;  // 403 to whoever has not the token
  std::string licence = "apache-2.0";
  std::vector<StandInFile> files = {};
  std::string commit() const;  // 40 digits that follow from the name
};

struct SeenRequest {
  bool at_hub = true;  // else behind the redirects
  std::string target;  // path and query
  std::string authorization;
  std::string range;
};

class HubStandIn {
 public:
  explicit HubStandIn(std::vector<StandInRepository> repositories = {});
  ~HubStandIn();
  HubStandIn(const HubStandIn&) = delete;
  HubStandIn& operator=(const HubStandIn&) = delete;

  std::string address() const;  // "http://127.0.0.1:PORT"
  std::vector<SeenRequest> seen() const;
  void forget_seen();

  // ---- what it does
  std::atomic<bool> redirects{true};
  std::atomic<bool> has_ranges{true};
  std::atomic<std::int64_t> bytes_per_s{0};  // of each connection that sends a file; 0: as fast as it goes
  std::atomic<std::int64_t> cut_after{0};    // bytes of a file, then the connection closes; 0: never
  std::atomic<int> num_cuts{0};              // how often that happens yet
  std::atomic<int> num_failures{0};          // so many requests get `failure_status` first
  std::atomic<int> failure_status{503};
  std::atomic<int> retry_after_s{-1};  // of failures; below 0: not told
  std::atomic<bool> leads_in_circle{false};
  std::atomic<int> page_files{1000};  // of a list of files, before the next page
  std::string token = "hf_stand_in_secret";
  // What is sent for a target instead: status and body.
  void answer(const std::string& target_begin, int status, const std::string& body);

 private:
  struct Request {
    std::string method, target;
    std::map<std::string, std::string> headers;
  };
  void listen(int descriptor, bool at_hub);
  void serve(int connection, bool at_hub);
  bool reply(int connection, bool at_hub, const Request& request);
  bool send_file(int connection, const Request& request, const StandInFile& file);
  bool send(int connection, int status, const std::string& headers, const std::string& body);
  bool reply_as_hub(int connection, const Request& request);
  const StandInRepository* find(const std::string& name) const;

  std::vector<StandInRepository> repositories_;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> seen_;
  std::map<std::string, std::pair<int, std::string>> answers_;
  int hub_ = -1, behind_ = -1;
  int hub_port_ = 0, behind_port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex threads_mutex_;
  std::vector<std::thread> threads_;
  std::vector<int> connections_;
  std::thread hub_thread_, behind_thread_;
};

std::string sha256_of(const std::string& content);
std::string git_oid_of(const std::string& content);

}  // namespace octavo::testing
