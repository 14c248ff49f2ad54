// The simulated model: a pure function of a token prefix. Its "KV" of a token is the hash of the prefix that
// ends with it, and its next token is a hash of everything that attention reads, so that a single wrong slot
// changes the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/hash.h"
#include "engine/base/ids.h"

namespace octavo::simulation {

// A biased search prefers this token more than the model does.
inline constexpr TokenId kBiasedToken = 5;
inline constexpr double kBias = 1.5;

struct ToyModel {
  std::int32_t eos_period = 32;            // one token in so many ends the sequence
  std::int32_t invalid_logits_period = 0;  // one in so many cannot be drawn; 0: none
  // One token in so many is drawn anew. The others follow from the token before
  // them, so that texts come again.
  std::int32_t surprise_period = 1;

  // Hashes of requests with different salts begin differently: no prefix of theirs is ever the same.
  static std::uint64_t root_of(std::int32_t salt) {
    return hash_combine(0x6f637461766fu, static_cast<std::uint64_t>(salt));
  }
  static std::uint64_t extend(std::uint64_t prefix_hash, TokenId token) {
    return hash_combine(prefix_hash, static_cast<std::uint64_t>(token));
  }

  // What attention makes of all slots that it reads, folded one by one; a bijection of each slot.
  static std::uint64_t fold(std::uint64_t folded, std::uint64_t slot) {
    return folded * 0x9e3779b97f4a7c15u + slot;
  }

  struct Draw {
    TokenId token = -1;
    float logprob = 0.0f;
    bool invalid_logits = false;
  };
  Draw draw(std::uint64_t folded, TokenId previous, bool greedy, std::uint64_t seed,
            std::uint32_t output_index, std::size_t position) const;

  // Letters in a circle.
  static TokenId successor(TokenId token) { return 4 + (token + 1) % 6; }

  // One way to go on with a beam. Few different values, so that many are equal.
  static float beam_logprob(std::uint64_t folded, TokenId token) {
    return -static_cast<float>(1 + (hash_combine(folded, static_cast<std::uint64_t>(token)) >> 59)) / 8.0f;
  }
  // The likeliest tokens, best first, equal ones by id.
  static std::vector<TokenLogprob> alternatives(std::uint64_t folded, std::int32_t count);

  bool has_invalid_logits(std::uint64_t folded) const {
    return invalid_logits_period > 0 &&
           mix64(folded) % static_cast<std::uint64_t>(invalid_logits_period) == 0;
  }

  // Of the token that ends this prefix.
  static constexpr std::int32_t kWidth = 3;
  static float hidden_state(std::uint64_t prefix_hash, std::int32_t index) {
    return static_cast<float>(extend(prefix_hash, index) >> 44) / 1024.0f - 500.0f;
  }

  static float prompt_logprob(std::uint64_t prefix_hash, TokenId token) {
    return -static_cast<float>(extend(prefix_hash, token) >> 50) / 1024.0f;
  }
};

}  // namespace octavo::simulation
