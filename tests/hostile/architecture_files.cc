// M1, M2, G7: claims that only some architectures can make: caps, windows, norms, biases, packed matrices,
// position tables, LongRoPE's factors, experts, recurrent layers, layers that are not alike.
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
  void list(const std::string& suffix, const std::string& name,
            const std::vector<std::int32_t>& values) const {
    const std::string key = architecture_ + "." + suffix;
    change(suffix + "-" + name, "M1", key, [=](ModelDraft& d) { d.set_array<std::int32_t>(key, values); });
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
      } else if (dimensions[1] % 2 == 0) {
        dimensions[0] *= 2, dimensions[1] /= 2;
      } else {
        dimensions[0] /= 2, dimensions[1] *= 2;
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
  const Liar mistral("mistral3", files);
  for (const char* suffix : {"attention.temperature_scale", "rope.scaling.yarn_log_multiplier"}) {
    mistral.f32(suffix, {-1.0f, 1e30f, kNan, kInfinity});
    mistral.string(suffix, "1");
  }
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

void add_latent_files(HostileFiles& files) {
  const Liar latent("deepseek2", files);
  for (const char* suffix : {"attention.kv_lora_rank", "attention.key_length_mla",
                             "attention.value_length_mla", "rope.dimension_count"}) {
    latent.missing_key(suffix);
    latent.i32(suffix, {-1, 0, 1'000'000'000});
    latent.string(suffix, "8");
  }
  latent.i32("attention.q_lora_rank", {-1, 1'000'000'000});
  latent.i32("attention.key_length", {20, 33});
  latent.i32("attention.value_length", {14, 25});
  latent.f32("expert_weights_scale", {-1.0f, 1e30f, kNan, kInfinity});
  latent.f32("rope.scaling.yarn_log_multiplier", {-1.0f, 1e30f, kNan, kInfinity});
  latent.change("q_lora_rank-0", "M2", "\"blk.0.attn_q.weight\" is missing",
                [](ModelDraft& d) { d.set_u32("deepseek2.attention.q_lora_rank", 0); });
  latent.change("q_lora_rank-other", "M2", "\"blk.0.attn_q_a.weight\" has the shape",
                [](ModelDraft& d) { d.set_u32("deepseek2.attention.q_lora_rank", 39); });
  latent.change("value_length_mla-other", "M2", "\"blk.0.attn_v_b.weight\" has the shape",
                [](ModelDraft& d) { d.set_u32("deepseek2.attention.value_length_mla", 15); });
  for (const char* name : {"blk.0.attn_q_a.weight", "blk.1.attn_q_a_norm.weight", "blk.2.attn_q_b.weight",
                           "blk.0.attn_kv_a_mqa.weight", "blk.1.attn_kv_a_norm.weight",
                           "blk.2.attn_k_b.weight", "blk.0.attn_v_b.weight", "blk.1.attn_output.weight"})
    latent.tensor(name);
  latent.change("attn_kv_b-as-well", "M2", "\"blk.0.attn_kv_b.weight\" is not used", [](ModelDraft& d) {
    const ModelDraft::Tensor copy = d.tensor("blk.0.attn_q_b.weight");
    d.add_tensor("blk.0.attn_kv_b.weight", copy.type, copy.dimensions, copy.bytes);
  });
  const Liar joint("deepseek2_joint", files);
  joint.tensor("blk.1.attn_kv_b.weight");
  joint.missing_key("attention.key_length");
  joint.i32("attention.value_length", {-1, 0, 1'000'000'000});
  joint.i32("rope.dimension_count", {7});
}

void set_flags(ModelDraft& draft, const std::string& key, const std::vector<std::uint8_t>& flags) {
  draft.set_raw_array(key, static_cast<std::uint32_t>(GgufType::kBool), flags.size(),
                      std::as_bytes(std::span(flags)));
}

// A tensor that is another's copy under a name that nobody uses.
void add_copy(const Liar& liar, const std::string& name, const std::string& original) {
  liar.change(name + "-as-well", "M2", "\"" + name + "\" is not used", [=](ModelDraft& d) {
    const ModelDraft::Tensor copy = d.tensor(original);
    d.add_tensor(name, copy.type, copy.dimensions, copy.bytes);
  });
}

void add_sizes_of_recurrent_layers(const Liar& liar) {
  for (const char* suffix :
       {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"}) {
    liar.missing_key(suffix);
    liar.i32(suffix, {-1, 0, 1 << 30});
    liar.string(suffix, "4");
  }
  liar.change("ssm.group_count-3", "M1", "qwen35.ssm.time_step_rank is 4, which is no multiple of the 3",
              [](ModelDraft& d) { d.set_u32("qwen35.ssm.group_count", 3); });
  liar.i32("ssm.inner_size", {63, 5'000});
  for (const auto& [suffix, value] : {std::pair{"ssm.conv_kernel", 3u},
                                      {"ssm.state_size", 15u},
                                      {"ssm.group_count", 1u},
                                      {"ssm.time_step_rank", 2u}}) {
    const std::string key = std::string("qwen35.") + suffix;
    liar.change(std::string(suffix) + "-other-than-the-tensors", "M2", "has the shape",
                [=, value = value](ModelDraft& d) { d.set_u32(key, value); });
  }
}

void add_lists_of_recurrent_layers(const Liar& liar) {
  const std::string list = "qwen35.attention.recurrent_layers";
  liar.i32("full_attention_interval", {-1, 0, 5, 1'025});
  liar.change("recurrent_layers-too-few", "M1", list, [=](ModelDraft& d) { set_flags(d, list, {1, 1, 1}); });
  liar.change("recurrent_layers-too-many", "M1", list, [=](ModelDraft& d) {
    set_flags(d, list, {1, 1, 1, 0, 0});
  });
  liar.change("recurrent_layers-none-left", "M1", list, [=](ModelDraft& d) {
    set_flags(d, list, {1, 1, 1, 1});
  });
  liar.change("recurrent_layers-others", "M2", "\"blk.0.attn_qkv.weight\" has the shape", [=](ModelDraft& d) {
    set_flags(d, list, {0, 1, 1, 1});
  });
  liar.change("recurrent_layers-of-strings", "G7", list,
              [=](ModelDraft& d) { d.set_strings(list, std::vector<std::string>(4, "linear")); });
  liar.change("recurrent_layers-of-numbers", "G7", list, [=](ModelDraft& d) {
    d.set_array<std::uint32_t>(list, {1, 2, 1, 0});
  });
}

void add_recurrent_files(HostileFiles& files) {
  const Liar dense("qwen35", files);
  add_sizes_of_recurrent_layers(dense);
  add_lists_of_recurrent_layers(dense);
  dense.string("rope.dimension_sections", "2,2,2");
  dense.i32("rope.dimension_count", {13, 26, 0});
  dense.i32("attention.value_length", {16});
  dense.i32("attention.sliding_window", {8});
  dense.i32("expert_count", {8});
  dense.f32("attention.layer_norm_rms_epsilon", {0.0f, -1.0f, kNan});
  for (const char* name :
       {"blk.0.attn_qkv.weight", "blk.1.attn_gate.weight", "blk.2.ssm_conv1d.weight", "blk.0.ssm_dt.bias",
        "blk.1.ssm_a", "blk.2.ssm_norm.weight", "blk.0.ssm_alpha.weight", "blk.1.ssm_beta.weight",
        "blk.2.ssm_out.weight", "blk.3.attn_q.weight", "blk.3.attn_q_norm.weight",
        "blk.0.post_attention_norm.weight"})
    dense.tensor(name);
  for (const float value : {0.5f, kInfinity}) {
    dense.change(
        "ssm_a-holding-" + std::to_string(value), "M4", "with which a state would grow without end",
        [=](ModelDraft& d) { std::memcpy(&d.tensor("blk.0.ssm_a").bytes[4], &value, sizeof value); });
  }
  add_copy(dense, "blk.3.attn_q.bias", "blk.0.ssm_dt.bias");
  add_copy(dense, "blk.0.attn_q.weight", "blk.3.attn_q.weight");
  add_copy(dense, "blk.3.ssm_a", "blk.0.ssm_a");
  add_copy(dense, "blk.0.attn_qkv.bias", "blk.0.ssm_dt.bias");
  add_copy(dense, "blk.0.ssm_in.weight", "blk.0.attn_qkv.weight");
  add_copy(dense, "blk.0.ssm_ba.weight", "blk.0.ssm_beta.weight");
  add_copy(dense, "blk.0.ssm_out.scale", "blk.0.ssm_a");
  add_copy(dense, "blk.0.ffn_norm.weight", "blk.0.attn_norm.weight");

  const Liar predicts("qwen35_odd_sizes", files);
  predicts.i32("nextn_predict_layers", {-1, 4});
  predicts.change("nextn_predict_layers-0", "M2", "is not used",
                  [](ModelDraft& d) { d.set_u32("qwen35.nextn_predict_layers", 0); });
  predicts.change("nextn-alone", "M2", "this file holds only what guesses further tokens", [](ModelDraft& d) {
    for (const char* layer : {"blk.0.", "blk.1.", "blk.2."})
      std::erase_if(d.tensors,
                    [&](const ModelDraft::Tensor& tensor) { return tensor.name.starts_with(layer); });
  });

  const Liar moe("qwen35moe", files);
  moe.tensor("blk.0.ffn_gate_inp_shexp.weight");
  moe.tensor("blk.2.ffn_down_shexp.weight");
  moe.i32("expert_used_count", {0, 9});
  moe.i32("expert_shared_feed_forward_length", {0, -1, 1 << 21});
  const Liar next("qwen3next", files);
  next.tensor("blk.0.ssm_ba.weight");
  next.i32("rope.dimension_sections", {11});
  add_copy(next, "blk.0.ssm_alpha.weight", "blk.0.ssm_ba.weight");
  const Liar packed("qwen3next_packed", files);
  packed.change("ssm_in-longer", "M2", "\"blk.0.ssm_in.weight\" has the shape", [](ModelDraft& d) {
    ModelDraft::Tensor& inputs = d.tensor("blk.0.ssm_in.weight");
    inputs.dimensions[1] += 1, inputs.bytes.resize(inputs.bytes.size() + 52 * sizeof(float));
  });
  add_copy(packed, "blk.0.attn_qkv.weight", "blk.0.ssm_in.weight");
}

void add_unequal_layers(const Liar& liar) {
  for (const char* suffix : {"attention.sliding_window", "attention.sliding_window_pattern",
                             "attention.key_length_swa", "attention.value_length_swa"})
    liar.missing_key(suffix);
  liar.i32("attention.sliding_window", {-1, 0});
  liar.list("attention.sliding_window_pattern", "too-few", {1, 1, 0, 1, 1});
  liar.list("attention.sliding_window_pattern", "no-flags", {1, 1, 2, 1, 1, 0});
  liar.i32("attention.key_length_swa", {0, -24, 4'097});
  liar.i32("attention.value_length_swa", {16});
  liar.i32("rope.dimension_count_swa", {0, -2, 15, 26});
  liar.f32("rope.freq_base_swa", {0.0f, -1.0f, kNan, kInfinity});
  liar.list("attention.head_count_kv", "too-few", {2, 2, 1, 2, 2});
  liar.list("attention.head_count_kv", "too-many", {2, 2, 1, 2, 2, 1, 2});
  liar.list("attention.head_count_kv", "of-none", {2, 2, 1, 2, 0, 1});
  liar.list("attention.head_count_kv", "that-do-not-divide", {2, 2, 3, 2, 2, 1});
  liar.list("feed_forward_length", "of-none", {96, 96, 0, 96, 96, 96});
  liar.list("feed_forward_length", "too-few", {96});
  liar.change("feed_forward_length-others", "M2", "\"blk.2.ffn_gate.weight\" has the shape",
              [](ModelDraft& d) {
                d.set_array<std::int32_t>("gemma4.feed_forward_length", {96, 96, 192, 96, 96, 96});
              });
  liar.change("head_count_kv-others", "M2", "\"blk.2.attn_k.weight\" has the shape", [](ModelDraft& d) {
    d.set_array<std::int32_t>("gemma4.attention.head_count_kv", {2, 2, 2, 2, 2, 1});
  });
  liar.change("head_count_kv-of-strings", "G7", "gemma4.attention.head_count_kv", [](ModelDraft& d) {
    d.set_strings("gemma4.attention.head_count_kv", std::vector<std::string>(6, "2"));
  });
  liar.change("pattern-of-other-layers", "M2", "\"blk.0.attn_q.weight\" has the shape", [](ModelDraft& d) {
    set_flags(d, "gemma4.attention.sliding_window_pattern", {0, 1, 1, 0, 1, 1});
  });
}

void add_shared_layers(const Liar& liar) {
  liar.i32("attention.shared_kv_layers", {-1, 7, 1'000'000'000});
  liar.change("shared_kv_layers-without-one-of-their-kind", "M1",
              "leaves layer 1 without one of its kind to read from",
              [](ModelDraft& d) { d.set_u32("gemma4.attention.shared_kv_layers", 6); });
  liar.change("shared_kv_layers-with-other-heads", "M1", "gives layer 5 other heads than those that it reads",
              [](ModelDraft& d) {
                d.set_array<std::int32_t>("gemma4.attention.head_count_kv", {2, 2, 2, 2, 2, 1, 2});
              });
  liar.change("shared_kv_layers-fewer", "M2", "\"blk.4.attn_k.weight\" is missing",
              [](ModelDraft& d) { d.set_u32("gemma4.attention.shared_kv_layers", 2); });
}

void add_unequal_files(HostileFiles& files) {
  const Liar full("gemma4", files);
  add_unequal_layers(full);
  full.f32("final_logit_softcapping", {-1.0f, 1e30f, kNan, kInfinity});
  full.i32("embedding_length_per_layer_input", {-1, 1 << 30});
  full.string("embedding_length_per_layer_input", "8");
  full.change("embedding_length_per_layer_input-8", "M2", "\"per_layer_token_embd.weight\" is missing",
              [](ModelDraft& d) { d.set_u32("gemma4.embedding_length_per_layer_input", 8); });
  full.factors("rope_freqs.weight", {0.0f, -1.0f, 1e29f, kNan, kInfinity});
  for (const char* name :
       {"rope_freqs.weight", "blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.5.attn_k.weight",
        "blk.2.attn_q_norm.weight", "blk.1.attn_k_norm.weight", "blk.3.attn_output.weight",
        "blk.4.post_attention_norm.weight", "blk.5.post_ffw_norm.weight"})
    full.tensor(name);
  full.change("layer_output_scale-of-two", "M2", "\"blk.0.layer_output_scale.weight\" has the shape",
              [](ModelDraft& d) {
                ModelDraft::Tensor& scale = d.tensor("blk.0.layer_output_scale.weight");
                scale.dimensions[0] = 2, scale.bytes.resize(2 * sizeof(float));
              });
  add_copy(full, "blk.0.inp_gate.weight", "blk.0.ffn_gate.weight");
  add_copy(full, "blk.0.attn_v_norm.weight", "blk.0.attn_k_norm.weight");
  add_copy(full, "blk.0.pre_ffw_norm_2.weight", "blk.0.ffn_norm.weight");

  const Liar embedded("gemma4_embedded", files);
  add_shared_layers(embedded);
  embedded.change("per_layer_token_embd-missing", "M2", "\"per_layer_token_embd.weight\" is missing",
                  [](ModelDraft& d) { d.remove_tensor("per_layer_token_embd.weight"); });
  for (const char* name : {"per_layer_model_proj.weight", "per_layer_proj_norm.weight",
                           "blk.0.inp_gate.weight", "blk.3.proj.weight", "blk.6.post_norm.weight"})
    embedded.tensor(name);
  for (const std::uint32_t size : {16u, 33u, 0u}) {
    embedded.change("embedding_length_per_layer_input-" + std::to_string(size), "M2",
                    "per_layer_token_embd.weight",
                    [=](ModelDraft& d) { d.set_u32("gemma4.embedding_length_per_layer_input", size); });
  }

  const Liar experts("gemma4_experts", files);
  experts.i32("expert_used_count", {-1, 0, 9});
  experts.change("expert_feed_forward_length-31", "M2", "\"blk.0.ffn_gate_up_exps.weight\" has the shape",
                 [](ModelDraft& d) { d.set_u32("gemma4.expert_feed_forward_length", 31); });
  experts.list("feed_forward_length", "of-each-layer-beside-experts", {96, 96, 192});
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_inp.scale", "blk.2.pre_ffw_norm_2.weight",
        "blk.0.post_ffw_norm_1.weight", "blk.1.post_ffw_norm_2.weight", "blk.2.ffn_up.weight",
        "blk.1.ffn_down_exps.weight"})
    experts.tensor(name);
  experts.change("ffn_down_exps-scales-of-others", "M2", "\"blk.0.ffn_down_exps.scale\" has the shape",
                 [](ModelDraft& d) {
                   ModelDraft::Tensor& scale = d.tensor("blk.0.ffn_down_exps.scale");
                   scale.dimensions[0] = 7, scale.bytes.resize(7 * sizeof(float));
                 });

  const Liar gemma("gemma3", files);
  gemma.i32("attention.shared_kv_layers", {1});
  gemma.i32("embedding_length_per_layer_input", {8});
}

// A list with a number for each layer.
void add_list(const Liar& liar, const std::string& name, const std::string& key,
              const std::vector<std::uint32_t>& numbers, const std::string& sentence) {
  liar.change(name, "M1", sentence, [=](ModelDraft& d) { d.set_array<std::uint32_t>(key, numbers); });
}

void add_short_convolution_files(HostileFiles& files) {
  const Liar dense("lfm2", files);
  const std::string heads = "lfm2.attention.head_count_kv", hidden = "lfm2.feed_forward_length";
  dense.missing_key("shortconv.l_cache");
  dense.i32("shortconv.l_cache", {-1, 0, 1, 65, 1 << 30});
  dense.string("shortconv.l_cache", "3");
  dense.change("l_cache-4", "M2", "\"blk.0.shortconv.conv.weight\" has the shape",
               [](ModelDraft& d) { d.set_u32("lfm2.shortconv.l_cache", 4); });
  add_list(dense, "head_count_kv-too-few", heads, {0, 0, 2}, heads + " holds 3 entries for 4 layers");
  add_list(dense, "head_count_kv-too-many", heads, {0, 0, 2, 0, 0}, heads + " holds 5 entries for 4 layers");
  add_list(dense, "head_count_kv-none", heads, {0, 0, 0, 0}, heads + " is 0; 1 to 1024 is allowed");
  add_list(dense, "head_count_kv-3", heads, {0, 0, 3, 0}, heads + " is 3, which does not divide the 4 heads");
  add_list(dense, "head_count-of-layers", "lfm2.attention.head_count", {4, 4, 0, 4},
           "lfm2.attention.head_count is 0 in a layer that needs some");
  add_list(dense, "feed_forward_length-of-layers", hidden, {96, 0, 96, 96},
           hidden + " is 0; 1 to 1048576 is allowed");
  dense.change("head_count_kv-of-floats", "G7", heads + " has type array of f32", [=](ModelDraft& d) {
    const std::vector<float> numbers(4, 2.0f);
    d.set_raw_array(heads, static_cast<std::uint32_t>(GgufType::kF32), 4, std::as_bytes(std::span(numbers)));
  });
  dense.change("head_count_kv-others", "M2", "\"blk.0.attn_q.weight\" is missing", [=](ModelDraft& d) {
    d.set_array<std::uint32_t>(heads, {2, 0, 2, 0});
  });
  for (const char* name :
       {"blk.0.shortconv.in_proj.weight", "blk.1.shortconv.conv.weight", "blk.3.shortconv.out_proj.weight",
        "blk.2.attn_q_norm.weight", "token_embd_norm.weight"})
    dense.tensor(name);
  add_copy(dense, "blk.0.shortconv.conv.bias", "blk.0.attn_norm.weight");
  add_copy(dense, "blk.0.attn_q.weight", "blk.2.attn_q.weight");
  add_copy(dense, "output_norm.weight", "token_embd_norm.weight");

  const Liar moe("lfm2moe", files);
  moe.i32("expert_gating_func", {1, 3, -1});
  moe.i32("leading_dense_block_count", {-1, 5});
  moe.missing_key("expert_feed_forward_length");
  moe.i32("attention.sliding_window", {8});
}

void add_state_space_files(HostileFiles& files) {
  const Liar granite("granitehybrid", files);
  for (const char* suffix :
       {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"}) {
    granite.missing_key(suffix);
    granite.i32(suffix, {-1, 0, 1 << 30});
    granite.string(suffix, "4");
  }
  granite.change("ssm.group_count-3", "M1",
                 "granitehybrid.ssm.time_step_rank is 8, which is no multiple of the 3 groups",
                 [](ModelDraft& d) { d.set_u32("granitehybrid.ssm.group_count", 3); });
  granite.i32("ssm.inner_size", {127, 10'000});
  for (const auto& [suffix, value] : {std::pair{"ssm.conv_kernel", 3u},
                                      {"ssm.state_size", 23u},
                                      {"ssm.group_count", 4u},
                                      {"ssm.time_step_rank", 4u},
                                      {"ssm.inner_size", 64u}}) {
    const std::string key = std::string("granitehybrid.") + suffix;
    granite.change(std::string(suffix) + "-other-than-the-tensors", "M2", "has the shape",
                   [=, value = value](ModelDraft& d) { d.set_u32(key, value); });
  }
  for (const char* name :
       {"blk.0.ssm_in.weight", "blk.2.ssm_conv1d.weight", "blk.3.ssm_dt.bias", "blk.0.ssm_a", "blk.2.ssm_d",
        "blk.3.ssm_norm.weight", "blk.0.ssm_out.weight", "blk.1.attn_q.weight", "blk.0.ffn_norm.weight"})
    granite.tensor(name);
  for (const float value : {0.5f, kInfinity}) {
    granite.change(
        "ssm_a-holding-" + std::to_string(value), "M4", "with which a state would grow without end",
        [=](ModelDraft& d) { std::memcpy(&d.tensor("blk.0.ssm_a").bytes[4], &value, sizeof value); });
  }
  granite.f32("logit_scale", {-1.0f, 1e30f, kNan, kInfinity});
  add_copy(granite, "blk.1.ssm_a", "blk.0.ssm_a");
  add_copy(granite, "blk.0.ssm_in.bias", "blk.0.ssm_dt.bias");
  add_copy(granite, "blk.0.ssm_x.weight", "blk.0.ssm_out.weight");

  const Liar nemotron("nemotron_h", files);
  const std::string hidden = "nemotron_h.feed_forward_length";
  add_list(nemotron, "feed_forward_length-too-few", hidden, {0, 96},
           hidden + " holds 2 entries for 6 layers");
  nemotron.change("feed_forward_length-two", "M2", "\"blk.4.ffn_up.weight\" has the shape",
                  [=](ModelDraft& d) {
                    d.set_array<std::uint32_t>(hidden, {0, 96, 0, 0, 95, 0});
                  });
  nemotron.change("feed_forward_length-everywhere", "M1",
                  "nemotron_h.attention.head_count_kv leaves no layer with attention",
                  [=](ModelDraft& d) { d.set_u32(hidden, 96); });
  nemotron.change("feed_forward_length-elsewhere", "M2", "\"blk.0.ffn_up.weight\" is missing",
                  [=](ModelDraft& d) {
                    d.set_array<std::uint32_t>(hidden, {96, 0, 0, 0, 96, 0});
                  });
  nemotron.change("epsilon-missing", "M1", "nemotron_h.attention.layer_norm_rms_epsilon is missing",
                  [](ModelDraft& d) { d.remove("nemotron_h.attention.layer_norm_epsilon"); });
  nemotron.f32("attention.layer_norm_epsilon", {0.0f, -1.0f, kNan});
  nemotron.tensor("blk.1.ffn_up.weight");
  nemotron.tensor("blk.4.attn_norm.weight");
  add_copy(nemotron, "blk.1.ffn_norm.weight", "blk.1.attn_norm.weight");
  add_copy(nemotron, "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight");
  add_copy(nemotron, "blk.0.ffn_up.weight", "blk.1.ffn_up.weight");

  const Liar falcon("falcon-h1", files);
  falcon.change("ffn_norm-missing", "M2", "\"blk.0.ffn_norm.weight\" is missing",
                [](ModelDraft& d) { d.remove_tensor("blk.0.ffn_norm"); });
  falcon.i32("attention.head_count_kv", {0, 3});
  falcon.tensor("blk.0.attn_output.weight");
  falcon.tensor("blk.1.ssm_out.weight");
}

// Gates and norms at other places, chunks, branches side by side, experts without a gate.
void add_further_files(HostileFiles& files) {
  const Liar muse("muse-glimmer", files);
  muse.i32("attention.sliding_window", {-1, 0});
  muse.missing_key("attention.sliding_window");
  muse.missing_key("logit_scale");
  muse.f32("logit_scale", {0.0f, -1.0f, 1e30f, kNan, kInfinity});
  for (const char* name : {"blk.1.attn_gate.weight", "blk.2.post_ffw_norm.weight", "output_norm.weight"})
    muse.tensor(name);
  add_copy(muse, "blk.0.attn_gate.bias", "blk.0.attn_norm.weight");

  const Liar llama("llama4", files);
  llama.i32("interleave_moe_layer_step", {-1, 0, 6, 1'000'000'000});
  llama.missing_key("interleave_moe_layer_step");
  llama.missing_key("expert_feed_forward_length");
  llama.missing_key("feed_forward_length");
  llama.i32("expert_gating_func", {1, 3, -1});
  llama.i32("leading_dense_block_count", {1});
  for (const char* name : {"blk.0.ffn_gate.weight", "blk.1.ffn_gate_inp.weight", "blk.3.ffn_up_shexp.weight"})
    llama.tensor(name);
  llama.change("interleave_moe_layer_step-1", "M2", "\"blk.0.ffn_gate_inp.weight\" is missing",
               [](ModelDraft& d) { d.set_u32("llama4.interleave_moe_layer_step", 1); });

  const Liar cohere("cohere2", files);
  cohere.missing_key("attention.layer_norm_epsilon");
  cohere.f32("logit_scale", {0.0f, kNan});
  cohere.i32("attention.sliding_window", {0});
  add_copy(cohere, "blk.1.ffn_norm.weight", "blk.1.attn_norm.weight");
  add_copy(cohere, "blk.1.attn_norm.bias", "blk.1.attn_norm.weight");
  const Liar apart("command-r_head_norms", files);
  apart.tensor("blk.1.attn_k_norm.weight");
  const Liar stable("stablelm_side_by_side", files);
  stable.tensor("blk.1.attn_q_norm.weight");
  add_copy(stable, "blk.1.ffn_norm.bias", "blk.1.attn_norm.bias");

  const Liar phi("phimoe", files);
  for (const char* name :
       {"blk.0.attn_norm.bias", "blk.1.ffn_norm.bias", "output_norm.bias", "blk.0.attn_q.bias",
        "blk.1.attn_output.bias", "output.bias", "blk.0.ffn_gate_inp.weight", "blk.1.ffn_down_exps.weight"})
    phi.tensor(name);
  phi.i32("expert_count", {-1, 0});
  phi.i32("expert_used_count", {-1, 0, 9});
  phi.i32("expert_gating_func", {2});
  phi.missing_key("expert_used_count");
  phi.factors("rope_factors_short.weight", {0.0f, kNan});
  add_copy(phi, "blk.0.ffn_gate_inp.bias", "blk.0.attn_norm.bias");
  add_copy(phi, "blk.1.ffn_up.weight", "blk.1.attn_q.weight");
  add_copy(Liar("qwen3moe", files), "blk.1.ffn_norm.bias", "blk.1.ffn_norm.weight");

  const Liar olmo("olmo2", files);
  for (const char* name : {"blk.0.post_attention_norm.weight", "blk.1.attn_q_norm.weight"}) olmo.tensor(name);
  add_copy(olmo, "blk.0.attn_norm.weight", "blk.0.post_attention_norm.weight");
  const Liar exaone("exaone4_windows", files);
  exaone.i32("attention.sliding_window", {-1});
  exaone.i32("nextn_predict_layers", {-1, 6});
  exaone.tensor("blk.4.attn_q_norm.weight");
  const Liar hunyuan("hunyuan-dense_odd_sizes", files);
  hunyuan.f32("rope.scaling.alpha", {-1.0f, 1e30f, kNan, kInfinity});
  Liar("qwen3", files).f32("rope.scaling.alpha", {2.0f});

  const Liar nemotron("nemotron_h_moe_latent", files);
  nemotron.i32("moe_latent_size", {-1, 1 << 20});
  nemotron.i32("expert_count", {-1});
  nemotron.change("expert_count-8", "M2", "has the shape",
                  [](ModelDraft& d) { d.set_u32("nemotron_h_moe.expert_count", 8); });
  nemotron.f32("expert_weights_scale", {-1.0f, kNan});
  nemotron.change("moe_latent_size-21", "M2", "has the shape",
                  [](ModelDraft& d) { d.set_u32("nemotron_h_moe.moe_latent_size", 21); });
  nemotron.change("moe_latent_size-missing", "M2", "has the shape",
                  [](ModelDraft& d) { d.remove("nemotron_h_moe.moe_latent_size"); });
  for (const char* name : {"blk.1.ffn_latent_down.weight", "blk.3.ffn_latent_up.weight",
                           "blk.1.ffn_up_exps.weight", "blk.3.ffn_down_shexp.weight"})
    nemotron.tensor(name);
  add_copy(nemotron, "blk.1.ffn_gate_exps.weight", "blk.1.ffn_up_exps.weight");
  const std::string used = "nemotron_h_moe.expert_used_count";
  nemotron.change("expert_used_count-of-each-layer", "G7", used, [=](ModelDraft& d) {
    d.set_array<std::uint32_t>(used, {0, 2, 0, 3, 0, 2});
  });
}

}  // namespace

void add_architecture_files(HostileFiles& files) {
  add_gemma_files(files);
  add_gpt2_files(files);
  add_phi3_files(files);
  add_qwen_files(files);
  add_multiplier_files(files);
  add_expert_files(files);
  add_latent_files(files);
  add_recurrent_files(files);
  add_unequal_files(files);
  add_short_convolution_files(files);
  add_state_space_files(files);
  add_further_files(files);
}

}  // namespace octavo::test
