// The list of requests, as plain values: everything that was asked of the engine, by chats, comparisons and
// clients of the server, and one prompt beside the nearest earlier one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/metrics.h"
#include "engine/base/ids.h"

namespace octavo::ui {

enum class RequestPhase { kWaiting, kRunning, kFinished, kFailed };

// What became of prompt tokens: the parts of a PromptAccount, in the order in which they stand in a prompt.
enum class TokenAccount { kLive, kCached, kCopied, kRestored, kComputed };
inline constexpr std::size_t kNumTokenAccounts = 5;

inline std::int32_t tokens_of(const PromptAccount& account, TokenAccount part) {
  switch (part) {
    case TokenAccount::kLive: return account.num_hit_live;
    case TokenAccount::kCached: return account.num_hit_cached;
    case TokenAccount::kCopied: return account.num_copied_partial;
    case TokenAccount::kRestored: return account.num_restored;
    case TokenAccount::kComputed: break;
  }
  return account.num_computed;
}
inline std::int32_t num_reused(const PromptAccount& account) {
  return account.num_hit_live + account.num_hit_cached + account.num_copied_partial + account.num_restored;
}

struct ShownRequest {
  std::uint64_t number = 0;  // RequestId
  std::string client = {};   // title of a chat, "Compare · Sample 1", a User-Agent
  std::string group = {};    // by which the list is filtered: of a chat, its title; of clients, their name
  std::string route = {};    // "chat", "comparison", "/v1/messages"
  std::string key = {};      // by which a client says what belongs together
  std::string id = {};       // of the answer, as a client was told
  std::vector<std::string> notes = {};  // what was changed of the prompt on the way
  ChatId chat_id = {};                  // 0: no chat's
  bool is_of_window = false;
  std::string arrived = {};  // time of the day
  std::int64_t arrived_ms = 0;
  RequestPhase phase = RequestPhase::kWaiting;
  std::string finish = {};  // how the first output ended
  std::string error = {};
  // Below 0: not known (yet).
  std::int64_t num_prompt = -1, num_cached = -1, num_generated = 0;
  double queue_ms = -1, prompt_ms = -1, ttft_ms = -1, e2e_ms = -1, tokens_per_s = -1;
  std::int32_t num_preemptions = 0;
  std::optional<PromptAccount> account = {};
  std::string cause = {};                   // its name (app/requests/prompt_reuse.h); empty: not known yet
  std::string sentence = {}, advice = {};   // of the cause
  std::int64_t lost_tokens = -1;            // that were computed and need not have been
  std::optional<double> lost_seconds = {};  // none: not known
  std::uint64_t nearest = 0;                // the nearest earlier request; 0: none begins like it
  std::int64_t num_common = -1;             // tokens
};

// A prompt token by token.
struct ShownTokens {
  std::string text = {};                 // valid UTF-8, control characters by name
  std::vector<std::uint32_t> ends = {};  // of each token, bytes
  std::size_t num_prompt = 0;            // tokens; those behind are an answer
};

struct ShownSameRun {
  std::size_t mine = 0, theirs = 0, length = 0;  // tokens
};

// One request looked at closely. Never changed.
struct RequestDetail {
  std::uint64_t number = 0;
  std::uint64_t serial = 0;  // another one for each that is made
  ShownRequest request = {};
  ShownTokens mine = {}, theirs = {};  // theirs is empty where no earlier prompt begins alike
  std::string nearest_name = {};
  std::vector<ShownSameRun> same = {};  // behind the first difference
  std::string mine_before = {}, mine_token = {}, mine_after = {};
  std::string theirs_before = {}, theirs_token = {}, theirs_after = {};
};

struct RequestsState {
  std::shared_ptr<const std::vector<ShownRequest>> rows =
      std::make_shared<std::vector<ShownRequest>>();  // newest first; never null
  std::uint64_t chosen = 0;                           // 0: none
  std::shared_ptr<const RequestDetail> detail = {};   // of the chosen one; null: it is not there yet
  bool is_gone = false;                               // the chosen one's prompt is no longer known
  std::uint64_t hovered = 0;
};

}  // namespace octavo::ui
