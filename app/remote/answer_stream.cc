#include "app/remote/answer_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/json/json_text.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::int32_t kMostChoices = 1'024;

// The member; nullptr when it is absent, null, or `object` is none.
const Json* member(const Json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::int64_t count_of(const Json* value) {
  if (value == nullptr || !value->is_number()) return 0;
  const double count = value->get<double>();
  return count > 0.0 && count < 1e15 ? static_cast<std::int64_t>(count) : 0;
}

// `bytes` where they are told: a token may be a part of a character.
std::string token_text_of(const Json& token) {
  const Json* const bytes = member(&token, "bytes");
  if (bytes == nullptr || !bytes->is_array()) return text_of(member(&token, "token"));
  std::string text;
  for (const Json& byte : *bytes)
    if (byte.is_number_integer()) text += static_cast<char>(byte.get<std::int64_t>());
  return text;
}

std::optional<TextLogprob> scored(const Json& token) {
  const Json* const logprob = member(&token, "logprob");
  if (logprob == nullptr || !logprob->is_number()) return std::nullopt;
  return TextLogprob{token_text_of(token), logprob->get<double>()};
}

// {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}]}: of chat completions.
void read_content_scores(const Json& content, std::vector<TokenScore>& scores) {
  for (const Json& token : content) {
    auto own = scored(token);
    if (!own) continue;
    TokenScore score{.token = *std::move(own)};
    const Json* const top = member(&token, "top_logprobs");
    for (const Json& other : top != nullptr && top->is_array() ? *top : Json::array())
      if (auto read = scored(other)) score.top.push_back(*std::move(read));
    scores.push_back(std::move(score));
  }
}

// {"tokens": [...], "token_logprobs": [...], "top_logprobs": [{token: logprob}]}: of completions.
void read_listed_scores(const Json& logprobs, std::vector<TokenScore>& scores) {
  const Json* const tokens = member(&logprobs, "tokens");
  const Json* const values = member(&logprobs, "token_logprobs");
  const Json* const tops = member(&logprobs, "top_logprobs");
  if (tokens == nullptr || values == nullptr || !tokens->is_array() || !values->is_array()) return;
  for (std::size_t i = 0; i < std::min(tokens->size(), values->size()); ++i) {
    if (!(*values)[i].is_number()) continue;
    TokenScore score{.token = {text_of(&(*tokens)[i]), (*values)[i].get<double>()}};
    if (tops != nullptr && tops->is_array() && i < tops->size() && (*tops)[i].is_object()) {
      for (const auto& [text, logprob] : (*tops)[i].items())
        if (logprob.is_number()) score.top.push_back({text, logprob.get<double>()});
      std::ranges::stable_sort(score.top, std::ranges::greater(), &TextLogprob::logprob);
    }
    scores.push_back(std::move(score));
  }
}

AnswerPiece read_piece(const Json& choice, const Json* told) {
  AnswerPiece piece;
  piece.index =
      static_cast<std::int32_t>(std::min<std::int64_t>(count_of(member(&choice, "index")), kMostChoices));
  piece.text = told != nullptr ? text_of(member(told, "content")) : text_of(member(&choice, "text"));
  piece.thinking = text_of(member(told, "reasoning_content"));
  if (piece.thinking.empty()) piece.thinking = text_of(member(told, "reasoning"));
  piece.finish_reason = text_of(member(&choice, "finish_reason"));
  if (const Json* const logprobs = member(&choice, "logprobs")) {
    const Json* const content = member(logprobs, "content");
    if (content != nullptr && content->is_array()) {
      read_content_scores(*content, piece.scores);
    } else {
      read_listed_scores(*logprobs, piece.scores);
    }
  }
  return piece;
}

std::optional<AnswerUsage> read_usage(const Json& answer) {
  const Json* const usage = member(&answer, "usage");
  if (usage == nullptr || !usage->is_object()) return std::nullopt;
  AnswerUsage read{.num_prompt_tokens = count_of(member(usage, "prompt_tokens")),
                   .num_output_tokens = count_of(member(usage, "completion_tokens"))};
  const Json* const cached = member(member(usage, "prompt_tokens_details"), "cached_tokens");
  if (cached != nullptr && cached->is_number()) read.num_cached_tokens = count_of(cached);
  return read;
}

Result<AnswerChunk> read_answer(std::string_view text, const char* told_name) {
  OCTAVO_TRY(const Json json, parse_json(text, "the server's answer"));
  if (const Json* const error = member(&json, "error")) {
    std::string said = error->is_object() ? text_of(member(error, "message")) : text_of(error);
    if (said.empty()) said = "it does not say why";
    return Error{ErrorCode::kIo, "the server gave up: " + escape_for_message(said, 400)};
  }
  AnswerChunk chunk{.usage = read_usage(json)};
  const Json* const choices = member(&json, "choices");
  if (choices == nullptr || !choices->is_array()) {
    if (chunk.usage) return chunk;
    return Error{ErrorCode::kUnsupported, "the server's answer is not of OpenAI's form; check the address"};
  }
  for (const Json& choice : *choices)
    if (choice.is_object()) chunk.pieces.push_back(read_piece(choice, member(&choice, told_name)));
  return chunk;
}

}  // namespace

Result<AnswerChunk> read_answer_chunk(std::string_view data) {
  if (data == "[DONE]") return AnswerChunk{.is_last = true};
  return read_answer(data, "delta");
}

Result<AnswerChunk> read_whole_answer(std::string_view body) { return read_answer(body, "message"); }

}  // namespace octavo::app
