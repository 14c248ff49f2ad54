// One question and the answers to it side by side: asks the engine for samples, beams or several settings,
// and folds what it reports into ui::ComparisonState.
//
// A request of a comparison is a *lane*: n samples are one lane with n columns, settings are one lane each, a
// fork is a lane whose prompt ends with the tokens before the fork and the alternative. Settings have one
// seed in common, drawn here unless a person chose it: what differs between their answers is not chance. What
// a lane asked for and the seed that it had are kept, so that the same can be asked again; the prompt is then
// given as the token ids of the first time, because a chat template may write the date.
//
// UI thread. The clock and the state must outlive the comparison, the engine until `detach_engine`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat/chat.h"
#include "engine/base/clock.h"
#include "engine/base/draw_seed.h"
#include "engine/engine.h"
#include "engine/tokenizer/detokenizer.h"
#include "ui/compare_state.h"

namespace octavo::app {

class Comparison {
 public:
  Comparison(const Clock& clock, SeedSource draw_seed, ui::ComparisonState& state)
      : clock_(&clock), draw_seed_(std::move(draw_seed)), state_(&state) {}

  void attach_engine(Engine& engine) { engine_ = &engine; }
  // What still runs ends with the sentence `why`.
  void detach_engine(const std::string& why);

  struct Source {
    std::vector<ChatMessage> messages = {};  // the last is the question
    ChatId chat_id = {};                     // 0: none
    MessageId message_id = {};
    std::string chat_title = {};
    SamplingParams sampling = {};
    TemplateValues template_values = {};
  };
  // Shows this question, with no columns yet. What ran for another one is cancelled.
  void open(Source source);
  void change_setup(const ui::ComparisonSetup& setup);

  // What a lane sends: all of the question's messages, or those of them that the context holds.
  struct LanePrompt {
    ChatPrompt prompt = {};
    std::int32_t num_left_out = 0;
  };
  // Asks for answers. REQUIRES: of settings a prompt for each of the variants, else one
  void run(const std::vector<LanePrompt>& prompts);
  // Why nothing can be run.
  void refuse(std::string problem);
  bool can_run_again() const { return engine_ != nullptr && !lanes_.empty(); }
  // REQUIRES: can_run_again().
  void run_again();
  void stop();
  // One answer; the others go on. Beams are chosen among each other and stop together: no effect on one.
  void stop_column(ui::ColumnId column_id);
  void fork(ui::ColumnId column_id, std::size_t token_index, std::size_t alternative);

  // False when the event belongs to no request of the comparison.
  bool fold(const EngineEvent& event);
  // After the events of a poll: figures that need all columns.
  void finish_poll();
  // Copies are known by sequence; call it before `fold_snapshot` of the same poll.
  void fold_trace(const Engine::Trace& trace);
  void fold_snapshot(const KvSnapshot& snapshot);

  bool running() const { return state_->running; }

  // What a sequence of one of its requests is called: "Compare · Sample 2"; of a beam search, whose beams
  // change places, its seat. nullopt: it is no request of the comparison.
  std::optional<std::string> name_of(RequestId request_id, std::int32_t output_index) const;

  // The answer as a message of a chat; nullopt while it goes on, and when it is empty.
  std::optional<Message> message_of(ui::ColumnId column_id) const;
  // The beginning of an answer that another token goes on: what stands before `token_index`, and the
  // alternative. nullopt where there is no such alternative, and where it ends the text.
  std::optional<Message> beginning_of(ui::ColumnId column_id, std::size_t token_index,
                                      std::size_t alternative) const;

 private:
  struct Lane {
    GenerationRequest request;
    std::vector<ui::ColumnId> columns;  // by output index
    std::optional<RequestId> request_id;
    std::vector<TokenId> prompt_token_ids;  // without what a fork forces
    std::vector<TokenId> forced;            // of a fork: tokens before it, and the alternative
    std::int32_t num_cached_tokens = 0;
    RequestMetrics metrics;  // once it has ended
    bool ended = false;
  };
  // What a column's text needs while it grows.
  struct Growth {
    tokenizer::Detokenizer detokenizer;
    std::size_t told_bytes = 0;  // of text, as the engine gave it out
    std::size_t num_forced_bytes = 0;
    std::int64_t first_token_us = 0;
    std::int64_t newest_token_us = 0;
    std::int64_t submitted_us = 0;
    std::int32_t num_drawn = 0;
    std::int32_t leaf = -1;            // of a beam under way: its last node
    std::vector<TokenId> before = {};  // the tokens before "Run again"
    std::optional<FinishReason> finish_reason = {};
    StopReason stop_reason = {};
  };

  // Asking.
  void cancel_all();
  void clear();
  void make_lanes(const std::vector<LanePrompt>& prompts);
  ui::ComparedColumn new_column(Lane& lane, std::string name);
  void add_lane(const LanePrompt& prompt, const SamplingParams& sampling,
                const std::vector<std::string>& names);
  void submit_lanes();
  void prepare_again(Lane& lane);
  void force_tokens(ui::ComparedColumn& column, const ui::ComparedColumn& parent, std::size_t token_index,
                    const ui::TokenAlternative& alternative);
  void show_differences();

  // Folding.
  void fold_event(Lane& lane, const RequestAccepted& event);
  void fold_event(Lane& lane, const RequestAdmitted& event);
  void fold_event(Lane& lane, const TokensGenerated& event);
  void fold_event(Lane& lane, const BeamsAdvanced& event);
  void fold_event(Lane& lane, const RequestPreempted& event);
  void fold_event(Lane&, const PromptProgress&) {}  // nobody here asks for these
  void fold_event(Lane&, const EmbeddingComputed&) {}
  void fold_event(Lane& lane, const OutputFinished& event);
  void fold_event(Lane& lane, const RequestFinished& event);
  void fold_event(Lane& lane, const RequestFailed& event);
  void append_token(ui::ComparedColumn& column, Growth& growth, TokenId token, float logprob);
  std::vector<ui::TokenAlternative> alternatives_of(const std::vector<TokenLogprob>& top) const;
  void note_time(ui::ComparedColumn& column, Growth& growth) const;
  void restart_text(ui::ComparedColumn& column, Growth& growth);
  void show_live_beams(Lane& lane);
  void show_beam(ui::ComparedColumn& column, Growth& growth, std::int32_t leaf);
  void add_beam_step(const BeamStep& step);
  void find_final_nodes(const Lane& lane);
  void end_text(ui::ComparedColumn& column, Growth& growth);
  void end_lane(Lane& lane, ui::ColumnPhase phase, const std::string& finish, const std::string& error);
  void share_prefixes();
  void count_progress();
  ui::ColumnMemory memory_of(const SequenceSnapshot& sequence, const KvSnapshot& snapshot) const;
  static void keep_sharing(const ui::ColumnMemory& before, ui::ColumnMemory& memory);
  void count_memory(const std::vector<const SequenceSnapshot*>& sequences, const KvSnapshot& snapshot);

  Lane* find_lane(RequestId request_id);
  const Lane* lane_of(ui::ColumnId id) const;
  ui::ComparedColumn* find_column(ui::ColumnId id);
  ui::ComparedColumn* column_of(const Lane& lane, std::int32_t output_index);
  Growth& growth_of(ui::ColumnId id) { return growth_.at(id); }

  const Clock* clock_;
  SeedSource draw_seed_;
  ui::ComparisonState* state_;
  Engine* engine_ = nullptr;
  std::vector<Lane> lanes_;
  std::map<ui::ColumnId, Growth> growth_;
  std::vector<tokenizer::Detokenizer>
      node_texts_;  // of each node of the beam tree, what it leaves unfinished
  // Copy-on-write and copies of a prefix that ends inside a block: (sequence, target) -> source.
  std::map<std::pair<std::uint64_t, std::int32_t>, std::int32_t> copies_;
  std::uint64_t next_column_ = 1;
  std::int32_t num_forks_ = 0;
};

// ---- pure parts, for tests

// Tokens at the start that two lists have in common.
std::int32_t common_prefix(const std::vector<ui::ComparedToken>& a, const std::vector<ui::ComparedToken>& b);

}  // namespace octavo::app
