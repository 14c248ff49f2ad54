// What became of an engine's newest requests, and above all of their prompts: how much was reused, where each
// first differs from the nearest earlier one, why, what that cost and what would have avoided it. Kept in
// memory only, for the window's list and for GET /octavo/requests; nothing of it is ever written to a file
// unasked.
//
// Who looks sees what is theirs: the person at the window everything; clients of a server each other's
// prompts, and of the person's requests the counts alone. A client's prompt is compared with prompts of
// clients only when clients look: how far it is like a chat would tell what the chat says.
//
// Thread: any. Prompts are compared where somebody looks and without the lock that events need, so that these
// never wait; with everything full of long prompts that takes some tenths of a second, so it is no thread
// that must go on. What was found out is kept. One looks at a time, and close() waits for whoever looks.
//
// Bounds: requests and token ids (RequestLogOptions). The oldest go first, and that something is gone is
// said. Texts that clients send about themselves are cut and made printable.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/json/json_text.h"
#include "app/requests/prompt_diagnostics.h"
#include "app/requests/prompt_parts.h"
#include "app/requests/prompt_reuse.h"
#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

enum class Principal { kPerson, kClient };  // at the window; a program that asks a server

// Where a request came from. Never a key that opens the server.
struct RequestOrigin {
  std::string id = {};                  // of its answer, as the client is told: "cmpl-..."
  std::string route = {};               // "/v1/completions"; in the window "chat", "comparison", ...
  std::string client = {};              // User-Agent; in the window the title of a chat
  std::string client_key = {};          // by which it says what belongs together: prompt_cache_key, ...
  std::int64_t unix_ms = 0;             // when it arrived
  std::vector<std::string> notes = {};  // what was changed on the way: "dropped a billing header line"
  Principal principal = Principal::kClient;
  // Of a chat's prompt; null: it is not known what of it is what.
  std::shared_ptr<const RenderedParts> parts = {};
};

struct RequestLogOptions {
  const tokenizer::Tokenizer* tokenizer = nullptr;  // outlives the log, or close() comes before its end
  std::int32_t block_size = 16;                     // tokens
  std::size_t most_requests = 256;
  std::size_t most_token_ids = 4'000'000;  // of prompts and answers together
  // Where given, requests that did not begin here are the person's, and begin with their first event; else
  // their events are left out.
  std::function<std::int64_t()> unix_time_ms = {};
  const Clock* clock = nullptr;  // outlives the log; where given, running requests have a speed
};

// The prompt of one request beside the nearest earlier one.
struct RequestDifference {
  std::optional<RequestId> nearest = {};  // none begins like it
  std::string nearest_id = {};            // of its answer
  std::string nearest_name = {};          // as sentences call it
  std::size_t num_common = 0;             // tokens; the index of the first that differs
  bool is_in_answer = false;              // it stands in what was generated behind the nearest prompt
  TextAround mine = {}, theirs = {};
  DifferingPlaces places = {};           // of both
  std::vector<SameRun> same = {};        // behind the difference
  std::optional<ReuseStory> story = {};  // once the account is known
  bool was_dropped = false;              // the prompt is no longer known: nothing above is
};

// What is known of one request.
struct LoggedRequest {
  enum class State { kWaiting, kRunning, kFinished, kFailed };

  RequestId request_id = {};
  RequestOrigin origin;
  State state = State::kWaiting;
  std::size_t num_prompt = 0;  // tokens; 0: not known yet
  bool is_admitted = false;
  std::int32_t num_cached_tokens = 0;
  std::int64_t queue_us = 0, ttft_us = 0;  // as soon as they are known
  std::optional<SequenceId> sequence_id = {};
  std::int64_t num_generated = 0;
  double tokens_per_s = 0;                  // of an output, behind its first token; 0: not known
  std::optional<FinishReason> finish = {};  // of the first output
  std::string failure = {};
  RequestMetrics metrics = {};  // when it has ended
  // As whoever looks may see it; null: there is nothing to tell yet, or nothing that they may see.
  std::shared_ptr<const RequestDifference> difference = {};

  bool has_ended() const { return state == State::kFinished || state == State::kFailed; }
  bool has_account() const { return metrics.prompt != PromptAccount{}; }
};

// Two prompts as text, token by token.
struct ComparedPrompts {
  LoggedRequest request;  // with its difference
  TokenisedText mine = {};
  TokenisedText theirs = {};  // of the nearest, with its answer as far as it counts; empty: there is none
  std::size_t num_theirs_prompt = 0;  // tokens of theirs that are no answer
};

class RequestLog {
 public:
  explicit RequestLog(const RequestLogOptions& options) : options_(options) {}

  // Its events may have come before it.
  void begin(RequestId request_id, RequestOrigin origin);
  void add(const EngineEvent& event);
  // What a request of the person is called; of one that is known.
  void name(RequestId request_id, std::string route, std::string client, std::string client_key);
  // Which program asked, as it calls itself; nullopt: none did, or it is not known any more.
  std::optional<std::string> program_of(RequestId request_id) const;
  // Finds out what the person may ask about; then the tokenizer is used no more. Waits for whoever looks.
  void close();

  // Changes with everything that is told.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }

  // The newest first, with what is found out about them.
  std::vector<LoggedRequest> look(Principal viewer, std::size_t most_requests);
  // Both texts, for the person; nullopt: the request, or its prompt, is not known any more.
  std::optional<ComparedPrompts> compared_prompts(RequestId request_id);
  // {"object": "list", "data": [REQUEST...], "causes": {CAUSE: {"requests", "lost_tokens"}}, "known": {...}}
  // with the newest first, and causes of the requests that are told. Names of causes: prompt_reuse.h.
  // Positions count from 0; what is not known (yet) is null.
  Json to_json(std::size_t most_requests = 50, Principal viewer = Principal::kClient);
  // What a client may be told about one request that has ended, in a line: how much of its prompt was reused,
  // where it parts from the nearest earlier one, why and what that cost. Texts of prompts only `with_texts`;
  // never a key. Empty: it is not known any more.
  std::string line(RequestId request_id, bool with_texts);

  // A client's prompt that was accepted, compared with the newest earlier one of a client that has this id.
  PromptDivergence divergence_from(RequestId request_id, const std::string& earlier_id) const;

 private:
  using TokenIds = std::shared_ptr<const std::vector<TokenId>>;
  static constexpr std::size_t kViewers = 2;  // index: Principal

  struct Record : LoggedRequest {
    // In the order of events; 0: not yet.
    std::uint64_t accepted = 0, admitted = 0, first_token = 0, ended = 0;
    TokenIds prompt = {};                           // null: not accepted, or dropped to make room
    std::shared_ptr<const PromptParts> parts = {};  // of it; null: they are not known
    TokenIds answer = {};          // of the first output, when it has ended; null: none, or dropped
    std::int32_t last_output = 0;  // highest index seen
    bool has_prompt_logprobs = false;
    std::int64_t first_token_at_us = 0;
    // What was found out, for each viewer, and whether that was after its end.
    std::array<std::shared_ptr<const RequestDifference>, kViewers> found = {};
    std::array<bool, kViewers> is_final = {};
  };
  using Records = std::map<RequestId, Record>;
  // All that is looked at: copied under the lock, and read without it.
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
  void note(Record&, const PromptProgress&) {}
  void note(Record&, const EmbeddingComputed&) {}
  void note(Record& record, const OutputFinished& event);
  void note(Record& record, const RequestFinished& event);
  void note(Record& record, const RequestFailed& event);
  void end(Record& record, LoggedRequest::State state, const RequestMetrics& metrics);
  void drop_ids(Record& record);
  void erase(Records::iterator record);
  void keep_bounds();

  struct Compared {  // one request with the nearest earlier one
    const Record* nearest = nullptr;
    std::size_t num_common = 0;
    PromptWithAnswer tokens = {};  // of the nearest; its answer where it had ended when this one came
  };
  std::optional<Compared> compare(const Known& known, const Record& mine, Principal viewer) const;
  static std::optional<Compared> compare_with(const Known& known, const Record& mine, Principal principal);
  std::shared_ptr<const RequestDifference> difference_of(const Known& known, const Record& mine,
                                                         Principal viewer) const;
  ReuseFacts reuse_facts(const Known& known, const Record& mine, const std::optional<Compared>& compared,
                         const std::vector<SameRun>& same, Principal viewer) const;
  static const PromptParts& parts_of(const Record& record);
  DifferingPlaces places_of(const Record& mine, const Compared& compared) const;
  static std::string name_of(const Record& record, Principal viewer);
  // REQUIRES: reading_ is held
  std::vector<LoggedRequest> look_at(const Known& known, Principal viewer, std::size_t most_requests);
  Known known_now() const;

  const RequestLogOptions options_;
  std::mutex reading_;      // held by whoever looks
  bool is_closed_ = false;  // guarded by reading_
  std::atomic<std::uint64_t> version_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  Known known_;
  std::map<RequestId, std::vector<TokenId>> growing_;  // answers of requests that have not ended
  std::uint64_t order_ = 0;                            // of the newest event
};

}  // namespace octavo::app
