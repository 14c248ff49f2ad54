#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/half.h"
#include "kernels/float8.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

template <class Word>
void put(std::byte* target, Word word) {
  std::memcpy(target, &word, sizeof word);
}

template <class Word>
Word get(const std::byte* source) {
  Word word;
  std::memcpy(&word, source, sizeof word);
  return word;
}

// `scale` counts for int8 only.
void write_element(KvType type, std::byte* target, float value, float scale) {
  switch (type) {
    case KvType::kF32: return put(target, value);
    case KvType::kF16: return put(target, float_to_half(value));
    case KvType::kBf16: return put(target, float_to_bfloat16(value));
    case KvType::kInt8:
      return put(target, static_cast<std::int8_t>(scale > 0.0f ? std::nearbyintf(value / scale) : 0.0f));
    case KvType::kFp8E4m3: return put(target, Fp8E4m3::from_float(value));
    case KvType::kFp8E5m2: return put(target, Fp8E5m2::from_float(value));
  }
}

float read_element(KvType type, const std::byte* source, float scale) {
  switch (type) {
    case KvType::kF32: return get<float>(source);
    case KvType::kF16: return half_to_float(get<std::uint16_t>(source));
    case KvType::kBf16: return bfloat16_to_float(get<std::uint16_t>(source));
    case KvType::kInt8: return static_cast<float>(get<std::int8_t>(source)) * scale;
    case KvType::kFp8E4m3: return Fp8E4m3::to_float(get<std::uint8_t>(source));
    case KvType::kFp8E5m2: return Fp8E5m2::to_float(get<std::uint8_t>(source));
  }
  return 0.0f;
}

double squared_error(const float* values, std::int32_t size, float scale) {
  double sum = 0.0;
  for (std::int32_t i = 0; i < size; ++i) {
    const double error =
        double{values[i]} - double{scale} * std::nearbyint(double{values[i]} / double{scale});
    sum += error * error;
  }
  return sum;
}

float int8_scale(const float* values, std::int32_t size) {
  float largest = 0.0f;
  for (std::int32_t i = 0; i < size; ++i) {
    if (!std::isfinite(values[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(values[i]));
  }
  const float smallest = largest / 127.0f;
  if (smallest < std::numeric_limits<float>::min()) return 0.0f;
  float best = smallest;
  for (int c = 1; c < 8; ++c) {
    const float scale = smallest * (1.0f + static_cast<float>(c) / 128.0f);
    if (squared_error(values, size, scale) < squared_error(values, size, best)) best = scale;
  }
  return best;
}

}  // namespace

std::byte* ReferenceKvCache::head_address(const Place& place) const {
  return data() + layout().head_offset(place.block, place.layer, place.kv_head);
}

std::byte* ReferenceKvCache::key_address(const Place& place, std::int32_t dimension) const {
  return head_address(place) +
         layer_of(place).key_index(dimension, place.offset) * kv_element_bytes(layout().type);
}

std::byte* ReferenceKvCache::value_address(const Place& place, std::int32_t dimension) const {
  if (layer_of(place).is_latent()) return key_address(place, dimension);
  return head_address(place) + layer_of(place).half_head_bytes +
         layer_of(place).value_index(place.offset, dimension) * kv_element_bytes(layout().type);
}

void ReferenceKvCache::write(const Place& place, const float* key, const float* value) {
  const KvLayer& layer = layer_of(place);
  const auto write_all = [&](const float* numbers, std::int64_t scale_offset, auto&& address_of) {
    float scale = 1.0f;
    if (layout().has_scales()) {
      scale = int8_scale(numbers, layer.head_dim);
      put(head_address(place) + scale_offset, scale);
    }
    for (std::int32_t d = 0; d < layer.head_dim; ++d)
      write_element(layout().type, address_of(d), numbers[d], scale);
  };
  write_all(key, layer.key_scale_offset(place.offset), [&](std::int32_t d) { return key_address(place, d); });
  if (layer.is_latent()) return;
  write_all(value, layer.value_scale_offset(place.offset),
            [&](std::int32_t d) { return value_address(place, d); });
}

float ReferenceKvCache::read_scale(const Place& place, std::int64_t offset_in_head) const {
  return layout().has_scales() ? get<float>(head_address(place) + offset_in_head) : 1.0f;
}

float ReferenceKvCache::read_key(const Place& place, std::int32_t dimension) const {
  return read_element(layout().type, key_address(place, dimension),
                      read_scale(place, layer_of(place).key_scale_offset(place.offset)));
}

float ReferenceKvCache::read_value(const Place& place, std::int32_t dimension) const {
  return read_element(layout().type, value_address(place, dimension),
                      read_scale(place, layer_of(place).value_scale_offset(place.offset)));
}

}  // namespace octavo::kernels::reference
