// Which tokens a request has, and which bytes of which message they are: from a word of a chat to its place
// in a sequence, and from a block to its words.
//
// A value type. UI thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "ui/memory_state.h"

namespace octavo::app {

// A message as the prompt has it.
struct PromptMessage {
  MessageId id = {};
  std::string content = {};
};

// The bytes of one token: Tokenizer::token_bytes.
using TokenBytes = std::function<std::string_view(TokenId)>;

class TokenBook {
 public:
  // An answer is asked for: `path` is what its prompt is made of, in order.
  void begin(RequestId request_id, ChatId chat_id, std::vector<PromptMessage> path, MessageId answer);
  void accept(RequestId request_id, std::span<const TokenId> prompt);
  // `text` is what these tokens added to the answer.
  void generate(RequestId request_id, std::int32_t output_index, std::span<const TokenId> ids,
                std::string_view text);
  void forget_chat(ChatId chat_id);

  // Valid UTF-8; empty when the tokens are not known.
  std::string text_of(RequestId request_id, std::int32_t output_index, std::int32_t first_position,
                      std::int32_t count, const TokenBytes& bytes) const;

  struct Place {
    RequestId request_id = {};
    std::int32_t begin = 0, end = 0;  // positions
  };
  // Of the newest request that has the message.
  std::optional<Place> find(ChatId chat_id, MessageId message, std::size_t begin, std::size_t end,
                            const TokenBytes& bytes);

  struct Stretch {
    ChatId chat_id = {};
    MessageId message = {};
    ui::HighlightedRange range = {};
  };
  // What the tokens at these positions are in messages.
  std::vector<Stretch> stretches_of(RequestId request_id, std::int32_t begin, std::int32_t end,
                                    const TokenBytes& bytes);

  // The newest request of a chat.
  std::optional<RequestId> newest_of(ChatId chat_id) const;

 private:
  // Bytes of a message, and the positions that they are.
  struct Piece {
    MessageId message = {};
    std::size_t begin_byte = 0, end_byte = 0;
    std::int32_t begin = 0, end = 0;
  };
  struct Entry {
    ChatId chat_id = {};
    std::vector<PromptMessage> path;  // until it is laid out
    MessageId answer = {};
    std::size_t answer_bytes = 0;
    std::vector<TokenId> prompt;
    std::map<std::int32_t, std::vector<TokenId>> outputs;
    std::vector<Piece> pieces;  // of the prompt, when laid out; then of the answer
    bool is_laid_out = false;
  };

  static void lay_out_prompt(Entry& entry, const TokenBytes& bytes);

  std::map<RequestId, Entry> entries_;
};

}  // namespace octavo::app
