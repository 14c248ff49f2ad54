#include "tests/simulation/toy_model.h"

#include <algorithm>
#include <functional>

#include "engine/base/rng.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {

ToyModel::Draw ToyModel::draw(std::uint64_t folded, TokenId previous, bool greedy, std::uint64_t seed,
                              std::uint32_t output_index, std::size_t position) const {
  std::uint64_t key = mix64(folded);
  if (!greedy) {
    key = hash_combine(key, static_cast<std::uint64_t>(uniform_at(seed, output_index, position) * 0x1.0p53));
  }
  Draw draw;
  draw.invalid_logits =
      invalid_logits_period > 0 && key % static_cast<std::uint64_t>(invalid_logits_period) == 0;
  const std::uint64_t choice = mix64(key);
  const auto num_further = static_cast<std::uint64_t>(ToyTokenizer::kVocabularySize - 1);
  const bool ends = choice % static_cast<std::uint64_t>(eos_period) == 0;
  const bool is_new = (choice >> 32) % static_cast<std::uint64_t>(surprise_period) == 0;
  draw.token = is_new ? 1 + static_cast<TokenId>((choice >> 20) % num_further) : successor(previous);
  if (ends) draw.token = ToyTokenizer::kEos;
  draw.logprob = -static_cast<float>(choice >> 50) / 1024.0f;
  return draw;
}

std::vector<TokenLogprob> ToyModel::alternatives(std::uint64_t folded, std::int32_t count) {
  std::vector<TokenLogprob> all;
  if (count == 0) return all;
  for (TokenId token = 0; token < ToyTokenizer::kVocabularySize; ++token) {
    all.push_back({token, beam_logprob(folded, token)});
  }
  std::ranges::stable_sort(all, std::greater(), &TokenLogprob::logprob);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

}  // namespace octavo::simulation
