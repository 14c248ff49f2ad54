// What the Compare workspace draws: one question, and the answers to it side by side. Plain values;
// app/window/comparison writes them between frames.
//
// Every figure comes from the engine: log-probabilities with the tokens, block tables from its snapshots,
// copies from its events. A log-probability is the model's own, natural, taken before temperature and all
// that cuts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/api/template_values.h"
#include "engine/base/ids.h"

namespace octavo::ui {

using ColumnId = Id<struct ColumnTag, std::uint64_t>;

enum class ComparisonKind { kSamples, kBeams, kSettings };
inline constexpr std::int32_t kFewestCompared = 2;
inline constexpr std::int32_t kMostCompared = 8;  // of one run; forks come on top
inline constexpr std::size_t kMostColumns = 16;

// What is asked with in one column, where settings stand side by side. The seed is not among them: it is the
// same for all, so that what differs comes from the settings.
struct ComparedSettings {
  SamplingParams sampling = {};
  std::string system_prompt = {};       // empty: none
  TemplateValues template_values = {};  // that the model's chat template is told
};

// What the next run asks for.
struct ComparisonSetup {
  ComparisonKind kind = ComparisonKind::kSamples;
  std::int32_t num_samples = 4;
  std::int32_t beam_width = 4;
  SamplingParams sampling;                 // of samples; length and penalties of beams; the seed of all kinds
  std::vector<ComparedSettings> variants;  // kSettings: A, B, ...; the seed of `sampling` counts
};

// "Settings A"
inline std::string settings_name(std::size_t index) {
  return std::string("Settings ") + static_cast<char>('A' + index);
}

struct TokenAlternative {
  TokenId token_id = -1;
  std::string text;  // valid UTF-8; of a control token its name
  float logprob = 0.0f;
  bool ends_text = false;  // there is nothing to continue behind it
};

struct ComparedToken {
  TokenId token_id = -1;
  // Of ComparedColumn::text. A character that several tokens spell belongs to the last of them, and a token
  // that ends the text has none.
  std::uint32_t begin = 0, end = 0;
  float logprob = 0.0f;
  float cumulative_logprob = 0.0f;
  bool forced = false;                           // given with the fork, not drawn here
  std::vector<TokenAlternative> alternatives{};  // best first, as many as the engine returned
};

enum class ColumnPhase { kWaiting, kRunning, kPreempted, kFinished, kStopped, kFailed };

inline bool has_ended(ColumnPhase phase) {
  return phase == ColumnPhase::kFinished || phase == ColumnPhase::kStopped || phase == ColumnPhase::kFailed;
}

// One block of an answer's table, in logical order.
struct ColumnBlock {
  BlockId block_id;
  std::int32_t filled = 0;               // slots
  bool shared = false;                   // several sequences' tables named it while this answer had it
  std::optional<BlockId> copied_from{};  // copy-on-write gave it to this answer
};

// As the newest snapshot in which the answer still ran shows it.
struct ColumnMemory {
  std::vector<ColumnBlock> blocks;
  std::int32_t num_shared = 0;
  std::int32_t num_own = 0;
  std::int32_t num_copied = 0;
  std::int32_t num_computed_tokens = 0;  // prompt and output; the newest token has no keys and values yet
  std::int64_t step = -1;                // of the snapshot; -1: never seen
  bool running = false;                  // it is in the newest snapshot
  bool swapped_out = false;              // the blocks are in the host pool
};

struct ComparedColumn {
  ColumnId id;
  std::string name;  // "Sample 1", "Beam 1", "Settings A", "Fork of Sample 1"
  ColumnPhase phase = ColumnPhase::kWaiting;
  std::optional<std::uint64_t> seed;  // none for beams
  std::int32_t output_index = 0;      // the stream of `seed` that it draws from
  SamplingParams sampling;
  std::string system_prompt;           // that was sent; empty: none
  TemplateValues template_values;      // that the chat template was told
  std::int32_t num_prompt_tokens = 0;  // before the first of `tokens`; 0: not known yet
  std::int32_t num_left_out = 0;       // of the chat's messages, the oldest, for want of room
  std::string differences;             // settings that differ from another column's, a few words
  std::string text;                    // valid UTF-8, shown as data
  std::vector<ComparedToken> tokens;
  // Goes up whenever `tokens` did anything else than grow at the end.
  std::uint32_t rewritten = 0;
  std::int32_t num_forced = 0;     // leading tokens that came with the fork
  std::int32_t shared_prefix = 0;  // tokens at the start that at least one other column has as well
  std::optional<double> tokens_per_second;
  std::optional<double> first_token_ms;
  std::optional<double> score;  // of a beam, after the length penalty
  std::string finish;           // a few words; empty while it runs
  std::string error;            // one sentence
  std::optional<bool> repeats;  // after "Run again": whether the tokens are the same as before
  ColumnMemory memory;

  double cumulative_logprob() const {
    return tokens.empty() ? 0.0 : static_cast<double>(tokens.back().cumulative_logprob);
  }
  std::optional<double> mean_logprob() const {
    if (tokens.empty()) return std::nullopt;
    return cumulative_logprob() / static_cast<double>(tokens.size());
  }
};

struct BeamTreeNode {
  std::int32_t parent = -1;  // -1: follows the prompt
  std::int32_t step = 0;     // 0-based
  std::int32_t rank = -1;    // among the beams that went on, 0 best; -1: born as the end of a hypothesis
  TokenId token_id = -1;
  std::string text;  // of this token alone, valid UTF-8
  float logprob = 0.0f;
  double cumulative_logprob = 0.0;
};

struct BeamTree {
  std::int32_t width = 0;
  double length_penalty = 1.0;
  std::int32_t num_steps = 0;
  std::vector<BeamTreeNode> nodes;  // a parent stands before its children
  std::vector<std::int32_t> live;   // of the newest step, best first; empty when the search is over
  std::vector<std::int32_t>
      final;  // last nodes of the answers, best score first; empty until the search is over
};

// The tables of all columns together, in the snapshot that showed most of them at once.
struct ComparisonMemory {
  std::int32_t num_tables = 0;
  std::int32_t num_logical_blocks = 0;  // sum of their lengths
  std::int32_t num_blocks = 0;          // each physical block once
  std::int32_t num_shared_blocks = 0;   // named by more than one of them
  std::int64_t saved_bytes = 0;         // (logical - distinct) x bytes of a block
  std::int64_t step = -1;               // -1: none yet
};

// A beam search's tables belong to seats: which beam sits where is the engine's affair.
struct SeatMemory {
  std::int32_t seat = 0;
  ColumnMemory memory;
};

struct ComparisonState {
  std::vector<ChatMessage> messages;  // of the prompt, the last is the question; empty: nothing to compare
  std::string question;               // text of the last message
  ChatId chat_id;                     // the chat that it was taken from; 0: typed here
  MessageId message_id;
  std::string chat_title;
  ComparisonSetup setup;

  std::vector<ComparedColumn> columns;
  ComparisonKind shown_kind = ComparisonKind::kSamples;  // of the columns
  BeamTree beams;
  std::vector<SeatMemory> seats;  // of a beam search
  ComparisonMemory memory;
  bool running = false;
  double progress = 0.0;               // 0..1: tokens generated of the most that were asked for
  std::int32_t num_prompt_tokens = 0;  // 0: not known yet
  std::int32_t num_cached_tokens = 0;  // of the prompt, found when the first of the requests began
  std::int32_t num_alternatives = 0;   // asked for with each token
  std::string problem;                 // why nothing could be run, one sentence
};

// nullptr when there is none.
inline const ComparedColumn* find_column(const ComparisonState& comparison, ColumnId id) {
  for (const ComparedColumn& column : comparison.columns) {
    if (column.id == id) return &column;
  }
  return nullptr;
}

}  // namespace octavo::ui
