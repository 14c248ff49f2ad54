#include "engine/model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/half.h"
#include "engine/model/file_mapping.h"
#include "kernels/dequantize.h"

namespace octavo::model {
namespace {

using kernels::MatrixSource;
using kernels::TensorType;

std::optional<TensorType> tensor_type_of(WeightType dtype) {
  switch (dtype) {
    case WeightType::kAuto: return std::nullopt;
    case WeightType::kFloat16: return TensorType::kF16;
    case WeightType::kBfloat16: return TensorType::kBF16;
    case WeightType::kFloat32: return TensorType::kF32;
  }
  return std::nullopt;
}

// The type in which a matrix is kept: its own unless it is unquantised and another was asked for.
TensorType kept_type(const MatrixSource& source, WeightType dtype) {
  return kernels::traits_of(source.type).quantised ? source.type
                                                   : tensor_type_of(dtype).value_or(source.type);
}

std::int64_t bytes_in(TensorType type, const MatrixSource& source) {
  const kernels::TensorTypeTraits& traits = kernels::traits_of(type);
  return source.rows * (source.columns / traits.block_elements) * traits.block_bytes;
}

// Appends one row's floats in another unquantised type. False: float16 cannot hold one of them.
bool append_converted(const std::vector<float>& row, TensorType type, std::byte* out) {
  if (type == TensorType::kF32) {
    std::memcpy(out, row.data(), row.size() * sizeof(float));
    return true;
  }
  bool fits = true;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::uint16_t word = type == TensorType::kF16 ? float_to_half(row[i]) : float_to_bfloat16(row[i]);
    fits &= type != TensorType::kF16 || !std::isfinite(row[i]) || std::isfinite(half_to_float(word));
    std::memcpy(out + i * sizeof(word), &word, sizeof(word));
  }
  return fits;
}

// Columns where the order of a matrix took them from.
void put_back(std::span<const std::int32_t> column_order, std::vector<float>& row) {
  if (column_order.empty()) return;
  const std::vector<float> ordered = row;
  for (std::size_t i = 0; i < ordered.size(); ++i)
    row[static_cast<std::size_t>(column_order[i])] = ordered[i];
}

Result<std::vector<std::byte>> converted(const MatrixSource& source, TensorType type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_in(type, source)));
  std::vector<float> row(static_cast<std::size_t>(source.columns));
  const auto source_stride = source.bytes.size() / static_cast<std::size_t>(source.rows);
  const auto stride = bytes.size() / static_cast<std::size_t>(source.rows);
  for (std::size_t i = 0; i < static_cast<std::size_t>(source.rows); ++i) {
    kernels::dequantize(source.type, source.bytes.data() + i * source_stride, source.columns, row.data());
    for (float& weight : row) weight *= source.scale;
    put_back(source.column_order, row);
    if (append_converted(row, type, bytes.data() + i * stride)) continue;
    return Error{
        .code = ErrorCode::kUnsupported,
        .message = "dtype: a weight of this model is outside the range of float16; use bfloat16 or float32",
        .subject = "dtype"};
  }
  return bytes;
}

// Rows that stand in several pieces, one behind the other.
Result<std::vector<std::byte>> gathered_rows(const Projection& projection) {
  const StoredMatrix& source = projection.weight;
  const auto row_bytes = static_cast<std::size_t>(bytes_in(source.type, source) / source.rows);
  std::vector<std::byte> bytes(static_cast<std::size_t>(source.rows) * row_bytes);
  std::span<std::byte> out = bytes;
  for (const RowRange& range : projection.row_ranges) {
    const auto size = static_cast<std::size_t>(range.count) * row_bytes;
    if (source.reader != nullptr) {
      OCTAVO_TRY_VOID(source.reader->read(source.first_row + range.first, range.count, out.first(size)));
    } else {
      const auto begin = static_cast<std::size_t>(range.first) * row_bytes;
      std::ranges::copy(source.bytes.subspan(begin, size), out.begin());
    }
    out = out.subspan(size);
  }
  return bytes;
}

// A matrix that a reader makes, made. It holds what it views.
struct MadeMatrix {
  std::vector<std::byte> owned;
  MatrixSource source;
};

Result<MadeMatrix> made(const StoredMatrix& stored) {
  MadeMatrix matrix{.owned = {}, .source = stored};
  if (stored.reader == nullptr) return matrix;
  matrix.owned.resize(static_cast<std::size_t>(bytes_in(stored.type, stored)));
  OCTAVO_TRY_VOID(stored.reader->read(stored.first_row, stored.rows, matrix.owned));
  matrix.source.bytes = matrix.owned;
  return matrix;
}

// Prepares matrices and counts how far it has come.
class Preparation {
 public:
  Preparation(WeightType dtype, kernels::Backend& backend, const LoadProgress& progress,
              std::int64_t total_bytes)
      : dtype_(dtype), backend_(backend), progress_(progress), total_bytes_(total_bytes) {}

  Result<PreparedProjection> prepare(Projection projection) {
    PreparedProjection prepared;
    if (projection.weight.rows == 0) return prepared;
    OCTAVO_TRY(prepared.matrix,
               projection.row_ranges.empty() ? prepare(projection.weight) : prepare_gathered(projection));
    OCTAVO_TRY(prepared.bias, prepare(projection.bias));
    return prepared;
  }

  Result<PreparedNorm> prepare(const NormTensors& norm) {
    PreparedNorm prepared;
    OCTAVO_TRY(prepared.weight, prepare(norm.weight));
    OCTAVO_TRY(prepared.bias, prepare(norm.bias));
    return prepared;
  }

  // Null for no numbers.
  Result<std::unique_ptr<kernels::Buffer>> prepare(const std::vector<float>& values) {
    if (values.empty()) return std::unique_ptr<kernels::Buffer>();
    return backend_.prepare_vector(values);
  }

  Result<std::unique_ptr<kernels::Matrix>> prepare(const StoredMatrix& stored) {
    OCTAVO_TRY(const MadeMatrix rows, made(stored));
    OCTAVO_TRY(std::unique_ptr<kernels::Matrix> matrix, prepare_matrix(rows.source));
    release_pages(stored.bytes);
    return matrix;
  }

  // What activations must not be rounded for: a quantised matrix becomes one of floats. Few numbers.
  Result<PreparedProjection> prepare_expanded(Projection projection) {
    if (!kernels::traits_of(projection.weight.type).quantised) return prepare(std::move(projection));
    OCTAVO_TRY(const MadeMatrix rows, made(projection.weight));
    const MatrixSource& source = rows.source;
    OCTAVO_TRY(const std::vector<std::byte> bytes, converted(source, TensorType::kF32));
    PreparedProjection prepared;
    OCTAVO_TRY_VOID(report());
    OCTAVO_TRY(prepared.matrix,
               backend_.prepare_matrix({TensorType::kF32, source.rows, source.columns, bytes}));
    done_bytes_ += bytes_in(source.type, source);
    OCTAVO_TRY(prepared.bias, prepare(projection.bias));
    return prepared;
  }

  // Floats, with rows and columns the other way round.
  Result<std::unique_ptr<kernels::Matrix>> prepare_turned(const StoredMatrix& source) {
    OCTAVO_TRY(const MadeMatrix made_rows, made(source));
    OCTAVO_TRY(const std::vector<std::byte> bytes, converted(made_rows.source, TensorType::kF32));
    std::vector<std::byte> turned_bytes(bytes.size());
    const auto rows = static_cast<std::size_t>(source.rows),
               columns = static_cast<std::size_t>(source.columns);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        std::memcpy(turned_bytes.data() + (column * rows + row) * sizeof(float),
                    bytes.data() + (row * columns + column) * sizeof(float), sizeof(float));
      }
    }
    MatrixSource turned = LatentTensors::turned(source);
    turned.bytes = turned_bytes;
    return prepare_matrix(turned);
  }

  // One after the other; perhaps none.
  Result<void> prepare(const std::vector<StoredMatrix>& sources,
                       std::vector<std::unique_ptr<kernels::Matrix>>& owned,
                       std::vector<const kernels::Matrix*>& prepared) {
    for (const StoredMatrix& source : sources) {
      OCTAVO_TRY(std::unique_ptr<kernels::Matrix> matrix, prepare(source));
      prepared.push_back(matrix.get());
      owned.push_back(std::move(matrix));
    }
    if (sources.empty() || sources.front().reader != nullptr) return {};
    // Also the pages that two experts share.
    const std::byte* const begin = sources.front().bytes.data();
    const std::span<const std::byte> last = sources.back().bytes;
    release_pages({begin, last.data() + last.size()});
    return {};
  }

  Result<void> report() const {
    return report_progress(progress_, static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_));
  }

 private:
  Result<std::unique_ptr<kernels::Matrix>> prepare_gathered(const Projection& projection) {
    OCTAVO_TRY(const std::vector<std::byte> rows, gathered_rows(projection));
    MatrixSource source = projection.weight;
    source.bytes = rows;
    OCTAVO_TRY(std::unique_ptr<kernels::Matrix> matrix, prepare_matrix(source));
    release_pages(projection.weight.bytes);
    return matrix;
  }

  Result<std::unique_ptr<kernels::Matrix>> prepare_matrix(MatrixSource source) {
    OCTAVO_TRY_VOID(report());
    const TensorType type = kept_type(source, dtype_);
    done_bytes_ += bytes_in(type, source);
    if (type == source.type) return backend_.prepare_matrix(source);
    OCTAVO_TRY(const std::vector<std::byte> bytes, converted(source, type));
    return backend_.prepare_matrix(
        {.type = type, .rows = source.rows, .columns = source.columns, .bytes = bytes});
  }

  WeightType dtype_;
  kernels::Backend& backend_;
  const LoadProgress& progress_;
  std::int64_t total_bytes_;
  std::int64_t done_bytes_ = 0;
};

Result<PreparedExperts> prepare_experts(ExpertTensors tensors, Preparation& preparation) {
  PreparedExperts experts;
  if (tensors.empty()) return experts;
  OCTAVO_TRY(experts.norm, preparation.prepare(tensors.norm));
  OCTAVO_TRY(experts.router_norm, preparation.prepare(tensors.router_norm));
  OCTAVO_TRY(experts.router, preparation.prepare_expanded(std::move(tensors.router)));
  OCTAVO_TRY(experts.selection_bias, preparation.prepare(tensors.selection_bias));
  OCTAVO_TRY_VOID(preparation.prepare(tensors.gate, experts.owned, experts.gate));
  OCTAVO_TRY_VOID(preparation.prepare(tensors.up, experts.owned, experts.up));
  OCTAVO_TRY_VOID(preparation.prepare(tensors.down, experts.owned, experts.down));
  OCTAVO_TRY(experts.gate_bias, preparation.prepare(tensors.gate_bias));
  OCTAVO_TRY(experts.up_bias, preparation.prepare(tensors.up_bias));
  OCTAVO_TRY(experts.down_bias, preparation.prepare(tensors.down_bias));
  OCTAVO_TRY(experts.shared_gate, preparation.prepare(std::move(tensors.shared_gate)));
  OCTAVO_TRY(experts.shared_up, preparation.prepare(std::move(tensors.shared_up)));
  OCTAVO_TRY(experts.shared_down, preparation.prepare(std::move(tensors.shared_down)));
  OCTAVO_TRY(experts.latent_down, preparation.prepare(std::move(tensors.latent_down)));
  OCTAVO_TRY(experts.latent_up, preparation.prepare(std::move(tensors.latent_up)));
  OCTAVO_TRY(experts.output_scale, preparation.prepare(tensors.output_scale));
  OCTAVO_TRY(experts.routed_post_norm, preparation.prepare(tensors.routed_post_norm));
  OCTAVO_TRY(experts.shared_post_norm, preparation.prepare(tensors.shared_post_norm));
  OCTAVO_TRY(experts.shared_router, preparation.prepare_expanded(std::move(tensors.shared_router)));
  return experts;
}

Result<PreparedLatent> prepare_latent(LatentTensors tensors, Preparation& preparation) {
  PreparedLatent latent;
  if (tensors.empty()) return latent;
  OCTAVO_TRY(latent.query_down, preparation.prepare(std::move(tensors.query_down)));
  OCTAVO_TRY(latent.query_norm, preparation.prepare(tensors.query_norm));
  OCTAVO_TRY(latent.query, preparation.prepare(std::move(tensors.query)));
  OCTAVO_TRY(latent.key_value, preparation.prepare(std::move(tensors.key_value)));
  OCTAVO_TRY(latent.latent_norm, preparation.prepare(tensors.latent_norm));
  if (tensors.keys_are_transposed) {
    for (const StoredMatrix& source : tensors.keys) {
      OCTAVO_TRY(std::unique_ptr<kernels::Matrix> matrix, preparation.prepare_turned(source));
      latent.keys.push_back(matrix.get());
      latent.owned.push_back(std::move(matrix));
    }
  } else {
    OCTAVO_TRY_VOID(preparation.prepare(tensors.keys, latent.owned, latent.keys));
  }
  OCTAVO_TRY_VOID(preparation.prepare(tensors.values, latent.owned, latent.values));
  return latent;
}

Result<PreparedRecurrent> prepare_recurrent(RecurrentTensors tensors, Preparation& preparation) {
  PreparedRecurrent recurrent;
  if (tensors.empty()) return recurrent;
  OCTAVO_TRY(recurrent.input, preparation.prepare(std::move(tensors.input)));
  OCTAVO_TRY(recurrent.gate, preparation.prepare(std::move(tensors.gate)));
  OCTAVO_TRY(recurrent.input_gate, preparation.prepare(std::move(tensors.input_gate)));
  OCTAVO_TRY(recurrent.time_step, preparation.prepare(std::move(tensors.time_step)));
  OCTAVO_TRY(recurrent.beta, preparation.prepare(std::move(tensors.beta)));
  OCTAVO_TRY(recurrent.convolution, preparation.prepare(tensors.convolution));
  OCTAVO_TRY(recurrent.convolution_bias, preparation.prepare(tensors.convolution_bias));
  OCTAVO_TRY(recurrent.time_bias, preparation.prepare(tensors.time_bias));
  OCTAVO_TRY(recurrent.decay, preparation.prepare(tensors.decay));
  OCTAVO_TRY(recurrent.skip, preparation.prepare(tensors.skip));
  OCTAVO_TRY(recurrent.output_norm, preparation.prepare(tensors.output_norm));
  OCTAVO_TRY(recurrent.output, preparation.prepare(std::move(tensors.output)));
  return recurrent;
}

Result<LayerWeights> prepare_layer(LayerTensors tensors, Preparation& preparation) {
  LayerWeights layer;
  OCTAVO_TRY(layer.attention_norm, preparation.prepare(tensors.attention_norm));
  OCTAVO_TRY(layer.query_norm, preparation.prepare(tensors.query_norm));
  OCTAVO_TRY(layer.key_norm, preparation.prepare(tensors.key_norm));
  OCTAVO_TRY(layer.value_norm, preparation.prepare(tensors.value_norm));
  OCTAVO_TRY(layer.post_attention_norm, preparation.prepare(tensors.post_attention_norm));
  layer.branches_stand_side_by_side = tensors.branches_stand_side_by_side;
  OCTAVO_TRY(layer.feed_forward_norm, preparation.prepare(tensors.feed_forward_norm));
  OCTAVO_TRY(layer.post_feed_forward_norm, preparation.prepare(tensors.post_feed_forward_norm));
  OCTAVO_TRY(layer.query, preparation.prepare(std::move(tensors.query)));
  OCTAVO_TRY(layer.key, preparation.prepare(std::move(tensors.key)));
  OCTAVO_TRY(layer.value, preparation.prepare(std::move(tensors.value)));
  OCTAVO_TRY(layer.attention_gate, preparation.prepare(std::move(tensors.attention_gate)));
  OCTAVO_TRY(layer.latent, prepare_latent(std::move(tensors.latent), preparation));
  OCTAVO_TRY(layer.attention_output, preparation.prepare(std::move(tensors.attention_output)));
  OCTAVO_TRY(layer.recurrent, prepare_recurrent(std::move(tensors.recurrent), preparation));
  OCTAVO_TRY(layer.sinks, preparation.prepare(tensors.sinks));
  OCTAVO_TRY(layer.experts, prepare_experts(std::move(tensors.experts), preparation));
  OCTAVO_TRY(layer.gate, preparation.prepare(std::move(tensors.gate)));
  OCTAVO_TRY(layer.up, preparation.prepare(std::move(tensors.up)));
  OCTAVO_TRY(layer.down, preparation.prepare(std::move(tensors.down)));
  OCTAVO_TRY(layer.embedding_gate, preparation.prepare(std::move(tensors.embedding_gate)));
  OCTAVO_TRY(layer.embedding_projection, preparation.prepare(std::move(tensors.embedding_projection)));
  OCTAVO_TRY(layer.post_embedding_norm, preparation.prepare(tensors.post_embedding_norm));
  layer.output_scale = tensors.output_scale;
  return layer;
}

Result<PreparedNextToken> prepare_next_token(NextTokenTensors tensors, Preparation& preparation) {
  PreparedNextToken next;
  OCTAVO_TRY(next.token_norm, preparation.prepare(tensors.token_norm));
  OCTAVO_TRY(next.hidden_norm, preparation.prepare(tensors.hidden_norm));
  OCTAVO_TRY(next.joint, preparation.prepare(std::move(tensors.joint)));
  OCTAVO_TRY(next.layer, prepare_layer(std::move(tensors.layer), preparation));
  if (tensors.token_embedding.rows > 0) {
    OCTAVO_TRY(next.token_embedding, preparation.prepare(tensors.token_embedding));
  }
  OCTAVO_TRY(next.output_norm, preparation.prepare(tensors.output_norm));
  OCTAVO_TRY(next.output, preparation.prepare(std::move(tensors.output)));
  return next;
}

}  // namespace

std::int64_t PreparedExperts::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const std::unique_ptr<kernels::Matrix>& matrix : owned) bytes += matrix->memory_bytes();
  for (const PreparedProjection* projection :
       {&router, &shared_gate, &shared_up, &shared_down, &shared_router, &latent_down, &latent_up}) {
    if (projection->matrix) bytes += projection->matrix->memory_bytes();
  }
  return bytes;
}

std::int64_t PreparedLatent::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const std::unique_ptr<kernels::Matrix>& matrix : owned) bytes += matrix->memory_bytes();
  for (const PreparedProjection* projection : {&query_down, &query, &key_value}) {
    if (projection->matrix) bytes += projection->matrix->memory_bytes();
  }
  return bytes;
}

std::int64_t LayerWeights::memory_bytes() const {
  std::int64_t bytes = latent.memory_bytes() + experts.memory_bytes();
  for (const PreparedProjection* projection :
       {&query, &key, &value, &attention_gate, &attention_output, &recurrent.input, &recurrent.gate,
        &recurrent.input_gate, &recurrent.time_step, &recurrent.beta, &recurrent.output, &gate, &up, &down,
        &embedding_gate, &embedding_projection}) {
    if (projection->matrix) bytes += projection->matrix->memory_bytes();
  }
  return bytes;
}

std::int64_t Weights::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto* matrix : {&output.matrix, &token_embedding, &position_embedding, &layer_embedding.tokens,
                             &layer_embedding.projection.matrix})
    if (*matrix) bytes += (*matrix)->memory_bytes();
  for (const LayerWeights& layer : layers) bytes += layer.memory_bytes();
  if (next_token) bytes += next_token->memory_bytes();
  return bytes;
}

std::int64_t PreparedNextToken::memory_bytes() const {
  std::int64_t bytes = layer.memory_bytes();
  for (const auto* matrix : {&joint.matrix, &token_embedding, &output.matrix})
    if (*matrix) bytes += (*matrix)->memory_bytes();
  return bytes;
}

std::int64_t planned_weight_bytes(const ModelTensors& tensors, WeightType dtype) {
  std::int64_t bytes = 0;
  const auto add = [&](const MatrixSource& source) { bytes += bytes_in(kept_type(source, dtype), source); };
  if (!tensors.output_is_tied) add(tensors.token_embedding);
  if (tensors.position_embedding.rows > 0) add(tensors.position_embedding);
  if (tensors.next_token && tensors.next_token->token_embedding.rows > 0)
    add(tensors.next_token->token_embedding);
  if (tensors.layer_embedding.tokens.rows > 0) add(tensors.layer_embedding.tokens);
  tensors.visit_multiplied(add);
  return bytes;
}

bool has_quantised_weights(const ModelTensors& tensors) {
  bool any = false;
  tensors.visit_multiplied([&](const MatrixSource& source) { any |= kernels::meets_integers(source.type); });
  return any;
}

bool has_unquantised_weights(const ModelTensors& tensors) {
  bool any = false;
  tensors.visit_multiplied([&](const MatrixSource& source) { any |= !kernels::meets_integers(source.type); });
  return any;
}

Result<void> report_progress(const LoadProgress& progress, double fraction) {
  if (!progress || progress(fraction)) return {};
  return Error{.code = ErrorCode::kCancelled, .message = "loading was cancelled"};
}

Result<Weights> prepare_weights(ModelTensors tensors, WeightType dtype, kernels::Backend& backend,
                                const LoadProgress& progress) {
  Preparation preparation(dtype, backend, progress, planned_weight_bytes(tensors, dtype));
  Weights weights;
  if (!tensors.output_is_tied) {
    OCTAVO_TRY(weights.token_embedding, preparation.prepare(tensors.token_embedding));
  }
  if (tensors.position_embedding.rows > 0) {
    OCTAVO_TRY(weights.position_embedding, preparation.prepare(tensors.position_embedding));
  }
  OCTAVO_TRY(weights.embedding_norm, preparation.prepare(tensors.embedding_norm));
  if (tensors.layer_embedding.tokens.rows > 0) {
    OCTAVO_TRY(weights.layer_embedding.tokens, preparation.prepare(tensors.layer_embedding.tokens));
    OCTAVO_TRY(weights.layer_embedding.projection,
               preparation.prepare(std::move(tensors.layer_embedding.projection)));
    OCTAVO_TRY(weights.layer_embedding.norm, preparation.prepare(tensors.layer_embedding.norm));
  }
  weights.layers.reserve(tensors.layers.size());
  for (LayerTensors& layer : tensors.layers) {
    OCTAVO_TRY(LayerWeights prepared, prepare_layer(std::move(layer), preparation));
    weights.layers.push_back(std::move(prepared));
  }
  if (tensors.next_token) {
    OCTAVO_TRY(weights.next_token, prepare_next_token(*std::move(tensors.next_token), preparation));
  }
  OCTAVO_TRY(weights.output, preparation.prepare(std::move(tensors.output)));
  OCTAVO_TRY(weights.output_norm, preparation.prepare(tensors.output_norm));
  weights.rope = std::move(tensors.rope);
  weights.local_rope = std::move(tensors.local_rope);
  OCTAVO_TRY_VOID(preparation.report());
  return weights;
}

}  // namespace octavo::model
