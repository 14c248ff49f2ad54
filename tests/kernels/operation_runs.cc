#include "tests/kernels/operation_runs.h"

#include <algorithm>
#include <utility>

namespace octavo::kernels::testing {
namespace {

// A batch of one sequence whose rows stand at `positions`.
struct PlainBatch {
  explicit PlainBatch(const std::vector<std::int32_t>& row_positions)
      : positions(row_positions), query_start{0, static_cast<std::int32_t>(positions.size())} {
    for (const std::int32_t position : positions) context_lens[0] = std::max(context_lens[0], position + 1);
  }
  PagedBatch batch() const {
    PagedBatch batch;
    batch.num_tokens = query_start[1];
    batch.num_sequences = 1;
    batch.positions = positions;
    batch.query_start = query_start;
    batch.context_lens = context_lens;
    return batch;
  }
  std::vector<std::int32_t> positions, query_start, context_lens = {1};
};

std::vector<float> stored_elements(PagedProblem problem, const std::vector<std::byte>& pool) {
  problem.pool = pool;
  std::vector<float> elements;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(problem.sequences.size()); ++s) {
    const SequenceSpec& sequence = problem.sequences[static_cast<std::size_t>(s)];
    for (std::int32_t i = sequence.history; i < sequence.history + sequence.new_tokens; ++i) {
      for (std::int32_t head = 0; head < problem.layout.layer(kWrittenLayer).num_kv_heads; ++head) {
        for (std::int32_t d = 0; d < problem.layout.layer(kWrittenLayer).head_dim; ++d) {
          elements.push_back(static_cast<float>(problem.stored_key(s, i, kWrittenLayer, head, d)));
          elements.push_back(static_cast<float>(problem.stored_value(s, i, kWrittenLayer, head, d)));
        }
      }
    }
  }
  return elements;
}

// On the problem's rows and pool.
AttentionInput run_attention_input(TestBackend& backend, const PagedProblem& problem,
                                   const AttentionInputWeights& weights, const PagedBatch& batch) {
  const std::int64_t width = problem.shape.query_width();
  const Rows x(*backend, rows_of(problem, 8, problem.shape.embedding_length, 2.0f),
               problem.shape.embedding_length);
  const Rows q(*backend, std::vector<float>(static_cast<std::size_t>(problem.num_rows() * width)), width);
  const std::unique_ptr<KvCache> kv = backend.cache_with(problem);
  backend->begin_step(batch, {});
  backend->attention_input(weights, problem.shape.attention, batch, kWrittenLayer, x.view(), *kv, q.view());
  AttentionInput result{.q = q.read(backend), .stored = {}, .pool = backend.pool_bytes(*kv)};
  result.stored = stored_elements(problem, result.pool);
  return result;
}

Logits room_for_logits(std::size_t num_rows, std::int64_t vocabulary) {
  const auto pieces = static_cast<std::size_t>(num_logits_pieces(vocabulary));
  return {.rows = std::vector<float>(num_rows * static_cast<std::size_t>(vocabulary)),
          .sums = std::vector<float>(num_rows),
          .maxima = std::vector<float>(num_rows * pieces)};
}

}  // namespace

std::vector<float> some_rows(std::uint64_t seed, std::int64_t num_rows, std::int64_t columns, float scale,
                             float centre, std::int64_t first_row) {
  std::vector<float> rows;
  for (std::int64_t row = first_row; row < first_row + num_rows; ++row) {
    for (const float value : noise_row(seed, static_cast<std::uint64_t>(row), columns, scale))
      rows.push_back(value + centre);
  }
  return rows;
}

std::vector<float> norm_weight(std::uint64_t seed, std::int64_t size) {
  return some_rows(seed, 1, size, 0.5f, 1.0f);
}

Shape shape_of_width(std::int64_t width, std::int64_t hidden) {
  return {"made_up",
          {1, 1, 8, 8, RopePairing::kHalves, 1.0f},
          static_cast<std::int32_t>(width),
          static_cast<std::int32_t>(hidden)};
}

LayerWeights layer_weights(const Shape& shape, TensorType type, bool biases) {
  const std::int64_t width = shape.embedding_length;
  return {
      .shape = shape,
      .norm = some_rows(50, 1, width, 1.0f, 1.5f),
      .query_bias = noise_row(51, 0, biases ? shape.query_width() : 0),
      .key_bias = noise_row(52, 0, biases ? shape.kv_width() : 0),
      .value_bias = noise_row(53, 0, biases ? shape.kv_width() : 0),
      .gate_bias = noise_row(54, 0, biases ? shape.feed_forward_length : 0),
      .up_bias = noise_row(55, 0, biases ? shape.feed_forward_length : 0),
      .output_bias = noise_row(56, 0, biases ? width : 0),
      .query = random_matrix(type, shape.query_width(), width, 60),
      .key = random_matrix(type, shape.kv_width(), width, 61),
      .value = random_matrix(type, shape.kv_width(), width, 62),
      .output = random_matrix(type, width, shape.query_width(), 63),
      .gate = random_matrix(type, shape.feed_forward_length, width, 64),
      .up = random_matrix(type, shape.feed_forward_length, width, 65),
  };
}

std::vector<float> run_embed(TestBackend& backend, const EmbeddingWeights& weights,
                             const std::vector<std::int32_t>& token_ids,
                             const std::vector<std::int32_t>& positions) {
  const std::int64_t width = weights.tokens->columns();
  const Rows out(*backend, std::vector<float>(token_ids.size() * static_cast<std::size_t>(width), -1.0f),
                 width);
  const PlainBatch rows(positions);
  backend->begin_step(rows.batch(), token_ids);
  backend->embed(weights, token_ids, rows.positions, out.view());
  return out.read(backend);
}

AttentionInput run_attention_input(TestBackend& backend, const PagedProblem& problem,
                                   const LayerWeights& weights) {
  const auto query = backend->prepare_matrix(weights.query.source).value(),
             key = backend->prepare_matrix(weights.key.source).value(),
             value = backend->prepare_matrix(weights.value.source).value();
  const Rows norm(*backend, weights.norm, problem.shape.embedding_length),
      query_bias(*backend, weights.query_bias, 1), key_bias(*backend, weights.key_bias, 1),
      value_bias(*backend, weights.value_bias, 1);
  return run_attention_input(backend, problem,
                             {.norm = {norm.span(), 1e-5f},
                              .query = query.get(),
                              .key = key.get(),
                              .value = value.get(),
                              .query_bias = query_bias.span(),
                              .key_bias = key_bias.span(),
                              .value_bias = value_bias.span()},
                             problem.batch());
}

AttentionInput run_attention_input(TestBackend& backend, const PagedProblem& problem,
                                   const HeadParts& parts) {
  const Shape& shape = problem.shape;
  const std::int64_t width = shape.embedding_length, head_dim = shape.attention.head_dim;
  const OwnedMatrix query = random_matrix(TensorType::kF32, shape.query_width(), width, 1),
                    key = random_matrix(TensorType::kF32, shape.kv_width(), width, 2),
                    value = random_matrix(TensorType::kF32, shape.kv_width(), width, 3);
  const auto q_matrix = backend->prepare_matrix(query.source).value(),
             k_matrix = backend->prepare_matrix(key.source).value(),
             v_matrix = backend->prepare_matrix(value.source).value();
  const Rows weight(*backend, norm_weight(4, width), width),
      query_norm(*backend, norm_weight(5, head_dim), head_dim),
      key_norm(*backend, norm_weight(6, head_dim), head_dim);
  AttentionInputWeights weights{{weight.span(), 1e-6f}, q_matrix.get(), k_matrix.get(), v_matrix.get()};
  if (parts.has_norms) weights.query_norm = query_norm.span(), weights.key_norm = key_norm.span();
  std::vector<float> local = problem.rotations;
  for (float& number : local) number *= 0.5f;
  PagedBatch batch = problem.batch();
  batch.local_rotations = local;
  return run_attention_input(backend, problem, weights, batch);
}

std::vector<float> run_project_residual(TestBackend& backend, const LayerWeights& weights,
                                        std::int64_t first_row, std::int64_t num_rows) {
  const std::int64_t width = weights.shape.embedding_length, columns = weights.shape.query_width();
  const Rows input(*backend, some_rows(70, num_rows, columns, 1.0f, 0.0f, first_row), columns),
      residual(*backend, some_rows(71, num_rows, width, 1.0f, 0.0f, first_row), width),
      bias(*backend, weights.output_bias, 1);
  const auto matrix = backend->prepare_matrix(weights.output.source).value();
  backend->project_residual({matrix.get(), bias.span()}, input.view(), residual.view());
  return residual.read(backend);
}

std::vector<float> run_post_norm(TestBackend& backend, TensorType type, std::int64_t width,
                                 std::int64_t num_rows) {
  constexpr std::int64_t kColumns = 33;
  const auto matrix = backend->prepare_matrix(random_matrix(type, width, kColumns, 1).source).value();
  const Rows weight(*backend, norm_weight(3, width), width), bias(*backend, noise_row(5, 0, width), width),
      input(*backend, some_rows(7, num_rows, kColumns, 2.0f), kColumns),
      residual(*backend, some_rows(8, num_rows, width, 2.0f), width);
  backend->project_residual({matrix.get(), bias.span(), {weight.span(), 1e-6f}}, input.view(),
                            residual.view());
  return residual.read(backend);
}

std::vector<float> run_feed_forward_input(TestBackend& backend, const LayerWeights& weights,
                                          std::int64_t first_row, std::int64_t num_rows) {
  const std::int64_t width = weights.shape.embedding_length, hidden = weights.shape.feed_forward_length;
  const Rows x(*backend, some_rows(72, num_rows, width, 3.0f, 0.0f, first_row), width),
      out(*backend, std::vector<float>(static_cast<std::size_t>(num_rows * hidden)), hidden),
      norm(*backend, weights.norm, width), gate_bias(*backend, weights.gate_bias, 1),
      up_bias(*backend, weights.up_bias, 1);
  const auto gate = backend->prepare_matrix(weights.gate.source).value(),
             up = backend->prepare_matrix(weights.up.source).value();
  backend->feed_forward_input({{norm.span(), 1e-5f}, gate.get(), up.get(), gate_bias.span(), up_bias.span()},
                              x.view(), out.view());
  return out.read(backend);
}

std::string describe(const FeedForward& kind) {
  return std::string(kind.norm == NormKind::kRms ? "rms" : "layer") + (kind.has_gate ? ", gated" : "") +
         (kind.has_bias ? ", biases" : "") +
         (kind.activation == FeedForwardActivation::kGelu   ? ", gelu"
          : kind.activation == FeedForwardActivation::kRelu ? ", relu"
                                                            : ", silu");
}

std::vector<float> run_feed_forward_input(TestBackend& backend, const FeedForward& kind, std::int64_t width,
                                          std::int64_t num_rows) {
  const std::int64_t hidden = width + 22;
  const OwnedMatrix gate = random_matrix(kind.gate_type, hidden, width, 1),
                    up = random_matrix(kind.up_type, hidden, width, 2);
  const auto gate_matrix = backend->prepare_matrix(gate.source).value(),
             up_matrix = backend->prepare_matrix(up.source).value();
  const Rows weight(*backend, norm_weight(3, width), width), bias(*backend, noise_row(4, 0, width), width),
      gate_bias(*backend, noise_row(5, 0, hidden), hidden),
      up_bias(*backend, noise_row(6, 0, hidden), hidden),
      x(*backend, some_rows(7, num_rows, width, 2.0f, kind.centre), width),
      out(*backend, std::vector<float>(static_cast<std::size_t>(num_rows * hidden)), hidden);
  FeedForwardInputWeights weights{
      {weight.span(), 1e-5f, kind.norm}, kind.has_gate ? gate_matrix.get() : nullptr, up_matrix.get()};
  weights.activation = kind.activation;
  if (kind.has_bias) {
    weights.norm.bias = bias.span();
    if (kind.has_gate) weights.gate_bias = gate_bias.span();
    weights.up_bias = up_bias.span();
  }
  backend->feed_forward_input(weights, x.view(), out.view());
  return out.read(backend);
}

std::vector<float> run_hidden_states(TestBackend& backend, NormKind kind, bool has_bias,
                                     const std::vector<std::int32_t>& rows) {
  constexpr std::int64_t kWidth = 576;
  const Rows weight(*backend, some_rows(50, 1, kWidth, 1.0f, 1.5f), kWidth),
      bias(*backend, noise_row(4, 0, kWidth), kWidth),
      x(*backend, some_rows(73, 9, kWidth, 3.0f, 2.0f), kWidth);
  NormWeights norm{weight.span(), 1e-5f, kind};
  if (has_bias) norm.bias = bias.span();
  std::vector<float> out(rows.size() * static_cast<std::size_t>(kWidth));
  backend->hidden_states(norm, x.view(), rows, view(out, kWidth));
  return out;
}

Logits run_logits(TestBackend& backend, const std::vector<std::int32_t>& rows) {
  constexpr std::int64_t kWidth = 576;
  const OwnedMatrix head = random_matrix(TensorType::kQ8_0, kLogitsVocabulary, kWidth, 66);
  const auto matrix = backend->prepare_matrix(head.source).value();
  const Rows bias(*backend, noise_row(57, 0, kLogitsVocabulary), kLogitsVocabulary),
      norm(*backend, some_rows(50, 1, kWidth, 1.0f, 1.5f), kWidth),
      x(*backend, some_rows(73, 9, kWidth, 3.0f), kWidth);
  Logits result = room_for_logits(rows.size(), kLogitsVocabulary);
  backend->logits({{norm.span(), 1e-5f}, matrix.get(), bias.span()}, x.view(), rows,
                  view(result.rows, kLogitsVocabulary),
                  {.log_sum_exp = result.sums, .piece_maxima = result.maxima});
  return result;
}

Logits run_capped_logits(TestBackend& backend, float cap) {
  constexpr std::int64_t kVocabulary = 333, kWidth = 40;
  const std::vector<std::int32_t> rows = {4, 0, 2};
  const auto matrix =
      backend->prepare_matrix(random_matrix(TensorType::kF32, kVocabulary, kWidth, 1).source).value();
  const Rows weight(*backend, norm_weight(3, kWidth), kWidth),
      norm_bias(*backend, noise_row(4, 0, kWidth), kWidth),
      bias(*backend, noise_row(5, 0, kVocabulary, 30.0f), kVocabulary),
      x(*backend, some_rows(7, 5, kWidth, 2.0f), kWidth);
  Logits result = room_for_logits(rows.size(), kVocabulary);
  backend->logits(
      {{weight.span(), 1e-6f, NormKind::kLayer, norm_bias.span()}, matrix.get(), bias.span(), cap}, x.view(),
      rows, view(result.rows, kVocabulary), {.log_sum_exp = result.sums, .piece_maxima = result.maxima});
  return result;
}

}  // namespace octavo::kernels::testing
