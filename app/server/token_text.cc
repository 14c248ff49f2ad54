#include "app/server/token_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "engine/base/text.h"

namespace octavo::app {

double told_logprob(float logprob) {
  const double value = static_cast<double>(logprob);
  return value > kLowestLogprob ? value : kLowestLogprob;  // what is no number, too
}

std::string token_text(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  return sanitise_utf8(tokenizer.token_bytes(id));
}

Json token_bytes_json(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  Json bytes = Json::array();
  for (const char byte : tokenizer.token_bytes(id)) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

std::int64_t count_characters(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += decode_utf8(text, at).length) ++count;
  return count;
}

std::int64_t CharacterCounter::place_of(std::string_view bytes) {
  const std::int64_t place = num_before_;
  begun_ += bytes;
  const std::size_t num_whole = begun_.size() - incomplete_utf8_suffix(begun_);
  num_before_ += count_characters(std::string_view(begun_).substr(0, num_whole));
  begun_.erase(0, num_whole);
  return place;
}

Json prompt_logprobs_json(const tokenizer::Tokenizer& tokenizer, std::span<const TokenId> prompt,
                          std::span<const std::optional<float>> logprobs,
                          std::span<const std::vector<TokenLogprob>> top_logprobs, std::size_t most) {
  Json positions = Json::array();
  for (std::size_t i = 0; i < std::min(prompt.size(), logprobs.size()); ++i) {
    if (!logprobs[i]) {
      positions.push_back(nullptr);
      continue;
    }
    const auto entry = [&](TokenId id, float logprob, Json rank) {
      return Json{{"logprob", told_logprob(logprob)},
                  {"rank", std::move(rank)},
                  {"decoded_token", token_text(tokenizer, id)}};
    };
    Json position = Json::object();
    position[std::to_string(prompt[i])] = entry(prompt[i], *logprobs[i], nullptr);
    std::span<const TokenLogprob> top;
    if (i < top_logprobs.size()) top = top_logprobs[i];
    for (std::size_t rank = 1; rank <= top.size(); ++rank) {
      const TokenLogprob& other = top[rank - 1];
      if (other.token_id == prompt[i]) {
        position[std::to_string(prompt[i])]["rank"] = rank;
      } else if (rank <= most) {
        position[std::to_string(other.token_id)] = entry(other.token_id, other.logprob, rank);
      }
    }
    positions.push_back(std::move(position));
  }
  return positions;
}

}  // namespace octavo::app
