// Text to token ids and back, and messages to a prompt. Immutable after construction; any thread may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/chat_template/prompt_span.h"
#include "engine/tokenizer/text_pipeline.h"

namespace octavo::tokenizer {

enum class TokenKind : std::int32_t {  // numbering of tokenizer.ggml.token_type
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Two neighbours that become one token.
struct MergedTokens {
  TokenId left, right, result;
};

// How an added token is found, where that is not as it is written.
struct AddedTokenRule {
  TokenId token_id;
  bool strips_left = false, strips_right = false;  // takes the white space beside it
  bool is_whole_word = false;                      // not within a word
  bool in_normalized_text = false;                 // a word that is looked for after normalizers
};

// What a model says about its vocabulary, as read; checked by Tokenizer::create.
struct Vocabulary {
  // tokenizer.ggml.model: "gpt2" is byte-level BPE, "llama" sentencepiece, "gemma4" BPE over characters. Of a
  // tokenizer.json: "BPE" or "Unigram", with a pipeline
  std::string model;
  std::string split_pattern;        // tokenizer.ggml.pre: "gpt-2", "smollm", "llama-bpe", ...; byte-level BPE
  std::vector<std::string> tokens;  // index = id; byte-level BPE spells bytes as GPT-2 does
  std::vector<TokenKind> kinds;     // empty: all normal; else as many as tokens
  std::vector<std::string> merges;  // "left right", best first; BPE of either kind
  std::vector<float> scores;  // the highest merge goes first; sentencepiece: as many as tokens, all finite
  std::optional<TokenId> bos_token_id, eos_token_id, unknown_token_id;
  std::vector<TokenId> further_eos_token_ids;  // e.g. eot: they end an output like EOS
  bool add_bos_token = false;
  bool add_space_prefix = false;
  bool remove_extra_whitespaces = false;   // sentencepiece: spaces at both ends, and of several all but one
  std::string precompiled_charsmap;        // sentencepiece's normalisation rules; empty: none
  bool control_tokens_eat_spaces = false;  // as Phi-3's: sentencepiece_tokenizer.h
  std::string chat_template;               // Jinja source; empty: none
  // Of a tokenizer.json; merges then are numbers, best first.
  std::optional<TextPipeline> pipeline;
  std::vector<MergedTokens> merged_tokens;
  std::vector<double> log_probabilities;  // Unigram: as many as tokens, all finite
  std::vector<AddedTokenRule> added_token_rules;
  std::string notice;  // what had to be guessed, as a sentence for a person; empty: nothing
};

// How far a prompt is worth encoding.
struct EncodeLimits {
  // A text that cannot be so few tokens, whatever they are, is refused before it is encoded, with how much to
  // cut (kTooLong): in time linear in its length. Any other is encoded to its end, and may be more.
  std::size_t max_tokens = std::numeric_limits<std::size_t>::max();
  // Encoding ends soon after a stop was requested (kCancelled).
  std::stop_token stop = {};
};

class Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);
  virtual ~Tokenizer() = default;

  virtual std::int32_t vocabulary_size() const = 0;
  virtual std::optional<TokenId> bos_token_id() const = 0;
  // The one that the model names first; is_end_of_sequence() knows all.
  virtual std::optional<TokenId> eos_token_id() const { return std::nullopt; }
  virtual bool is_end_of_sequence(TokenId id) const = 0;
  virtual bool has_chat_template() const = 0;
  // What its template reads beside the messages that changes how the model thinks (template_switches.h).
  virtual std::vector<TemplateSwitch> template_switches() const { return {}; }

  // Raw text. With `parse_special`, text of control and user-defined tokens becomes those tokens, the longest
  // first; without, no text does but that of user-defined words and runs of spaces (special_tokens.h,
  // is_marker). BOS is added when the model asks for it and `add_bos` allows.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special, bool add_bos,
                                              const EncodeLimits& limits = {}) const = 0;

  // Template text with input in it. A special token counts only if it lies wholly in template text;
  // everything between special tokens is tokenised as one piece, across the borders of input.
  virtual Result<std::vector<TokenId>> encode_spans(std::span<const PromptSpan> spans) const = 0;

  // Messages through the chat template; without a template plain completion: the contents, joined by line
  // breaks, and nothing of tools, which are refused. `inputs` is what the template is told beside them.
  virtual Result<std::vector<PromptSpan>> apply_chat_template(std::span<const ChatMessage> messages,
                                                              const TemplateInputs& inputs) const = 0;

  // apply_chat_template, then encode_spans; an assistant message's own token_ids stand in for its content
  // where the template emits the content unchanged, the ids decode to exactly that content and it made no
  // calls, of which the ids would say nothing. What stands
  // before and after is then tokenised on its own: without a special token at the border, a piece that
  // reached across it is cut there, as it was when the answer was generated. Without a template, BOS is added
  // as in `encode`.
  virtual Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                                   const TemplateInputs& inputs,
                                                   const EncodeLimits& limits = {}) const = 0;

  // The bytes of one token: not always whole characters. Special tokens give their text.
  // REQUIRES: 0 <= id < vocabulary_size()
  virtual std::string_view token_bytes(TokenId id) const = 0;
  virtual bool is_special(TokenId id) const = 0;  // control or user-defined
  virtual bool is_control(TokenId id) const {
    return is_special(id);
  }  // such as <|im_end|>: steers the model, is no text

  // All at once. With `skip_special`, control tokens are left out; user-defined ones (runs of spaces,
  // <think>) are text and stay. What is no valid UTF-8 becomes U+FFFD, as sanitise_utf8 does.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special) const = 0;

  // The model's Jinja source; empty: it has none that can be used. What its author wrote about calls says in
  // which form answers call, if the template prints the tools that it is given (knows_tools). Else the prompt
  // tells of them in a form of ours, and answers call by <tool_call>{"name": ..., "arguments":
  // ...}</tool_call> (ChatTemplate::knows_tools).
  virtual std::string_view chat_template_source() const { return {}; }
  virtual bool knows_tools() const { return false; }
};

}  // namespace octavo::tokenizer
