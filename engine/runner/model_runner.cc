#include "engine/runner/model_runner.h"

#include <algorithm>
#include <array>
#include <cstddef>
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

// What the `row`-th row of a sequence draws: of a draft each row, else the last one.
std::span<const scheduler::SampleTarget> samples_at(const scheduler::ScheduledSequence& sequence,
                                                    std::int32_t row) {
  const std::span<const scheduler::SampleTarget> all = sequence.samples;
  if (sequence.num_draft_tokens > 0) return all.subspan(static_cast<std::size_t>(row), 1);
  const bool is_last = static_cast<std::size_t>(row) + 1 == sequence.token_ids.size();
  return is_last ? all : all.first(0);
}

// LongRoPE's factors follow from the longest context that is allowed: see limit_context().
void choose_rotations(RunnerParts& parts) {
  if (!parts.tensors.short_rope) return;
  const bool is_short = model::limit_context(parts.tensors, parts.config, parts.plan.max_model_len);
  const std::string original = std::to_string(parts.config.rope.original_context_length);
  std::string& notice = parts.plan.notice;
  notice += notice.empty() ? "" : "; ";
  notice += is_short
                ? "positions are rotated for contexts of at most " + original +
                      " tokens (LongRoPE), because max_model_len is no larger"
                : "positions are rotated for contexts of more than " + original +
                      " tokens (LongRoPE); a max_model_len of at most that rotates them as for short ones";
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::load(RunnerParts parts,
                                                       const model::LoadProgress& progress) {
  kernels::Backend& backend = *parts.backend;
  choose_rotations(parts);
  OCTAVO_TRY(model::Weights weights,
             model::prepare_weights(std::move(parts.tensors), parts.plan.dtype, backend, progress));
  OCTAVO_TRY_VOID(parts.file.verify_unchanged());
  OCTAVO_TRY(auto transformer, model::Transformer::create(parts.config, std::move(weights), backend,
                                                          parts.plan.max_num_batched_tokens));
  OCTAVO_TRY_VOID(backend.reserve_step(parts.plan.step_shape));
  OCTAVO_TRY(Pools pools, allocate_pools(parts.plan, backend));
  return std::unique_ptr<ModelRunner>(
      new ModelRunner(std::move(parts), std::move(transformer), std::move(pools)));
}

Result<ModelRunner::Pools> ModelRunner::allocate_pools(const RunnerPlan& plan, kernels::Backend& backend) {
  Pools pools;
  OCTAVO_TRY(pools.device, backend.allocate_kv_cache(plan.kv_layout, plan.num_blocks));
  if (plan.num_host_blocks > 0) {
    OCTAVO_TRY(pools.host, backend.allocate_host_kv_cache(plan.kv_layout, plan.num_host_blocks));
  }
  return pools;
}

ModelRunner::ModelRunner(RunnerParts parts, model::Transformer transformer, Pools pools)
    : config_(std::move(parts.config)),
      plan_(std::move(parts.plan)),
      backend_(std::move(parts.backend)),
      transformer_(std::move(transformer)),
      pools_(std::move(pools)),
      clock_(std::move(parts.clock)),
      sampler_(config_.vocabulary_size, std::move(parts.end_token_ids), *backend_) {
  logits_.resize(static_cast<std::size_t>(kLogitsRows) * static_cast<std::size_t>(config_.vocabulary_size));
  log_sums_.resize(static_cast<std::size_t>(kLogitsRows));
  piece_maxima_.resize(static_cast<std::size_t>(kLogitsRows * kernels::num_logits_pieces(config_.vocabulary_size)));
}

Result<void> ModelRunner::execute(const scheduler::SchedulerOutput& step, RunnerOutput& output) {
  output.tokens.clear();
  output.prompt_logprobs.clear();
  input_.assemble(step, plan_.kv_layout.block_size);
  move_blocks(output);
  if (step.empty()) return backend_->status();

  transformer_.forward(input_.batch(), input_.token_ids(), *pools_.device);
  choose_logits_rows(step);
  mistaken_.reset();
  const std::span<const LogitsRow> rows = logits_rows_;
  for (std::size_t begin = 0; begin < rows.size(); begin += kLogitsRows) {
    OCTAVO_TRY_VOID(
        use_logits(step, rows.subspan(begin, std::min<std::size_t>(kLogitsRows, rows.size() - begin)), output));
  }
  return backend_->status();
}

void ModelRunner::move_blocks(RunnerOutput& output) {
  const bool swaps = !input_.swap_outs().empty() || !input_.swap_ins().empty();
  OCTAVO_CHECK(!swaps || pools_.host != nullptr, "a swap without a host pool");
  output.swap_out_us = output.swap_in_us = 0;
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

// In the order of the scheduler's targets.
void ModelRunner::choose_logits_rows(const scheduler::SchedulerOutput& step) {
  logits_rows_.clear();
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
    }
  }
}

Result<void> ModelRunner::use_logits(const scheduler::SchedulerOutput& step, std::span<const LogitsRow> rows,
                                     RunnerOutput& output) {
  const auto vocabulary_size = static_cast<std::size_t>(config_.vocabulary_size);
  std::array<std::int32_t, kLogitsRows> indices;
  std::transform(rows.begin(), rows.end(), indices.begin(), [](const LogitsRow& row) { return row.row; });
  const kernels::MatrixView logits{.data = logits_.data(),
                                   .rows = static_cast<std::int64_t>(rows.size()),
                                   .columns = config_.vocabulary_size,
                                   .stride = config_.vocabulary_size};
  transformer_.logits(std::span(indices).first(rows.size()), logits,
                      {.log_sum_exp = log_sums_, .piece_maxima = piece_maxima_});
  OCTAVO_TRY_VOID(backend_->status());
  const auto num_pieces = static_cast<std::size_t>(kernels::num_logits_pieces(config_.vocabulary_size));

  for (std::size_t i = 0; i < rows.size(); ++i) {
    const scheduler::ScheduledSequence& sequence = step.sequences[rows[i].sequence_index];
    const std::span<const float> row(logits.row(static_cast<std::int64_t>(i)), vocabulary_size);
    if (rows[i].gives_prompt_logprob) {
      const std::int32_t next = rows[i].position + 1;
      const TokenId token_id = sequence.prompt_token_ids[static_cast<std::size_t>(next)];
      output.prompt_logprobs.push_back({.sequence_id = sequence.sequence_id,
                                        .position = next,
                                        .logprob = row[static_cast<std::size_t>(token_id)] - log_sums_[i]});
    }
    if (rows[i].samples.empty() || rows[i].sequence_index == mistaken_) continue;
    sampler_.set_row(row, std::span(piece_maxima_).subspan(i * num_pieces, num_pieces), log_sums_[i]);
    for (const scheduler::SampleTarget& target : rows[i].samples) {
      output.tokens.push_back(sampler_.sample(*sequence.sampling, sequence.prompt_token_ids, target));
    }
    const auto next = static_cast<std::size_t>(rows[i].position - sequence.start_position) + 1;
    const bool was_guessed =
        next == sequence.token_ids.size() || sequence.token_ids[next] == output.tokens.back().token_id;
    if (!was_guessed) mistaken_ = rows[i].sequence_index;
  }
  return {};
}

std::int64_t ModelRunner::working_bytes() const {
  const std::size_t logits_floats = logits_.capacity() + log_sums_.capacity() + piece_maxima_.capacity();
  return transformer_.activation_bytes() + static_cast<std::int64_t>(logits_floats * sizeof(float)) +
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
  description.bytes_per_block = plan_.kv_layout.block_bytes();
  description.weight_bytes = weight_bytes();
  description.working_bytes = working_bytes();
  description.max_model_len = plan_.max_model_len;
  description.max_num_batched_tokens = plan_.max_num_batched_tokens;
}

}  // namespace octavo::runner
