// A model file as a list of keys and tensors that can be changed, taken away and lied about before it is
// written: where hostile files and the seeds of fuzzing come from. It writes what it is told.
//
//   ModelDraft draft = tiny_draft();
//   draft.set_u32("llama.block_count", 0).write(path);
#pragma once

#include <algorithm>
#include <optional>

#include "tests/support/gguf_writer.h"

namespace octavo::test {

class ModelDraft {
 public:
  struct Key {
    std::string name;
    std::uint32_t type;
    std::vector<std::byte> value;
  };
  struct Tensor {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> dimensions;
    std::vector<std::byte> bytes;
    std::optional<std::uint64_t> offset = {};          // as it stands in the file; none: where the bytes are
    std::optional<std::uint32_t> num_dimensions = {};  // none: of `dimensions`
    std::optional<std::uint64_t> name_length = {};     // none: of `name`
  };
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of the data; adds no key
  std::optional<std::uint64_t> claimed_keys, claimed_tensors;

  // ---- keys: `set` replaces or appends, `add` appends also what is there ----
  ModelDraft& add_raw(std::string_view name, std::uint32_t type, std::span<const std::byte> value) {
    keys.push_back({std::string(name), type, {value.begin(), value.end()}});
    return *this;
  }
  ModelDraft& set_raw(std::string_view name, std::uint32_t type, std::span<const std::byte> value) {
    for (Key& key : keys) {
      if (key.name != name) continue;
      key.type = type;
      key.value.assign(value.begin(), value.end());
      return *this;
    }
    return add_raw(name, type, value);
  }
  ModelDraft& remove(std::string_view name) {
    std::erase_if(keys, [&](const Key& key) { return key.name == name; });
    return *this;
  }
  template <class T>
  ModelDraft& set_number(std::string_view name, T value) {
    return set_raw(name, static_cast<std::uint32_t>(gguf_type_of<T>()), ByteWriter().number(value).bytes());
  }
  ModelDraft& set_u32(std::string_view name, std::uint32_t value) { return set_number(name, value); }
  ModelDraft& set_i32(std::string_view name, std::int32_t value) { return set_number(name, value); }
  ModelDraft& set_u64(std::string_view name, std::uint64_t value) { return set_number(name, value); }
  ModelDraft& set_f32(std::string_view name, float value) { return set_number(name, value); }
  ModelDraft& set_bool(std::string_view name, std::uint8_t value) {
    return set_raw(name, static_cast<std::uint32_t>(GgufType::kBool), ByteWriter().number(value).bytes());
  }
  ModelDraft& set_string(std::string_view name, std::string_view value) {
    return set_raw(name, static_cast<std::uint32_t>(GgufType::kString), ByteWriter().string(value).bytes());
  }
  template <class T>
  ModelDraft& set_array(std::string_view name, const std::vector<T>& values) {
    ByteWriter elements;
    for (const T value : values) elements.number(value);
    return set_raw_array(name, static_cast<std::uint32_t>(gguf_type_of<T>()), values.size(),
                         elements.bytes());
  }
  ModelDraft& set_strings(std::string_view name, const std::vector<std::string>& values) {
    ByteWriter elements;
    for (const std::string& value : values) elements.string(value);
    return set_raw_array(name, static_cast<std::uint32_t>(GgufType::kString), values.size(),
                         elements.bytes());
  }
  ModelDraft& set_raw_array(std::string_view name, std::uint32_t element_type, std::uint64_t count,
                            std::span<const std::byte> elements) {
    ByteWriter array;
    array.number(element_type).number(count).raw(elements);
    return set_raw(name, static_cast<std::uint32_t>(GgufType::kArray), array.bytes());
  }

  // ---- tensors ----
  Tensor& tensor(std::string_view name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& each) { return each.name == name; });
    return *found;
  }
  ModelDraft& add_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                         std::vector<std::byte> bytes) {
    tensors.push_back({std::string(name), type, std::move(dimensions), std::move(bytes)});
    return *this;
  }
  ModelDraft& set_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                         std::vector<std::byte> bytes) {
    Tensor& found = tensor(name);
    found = {std::string(name), type, std::move(dimensions), std::move(bytes)};
    return *this;
  }
  ModelDraft& remove_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& each) { return each.name == name; });
    return *this;
  }

  // ---- as a file ----
  std::vector<std::byte> header_bytes() const {
    ByteWriter out;
    out.raw("GGUF").number(version);
    out.number(claimed_tensors.value_or(tensors.size())).number(claimed_keys.value_or(keys.size()));
    for (const Key& key : keys) out.string(key.name).number(key.type).raw(key.value);
    std::uint64_t offset = 0;
    for (const Tensor& each : tensors) {
      out.number(each.name_length.value_or(each.name.size())).raw(each.name);
      out.number(each.num_dimensions.value_or(static_cast<std::uint32_t>(each.dimensions.size())));
      for (const std::uint64_t dimension : each.dimensions) out.number(dimension);
      out.number(each.type).number(each.offset.value_or(offset));
      offset += (each.bytes.size() + alignment - 1) / alignment * alignment;
    }
    return out.bytes();
  }
  std::vector<std::byte> bytes() const {
    ByteWriter out;
    out.raw(header_bytes());
    for (const Tensor& each : tensors) out.pad_to_multiple(alignment).raw(each.bytes);
    return out.pad_to_multiple(alignment).bytes();
  }
  void write(const std::filesystem::path& path) const { GgufWriter::write_file(path, bytes()); }
};

struct TinyDraftOptions {
  TensorType weight_type = TensorType::kF32;
  std::uint32_t width = 64;
  std::uint32_t hidden = 128;
  std::uint32_t num_layers = 1;
  bool own_output = false;
};

// A valid model of a few hundred kilobytes: 4 heads, 2 KV heads, the vocabulary of GgufWriter's tiny llama.
inline ModelDraft tiny_draft(const TinyDraftOptions& options = {}) {
  ModelDraft draft;
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
  draft.set_string("general.architecture", "llama").set_string("general.name", "tiny");
  draft.set_u32("llama.block_count", options.num_layers).set_u32("llama.context_length", 256);
  draft.set_u32("llama.embedding_length", options.width).set_u32("llama.feed_forward_length", options.hidden);
  draft.set_u32("llama.attention.head_count", 4).set_u32("llama.attention.head_count_kv", 2);
  draft.set_f32("llama.rope.freq_base", 10000.0f).set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  draft.set_string("tokenizer.ggml.model", "gpt2").set_string("tokenizer.ggml.pre", "smollm");
  draft.set_strings("tokenizer.ggml.tokens", tokens).set_array("tokenizer.ggml.token_type", kinds);
  draft.set_strings("tokenizer.ggml.merges", merges);
  draft.set_u32("tokenizer.ggml.bos_token_id", 1).set_u32("tokenizer.ggml.eos_token_id", 2);
  draft.set_u32("tokenizer.ggml.unknown_token_id", 0).set_bool("tokenizer.ggml.add_bos_token", 0);
  draft.set_string("tokenizer.chat_template", TinyLlamaOptions().chat_template);

  std::mt19937_64 random(7);
  const auto type = static_cast<std::uint32_t>(options.weight_type);
  const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows,
                          double deviation) {
    draft.add_tensor(name, type, {columns, rows},
                     random_weights(options.weight_type, columns * rows, deviation, random));
  };
  const auto norm = [&](const std::string& name) {
    ByteWriter ones;
    for (std::uint32_t i = 0; i < options.width; ++i) ones.number(1.0f);
    draft.add_tensor(name, 0, {options.width}, ones.bytes());
  };
  const double narrow = 1.0 / std::sqrt(static_cast<double>(options.width));
  const double wide = 1.0 / std::sqrt(static_cast<double>(options.hidden));
  matrix("token_embd.weight", options.width, kTinyVocabularySize, 1.0);
  for (std::uint32_t layer = 0; layer < options.num_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    norm(prefix + "attn_norm.weight");
    matrix(prefix + "attn_q.weight", options.width, options.width, narrow);
    matrix(prefix + "attn_k.weight", options.width, options.width / 2, narrow);
    matrix(prefix + "attn_v.weight", options.width, options.width / 2, narrow);
    matrix(prefix + "attn_output.weight", options.width, options.width, narrow);
    norm(prefix + "ffn_norm.weight");
    matrix(prefix + "ffn_gate.weight", options.width, options.hidden, narrow);
    matrix(prefix + "ffn_up.weight", options.width, options.hidden, narrow);
    matrix(prefix + "ffn_down.weight", options.hidden, options.width, wide);
  }
  norm("output_norm.weight");
  if (options.own_output) matrix("output.weight", options.width, kTinyVocabularySize, narrow);
  return draft;
}

}  // namespace octavo::test
