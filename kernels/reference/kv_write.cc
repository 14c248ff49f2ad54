#include <cstring>

#include "engine/base/half.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

void write_element(KvType type, std::byte* target, float value) {
  if (type == KvType::kF32) {
    std::memcpy(target, &value, sizeof value);
    return;
  }
  const std::uint16_t word = type == KvType::kF16 ? float_to_half(value) : float_to_bfloat16(value);
  std::memcpy(target, &word, sizeof word);
}

float read_element(KvType type, const std::byte* source) {
  if (type == KvType::kF32) {
    float value;
    std::memcpy(&value, source, sizeof value);
    return value;
  }
  std::uint16_t word;
  std::memcpy(&word, source, sizeof word);
  return type == KvType::kF16 ? half_to_float(word) : bfloat16_to_float(word);
}

}  // namespace

std::byte* ReferenceKvCache::key_address(const Place& place, std::int32_t dimension) const {
  return data() + layout().head_offset(place.block, place.layer, place.kv_head) +
         layout().key_index(dimension, place.offset) * kv_element_bytes(layout().type);
}

std::byte* ReferenceKvCache::value_address(const Place& place, std::int32_t dimension) const {
  return data() + layout().head_offset(place.block, place.layer, place.kv_head) + layout().half_head_bytes() +
         layout().value_index(place.offset, dimension) * kv_element_bytes(layout().type);
}

void ReferenceKvCache::write_key(const Place& place, std::int32_t dimension, float value) {
  write_element(layout().type, key_address(place, dimension), value);
}

void ReferenceKvCache::write_value(const Place& place, std::int32_t dimension, float value) {
  write_element(layout().type, value_address(place, dimension), value);
}

float ReferenceKvCache::read_key(const Place& place, std::int32_t dimension) const {
  return read_element(layout().type, key_address(place, dimension));
}

float ReferenceKvCache::read_value(const Place& place, std::int32_t dimension) const {
  return read_element(layout().type, value_address(place, dimension));
}

}  // namespace octavo::kernels::reference
