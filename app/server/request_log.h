// What became of the server's newest requests, and above all of their prompts: how much was reused, where
// each first differs from the nearest earlier one, why, what that cost and what would have avoided it. Kept
// in memory only, for GET /octavo/requests; nothing of it is ever written to a file.
//
// Thread: begin() and add() on one thread, to_json() on any. Prompts are compared where to_json() is called
// and without the lock, so that events never wait for it; with everything full of long prompts that takes
// some tenths of a second, so the server's own thread is not the place. What was found out is kept.
//
// Bounds: requests and token ids (RequestLogOptions). The oldest go first, and that something is gone is
// said. Texts that clients send about themselves are cut and made printable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/prompt_diagnostics.h"
#include "app/server/prompt_parts.h"
#include "app/server/prompt_reuse.h"
#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// Where a request came from. Never a key that opens the server.
struct RequestOrigin {
  std::string id = {};                  // of its answer, as the client is told: "cmpl-..."
  std::string route = {};               // "/v1/completions"
  std::string client = {};              // User-Agent
  std::string client_key = {};          // by which it says what belongs together: prompt_cache_key, ...
  std::int64_t unix_ms = 0;             // when it arrived
  std::vector<std::string> notes = {};  // what was changed on the way: "dropped a billing header line"
  std::shared_ptr<const RenderedParts> parts =
      {};  // of a chat's prompt; null: it is not known what of it is what
};

struct RequestLogOptions {
  const tokenizer::Tokenizer* tokenizer = nullptr;  // outlives the log
  std::int32_t block_size = 16;                     // tokens
  std::size_t most_requests = 256;
  std::size_t most_token_ids = 4'000'000;  // of prompts and answers together
};

class RequestLog {
 public:
  explicit RequestLog(const RequestLogOptions& options) : options_(options) {}

  // Before the request's events. Events of requests that did not begin here are left out.
  void begin(RequestId request_id, RequestOrigin origin);
  void add(const EngineEvent& event);

  // {"object": "list", "data": [REQUEST...], "causes": {CAUSE: {"requests", "lost_tokens"}}, "known": {...}}
  // with the newest first, and causes of the requests that are told. Names of causes: prompt_reuse.h.
  // Positions count from 0; what is not known (yet) is null.
  Json to_json(std::size_t most_requests = 50);

  // What is told about one request that has ended, in a line: how much of its prompt was reused, where it
  // parts from the nearest earlier one, why and what that cost. Texts of prompts only `with_texts`; never a
  // key. Empty: it is not known any more.
  std::string line(RequestId request_id, bool with_texts);

  // A prompt that was accepted, compared with the newest earlier one of this id.
  PromptDivergence compare_with(RequestId request_id, const std::string& earlier_id) const;

 private:
  enum class State { kWaiting, kRunning, kFinished, kFailed };
  using TokenIds = std::shared_ptr<const std::vector<TokenId>>;

  struct Record {
    RequestId request_id = {};
    RequestOrigin origin;
    State state = State::kWaiting;
    // In the order of events; 0: not yet.
    std::uint64_t accepted = 0, admitted = 0, first_token = 0, ended = 0;
    std::size_t num_prompt = 0;                     // tokens
    TokenIds prompt = {};                           // null: not accepted, or dropped to make room
    std::shared_ptr<const PromptParts> parts = {};  // of it; null: they are not known
    TokenIds answer = {};  // of the first output, when it has ended; null: none, or dropped
    std::int32_t num_cached_tokens = 0;
    std::int64_t queue_us = 0, ttft_us = 0;  // as soon as they are known
    std::optional<SequenceId> sequence_id = {};
    std::int32_t last_output = 0;  // highest index seen
    std::int64_t num_generated = 0;
    std::optional<FinishReason> finish = {};  // of the first output
    bool has_prompt_logprobs = false;
    std::string failure = {};
    RequestMetrics metrics = {};                  // when it has ended
    std::shared_ptr<const Json> difference = {};  // found out after its end
    bool has_ended() const { return ended != 0; }
  };
  using Records = std::map<RequestId, Record>;
  // All that to_json() looks at: copied under the lock, and read without it.
  struct Known {
    Records records;                 // ids ascend with time
    std::size_t num_token_ids = 0;   // in prompts and answers, also in those that still grow
    std::int64_t num_forgotten = 0;  // prompts that were known and are not any more
  };

  void note(Record& record, const RequestAccepted& event);
  void note(Record& record, const RequestAdmitted& event);
  void note(Record& record, const TokensGenerated& event);
  void note(Record& record, const BeamsAdvanced& event);
  void note(Record& record, const RequestPreempted& event);
  void note(Record& record, const OutputFinished& event);
  void note(Record& record, const RequestFinished& event);
  void note(Record& record, const RequestFailed& event);
  void end(Record& record, State state, const RequestMetrics& metrics);
  void drop_ids(Record& record);
  void erase(Records::iterator record);
  void keep_bounds();

  struct Compared {  // one request with the nearest earlier one
    const Record* nearest = nullptr;
    std::size_t num_common = 0;
    PromptWithAnswer tokens = {};  // of the nearest; its answer where it had ended when this one came
  };
  static std::optional<Compared> compare(const Known& known, const Record& mine);
  static const PromptParts& parts_of(const Record& record);
  DifferingPlaces places_of(const Record& mine, const Compared& compared) const;
  Json difference_of(const Known& known, const Record& mine) const;
  ReuseFacts reuse_facts(const Known& known, const Record& mine,
                         const std::optional<Compared>& compared) const;
  static Json record_json(const Record& record, const Json& difference);

  const RequestLogOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  Known known_;
  std::map<RequestId, std::vector<TokenId>> growing_;  // answers of requests that have not ended
  std::uint64_t order_ = 0;                            // of the newest event
};

}  // namespace octavo::app
