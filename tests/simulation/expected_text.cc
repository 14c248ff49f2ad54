#include "tests/simulation/expected_text.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "engine/base/text.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

const ToyTokenizer kTokenizer;

std::string utf8(std::uint32_t code_point) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto tail = [&](int shift) { return byte(0x80 | ((code_point >> shift) & 0x3f)); };
  if (code_point < 0x800) return {byte(0xc0 | (code_point >> 6)), tail(0)};
  if (code_point < 0x10000) return {byte(0xe0 | (code_point >> 12)), tail(6), tail(0)};
  return {byte(0xf0 | (code_point >> 18)), tail(12), tail(6), tail(0)};
}

// Every proper beginning of a character of several bytes.
std::set<std::string, std::less<>> make_beginnings() {
  std::set<std::string, std::less<>> beginnings;
  // Characters that differ in their last six bits only begin alike.
  for (std::uint32_t code_point = 0x80; code_point < 0x110000; code_point += 0x40) {
    if (code_point >= 0xd800 && code_point < 0xe000) continue;  // surrogates are no characters
    const std::string character = utf8(code_point);
    for (std::size_t length = 1; length < character.size(); ++length) {
      beginnings.insert(character.substr(0, length));
    }
  }
  return beginnings;
}

// Bytes at the end of `bytes` that further bytes may still make a character of.
std::size_t unfinished_bytes(std::string_view bytes) {
  static const std::set<std::string, std::less<>> kBeginnings = make_beginnings();
  for (std::size_t length = std::min<std::size_t>(3, bytes.size()); length > 0; --length) {
    if (kBeginnings.contains(bytes.substr(bytes.size() - length))) return length;
  }
  return 0;
}

std::string certain_text(std::string_view bytes) {
  return sanitise_utf8(bytes.substr(0, bytes.size() - unfinished_bytes(bytes)));
}

struct StopMatch {
  std::size_t position;
  std::string stop;
};

// The first stop string that is not all among the first `num_old_bytes`.
std::optional<StopMatch> first_stop(const std::string& text, std::size_t num_old_bytes,
                                    const std::vector<std::string>& stops) {
  for (std::size_t position = 0; position < text.size(); ++position) {
    for (const std::string& stop : stops) {
      if (position + stop.size() > num_old_bytes && text.compare(position, stop.size(), stop) == 0) {
        return StopMatch{position, stop};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

RequestAlone RequestAlone::of(const ScriptedRequest& asked, std::int32_t max_model_len) {
  return {.asked = asked,
          .stop = to_request(asked).sampling.stop,
          .seed = asked.seed.value_or(0),
          .max_model_len = max_model_len};
}

ExpectedText::ExpectedText(const RequestAlone& alone)
    : alone_(&alone), prefix_hash_(ToyModel::root_of(alone.asked.salt)) {
  for (const TokenId token : alone.asked.prompt) take(token);
}

void ExpectedText::take(TokenId token) {
  last_token_ = token;
  prefix_hash_ = ToyModel::extend(prefix_hash_, token);
  folded_ = ToyModel::fold(folded_, prefix_hash_);
}

void ExpectedText::append(TokenId token) {
  take(token);
  token_ids_.push_back(token);
  const std::size_t num_old_bytes = alone_->stop.empty() ? 0 : certain_text(bytes_).size();
  has_ended_ = ends_by_token(token);
  const bool is_stop = has_ended_ && finish_reason_ == FinishReason::kStop;
  const bool is_left_out = is_stop && !alone_->asked.include_stop;
  if (!kTokenizer.is_control(token) && !is_left_out) bytes_ += kTokenizer.token_bytes(token);
  has_ended_ = ends_by_stop_string(num_old_bytes) || has_ended_;
}

void ExpectedText::end(FinishReason reason) {
  has_ended_ = true;
  finish_reason_ = reason;
}

bool ExpectedText::ends_by_token(TokenId token) {
  const ScriptedRequest& asked = alone_->asked;
  const auto num_tokens = static_cast<std::int32_t>(token_ids_.size());
  const bool may_stop = num_tokens > asked.min_tokens;
  if ((may_stop || asked.structured) && kTokenizer.is_end_of_sequence(token) && !asked.ignore_eos) {
    finish_reason_ = FinishReason::kStop;
    return true;
  }
  if (may_stop && token == asked.stop_token) {
    finish_reason_ = FinishReason::kStop;
    stop_reason_ = token;
    return true;
  }
  const auto num_prompt = static_cast<std::int32_t>(asked.prompt.size());
  return num_tokens >= std::min(asked.max_tokens, alone_->max_model_len - num_prompt);
}

bool ExpectedText::ends_by_stop_string(std::size_t num_old_bytes) {
  if (alone_->stop.empty() || static_cast<std::int32_t>(token_ids_.size()) <= alone_->asked.min_tokens)
    return false;
  const std::string text = has_ended_ ? sanitise_utf8(bytes_) : certain_text(bytes_);
  const auto match = first_stop(text, num_old_bytes, alone_->stop);
  if (!match) return false;
  stop_position_ = match->position + (alone_->asked.include_stop ? match->stop.size() : 0);
  finish_reason_ = FinishReason::kStop;
  stop_reason_ = match->stop;
  return true;
}

std::string ExpectedText::text() const {
  return sanitise_utf8(bytes_).substr(0, stop_position_.value_or(std::string::npos));
}

}  // namespace octavo::simulation
