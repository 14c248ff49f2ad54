// A hub's API: search, what is in a repository, bytes of a file. Follows redirects and sends the token to the
// hub's own address alone; waits where the hub asks for it; everything that fails is one sentence.
//
// Thread: one. Blocks; `is_stopped` is asked ten times a second, and true ends whatever is under way
// (kCancelled). Contacts nothing before it is asked something, and nothing at all when the place is offline.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/http_client/client.h"
#include "app/hub/hub_place.h"
#include "app/hub/hub_values.h"
#include "engine/base/clock.h"
#include "engine/base/result.h"

namespace octavo::hub {

// Which bytes of a file; `end` is not among them.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// How long to wait, as a server says it in seconds; nullopt: it does not, or in a way that we do not read.
std::optional<std::chrono::milliseconds> read_retry_after(std::string_view value);

// Why a hub answered so. `about` is a repository or empty.
Error refusal(const HubPlace& place, std::string_view about, const http::AnswerHead& head,
              std::string_view body);

class HubClient {
 public:
  // The clock must outlive it.
  HubClient(HubPlace place, const Clock& clock, std::function<bool()> is_stopped = {});

  const HubPlace& place() const { return place_; }
  http::Client& http() { return client_; }
  bool is_stopped() const { return is_stopped_ && is_stopped_(); }

  // Models with GGUF files, the most downloaded first.
  Result<std::vector<HubModel>> search(const std::string& text, int limit);

  // With its files.
  Result<HubRepository> repository(const std::string& name, const std::string& revision);

  // Bytes of a file at a commit. Fewer are an error. REQUIRES: a range of at most 64 MiB
  Result<std::string> read(const HubRepository& repository, const HubFile& file, ByteRange range);

  // Where a file is, before any redirect.
  std::string file_url(const HubRepository& repository, const HubFile& file) const;
  // A request for `url`, with the token where it may go.
  http::ClientRequest request_for(const std::string& url) const;

 private:
  struct Answer {
    http::AnswerHead head;
    std::string body;
  };
  Result<void> check_place() const;
  Result<Answer> get(std::string url, std::string_view about, std::optional<ByteRange> range = {});
  Result<Answer> get_with_retries(const std::string& url, std::string_view about,
                                  const std::optional<ByteRange>& range);
  Result<Answer> fetch_once(const std::string& url, const std::optional<ByteRange>& range);
  Result<void> wait(std::chrono::milliseconds time);
  std::string api_url(const std::string& name) const;

  const HubPlace place_;
  const std::function<bool()> is_stopped_;
  http::Client client_;
};

}  // namespace octavo::hub
