#include "app/window/memory/tour_trial.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// What the answers of a trial go on with.
constexpr std::string_view kText =
    "Alan Turing is a computer scientist and mathematician renowned for his work on codes and machines "
    "Four score and seven years ago our fathers brought forth a new nation "
    "The cat sat on the warm stone wall under the old tree by the river near the house all day long "
    "and slept dreamt purred listened waited until rain came then went home quickly quietly happily "
    "It was the best of times it was the worst of times it was the age of wisdom "
    "it was the age of foolishness";

constexpr std::size_t kMostWords = 24;     // of a text
constexpr std::int64_t kMostLetters = 24;  // of a word
constexpr std::size_t kAnswerWords = 8;
constexpr std::size_t kBeamChoices = 7;     // words that a beam chooses from
constexpr std::int32_t kSecondArrives = 2;  // step, so that the first text is in the cache

// Words of the tour's own from a place that the text decides, and `which` of several answers.
std::string continuation(const std::string& prompt, std::uint64_t which) {
  static const std::vector<std::string> kWords = words_of(kText);
  std::uint64_t place = mix64(which);
  for (const char c : prompt) place = hash_combine(place, static_cast<unsigned char>(c));
  std::string text;
  for (std::size_t i = 0; i < kAnswerWords; ++i)
    text += (i == 0 ? "" : " ") + kWords[(place + i) % kWords.size()];
  return text;
}

// Different words, for two candidates of a beam must not be the same.
std::string beam_choices(const std::string& prompt) {
  std::vector<std::string> choices;
  for (std::uint64_t which = 0; choices.size() < kBeamChoices; ++which) {
    for (const std::string& word : words_of(continuation(prompt, which))) {
      const bool is_new = std::find(choices.begin(), choices.end(), word) == choices.end();
      if (is_new && choices.size() < kBeamChoices) choices.push_back(word);
    }
  }
  std::string text;
  for (const std::string& word : choices) text += word + " ";
  return text;
}

Error cannot_play(std::string sentence) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(sentence)};
}

Result<void> check_text(const std::string& which, const std::string& prompt) {
  const std::vector<std::string> words = words_of(prompt);
  if (words.size() > kMostWords)
    return cannot_play(which + " has " + with_thousands(words.size()) + " words; shorten it to " +
                       std::to_string(kMostWords) + ".");
  for (const std::string& word : words) {
    const std::int64_t num_letters = std::ranges::count_if(word, [](char c) { return !continues_utf8(c); });
    if (num_letters > kMostLetters)
      return cannot_play("A word of " + std::to_string(num_letters) +
                         " letters has no room in a slot; use words of up to " +
                         std::to_string(kMostLetters) + ".");
  }
  return {};
}

TourAsk trial_ask(const std::string& label, const std::string& prompt, ui::TrialAnswers answers) {
  TourAsk ask{.label = label, .prompt = prompt};
  switch (answers) {
    case ui::TrialAnswers::kOneSample: ask.answers = {continuation(prompt, 0)}; break;
    case ui::TrialAnswers::kThreeSamples:
      for (const std::uint64_t which : {0u, 1u, 2u}) ask.answers.push_back(continuation(prompt, which));
      break;
    case ui::TrialAnswers::kTwoBeams:
      ask.answers = {beam_choices(prompt)};
      ask.beams = 2;
      ask.num_tokens = static_cast<std::int32_t>(kAnswerWords);
      break;
  }
  return ask;
}

// Room for all answers of a request behind its prompt; what two requests share is to spare.
std::int32_t blocks_for(const std::vector<TourAsk>& asks) {
  std::int32_t num_blocks = 0;
  for (const TourAsk& ask : asks) {
    const auto num_words = static_cast<std::int32_t>(words_of(ask.prompt).size() + kAnswerWords);
    const auto num_outputs = ask.beams.value_or(static_cast<std::int32_t>(ask.answers.size()));
    const std::int32_t num_shared = static_cast<std::int32_t>(words_of(ask.prompt).size()) / kTourBlockSize;
    const std::int32_t num_each = (num_words + kTourBlockSize - 1) / kTourBlockSize - num_shared + 1;
    num_blocks += num_shared + num_each * num_outputs;
  }
  return std::max(8, num_blocks);
}

}  // namespace

ui::TourTrial first_trial() {
  return {.prompts = {"The cat sat on the warm stone wall", "The cat sat on the old roof"},
          .answers = ui::TrialAnswers::kThreeSamples};
}

Result<TourScript> trial_script(const ui::TourTrial& trial) {
  const auto& [first, second] = trial.prompts;
  const bool has_second = !words_of(second).empty();
  if (words_of(first).empty()) return cannot_play("Type a few words first.");
  OCTAVO_TRY_VOID(check_text(has_second ? "The first text" : "The text", first));
  OCTAVO_TRY_VOID(check_text("The second text", second));
  TourScript script{.title = kTrialTitle};
  script.asks.push_back(trial_ask(has_second ? "First" : "Answer", first, trial.answers));
  if (has_second) {
    script.asks.push_back(trial_ask("Second", second, trial.answers));
    script.asks.back().at_step = kSecondArrives;
  }
  script.num_blocks = blocks_for(script.asks);
  script.beginning = "Your text, in a pool of " + count_text(script.num_blocks, "block") +
                     " of four words. No model answers: the text decides which words follow.";
  script.end = "The scheduler and the blocks are those that serve every chat of this window.";
  return script;
}

}  // namespace octavo::app
