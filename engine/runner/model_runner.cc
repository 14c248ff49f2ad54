#include "engine/runner/model_runner.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"

namespace octavo::runner {
namespace {

ActivationType activation_type_of(kernels::Activation activation) {
  switch (activation) {
    case kernels::Activation::kF32: return ActivationType::kF32;
    case kernels::Activation::kInt8: return ActivationType::kInt8;
    case kernels::Activation::kInt16: return ActivationType::kInt16;
  }
  return ActivationType::kF32;
}

KvCacheType kv_cache_type_of(kernels::KvType type) {
  switch (type) {
    case kernels::KvType::kF32: return KvCacheType::kF32;
    case kernels::KvType::kF16: return KvCacheType::kF16;
    case kernels::KvType::kBf16: return KvCacheType::kBf16;
    case kernels::KvType::kInt8: return KvCacheType::kInt8;
    case kernels::KvType::kFp8E4m3: return KvCacheType::kFp8E4m3;
    case kernels::KvType::kFp8E5m2: return KvCacheType::kFp8E5m2;
  }
  return KvCacheType::kF16;
}

constexpr double kShareOfWeights = 0.9;  // of loading, where steps are prepared too

// What the `row`-th row of a sequence draws: of a draft each row, else the last one.
std::span<const scheduler::SampleTarget> samples_at(const scheduler::ScheduledSequence& sequence,
                                                    std::int32_t row) {
  const std::span<const scheduler::SampleTarget> all = sequence.samples;
  if (sequence.num_draft_tokens > 0) return all.subspan(static_cast<std::size_t>(row), 1);
  const bool is_last = static_cast<std::size_t>(row) + 1 == sequence.token_ids.size();
  return is_last ? all : all.first(0);
}

SampledToken sampled_token(const scheduler::SampleTarget& target, const kernels::DrawnToken& drawn) {
  SampledToken token{.sequence_id = target.sequence_id, .token_id = drawn.token_id};
  token.invalid_logits = drawn.token_id < 0;
  if (!token.invalid_logits) token.logprob = drawn.logprob;
  return token;
}

// LongRoPE's factors follow from the longest context that is allowed: see limit_context().
void choose_rotations(RunnerParts& parts) {
  if (!parts.tensors.short_rope) return;
  const bool is_short = model::limit_context(parts.tensors, parts.config, parts.plan.max_model_len);
  const std::string original = std::to_string(parts.config.rope.original_context_length);
  std::string& notice = parts.plan.notice;
  notice += notice.empty() ? "" : "; ";
  notice += is_short ? "using LongRoPE's factors for contexts of up to " + original +
                           " tokens, because max_model_len is no larger"
                     : "using LongRoPE's factors for contexts longer than " + original +
                           " tokens; set max_model_len to that or less to use the factors for short contexts";
}

// Progress of a part of what there is to do.
model::LoadProgress part_of(const model::LoadProgress& progress, double begin, double end) {
  if (!progress) return {};
  return [&progress, begin, end](double fraction) { return progress(begin + (end - begin) * fraction); };
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::load(RunnerParts parts,
                                                       const model::LoadProgress& progress) {
  kernels::Backend& backend = *parts.backend;
  choose_rotations(parts);
  const double share_of_weights = backend.steps_to_rehearse().empty() ? 1.0 : kShareOfWeights;
  OCTAVO_TRY(model::Weights weights,
             model::prepare_weights(std::move(parts.tensors), parts.plan.dtype, backend,
                                    part_of(progress, 0.0, share_of_weights)));
  OCTAVO_TRY_VOID(parts.source->verify_unchanged());
  OCTAVO_TRY(auto transformer,
             model::Transformer::create(parts.config, std::move(weights), backend,
                                        parts.plan.max_num_batched_tokens, parts.plan.window > 0));
  OCTAVO_TRY_VOID(backend.reserve_step(parts.plan.step_shape));
  OCTAVO_TRY(Pools pools, allocate_pools(parts.plan, backend));
  if (pools.device) {
    OCTAVO_TRY_VOID(transformer.prepare_steps(*pools.device, part_of(progress, share_of_weights, 1.0)));
  }
  return std::unique_ptr<ModelRunner>(
      new ModelRunner(std::move(parts), std::move(transformer), std::move(pools)));
}

Result<ModelRunner::Pools> ModelRunner::allocate_pools(const RunnerPlan& plan, kernels::Backend& backend) {
  Pools pools;
  const bool has_layers = plan.kv_layout.num_layers() > 0;  // else all have a window
  if (has_layers) {
    OCTAVO_TRY(pools.device, backend.allocate_kv_cache(plan.kv_layout, plan.num_blocks));
  }
  if (has_layers && plan.num_host_blocks > 0) {
    OCTAVO_TRY(pools.host, backend.allocate_host_kv_cache(plan.kv_layout, plan.num_host_blocks));
  }
  if (plan.num_window_blocks > 0) {
    OCTAVO_TRY(pools.windows, backend.allocate_kv_cache(plan.window_layout, plan.num_window_blocks));
  }
  if (plan.num_host_window_blocks > 0) {
    OCTAVO_TRY(pools.host_windows,
               backend.allocate_host_kv_cache(plan.window_layout, plan.num_host_window_blocks));
  }
  if (plan.num_states > 0) {
    OCTAVO_TRY(pools.states, backend.allocate_state_cache(plan.state_layout, plan.num_states));
  }
  if (plan.num_host_states > 0) {
    OCTAVO_TRY(pools.host_states, backend.allocate_host_state_cache(plan.state_layout, plan.num_host_states));
  }
  return pools;
}

ModelRunner::ModelRunner(RunnerParts parts, model::Transformer transformer, Pools pools)
    : config_(std::move(parts.config)),
      plan_(std::move(parts.plan)),
      backend_(std::move(parts.backend)),
      is_waited_for_(backend_->device_bytes().has_value()),
      transformer_(std::move(transformer)),
      pools_(std::move(pools)),
      clock_(std::move(parts.clock)),
      sampler_(config_.vocabulary_size, std::move(parts.end_token_ids), *backend_),
      masks_(config_.vocabulary_size),
      expert_layers_(transformer_.expert_layers()) {
  logits_.resize(static_cast<std::size_t>(kLogitsRows) * static_cast<std::size_t>(config_.vocabulary_size));
  log_sums_.resize(static_cast<std::size_t>(kLogitsRows));
  piece_maxima_.resize(
      static_cast<std::size_t>(kLogitsRows * kernels::num_logits_pieces(config_.vocabulary_size)));
}

Result<void> ModelRunner::execute(const scheduler::SchedulerOutput& step, RunnerOutput& output) {
  output.tokens.clear();
  output.prompt_logprobs.clear();
  output.hidden_states.clear();
  drawn_rows_.clear();
  draws_.clear();
  input_.assemble(step, plan_.kv_layout.block_size);
  move_blocks(output);
  move_states_and_windows(output);
  if (config_.guesses_next_tokens && step.num_draft_tokens > 0) {
    OCTAVO_TRY_VOID(guess_next_tokens(step));
    input_.assemble(step, plan_.kv_layout.block_size);  // with these
  }
  logits_rows_.clear();
  const std::span<std::int32_t> chosen = begin_experts(step, output);
  if (!step.empty()) {
    const bool draws_are_known = !adjusts_logits(step);
    if (draws_are_known) choose_logits_rows(step);
    transformer_.forward(input_.batch(), input_.token_ids(), caches(), chosen,
                         {.rows = drawn_rows_, .draws = draws_});
    masks_.compute(step, backend_.get());  // while a device computes
    if (!draws_are_known) choose_logits_rows(step);
    OCTAVO_TRY_VOID(draw_on_backend());
    OCTAVO_TRY_VOID(deliver(step, output));
    read_hidden_states(step, output);
  }
  note_times(output);
  return backend_->status();
}

// Where a device draws, and nothing else is asked of any row, or of what moves.
bool ModelRunner::may_begin(const scheduler::SchedulerOutput& step) const {
  if (step.empty() || std::ssize(step.sequences) > backend_->most_started_draws()) return false;
  if (pools_.device == nullptr) return false;
  const bool moves_other_memory = !step.swap_outs.empty() || !step.swap_ins.empty() ||
                                  !step.state_moves.empty() || !step.window_moves.empty();
  if (moves_other_memory || step.num_draft_tokens > 0 || config_.guesses_next_tokens) return false;
  if (reports_experts_ && !expert_layers_.empty()) return false;
  return std::ranges::all_of(step.sequences, [](const scheduler::ScheduledSequence& sequence) {
    if (sequence.samples.size() != 1 || sequence.pooling || sequence.sampling->prompt_logprobs) return false;
    const scheduler::SampleTarget& target = sequence.samples.front();
    return !Sampler::may_adjust(*sequence.sampling, target) &&
           Sampler::backend_draw(*sequence.sampling, target).has_value();
  });
}

bool ModelRunner::begin(const scheduler::SchedulerOutput& step) {
  if (!may_begin(step)) return false;
  input_.assemble(step, plan_.kv_layout.block_size);
  name_drawn_tokens(step);
  backend_->copy_blocks(*pools_.device, input_.block_copies());
  choose_logits_rows(step);
  const kernels::StepDraws draws{.rows = drawn_rows_, .draws = draws_};
  transformer_.forward(input_.batch(), input_.token_ids(), caches(), {}, draws);
  transformer_.start_draws(draws);
  BegunStep& begun = begun_.emplace_back();
  for (const scheduler::ScheduledSequence& sequence : step.sequences) begun.push_back(sequence.sequence_id);
  return true;
}

// Behind a step that was begun comes one that was scheduled ahead: its rows begin with what that one draws,
// in the same order.
void ModelRunner::name_drawn_tokens(const scheduler::SchedulerOutput& step) {
  if (begun_.empty()) return;
  const BegunStep& before = begun_.back();
  auto drawn = before.begin();
  for (std::size_t row = 0; row < step.sequences.size(); ++row) {
    drawn = std::find(drawn, before.end(), step.sequences[row].sequence_id);
    input_.set_token(input_.first_row(row),
                     kernels::drawn_token(static_cast<std::int32_t>(drawn - before.begin())));
  }
}

Result<void> ModelRunner::finish(const scheduler::SchedulerOutput& step, RunnerOutput& output) {
  output = {};
  const BegunStep drawn_for = take_begun();
  if (auto status = backend_->status(); !status) {
    while (!begun_.empty()) take_begun();
    return status;
  }
  auto next = step.sequences.begin();
  for (std::size_t i = 0; i < drawn_.size() && next != step.sequences.end(); ++i) {
    if (next->sequence_id != drawn_for[i]) continue;
    output.tokens.push_back(sampled_token(next->samples.front(), drawn_[i]));
    ++next;
  }
  return {};
}

// What it drew is in drawn_.
ModelRunner::BegunStep ModelRunner::take_begun() {
  BegunStep begun = std::move(begun_.front());
  begun_.pop_front();
  drawn_.resize(begun.size());
  backend_->take_draws(drawn_);
  return begun;
}

std::vector<SequenceId> ModelRunner::settle(const scheduler::SchedulerOutput& step,
                                            std::span<const scheduler::CommittedToken> tokens) {
  if (pools_.states && step.num_draft_tokens > 0) accept_drafts(step, tokens);
  if (!config_.guesses_next_tokens) return {};
  return guesser_.follow(step, tokens, plan_.kv_layout.block_size, transformer_, *pools_.device);
}

// All tokens of a draft's step but the newest are behind the one that was known.
void ModelRunner::accept_drafts(const scheduler::SchedulerOutput& step,
                                std::span<const scheduler::CommittedToken> tokens) {
  num_accepted_.clear();
  for (const scheduler::ScheduledSequence& sequence : step.sequences) {
    const auto num_drawn = static_cast<std::int32_t>(
        std::ranges::count(tokens, sequence.sequence_id, &scheduler::CommittedToken::sequence_id));
    num_accepted_.push_back(sequence.num_draft_tokens == 0 ? 0 : std::max(0, num_drawn - 1));
  }
  transformer_.accept_drafts(input_.batch(), num_accepted_, *pools_.states);
}

Result<void> ModelRunner::guess_next_tokens(const scheduler::SchedulerOutput& step) {
  const auto vocabulary_size = static_cast<std::ptrdiff_t>(config_.vocabulary_size);
  const auto best_tokens = [&](std::span<const std::int32_t> rows, std::span<TokenId> best) -> Result<void> {
    transformer_.predicted_logits(rows, logits_of(rows), {log_sums_, piece_maxima_});
    OCTAVO_TRY_VOID(backend_->status());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto begin = logits_.begin() + static_cast<std::ptrdiff_t>(i) * vocabulary_size;
      best[i] = static_cast<TokenId>(std::max_element(begin, begin + vocabulary_size) - begin);
    }
    return {};
  };
  return guesser_.guess(step, plan_.kv_layout.block_size, transformer_, *pools_.device, best_tokens);
}

// Where the choices of this step are to be written; empty: nobody asks.
std::span<std::int32_t> ModelRunner::begin_experts(const scheduler::SchedulerOutput& step,
                                                   RunnerOutput& output) const {
  output.experts.reset();
  if (!reports_experts_ || expert_layers_.empty() || step.empty()) return {};
  ExpertChoices& experts = output.experts.emplace();
  experts.num_experts = config_.experts.num_experts;
  experts.num_used = config_.experts.num_used;
  experts.layers = expert_layers_;
  for (const scheduler::ScheduledSequence& sequence : step.sequences)
    experts.rows.push_back(
        {sequence.sequence_id, sequence.request_id, static_cast<std::int32_t>(sequence.token_ids.size())});
  experts.chosen.resize(expert_layers_.size() * static_cast<std::size_t>(input_.num_tokens()) *
                        static_cast<std::size_t>(experts.num_used));
  return experts.chosen;
}

Result<std::span<const float>> ModelRunner::compute_logits(const scheduler::SchedulerOutput& step,
                                                           std::int32_t num_rows) {
  input_.assemble(step, plan_.kv_layout.block_size);
  OCTAVO_CHECK(num_rows >= 1 && num_rows <= std::min(kLogitsRows, input_.num_tokens()),
               "%d of %d rows have no place for their logits", num_rows, input_.num_tokens());
  for (const block::PoolMove& move : input_.state_moves()) move_state(move);
  transformer_.forward(input_.batch(), input_.token_ids(), caches());
  std::array<std::int32_t, kLogitsRows> rows;
  const auto last = std::span(rows).first(static_cast<std::size_t>(num_rows));
  std::iota(last.begin(), last.end(), input_.num_tokens() - num_rows);
  OCTAVO_TRY_VOID(fetch_logits(last));
  return std::span<const float>(logits_).first(last.size() *
                                               static_cast<std::size_t>(config_.vocabulary_size));
}

// Last, so that the host waits for moves of a device only when it has started all that there is to do.
void ModelRunner::note_times(RunnerOutput& output) {
  output.has_ended = !is_waited_for_ || !logits_rows_.empty() || !output.hidden_states.empty();
  if (input_.swap_outs().empty() && input_.swap_ins().empty()) return;
  const std::optional<kernels::SwapTimes> times = backend_->take_swap_times();
  if (!times) return;
  output.swap_out_us = times->out_us;
  output.swap_in_us = times->in_us;
}

void ModelRunner::move_blocks(RunnerOutput& output) {
  output.swap_out_us = output.swap_in_us = 0;
  if (!pools_.device) return;  // all layers have a window: blocks are names
  const bool swaps = !input_.swap_outs().empty() || !input_.swap_ins().empty();
  OCTAVO_CHECK(!swaps || pools_.host != nullptr, "a swap without a host pool");
  if (!input_.swap_outs().empty()) {
    const std::int64_t begin_us = clock_->now_us();
    backend_->swap_out(*pools_.device, *pools_.host, input_.swap_outs());
    output.swap_out_us = clock_->now_us() - begin_us;
  }
  if (!input_.swap_ins().empty()) {
    const std::int64_t begin_us = clock_->now_us();
    backend_->swap_in(*pools_.host, *pools_.device, input_.swap_ins());
    output.swap_in_us = clock_->now_us() - begin_us;
  }
  backend_->copy_blocks(*pools_.device, input_.block_copies());
}

// One by one: a later move may write what an earlier one has read.
void ModelRunner::move_states_and_windows(RunnerOutput& output) {
  const auto make = [&](std::span<const block::PoolMove> moves, auto move_one) {
    for (const block::PoolMove& move : moves) {
      const std::int64_t begin_us = clock_->now_us();
      (this->*move_one)(move);
      const std::int64_t us = clock_->now_us() - begin_us;
      if (move.kind == block::PoolMoveKind::kSwapOut) output.swap_out_us += us;
      if (move.kind == block::PoolMoveKind::kSwapIn) output.swap_in_us += us;
    }
  };
  make(input_.state_moves(), &ModelRunner::move_state);
  make(input_.window_moves(), &ModelRunner::move_window);
}

void ModelRunner::move_window(const block::PoolMove& move) {
  const kernels::BlockCopy copy{.source = move.source.value, .target = move.target.value};
  switch (move.kind) {
    case block::PoolMoveKind::kClear: return;  // what a block begins with is not read
    case block::PoolMoveKind::kCopy: return backend_->copy_blocks(*pools_.windows, std::span(&copy, 1));
    case block::PoolMoveKind::kSwapOut:
      return backend_->swap_out(*pools_.windows, *pools_.host_windows, std::span(&copy, 1));
    case block::PoolMoveKind::kSwapIn:
      return backend_->swap_in(*pools_.host_windows, *pools_.windows, std::span(&copy, 1));
  }
}

void ModelRunner::move_state(const block::PoolMove& move) {
  const kernels::BlockCopy copy{.source = move.source.value, .target = move.target.value};
  switch (move.kind) {
    case block::PoolMoveKind::kClear:
      return backend_->clear_states(*pools_.states, std::span(&copy.target, 1));
    case block::PoolMoveKind::kCopy: return backend_->copy_states(*pools_.states, std::span(&copy, 1));
    case block::PoolMoveKind::kSwapOut:
      return backend_->swap_states_out(*pools_.states, *pools_.host_states, std::span(&copy, 1));
    case block::PoolMoveKind::kSwapIn:
      return backend_->swap_states_in(*pools_.host_states, *pools_.states, std::span(&copy, 1));
  }
}

// Then lists of tokens are to be made, which is done while a device computes; else the draws go along with
// the step.
bool ModelRunner::adjusts_logits(const scheduler::SchedulerOutput& step) {
  return std::ranges::any_of(step.sequences, [](const scheduler::ScheduledSequence& sequence) {
    return std::ranges::any_of(sequence.samples, [&](const scheduler::SampleTarget& target) {
      return Sampler::may_adjust(*sequence.sampling, target);
    });
  });
}

// In the order of the scheduler's targets.
void ModelRunner::choose_logits_rows(const scheduler::SchedulerOutput& step) {
  logits_rows_.clear();
  drawn_rows_.clear();
  draws_.clear();
  row_adjustments_.clear();
  token_adjustments_.clear();
  for (std::size_t index = 0; index < step.sequences.size(); ++index) {
    const scheduler::ScheduledSequence& sequence = step.sequences[index];
    const auto num_rows = static_cast<std::int32_t>(sequence.token_ids.size());
    const auto num_prompt_tokens = static_cast<std::int32_t>(sequence.prompt_token_ids.size());
    for (std::int32_t i = 0; i < num_rows; ++i) {
      const std::int32_t position = sequence.start_position + i;
      const bool gives_prompt_logprob =
          sequence.sampling->prompt_logprobs && position + 1 < num_prompt_tokens;
      const auto samples = samples_at(sequence, i);
      if (!gives_prompt_logprob && samples.empty()) continue;
      logits_rows_.push_back({.row = input_.first_row(index) + i,
                              .sequence_index = index,
                              .position = position,
                              .gives_prompt_logprob = gives_prompt_logprob,
                              .samples = samples});
      leave_to_backend(sequence, logits_rows_.back());
    }
  }
}

// All draws of a row, or none: where one needs its logits, they are here for the others too.
void ModelRunner::leave_to_backend(const scheduler::ScheduledSequence& sequence, LogitsRow& row) {
  if (!backend_->draws_tokens() || row.gives_prompt_logprob) return;
  const std::size_t num_draws = draws_.size(), num_rows = drawn_rows_.size(),
                    num_adjusted = row_adjustments_.size(), num_tokens = token_adjustments_.size();
  if (add_draws(sequence, row)) {
    row.first_draw = num_draws;
    return;
  }
  draws_.resize(num_draws);
  drawn_rows_.resize(num_rows);
  row_adjustments_.resize(num_adjusted);
  token_adjustments_.resize(num_tokens);
}

// Targets with other tokens before them are penalised for others: then each draws from a copy of the row.
bool ModelRunner::add_draws(const scheduler::ScheduledSequence& sequence, const LogitsRow& row) {
  const scheduler::SampleTarget* previous = nullptr;
  for (const scheduler::SampleTarget& target : row.samples) {
    std::optional<kernels::TokenDraw> draw = Sampler::backend_draw(*sequence.sampling, target);
    if (!draw) return false;
    const bool shares_row =
        previous != nullptr && std::ranges::equal(previous->output_token_ids, target.output_token_ids);
    if (!shares_row && !add_drawn_row(sequence, row, target)) return false;
    draw->row = static_cast<std::int32_t>(drawn_rows_.size()) - 1;
    draws_.push_back(*draw);
    previous = &target;
  }
  return true;
}

// False: the row's adjustments are more than the backend takes in one step beside what it has.
bool ModelRunner::add_drawn_row(const scheduler::ScheduledSequence& sequence, const LogitsRow& row,
                                const scheduler::SampleTarget& target) {
  const std::size_t first = token_adjustments_.size();
  sampler_.append_adjustments(*sequence.sampling, sequence.prompt_token_ids, target, token_adjustments_);
  if (std::ssize(token_adjustments_) > backend_->most_adjusted_tokens()) return false;
  if (token_adjustments_.size() > first) {
    row_adjustments_.push_back({.row = static_cast<std::int32_t>(drawn_rows_.size()),
                                .first_token = static_cast<std::int32_t>(first),
                                .num_tokens = static_cast<std::int32_t>(token_adjustments_.size() - first),
                                .penalties = Sampler::penalties_of(*sequence.sampling)});
  }
  drawn_rows_.push_back(row.row);
  return true;
}

Result<void> ModelRunner::draw_on_backend() {
  if (draws_.empty()) return {};
  drawn_.resize(draws_.size());
  transformer_.draw_tokens(drawn_rows_, draws_, drawn_,
                           {.rows = row_adjustments_, .tokens = token_adjustments_});
  return backend_->status();
}

kernels::MatrixView ModelRunner::logits_of(std::span<const std::int32_t> rows) {
  return {.data = logits_.data(),
          .rows = static_cast<std::int64_t>(rows.size()),
          .columns = config_.vocabulary_size,
          .stride = config_.vocabulary_size};
}

Result<void> ModelRunner::fetch_logits(std::span<const std::int32_t> rows) {
  transformer_.logits(rows, logits_of(rows), {.log_sum_exp = log_sums_, .piece_maxima = piece_maxima_});
  return backend_->status();
}

// Of the first rows that want them, as many as fit.
Result<void> ModelRunner::fetch_first_logits(std::span<const LogitsRow> rows) {
  std::array<std::int32_t, kLogitsRows> indices;
  std::size_t count = 0;
  for (const LogitsRow& row : rows) {
    if (count == indices.size()) break;
    if (!row.first_draw) indices[count++] = row.row;
  }
  return fetch_logits(std::span(indices).first(count));
}

// `index`: among the rows that were fetched.
void ModelRunner::use_logits(const scheduler::ScheduledSequence& sequence, const LogitsRow& row,
                             std::size_t index, RunnerOutput& output) {
  const auto vocabulary_size = static_cast<std::size_t>(config_.vocabulary_size);
  const auto num_pieces = static_cast<std::size_t>(kernels::num_logits_pieces(config_.vocabulary_size));
  const std::span<const float> logits = std::span(logits_).subspan(index * vocabulary_size, vocabulary_size);
  sampler_.set_row(logits, std::span(piece_maxima_).subspan(index * num_pieces, num_pieces),
                   log_sums_[index]);
  if (row.gives_prompt_logprob) {
    const std::int32_t next = row.position + 1;
    const TokenId token_id = sequence.prompt_token_ids[static_cast<std::size_t>(next)];
    output.prompt_logprobs.push_back(
        {.sequence_id = sequence.sequence_id,
         .position = next,
         .logprob = sampler_.logprob(token_id),
         .top_logprobs = sampler_.best_logprobs(*sequence.sampling->prompt_logprobs)});
  }
  if (row.samples.empty() || row.sequence_index == mistaken_) return;
  for (const scheduler::SampleTarget& target : row.samples) {
    const auto sample_index = static_cast<std::size_t>(&target - sequence.samples.data());
    output.tokens.push_back(sampler_.sample(*sequence.sampling, sequence.prompt_token_ids, target,
                                            masks_.of(row.sequence_index, sample_index)));
  }
}

// In the order of the rows, whoever draws from them.
Result<void> ModelRunner::deliver(const scheduler::SchedulerOutput& step, RunnerOutput& output) {
  mistaken_.reset();
  std::size_t num_used = 0;  // of the rows that want logits
  for (std::size_t i = 0; i < logits_rows_.size(); ++i) {
    const LogitsRow& row = logits_rows_[i];
    const scheduler::ScheduledSequence& sequence = step.sequences[row.sequence_index];
    if (!row.first_draw) {
      const std::size_t index = num_used++ % kLogitsRows;
      if (index == 0) OCTAVO_TRY_VOID(fetch_first_logits(std::span(logits_rows_).subspan(i)));
      use_logits(sequence, row, index, output);
    } else if (row.sequence_index != mistaken_) {
      for (std::size_t draw = 0; draw < row.samples.size(); ++draw)
        output.tokens.push_back(sampled_token(row.samples[draw], drawn_[*row.first_draw + draw]));
    }
    if (row.samples.empty() || row.sequence_index == mistaken_) continue;
    const auto next = static_cast<std::size_t>(row.position - sequence.start_position) + 1;
    const bool was_guessed =
        next == sequence.token_ids.size() || sequence.token_ids[next] == output.tokens.back().token_id;
    if (!was_guessed) mistaken_ = row.sequence_index;
  }
  return {};
}

void ModelRunner::read_hidden_states(const scheduler::SchedulerOutput& step, RunnerOutput& output) {
  for (std::size_t index = 0; index < step.sequences.size(); ++index) {
    const scheduler::ScheduledSequence& sequence = step.sequences[index];
    if (!sequence.pooling) continue;
    const auto num_rows = static_cast<std::int32_t>(sequence.token_ids.size());
    const auto num_prompt_tokens = static_cast<std::int32_t>(sequence.prompt_token_ids.size());
    const bool is_whole = sequence.start_position + num_rows == num_prompt_tokens;
    if (sequence.pooling == Pooling::kLast && !is_whole) continue;
    const std::int32_t first = sequence.pooling == Pooling::kLast ? num_rows - 1 : 0;
    hidden_rows_.resize(static_cast<std::size_t>(num_rows - first));
    std::iota(hidden_rows_.begin(), hidden_rows_.end(), input_.first_row(index) + first);
    HiddenStates& hidden = output.hidden_states.emplace_back();
    hidden.sequence_id = sequence.sequence_id;
    hidden.request_id = sequence.request_id;
    hidden.first_position = sequence.start_position + first;
    hidden.width = config_.embedding_length;
    hidden.values.resize(hidden_rows_.size() * static_cast<std::size_t>(hidden.width));
    transformer_.hidden_states(hidden_rows_, {.data = hidden.values.data(),
                                              .rows = static_cast<std::int64_t>(hidden_rows_.size()),
                                              .columns = hidden.width,
                                              .stride = hidden.width});
  }
}

std::int64_t ModelRunner::working_bytes() const {
  const std::size_t logits_floats = logits_.capacity() + log_sums_.capacity() + piece_maxima_.capacity();
  const std::int64_t draft_bytes = pools_.states ? pools_.states->layout().draft_bytes() : 0;
  return transformer_.activation_bytes() + draft_bytes +
         static_cast<std::int64_t>(logits_floats * sizeof(float)) +
         Sampler::most_bytes(config_.vocabulary_size) + backend_->scratch_bytes();
}

void ModelRunner::describe(EngineDescription& description) const {
  description.device = backend_->name() == "cuda" ? "cuda" : "cpu";
  description.isa = backend_->isa();
  description.threads = backend_->num_threads();
  description.activation_dtype = activation_type_of(plan_.activation);
  description.kv_cache_dtype = kv_cache_type_of(plan_.kv_layout.type);
  description.block_size = plan_.kv_layout.block_size;
  description.num_blocks = plan_.num_blocks;
  description.num_host_blocks = plan_.num_host_blocks;
  description.notice = plan_.notice;
  if (const std::string notice = backend_->notice(); !notice.empty())
    description.notice += (description.notice.empty() ? "" : "; ") + notice;
  description.bytes_per_block = plan_.kv_layout.block_bytes();
  description.num_states = plan_.num_states;
  description.num_host_states = plan_.num_host_states;
  description.bytes_per_state = plan_.bytes_per_state();
  description.window = plan_.window;
  description.num_window_blocks = plan_.num_window_blocks;
  description.num_host_window_blocks = plan_.num_host_window_blocks;
  description.bytes_per_window_block = plan_.window_layout.block_bytes();
  description.weight_bytes = weight_bytes();
  description.working_bytes = working_bytes();
  description.max_model_len = plan_.max_model_len;
  description.max_num_batched_tokens = plan_.max_num_batched_tokens;
}

}  // namespace octavo::runner
