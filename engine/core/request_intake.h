// From what was submitted to what can be scheduled: sampling parameters checked, prompt as token ids, seed
// fixed. What comes out depends on the request and the sources alone; the intake only remembers the system
// messages that it has encoded, so that a chat's is encoded once rather than with every turn. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/core/command.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

// Where a request's own words are not enough.
struct IntakeSources {
  const tokenizer::Tokenizer* tokenizer = nullptr;  // outlives the intake
  std::int32_t num_end_tokens = 1;                  // tokens that end a sequence
  // No prompt may have more. One that cannot have so few, whatever its tokens, is refused unencoded.
  std::size_t max_prompt_tokens = std::numeric_limits<std::size_t>::max();
  // Recurrent layers, or a window: where the next turn will part is worth finding out.
  bool memory_ends_exactly = false;
  std::function<std::uint64_t()> draw_seed = {};   // for a request that brings none
  std::function<std::int64_t()> unix_time_s = {};  // the date that a chat template may print
  // For a request that wants structured output: its grammar, which may take seconds. None: such requests are
  // refused. Any thread.
  std::function<Result<std::shared_ptr<const TokenGrammar>>(const StructuredOutput&, std::stop_token)>
      compile_grammar = {};
};

class RequestIntake {
 public:
  explicit RequestIntake(IntakeSources sources) : sources_(std::move(sources)) {}

  // Refuses, in one sentence, what no engine with this vocabulary could do. Whether a prompt fits this
  // engine's pool and length to the token is the scheduler's question. Ends soon after `stop`, refused with
  // kCancelled.
  PreparedRequest prepare(SubmitRequest submit, std::stop_token stop = {});

  // Times that a system message was encoded alone.
  std::int64_t num_encoded_system_messages() const { return num_encoded_system_messages_; }

 private:
  // Chats that take turns; an entry holds a text and its tokens.
  static constexpr std::size_t kMaxSystemMessages = 8;

  struct SystemMessage {
    std::string rendered;
    std::vector<TokenId> token_ids;
  };

  Result<scheduler::NewRequest> prepare_request(RequestId request_id, GenerationRequest request,
                                                const tokenizer::EncodeLimits& limits);
  Result<void> find_bad_words(SamplingParams& sampling, const tokenizer::EncodeLimits& limits) const;
  Result<void> compile_structure(SamplingParams& sampling, const tokenizer::EncodeLimits& limits) const;
  std::int32_t count_system_tokens(const Prompt& prompt, std::span<const TokenId> prompt_token_ids,
                                   const tokenizer::EncodeLimits& limits);
  std::int32_t count_next_turn_tokens(const Prompt& prompt, std::span<const TokenId> prompt_token_ids,
                                      const tokenizer::EncodeLimits& limits) const;
  // What a chat of the system message alone would be. nullptr: the template wants a user's message, too.
  const std::vector<TokenId>* encode_system(const ChatPrompt& prompt, const tokenizer::EncodeLimits& limits);

  const IntakeSources sources_;
  std::deque<SystemMessage> system_messages_;  // the last used comes first
  std::int64_t num_encoded_system_messages_ = 0;
};

// How many outputs a request has that never ran: as many as it asked for, or the sentence that refuses it.
Result<std::int32_t> count_outputs(const GenerationRequest& request, const tokenizer::Tokenizer& tokenizer);

}  // namespace octavo
