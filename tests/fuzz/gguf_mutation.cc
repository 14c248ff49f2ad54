#include "tests/fuzz/gguf_mutation.h"

#include <limits>

namespace octavo::fuzz {
namespace {

using test::ByteWriter;
using test::GgufType;
using test::ModelDraft;

constexpr std::uint64_t kInteresting[] = {0,
                                          1,
                                          2,
                                          3,
                                          7,
                                          8,
                                          16,
                                          31,
                                          32,
                                          33,
                                          64,
                                          127,
                                          128,
                                          255,
                                          256,
                                          4095,
                                          65'535,
                                          65'536,
                                          65'537,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          std::uint64_t{1} << 32,
                                          std::uint64_t{1} << 40,
                                          (std::uint64_t{1} << 40) + 1,
                                          std::uint64_t{1} << 61,
                                          std::uint64_t{1} << 63,
                                          ~std::uint64_t{0} - 31,
                                          ~std::uint64_t{0}};
constexpr std::string_view kKeys[] = {"general.architecture",
                                      "general.alignment",
                                      "general.name",
                                      "general.quantization_version",
                                      "llama.block_count",
                                      "llama.context_length",
                                      "llama.embedding_length",
                                      "llama.feed_forward_length",
                                      "llama.attention.head_count",
                                      "llama.attention.head_count_kv",
                                      "llama.attention.key_length",
                                      "llama.attention.value_length",
                                      "llama.attention.layer_norm_rms_epsilon",
                                      "llama.rope.freq_base",
                                      "llama.rope.dimension_count",
                                      "llama.rope.scaling.type",
                                      "llama.rope.scaling.factor",
                                      "llama.rope.scaling.original_context_length",
                                      "llama.vocab_size",
                                      "llama.attention.sliding_window",
                                      "tokenizer.ggml.model",
                                      "tokenizer.ggml.pre",
                                      "tokenizer.ggml.tokens",
                                      "tokenizer.ggml.token_type",
                                      "tokenizer.ggml.scores",
                                      "tokenizer.ggml.merges",
                                      "tokenizer.ggml.bos_token_id",
                                      "tokenizer.ggml.eos_token_id",
                                      "tokenizer.ggml.padding_token_id",
                                      "tokenizer.ggml.add_bos_token",
                                      "tokenizer.ggml.precompiled_charsmap",
                                      "tokenizer.chat_template",
                                      "split.no",
                                      "split.count",
                                      "split.tensors.count"};
constexpr std::string_view kWords[] = {"llama",  "gpt2",  "qwen2",     "qwen3",    "gemma2", "gemma3",
                                       "phi3",   "gpt-2", "llama-bpe", "default",  "linear", "yarn",
                                       "llama3", "none",  "",          "\n\x1b[2J"};
constexpr std::size_t kTypeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

std::uint64_t interesting(Random& random) {
  const std::uint64_t value = kInteresting[random.below(std::size(kInteresting))];
  return random.one_in(4) ? value + random.below(5) - 2 : value;
}

// Steps through bytes; everything after the first impossible thing is empty.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  std::size_t position() const { return position_; }
  template <class T>
  T number() {
    T value{};
    if (const auto raw = take(sizeof(T)); raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  std::string text(std::uint64_t cap) {
    const auto length = number<std::uint64_t>();
    const auto raw = length <= cap ? take(static_cast<std::size_t>(length)) : fail();
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    if (failed_ || count > bytes_.size() - position_) return fail();
    position_ += count;
    return bytes_.subspan(position_ - count, count);
  }
  std::span<const std::uint8_t> since(std::size_t start) const {
    return bytes_.subspan(start, position_ - start);
  }

 private:
  std::span<const std::uint8_t> fail() {
    failed_ = true;
    return {};
  }
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

void skip_values(Reader& reader, std::uint32_t type, std::uint64_t count) {
  if (type > 12 || type == 9 || count > 100'000)
    return void(reader.take(std::numeric_limits<std::size_t>::max()));
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i)
    type == 8 ? void(reader.text(1u << 20)) : void(reader.take(kTypeBytes[type]));
}

std::optional<ModelDraft::Key> read_key(Reader& reader) {
  ModelDraft::Key key{.name = reader.text(65'535), .type = reader.number<std::uint32_t>(), .value = {}};
  const std::size_t start = reader.position();
  if (key.type == 9) {
    const auto element = reader.number<std::uint32_t>();
    skip_values(reader, element, reader.number<std::uint64_t>());
  } else {
    skip_values(reader, key.type, 1);
  }
  if (reader.failed()) return std::nullopt;
  const auto value = std::as_bytes(reader.since(start));
  key.value.assign(value.begin(), value.end());
  return key;
}

std::optional<ModelDraft::Tensor> read_tensor(Reader& reader) {
  ModelDraft::Tensor tensor{.name = reader.text(64), .type = 0, .dimensions = {}, .bytes = {}};
  const auto num_dimensions = reader.number<std::uint32_t>();
  if (num_dimensions > 8) return std::nullopt;
  for (std::uint32_t i = 0; i < num_dimensions; ++i)
    tensor.dimensions.push_back(reader.number<std::uint64_t>());
  tensor.type = reader.number<std::uint32_t>();
  tensor.offset = reader.number<std::uint64_t>();
  if (reader.failed()) return std::nullopt;
  return tensor;
}

// What the tensors' offsets point to, so that a change in the header moves the data along.
void read_data(std::span<const std::uint8_t> file, std::size_t header_size, ModelDraft& draft) {
  const std::size_t base = (header_size + draft.alignment - 1) / draft.alignment * draft.alignment;
  for (std::size_t i = 0; i < draft.tensors.size(); ++i) {
    const std::uint64_t begin = base + *draft.tensors[i].offset;
    const std::uint64_t end =
        i + 1 < draft.tensors.size() ? base + *draft.tensors[i + 1].offset : file.size();
    if (begin > end || end > file.size()) continue;
    const auto bytes =
        std::as_bytes(file.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    draft.tensors[i].bytes.assign(bytes.begin(), bytes.end());
    draft.tensors[i].offset.reset();
  }
}

void set_number(ModelDraft::Key& key, std::uint64_t value) {
  std::memcpy(key.value.data(), &value, std::min(key.value.size(), sizeof value));
}

void mutate_key(ModelDraft& draft, Random& random) {
  if (draft.keys.empty() || random.one_in(6)) {
    const std::string_view name = kKeys[random.below(std::size(kKeys))];
    if (random.one_in(2)) {
      draft.set_number(name, static_cast<std::uint32_t>(interesting(random)));
    } else {
      draft.set_string(name, kWords[random.below(std::size(kWords))]);
    }
    return;
  }
  const std::size_t index = random.below(draft.keys.size());
  ModelDraft::Key& key = draft.keys[index];
  switch (random.below(10)) {
    case 0: draft.keys.push_back(draft.keys[index]); break;
    case 1: draft.keys.erase(draft.keys.begin() + static_cast<std::ptrdiff_t>(index)); break;
    case 2: std::swap(key, draft.keys[random.below(draft.keys.size())]); break;
    case 3: key.type = static_cast<std::uint32_t>(random.below(15)); break;
    case 4: key.name = kKeys[random.below(std::size(kKeys))]; break;
    case 5:  // an array's count or element type
      if (key.type == 9 && key.value.size() >= 12) {
        const std::uint64_t count = interesting(random);
        if (random.one_in(3))
          key.value[0] = static_cast<std::byte>(random.below(14));
        else
          std::memcpy(&key.value[4], &count, 8);
      } else {
        set_number(key, interesting(random));
      }
      break;
    case 6: {
      const float values[] = {0.0f,
                              -1.0f,
                              1e-6f,
                              1e9f,
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              1.0f};
      const float value = values[random.below(std::size(values))];
      if (key.value.size() == 4) std::memcpy(key.value.data(), &value, 4);
      break;
    }
    case 7:
      if (!key.value.empty())
        key.value[random.below(key.value.size())] = static_cast<std::byte>(random.next() >> 24);
      break;
    case 8: draft.set_string(key.name, kWords[random.below(std::size(kWords))]); break;
    default: set_number(key, interesting(random)); break;
  }
}

void mutate_tensor(ModelDraft& draft, Random& random) {
  if (draft.tensors.empty()) return;
  const std::size_t index = random.below(draft.tensors.size());
  ModelDraft::Tensor& tensor = draft.tensors[index];
  switch (random.below(11)) {
    case 0: draft.tensors.push_back(draft.tensors[index]); break;
    case 1: draft.tensors.erase(draft.tensors.begin() + static_cast<std::ptrdiff_t>(index)); break;
    case 2: std::swap(tensor, draft.tensors[random.below(draft.tensors.size())]); break;
    case 3: tensor.type = static_cast<std::uint32_t>(random.below(45)); break;
    case 4: tensor.offset = interesting(random); break;
    case 5:
      if (!tensor.dimensions.empty())
        tensor.dimensions[random.below(tensor.dimensions.size())] = interesting(random);
      break;
    case 6: tensor.dimensions.push_back(interesting(random)); break;
    case 7: tensor.num_dimensions = static_cast<std::uint32_t>(random.below(7)); break;
    case 8: tensor.name_length = interesting(random); break;
    case 9:
      if (!tensor.bytes.empty())
        tensor.bytes[random.below(tensor.bytes.size())] = static_cast<std::byte>(random.next() >> 24);
      break;
    default: tensor.name = "blk." + std::to_string(random.below(3)) + ".attn_q.weight"; break;
  }
}

void mutate_whole(ModelDraft& draft, Random& random) {
  switch (random.below(5)) {
    case 0:
      draft.claimed_keys = random.one_in(2) ? interesting(random) : draft.keys.size() + random.below(3) - 1;
      break;
    case 1:
      draft.claimed_tensors =
          random.one_in(2) ? interesting(random) : draft.tensors.size() + random.below(3) - 1;
      break;
    case 2: draft.version = static_cast<std::uint32_t>(random.below(5)); break;
    case 3: draft.set_u32("general.alignment", static_cast<std::uint32_t>(interesting(random))); break;
    default: draft.alignment = std::uint64_t{1} << random.below(8); break;
  }
}

Bytes as_bytes(const std::vector<std::byte>& bytes) {
  Bytes result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(),
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return result;
}

}  // namespace

std::optional<ModelDraft> read_draft(std::span<const std::uint8_t> file) {
  Reader reader(file);
  ModelDraft draft;
  if (reader.number<std::uint32_t>() != 0x46554747) return std::nullopt;
  draft.version = reader.number<std::uint32_t>();
  const auto num_tensors = reader.number<std::uint64_t>(), num_keys = reader.number<std::uint64_t>();
  if (reader.failed() || num_tensors > 1000 || num_keys > 1000) return std::nullopt;
  for (std::uint64_t i = 0; i < num_keys; ++i) {
    auto key = read_key(reader);
    if (!key) return draft;
    draft.keys.push_back(*std::move(key));
    if (draft.keys.back().name != "general.alignment" || draft.keys.back().value.size() != 4) continue;
    std::uint32_t alignment = 0;
    std::memcpy(&alignment, draft.keys.back().value.data(), 4);
    if (std::has_single_bit(alignment) && alignment <= 65'536) draft.alignment = alignment;
  }
  for (std::uint64_t i = 0; i < num_tensors; ++i) {
    auto tensor = read_tensor(reader);
    if (!tensor) return draft;
    draft.tensors.push_back(*std::move(tensor));
  }
  read_data(file, reader.position(), draft);
  return draft;
}

void mutate_gguf(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_plainly) {
  if (random.one_in(5)) return mutate_plainly(input, max_size, random);
  auto draft = read_draft(input);
  if (!draft) return mutate_plainly(input, max_size, random);
  for (std::size_t i = 0, count = 1 + random.below(3); i < count; ++i) {
    const std::size_t kind = random.below(10);
    if (kind < 5)
      mutate_key(*draft, random);
    else if (kind < 9)
      mutate_tensor(*draft, random);
    else
      mutate_whole(*draft, random);
  }
  std::size_t total = 0;
  for (const ModelDraft::Tensor& tensor : draft->tensors) total += tensor.bytes.size() + 256;
  if (total > 4 * max_size) return mutate_plainly(input, max_size, random);
  input = as_bytes(draft->bytes());
  if (random.one_in(40) && !input.empty()) input.resize(random.below(input.size()));  // cut short
  if (input.size() > max_size) input.resize(max_size);
}

ModelDraft fuzz_draft() {
  ModelDraft draft;
  constexpr std::uint32_t kWidth = 32, kHidden = 32;
  std::vector<std::string> tokens = {"<|end|>", "<|im_start|>", "<|im_end|>", "\xc4\xa0", "\xc4\x8a"};
  std::vector<std::int32_t> kinds = {3, 3, 3, 1, 1};
  for (const char letter : std::string_view("abcdehlnorstuw.:")) tokens.emplace_back(1, letter);
  const std::vector<std::string> merges = {"h e", "t he", "o r"};
  for (const char* merged : {"he", "the", "or"}) tokens.emplace_back(merged);
  kinds.resize(tokens.size(), 1);
  draft.set_string("general.architecture", "llama").set_string("general.name", "fuzz");
  draft.set_u32("llama.block_count", 1).set_u32("llama.context_length", 64);
  draft.set_u32("llama.embedding_length", kWidth).set_u32("llama.feed_forward_length", kHidden);
  draft.set_u32("llama.attention.head_count", 2).set_u32("llama.attention.head_count_kv", 1);
  draft.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).set_f32("llama.rope.freq_base", 1e4f);
  draft.set_string("tokenizer.ggml.model", "gpt2").set_string("tokenizer.ggml.pre", "smollm");
  draft.set_strings("tokenizer.ggml.tokens", tokens).set_array("tokenizer.ggml.token_type", kinds);
  draft.set_strings("tokenizer.ggml.merges", merges);
  draft.set_u32("tokenizer.ggml.bos_token_id", 1).set_u32("tokenizer.ggml.eos_token_id", 2);
  draft.set_string("tokenizer.chat_template",
                   "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}");
  std::mt19937_64 random(11);
  const auto matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows) {
    draft.add_tensor(name, 2, {columns, rows},
                     test::random_weights(test::TensorType::kQ4_0, columns * rows, 0.2, random));
  };
  const auto norm = [&](const std::string& name) {
    ByteWriter ones;
    for (std::uint32_t i = 0; i < kWidth; ++i) ones.number(1.0f);
    draft.add_tensor(name, 0, {kWidth}, ones.bytes());
  };
  matrix("token_embd.weight", kWidth, tokens.size());
  norm("blk.0.attn_norm.weight");
  matrix("blk.0.attn_q.weight", kWidth, kWidth);
  matrix("blk.0.attn_k.weight", kWidth, kWidth / 2);
  matrix("blk.0.attn_v.weight", kWidth, kWidth / 2);
  matrix("blk.0.attn_output.weight", kWidth, kWidth);
  norm("blk.0.ffn_norm.weight");
  matrix("blk.0.ffn_gate.weight", kWidth, kHidden);
  matrix("blk.0.ffn_up.weight", kWidth, kHidden);
  matrix("blk.0.ffn_down.weight", kHidden, kWidth);
  norm("output_norm.weight");
  return draft;
}

std::vector<Bytes> gguf_seeds() {
  std::vector<Bytes> seeds;
  ModelDraft every;  // a value of every type
  every.set_number<std::uint8_t>("u8", 200)
      .set_number<std::int8_t>("i8", -1)
      .set_number<std::uint16_t>("u16", 1)
      .set_number<std::int16_t>("i16", -1);
  every.set_u32("u32", 1)
      .set_i32("i32", -1)
      .set_u64("u64", 1)
      .set_number<std::int64_t>("i64", -1)
      .set_f32("f32", 1.5f)
      .set_number<double>("f64", 0.1);
  every.set_bool("yes", 1)
      .set_string("text", "text")
      .set_strings("texts", {"", "a", "bc"})
      .set_array<float>("f32s", {1, 2})
      .set_array<std::int32_t>("i32s", {1});
  every.set_raw_array("bools", 7, 2, std::vector<std::byte>(2))
      .set_raw_array("none", 8, 0, {})
      .set_u32("general.alignment", 64);
  every.alignment = 64;
  every.add_tensor("a", 0, {3}, std::vector<std::byte>(12))
      .add_tensor("b", 8, {32, 2}, std::vector<std::byte>(68));
  seeds.push_back(as_bytes(every.bytes()));
  ModelDraft header = fuzz_draft();
  for (ModelDraft::Tensor& tensor : header.tensors)
    tensor.type = 24, tensor.dimensions = {1, 1}, tensor.bytes.resize(1);
  seeds.push_back(as_bytes(header.bytes()));
  ModelDraft split = every;
  split.set_number<std::uint16_t>("split.no", 0)
      .set_number<std::uint16_t>("split.count", 1)
      .set_i32("split.tensors.count", 2);
  seeds.push_back(as_bytes(split.bytes()));
  seeds.push_back(as_bytes(ModelDraft().bytes()));
  return seeds;
}

std::vector<Bytes> model_seeds() {
  std::vector<Bytes> seeds = {as_bytes(fuzz_draft().bytes())};
  ModelDraft sentencepiece = fuzz_draft();
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\xe2\x96\x81"};
  std::vector<std::int32_t> kinds = {2, 3, 3, 1};
  for (const char letter : std::string_view("abcdehlnorstuw.:")) tokens.emplace_back(1, letter);
  for (const char* piece : {"he", "the"}) tokens.emplace_back(piece);
  kinds.resize(tokens.size(), 1);
  std::vector<float> scores(tokens.size());
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  sentencepiece.set_string("tokenizer.ggml.model", "llama")
      .set_strings("tokenizer.ggml.tokens", tokens)
      .set_array("tokenizer.ggml.token_type", kinds);
  sentencepiece.set_array("tokenizer.ggml.scores", scores)
      .remove("tokenizer.ggml.merges")
      .remove("tokenizer.ggml.pre");
  seeds.push_back(as_bytes(sentencepiece.bytes()));
  ModelDraft own_output = fuzz_draft();
  own_output.tensors.push_back(own_output.tensors[0]);
  own_output.tensors.back().name = "output.weight";
  seeds.push_back(as_bytes(own_output.bytes()));
  return seeds;
}

}  // namespace octavo::fuzz
