// What the operations of every backend promise, stated once. Each claim of operation_claims.cc runs an
// operation on a subject and on the oracle, kernels/reference, with the same inputs, and holds the largest
// difference over the largest expected number to the subject's bound. A program lists its subjects:
//
//   INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, OperationClaims, ::testing::ValuesIn(subjects()),
//   name_of_subject);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::testing {

enum class Claim {
  kAttentionInput,  // products, rotation and what is stored, of quantised and 16-bit weights
  kProjectResidual,
  kFeedForwardInput,
  kLogits,
  // Of float weights, where nothing is rounded but sums:
  kEmbedding,
  kHeadParts,
  kPostNorm,
  kFeedForwardKinds,
  kCappedLogits,
};

// The first row of a table that fits is the one that counts; what is left open fits all.
struct Bound {
  Claim claim;
  double most;
  std::optional<Activation> activation = {};
  std::optional<TensorType> type = {};
};

struct BackendNeeds {
  Shape shape;
  std::int32_t num_rows = 96;
  Activation activation = Activation::kF32;
  bool deterministic = false;
};

struct AttentionInputCase {
  Shape shape;
  Activation activation;
  TensorType type;
  KvType kv_type;
  std::int32_t block_size;
  bool biases;
  std::vector<SequenceSpec> sequences;
};

struct ProductCase {
  Shape shape;
  Activation activation;
  TensorType type;
  bool biases;
  std::int64_t num_rows;
};

// A layer's size where what counts is its kind.
struct PartCase {
  std::int64_t width;
  std::int32_t num_rows;
  TensorType type = TensorType::kF32;
  bool deterministic = false;
};

struct Subject {
  std::string name;
  std::function<std::unique_ptr<TestBackend>(const BackendNeeds&)> create;
  // Gives the same bits in everything; null: there is none.
  std::function<std::unique_ptr<TestBackend>(const BackendNeeds&)> twin;
  bool oracle_rounds_activations = false;  // as the subject does, or not at all
  std::vector<Bound> bounds;
  double stored_factor =
      1.0;  // of the bound of kAttentionInput, for what is stored, beside one step of the type
  float rms_centre = 0.0f, layer_centre = 0.0f;  // of the rows of feed-forward layers

  std::vector<AttentionInputCase> attention_inputs;
  std::vector<ProductCase> products;
  std::vector<Activation> logits_activations;
  std::vector<std::int64_t> embedding_widths;
  std::vector<Shape> head_shapes;
  std::vector<PartCase> post_norms, feed_forwards;
};

inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
inline std::string name_of_subject(const ::testing::TestParamInfo<Subject>& info) { return info.param.name; }

class OperationClaims : public ::testing::TestWithParam<Subject> {};

}  // namespace octavo::kernels::testing
