// A model file, loaded into any backend, with a cache for one sequence whose blocks lie in reverse order and
// whose state is the last of several.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/model/model_source.h"
#include "engine/model/transformer.h"
#include "kernels/backends.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::model {

inline std::unique_ptr<kernels::Backend> reference_backend(kernels::Activation activation) {
  return kernels::reference::create_reference_backend(activation);
}

inline std::unique_ptr<kernels::Backend> cpu_backend(kernels::Activation activation) {
  auto backend = kernels::create_backend({.device = "cpu", .threads = 2, .activation = activation});
  if (!backend) throw std::runtime_error(backend.error().message);
  return *std::move(backend);
}

struct SequenceOptions {
  std::int32_t block_size = 16;
  std::optional<std::int32_t> max_model_len = {};  // of an engine; the model's context length
  bool predicts = false;                           // the model guesses its next tokens
  // Of llama4, whose files cannot say it: what a chunk holds, and what queries are scaled by
  std::optional<std::int32_t> chunk = {};
};

class OneSequence {
 public:
  OneSequence(const std::filesystem::path& path, std::unique_ptr<kernels::Backend> backend,
              std::int32_t max_num_tokens, const SequenceOptions& options = {})
      : block_size_(options.block_size), backend_(std::move(backend)) {
    auto source = open_model_source(path);
    if (!source) throw std::runtime_error(source.error().message);
    source_ = *std::move(source);
    auto config = read_model_config(source_->metadata());
    if (!config) throw std::runtime_error(config.error().message);
    config_ = *config;
    if (options.chunk) config_.sliding_window = config_.query_scale_length = *options.chunk;
    auto tensors = find_model_tensors(*source_, config_);
    if (!tensors) throw std::runtime_error(tensors.error().message);
    if (options.predicts) {
      if (auto added = add_next_token_layer(*source_, config_, *tensors); !added)
        throw std::runtime_error(added.error().message);
    }
    if (options.max_model_len) limit_context(*tensors, config_, *options.max_model_len);
    auto weights = prepare_weights(*std::move(tensors), WeightType::kAuto, *backend_, {});
    if (!weights) throw std::runtime_error(weights.error().message);
    auto transformer = Transformer::create(config_, *std::move(weights), *backend_, max_num_tokens);
    if (!transformer) throw std::runtime_error(transformer.error().message);
    transformer_ = std::make_unique<Transformer>(*std::move(transformer));
    const kernels::KvLayout layout{kernels::KvType::kF32, block_size_, find_kv_uses(config_).places};
    const std::int32_t num_blocks = (max_num_tokens + block_size_ - 1) / block_size_;
    kv_ = *backend_->allocate_kv_cache(layout, num_blocks);
    for (std::int32_t block = num_blocks - 1; block >= 0; --block) block_table_.push_back(block);
    const kernels::StateLayout state_layout = config_.recurrent.state_layout();
    if (!state_layout.empty()) states_ = *backend_->allocate_state_cache(state_layout, kState + 1);
  }

  // Logits of every row, flattened, computed `chunk` rows at a time (0: all at once).
  std::vector<float> logits_of(const std::vector<std::int32_t>& token_ids, std::int32_t chunk = 0) {
    const auto num_tokens = static_cast<std::int32_t>(token_ids.size());
    std::vector<float> logits;
    if (states_) backend_->clear_states(*states_, std::span(&kState, 1));
    for (std::int32_t first = 0; first < num_tokens;) {
      const std::int32_t count = chunk == 0 ? num_tokens : std::min(chunk, num_tokens - first);
      const auto of_step =
          std::span(token_ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      const std::vector<float> rows = logits_of_step(of_step, first);
      logits.insert(logits.end(), rows.begin(), rows.end());
      first += count;
    }
    return logits;
  }

  // Logits of what comes two tokens behind each but the last, computed `chunk` rows at a time (0: all at
  // once); then behind each of `guesses`, which follow the list.
  std::vector<float> predictions_of(const std::vector<std::int32_t>& token_ids,
                                    const std::vector<std::int32_t>& guesses, std::int32_t chunk = 0) {
    const auto num_pairs = static_cast<std::int32_t>(token_ids.size()) - 1;
    std::vector<float> logits;
    if (states_) backend_->clear_states(*states_, std::span(&kState, 1));
    std::int32_t last_row = 0;
    const auto add_logits = [&](const Rows& rows) {
      const std::vector<float> more =
          fetch_logits(rows.rows, [&](auto... arguments) { transformer_->predicted_logits(arguments...); });
      logits.insert(logits.end(), more.begin(), more.end());
      last_row = rows.rows.back();
    };
    for (std::int32_t first = 0; first < num_pairs;) {
      const std::int32_t count = chunk == 0 ? num_pairs : std::min(chunk, num_pairs - first);
      const auto begin = static_cast<std::size_t>(first), size = static_cast<std::size_t>(count);
      const Rows rows = rows_at(first, count);
      forward(rows, std::span(token_ids).subspan(begin, size));
      transformer_->predict(batch_of(rows), rows.rows, std::span(token_ids).subspan(begin + 1, size), *kv_);
      add_logits(rows);
      first += count;
    }
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      const Rows row = rows_at(num_pairs + static_cast<std::int32_t>(i), 1);
      transformer_->predict_further(batch_of(row), std::span(&last_row, 1), std::span(guesses).subspan(i, 1),
                                    *kv_);
      add_logits(row);
    }
    return logits;
  }

  std::size_t vocabulary_size() const { return static_cast<std::size_t>(config_.vocabulary_size); }

 private:
  static constexpr std::int32_t kState = 2;

  // Of one step: consecutive tokens.
  struct Rows {
    std::vector<std::int32_t> positions, rows, slots, query_start, context_lens;
  };
  Rows rows_at(std::int32_t first, std::int32_t count) const {
    Rows rows{
        .positions = {}, .rows = {}, .slots = {}, .query_start = {0, count}, .context_lens = {first + count}};
    for (std::int32_t row = 0; row < count; ++row) {
      const std::int32_t position = first + row;
      rows.rows.push_back(row);
      rows.positions.push_back(position);
      rows.slots.push_back(block_table_[static_cast<std::size_t>(position / block_size_)] * block_size_ +
                           position % block_size_);
    }
    return rows;
  }
  kernels::PagedBatch batch_of(const Rows& rows) const {
    kernels::PagedBatch batch;
    batch.num_tokens = static_cast<std::int32_t>(rows.rows.size());
    batch.num_sequences = 1;
    batch.positions = rows.positions;
    batch.slot_mapping = rows.slots;
    batch.query_start = rows.query_start;
    batch.context_lens = rows.context_lens;
    batch.block_tables = block_table_;
    batch.max_blocks = static_cast<std::int32_t>(block_table_.size());
    if (states_) batch.states = std::span(&kState, 1);
    return batch;
  }
  void forward(const Rows& rows, std::span<const std::int32_t> token_ids) {
    transformer_->forward(batch_of(rows), token_ids, {.kv = kv_.get(), .states = states_.get()});
  }
  // fetch(rows, out, summary)
  template <class Fetch>
  std::vector<float> fetch_logits(std::span<const std::int32_t> rows, const Fetch& fetch) const {
    std::vector<float> logits(rows.size() * static_cast<std::size_t>(config_.vocabulary_size));
    std::vector<float> sums(rows.size());
    std::vector<float> maxima(rows.size() *
                              static_cast<std::size_t>(kernels::num_logits_pieces(config_.vocabulary_size)));
    fetch(rows,
          kernels::MatrixView{.data = logits.data(),
                              .rows = static_cast<std::int64_t>(rows.size()),
                              .columns = config_.vocabulary_size,
                              .stride = config_.vocabulary_size},
          kernels::LogitsSummary{.log_sum_exp = sums, .piece_maxima = maxima});
    return logits;
  }

  std::vector<float> logits_of_step(std::span<const std::int32_t> token_ids, std::int32_t first) {
    const Rows rows = rows_at(first, static_cast<std::int32_t>(token_ids.size()));
    forward(rows, token_ids);
    return fetch_logits(rows.rows, [&](auto... arguments) { transformer_->logits(arguments...); });
  }

  std::int32_t block_size_;
  ModelConfig config_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<kernels::KvCache> kv_;
  std::unique_ptr<kernels::StateCache> states_;  // null: no layer is recurrent
  std::vector<std::int32_t> block_table_;
};

inline std::vector<double> log_softmax(std::span<const float> logits) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - best);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(logit - best - std::log(sum));
  return result;
}

inline double worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

}  // namespace octavo::model
