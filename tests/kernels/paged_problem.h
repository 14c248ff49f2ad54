// Made-up steps for the kernel tests: sequences with a history in a scattered, poisoned pool, and the rows of
// one step.
//
// What a token's key and value are depends on (seed, sequence, position, layer, head, dimension) only, so
// that the same step can be laid out with other block sizes, cut into other chunks, or put beside other
// sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/isa.h"

namespace octavo::kernels::testing {

// Uniform in [-1, 1), a pure function of its arguments.
float noise(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);
std::vector<float> noise_row(std::uint64_t seed, std::uint64_t index, std::int64_t size, float scale = 1.0f);

struct Shape {
  std::string name;
  AttentionShape attention;
  std::int32_t embedding_length = 0;
  std::int32_t feed_forward_length = 0;

  std::int64_t query_width() const { return std::int64_t{attention.num_heads} * attention.head_dim; }
  std::int64_t output_width() const { return std::int64_t{attention.num_heads} * attention.value_dim(); }
  std::int64_t kv_width() const { return std::int64_t{attention.num_kv_heads} * attention.head_dim; }
};

Shape smollm2_shape();     // 9/3 heads of 64, width 576
Shape llama3_shape();      // 32/8 heads of 128
Shape one_tiny_head();     // 1 head of 8
Shape odd_shape();         // 4/2 heads of 80, 32 of them rotated, in halves
Shape latent_shape();      // 20 heads that share a key of 72, whose first 64 numbers are the value
Shape odd_latent_shape();  // 5 heads, 27 and 21

// One sequence of a step: `history` tokens have keys and values already, `new_tokens` rows are computed. The
// keys and values of the first `num_shared` positions are those of an earlier sequence of the step, `parent`.
struct SequenceSpec {
  std::uint64_t id;
  std::int32_t history;
  std::int32_t new_tokens;
  std::int32_t parent = -1;
  std::int32_t num_shared = 0;
};

// A step's arrays, and the image of the pool before it.
struct PagedProblem {
  Shape shape;
  KvLayout layout;
  std::int32_t num_blocks = 0;
  std::vector<SequenceSpec> sequences;
  std::vector<std::int32_t> positions, slot_mapping, query_start, context_lens, block_tables;
  std::int32_t max_blocks = 0;
  std::vector<float> rotations;
  // Every byte 0xff, a NaN of each type (and of int8's scales), but for the slots of the history (and of the
  // new tokens if asked for).
  std::vector<std::byte> pool;

  std::int64_t num_rows() const { return static_cast<std::int64_t>(positions.size()); }
  PagedBatch batch() const;
  // Address in `pool` of a token's K or V element.
  std::byte* key(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head,
                 std::int32_t dimension);
  std::byte* value(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head,
                   std::int32_t dimension);
  // Of int8: the token's two scales.
  std::byte* key_scale(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head);
  std::byte* value_scale(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head);

  // One token's key and value [head_dim], rounded to the layout's type; and back, as the bytes are defined.
  // In latent layers values are what the key holds, and the value is not stored.
  void store(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head,
             const std::vector<float>& key_values, const std::vector<float>& value_values);
  double stored_key(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head,
                    std::int32_t dimension);
  double stored_value(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head,
                      std::int32_t dimension);
  // Numbers that are not finite all over a token's value, and its key if there is one; of int8 in its scales.
  void spoil(std::int32_t sequence, std::int32_t position, std::int32_t layer,
             std::optional<float> key_number, float value_number);

 private:
  std::byte* head_start(std::int32_t sequence, std::int32_t position, std::int32_t layer, std::int32_t head);
};

inline constexpr KvType kEveryKvType[] = {KvType::kF32,  KvType::kF16,     KvType::kBf16,
                                          KvType::kInt8, KvType::kFp8E4m3, KvType::kFp8E5m2};
const char* name_of(KvType type);

struct ProblemOptions {
  KvType type = KvType::kF16;
  std::int32_t block_size = 16;
  std::int32_t num_layers = 2;
  bool new_tokens_stored = true;  // for attention alone; attention_input writes them itself
  bool share_blocks = false;  // whole blocks that a sequence shares with its parent stand in the pool once
  std::uint64_t seed = 1;
};

PagedProblem make_problem(const Shape& shape, const std::vector<SequenceSpec>& sequences,
                          const ProblemOptions& options);

// Stores `value` at `target`, rounded to `type`; int8: value / scale. And what the bytes at `source` mean, by
// the definition of each format.
void write_element(KvType type, std::byte* target, float value, float scale = 1.0f);
double read_element(KvType type, const std::byte* source, float scale = 1.0f);
// max |a| / 127
float int8_scale(const std::vector<float>& values);

// Rows [num_rows, width], row i being noise of (seed, sequence id, position).
std::vector<float> rows_of(const PagedProblem& problem, std::uint64_t seed, std::int64_t width, float scale);

std::unique_ptr<KvCache> cache_with(Backend& backend, const PagedProblem& problem);
std::byte* pool_bytes(Backend& backend, KvCache& kv);
std::byte* pool_bytes(Backend& backend, HostKvCache& kv);

std::unique_ptr<Backend> cpu_backend(cpu::InstructionSet isa, std::int32_t threads = 2,
                                     Activation activation = Activation::kF32);
std::unique_ptr<Backend> reference_backend(Activation activation = Activation::kF32);

// Scores of these spread over about ten powers of two, the weights of softmax over as many.
std::vector<float> queries_of(const PagedProblem& problem);
// Attention of the problem's rows in `layer`.
std::vector<float> run_attention(Backend& backend, const PagedProblem& problem, std::int32_t layer = 1);

MatrixView view(std::vector<float>& values, std::int64_t columns);
ConstMatrixView view(const std::vector<float>& values, std::int64_t columns);

// A matrix of random bytes that make sense for its type.
struct OwnedMatrix {
  MatrixSource source;
  std::vector<std::byte> bytes;
};
OwnedMatrix random_matrix(TensorType type, std::int64_t rows, std::int64_t columns, std::uint64_t seed);

// Largest |a - b| divided by largest |b|. Infinite when one is not finite.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b);
bool same_bits(const float* a, const float* b, std::int64_t size);

}  // namespace octavo::kernels::testing
