// What the batch of the Compare workspace draws: many prompts, each answered with several settings, as a
// grid; and a blind vote about the answers. Plain values; app/window/compare writes them between frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ui/compare_state.h"

namespace octavo::ui {

inline constexpr std::size_t kMostBatchPrompts = 1000;

enum class PromptFormat { kLines, kCsv };  // a prompt a line; RFC 4180, a header that names a column "prompt"

struct BatchCell {
  ColumnPhase phase = ColumnPhase::kWaiting;
  std::uint64_t seed = 0;  // the same for all settings of a prompt
  std::string text = {};   // valid UTF-8, shown as data
  std::int32_t num_tokens = 0;
  double sum_logprob = 0;   // natural
  std::string finish = {};  // a few words; empty while it runs
  std::string error = {};   // one sentence
  // The engine's account of its prompt, once it has ended.
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_computed_tokens = 0;  // of these; the others were found in blocks
};

struct BatchRow {
  std::string prompt;
  std::vector<BatchCell> cells;  // one for each of the settings
};

// One prompt and its answers in an order that was drawn. Nothing else may be shown before the vote has ended.
struct Ballot {
  std::string prompt;
  std::vector<std::string> answers;  // by place
};

struct VoteState {
  Ballot ballot;
  std::size_t index = 0;  // of this ballot
  std::size_t count = 0;
};

struct VoteScore {
  std::int32_t num_wins = 0, num_ties = 0, num_losses = 0;
  double share = 0;          // of wins among all ballots
  double low = 0, high = 0;  // its 95 % interval by Wilson's score method
};

struct VotedBallot {
  std::size_t row = 0;
  std::vector<std::size_t> order;          // the setting at each place
  std::optional<std::size_t> winner = {};  // a setting; none: a tie
};

struct VoteResult {
  std::vector<VoteScore> scores;  // one for each of the settings
  std::vector<VotedBallot> ballots;
  std::int32_t num_left_out = 0;  // prompts without an answer from every one of the settings
  std::uint64_t seed = 0;         // of the orders
};

// Prompts that were read from a file, for the field to take.
struct PromptFile {
  std::string name = {};
  std::string text = {};
  PromptFormat format = PromptFormat::kLines;
  std::uint32_t number = 0;  // goes up with each file; 0: none was read
};

struct BatchState {
  // What the next run asks with.
  std::vector<ComparedSettings> setup;
  std::optional<std::uint64_t> setup_seed;  // of the first prompt; none: drawn

  // What was asked.
  std::vector<ComparedSettings> settings;  // of the columns: A, B, ...
  std::vector<std::string> differences;    // of each from the others, a few words
  std::vector<BatchRow> rows;              // empty: nothing was run
  bool running = false;
  double progress = 0.0;             // 0..1: of the answers, what has ended
  std::string problem;               // why nothing could be run, one sentence
  PromptFile file;                   // the newest one
  std::optional<VoteState> vote;     // under way: nothing but its ballot may be shown
  std::optional<VoteResult> result;  // of the newest one
};

}  // namespace octavo::ui
