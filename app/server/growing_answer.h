// The answer of one request with one output, as typed protocols tell it (messages.h, responses.h): blocks of
// what the model thought, of what it says and of what it calls, each opened, growing and closed before the
// next one; and the figures of the request.
//
// Blocks are the parts that AnswerReader finds, without empty ones. Two promises hold for whoever tells a
// stream: what the blocks grew by adds up to their texts, and blank space at the end of a block is told only
// when more of it follows, or when it is the end of the answer. A block keeps the kind that it was opened as:
// thinking whose beginning neither the prompt nor the model marked is known by its end, when a stream has
// told it as an answer already. Told at the end, it is thinking.
//
// Thread: a value; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/answer_calls.h"
#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/chat_template/answer_parts.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

struct AnswerBlock {
  PartKind kind = PartKind::kAnswer;
  std::string text = {};    // of a call: its arguments
  std::string called = {};  // the function; empty: the block is no call
  std::size_t call_index = 0;

  bool is_call() const { return !called.empty(); }
};

struct AnswerStep {
  enum class Kind : std::uint8_t { kOpened, kGrew, kClosed };
  Kind kind = Kind::kGrew;
  std::size_t block = 0;  // index of the block it is about
  std::string text = {};  // kGrew: what the block grew by, at least a byte
};

enum class BlocksAreTold : std::uint8_t { kAsTheyGrow, kAtTheEnd };

class GrowingAnswer {
 public:
  // `begun` is the beginning of the answer that the client gave (ChatPrompt::continue_answer); it is read,
  // but no block holds it. Without `calls` there are none. The tokenizer outlives this.
  GrowingAnswer(BlocksAreTold told, const tokenizer::Tokenizer* tokenizer, std::string begun,
                std::optional<CallReading> calls = {});

  // What has become of the blocks by this event.
  std::vector<AnswerStep> add(const EngineEvent& event);

  const std::vector<AnswerBlock>& blocks() const { return blocks_; }  // as told so far

  bool has_calls() const { return num_calls_ > 0; }

  bool done() const { return done_; }
  // Also when it was cancelled: nothing else would tell a client that its answer is not whole.
  const std::optional<Error>& failure() const { return failure_; }

  // Of the output; known from OutputFinished on.
  bool is_cut() const { return finish_reason_ == FinishReason::kLength; }  // by the limit of tokens
  const std::string* stop_string() const;  // that ended it; nullptr: something else did

  std::int32_t num_prompt_tokens() const { return num_prompt_tokens_; }
  std::int32_t num_cached_tokens() const { return num_cached_tokens_; }  // of these
  std::int32_t num_output_tokens() const { return num_output_tokens_; }
  std::int32_t num_thinking_tokens() const { return num_thinking_tokens_; }  // of these, marks included

 private:
  std::vector<AnswerStep> fold(const RequestAccepted& event);
  std::vector<AnswerStep> fold(const RequestAdmitted& event);
  std::vector<AnswerStep> fold(const TokensGenerated& event);
  std::vector<AnswerStep> fold(const OutputFinished& event);
  std::vector<AnswerStep> fold(const RequestFinished& event);
  std::vector<AnswerStep> fold(const RequestFailed& event);

  std::vector<AnswerStep> tell(const std::vector<AnswerPart>& parts, bool is_final);
  void tell_part(const AnswerPart& part, bool is_closed, std::vector<AnswerStep>& steps);
  void tell_answer(const AnswerPart& part, bool is_closed, std::vector<AnswerStep>& steps);
  void tell_pieces(std::vector<ToolCallPiece> pieces, std::vector<AnswerStep>& steps);
  void open_block(AnswerBlock block, std::vector<AnswerStep>& steps);
  void grow_block(std::string text, std::vector<AnswerStep>& steps);
  void close_block(std::vector<AnswerStep>& steps);
  void count(const std::vector<AnswerPart>& parts, std::int32_t num_tokens);

  BlocksAreTold told_;
  const tokenizer::Tokenizer* tokenizer_;
  std::size_t begun_bytes_;
  std::string text_;  // of the whole answer, with its beginning
  AnswerReader reader_;

  std::optional<TextWithCallMarks> marked_;
  std::optional<AnswerCalls> calls_;

  std::vector<AnswerBlock> blocks_;
  bool is_block_open_ = false;  // the last
  std::size_t num_calls_ = 0;
  std::size_t part_index_ = 0;          // of the first part that is not told to its end
  std::optional<std::size_t> told_to_;  // end in text_ of what is told of it; none: nothing is
  bool is_read_for_calls_ = false;      // that part

  bool done_ = false;
  std::optional<Error> failure_;
  FinishReason finish_reason_ = FinishReason::kAbort;
  StopReason stop_reason_;
  std::string finish_detail_;
  std::int32_t num_prompt_tokens_ = 0, num_cached_tokens_ = 0;
  std::int32_t num_output_tokens_ = 0, num_thinking_tokens_ = 0;
  std::int32_t num_undecided_tokens_ = 0;  // that came before it was known what they are
};

// An event of a stream with its name, which is the object's "type".
std::string typed_frame(const Json& event);

}  // namespace octavo::app
