#include "tests/kernels/operation_claims.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "kernels/dequantize.h"

namespace octavo::kernels::testing {
namespace {

double bound_of(const Subject& subject, Claim claim, Activation activation = Activation::kF32,
                TensorType type = TensorType::kF32) {
  for (const Bound& bound : subject.bounds) {
    if (bound.claim == claim && bound.activation.value_or(activation) == activation &&
        bound.type.value_or(type) == type) {
      return bound.most;
    }
  }
  ADD_FAILURE() << subject.name << " has no bound for a claim";
  return 0.0;
}

// One step of the largest number stored, should rounding to the KV type go the other way.
double kv_step(KvType type) {
  switch (type) {
    case KvType::kF32: return 0.0;
    case KvType::kF16: return 0x1p-10;
    case KvType::kBf16: return 0x1p-7;
    case KvType::kInt8: return 1.06 / 127.0;  // the other scale may have been chosen
    case KvType::kFp8E4m3: return 0x1p-3;
    case KvType::kFp8E5m2: return 0x1p-2;
  }
  return 0.0;
}

TestBackend oracle_of(const Subject& subject, Activation activation = Activation::kF32) {
  return TestBackend(reference_backend(subject.oracle_rounds_activations ? activation : Activation::kF32));
}

std::string name_of(TensorType type) { return std::string(traits_of(type).name); }

// What a run gives, each vector compared by itself.
using Parts = std::vector<std::vector<float>>;
Parts parts_of(std::vector<float> numbers) { return {std::move(numbers)}; }
Parts parts_of(AttentionInput input) { return {std::move(input.q), std::move(input.stored)}; }
Parts parts_of(Logits logits) {
  return {std::move(logits.rows), std::move(logits.sums), std::move(logits.maxima)};
}

// A subject beside the oracle, and its twin where there is one, for operations of one size.
class Comparison {
 public:
  Comparison(const Subject& subject, const BackendNeeds& needs)
      : backend_(subject.create(needs)),
        oracle_(oracle_of(subject, needs.activation)),
        twin_(subject.twin != nullptr ? subject.twin(needs) : nullptr) {}

  // run(backend) gives numbers: on the subject within `bound` of the oracle's, and the twin's bits.
  template <class Run>
  void expect(double bound, const Run& run) {
    const Parts got = parts_of(run(*backend_)), expected = parts_of(run(oracle_));
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(relative_difference(got[i], expected[i]), bound) << "part " << i;
    if (twin_ == nullptr) return;
    const Parts twin = parts_of(run(*twin_));
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), twin[i].size());
      EXPECT_TRUE(same_bits(got[i].data(), twin[i].data(), static_cast<std::int64_t>(got[i].size())));
    }
  }

 private:
  std::unique_ptr<TestBackend> backend_;
  TestBackend oracle_;
  std::unique_ptr<TestBackend> twin_;
};

}  // namespace

// The last panel of a table is cut, and rows of K types are longer than a head's eight groups.
TEST_P(OperationClaims, EmbeddingsAreTheRowsOfTheFile) {
  constexpr std::int64_t kRows = 39;
  const std::vector<std::int32_t> token_ids = {6, 0, 6, 1, 38, 17, 31}, positions(token_ids.size());
  const auto backend = GetParam().create({.shape = smollm2_shape()});
  TestBackend oracle = oracle_of(GetParam());
  for (const TensorType type : kEveryTensorType) {
    const std::vector<std::int64_t> widths = traits_of(type).block_elements > 32
                                                 ? std::vector<std::int64_t>{512, 768}
                                             : traits_of(type).quantised ? std::vector<std::int64_t>{96}
                                                                         : std::vector<std::int64_t>{90, 96};
    for (const std::int64_t width : widths) {
      const OwnedMatrix table = random_matrix(type, kRows, width, 80);
      std::vector<float> all(static_cast<std::size_t>(kRows * width)), expected;
      dequantize(type, table.bytes.data(), kRows * width, all.data());
      for (const std::int32_t token : token_ids)
        expected.insert(expected.end(), all.begin() + token * width, all.begin() + (token + 1) * width);
      for (TestBackend* const on : {backend.get(), &oracle}) {
        const auto matrix = (*on)->prepare_matrix(table.source).value();
        const std::vector<float> got = run_embed(*on, {.tokens = matrix.get()}, token_ids, positions);
        EXPECT_TRUE(got.size() == expected.size() &&
                    same_bits(got.data(), expected.data(), static_cast<std::int64_t>(got.size())))
            << name_of(type) << ", " << width << " wide, " << (*on)->name();
      }
    }
  }
}

TEST_P(OperationClaims, EmbeddingsAreScaledAndPositionsAdded) {
  const std::vector<std::int32_t> token_ids = {3, 0, 36, 3}, positions = {0, 7, 18, 1};
  for (const std::int64_t width : GetParam().embedding_widths) {
    Comparison comparison(GetParam(), {.shape = shape_of_width(width, width)});
    for (const TensorType table_type : {TensorType::kF32, TensorType::kBF16}) {
      const OwnedMatrix tokens = random_matrix(TensorType::kF16, 37, width, 1),
                        table = random_matrix(table_type, 19, width, 2);
      for (const bool is_learned : {true, false}) {
        for (const float scale : {1.0f, 7.5f}) {
          SCOPED_TRACE(std::to_string(width) + " wide");
          comparison.expect(bound_of(GetParam(), Claim::kEmbedding), [&](TestBackend& on) {
            const auto token_matrix = on->prepare_matrix(tokens.source).value(),
                       position_matrix = on->prepare_matrix(table.source).value();
            return run_embed(on, {token_matrix.get(), scale, is_learned ? position_matrix.get() : nullptr},
                             token_ids, positions);
          });
        }
      }
    }
  }
}

TEST_P(OperationClaims, AttentionInputEqualsTheReference) {
  for (const AttentionInputCase& c : GetParam().attention_inputs) {
    const LayerWeights weights = layer_weights(c.shape, c.type, c.biases);
    const PagedProblem problem = make_problem(
        c.shape, c.sequences, {.type = c.kv_type, .block_size = c.block_size, .new_tokens_stored = false});
    TestBackend oracle = oracle_of(GetParam(), c.activation);
    const AttentionInput got = run_attention_input(
        *GetParam().create({.shape = c.shape, .activation = c.activation}), problem, weights);
    const AttentionInput expected = run_attention_input(oracle, problem, weights);
    const double bound = bound_of(GetParam(), Claim::kAttentionInput, c.activation, c.type);
    EXPECT_LE(relative_difference(got.q, expected.q), bound) << c.shape.name << " " << name_of(c.type);
    EXPECT_LE(relative_difference(got.stored, expected.stored),
              kv_step(c.kv_type) + GetParam().stored_factor * bound)
        << c.shape.name << " " << name_of(c.type) << " " << testing::name_of(c.kv_type);
  }
}

TEST_P(OperationClaims, AttentionInputWritesItsSlotsAndNothingElse) {
  const std::vector<SequenceSpec> sequences = {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}};
  const LayerWeights weights = layer_weights(odd_shape(), TensorType::kQ4_1, /*biases=*/true);
  for (const KvType type : kEveryKvType) {
    PagedProblem problem =
        make_problem(odd_shape(), sequences, {.type = type, .block_size = 8, .new_tokens_stored = false});
    const AttentionInput result =
        run_attention_input(*GetParam().create({.shape = odd_shape()}), problem, weights);
    // Put back what the operation may have written; the rest must be as it was.
    const std::vector<std::byte> before = problem.pool;
    problem.pool = result.pool;
    const auto put_back = [&](std::byte* start, std::int64_t num_bytes) {
      const std::ptrdiff_t offset = start - problem.pool.data();
      std::copy_n(before.begin() + offset, num_bytes, problem.pool.begin() + offset);
    };
    for (std::int32_t s = 0; s < 3; ++s) {
      const SequenceSpec& sequence = sequences[static_cast<std::size_t>(s)];
      for (std::int32_t i = sequence.history; i < sequence.history + sequence.new_tokens; ++i) {
        for (std::int32_t head = 0; head < 2; ++head) {
          for (std::int32_t d = 0; d < 80; ++d) {
            put_back(problem.key(s, i, kWrittenLayer, head, d), kv_element_bytes(type));
            put_back(problem.value(s, i, kWrittenLayer, head, d), kv_element_bytes(type));
          }
          if (!problem.layout.has_scales()) continue;
          put_back(problem.key_scale(s, i, kWrittenLayer, head), 4);
          put_back(problem.value_scale(s, i, kWrittenLayer, head), 4);
        }
      }
    }
    EXPECT_TRUE(problem.pool == before) << testing::name_of(type);
  }
}

TEST_P(OperationClaims, HeadNormsAndLocalRotationsEqualTheReference) {
  for (Shape shape : GetParam().head_shapes) {
    Comparison comparison(GetParam(), {.shape = shape});
    for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalves}) {
      for (const Rotations rotations : {Rotations::kGlobal, Rotations::kLocal}) {
        for (const bool has_norms : {true, false}) {
          shape.attention.rotations = rotations;
          shape.attention.pairing = pairing;
          const PagedProblem problem = make_problem(shape, {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}},
                                                    {.type = KvType::kF32, .new_tokens_stored = false});
          SCOPED_TRACE(shape.name);
          comparison.expect(bound_of(GetParam(), Claim::kHeadParts), [&](TestBackend& on) {
            return run_attention_input(on, problem, HeadParts{has_norms});
          });
        }
      }
    }
  }
}

TEST_P(OperationClaims, ProductsOfALayerEqualTheReference) {
  for (const ProductCase& c : GetParam().products) {
    SCOPED_TRACE(c.shape.name + " " + name_of(c.type) + ", " + std::to_string(c.num_rows) + " rows");
    const LayerWeights weights = layer_weights(c.shape, c.type, c.biases);
    Comparison comparison(GetParam(), {.shape = c.shape, .activation = c.activation});
    comparison.expect(bound_of(GetParam(), Claim::kProjectResidual, c.activation, c.type),
                      [&](TestBackend& on) { return run_project_residual(on, weights, 0, c.num_rows); });
    comparison.expect(bound_of(GetParam(), Claim::kFeedForwardInput, c.activation, c.type),
                      [&](TestBackend& on) { return run_feed_forward_input(on, weights, 0, c.num_rows); });
  }
}

TEST_P(OperationClaims, FeedForwardLayersOfEveryKindEqualTheReference) {
  for (const PartCase& c : GetParam().feed_forwards) {
    Comparison comparison(GetParam(), {.shape = shape_of_width(c.width, c.width + 22),
                                       .num_rows = c.num_rows,
                                       .deterministic = c.deterministic});
    for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
      if (norm == NormKind::kLayer && c.width == 1) continue;  // no variance
      for (const bool has_gate : {true, false}) {
        for (const auto activation :
             {FeedForwardActivation::kSilu, FeedForwardActivation::kGelu, FeedForwardActivation::kRelu}) {
          for (const bool has_bias : {true, false}) {
            const FeedForward kind{
                .norm = norm,
                .has_gate = has_gate,
                .has_bias = has_bias,
                .activation = activation,
                .gate_type = c.type,
                .up_type = c.type,
                .centre = norm == NormKind::kRms ? GetParam().rms_centre : GetParam().layer_centre};
            SCOPED_TRACE(std::to_string(c.width) + " wide, " + describe(kind));
            comparison.expect(bound_of(GetParam(), Claim::kFeedForwardKinds), [&](TestBackend& on) {
              return run_feed_forward_input(on, kind, c.width, c.num_rows);
            });
          }
        }
      }
    }
  }
}

// 1000 + a number is rounded to 1 / 16,384; the mean of 600 of them to about as much.
TEST_P(OperationClaims, LayerNormTakesAwayAConstantThatDwarfsTheRest) {
  constexpr std::int64_t kWidth = 600;
  const FeedForward kind{.norm = NormKind::kLayer, .has_gate = false, .has_bias = false, .centre = 1000.0f};
  Comparison(GetParam(), {.shape = shape_of_width(kWidth, kWidth + 22), .num_rows = 4})
      .expect(5e-4, [&](TestBackend& on) { return run_feed_forward_input(on, kind, kWidth, 4); });
}

TEST_P(OperationClaims, PostNormsEqualTheReference) {
  for (const PartCase& c : GetParam().post_norms) {
    SCOPED_TRACE(std::to_string(c.width) + " wide, " + std::to_string(c.num_rows) + " rows");
    Comparison(
        GetParam(),
        {.shape = shape_of_width(c.width, c.width), .num_rows = c.num_rows, .deterministic = c.deterministic})
        .expect(bound_of(GetParam(), Claim::kPostNorm),
                [&](TestBackend& on) { return run_post_norm(on, c.type, c.width, c.num_rows); });
  }
}

TEST_P(OperationClaims, LogitsOfChosenRowsEqualTheReference) {
  for (const Activation activation : GetParam().logits_activations) {
    const auto backend = GetParam().create({.shape = smollm2_shape(), .activation = activation});
    TestBackend oracle = oracle_of(GetParam(), activation);
    const double bound = bound_of(GetParam(), Claim::kLogits, activation, TensorType::kQ8_0);
    for (const std::vector<std::int32_t>& rows : {std::vector<std::int32_t>{8, 0, 3}, {4}}) {
      const Logits got = run_logits(*backend, rows), expected = run_logits(oracle, rows);
      EXPECT_LE(relative_difference(got.rows, expected.rows), bound);
      EXPECT_LE(relative_difference(got.sums, expected.sums), bound);
      EXPECT_LE(relative_difference(got.maxima, expected.maxima), bound);
      for (std::size_t i = 0; i < rows.size(); ++i) {  // exactly those of the logits themselves
        for (std::size_t piece = 0; piece < 8; ++piece) {
          const auto first = got.rows.begin() + static_cast<std::ptrdiff_t>(i * 500 + piece * 64);
          EXPECT_EQ(got.maxima[i * 8 + piece], *std::max_element(first, first + (piece == 7 ? 52 : 64)));
        }
      }
    }
  }
}

TEST_P(OperationClaims, HiddenStatesOfChosenRowsEqualTheReference) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const bool has_bias : {false, true}) {
      Comparison(GetParam(), {.shape = shape_of_width(576, 600), .num_rows = 9})
          .expect(1e-5, [&](TestBackend& on) {
            return run_hidden_states(on, kind, has_bias, {8, 0, 1, 2, 5});
          });
    }
  }
}

TEST_P(OperationClaims, LogitsAreCapped) {
  Comparison comparison(GetParam(), {.shape = shape_of_width(40, 40), .num_rows = 5});
  for (const float cap : {1e-3f, 10.0f, 1e6f}) {
    SCOPED_TRACE("cap " + std::to_string(cap));
    comparison.expect(bound_of(GetParam(), Claim::kCappedLogits), [&](TestBackend& on) {
      Logits logits = run_capped_logits(on, cap);
      for (const float logit : logits.rows) EXPECT_LE(std::fabs(logit), cap);
      return logits;
    });
  }
}

}  // namespace octavo::kernels::testing
