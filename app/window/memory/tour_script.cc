#include "app/window/memory/tour_script.h"

#include <sstream>
#include <utility>

namespace octavo::app {
namespace {

std::vector<TourAsk> word_by_word(const std::string& prompt, const std::string& answer) {
  std::vector<TourAsk> asks;
  std::string text = prompt;
  std::istringstream words(answer);
  std::int32_t step = 0;
  for (std::string word; words >> word;) {
    asks.push_back({.at_step = step++, .label = "Alan", .prompt = text, .answers = {word}});
    text += " " + word;
  }
  return asks;
}

}  // namespace

const std::vector<TourScript>& tour_scripts() {
  static const std::string kAlan = "Alan Turing is a computer scientist";
  static const std::string kAnswer = "and mathematician renowned for his work";
  static const std::string kManner = "You answer in one short sentence . Be kind and be exact .";
  static const std::string kWho = "a mathematician who broke codes";
  static const std::string kBriefly = "You answer in one short sentence . Be kind and exact .";
  static const std::vector<TourAsk> kTooMuchForThePool = {
      {.label = "Alan",
       .prompt = "Alan Turing is a computer scientist",
       .answers = {"and mathematician renowned for his work on codes and machines"}},
      {.at_step = 1,
       .label = "Score",
       .prompt = "Four score and seven years ago our",
       .answers = {"fathers brought forth a new nation again and again"}}};
  static const std::vector<TourScript> kScripts = {
      {.title = "Without a KV cache",
       .beginning = "A model writes one word at a time. Here, nothing is kept between words.",
       .end = "Every word recomputed the whole text. A cache of keys and values avoids that.",
       .has_cache = false,
       .computes_again = true,
       .asks = word_by_word(kAlan, kAnswer)},
      {.title = "With a KV cache",
       .beginning = "The same text, but now the keys and values of every word stay in blocks of four.",
       .end = "Each word was computed once. The blocks show what is kept.",
       .asks = {{.label = "Alan", .prompt = kAlan, .answers = {kAnswer}}}},
      {.title = "One sequence fills blocks",
       .beginning =
           "A pool of eight blocks of four words. A new block is allocated only when the last one is full.",
       .end = "Never were more than three slots empty: a sequence wastes less than one block.",
       .asks = {{.label = "Alan",
                 .prompt = "Alan Turing is a computer",
                 .answers = {"scientist and mathematician renowned for his work on codes"}}}},
      {.title = "Two requests",
       .beginning =
           "Two requests run in one batch. Their blocks are mixed in the pool; block tables keep the order.",
       .end = "Neither needed to know how long the other would get, and there are no gaps between them.",
       .num_blocks = 10,
       .asks = {{.label = "Alan",
                 .prompt = "Alan Turing is a computer scientist",
                 .answers = {"and mathematician renowned for his work on codes"}},
                {.at_step = 2,
                 .label = "Score",
                 .prompt = "Four score and seven years ago our",
                 .answers = {"fathers brought forth a new nation"}}}},
      {.title = "Samples share their prompt",
       .beginning =
           "Three answers to one prompt. The prompt is computed once, and all three point to its blocks.",
       .end = "Only the block they wrote to was copied. The full blocks stayed shared.",
       .num_blocks = 12,
       .asks = {{.label = "Cat",
                 .prompt = "The cat sat on the warm",
                 .answers = {"stone and slept all day long", "roof under the old tree again",
                             "wall by the river near home"}}}},
      {.title = "Beams of 2",
       .beginning =
           "Beam search of width 2 keeps the two best continuations. Beams fork, and beams are pruned.",
       .end = "What the beams shared was kept once; blocks used only by a pruned beam are free again.",
       .num_blocks = 12,
       .asks = {{.label = "Beam",
                 .prompt = "it was the best of",
                 .answers = {"times age wisdom foolishness epoch belief worst"},
                 .beams = 2,
                 .num_tokens = 8}}},
      {.title = "Beams of 4",
       .beginning = "The same with four beams: more forks, more sharing, and more copies as they diverge.",
       .end = "Four beams never needed four times the blocks.",
       .num_blocks = 24,
       .asks = {{.label = "Beam",
                 .prompt = "it was the best of",
                 .answers = {"times age wisdom foolishness epoch belief worst"},
                 .beams = 4,
                 .num_tokens = 8}}},
      {.title = "A shared task prefix",
       .beginning = "Two requests begin with the same instruction. The second finds it in the cache.",
       .end = "The instruction was computed once. This works across chats, even after the first one ends. "
              "A next turn goes on inside the block in which the one before it ended: that one is copied.",
       .num_blocks = 12,
       .asks = {{.label = "Otter",
                 .prompt = "Translate English to German : cheese Käse plush giraffe sea otter",
                 .answers = {"Seeotter the sea cat slept"}},
                {.at_step = 3,
                 .label = "Giraffe",
                 .prompt = "Translate English to German : cheese Käse sea otter plush giraffe",
                 .answers = {"Plüschgiraffe and the cat slept"}},
                {.at_step = 10,
                 .label = "Next turn",
                 .prompt = "Translate English to German : cheese Käse plush giraffe sea otter "
                           "Seeotter the sea cat slept and the dog ?",
                 .answers = {"Seehund"}}}},
      {.title = "Preemption by swap",
       .beginning =
           "The pool is too small for both. The request that arrived last moves to the host pool and back.",
       .end = "Nothing was recomputed and nothing was lost: its blocks came back unchanged.",
       .num_blocks = 7,
       .num_host_blocks = 6,
       .preemption = PreemptionPolicy::kSwap,
       .has_cache = false,
       .asks = kTooMuchForThePool},
      {.title = "Preemption by recompute",
       .beginning = "The same pool without a host pool. The request that arrived last loses its blocks.",
       .end = "Prompt and answer so far were recomputed as one prompt, which is cheaper than it sounds.",
       .num_blocks = 7,
       .preemption = PreemptionPolicy::kRecompute,
       .has_cache = false,
       .asks = kTooMuchForThePool},
      {.title = "States and checkpoints",
       .beginning =
           "Some models have recurrent layers. These keep no keys and values: all they know of a text "
           "is one state, of the same size however long the text is. It can be copied, not cut.",
       .end =
           "Blocks can be shared up to any word. A state is of one place only, so it is kept as a checkpoint "
           "where others are likely to go on: behind a system prompt, and where a turn ends.",
       .num_blocks = 20,
       .num_states = 3,
       .asks = {{.label = "Turn 1", .prompt = kManner + " Who was Alan Turing ?", .answers = {kWho}},
                {.at_step = 7,
                 .label = "Turn 2",
                 .prompt = kManner + " Who was Alan Turing ? " + kWho + " Where ?",
                 .answers = {"in England"}},
                {.at_step = 12,
                 .label = "Another chat",
                 .prompt = kManner + " Who was Ada Lovelace ?",
                 .answers = {"a mathematician"}}}},
      {.title = "Windows",
       .beginning =
           "In some models most layers read the last words only: here a window of eight. What they keep of a "
           "block is its window part, and the parts have a small pool of their own.",
       .end = "The window pool stayed as small as one window, however long the texts. What was kept in it is "
              "what stands where others go on: at the end of the system prompt and of a turn.",
       .num_blocks = 16,
       .window = 8,
       .num_window_blocks = 7,
       .asks = {{.label = "Turn 1",
                 .prompt = kBriefly + " Who was Alan Turing ?",
                 .answers = {kWho},
                 .num_system_words = 12},
                {.at_step = 9,
                 .label = "Turn 2",
                 .prompt = kBriefly + " Who was Alan Turing ? " + kWho + " Where ?",
                 .answers = {"in England and later in America"},
                 .num_system_words = 12},
                {.at_step = 17,
                 .label = "Another chat",
                 .prompt = kBriefly + " Who was Ada Lovelace ?",
                 .answers = {"a mathematician"},
                 .num_system_words = 12},
                {.at_step = 22,
                 .label = "Else",
                 .prompt = "You answer in one word and in capitals",
                 .answers = {"YES SIR"}}}},
  };
  return kScripts;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

}  // namespace octavo::app
