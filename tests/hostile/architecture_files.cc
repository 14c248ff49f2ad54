// M1, M2, G7: claims that only some architectures can make: caps, windows, norms, biases, packed matrices,
// position tables, LongRoPE's factors.
#include <cstring>
#include <limits>
#include <span>

#include "tests/hostile/hostile_files.h"
#include "tests/support/tiny_models.h"

namespace octavo::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr auto kF32 = static_cast<std::uint32_t>(TensorType::kF32);

// False claims about one of the models of tiny_models.json.
class Liar {
 public:
  Liar(std::string model, HostileFiles& files)
      : model_(std::move(model)), architecture_(tiny_model(model_)["architecture"]), files_(files) {}

  void change(const std::string& name, const std::string& rule, const std::string& sentence,
              const std::function<void(ModelDraft&)>& change) const {
    const std::string full_name = "architectures/" + model_ + "-" + name;
    auto make = [model = model_, full_name, change](const std::filesystem::path& folder) {
      ModelDraft draft = make_tiny_model(tiny_model(model)).draft();
      change(draft);
      const std::filesystem::path path = folder / file_name_of(full_name);
      draft.write(path);
      return path;
    };
    files_.push_back({full_name, rule, sentence, std::move(make)});
  }
  void f32(const std::string& suffix, std::initializer_list<float> values) const {
    for (const float value : values) {
      const std::string key = architecture_ + "." + suffix;
      change(suffix + "-" + std::to_string(value), "M1", key, [=](ModelDraft& d) { d.set_f32(key, value); });
    }
  }
  void i32(const std::string& suffix, std::initializer_list<std::int32_t> values) const {
    for (const std::int32_t value : values) {
      const std::string key = architecture_ + "." + suffix;
      change(suffix + "-" + std::to_string(value), "M1", key, [=](ModelDraft& d) { d.set_i32(key, value); });
    }
  }
  void string(const std::string& suffix, const std::string& value) const {
    const std::string key = architecture_ + "." + suffix;
    change(suffix + "-as-string", "G7", key, [=](ModelDraft& d) { d.set_string(key, value); });
  }
  void missing_key(const std::string& suffix) const {
    const std::string key = architecture_ + "." + suffix;
    change(suffix + "-missing", "M1", key, [=](ModelDraft& d) { d.remove(key); });
  }
  // A tensor that is not there, one element longer, and with its rows and columns exchanged or in two rows.
  void tensor(const std::string& name) const {
    change(name + "-missing", "M2", "\"" + name + "\" is missing",
           [=](ModelDraft& d) { d.remove_tensor(name); });
    change(name + "-longer", "M2", "\"" + name + "\" has the shape", [=](ModelDraft& d) {
      ModelDraft::Tensor& tensor = d.tensor(name);
      const std::size_t stride = tensor.bytes.size() / tensor.dimensions.back();
      tensor.dimensions.back() += 1;
      tensor.bytes.resize(tensor.bytes.size() + stride);
    });
    change(name + "-in-another-shape", "M2", "\"" + name + "\" has the shape", [=](ModelDraft& d) {
      std::vector<std::uint64_t>& dimensions = d.tensor(name).dimensions;
      if (dimensions.size() == 1) {
        dimensions = {dimensions[0] / 2, 2};
      } else {
        dimensions[0] *= 2, dimensions[1] /= 2;
      }
    });
    change(name + "-of-integers", "M2", "\"" + name + "\" has type", [=](ModelDraft& d) {
      constexpr std::uint32_t kI32Tensor = 26;
      d.tensor(name).type = kI32Tensor;
    });
  }
  void factors(const std::string& name, std::initializer_list<float> values) const {
    for (const float value : values) {
      change(name + "-holding-" + std::to_string(value), "M2", name,
             [=](ModelDraft& d) { std::memcpy(&d.tensor(name).bytes[4], &value, sizeof value); });
    }
  }

 private:
  std::string model_, architecture_;
  HostileFiles& files_;
};

void add_gemma_files(HostileFiles& files) {
  const Liar two("gemma2", files);
  for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    two.f32(cap, {-1.0f, 1e30f, kNan, kInfinity});
    two.string(cap, "50");
  }
  two.i32("attention.sliding_window", {-1});
  two.string("attention.sliding_window", "8");
  two.tensor("blk.0.post_attention_norm.weight");
  two.tensor("blk.2.post_ffw_norm.weight");

  const Liar three("gemma3", files);
  three.tensor("blk.0.attn_q_norm.weight");
  three.tensor("blk.6.attn_k_norm.weight");
  three.f32("attn_logit_softcapping", {50.0f});
  three.f32("rope.freq_base_swa", {0.0f, -1.0f, kNan, kInfinity});
  three.i32("attention.sliding_window_pattern", {-6, 1'025});
  three.change("pattern-of-too-few-layers", "M2", "attention.sliding_window_pattern", [](ModelDraft& d) {
    const std::byte flags[] = {std::byte{1}, std::byte{0}};
    d.set_raw_array("gemma3.attention.sliding_window_pattern", static_cast<std::uint32_t>(GgufType::kBool), 2,
                    flags);
  });
  three.change("pattern-of-strings", "G7", "attention.sliding_window_pattern", [](ModelDraft& d) {
    d.set_strings("gemma3.attention.sliding_window_pattern", std::vector<std::string>(7, "local"));
  });
  three.i32("rope.dimension_count_swa", {24});
  three.i32("attention.key_length_swa", {24});
}

void add_gpt2_files(HostileFiles& files) {
  const Liar liar("gpt2", files);
  for (const char* name : {"position_embd.weight", "blk.0.attn_norm.bias", "blk.1.attn_qkv.weight",
                           "blk.0.attn_qkv.bias", "blk.1.ffn_up.bias", "output_norm.bias"}) {
    liar.tensor(name);
  }
  liar.missing_key("attention.layer_norm_epsilon");
  liar.f32("attention.layer_norm_epsilon", {0.0f, -1.0f, kNan});
  for (const std::uint32_t length : {65u, 1u << 24}) {
    liar.change("context_length-" + std::to_string(length), "M2", "position_embd.weight",
                [=](ModelDraft& d) { d.set_u32("gpt2.context_length", length); });
  }
  liar.change("attention.head_count_kv-2", "M2", "blk.0.attn_qkv.weight",
              [](ModelDraft& d) { d.set_u32("gpt2.attention.head_count_kv", 2); });
  liar.i32("attention.sliding_window", {8});
  liar.change("causal-no", "M1", "attention.causal",
              [](ModelDraft& d) { d.set_bool("gpt2.attention.causal", 0); });
}

void add_phi3_files(HostileFiles& files) {
  const Liar packed("phi3", files);
  packed.tensor("blk.0.attn_qkv.weight");
  packed.tensor("blk.1.ffn_up.weight");
  packed.i32("rope.dimension_count", {15, 18, 0, -2});
  packed.change("gate-of-its-own", "M2", "blk.0.ffn_up.weight", [](ModelDraft& d) {
    ModelDraft::Tensor& up = d.tensor("blk.0.ffn_up.weight");
    up.dimensions = {64, 96}, up.bytes.resize(64 * 96 * sizeof(float));
    d.add_tensor("blk.0.ffn_gate.weight", kF32, {64, 96}, up.bytes);
  });
  packed.change("longrope-without-factors", "M2", "rope_factors_long.weight",
                [](ModelDraft& d) { d.set_string("phi3.rope.scaling.type", "longrope"); });

  const Liar long_rope("phi3_long", files);
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    long_rope.tensor(name);
    long_rope.factors(name, {0.0f, -1.0f, 1e30f, kNan, kInfinity});
  }
  long_rope.f32("rope.scaling.attn_factor", {0.0f, -1.0f, kNan, kInfinity});
  long_rope.i32("rope.scaling.original_context_length", {0, -1});
}

void add_qwen_files(HostileFiles& files) {
  const Liar two("qwen2", files);
  for (const char* name : {"blk.0.attn_q.bias", "blk.1.attn_k.bias"}) {
    two.change(std::string(name) + "-longer", "M2", "has the shape", [=](ModelDraft& d) {
      ModelDraft::Tensor& bias = d.tensor(name);
      bias.dimensions[0] += 1, bias.bytes.resize(bias.bytes.size() + sizeof(float));
    });
  }
  two.i32("attention.sliding_window", {8});
  two.i32("expert_count", {8});
  const Liar yarn("qwen2_yarn", files);
  yarn.f32("rope.scaling.factor", {0.0f, -4.0f, kNan});
  yarn.f32("rope.freq_base", {1.0f});
  yarn.f32("rope.scaling.yarn_beta_fast", {-1.0f, kNan});
  const Liar three("qwen3", files);
  three.tensor("blk.1.attn_q_norm.weight");
  three.i32("attention.key_length", {0, -24, 4'097});
  three.i32("attention.value_length", {16});
}

void add_multiplier_files(HostileFiles& files) {
  const Liar granite("granite", files);
  for (const char* suffix : {"embedding_scale", "residual_scale", "logit_scale"}) {
    granite.f32(suffix, {-1.0f, 1e-4f, 1e30f, kNan, kInfinity});
    granite.string(suffix, "1");
  }
  granite.f32("logit_scale", {0.0f});
  granite.missing_key("logit_scale");
  granite.change("rotation-switch-as-number", "G7", "rope.scaling.finetuned",
                 [](ModelDraft& d) { d.set_u32("granite.rope.scaling.finetuned", 1); });
  Liar("granitemoe", files).tensor("blk.1.ffn_down_shexp.weight");
  Liar("qwen2", files).f32("residual_scale", {0.5f});
}

void add_expert_files(HostileFiles& files) {
  const Liar qwen("qwen3moe", files);
  qwen.i32("expert_count", {-1, 0, 4'097, 1'000'000'000});
  for (const std::uint32_t count : {7u, 9u}) {
    qwen.change("expert_count-" + std::to_string(count), "M2", "\"blk.0.ffn_gate_inp.weight\" has the shape",
                [=](ModelDraft& d) { d.set_u32("qwen3moe.expert_count", count); });
  }
  qwen.i32("expert_used_count", {-1, 0, 9, 1'000'000'000});
  qwen.i32("expert_feed_forward_length", {-1, 1 << 21});
  qwen.i32("expert_gating_func", {2, 4, -1});
  qwen.i32("expert_shared_count", {1});
  qwen.i32("leading_dense_block_count", {1});
  qwen.i32("interleave_moe_layer_step", {2});
  qwen.string("expert_count", "8");
  qwen.missing_key("expert_used_count");
  for (const char* suffix : {"expert_count", "expert_used_count", "expert_feed_forward_length"}) {
    const std::string key = std::string("qwen3moe.") + suffix;
    qwen.change(std::string(suffix) + "-of-each-layer", "G7", key, [=](ModelDraft& d) {
      d.set_array<std::uint32_t>(key, {8, 8});
    });
  }
  for (const char* name : {"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_exps.weight",
                           "blk.0.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"})
    qwen.tensor(name);
  const Liar packed("qwen3moe_packed", files);
  packed.change("ffn_gate_up_exps-and-apart", "M2", "\"blk.0.ffn_gate_exps.weight\" is not used",
                [](ModelDraft& d) {
                  ModelDraft::Tensor copy = d.tensor("blk.0.ffn_down_exps.weight");
                  d.add_tensor("blk.0.ffn_gate_exps.weight", copy.type, copy.dimensions, copy.bytes);
                });
  const Liar glm("glm4moe", files);
  glm.i32("expert_group_count", {3, 8, -1});
  glm.i32("leading_dense_block_count", {-1, 4});
  glm.i32("expert_shared_count", {-1, 1 << 20});
  glm.change("expert_shared_count-0", "M2", "\"blk.1.ffn_gate_shexp.weight\" is not used",
             [](ModelDraft& d) { d.set_u32("glm4moe.expert_shared_count", 0); });
  glm.i32("nextn_predict_layers", {-1, 3, 1'000'000'000});
  glm.f32("expert_weights_scale", {-1.0f, 1e30f, kNan, kInfinity});
  for (const char* name :
       {"blk.1.ffn_gate_shexp.weight", "blk.2.ffn_down_shexp.weight", "blk.0.ffn_up.weight"})
    glm.tensor(name);
  const Liar groups("glm4moe_groups", files);
  groups.i32("expert_group_used_count", {-1, 0, 1, 5});
  const Liar oss("gpt-oss", files);
  for (const char* name : {"blk.1.attn_sinks.weight", "blk.2.ffn_gate_inp.bias", "blk.3.ffn_down_exps.bias",
                           "blk.0.post_attention_norm.weight"})
    oss.tensor(name);
  oss.missing_key("expert_feed_forward_length");
}

}  // namespace

void add_architecture_files(HostileFiles& files) {
  add_gemma_files(files);
  add_gpt2_files(files);
  add_phi3_files(files);
  add_qwen_files(files);
  add_multiplier_files(files);
  add_expert_files(files);
}

}  // namespace octavo::test
