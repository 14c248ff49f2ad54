// What a serving benchmark asks: chats with their texts and lengths, and when each arrives. Functions of a
// seed: the same seed gives the same bytes at the same times on every machine.
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::app {

// Lengths in tokens are what was asked for; what a server counts is told beside them.
struct PlannedTurn {
  std::string text;  // what the person says
  std::int32_t num_tokens = 0;
  std::int32_t num_output_tokens = 0;  // of the answer
};

// A request by itself is a chat of one turn. A later turn is asked when the one before is answered, with
// everything said so far.
struct PlannedChat {
  std::string system_prompt = {};  // or the shared beginning of a prompt; may be empty
  std::int32_t num_system_tokens = 0;
  std::vector<PlannedTurn> turns = {};
};

enum class Dataset {
  kRandom,            // lengths around one of each kind, after a prefix that all share
  kShareGpt,          // the paper's, by quantiles, or a file
  kAlpaca,            // the paper's, by its means
  kPrefixRepetition,  // some prefixes, each with many endings
  kChatTurns,         // a system prompt that all share, and turns that grow
  kCustom,            // prompts of a file
};

struct WorkloadOptions {
  Dataset dataset = Dataset::kRandom;
  std::int32_t num_prompts = 1'000;  // chats
  std::int32_t input_len = 1'024;    // of random and of each turn of chats
  std::int32_t output_len = 128;
  double range_ratio = 0.0;  // lengths are uniform in (1 - it) .. (1 + it) times the length
  std::int32_t prefix_len = 0;
  std::int32_t num_prefixes = 10;  // of prefix repetition, as the next two
  std::int32_t repeated_prefix_len = 256;
  std::int32_t suffix_len = 256;
  std::int32_t num_turns = 4;
  std::optional<std::int32_t> fixed_output_len = {};  // of ShareGPT, Alpaca and custom, instead of their own
  std::int32_t max_model_len = 0;  // what would not fit is drawn again, or a chat ends before; 0: no limit
};

// Tokens of a text in the vocabulary of the model that is measured.
using CountTokens = std::function<std::int32_t(std::string_view text)>;

// Without `count`, texts are common words, which nearly every vocabulary has as one token each.
// REQUIRES: neither custom prompts nor a file
std::vector<PlannedChat> plan_chats(const WorkloadOptions& options, std::uint64_t seed,
                                    const CountTokens& count = {});

// Chats of a file: JSON of ShareGPT's form (the first question, and its answer's length; as the paper, too
// short and too long ones are left out), or for custom prompts lines of {"prompt": ..., "output_tokens":
// ...}. `count` is needed where lengths are measured. Drawn by the seed, each once before any comes twice.
Result<std::vector<PlannedChat>> plan_from_file(const WorkloadOptions& options, std::string_view text,
                                                std::uint64_t seed, const CountTokens& count);

// When requests arrive, from 0 on, ascending.
//   rate        requests per second; infinity: all at once
//   burstiness  1: a Poisson process; below: in bursts; above: evener (gaps are gamma distributed with this
//               shape); infinity: the same gap always
std::vector<std::int64_t> arrival_times_us(std::size_t num_requests, double rate, double burstiness,
                                           std::uint64_t seed);

}  // namespace octavo::app
