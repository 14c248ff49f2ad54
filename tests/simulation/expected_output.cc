#include "tests/simulation/expected_output.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "engine/base/text.h"

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

ExpectedOutput::ExpectedOutput(const ToyModel& model, const RequestAlone& alone, std::uint32_t output_index)
    : model_(model),
      alone_(alone),
      output_index_(output_index),
      prefix_hash_(ToyModel::root_of(alone.asked.salt)) {
  for (const TokenId token : alone.asked.prompt) take(token);
}

void ExpectedOutput::take(TokenId token) {
  prefix_hash_ = ToyModel::extend(prefix_hash_, token);
  folded_ = ToyModel::fold(folded_, prefix_hash_);
}

void ExpectedOutput::extend_to(std::size_t num_tokens) {
  while (!has_ended_ && !fails_ && token_ids_.size() < num_tokens) extend();
}

void ExpectedOutput::extend() {
  const ToyModel::Draw draw =
      model_.draw(folded_, alone_.asked.greedy, alone_.seed, output_index_, token_ids_.size());
  fails_ = draw.invalid_logits;
  if (fails_) return;
  take(draw.token);
  token_ids_.push_back(draw.token);
  logprobs_.push_back(draw.logprob);
  const std::size_t num_old_bytes = alone_.stop.empty() ? 0 : certain_text(bytes_).size();
  if (!kTokenizer.is_control(draw.token)) bytes_ += kTokenizer.token_bytes(draw.token);
  has_ended_ = ends_by_token(draw.token);
  has_ended_ = ends_by_stop_string(num_old_bytes) || has_ended_;
}

bool ExpectedOutput::ends_by_token(TokenId token) {
  const ScriptedRequest& asked = alone_.asked;
  const auto num_tokens = static_cast<std::int32_t>(token_ids_.size());
  const bool may_stop = num_tokens > asked.min_tokens;
  if (may_stop && kTokenizer.is_end_of_sequence(token) && !asked.ignore_eos) {
    finish_reason_ = FinishReason::kStop;
    return true;
  }
  if (may_stop && token == asked.stop_token) {
    finish_reason_ = FinishReason::kStop;
    stop_reason_ = token;
    return true;
  }
  const auto num_prompt = static_cast<std::int32_t>(asked.prompt.size());
  return num_tokens >= std::min(asked.max_tokens, alone_.max_model_len - num_prompt);
}

bool ExpectedOutput::ends_by_stop_string(std::size_t num_old_bytes) {
  if (alone_.stop.empty() || static_cast<std::int32_t>(token_ids_.size()) <= alone_.asked.min_tokens) return false;
  const std::string text = has_ended_ ? sanitise_utf8(bytes_) : certain_text(bytes_);
  const auto match = first_stop(text, num_old_bytes, alone_.stop);
  if (!match) return false;
  stop_position_ = match->position;
  finish_reason_ = FinishReason::kStop;
  stop_reason_ = match->stop;
  return true;
}

std::string ExpectedOutput::text() const { return sanitise_utf8(bytes_).substr(0, stop_position_.value_or(std::string::npos)); }

std::vector<std::optional<float>> expected_prompt_logprobs(const RequestAlone& alone) {
  std::vector<std::optional<float>> logprobs;
  if (!alone.asked.prompt_logprobs) return logprobs;
  std::uint64_t prefix_hash = ToyModel::root_of(alone.asked.salt);
  for (const TokenId token : alone.asked.prompt) {
    logprobs.push_back(logprobs.empty() ? std::nullopt
                                        : std::optional(ToyModel::prompt_logprob(prefix_hash, token)));
    prefix_hash = ToyModel::extend(prefix_hash, token);
  }
  return logprobs;
}

}  // namespace octavo::simulation
