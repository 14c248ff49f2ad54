#include "kernels/device_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/half.h"
#include "engine/base/hash.h"

namespace octavo::kernels {
namespace {

constexpr std::int32_t kWidth = 64, kHidden = 96, kKvHeads = 1, kVocabulary = 80;
constexpr std::int32_t kNumBlocks = 8, kMaxBlocks = 3;  // of the pool, and of a sequence
constexpr float kEpsilon = 1e-5f;
// Of the largest logit. Weights and activations of 11 bits, one layer.
constexpr float kTolerance = 0.01f;

constexpr std::int32_t kLocalRotaryDim = 16;

// Layers of two kinds, which together have every part that a model may have (engine/model/architecture.cc).
enum class Parts : std::uint8_t {
  kOfLlama,   // RMS norms, rotated neighbours, a gate with SiLU
  kOfOthers,  // all others: none of them is a part of llama's layers
};

enum class Weights : std::uint8_t { kQuantised, kHalf };

// A layer, and a prompt of two sequences of which each then goes on by a token.
struct LayerCase {
  const char* what = "";  // in the words of an error
  Weights weights = Weights::kQuantised;
  Parts parts = Parts::kOfLlama;
  std::int32_t num_heads = 2, head_dim = 32, block_size = 4;
  std::array<std::int32_t, 2> prompt_tokens = {5, 9};
  bool has_draws = true;  // tokens are drawn, too
};

AttentionShape attention_of(const LayerCase& layer) {
  AttentionShape shape = {.num_heads = layer.num_heads,
                          .num_kv_heads = kKvHeads,
                          .head_dim = layer.head_dim,
                          .rotary_dim = layer.head_dim,
                          .pairing = RopePairing::kInterleaved,
                          .score_scale = 1.0f / std::sqrt(static_cast<float>(layer.head_dim))};
  if (layer.parts == Parts::kOfLlama) return shape;
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
            .max_blocks = kMaxBlocks,
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

Step make_step(const LayerCase& layer, std::array<std::int32_t, 2> first, std::array<std::int32_t, 2> count) {
  Step step;
  step.tables = {7, 5, 3, 0, 2, 4};
  step.query_start = {0};
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::int32_t position = first[s]; position < first[s] + count[s]; ++position) {
      const std::int32_t block =
          step.tables[kMaxBlocks * s + static_cast<std::size_t>(position / layer.block_size)];
      step.token_ids.push_back((position * 29 + static_cast<std::int32_t>(s) * 11) % kVocabulary);
      step.positions.push_back(position);
      step.slots.push_back(block * layer.block_size + position % layer.block_size);
      add_rotations(position, layer.head_dim, 10000.0, step.rotations);
      add_rotations(position, kLocalRotaryDim, 100.0, step.local_rotations);
    }
    step.query_start.push_back(static_cast<std::int32_t>(step.positions.size()));
    step.context_lens.push_back(first[s] + count[s]);
  }
  return step;
}

std::vector<std::int32_t> first_rows(std::int32_t count) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

MatrixView rows_of(const Buffer& buffer, std::int64_t rows, std::int64_t columns) {
  return {buffer.data(), rows, columns, columns};
}

class OneLayer {
 public:
  static Result<OneLayer> create(Backend& backend, const LayerCase& of) {
    OneLayer layer(backend, of);
    const Weights weights = of.weights;
    const std::int32_t head_dim = of.head_dim, query_width = of.num_heads * head_dim;
    const std::int32_t max_context_len = kMaxBlocks * of.block_size;
    OCTAVO_TRY(layer.query_, prepare(backend, weights, 1, query_width, kWidth));
    OCTAVO_TRY(layer.key_, prepare(backend, weights, 2, kKvHeads * head_dim, kWidth));
    OCTAVO_TRY(layer.value_, prepare(backend, weights, 3, kKvHeads * head_dim, kWidth));
    OCTAVO_TRY(layer.output_, prepare(backend, weights, 4, kWidth, query_width));
    OCTAVO_TRY(layer.gate_, prepare(backend, weights, 5, kHidden, kWidth));
    OCTAVO_TRY(layer.up_, prepare(backend, weights, 6, kHidden, kWidth));
    OCTAVO_TRY(layer.down_, prepare(backend, weights, 7, kWidth, kHidden));
    OCTAVO_TRY(layer.table_, prepare(backend, weights, 8, kVocabulary, kWidth));
    OCTAVO_TRY(layer.positions_, prepare(backend, weights, 10, max_context_len, kWidth));
    OCTAVO_TRY(layer.norm_, backend.prepare_vector(vector_of(9, kWidth, 0.3f, 1.0f)));
    OCTAVO_TRY(layer.head_norm_, backend.prepare_vector(vector_of(11, head_dim, 0.3f, 1.0f)));
    OCTAVO_TRY(layer.bias_, backend.prepare_vector(vector_of(12, kHidden, 0.3f, 0.1f)));
    const KvLayout layout{KvType::kF16, of.block_size, 1, kKvHeads, head_dim};
    OCTAVO_TRY(layer.kv_, backend.allocate_kv_cache(layout, kNumBlocks));
    OCTAVO_TRY(layer.residual_, backend.allocate_buffer(kMostRows * kWidth));
    OCTAVO_TRY(layer.queries_, backend.allocate_buffer(kMostRows * query_width));
    OCTAVO_TRY(layer.attention_, backend.allocate_buffer(kMostRows * query_width));
    OCTAVO_TRY(layer.hidden_, backend.allocate_buffer(kMostRows * kHidden));
    OCTAVO_TRY_VOID(backend.reserve_step({.num_rows = kMostRows,
                                          .num_logits_rows = kMostRows,
                                          .max_context_len = max_context_len,
                                          .max_num_sequences = 2,
                                          .block_size = of.block_size,
                                          .embedding_length = kWidth,
                                          .feed_forward_length = kHidden,
                                          .num_heads = of.num_heads,
                                          .num_kv_heads = kKvHeads,
                                          .head_dim = head_dim,
                                          .vocabulary_size = kVocabulary,
                                          .num_adjusted_tokens = kMostRows,
                                          .has_quantised_weights = weights == Weights::kQuantised,
                                          .has_unquantised_weights = weights == Weights::kHalf,
                                          .has_post_norms = of.parts == Parts::kOfOthers,
                                          .has_local_rotations = of.parts == Parts::kOfOthers}));
    return Result<OneLayer>(std::move(layer));
  }

  // Of every row, and their sums.
  std::vector<float> logits_of(const Step& step) {
    const PagedBatch batch = step.batch();
    backend_->begin_step(batch, step.token_ids);
    compute(batch, step.token_ids);
    return read_logits(batch.num_tokens);
  }

  // The same as the backend does a step, which may have recorded one like it.
  std::vector<float> usual_logits_of(const Step& step) {
    const PagedBatch batch = step.batch();
    backend_->run_step(batch, step.token_ids, body());
    return read_logits(batch.num_tokens);
  }

  // Of the rows of `next`, whose tokens are the best behind the rows of `step`, which are taken when both
  // were started.
  std::vector<float> logits_behind(const Step& step, Step& next) {
    const PagedBatch batch = step.batch(), next_batch = next.batch();
    const std::vector<std::int32_t> rows = first_rows(batch.num_tokens);
    std::vector<TokenDraw> draws;
    for (const std::int32_t row : rows) draws.push_back({.row = row, .temperature = 0.0});
    backend_->run_step(batch, step.token_ids, body(), {rows, draws});
    backend_->start_draws(output_head(), rows_of(*residual_, batch.num_tokens, kWidth), {rows, draws});
    for (const std::int32_t row : rows) next.token_ids[static_cast<std::size_t>(row)] = drawn_token(row);
    backend_->run_step(next_batch, next.token_ids, body());
    std::vector<float> logits = read_logits(next_batch.num_tokens);
    std::vector<DrawnToken> drawn(draws.size());
    backend_->take_draws(drawn);
    std::ranges::transform(drawn, next.token_ids.begin(), &DrawnToken::token_id);
    return logits;
  }

  Result<void> record(const Step& step) {
    return backend_->record_step(step.batch(), step.token_ids, body());
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
  static constexpr std::int32_t kMostRows = 32;
  OneLayer(Backend& backend, const LayerCase& layer)
      : backend_(&backend), parts_(layer.parts), shape_(attention_of(layer)) {}

  StepBody body() {
    return [this](const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
      compute(batch, token_ids);
    };
  }

  void compute(const PagedBatch& batch, std::span<const std::int32_t> token_ids) {
    const std::int64_t query_width = std::int64_t{shape_.num_heads} * shape_.head_dim;
    const MatrixView residual = rows_of(*residual_, batch.num_tokens, kWidth);
    const MatrixView queries = rows_of(*queries_, batch.num_tokens, query_width);
    const MatrixView attention = rows_of(*attention_, batch.num_tokens, query_width);
    const MatrixView hidden = rows_of(*hidden_, batch.num_tokens, kHidden);
    backend_->embed(embedding(), token_ids, batch.positions, residual);
    backend_->attention_input(attention_input(), shape_, batch, 0, residual, *kv_, queries);
    backend_->paged_attention(shape_, batch, 0, *kv_, queries, attention);
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
  }

  std::vector<float> read_logits(std::int32_t num_rows) {
    const std::vector<std::int32_t> rows = first_rows(num_rows);
    std::vector<float> logits(rows.size() * kVocabulary), sums(rows.size());
    std::vector<float> maxima(rows.size() * static_cast<std::size_t>(num_logits_pieces(kVocabulary)));
    backend_->logits(output_head(), rows_of(*residual_, num_rows, kWidth), rows,
                     {logits.data(), num_rows, kVocabulary, kVocabulary},
                     {.log_sum_exp = sums, .piece_maxima = maxima});
    logits.insert(logits.end(), sums.begin(), sums.end());
    return logits;
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
                                  .query_bias = bias(std::int64_t{shape_.num_heads} * shape_.head_dim),
                                  .key_bias = bias(kKvHeads * shape_.head_dim),
                                  .value_bias = bias(kKvHeads * shape_.head_dim)};
    if (parts_ == Parts::kOfOthers)
      weights.query_norm = weights.key_norm = values_of(*head_norm_, shape_.head_dim);
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
  AttentionShape shape_;
  std::unique_ptr<Matrix> query_, key_, value_, output_, gate_, up_, down_, table_, positions_;
  std::unique_ptr<Buffer> norm_, head_norm_, bias_, residual_, queries_, attention_, hidden_;
  std::unique_ptr<KvCache> kv_;
};

// A product alone, added to rows that are there.
struct ProductCase {
  const char* what = "";
  Weights weights = Weights::kQuantised;
  std::int32_t num_rows = 0, outputs = 0, columns = 0;
};

Result<std::vector<float>> product_of(Backend& backend, const ProductCase& product) {
  constexpr std::int32_t kTokens = 16;
  const std::int32_t num_rows = product.num_rows, outputs = product.outputs, columns = product.columns;
  OCTAVO_TRY(const auto matrix, prepare(backend, product.weights, 21, outputs, columns));
  OCTAVO_TRY(const auto inputs, prepare(backend, product.weights, 22, kTokens, columns));
  OCTAVO_TRY(const auto before, prepare(backend, product.weights, 23, kTokens, outputs));
  OCTAVO_TRY(const auto input, backend.allocate_buffer(std::int64_t{num_rows} * columns));
  OCTAVO_TRY(const auto sums, backend.allocate_buffer(std::int64_t{num_rows} * outputs));
  OCTAVO_TRY_VOID(backend.reserve_step({.num_rows = num_rows,
                                        .num_logits_rows = 1,
                                        .max_context_len = num_rows,
                                        .max_num_sequences = 1,
                                        .block_size = num_rows,
                                        .embedding_length = outputs,
                                        .feed_forward_length = columns,
                                        .num_heads = 1,
                                        .num_kv_heads = 1,
                                        .head_dim = 32,
                                        .vocabulary_size = outputs,
                                        .has_quantised_weights = product.weights == Weights::kQuantised,
                                        .has_unquantised_weights = product.weights == Weights::kHalf}));
  const std::vector<std::int32_t> rows = first_rows(num_rows), slots(rows.size(), -1), start = {0, num_rows},
                                  context = {num_rows}, tables = {0};
  std::vector<std::int32_t> token_ids = rows;
  for (std::int32_t& token_id : token_ids) token_id = token_id * 7 % kTokens;
  const PagedBatch batch{num_rows, 1, rows, slots, start, context, tables, 1, {}};
  const MatrixView input_rows = rows_of(*input, num_rows, columns),
                   sum_rows = rows_of(*sums, num_rows, outputs);
  backend.begin_step(batch, token_ids);
  backend.embed({.tokens = inputs.get()}, token_ids, rows, input_rows);
  backend.embed({.tokens = before.get()}, token_ids, rows, sum_rows);
  backend.project_residual({.matrix = matrix.get()}, input_rows, sum_rows);
  std::vector<float> result(rows.size() * static_cast<std::size_t>(outputs));
  backend.hidden_states({}, sum_rows, rows, {result.data(), num_rows, outputs, outputs});
  OCTAVO_TRY_VOID(backend.status());
  return result;
}

Result<void> compare(std::span<const float> got, std::span<const float> expected, const char* what) {
  float largest = 0.0f, difference = 0.0f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    const float each = std::fabs(got[i] - expected[i]);
    difference = std::isnan(difference) || each <= difference ? difference : each;  // a NaN stays
  }
  if (difference <= kTolerance * largest) return {};
  return Error{ErrorCode::kDevice, std::string("the device computes wrongly: ") + what + " differ by " +
                                       std::to_string(difference) + " where the largest number is " +
                                       std::to_string(largest)};
}

Result<void> check_recorded_step(Backend& device, const Step& step, OneLayer& on_device, OneLayer& defined) {
  const bool is_decode = step.token_ids.size() == step.context_lens.size();
  const auto is_like_it = [is_decode](const SampleStep& sample) {
    return (sample.num_decodes == sample.num_rows) == is_decode;
  };
  if (std::ranges::none_of(device.steps_to_record(), is_like_it)) return {};
  OCTAVO_TRY_VOID(on_device.record(step));
  const std::vector<float> got = on_device.usual_logits_of(step), expected = defined.logits_of(step);
  OCTAVO_TRY_VOID(device.status());
  return compare(got, expected, "recorded steps");
}

// Where a device draws, the next step is started before anybody knows its tokens.
Result<void> check_step_ahead(Backend& device, const LayerCase& layer, OneLayer& on_device,
                              OneLayer& defined) {
  if (device.most_started_draws() < 2) return {};
  const auto [first, second] = layer.prompt_tokens;
  const Step step = make_step(layer, {first + 1, second + 1}, {1, 1});
  Step next = make_step(layer, {first + 2, second + 2}, {1, 1});
  const std::vector<float> got = on_device.logits_behind(step, next);
  OCTAVO_TRY_VOID(device.status());
  defined.logits_of(step);
  const auto is_none = [](std::int32_t token_id) { return token_id < 0 || token_id >= kVocabulary; };
  if (std::ranges::any_of(next.token_ids, is_none))
    return Error{ErrorCode::kDevice,
                 "the device samples wrongly: nothing behind a step that it went on from"};
  return compare(got, defined.logits_of(next), "steps that begin with tokens of the device");
}

Result<void> check_layer(Backend& device, Backend& definition, const LayerCase& layer) {
  OCTAVO_TRY(OneLayer on_device, OneLayer::create(device, layer));
  OCTAVO_TRY(OneLayer defined, OneLayer::create(definition, layer));
  const auto [first, second] = layer.prompt_tokens;
  for (const Step& step :
       {make_step(layer, {0, 0}, layer.prompt_tokens), make_step(layer, layer.prompt_tokens, {1, 1})}) {
    const std::vector<float> got = on_device.logits_of(step), expected = defined.logits_of(step);
    OCTAVO_TRY_VOID(device.status());
    OCTAVO_TRY_VOID(compare(got, expected, layer.what));
    if (device.draws_tokens() && layer.has_draws) OCTAVO_TRY_VOID(on_device.check_draws(step, got));
  }
  for (const Step& step :
       {make_step(layer, {0, 0}, layer.prompt_tokens), make_step(layer, {first + 1, second + 1}, {1, 1})}) {
    OCTAVO_TRY_VOID(check_recorded_step(device, step, on_device, defined));
  }
  return layer.has_draws ? check_step_ahead(device, layer, on_device, defined) : Result<void>();
}

}  // namespace

// Sizes from which on devices compute in other ways: 16 and 129 rows for a library's products of numbers and
// of quantised weights, 2,048 columns for sums in parts, 64 rows of heads in a sequence for prefill. Products
// first: layers are made of them.
Result<void> check_device(Backend& device, Backend& definition) {
  for (const ProductCase& product : {ProductCase{"products of many rows", Weights::kHalf, 32, 64, 64},
                                     {"products of many rows", Weights::kQuantised, 136, 64, 64},
                                     {"products in parts of long rows", Weights::kHalf, 5, 64, 2048},
                                     {"products in parts of long rows", Weights::kQuantised, 5, 64, 2048}}) {
    OCTAVO_TRY(const std::vector<float> got, product_of(device, product));
    OCTAVO_TRY(const std::vector<float> expected, product_of(definition, product));
    OCTAVO_TRY_VOID(compare(got, expected, product.what));
  }
  for (const LayerCase& layer : {LayerCase{.what = "layers of quantised weights"},
                                 {.what = "layers of float16 weights", .weights = Weights::kHalf},
                                 {.what = "layers with the parts of other models", .parts = Parts::kOfOthers},
                                 {.what = "layers with heads of 128 numbers",
                                 .num_heads = 4,
                                 .head_dim = 128,
                                 .block_size = 16,
                                 .prompt_tokens = {18, 9},
                                 .has_draws = false}}) {
    OCTAVO_TRY_VOID(check_layer(device, definition, layer));
  }
  return {};
}

}  // namespace octavo::kernels
