#include "kernels/device_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/half.h"
#include "engine/base/hash.h"

namespace octavo::kernels {
namespace {

constexpr std::int32_t kWidth = 64, kHidden = 96, kHeads = 2, kKvHeads = 1, kHeadDim = 32, kVocabulary = 80;
constexpr std::int32_t kBlockSize = 4, kNumBlocks = 8;
constexpr float kEpsilon = 1e-5f;
// Of the largest logit. Weights and activations of 11 bits, one layer.
constexpr float kTolerance = 0.01f;

constexpr std::int32_t kLocalRotaryDim = 16;

// Layers of two kinds, which together have every part that a model may have (engine/model/architecture.cc).
enum class Parts : std::uint8_t {
  kOfLlama,   // RMS norms, rotated neighbours, a gate with SiLU
  kOfOthers,  // all others: none of them is a part of llama's layers
};

AttentionShape attention_of(Parts parts) {
  AttentionShape shape = {.num_heads = kHeads,
                          .num_kv_heads = kKvHeads,
                          .head_dim = kHeadDim,
                          .rotary_dim = kHeadDim,
                          .pairing = RopePairing::kInterleaved,
                          .score_scale = 0.17677669f};
  if (parts == Parts::kOfLlama) return shape;
  shape.rotary_dim = kLocalRotaryDim;
  shape.pairing = RopePairing::kHalves;
  shape.rotations = Rotations::kLocal;
  shape.score_soft_cap = 0.5f;
  shape.window = 3;
  return shape;
}

// In [-1, 1), a function of its arguments.
float noise(std::uint64_t matrix, std::uint64_t index) {
  return static_cast<float>(hash_combine(matrix, index) >> 40) * 0x1.0p-23f - 1.0f;
}

std::vector<float> vector_of(std::uint64_t seed, std::int64_t size, float scale, float offset) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = offset + scale * noise(seed, i);
  return values;
}

std::vector<std::byte> float16_bytes(std::uint64_t seed, std::int64_t elements) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * 2);
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
    const std::uint16_t word = float_to_half(0.2f * noise(seed, i));
    std::memcpy(bytes.data() + 2 * i, &word, 2);
  }
  return bytes;
}

// Blocks of a float16 scale and 32 integers of 4 bits.
std::vector<std::byte> q4_0_bytes(std::uint64_t seed, std::int64_t elements) {
  constexpr std::size_t kBlock = 18;
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements / 32) * kBlock);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(hash_combine(seed, i) & 0xffu);
  for (std::size_t block = 0; block < bytes.size(); block += kBlock) {
    const std::uint16_t scale = float_to_half(0.03f + 0.01f * noise(seed, block));
    std::memcpy(bytes.data() + block, &scale, 2);
  }
  return bytes;
}

enum class Weights : std::uint8_t { kQuantised, kHalf };

Result<std::unique_ptr<Matrix>> prepare(Backend& backend, Weights weights, std::uint64_t seed,
                                        std::int64_t rows, std::int64_t columns) {
  const bool is_half = weights == Weights::kHalf;
  const std::vector<std::byte> bytes =
      is_half ? float16_bytes(seed, rows * columns) : q4_0_bytes(seed, rows * columns);
  return backend.prepare_matrix({.type = is_half ? TensorType::kF16 : TensorType::kQ4_0,
                                 .rows = rows,
                                 .columns = columns,
                                 .bytes = bytes});
}

// Two sequences, whose blocks lie apart and backwards.
struct Step {
  std::vector<std::int32_t> token_ids, positions, slots, query_start, context_lens, tables;
  std::vector<float> rotations, local_rotations;

  PagedBatch batch() const {
    return {.num_tokens = static_cast<std::int32_t>(positions.size()),
            .num_sequences = static_cast<std::int32_t>(context_lens.size()),
            .positions = positions,
            .slot_mapping = slots,
            .query_start = query_start,
            .context_lens = context_lens,
            .block_tables = tables,
            .max_blocks = 3,
            .rotations = rotations,
            .local_rotations = local_rotations};
  }
};

void add_rotations(std::int32_t position, std::int32_t rotary_dim, double base,
                   std::vector<float>& rotations) {
  for (std::int32_t pair = 0; pair < rotary_dim / 2; ++pair) {
    const double angle = position * std::pow(base, -2.0 * pair / rotary_dim);
    rotations.push_back(static_cast<float>(std::cos(angle)));
    rotations.push_back(static_cast<float>(std::sin(angle)));
  }
}

Step make_step(std::array<std::int32_t, 2> first, std::array<std::int32_t, 2> count) {
  Step step;
  step.tables = {7, 5, 3, 0, 2, 4};
  step.query_start = {0};
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::int32_t position = first[s]; position < first[s] + count[s]; ++position) {
      const std::int32_t block = step.tables[3 * s + static_cast<std::size_t>(position / kBlockSize)];
      step.token_ids.push_back((position * 29 + static_cast<std::int32_t>(s) * 11) % kVocabulary);
      step.positions.push_back(position);
      step.slots.push_back(block * kBlockSize + position % kBlockSize);
      add_rotations(position, kHeadDim, 10000.0, step.rotations);
      add_rotations(position, kLocalRotaryDim, 100.0, step.local_rotations);
    }
    step.query_start.push_back(static_cast<std::int32_t>(step.positions.size()));
    step.context_lens.push_back(first[s] + count[s]);
  }
  return step;
}

class OneLayer {
 public:
  static Result<OneLayer> create(Backend& backend, Weights weights, Parts parts) {
    OneLayer layer(backend, parts);
    OCTAVO_TRY(layer.query_, prepare(backend, weights, 1, kHeads * kHeadDim, kWidth));
    OCTAVO_TRY(layer.key_, prepare(backend, weights, 2, kKvHeads * kHeadDim, kWidth));
    OCTAVO_TRY(layer.value_, prepare(backend, weights, 3, kKvHeads * kHeadDim, kWidth));
    OCTAVO_TRY(layer.output_, prepare(backend, weights, 4, kWidth, kHeads * kHeadDim));
    OCTAVO_TRY(layer.gate_, prepare(backend, weights, 5, kHidden, kWidth));
    OCTAVO_TRY(layer.up_, prepare(backend, weights, 6, kHidden, kWidth));
    OCTAVO_TRY(layer.down_, prepare(backend, weights, 7, kWidth, kHidden));
    OCTAVO_TRY(layer.table_, prepare(backend, weights, 8, kVocabulary, kWidth));
    OCTAVO_TRY(layer.positions_, prepare(backend, weights, 10, 3 * kBlockSize, kWidth));
    OCTAVO_TRY(layer.norm_, backend.prepare_vector(vector_of(9, kWidth, 0.3f, 1.0f)));
    OCTAVO_TRY(layer.head_norm_, backend.prepare_vector(vector_of(11, kHeadDim, 0.3f, 1.0f)));
    OCTAVO_TRY(layer.bias_, backend.prepare_vector(vector_of(12, kHidden, 0.3f, 0.1f)));
    const KvLayout layout{KvType::kF16, kBlockSize, 1, kKvHeads, kHeadDim};
    OCTAVO_TRY(layer.kv_, backend.allocate_kv_cache(layout, kNumBlocks));
    OCTAVO_TRY(layer.residual_, backend.allocate_buffer(kMostRows * kWidth));
    OCTAVO_TRY(layer.queries_, backend.allocate_buffer(kMostRows * kWidth));
    OCTAVO_TRY(layer.attention_, backend.allocate_buffer(kMostRows * kWidth));
    OCTAVO_TRY(layer.hidden_, backend.allocate_buffer(kMostRows * kHidden));
    OCTAVO_TRY_VOID(backend.reserve_step({.num_rows = kMostRows,
                                          .num_logits_rows = kMostRows,
                                          .max_context_len = 3 * kBlockSize,
                                          .max_num_sequences = 2,
                                          .block_size = kBlockSize,
                                          .embedding_length = kWidth,
                                          .feed_forward_length = kHidden,
                                          .num_heads = kHeads,
                                          .num_kv_heads = kKvHeads,
                                          .head_dim = kHeadDim,
                                          .vocabulary_size = kVocabulary,
                                          .num_adjusted_tokens = kMostRows,
                                          .has_quantised_weights = weights == Weights::kQuantised,
                                          .has_unquantised_weights = weights == Weights::kHalf,
                                          .has_post_norms = parts == Parts::kOfOthers,
                                          .has_local_rotations = parts == Parts::kOfOthers}));
    return Result<OneLayer>(std::move(layer));
  }

  // Of every row.
  std::vector<float> logits_of(const Step& step) {
    const PagedBatch batch = step.batch();
    const AttentionShape shape = attention_of(parts_);
    const MatrixView residual = rows_of(*residual_, batch.num_tokens, kWidth);
    const MatrixView queries = rows_of(*queries_, batch.num_tokens, kWidth);
    const MatrixView attention = rows_of(*attention_, batch.num_tokens, kWidth);
    const MatrixView hidden = rows_of(*hidden_, batch.num_tokens, kHidden);
    backend_->begin_step(batch, step.token_ids);
    backend_->embed(embedding(), step.token_ids, step.positions, residual);
    backend_->attention_input(attention_input(), shape, batch, 0, residual, *kv_, queries);
    backend_->paged_attention(shape, batch, 0, *kv_, queries, attention);
    backend_->project_residual(projection(*output_), attention, residual);
    backend_->feed_forward_input(feed_forward_input(), residual, hidden);
    backend_->project_residual(projection(*down_), hidden, residual);
    if (parts_ == Parts::kOfOthers) {  // once more, without a gate
      FeedForwardInputWeights without = feed_forward_input();
      without.gate = nullptr;
      without.gate_bias = {};
      backend_->feed_forward_input(without, residual, hidden);
      backend_->project_residual(projection(*down_), hidden, residual);
    }

    std::vector<std::int32_t> rows(static_cast<std::size_t>(batch.num_tokens));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
    std::vector<float> logits(rows.size() * kVocabulary), sums(rows.size());
    std::vector<float> maxima(rows.size() * static_cast<std::size_t>(num_logits_pieces(kVocabulary)));
    backend_->logits(output_head(), residual, rows,
                     {logits.data(), batch.num_tokens, kVocabulary, kVocabulary},
                     {.log_sum_exp = sums, .piece_maxima = maxima});
    logits.insert(logits.end(), sums.begin(), sums.end());
    return logits;
  }

  // Of the same rows, in each of the ways that can only give the best token; then the best is forbidden.
  // `logits`: what logits_of() gave.
  Result<void> check_draws(const Step& step, std::span<const float> logits) {
    const auto num_rows = static_cast<std::int32_t>(step.token_ids.size());
    std::vector<std::int32_t> rows, expected;
    std::vector<TokenDraw> draws;
    std::vector<LogitAdjustment> tokens;
    std::vector<RowAdjustment> adjustments;
    for (std::int32_t i = 0; i < 2 * num_rows; ++i) {
      const std::int32_t row = i / 2;
      const auto begin = logits.begin() + std::ptrdiff_t{row} * kVocabulary;
      std::vector<float> left(begin, begin + kVocabulary);
      const auto best_left = [&] {
        return static_cast<std::int32_t>(std::max_element(left.begin(), left.end()) - left.begin());
      };
      if (i % 2 == 1) {
        tokens.push_back({.token_id = best_left(), .bias = -std::numeric_limits<double>::infinity()});
        adjustments.push_back({.row = i, .first_token = row, .num_tokens = 1});
        left[static_cast<std::size_t>(tokens.back().token_id)] = -std::numeric_limits<float>::infinity();
      }
      rows.push_back(row);
      draws.push_back({.row = i, .temperature = 0.0});
      draws.push_back({.row = i, .top_k = 1, .uniform = 0.9});
      draws.push_back({.row = i, .top_p = 1e-9, .uniform = 0.9});
      expected.insert(expected.end(), 3, best_left());
    }
    std::vector<DrawnToken> drawn(draws.size());
    backend_->draw_tokens(output_head(), rows_of(*residual_, num_rows, kWidth), rows, draws, drawn,
                          {.rows = adjustments, .tokens = tokens});
    OCTAVO_TRY_VOID(backend_->status());
    for (std::size_t i = 0; i < draws.size(); ++i) {
      if (drawn[i].token_id == expected[i]) continue;
      return Error{ErrorCode::kDevice, "the device samples wrongly: token " +
                                           std::to_string(drawn[i].token_id) + " instead of " +
                                           std::to_string(expected[i])};
    }
    return {};
  }

 private:
  static constexpr std::int32_t kMostRows = 16;
  OneLayer(Backend& backend, Parts parts) : backend_(&backend), parts_(parts) {}
  static MatrixView rows_of(const Buffer& buffer, std::int64_t rows, std::int64_t columns) {
    return {buffer.data(), rows, columns, columns};
  }
  static std::span<const float> values_of(const Buffer& buffer, std::int64_t count) {
    return {buffer.data(), static_cast<std::size_t>(count)};
  }
  // Biases, of which llama's parts have none.
  std::span<const float> bias(std::int64_t count) const {
    return parts_ == Parts::kOfLlama ? std::span<const float>() : values_of(*bias_, count);
  }
  NormWeights norm(NormKind kind) const {
    NormWeights norm{.weight = values_of(*norm_, kWidth), .epsilon = kEpsilon, .kind = kind};
    if (kind == NormKind::kLayer) norm.bias = bias(kWidth);
    return norm;
  }
  NormKind kind() const { return parts_ == Parts::kOfLlama ? NormKind::kRms : NormKind::kLayer; }

  EmbeddingWeights embedding() const {
    if (parts_ == Parts::kOfLlama) return {.tokens = table_.get()};
    return {.tokens = table_.get(), .scale = 1.5f, .positions = positions_.get()};
  }
  AttentionInputWeights attention_input() const {
    AttentionInputWeights weights{.norm = norm(kind()),
                                  .query = query_.get(),
                                  .key = key_.get(),
                                  .value = value_.get(),
                                  .query_bias = bias(kHeads * kHeadDim),
                                  .key_bias = bias(kKvHeads * kHeadDim),
                                  .value_bias = bias(kKvHeads * kHeadDim)};
    if (parts_ == Parts::kOfOthers) weights.query_norm = weights.key_norm = values_of(*head_norm_, kHeadDim);
    return weights;
  }
  ProjectionWeights projection(const Matrix& matrix) const {
    ProjectionWeights weights{.matrix = &matrix, .bias = bias(kWidth)};
    if (parts_ == Parts::kOfOthers) weights.post_norm = norm(NormKind::kRms);
    return weights;
  }
  FeedForwardInputWeights feed_forward_input() const {
    return {.norm = norm(kind()),
            .gate = gate_.get(),
            .up = up_.get(),
            .gate_bias = bias(kHidden),
            .up_bias = bias(kHidden),
            .activation =
                parts_ == Parts::kOfLlama ? FeedForwardActivation::kSilu : FeedForwardActivation::kGelu};
  }
  OutputHead output_head() const {
    OutputHead head{.norm = norm(kind()), .matrix = table_.get(), .bias = bias(kVocabulary)};
    if (parts_ == Parts::kOfOthers) head.soft_cap = 4.0f;
    return head;
  }

  Backend* backend_;
  Parts parts_;
  std::unique_ptr<Matrix> query_, key_, value_, output_, gate_, up_, down_, table_, positions_;
  std::unique_ptr<Buffer> norm_, head_norm_, bias_, residual_, queries_, attention_, hidden_;
  std::unique_ptr<KvCache> kv_;
};

Result<void> compare(std::span<const float> got, std::span<const float> expected) {
  float largest = 0.0f, difference = 0.0f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    const float each = std::fabs(got[i] - expected[i]);
    difference = std::isnan(difference) || each <= difference ? difference : each;  // a NaN stays
  }
  if (difference <= kTolerance * largest) return {};
  return Error{ErrorCode::kDevice, "the device computes wrongly: a logit differs by " +
                                       std::to_string(difference) + " where the largest is " +
                                       std::to_string(largest)};
}

}  // namespace

Result<void> check_device(Backend& device, Backend& definition) {
  struct Case {
    Weights weights;
    Parts parts;
  };
  for (const Case& each : {Case{Weights::kQuantised, Parts::kOfLlama},
                           {Weights::kHalf, Parts::kOfLlama},
                           {Weights::kQuantised, Parts::kOfOthers}}) {
    OCTAVO_TRY(OneLayer on_device, OneLayer::create(device, each.weights, each.parts));
    OCTAVO_TRY(OneLayer defined, OneLayer::create(definition, each.weights, each.parts));
    for (const Step& step : {make_step({0, 0}, {5, 9}), make_step({5, 9}, {1, 1})}) {
      const std::vector<float> got = on_device.logits_of(step), expected = defined.logits_of(step);
      OCTAVO_TRY_VOID(device.status());
      OCTAVO_TRY_VOID(compare(got, expected));
      if (device.draws_tokens()) OCTAVO_TRY_VOID(on_device.check_draws(step, got));
    }
  }
  return {};
}

}  // namespace octavo::kernels
