// The pieces of a streamed answer in OpenAI's form, of completions and of chat completions alike, as servers
// really send them (vLLM, llama.cpp, Ollama, OpenVINO, Octavo).
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::app {

struct TextLogprob {
  std::string text;  // the token's bytes
  double logprob = 0.0;
};
struct TokenScore {
  TextLogprob token;
  std::vector<TextLogprob> top = {};  // best first
};

// Of one choice.
struct AnswerPiece {
  std::int32_t index = 0;
  std::string text = {};
  std::string thinking = {};  // reasoning_content, or reasoning
  std::vector<TokenScore> scores = {};
  std::string finish_reason = {};  // empty: it goes on
};

struct AnswerUsage {
  std::int64_t num_prompt_tokens = 0;
  std::int64_t num_output_tokens = 0;
  std::optional<std::int64_t> num_cached_tokens = {};  // of the prompt
};

struct AnswerChunk {
  std::vector<AnswerPiece> pieces = {};
  std::optional<AnswerUsage> usage = {};
  bool is_last = false;  // [DONE]
};

// One event's data. An error that the server reports within the stream is an Error, too.
Result<AnswerChunk> read_answer_chunk(std::string_view data);

// A whole answer that was not streamed.
Result<AnswerChunk> read_whole_answer(std::string_view body);

}  // namespace octavo::app
