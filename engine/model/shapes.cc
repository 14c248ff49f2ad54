#include "engine/model/shapes.h"

#include <algorithm>

namespace octavo::model {
namespace {

// name, layers, width, heads, KV heads, head size, parameters
constexpr NamedShape kShapes[] = {
    {"gemma-2-2b", 26, 2304, 8, 4, 256, 2'614'341'888},
    {"gemma-2-9b", 42, 3584, 16, 8, 256, 9'241'705'984},
    {"gemma-2-27b", 46, 4608, 32, 16, 128, 27'227'128'320},
    {"gemma-3-1b", 26, 1152, 4, 1, 256, 999'885'952},
    {"gpt2", 12, 768, 12, 12, 64, 124'439'808},
    {"gpt2-medium", 24, 1024, 16, 16, 64, 354'823'168},
    {"gpt2-large", 36, 1280, 20, 20, 64, 774'030'080},
    {"gpt2-xl", 48, 1600, 25, 25, 64, 1'557'611'200},
    {"opt-125m", 12, 768, 12, 12, 64, 125'239'296},
    {"opt-350m", 24, 1024, 16, 16, 64, 331'196'416},
    {"opt-1.3b", 24, 2048, 32, 32, 64, 1'315'758'080},
    {"opt-2.7b", 32, 2560, 32, 32, 80, 2'651'596'800},
    {"opt-6.7b", 32, 4096, 32, 32, 128, 6'658'473'984},
    {"opt-13b", 40, 5120, 40, 40, 128, 12'853'473'280},
    {"opt-30b", 48, 7168, 56, 56, 128, 29'974'540'288},
    {"opt-66b", 64, 9216, 72, 72, 128, 65'719'701'504},
    {"opt-175b", 96, 12288, 96, 96, 128, 174'604'468'224},
    {"llama-7b", 32, 4096, 32, 32, 128, 6'738'415'616},
    {"llama-13b", 40, 5120, 40, 40, 128, 13'015'864'320},
    {"llama-30b", 60, 6656, 52, 52, 128, 32'528'943'616},
    {"llama-65b", 80, 8192, 64, 64, 128, 65'285'660'672},
    {"llama-2-7b", 32, 4096, 32, 32, 128, 6'738'415'616},
    {"llama-2-13b", 40, 5120, 40, 40, 128, 13'015'864'320},
    {"llama-2-70b", 80, 8192, 64, 8, 128, 68'976'648'192},
    {"llama-3-8b", 32, 4096, 32, 8, 128, 8'030'261'248},
    {"llama-3-70b", 80, 8192, 64, 8, 128, 70'553'706'496},
    {"llama-3.1-405b", 126, 16384, 128, 8, 128, 405'853'388'800},
    {"llama-3.2-1b", 16, 2048, 32, 8, 64, 1'235'814'400},
    {"llama-3.2-3b", 28, 3072, 24, 8, 128, 3'212'749'824},
    {"mistral-7b", 32, 4096, 32, 8, 128, 7'241'732'096},
    {"tinyllama-1.1b", 22, 2048, 32, 4, 64, 1'100'048'384},
    {"phi-3-mini", 32, 3072, 32, 32, 96, 3'821'079'552},
    {"phi-3-medium", 40, 5120, 40, 10, 128, 13'960'238'080},
    {"qwen2.5-0.5b", 24, 896, 14, 2, 64, 494'032'768},
    {"qwen2.5-1.5b", 28, 1536, 12, 2, 128, 1'543'714'304},
    {"qwen2.5-3b", 36, 2048, 16, 2, 128, 3'085'938'688},
    {"qwen2.5-7b", 28, 3584, 28, 4, 128, 7'615'616'512},
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 596'049'920},
    {"qwen3-1.7b", 28, 2048, 16, 8, 128, 1'720'574'976},
    {"qwen3-4b", 36, 2560, 32, 8, 128, 4'022'468'096},
    {"qwen3-8b", 36, 4096, 32, 8, 128, 8'190'735'360},
    {"smollm2-135m", 30, 576, 9, 3, 64, 134'515'008},
    {"smollm2-360m", 32, 960, 15, 5, 64, 361'821'120},
    {"smollm2-1.7b", 24, 2048, 32, 32, 64, 1'711'376'384},
};

std::optional<std::uint64_t> product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::nullopt;
  }
  return result;
}

}  // namespace

std::span<const NamedShape> named_shapes() { return kShapes; }

const NamedShape* find_shape(std::string_view name) {
  const auto found = std::find_if(std::begin(kShapes), std::end(kShapes),
                                  [&](const NamedShape& shape) { return shape.name == name; });
  return found == std::end(kShapes) ? nullptr : found;
}

std::optional<std::uint64_t> kv_bytes_per_token(const KvShape& shape, std::uint64_t bytes_per_element) {
  std::uint64_t bytes = 0;
  for (const KvLayers& layers : shape.kinds) {
    const auto of_kind = product({static_cast<std::uint64_t>(layers.num_parts()), bytes_per_element,
                                  static_cast<std::uint64_t>(layers.num_layers),
                                  static_cast<std::uint64_t>(layers.num_kv_heads),
                                  static_cast<std::uint64_t>(layers.head_dim)});
    if (!of_kind || __builtin_add_overflow(bytes, *of_kind, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::optional<std::uint64_t> kv_bytes(const KvShape& shape, std::uint64_t bytes_per_element,
                                      std::uint64_t num_tokens, std::uint64_t batch_size) {
  const auto per_token = kv_bytes_per_token(shape, bytes_per_element);
  if (!per_token) return std::nullopt;
  return product({*per_token, num_tokens, batch_size});
}

std::optional<KvCapacity> kv_capacity(const KvShape& shape, std::uint64_t bytes_per_element,
                                      std::uint64_t block_size, std::uint64_t memory_bytes,
                                      std::uint64_t weight_bytes) {
  const auto block_bytes = kv_bytes(shape, bytes_per_element, block_size, 1);
  if (!block_bytes || *block_bytes == 0) return std::nullopt;
  KvCapacity capacity;
  if (memory_bytes <= weight_bytes) return capacity;
  capacity.bytes = memory_bytes - weight_bytes;
  capacity.num_blocks = capacity.bytes / *block_bytes;
  capacity.num_tokens = capacity.num_blocks * block_size;  // <= bytes: each token takes at least one
  return capacity;
}

}  // namespace octavo::model
