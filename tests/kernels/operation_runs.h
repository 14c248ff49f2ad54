// Operations of backend.h on made-up weights and rows, each as one call that any backend can be given: the
// same arguments give the same inputs everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/test_backend.h"

namespace octavo::kernels::testing {

inline constexpr TensorType kEveryTensorType[] = {
    TensorType::kF32,  TensorType::kF16,    TensorType::kBF16,   TensorType::kQ4_0,
    TensorType::kQ4_1, TensorType::kQ5_0,   TensorType::kQ5_1,   TensorType::kQ8_0,
    TensorType::kQ2_K, TensorType::kQ3_K,   TensorType::kQ4_K,   TensorType::kQ5_K,
    TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS, TensorType::kMXFP4};

// Rows first_row .. first_row + num_rows of noise around `centre`, the same whichever rows are asked for.
std::vector<float> some_rows(std::uint64_t seed, std::int64_t num_rows, std::int64_t columns, float scale,
                             float centre = 0.0f, std::int64_t first_row = 0);
// Noise around 1.
std::vector<float> norm_weight(std::uint64_t seed, std::int64_t size);
// Of a model with nothing but these sizes.
Shape shape_of_width(std::int64_t width, std::int64_t hidden);

struct LayerWeights {
  Shape shape;
  std::vector<float> norm, query_bias, key_bias, value_bias, gate_bias, up_bias, output_bias;
  OwnedMatrix query, key, value, output, gate, up;
};
LayerWeights layer_weights(const Shape& shape, TensorType type, bool biases);

std::vector<float> run_embed(TestBackend& backend, const EmbeddingWeights& weights,
                             const std::vector<std::int32_t>& token_ids,
                             const std::vector<std::int32_t>& positions);

// What attention_input leaves behind.
struct AttentionInput {
  std::vector<float> q;
  std::vector<float> stored;  // K and V of every new token, read back
  std::vector<std::byte> pool;
};
inline constexpr std::int32_t kWrittenLayer = 1;
AttentionInput run_attention_input(TestBackend& backend, const PagedProblem& problem,
                                   const LayerWeights& weights);

// The parts that only some architectures have; the batch's rotations are halved for local ones.
struct HeadParts {
  bool has_norms = false;
};
AttentionInput run_attention_input(TestBackend& backend, const PagedProblem& problem, const HeadParts& parts);

std::vector<float> run_project_residual(TestBackend& backend, const LayerWeights& weights,
                                        std::int64_t first_row, std::int64_t num_rows);
// W of `type`, [width, 33], with a bias and a post-norm.
std::vector<float> run_post_norm(TestBackend& backend, TensorType type, std::int64_t width,
                                 std::int64_t num_rows);

std::vector<float> run_feed_forward_input(TestBackend& backend, const LayerWeights& weights,
                                          std::int64_t first_row, std::int64_t num_rows);

struct FeedForward {
  NormKind norm = NormKind::kRms;
  bool has_gate = true, has_bias = true;
  FeedForwardActivation activation = FeedForwardActivation::kSilu;
  TensorType gate_type = TensorType::kF32, up_type = TensorType::kF32;
  float centre = 0.0f;  // of the rows: a constant far from zero, which LayerNorm has to take away first
};
std::string describe(const FeedForward& kind);
// The hidden layer is 22 wider than the rows.
std::vector<float> run_feed_forward_input(TestBackend& backend, const FeedForward& kind, std::int64_t width,
                                          std::int64_t num_rows);

// Of the chosen ones of 9 rows of 576.
std::vector<float> run_hidden_states(TestBackend& backend, NormKind kind, bool has_bias,
                                     const std::vector<std::int32_t>& rows);

struct Logits {
  std::vector<float> rows, sums, maxima;
};
// Of the chosen ones of 9 rows, [500, 576] of Q8_0.
inline constexpr std::int64_t kLogitsVocabulary = 500;  // no multiple of 16
Logits run_logits(TestBackend& backend, const std::vector<std::int32_t>& rows);
// Of rows 4, 0 and 2, [333, 40] of f32, after a norm with a bias.
Logits run_capped_logits(TestBackend& backend, float cap);

}  // namespace octavo::kernels::testing
