// An answer as what its model thought and what it says, in the marks that models write:
//
//   <think> ... </think> ...                                Qwen, DeepSeek
//   ... </think> ...                                        the prompt ended with <think>
//   <|channel>thought ... <channel|> ...                    Gemma 4
//   <|channel|>analysis<|message|> ... <|end|>              gpt-oss: of its channels only analysis is
//   <|start|>assistant<|channel|>final<|message|> ...       thinking
//   to=self<|message|> ... <|eom|>                          Muse: what it tells itself is thinking; the
//   prompt
//   <|start|>assistant to=user<|message|> ... <|eot|>       ended with <|start|>assistant
//
// Marks count where a model writes them and not where an answer talks about them: <think> and
// <|channel>thought at the beginning of the answer or behind other thinking; </think> without one only at the
// beginning of a line, unless it is known that the prompt began the thinking; messages with a header only in
// an answer that begins with one.
//
// The text stays as it is, for the model's own template decides what of it is sent back
// (ChatTemplate::render).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

enum class PartKind : std::uint8_t { kAnswer, kThinking };

// Bytes [begin, end) of the text that are shown: without marks and the blank space around them.
struct AnswerPart {
  PartKind kind = PartKind::kAnswer;
  std::size_t begin = 0, end = 0;
  bool open = false;  // thinking that its mark has not ended
  bool empty() const { return begin >= end; }
  bool operator==(const AnswerPart&) const = default;
};

// What is known of the beginning beside the text.
enum class AnswerBeginning : std::uint8_t { kUnknown, kThinking };

// Reads a text that grows: only what has come is looked at again, with the bytes before it that a mark may
// have begun in.
class AnswerReader {
 public:
  explicit AnswerReader(AnswerBeginning beginning = AnswerBeginning::kUnknown) : beginning_(beginning) {}

  // `text` is that of the last call with more behind it. Until it is final, the beginning of what may become
  // a mark is in no part. Ascending, and apart from each other; only the last is open.
  const std::vector<AnswerPart>& read(std::string_view text, bool is_final);

  // Bytes looked at so far, also again: what growth costs.
  std::uint64_t num_bytes_read() const { return num_bytes_read_; }

 private:
  enum class State : std::uint8_t {
    kBeginning,
    kThinking,
    kBehindThinking,
    kAnswer,
    kHeader,
    kMessage,
    kBehindMessage
  };

  bool step(std::string_view text);
  bool open_thinking(std::string_view text, std::size_t first);
  bool begin(std::string_view text);
  bool think(std::string_view text);
  bool go_on(std::string_view text);
  bool answer(std::string_view text);
  bool read_header(std::string_view text);
  bool read_message(std::string_view text);
  bool follow_message(std::string_view text);
  void open(PartKind kind, std::size_t begin, State state);
  void close(std::string_view text, std::size_t end);

  AnswerBeginning beginning_;
  State state_ = State::kBeginning;
  std::string_view closer_;        // of the thinking that is open; empty: whichever comes
  std::size_t at_ = 0;             // everything before it is decided
  std::size_t held_ = 0;           // from here on the text may be a mark
  bool settled_ = false;           // of an answer: nothing in it can be a mark any more
  std::vector<AnswerPart> parts_;  // the last may be unfinished
  std::vector<AnswerPart> result_;
  std::uint64_t num_bytes_read_ = 0;
};

// The parts of a whole text.
std::vector<AnswerPart> answer_parts(std::string_view text, bool is_final,
                                     AnswerBeginning beginning = AnswerBeginning::kUnknown);

// Whether an answer is messages that have headers, with a channel or a recipient.
bool is_in_messages(std::string_view answer);

// Whether a prompt that ends like this has begun the thinking of its answer.
bool begins_thinking(std::string_view end_of_prompt);

}  // namespace octavo
