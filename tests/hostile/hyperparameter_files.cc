// M1, G7: numbers that no model has, numbers of another type, architectures that do not exist.
#include <cstdio>
#include <limits>

#include "tests/hostile/hostile_files.h"

namespace octavo::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Adder {
 public:
  explicit Adder(HostileFiles& files) : files_(files) {}

  void with(const std::string& name, const std::string& key, std::function<void(ModelDraft&)> change,
            const std::string& rule = "M1") {
    files_.push_back(changed("hyperparameters/" + name, rule, key, std::move(change)));
  }
  void u32(const std::string& key, std::vector<std::uint32_t> values) {
    for (const std::uint32_t value : values) {
      with(key + "-" + std::to_string(value), key, [=](ModelDraft& d) { d.set_u32("llama." + key, value); });
    }
  }
  void i32(const std::string& key, std::vector<std::int32_t> values) {
    for (const std::int32_t value : values) {
      with(key + "-i32" + std::to_string(value), key,
           [=](ModelDraft& d) { d.set_i32("llama." + key, value); });
    }
  }
  void f32(const std::string& key, std::vector<float> values) {
    for (const float value : values) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
      with(key + "-" + text, key, [=](ModelDraft& d) { d.set_f32("llama." + key, value); });
    }
  }
  void missing(const std::string& key) {
    with(key + "-missing", key, [=](ModelDraft& d) { d.remove("llama." + key); });
  }
  void of_other_types(const std::string& key) {
    with(
        key + "-as-string", key, [=](ModelDraft& d) { d.set_string("llama." + key, "1"); }, "G7");
    with(
        key + "-as-boolean", key, [=](ModelDraft& d) { d.set_bool("llama." + key, 1); }, "G7");
    with(
        key + "-as-float", key, [=](ModelDraft& d) { d.set_f32("llama." + key, 4.0f); }, "G7");
  }

 private:
  HostileFiles& files_;
};

}  // namespace

void add_hyperparameter_files(HostileFiles& files) {
  Adder add(files);
  add.u32("block_count", {0, 1'025, 0x7fffffffu, 0x80000000u, 0xffffffffu});
  add.i32("block_count", {-1});
  add.u32("attention.head_count", {0, 3, 1'025, 0xffffffffu});
  add.i32("attention.head_count", {-4});
  add.u32("attention.head_count_kv", {0, 3, 8, 0xffffffffu});
  add.u32("embedding_length", {0, 65'537, 0xffffffffu});
  add.u32("feed_forward_length", {0, (1u << 20) + 1, 0xffffffffu});
  add.u32("context_length", {0, (1u << 24) + 1, 0xffffffffu});
  add.i32("context_length", {-1});
  add.u32("attention.key_length", {0, 4'097, 0xffffffffu});
  add.u32("attention.value_length", {0, 8});
  add.f32("attention.layer_norm_rms_epsilon", {0.0f, -1.0f, 2.0f, 1e-14f, kNan, kInfinity});
  add.f32("rope.freq_base", {0.0f, 0.5f, -10'000.0f, 1e13f, kNan, kInfinity});
  add.u32("rope.dimension_count", {0, 3, 18, 0xffffffffu});
  add.f32("rope.scaling.factor", {0.0f, -1.0f, 1e-6f, kNan, kInfinity});
  add.u32("rope.scaling.original_context_length", {0});
  add.f32("attention.scale", {1e-30f, -1.0f, kNan});
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    add.missing(key);
  }
  for (const char* key : {"block_count", "embedding_length", "context_length", "attention.head_count"})
    add.of_other_types(key);
  add.with("block_count-u64-wraps-to-1", "block_count",
           [](ModelDraft& d) { d.set_u64("llama.block_count", (std::uint64_t{1} << 32) + 1); });
  add.with("embedding_length-no-multiple-of-heads", "",
           [](ModelDraft& d) { d.set_u32("llama.embedding_length", 66); });
  add.with("more-layers-than-tensors", "blk.1.", [](ModelDraft& d) { d.set_u32("llama.block_count", 2); });
  add.with("all-layers-that-are-allowed", "blk.1.",
           [](ModelDraft& d) { d.set_u32("llama.block_count", 1'024); });
  add.with(
      "epsilon-as-string", "layer_norm_rms_epsilon",
      [](ModelDraft& d) { d.set_string("llama.attention.layer_norm_rms_epsilon", "1e-5"); }, "G7");
  add.with(
      "base-as-u32", "rope.freq_base", [](ModelDraft& d) { d.set_u32("llama.rope.freq_base", 10'000); },
      "G7");
  add.with("scaling-type-unknown", "rope.scaling.type",
           [](ModelDraft& d) { d.set_string("llama.rope.scaling.type", "\x1b[31mspiral\n"); });
  add.with(
      "scaling-type-as-number", "rope.scaling.type",
      [](ModelDraft& d) { d.set_u32("llama.rope.scaling.type", 1); }, "G7");
  add.with("llama3-factors-equal", "rope.scaling.high_freq_factor", [](ModelDraft& d) {
    d.set_string("llama.rope.scaling.type", "llama3").set_f32("llama.rope.scaling.factor", 8.0f);
    d.set_f32("llama.rope.scaling.low_freq_factor", 2.0f)
        .set_f32("llama.rope.scaling.high_freq_factor", 2.0f);
  });
  add.with("yarn-base-1", "rope.freq_base", [](ModelDraft& d) {
    d.set_string("llama.rope.scaling.type", "yarn")
        .set_f32("llama.rope.scaling.factor", 8.0f)
        .set_f32("llama.rope.freq_base", 1.0f);
  });
  add.with("heads-per-layer-with-a-zero", "head_count",
           [](ModelDraft& d) { d.set_array<std::uint32_t>("llama.attention.head_count", {0}); });
  add.with("kv-heads-per-layer-too-many", "head_count_kv", [](ModelDraft& d) {
    d.set_array<std::uint32_t>("llama.attention.head_count_kv", {2, 2, 2});
  });
  add.with("experts-of-which-none-is-used", "expert_used_count",
           [](ModelDraft& d) { d.set_u32("llama.expert_count", 8); });
  add.with("not-causal", "attention.causal", [](ModelDraft& d) { d.set_bool("llama.attention.causal", 0); });
  for (const auto& [name, architecture] :
       std::vector<std::pair<std::string, std::string>>{{"empty", ""},
                                                        {"unknown", "gpt-17"},
                                                        {"with-a-line-break", "llama\nllama"},
                                                        {"with-a-zero-byte", std::string("llama\0", 6)},
                                                        {"with-terminal-sequences", "\x1b[2J\x1b]0;x\x07"},
                                                        {"path", "../../llama"},
                                                        {"long", std::string(60'000, 'a')},
                                                        {"over-a-mebibyte", std::string(1u << 20, 'a')}}) {
    add.with("architecture-" + name, "general.architecture",
             [a = architecture](ModelDraft& d) { d.set_string("general.architecture", a); });
  }
  add.with(
      "architecture-as-number", "general.architecture",
      [](ModelDraft& d) { d.set_u32("general.architecture", 1); }, "G7");
  add.with("architecture-missing", "general.architecture",
           [](ModelDraft& d) { d.remove("general.architecture"); });
  add.with("quantization-version-99", "general.quantization_version",
           [](ModelDraft& d) { d.set_u32("general.quantization_version", 99); });
  add.with(
      "name-as-number", "general.name", [](ModelDraft& d) { d.set_u32("general.name", 1); }, "G7");
}

}  // namespace octavo::test
