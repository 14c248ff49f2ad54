// One output as blocks of what the model thought, of what it says and of what it calls, each opened, growing
// and closed before the next one. Every protocol tells answers by these.
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
#include <span>
#include <string>
#include <vector>

#include "app/server/answer_calls.h"
#include "engine/api/event.h"
#include "engine/base/ids.h"
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

class AnswerBlocks {
 public:
  // `begun` is the beginning of the answer that the client gave (ChatPrompt::continue_answer); it is read,
  // but no block holds it. Without `calls` there are none; those of a stream are told as they come. The
  // tokenizer outlives this.
  AnswerBlocks(BlocksAreTold told, const tokenizer::Tokenizer* tokenizer, std::string begun,
               std::optional<CallReading> calls = {});

  // The prompt, which may have begun the thinking. Before anything else.
  void follow(std::span<const TokenId> prompt);
  // What has become of the blocks.
  std::vector<AnswerStep> add(const TokensGenerated& event);
  std::vector<AnswerStep> end();

  const std::vector<AnswerBlock>& blocks() const { return blocks_; }  // as told so far
  bool has_calls() const { return num_calls_ > 0; }
  // Whether nothing but blank space was generated, which is in no block.
  bool is_blank() const;
  std::string generated_text() const { return text_.substr(begun_bytes_); }  // marks of calls included
  std::int32_t num_thinking_tokens() const { return num_thinking_tokens_; }  // marks included

 private:
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

  std::int32_t num_thinking_tokens_ = 0;
  std::int32_t num_undecided_tokens_ = 0;  // that came before it was known what they are
};

}  // namespace octavo::app
