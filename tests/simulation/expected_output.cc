#include "tests/simulation/expected_output.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/base/text.h"

namespace octavo::simulation {
namespace {

// Bytes at the end of `bytes` that further bytes may still make a character of.
std::size_t unfinished_bytes(std::string_view bytes) {
  for (std::size_t length = std::min<std::size_t>(3, bytes.size()); length > 0; --length) {
    const std::string start(bytes.substr(bytes.size() - length));
    for (int next = 0x80; next < 0xc0; ++next) {
      for (const std::string& rest : {std::string(), std::string("\x80"), std::string("\x80\x80")}) {
        const std::string whole = start + static_cast<char>(next) + rest;
        const CodePoint decoded = decode_utf8(whole, 0);
        if (decoded.valid && decoded.length == whole.size()) return length;
      }
    }
  }
  return 0;
}

struct StopMatch {
  std::size_t position;
  std::string stop;
};

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

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::uint64_t ToyModel::root_of(std::uint64_t salt) { return hash_combine(0x6f637461766fu, salt); }

std::uint64_t ToyModel::extend(std::uint64_t prefix_hash, TokenId token) {
  return hash_combine(prefix_hash, static_cast<std::uint64_t>(token));
}

std::uint64_t ToyModel::fold(std::uint64_t folded, std::uint64_t slot) { return mix64(folded ^ slot); }

ToyModel::Draw ToyModel::draw(std::uint64_t folded, const SamplingParams& sampling, std::uint64_t seed,
                              std::uint32_t output_index, std::size_t position) const {
  std::uint64_t key = folded;
  if (sampling.temperature > 0.0) {
    key = hash_combine(key, static_cast<std::uint64_t>(uniform_at(seed, output_index, position) * 0x1.0p53));
  }
  Draw draw;
  draw.invalid_logits = invalid_logits_period != 0 && key % invalid_logits_period == 0;
  const std::uint64_t choice = mix64(key);
  const auto num_further = static_cast<std::uint64_t>(vocabulary_size - 1);
  draw.token = choice % eos_period == 0 ? 0 : 1 + static_cast<TokenId>((choice >> 20) % num_further);
  draw.logprob = -static_cast<float>(choice >> 50) / 1024.0f;
  return draw;
}

float ToyModel::prompt_logprob(std::uint64_t prefix_hash, TokenId token) {
  return -static_cast<float>(extend(prefix_hash, token) >> 50) / 1024.0f;
}

ExpectedOutput expected_output(const ToyModel& model, const tokenizer::Tokenizer& tokenizer,
                               const RequestAlone& request, std::uint32_t output_index,
                               std::int32_t max_model_len) {
  ExpectedOutput expected;
  const SamplingParams& sampling = request.sampling;
  const auto num_prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size());
  const auto limit =
      static_cast<std::size_t>(std::min(sampling.max_tokens, max_model_len - num_prompt_tokens));
  const auto min_tokens = static_cast<std::size_t>(sampling.min_tokens);
  std::uint64_t prefix_hash = ToyModel::root_of(request.salt), folded = 0;
  const auto take = [&](TokenId token) {
    prefix_hash = ToyModel::extend(prefix_hash, token);
    folded = ToyModel::fold(folded, prefix_hash);
  };
  for (const TokenId token : request.prompt_token_ids) take(token);

  std::string bytes;
  for (std::size_t count = 1;; ++count) {
    const ToyModel::Draw draw = model.draw(folded, sampling, request.seed, output_index, count - 1);
    if (draw.invalid_logits) {
      expected.fails = true;
      return expected;
    }
    take(draw.token);
    expected.token_ids.push_back(draw.token);
    expected.logprobs.push_back(draw.logprob);
    const std::string old_text = sanitise_utf8(bytes.substr(0, bytes.size() - unfinished_bytes(bytes)));
    if (!tokenizer.is_control(draw.token)) bytes += tokenizer.token_bytes(draw.token);

    bool ended = true;
    if (count > min_tokens && tokenizer.is_end_of_sequence(draw.token) && !sampling.ignore_eos) {
      expected.finish_reason = FinishReason::kStop;
    } else if (count > min_tokens && contains(sampling.stop_token_ids, draw.token)) {
      expected.finish_reason = FinishReason::kStop;
      expected.stop_reason = draw.token;
    } else {
      ended = count >= limit;
    }
    expected.text = sanitise_utf8(ended ? bytes : bytes.substr(0, bytes.size() - unfinished_bytes(bytes)));
    const auto match =
        count > min_tokens ? first_stop(expected.text, old_text.size(), sampling.stop) : std::nullopt;
    if (match) {
      expected.text.resize(match->position);
      expected.finish_reason = FinishReason::kStop;
      expected.stop_reason = match->stop;
    }
    if (ended || match) return expected;
  }
}

std::vector<std::optional<float>> expected_prompt_logprobs(const RequestAlone& request) {
  std::vector<std::optional<float>> logprobs;
  if (!request.sampling.prompt_logprobs) return logprobs;
  std::uint64_t prefix_hash = ToyModel::root_of(request.salt);
  for (std::size_t position = 0; position < request.prompt_token_ids.size(); ++position) {
    const TokenId token = request.prompt_token_ids[position];
    logprobs.push_back(position == 0 ? std::nullopt
                                     : std::optional(ToyModel::prompt_logprob(prefix_hash, token)));
    prefix_hash = ToyModel::extend(prefix_hash, token);
  }
  return logprobs;
}

}  // namespace octavo::simulation
