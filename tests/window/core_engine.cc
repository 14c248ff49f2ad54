#include "tests/window/core_engine.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/hash.h"

namespace octavo::testing {
namespace {

constexpr std::int64_t kBytesPerBlock = 4'096, kBytesPerState = 100'000, kBytesPerWindowBlock = 1'024;
constexpr std::size_t kNumWords = 12;

const std::vector<TokenId>& words() {
  static const std::vector<TokenId> ids = [] {
    std::string text;
    for (std::size_t i = 0; i < kNumWords; ++i) text += {' ', 'w', static_cast<char>('a' + i), 'x'};
    return *FakeTokenizer().encode(text, false, false);
  }();
  return ids;
}

scheduler::SchedulerOptions options_of(const CoreEngine::Options& options) {
  return {.block_size = options.block_size,
          .num_blocks = options.num_blocks,
          .bytes_per_block = kBytesPerBlock,
          .max_num_seqs = 8,
          .max_num_batched_tokens = 24,
          .max_model_len = options.max_model_len,
          .num_host_blocks = options.num_host_blocks,
          .num_states = options.num_states,
          .num_host_states = options.num_host_states,
          .bytes_per_state = options.num_states > 0 ? kBytesPerState : 0,
          .window = options.window,
          .num_window_blocks = options.num_window_blocks,
          .num_host_window_blocks = options.num_host_window_blocks,
          .bytes_per_window_block = options.window > 0 ? kBytesPerWindowBlock : 0,
          .preemption_mode = options.preemption_mode,
          .speculative = options.speculative};
}

}  // namespace

// Draws words that mostly follow from the one before, so that guesses of a draft are sometimes right.
class CoreEngine::WordRunner final : public runner::Runner {
 public:
  WordRunner(std::uint64_t seed, bool runs_ahead) : seed_(seed), runs_ahead_(runs_ahead) {}

  std::function<void()> on_execute;
  Counts counts;

  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    on_execute();
    count(step);
    for (const auto& row : step.sequences) {
      const std::size_t num_rows = static_cast<std::size_t>(1 + row.num_draft_tokens);
      for (std::size_t i = 0; i < row.samples.size(); ++i) {
        const auto& target = row.samples[i];
        output.tokens.push_back(target.num_candidates > 0 ? candidates(target) : word(target, last(target)));
        const std::size_t in_draft = i % num_rows;
        if (in_draft + 1 < num_rows && output.tokens.back().token_id != row.draft()[in_draft]) {
          i += num_rows - 1 - in_draft;
        }
      }
    }
    return {};
  }

  // Draws at once, though nobody is told before the end: words follow from those before them.
  bool begin(const scheduler::SchedulerOutput& step) override {
    const auto only_draws = [](const scheduler::ScheduledSequence& row) {
      return row.samples.size() == 1 && row.samples.front().num_candidates == 0;
    };
    if (!runs_ahead_ || step.empty() || step.num_draft_tokens > 0 ||
        !std::ranges::all_of(step.sequences, only_draws))
      return false;
    on_execute();
    count(step);
    std::vector<runner::SampledToken> drawn;
    for (const auto& row : step.sequences) {
      const scheduler::SampleTarget& target = row.samples.front();
      std::optional<TokenId> before = last(target);
      if (target.follows_unknown) {
        before = std::ranges::find(begun_.back(), target.sequence_id, &runner::SampledToken::sequence_id)
                     ->token_id;
        ++counts.rows_ahead;
      }
      drawn.push_back(word(target, before));
    }
    begun_.push_back(std::move(drawn));
    return true;
  }

  Result<void> finish(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    for (const runner::SampledToken& token : begun_.front()) {
      const bool is_wanted =
          std::ranges::find(step.sequences, token.sequence_id, &scheduler::ScheduledSequence::sequence_id) !=
          step.sequences.end();
      if (is_wanted) output.tokens.push_back(token);
    }
    begun_.pop_front();
    return {};
  }

 private:
  void count(const scheduler::SchedulerOutput& step) {
    counts.prefilled_tokens += step.num_prefill_tokens;
    counts.swapped_out_blocks += static_cast<std::int64_t>(step.swap_outs.size());
    counts.swapped_in_blocks += static_cast<std::int64_t>(step.swap_ins.size());
    counts.block_copies += static_cast<std::int64_t>(step.block_copies.size());
  }

  std::uint64_t mix_of(const scheduler::SampleTarget& target) const {
    std::uint64_t mix = hash_combine(hash_combine(seed_, target.seed), target.output_index);
    return hash_combine(mix, target.position());
  }

  static std::optional<TokenId> last(const scheduler::SampleTarget& target) {
    if (target.output_token_ids.empty()) return std::nullopt;
    return target.output_token_ids.back();
  }

  runner::SampledToken word(const scheduler::SampleTarget& target, std::optional<TokenId> before) const {
    const std::uint64_t mix = mix_of(target);
    std::size_t next = (mix >> 16) % kNumWords;
    if (before && mix % 4 != 0) {
      const auto last = std::ranges::find(words(), *before);
      if (last != words().end()) next = (static_cast<std::size_t>(last - words().begin()) + 1) % kNumWords;
    }
    const bool ends = (mix >> 32) % 40 == 0;
    return {.sequence_id = target.sequence_id,
            .token_id = ends ? FakeTokenizer::kEnd : words()[next],
            .logprob = -0.5f};
  }

  runner::SampledToken candidates(const scheduler::SampleTarget& target) const {
    std::uint64_t said = mix_of(target);
    for (const TokenId id : target.output_token_ids)
      said = hash_combine(said, static_cast<std::uint64_t>(id));
    runner::SampledToken token{.sequence_id = target.sequence_id};
    for (std::int32_t i = 0; i < std::min<std::int32_t>(target.num_candidates, kNumWords); ++i) {
      const TokenId id = words()[(said + static_cast<std::uint64_t>(i)) % kNumWords];
      const float logprob = -0.3f - 0.6f * static_cast<float>(i) - 0.05f * static_cast<float>(said % 13);
      token.candidates.push_back({id, logprob, logprob});
    }
    return token;
  }

  const std::uint64_t seed_;
  const bool runs_ahead_;
  std::deque<std::vector<runner::SampledToken>> begun_;
};

CoreEngine::CoreEngine(const Options& options, const Clock& clock)
    : runner_(std::make_unique<WordRunner>(options.seed, options.runs_ahead)),
      core_(options_of(options), {.runner = runner_.get(), .clock = &clock, .tokenizer = &tokenizer_}),
      intake_({.tokenizer = &tokenizer_,
               .num_end_tokens = 1,
               .memory_ends_exactly = options.num_states > 0 || options.window > 0,
               .draw_seed = [this] { return mix64(++num_drawn_seeds_); },
               .unix_time_s = [] { return std::int64_t{0}; }}),
      clock_(clock),
      next_request_(options.first_request) {
  runner_->on_execute = [this] { note_tables(); };
  description_.model.name = "Words " + std::to_string(options.seed % 100);
  description_.model.path = "/models/words.gguf";
  description_.block_size = options.block_size;
  description_.num_blocks = options.num_blocks;
  description_.num_host_blocks = options.num_host_blocks;
  description_.bytes_per_block = kBytesPerBlock;
  description_.num_states = options.num_states;
  description_.num_host_states = options.num_host_states;
  description_.bytes_per_state = options.num_states > 0 ? kBytesPerState : 0;
  description_.window = options.window;
  description_.num_window_blocks = options.num_window_blocks;
  description_.num_host_window_blocks = options.num_host_window_blocks;
  description_.bytes_per_window_block = options.window > 0 ? kBytesPerWindowBlock : 0;
  description_.weight_bytes = 1'000'000;
  description_.working_bytes = 50'000;
  description_.max_model_len = options.max_model_len;
  description_.max_num_seqs = 8;
  publish(/*changed=*/true);
}

CoreEngine::~CoreEngine() = default;

const CoreEngine::Counts& CoreEngine::counts() const { return runner_->counts; }

bool CoreEngine::has_work() const { return core_.has_work() || !commands_.empty(); }

void CoreEngine::step() {
  const bool changed = has_work();
  for (EngineEvent& event : core_.step(std::exchange(commands_, {}))) {
    note_tokens(event);
    events_.push_back(std::move(event));
  }
  note_tables();
  note_taken();
  publish(changed);
}

void CoreEngine::wake() { publish(/*changed=*/false); }

void CoreEngine::publish(bool changed) {
  if (changed) snapshot_is_newest_ = false;
  if (pool_wanted_ && published_scope_ != SnapshotScope::kPool) snapshot_is_newest_ = false;
  if (snapshot_is_newest_ || !std::exchange(snapshot_wanted_, false)) return;
  published_scope_ = std::exchange(pool_wanted_, false) ? SnapshotScope::kPool : SnapshotScope::kSequences;
  snapshot_ = std::make_shared<const KvSnapshot>(core_.snapshot(published_scope_));
  snapshot_is_newest_ = true;
}

std::shared_ptr<const KvSnapshot> CoreEngine::kv_snapshot(SnapshotScope scope) {
  snapshot_wanted_ = true;
  if (scope == SnapshotScope::kPool) pool_wanted_ = true;
  return snapshot_;
}

RequestId CoreEngine::submit(GenerationRequest request) {
  std::vector<GenerationRequest> one;
  one.push_back(std::move(request));
  return submit_all(std::move(one)).front();
}

std::vector<RequestId> CoreEngine::submit_all(std::vector<GenerationRequest> requests) {
  std::vector<RequestId> ids;
  for (GenerationRequest& request : requests) {
    ids.push_back(RequestId{next_request_++});
    commands_.emplace_back(intake_.prepare({ids.back(), std::move(request), clock_.now_us()}));
  }
  return ids;
}

// Also in the middle of a step: what a sequence is given and gives back in one step is seen nowhere else.
void CoreEngine::note_tables() {
  const KvSnapshot now = core_.scheduler().snapshot(SnapshotScope::kSequences);
  for (const SequenceSnapshot& sequence : now.sequences) {
    if (sequence.output_index != 0 || sequence.state == SequenceState::kSwapped) continue;
    if (sequence.block_table.empty()) continue;
    last_tables_[sequence.request_id].sequence_id = sequence.sequence_id;
    last_tables_[sequence.request_id].blocks = sequence.block_table;
    last_tables_[sequence.request_id].noted = ++num_notes_;
  }
}

// What was let go and taken by somebody else is nobody's any more, though the same tokens may come to stand
// in it.
void CoreEngine::note_taken() {
  const metrics::Trace trace = core_.recorder()->read_since(0, event_mark_);
  event_mark_ = trace.next_event_mark;
  for (const BlockEvent& event : trace.block_events) {
    if (event.kind != BlockEventKind::kAlloc) continue;
    for (auto& [request, last] : last_tables_) {
      if (last.sequence_id.value != event.sequence)
        std::ranges::replace(last.blocks, BlockId{event.block}, block::kNoBlock);
    }
  }
}

void CoreEngine::note_tokens(const EngineEvent& event) {
  if (const auto* accepted = std::get_if<RequestAccepted>(&event))
    last_tables_[accepted->request_id].token_ids = accepted->prompt_token_ids;
  const auto* generated = std::get_if<TokensGenerated>(&event);
  if (generated == nullptr || generated->output_index != 0) return;
  std::vector<TokenId>& token_ids = last_tables_[generated->request_id].token_ids;
  token_ids.insert(token_ids.end(), generated->token_ids.begin(), generated->token_ids.end());
}

const CoreEngine::LastTable* CoreEngine::last_table(RequestId request) const {
  const auto found = last_tables_.find(request);
  return found == last_tables_.end() || found->second.blocks.empty() ? nullptr : &found->second;
}

std::vector<TokenId> CoreEngine::tokens_up_to(BlockId block, const KvSnapshot& now) const {
  const auto block_size = static_cast<std::size_t>(now.totals.block_size);
  for (const SequenceSnapshot& sequence : now.sequences) {
    if (sequence.state == SequenceState::kSwapped) continue;
    const auto place = std::ranges::find(sequence.block_table, block);
    if (place == sequence.block_table.end()) continue;
    for (const auto& view : core_.scheduler().sequences_of(sequence.request_id)) {
      if (view.sequence_id != sequence.sequence_id) continue;
      const auto end = block_size * static_cast<std::size_t>(place - sequence.block_table.begin() + 1);
      const auto num_computed = static_cast<std::size_t>(sequence.num_computed_tokens);
      const auto count = std::min({end, num_computed, view.token_ids.size()});
      return {view.token_ids.begin(), view.token_ids.begin() + static_cast<std::ptrdiff_t>(count)};
    }
  }
  const BlockSnapshot& state = now.blocks[index_of(block)];
  if (!state.findable) return {};
  const BlockDetail detail = core_.describe_block(block);
  std::vector<TokenId> token_ids;
  for (const BlockId before : detail.chain) {
    const auto part = core_.describe_block(before).token_ids;
    token_ids.insert(token_ids.end(), part.begin(), part.end());
  }
  token_ids.insert(token_ids.end(), detail.token_ids.begin(), detail.token_ids.end());
  return token_ids;
}

}  // namespace octavo::testing
