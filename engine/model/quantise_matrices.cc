#include "engine/model/quantise_matrices.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/file_mapping.h"
#include "kernels/dequantize.h"
#include "kernels/quantize.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

class MatrixQuantiser {
 public:
  MatrixQuantiser(ModelTensors& tensors, TensorType type) : tensors_(tensors), type_(type) {}

  void quantise_all() {
    const TensorType ends = type_of_ends(type_);
    if (tensors_.output_is_tied) {
      quantise(tensors_.output.weight, ends);
      tensors_.token_embedding = tensors_.output.weight;
    } else {
      quantise(tensors_.token_embedding, ends);
      quantise(tensors_.output.weight, ends);
    }
    quantise(tensors_.layer_embedding.tokens, ends);
    for (LayerTensors& layer : tensors_.layers) quantise(layer);
    if (!tensors_.next_token) return;
    quantise(tensors_.next_token->layer);
    quantise(tensors_.next_token->joint.weight, type_);
  }

 private:
  void quantise(LayerTensors& layer) {
    RecurrentTensors& recurrent = layer.recurrent;
    LatentTensors& latent = layer.latent;
    ExpertTensors& experts = layer.experts;
    for (Projection* projection : {&layer.query,
                                   &layer.key,
                                   &layer.value,
                                   &layer.attention_gate,
                                   &layer.attention_output,
                                   &recurrent.input,
                                   &recurrent.gate,
                                   &recurrent.input_gate,
                                   &recurrent.output,
                                   &layer.gate,
                                   &layer.up,
                                   &layer.down,
                                   &latent.query_down,
                                   &latent.query,
                                   &latent.key_value,
                                   &experts.shared_gate,
                                   &experts.shared_up,
                                   &experts.shared_down,
                                   &experts.latent_down,
                                   &experts.latent_up}) {
      quantise(projection->weight, type_);
    }
    for (auto* matrices : {&latent.values, &experts.gate, &experts.up, &experts.down}) {
      for (StoredMatrix& matrix : *matrices) quantise(matrix, type_);
    }
  }

  void quantise(StoredMatrix& matrix, TensorType wanted) {
    if (matrix.rows == 0 || kernels::traits_of(matrix.type).quantised) return;
    const std::optional<TensorType> type = kernels::type_for_columns(wanted, matrix.columns);
    if (!type) return;
    tensors_.readers.push_back(std::make_shared<QuantisingReader>(matrix, *type));
    matrix.type = *type;
    matrix.bytes = {};
    matrix.reader = tensors_.readers.back().get();
    matrix.first_row = 0;
  }

  ModelTensors& tensors_;
  const TensorType type_;
};

std::size_t bytes_of_row(TensorType type, std::int64_t columns) {
  const kernels::TensorTypeTraits& traits = kernels::traits_of(type);
  return static_cast<std::size_t>(columns / traits.block_elements * traits.block_bytes);
}

// Numbers of 16 bits end at 65,504, those that are scales and minimums of blocks too.
Result<void> check_range(TensorType type, std::span<const float> numbers, const std::byte* made) {
  constexpr float kLargestHalf = 65504.0f;
  const float largest = std::abs(*std::ranges::max_element(numbers, {}, [](float x) { return std::abs(x); }));
  if (largest <= kLargestHalf) return {};
  std::vector<float> held(numbers.size());
  kernels::dequantize(type, made, static_cast<std::int64_t>(held.size()), held.data());
  if (std::ranges::all_of(held, [](float number) { return std::isfinite(number); })) return {};
  return Error{ErrorCode::kUnsupported, "a weight of this model is larger than " +
                                            std::string(kernels::traits_of(type).name) + " can hold; " +
                                            (type == TensorType::kBF16 ? "F32" : "BF16") + " can hold it"};
}

}  // namespace

TensorType type_of_ends(TensorType type) {
  if (!kernels::traits_of(type).quantised) return type;
  return type == TensorType::kQ8_0 ? TensorType::kQ8_0 : TensorType::kQ6_K;
}

void quantise_matrices(ModelTensors& tensors, TensorType type) {
  MatrixQuantiser(tensors, type).quantise_all();
}

Result<void> QuantisingReader::read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const {
  constexpr std::int64_t kRowsAtOnce = 64;
  const std::int64_t columns = source_.columns;
  const std::size_t stored_bytes = bytes_of_row(source_.type, columns),
                    row_bytes = bytes_of_row(type_, columns);
  std::vector<std::byte> made(source_.reader == nullptr ? 0 : kRowsAtOnce * stored_bytes);
  std::vector<float> numbers(static_cast<std::size_t>(columns));
  for (std::int64_t done = 0; done < count; done += kRowsAtOnce) {
    const std::int64_t some = std::min(kRowsAtOnce, count - done);
    const std::size_t size = static_cast<std::size_t>(some) * stored_bytes;
    std::span<const std::byte> rows;
    if (source_.reader != nullptr) {
      OCTAVO_TRY_VOID(
          source_.reader->read(source_.first_row + first + done, some, std::span(made).first(size)));
      rows = std::span(made).first(size);
    } else {
      rows = source_.bytes.subspan(static_cast<std::size_t>(first + done) * stored_bytes, size);
    }
    for (std::int64_t row = 0; row < some; ++row) {
      kernels::dequantize(source_.type, rows.data() + static_cast<std::size_t>(row) * stored_bytes, columns,
                          numbers.data());
      if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) {
        return Error{
            ErrorCode::kDamagedFile,
            "a weight of this model is not finite, so that it cannot be quantised; load it as it is"};
      }
      std::byte* const target = out.data() + static_cast<std::size_t>(done + row) * row_bytes;
      kernels::quantize(type_, numbers.data(), columns, target);
      OCTAVO_TRY_VOID(check_range(type_, numbers, target));
    }
    if (source_.reader == nullptr) release_pages(rows);
  }
  return {};
}

}  // namespace octavo::model
