// The life of an engine core as data: what the core is built from, and what happens to it, step by step. A
// life is a pure function of its script, so a script that goes wrong can be printed, shortened and run again.
//
// As text, one thing a line; a prompt has one letter for each token, 'A' for token 0, and so has each message
// of a chat, behind a small letter for what it is (ScriptedMessage::Kind):
//
//   options block_size=4 num_blocks=12 max_num_seqs=8 ...
//   model eos_period=64 ...
//   device runs_ahead=1
//   clients most_open=16
//   at 0 submit 1 prompt=ABCDE max_tokens=8 n=2
//   at 2 submit 2 chat=sEFuGHaIJuK max_tokens=8
//   at 3 cancel 1
//   at 3 fail_step
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/core/command.h"
#include "engine/scheduler/scheduler.h"
#include "tests/simulation/toy_model.h"

namespace octavo::simulation {

// Each of a model with recurrent layers owns a state, and of one with windows what it reads.
inline std::int32_t most_running_sequences(const scheduler::SchedulerOptions& options) {
  std::int32_t most = options.max_num_seqs;
  if (options.num_states > 0) most = std::min(most, options.num_states);
  if (options.window == 0 || options.num_window_blocks >= options.num_blocks) return most;
  const std::int32_t for_rows =
      (options.max_num_batched_tokens + options.block_size - 1) / options.block_size;
  const std::int32_t for_each = (options.window - 1 + options.block_size - 1) / options.block_size + 3;
  return std::min(most, (options.num_window_blocks - for_rows) / for_each);
}

// Whether what was computed can be gone on with only where it ends, or where something was kept.
inline bool memory_ends_exactly(const scheduler::SchedulerOptions& options) {
  return options.num_states > 0 || options.window > 0;
}

// What somebody wrote, or an answer that the engine gave.
struct ScriptedMessage {
  enum class Kind : std::uint8_t {
    kSystem,
    kUser,
    kAnswer,        // comes with its tokens
    kEditedAnswer,  // without
    kStaleAnswer,   // with those of a text that it no longer is
  };

  Kind kind = Kind::kUser;
  std::vector<TokenId> tokens;  // its content is their text

  bool operator==(const ScriptedMessage&) const = default;
};

// A request in the words that lives differ by; `to_request` makes the engine's of it.
struct ScriptedRequest {
  std::vector<TokenId> prompt;             // of a chat what its messages are to become: expected_prompt.h
  std::vector<ScriptedMessage> chat = {};  // none: the prompt is asked for as it is
  bool continue_answer = false;            // the last message of the chat
  std::int32_t max_tokens = 16;
  std::int32_t min_tokens = 0;
  std::int32_t n = 1;
  bool greedy = true;
  std::optional<std::uint64_t> seed = {};
  std::int32_t stop_list = 0;    // stop strings: none, or an entry of a fixed table
  std::int32_t stop_token = -1;  // one that ends an output; -1: none
  bool include_stop = false;     // the text keeps the stop string or token
  bool ignore_eos = false;
  bool structured = false;  // within the toy grammar: toy_grammar.h
  bool prompt_logprobs = false;
  std::int32_t logprobs = 0;  // alternatives of each token
  std::int32_t salt = 0;      // 0: none
  std::optional<RetentionClass> retention = {};
  // Beam search. Then n, greedy and seed count for nothing.
  std::int32_t beam_width = 0;  // 0: none
  std::int32_t length_penalty_tenths = 10;
  bool early_stopping = false;
  bool background = false;
  bool progress = false;       // is told how far its prompt is
  std::int32_t embedding = 0;  // 1: of the last token, 2: the mean; then nothing is generated
  bool biased = false;         // the search follows other log-probabilities than it reports

  bool is_beam_search() const { return beam_width != 0; }
  bool is_embedding() const { return embedding != 0; }
  bool needs_all_rows() const { return prompt_logprobs || embedding == 2; }
  std::int32_t num_outputs() const { return is_beam_search() ? beam_width : n; }
};

enum class OperationKind : std::uint8_t {
  kSubmit,
  kCancel,
  kCancelOutput,   // the output number `amount` of a request
  kCancelSwapped,  // the first request that is swapped out, now or later
  kResetPrefixCache,
  kReleasePins,
  kFailSwap,      // the next step that swaps fails
  kFailStep,      // the next step fails; `amount` says where: FailurePoint
  kLoseDevice,    // all steps fail from now on
  kReaderSleeps,  // nobody takes events for `amount` steps
  kIntakeSleeps,  // nothing that was submitted is prepared for `amount` steps
};

struct Operation {
  std::int32_t at = 0;  // before step number `at`, from 0
  OperationKind kind = OperationKind::kSubmit;
  std::uint64_t request = 0;   // submit: ascending; cancels
  ScriptedRequest asked = {};  // submit
  std::int32_t amount = 0;
};

// The clients as a whole. While `most_open` requests have not ended, the next one is not sent and the time of
// the operations stands still; where nothing is to be done, it jumps to the next operation.
struct Clients {
  std::int32_t most_open = 1 << 20;
};

struct Device {
  // Is given the next step before the draws of this one are known, where that can be.
  bool runs_ahead = false;
};

struct Script {
  scheduler::SchedulerOptions options = {};
  ToyModel model = {};
  Device device = {};
  Clients clients = {};
  std::vector<Operation> operations;  // ascending by `at`
};

// Whether people and programs share the engine.
bool has_both_lines(const Script& script);

GenerationRequest to_request(const ScriptedRequest& asked);

// The text of a message. Whoever asks may write the text of a special token; an answer does not hold it.
std::string content_of(const ScriptedMessage& message);

std::string to_text(const Script& script);
Result<Script> parse_script(std::string_view text);

// Simpler scripts than `script`, for shrinking: the number of ways in which a value of it can be made
// plainer, and the script after one of them; nullopt where it changes nothing.
std::size_t num_simplifications(const Script& script);
std::optional<Script> simplified(const Script& script, std::size_t way);

}  // namespace octavo::simulation
