// Makes GGUF files for tests from keys and tensors with C++ types, and a whole tiny llama model. It writes
// what it is told, also what no reader should accept.
//
//   GgufWriter writer;
//   writer.add_string("general.architecture", "llama").add_u32("llama.block_count", 2);
//   writer.add_tensor("output_norm.weight", TensorType::kF32, {64}, bytes);
//   writer.write(path);            // or writer.bytes()
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/half.h"
#include "engine/base/text.h"
#include "kernels/tensor.h"
#include "tests/support/model_draft.h"

namespace octavo::test {

using kernels::TensorType;

class GgufWriter {
 public:
  // ---- keys: in the order of the calls; a key may be given twice, on purpose
  template <class T>
  GgufWriter& add_number(std::string_view key, T value) {
    return add_raw_value(key, gguf_type_of<T>(), ByteWriter().number(value).bytes());
  }
  GgufWriter& add_u32(std::string_view key, std::uint32_t value) { return add_number(key, value); }
  GgufWriter& add_i32(std::string_view key, std::int32_t value) { return add_number(key, value); }
  GgufWriter& add_u64(std::string_view key, std::uint64_t value) { return add_number(key, value); }
  GgufWriter& add_f32(std::string_view key, float value) { return add_number(key, value); }
  GgufWriter& add_bool(std::string_view key, bool value) {
    return add_raw_value(key, GgufType::kBool, ByteWriter().number<std::uint8_t>(value ? 1 : 0).bytes());
  }
  GgufWriter& add_string(std::string_view key, std::string_view value) {
    return add_raw_value(key, GgufType::kString, ByteWriter().string(value).bytes());
  }
  template <class T>
  GgufWriter& add_array(std::string_view key, const std::vector<T>& values) {
    ByteWriter elements;
    for (const T value : values) elements.number(value);
    return add_raw_array(key, gguf_type_of<T>(), values.size(), elements.bytes());
  }
  GgufWriter& add_string_array(std::string_view key, const std::vector<std::string>& values) {
    ByteWriter elements;
    for (const std::string& value : values) elements.string(value);
    return add_raw_array(key, GgufType::kString, values.size(), elements.bytes());
  }
  GgufWriter& add_bool_array(std::string_view key, const std::vector<std::uint8_t>& values) {
    return add_raw_array(key, GgufType::kBool, values.size(), std::as_bytes(std::span(values)));
  }
  // Any type number and any bytes after it.
  GgufWriter& add_raw_value(std::string_view key, GgufType type, std::span<const std::byte> bytes) {
    draft_.add_raw(key, static_cast<std::uint32_t>(type), bytes);
    return *this;
  }
  GgufWriter& add_raw_array(std::string_view key, GgufType element_type, std::uint64_t count,
                            std::span<const std::byte> elements) {
    ByteWriter array;
    array.number(static_cast<std::uint32_t>(element_type)).number(count).raw(elements);
    return add_raw_value(key, GgufType::kArray, array.bytes());
  }

  // ---- tensors: dimensions as GGUF has them, the fastest first ({columns, rows} for a matrix)
  GgufWriter& add_tensor(std::string_view name, TensorType type, std::vector<std::uint64_t> dimensions,
                         std::vector<std::byte> bytes) {
    return add_raw_tensor(name, static_cast<std::uint32_t>(type), std::move(dimensions), std::move(bytes));
  }
  GgufWriter& add_tensor_f32(std::string_view name, std::vector<std::uint64_t> dimensions,
                             const std::vector<float>& values) {
    ByteWriter bytes;
    for (const float value : values) bytes.number(value);
    return add_tensor(name, TensorType::kF32, std::move(dimensions), bytes.bytes());
  }
  GgufWriter& add_raw_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                             std::vector<std::byte> bytes) {
    draft_.add_tensor(name, type, std::move(dimensions), std::move(bytes));
    return *this;
  }

  // ---- false claims about the whole
  GgufWriter& set_version(std::uint32_t version) {
    draft_.version = version;
    return *this;
  }
  GgufWriter& set_alignment(std::uint32_t alignment) {
    draft_.alignment = alignment;
    return *this;
  }  // adds no key
  GgufWriter& set_num_keys(std::uint64_t count) {
    draft_.claimed_keys = count;
    return *this;
  }
  GgufWriter& set_num_tensors(std::uint64_t count) {
    draft_.claimed_tensors = count;
    return *this;
  }
  // Added to the offset of the tensor with this index.
  GgufWriter& shift_offset(std::size_t tensor_index, std::uint64_t by) {
    draft_.tensors[tensor_index].shift = by;
    return *this;
  }

  // Everything before the tensors' data, without padding.
  std::vector<std::byte> header_bytes() const { return draft_.header_bytes(); }
  std::vector<std::byte> bytes() const { return draft_.bytes(); }
  void write(const std::filesystem::path& path) const { draft_.write(path); }
  // To change what is there.
  const ModelDraft& draft() const { return draft_; }

 private:
  ModelDraft draft_;
};

// What the weights of NVFP4 below are too large by: the scale of their matrix is one divided by it.
inline constexpr float kNvfp4Scale = 200.0f;

// Random weights of standard deviation about `deviation`: for quantised types blocks of
// random bits under fitting scales.
inline std::vector<std::byte> random_weights(TensorType type, std::size_t num_elements, double deviation,
                                             std::mt19937_64& random) {
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1.0p-53; };
  const auto half = [](double value) { return float_to_half(static_cast<float>(value)); };
  ByteWriter out;
  if (!kernels::traits_of(type).quantised) {
    for (std::size_t i = 0; i < num_elements; ++i) {
      const auto value = static_cast<float>((2.0 * uniform() - 1.0) * std::sqrt(3.0) * deviation);
      if (type == TensorType::kF32) out.number(value);
      if (type == TensorType::kF16) out.number(float_to_half(value));
      if (type == TensorType::kBF16) out.number(float_to_bfloat16(value));
    }
    return out.bytes();
  }
  // A block's scale (and minimum, in scales) such that uniform quants and sub-scales give
  // the deviation; where they stand.
  struct Scale {
    double divisor, minimum;
    std::size_t scale_offset, minimum_offset;
  };
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const Scale scale = [&]() -> Scale {
    switch (type) {
      case TensorType::kQ4_0: return {4.6, 0.0, 0, kNone};
      case TensorType::kQ4_1: return {4.6, -7.5, 0, 2};
      case TensorType::kQ5_0: return {9.2, 0.0, 0, kNone};
      case TensorType::kQ5_1: return {9.2, -15.5, 0, 2};
      case TensorType::kQ8_0: return {74.0, 0.0, 0, kNone};
      case TensorType::kQ2_K: return {14.0, 1.5, 80, 82};
      case TensorType::kQ3_K: return {42.0, 0.0, 108, kNone};
      case TensorType::kQ4_K: return {260.0, 7.5, 0, 2};
      case TensorType::kQ5_K: return {520.0, 15.5, 0, 2};
      case TensorType::kIQ4_NL: return {67.0, 0.0, 0, kNone};
      case TensorType::kIQ4_XS: return {1250.0, 0.0, 0, kNone};
      case TensorType::kMXFP4: return {5.9, 0.0, kNone, kNone};  // a power of two instead
      case TensorType::kNVFP4: return {5.9, 0.0, kNone, kNone};  // four small floats instead
      case TensorType::kIQ1_M: return {6.8, 0.0, kNone, kNone};  // in four nibbles
      case TensorType::kIQ1_S: return {6.8, 0.0, 0, kNone};
      case TensorType::kIQ2_XXS:
      case TensorType::kIQ2_XS:
      case TensorType::kIQ2_S: return {50.0, 0.0, 0, kNone};
      case TensorType::kIQ3_XXS: return {150.0, 0.0, 0, kNone};
      case TensorType::kIQ3_S: return {150.0, 0.0, 0, kNone};
      case TensorType::kTQ1_0: return {0.8, 0.0, 52, kNone};
      case TensorType::kTQ2_0: return {1.2, 0.0, 64, kNone};
      case TensorType::kQ1_0: return {1.0, 0.0, 0, kNone};
      case TensorType::kQ2_0: return {1.2, 0.0, 0, kNone};
      default: return {1370.0, 0.0, 208, kNone};  // Q6_K
    }
  }();
  const kernels::TensorTypeTraits& traits = kernels::traits_of(type);
  std::vector<std::byte> block(static_cast<std::size_t>(traits.block_bytes));
  for (std::size_t i = 0; i < num_elements / static_cast<std::size_t>(traits.block_elements); ++i) {
    for (std::byte& byte : block) byte = static_cast<std::byte>(random() >> 56);
    const double factor = deviation / scale.divisor * (0.5 + uniform());
    const std::uint16_t scale_half = half(factor), minimum_half = half(factor * scale.minimum);
    if (scale.scale_offset != kNone) std::memcpy(&block[scale.scale_offset], &scale_half, 2);
    if (type == TensorType::kMXFP4) block[0] = static_cast<std::byte>(128 + std::ilogb(factor));
    if (type == TensorType::kNVFP4) {  // their matrix is divided by kNvfp4Scale
      for (std::size_t k = 0; k < 4; ++k)
        block[k] = static_cast<std::byte>(8 * (8 + std::ilogb(factor * kNvfp4Scale)) +
                                          static_cast<int>(random() % 8));
    }
    if (type == TensorType::kIQ1_M) {
      for (std::size_t k = 0; k < 4; ++k)
        block[49 + 2 * k] =
            (block[49 + 2 * k] & std::byte{15}) | static_cast<std::byte>((scale_half >> (4 * k) & 15) << 4);
    }
    if (scale.minimum_offset != kNone) std::memcpy(&block[scale.minimum_offset], &minimum_half, 2);
    out.raw(block);
  }
  return out.bytes();
}

struct TinyLlamaOptions {
  // Of every matrix; types with blocks of 256 need widths that are multiples
  TensorType weight_type = TensorType::kF32;
  std::uint32_t num_layers = 2;
  std::uint32_t embedding_length = 64;
  std::uint32_t feed_forward_length = 128;
  std::uint32_t num_heads = 4;
  std::uint32_t num_kv_heads = 2;
  std::uint32_t head_dim = 0;  // 0: embedding_length / num_heads
  std::uint32_t context_length = 512;
  bool tied_output = true;
  bool biases = false;  // on all seven matrices of a layer
  std::string chat_template =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
      "'<|im_end|>' + "
      "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
};

// How GPT-2 spells a byte: printable Latin-1 as itself, the others from U+0100 upwards.
inline std::string gpt2_spelling(int byte) {
  const auto is_printable = [](int b) {
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
  };
  char32_t spelled = static_cast<char32_t>(byte);
  if (!is_printable(byte)) {
    spelled = 0x100;
    for (int b = 0; b < byte; ++b) spelled += is_printable(b) ? 0 : 1;
  }
  std::string text;
  append_utf8(text, spelled);
  return text;
}

// Ids: 0 <|endoftext|>, 1 <|im_start|> (BOS), 2 <|im_end|> (EOS), 3..258 the bytes,
// then one token for each merge.
inline void add_tiny_vocabulary(GgufWriter& writer, std::string_view chat_template) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::int32_t> kinds = {3, 3, 3};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(gpt2_spelling(byte));
  const std::vector<std::string> merges = {"Ġ t", "h e", "Ġ a", "i n", "Ġt he",
                                           "e r", "o n", "r e", "Ġ s", "o u"};
  for (const std::string& merge : merges) {
    const std::size_t space = merge.find(' ');
    tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  kinds.resize(tokens.size(), 1);
  writer.add_string("tokenizer.ggml.model", "gpt2").add_string("tokenizer.ggml.pre", "smollm");
  writer.add_string_array("tokenizer.ggml.tokens", tokens).add_array("tokenizer.ggml.token_type", kinds);
  writer.add_string_array("tokenizer.ggml.merges", merges);
  writer.add_u32("tokenizer.ggml.bos_token_id", 1).add_u32("tokenizer.ggml.eos_token_id", 2);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.add_bool("tokenizer.ggml.add_bos_token", false).add_bool("tokenizer.ggml.add_space_prefix", false);
  if (!chat_template.empty()) writer.add_string("tokenizer.chat_template", chat_template);
}

constexpr std::uint32_t kTinyVocabularySize = 3 + 256 + 10;

inline void add_tiny_llama_keys(GgufWriter& writer, const TinyLlamaOptions& options) {
  writer.add_string("general.architecture", "llama").add_string("general.name", "tiny llama");
  writer.add_u32("llama.block_count", options.num_layers);
  writer.add_u32("llama.context_length", options.context_length);
  writer.add_u32("llama.embedding_length", options.embedding_length);
  writer.add_u32("llama.feed_forward_length", options.feed_forward_length);
  writer.add_u32("llama.attention.head_count", options.num_heads);
  writer.add_u32("llama.attention.head_count_kv", options.num_kv_heads);
  if (options.head_dim != 0) {
    writer.add_u32("llama.attention.key_length", options.head_dim);
    writer.add_u32("llama.attention.value_length", options.head_dim);
  }
  writer.add_f32("llama.rope.freq_base", 10000.0f);
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.add_u32("llama.vocab_size", kTinyVocabularySize);
  add_tiny_vocabulary(writer, options.chat_template);
}

inline void add_tiny_llama_tensors(GgufWriter& writer, const TinyLlamaOptions& options,
                                   std::mt19937_64& random) {
  const std::uint64_t width = options.embedding_length;
  const std::uint64_t hidden = options.feed_forward_length;
  const std::uint64_t head_dim = options.head_dim != 0 ? options.head_dim : width / options.num_heads;
  const std::uint64_t query = head_dim * options.num_heads;
  const std::uint64_t key = head_dim * options.num_kv_heads;
  const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows,
                          double deviation) {
    writer.add_tensor(name, options.weight_type, {columns, rows},
                      random_weights(options.weight_type, columns * rows, deviation, random));
    if (options.weight_type == TensorType::kNVFP4) {
      const std::string base = name.substr(0, name.rfind('.'));
      writer.add_tensor_f32(base + ".scale", {1}, {1.0f / kNvfp4Scale});
      writer.add_tensor_f32(base + ".input_scale", {1}, {0.01f});
    }
  };
  const auto vector = [&](const std::string& name, std::uint64_t size, float centre, double deviation) {
    std::vector<float> values(size);
    for (float& value : values) {
      value = centre +
              static_cast<float>(deviation * (2.0 * static_cast<double>(random() >> 11) * 0x1.0p-53 - 1.0));
    }
    writer.add_tensor_f32(name, {size}, values);
  };
  const auto projection = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows) {
    matrix(name + ".weight", columns, rows, 1.0 / std::sqrt(static_cast<double>(columns)));
    if (options.biases) vector(name + ".bias", rows, 0.0f, 0.1);
  };
  matrix("token_embd.weight", width, kTinyVocabularySize, 1.0);
  for (std::uint32_t layer = 0; layer < options.num_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    vector(prefix + "attn_norm.weight", width, 1.0f, 0.1);
    projection(prefix + "attn_q", width, query);
    projection(prefix + "attn_k", width, key);
    projection(prefix + "attn_v", width, key);
    projection(prefix + "attn_output", query, width);
    vector(prefix + "ffn_norm.weight", width, 1.0f, 0.1);
    projection(prefix + "ffn_gate", width, hidden);
    projection(prefix + "ffn_up", width, hidden);
    projection(prefix + "ffn_down", hidden, width);
  }
  vector("output_norm.weight", width, 1.0f, 0.1);
  if (!options.tied_output)
    matrix("output.weight", width, kTinyVocabularySize, 1.0 / std::sqrt(static_cast<double>(width)));
}

// A valid llama model with random weights: the same bytes for the same seed and options.
inline GgufWriter make_tiny_llama(std::uint64_t seed, const TinyLlamaOptions& options = {}) {
  std::mt19937_64 random(seed);
  GgufWriter writer;
  add_tiny_llama_keys(writer, options);
  add_tiny_llama_tensors(writer, options, random);
  return writer;
}

}  // namespace octavo::test
