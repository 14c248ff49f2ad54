#include "app/serving_bench/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <utility>

#include "app/json/json_text.h"
#include "engine/base/hash.h"
#include "engine/base/rng.h"
#include "engine/experiments/workload.h"

namespace octavo::app {
namespace {

// Short and frequent, so that each is one token with the blank before it.
constexpr std::array kWords = std::to_array<std::string_view>(
    {"time",   "people", "water",  "house",  "world",  "music",   "river",  "light",  "green",  "small",
     "large",  "early",  "story",  "paper",  "table",  "garden",  "window", "street", "letter", "summer",
     "winter", "market", "school", "friend", "mother", "father",  "number", "system", "power",  "energy",
     "result", "reason", "change", "moment", "family", "country", "city",   "island", "forest", "mountain",
     "animal", "horse",  "bird",   "fish",   "tree",   "flower",  "stone",  "metal",  "glass",  "wood",
     "fire",   "earth",  "wind",   "rain",   "snow",   "night",   "day",    "week",   "month",  "year",
     "road",   "bridge", "train",  "ship",   "plane",  "car",     "book",   "page",   "word",   "line",
     "point",  "circle", "square", "colour", "red",    "blue",    "white",  "black",  "yellow", "brown",
     "hand",   "foot",   "head",   "heart",  "eye",    "face",    "voice",  "sound",  "song",   "dance",
     "game",   "team",   "work",   "money",  "price",  "trade",   "law",    "state",  "church", "army",
     "king",   "queen",  "child",  "woman",  "man",    "door",    "wall",   "floor",  "room",   "kitchen",
     "bread",  "milk",   "fruit",  "meat",   "salt",   "sugar",   "coffee", "wine",   "food",   "dinner",
     "north",  "south",  "east",   "west",   "left",   "right",   "high",   "low",    "long",   "short"});

// Which numbers of a seed are for what.
enum Stream : std::uint32_t { kLengths = 1, kTexts = 2, kShared = 3, kOrder = 4, kArrivals = 5 };

std::string join_words(std::uint64_t seed, std::uint64_t text, std::int32_t num_words) {
  const std::uint64_t stream = hash_combine(hash_combine(seed, kTexts), text);
  std::string joined;
  for (std::int32_t i = 0; i < num_words; ++i) {
    const double drawn = uniform_at(stream, 0, static_cast<std::uint64_t>(i));
    if (i > 0) joined += ' ';
    joined += kWords[static_cast<std::size_t>(drawn * static_cast<double>(kWords.size()))];
  }
  return joined;
}

// So many tokens, as far as can be told.
class TextMaker {
 public:
  TextMaker(std::uint64_t seed, const CountTokens& count) : seed_(seed), count_(count) {}

  std::string make(std::uint64_t text, std::int32_t num_tokens) const {
    std::int32_t num_words = num_tokens;
    std::string made = join_words(seed_, text, num_words);
    for (int i = 0; count_ && i < kMostTries; ++i) {
      const std::int32_t counted = count_(made), excess = counted - num_tokens;
      if (excess == 0 || counted == 0) break;
      const auto step = static_cast<std::int32_t>(std::int64_t{excess} * num_words / counted);
      num_words = std::max(1, num_words - (step != 0 ? step : excess > 0 ? 1 : -1));
      made = join_words(seed_, text, num_words);
    }
    return made;
  }

 private:
  static constexpr int kMostTries = 8;
  std::uint64_t seed_;
  const CountTokens& count_;
};

std::int32_t around(std::int32_t length, double ratio, paper::UniformStream& uniform) {
  const double drawn = static_cast<double>(length) * (1.0 - ratio + 2.0 * ratio * uniform.next());
  return std::max(1, static_cast<std::int32_t>(std::lround(drawn)));
}

class Planner {
 public:
  Planner(const WorkloadOptions& options, std::uint64_t seed, const CountTokens& count)
      : options_(options), uniform_(hash_combine(seed, kLengths)), texts_(seed, count) {}

  PlannedChat next(std::uint64_t index) {
    switch (options_.dataset) {
      case Dataset::kShareGpt: return one_turn(index, paper::sharegpt_lengths());
      case Dataset::kAlpaca: return one_turn(index, paper::AlpacaLengths());
      case Dataset::kPrefixRepetition: return repeated(index);
      case Dataset::kChatTurns: return turns(index);
      default: return random(index);
    }
  }

 private:
  bool fits(std::int64_t num_tokens) const {
    return options_.max_model_len == 0 || num_tokens < options_.max_model_len;
  }

  PlannedTurn turn(std::uint64_t text, std::int32_t input, std::int32_t output) const {
    return {texts_.make(text, input), input, output};
  }

  PlannedChat one_turn(std::uint64_t index, const paper::LengthSource& source) {
    paper::RequestLengths lengths = source.draw(uniform_);
    while (!fits(lengths.num_prompt_tokens + lengths.num_output_tokens)) lengths = source.draw(uniform_);
    const std::int32_t output = options_.fixed_output_len.value_or(lengths.num_output_tokens);
    return {.turns = {turn(index, lengths.num_prompt_tokens, output)}};
  }

  PlannedChat random(std::uint64_t index) {
    const std::int32_t input = around(options_.input_len, options_.range_ratio, uniform_);
    const std::int32_t output = around(options_.output_len, options_.range_ratio, uniform_);
    return {.system_prompt = shared(0, options_.prefix_len),
            .num_system_tokens = options_.prefix_len,
            .turns = {turn(index, input, output)}};
  }

  PlannedChat repeated(std::uint64_t index) {
    const auto prefix = static_cast<std::uint64_t>(uniform_.next() * options_.num_prefixes);
    return {.system_prompt = shared(prefix, options_.repeated_prefix_len),
            .num_system_tokens = options_.repeated_prefix_len,
            .turns = {turn(index, options_.suffix_len, options_.output_len)}};
  }

  PlannedChat turns(std::uint64_t index) {
    PlannedChat chat{.system_prompt = shared(0, options_.prefix_len),
                     .num_system_tokens = options_.prefix_len};
    std::int64_t num_tokens = options_.prefix_len;
    for (std::int32_t i = 0; i < options_.num_turns; ++i) {
      const std::int32_t input = around(options_.input_len, options_.range_ratio, uniform_);
      const std::int32_t output = around(options_.output_len, options_.range_ratio, uniform_);
      num_tokens += input + output;
      if (i > 0 && !fits(num_tokens)) break;
      chat.turns.push_back(turn(hash_combine(index, static_cast<std::uint64_t>(i)), input, output));
    }
    return chat;
  }

  // The same text for the same number, whoever begins with it.
  std::string shared(std::uint64_t number, std::int32_t num_tokens) const {
    return num_tokens > 0 ? texts_.make(hash_combine(kShared, number), num_tokens) : std::string();
  }

  const WorkloadOptions& options_;
  paper::UniformStream uniform_;
  TextMaker texts_;
};

// ---- files

Error bad_dataset(const std::string& sentence) {
  return {
      .code = ErrorCode::kInvalidArgument, .message = "the dataset " + sentence, .subject = "dataset_path"};
}

std::string member_text(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The paper's selection.
bool is_usable(std::int32_t num_prompt_tokens, std::int32_t num_output_tokens) {
  constexpr std::int32_t kLeast = 4, kMostPrompt = 1'024;
  return num_prompt_tokens >= kLeast && num_output_tokens >= kLeast && num_prompt_tokens <= kMostPrompt &&
         num_prompt_tokens + num_output_tokens <= paper::kMaxModelLen;
}

// ShareGPT's files are far larger than what other programs send, so that the bounds of parse_json do not
// hold.
Result<std::vector<PlannedTurn>> read_sharegpt(const WorkloadOptions& options, std::string_view text,
                                               const CountTokens& count) {
  if (!count) return bad_dataset("is of texts, whose lengths need --tokenizer with the model's file");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return bad_dataset("is no JSON list, as ShareGPT's files are");
  std::vector<PlannedTurn> turns;
  for (const Json& entry : json) {
    const auto said = entry.is_object() ? entry.find("conversations") : entry.end();
    if (!entry.is_object() || said == entry.end() || !said->is_array() || said->size() < 2) continue;
    std::string question = member_text((*said)[0], "value");
    const std::int32_t num_tokens = count(question);
    const std::int32_t num_output =
        options.fixed_output_len.value_or(count(member_text((*said)[1], "value")));
    if (!is_usable(num_tokens, num_output)) continue;
    turns.push_back({std::move(question), num_tokens, num_output});
  }
  return turns;
}

Result<std::vector<PlannedTurn>> read_custom(const WorkloadOptions& options, std::string_view text,
                                             const CountTokens& count) {
  std::vector<PlannedTurn> turns;
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    OCTAVO_TRY(const Json json, parse_json(line, "line " + std::to_string(line_number) + " of the dataset"));
    std::string prompt = member_text(json, "prompt");
    if (prompt.empty())
      return bad_dataset("has no \"prompt\" in line " + std::to_string(line_number) + ", a text");
    const auto own = json.find("output_tokens");
    std::int32_t num_output = options.fixed_output_len.value_or(options.output_len);
    if (own != json.end() && own->is_number_integer())
      num_output = static_cast<std::int32_t>(std::clamp<std::int64_t>(own->get<std::int64_t>(), 1, 1 << 20));
    const std::int32_t num_tokens = count ? count(prompt) : 0;
    turns.push_back({std::move(prompt), num_tokens, num_output});
  }
  return turns;
}

// A permutation of 0 .. count - 1 (Fisher and Yates).
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  paper::UniformStream uniform(hash_combine(seed, kOrder));
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(uniform.next() * static_cast<double>(i))]);
  return order;
}

// ---- arrivals

double normal(paper::UniformStream& uniform) {  // Box and Muller
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform.next()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform.next());
}

// Gamma distributed with mean 1 (Marsaglia and Tsang 2000; below shape 1 by their boost).
double gamma_of_mean_1(double shape, paper::UniformStream& uniform) {
  if (shape == 1.0) return -std::log1p(-uniform.next());
  const double boosted = shape < 1.0 ? shape + 1.0 : shape;
  const double d = boosted - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  double drawn = 0.0;
  while (drawn == 0.0) {
    const double x = normal(uniform);
    const double v = std::pow(1.0 + c * x, 3.0);
    const double u = uniform.next();
    if (v > 0.0 && std::log1p(-u) < 0.5 * x * x + d - d * v + d * std::log(v)) drawn = d * v;
  }
  if (shape < 1.0) drawn *= std::pow(1.0 - uniform.next(), 1.0 / shape);
  return drawn / shape;
}

}  // namespace

std::vector<PlannedChat> plan_chats(const WorkloadOptions& options, std::uint64_t seed,
                                    const CountTokens& count) {
  Planner planner(options, seed, count);
  std::vector<PlannedChat> chats;
  for (std::int32_t i = 0; i < options.num_prompts; ++i)
    chats.push_back(planner.next(static_cast<std::uint64_t>(i)));
  return chats;
}

Result<std::vector<PlannedChat>> plan_from_file(const WorkloadOptions& options, std::string_view text,
                                                std::uint64_t seed, const CountTokens& count) {
  std::vector<PlannedTurn> turns;
  if (options.dataset == Dataset::kCustom) {
    OCTAVO_TRY(turns, read_custom(options, text, count));
  } else {
    OCTAVO_TRY(turns, read_sharegpt(options, text, count));
  }
  if (turns.empty()) return bad_dataset("has no prompt that can be used");
  std::vector<PlannedChat> chats;
  for (std::uint64_t pass = 0; std::ssize(chats) < options.num_prompts; ++pass) {
    for (const std::size_t index : shuffled(turns.size(), hash_combine(seed, pass))) {
      if (std::ssize(chats) == options.num_prompts) break;
      chats.push_back({.turns = {turns[index]}});
    }
  }
  return chats;
}

std::vector<std::int64_t> arrival_times_us(std::size_t num_requests, double rate, double burstiness,
                                           std::uint64_t seed) {
  std::vector<std::int64_t> times(num_requests, 0);
  if (!std::isfinite(rate)) return times;
  paper::UniformStream uniform(hash_combine(seed, kArrivals));
  double time_s = 0.0;
  for (std::int64_t& time_us : times) {
    time_us = std::llround(time_s * 1e6);
    time_s += (std::isfinite(burstiness) ? gamma_of_mean_1(burstiness, uniform) : 1.0) / rate;
  }
  return times;
}

}  // namespace octavo::app
