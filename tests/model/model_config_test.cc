#include "engine/model/model_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "engine/model/config_ranges.h"
#include "engine/model/gguf_header.h"
#include "engine/model/kv_use.h"
#include "engine/model/limits.h"
#include "tests/support/gguf_writer.h"

namespace octavo::model {
namespace {

using test::GgufWriter;

// The keys of a valid model with changes: {"llama.block_count", 0u} replaces or
// adds, {"...", nothing} leaves out.
class KeySet {
 public:
  template <class T>
  KeySet& set(const std::string& key, T value) {
    writes_[key] = [key, value](GgufWriter& writer) {
      if constexpr (std::is_same_v<T, bool>)
        writer.add_bool(key, value);
      else if constexpr (std::is_same_v<T, std::vector<bool>>)
        writer.add_bool_array(key, {value.begin(), value.end()});
      else if constexpr (std::is_same_v<T, std::vector<std::int32_t>>)
        writer.add_array(key, value);
      else if constexpr (std::is_arithmetic_v<T>)
        writer.add_number(key, value);
      else
        writer.add_string(key, value);
    };
    return *this;
  }
  KeySet& set_list(const std::string& key, std::vector<std::int32_t> values) {
    return set(key, std::move(values));
  }
  KeySet& set_flags(const std::string& key, std::vector<bool> values) { return set(key, std::move(values)); }
  KeySet& remove(const std::string& key) {
    writes_.erase(key);
    return *this;
  }
  Result<ModelConfig> read() const {
    GgufWriter writer;
    for (const auto& [key, write] : writes_) write(writer);
    const auto bytes = writer.bytes();
    OCTAVO_TRY(const auto header, GgufHeader::parse(MemorySource(bytes), "test.gguf"));
    return read_model_config(header);
  }

 private:
  std::map<std::string, std::function<void(GgufWriter&)>> writes_;
};

KeySet valid() {
  KeySet keys;
  keys.set("general.architecture", "llama").set("general.name", "a model");
  keys.set("llama.block_count", 30u).set("llama.context_length", 8192u).set("llama.embedding_length", 576u);
  keys.set("llama.feed_forward_length", 1536u)
      .set("llama.attention.head_count", 9u)
      .set("llama.attention.head_count_kv", 3u);
  keys.set("llama.attention.layer_norm_rms_epsilon", 1e-5f).set("llama.vocab_size", 49'152u);
  return keys;
}

TEST(ModelConfig, ReadsALlama) {
  const auto config = valid().set("llama.rope.freq_base", 100'000.0f).read();
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->name, "a model");
  EXPECT_EQ(config->num_layers, 30);
  EXPECT_EQ(config->context_length, 8192);
  EXPECT_EQ(config->embedding_length, 576);
  EXPECT_EQ(config->feed_forward_length, 1536);
  EXPECT_EQ(config->num_heads, 9);
  EXPECT_EQ(config->num_kv_heads, 3);
  EXPECT_EQ(config->head_dim, 64);
  EXPECT_EQ(config->vocabulary_size, 49'152);
  EXPECT_EQ(config->norm_epsilon, 1e-5f);
  EXPECT_EQ(config->score_scale, 0.125);
  EXPECT_EQ(config->rope.rotary_dim, 64);
  EXPECT_EQ(config->rope.frequency_base, 100'000.0);
  EXPECT_EQ(config->rope.scaling, RopeScalingType::kNone);
}

TEST(ModelConfig, FillsInWhatFilesLeaveOut) {
  const auto config = valid().remove("llama.attention.head_count_kv").remove("general.name").read();
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->num_kv_heads, 9);
  EXPECT_EQ(config->name, "");
  EXPECT_EQ(config->rope.frequency_base, 10'000.0);
}

TEST(ModelConfig, TheHeadSizeMayStandApartFromTheWidth) {
  const auto config = valid()
                          .set("llama.attention.key_length", 80u)
                          .set("llama.attention.value_length", 80u)
                          .set("llama.attention.head_count", 7u)
                          .set("llama.attention.head_count_kv", 7u)
                          .set("llama.rope.dimension_count", 40u)
                          .read();
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->head_dim, 80);
  EXPECT_EQ(config->rope.rotary_dim, 40);
  EXPECT_EQ(config->score_scale, 1.0 / std::sqrt(80.0));
}

TEST(ModelConfig, TheTokenListDecidesAboutTheVocabulary) {
  GgufWriter writer;
  test::add_tiny_llama_keys(writer, {});
  const auto bytes = writer.bytes();
  const auto header = GgufHeader::parse(MemorySource(bytes), "test.gguf");
  EXPECT_EQ(read_model_config(*header)->vocabulary_size,
            static_cast<std::int32_t>(test::kTinyVocabularySize));
  EXPECT_EQ(valid().remove("llama.vocab_size").read().error().subject, "llama.vocab_size");
}

TEST(ModelConfig, ReadsEveryWayOfScalingPositions) {
  const auto scaling = [](const KeySet& keys) {
    const auto config = keys.read();
    EXPECT_TRUE(config.has_value()) << config.error().message;
    return config->rope;
  };
  EXPECT_EQ(
      scaling(valid().set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 4.0f)).scaling,
      RopeScalingType::kNone);
  const RopeConfig linear =
      scaling(valid().set("llama.rope.scaling.type", "linear").set("llama.rope.scaling.factor", 4.0f));
  EXPECT_EQ(linear.scaling, RopeScalingType::kLinear);
  EXPECT_EQ(linear.factor, 4.0);
  EXPECT_EQ(scaling(valid().set("llama.rope.scaling.factor", 4.0f)).scaling, RopeScalingType::kLinear);
  const RopeConfig legacy = scaling(valid().set("llama.rope.scale_linear", 8.0f));
  EXPECT_EQ(legacy.scaling, RopeScalingType::kLinear);
  EXPECT_EQ(legacy.factor, 8.0);
  EXPECT_EQ(
      scaling(valid().set("llama.rope.scale_linear", 8.0f).set("llama.rope.scaling.factor", 2.0f)).factor,
      2.0);
  const RopeConfig yarn = scaling(valid()
                                      .set("llama.rope.scaling.type", "yarn")
                                      .set("llama.rope.scaling.factor", 16.0f)
                                      .set("llama.rope.scaling.original_context_length", 4096u)
                                      .set("llama.rope.scaling.attn_factor", 1.5f)
                                      .set("llama.rope.scaling.yarn_ext_factor", 0.5f)
                                      .set("llama.rope.scaling.yarn_attn_factor", 1.25f)
                                      .set("llama.rope.scaling.yarn_beta_fast", 24.0f)
                                      .set("llama.rope.scaling.yarn_beta_slow", 2.0f));
  EXPECT_EQ(yarn.scaling, RopeScalingType::kYarn);
  EXPECT_EQ(yarn.original_context_length, 4096);
  EXPECT_EQ(yarn.attention_multiplier, 1.5);
  EXPECT_EQ(yarn.yarn_extrapolation_factor, 0.5);
  EXPECT_EQ(yarn.yarn_attention_factor, 1.25);
  EXPECT_EQ(yarn.yarn_beta_fast, 24.0);
  EXPECT_EQ(yarn.yarn_beta_slow, 2.0);
  const RopeConfig llama3 =
      scaling(valid().set("llama.rope.scaling.type", "llama3").set("llama.rope.scaling.factor", 8.0f));
  EXPECT_EQ(llama3.scaling, RopeScalingType::kLlama3);
  EXPECT_EQ(llama3.original_context_length, 8192);  // the context length when nothing else is said
}

void expect_error(const KeySet& keys, ErrorCode code, const std::string& subject,
                  const std::string& sentence) {
  const auto config = keys.read();
  ASSERT_FALSE(config.has_value()) << subject << ": " << sentence;
  EXPECT_EQ(config.error().code, code) << config.error().message;
  EXPECT_EQ(config.error().subject, subject) << config.error().message;
  EXPECT_NE(config.error().message.find("test.gguf: " + subject + " " + sentence), std::string::npos)
      << config.error().message;
}

TEST(ModelConfig, NamesWhatIsNotSupported) {
  const auto unsupported = [](const char* key, auto value, const std::string& sentence) {
    expect_error(valid().set(key, value), ErrorCode::kUnsupported, key, sentence);
  };
  unsupported("general.architecture", "qwen2\x1b[0m",
              "is \"qwen2\\x1b[0m\"; supported are " + supported_architectures());
  unsupported("general.quantization_version", 1u, "is 1; supported is 2");
  unsupported("llama.rope.scaling.type", "dynamic",
              "is \"dynamic\"; supported are none, linear, llama3, yarn and longrope");
  unsupported("llama.attention.value_length", 32u, "makes values of 32 dimensions and keys of 64");
  const char* not_computed = "needs something that Octavo does not support";
  for (const char* key : {"llama.logit_scale", "llama.residual_scale", "llama.embedding_scale"}) {
    unsupported(key, 0.5f, not_computed);
    EXPECT_TRUE(valid().set(key, 1.0f).read().has_value()) << key;
  }
  for (const char* key :
       {"llama.attention.clamp_kqv", "llama.attention.max_alibi_bias", "llama.final_logit_softcapping",
        "llama.attn_logit_softcapping", "llama.rope.scaling.yarn_log_multiplier"}) {
    unsupported(key, 8.0f, not_computed);
    EXPECT_TRUE(valid().set(key, 0.0f).read().has_value()) << key;
  }
  unsupported("llama.nextn_predict_layers", 1u, not_computed);
  EXPECT_TRUE(valid().set("llama.nextn_predict_layers", 0u).read().has_value());
  unsupported("llama.attention.causal", false, not_computed);
  unsupported("llama.use_parallel_residual", true, not_computed);
  for (const char* key : {"llama.rope.dimension_sections", "llama.attention.key_length_swa"})
    unsupported(key, 32u, not_computed);
}

KeySet valid_of(const std::string& architecture) {
  KeySet keys;
  const auto set = [&](const std::string& suffix, auto value) {
    keys.set(architecture + "." + suffix, value);
  };
  keys.set("general.architecture", architecture);
  set("block_count", 8u);
  set("context_length", 8192u);
  set("embedding_length", 256u);
  set("feed_forward_length", 512u);
  set("attention.head_count", 4u);
  set(find_architecture(architecture)->norm == kernels::NormKind::kLayer ? "attention.layer_norm_epsilon"
                                                                         : "attention.layer_norm_rms_epsilon",
      1e-6f);
  set("vocab_size", 1000u);
  const Multipliers& multipliers = find_architecture(architecture)->multipliers;
  if (multipliers.logit_scale != LogitScale::kNone && multipliers.usual_width == 0.0)
    set("logit_scale", 8.0f);
  if (find_architecture(architecture)->experts.use == ExpertUse::kAlways) {
    set("expert_count", 16u);
    set("expert_used_count", 4u);
    set("expert_feed_forward_length", 96u);
  }
  if (find_architecture(architecture)->experts.layers == ExpertLayers::kEveryNth)
    set("interleave_moe_layer_step", 2u);
  if (find_architecture(architecture)->needs_window) set("attention.sliding_window", 512u);
  if (find_architecture(architecture)->has_local_heads) {
    set("attention.sliding_window", 512u);
    set("attention.sliding_window_pattern", 4u);
    for (const char* suffix : {"attention.key_length_swa", "attention.value_length_swa"}) set(suffix, 32u);
  }
  if (find_architecture(architecture)->has_latent_attention) {
    set("rope.dimension_count", 64u);
    set("attention.kv_lora_rank", 512u);
    set("attention.key_length_mla", 256u);
    set("attention.value_length_mla", 128u);
  }
  const RecurrentLayers recurrent = find_architecture(architecture)->recurrent_layers;
  const LayerParts layer_parts = find_architecture(architecture)->layer_parts;
  if (recurrent == RecurrentLayers::kShortConvolution) set("shortconv.l_cache", 3u);
  const bool goes_by_heads =
      recurrent == RecurrentLayers::kStateSpace || recurrent == RecurrentLayers::kShortConvolution;
  if (goes_by_heads && layer_parts != LayerParts::kBothMixers)
    set("attention.head_count_kv", std::vector<std::int32_t>{0, 4, 4, 0, 0, 4, 0, 0});
  if (layer_parts == LayerParts::kOneOfAll)
    set("feed_forward_length", std::vector<std::int32_t>{0, 512, 0, 0, 512, 0, 512, 512});
  if (recurrent == RecurrentLayers::kStateSpace || is_delta_net(recurrent)) {
    set("ssm.conv_kernel", 4u);
    set("ssm.state_size", 32u);
    set("ssm.group_count", 2u);
    set("ssm.time_step_rank", 6u);
    set("ssm.inner_size", 144u);
  }
  return keys;
}

ModelConfig config_of(const KeySet& keys) {
  const auto config = keys.read();
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config ? *config : ModelConfig();
}

std::string windowed_layers(const ModelConfig& config) {
  std::string text;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer)
    text += config.has_window(layer) ? 'w' : '-';
  return text;
}

TEST(ModelConfig, EveryArchitectureNamesItsKeysAfterItself) {
  for (const Architecture& architecture : architectures()) {
    const std::string name(architecture.name);
    const ModelConfig config = config_of(valid_of(name));
    EXPECT_EQ(config.architecture, name);
    EXPECT_EQ(config.parts.name, name);
    EXPECT_EQ(config.num_kv_heads, architecture.has_latent_attention ? 1 : 4);
    EXPECT_EQ(config.rope.rotary_dim,
              name == "gpt2" || name == "opt" || name.starts_with("nemotron_h") ? 0 : 64);
    EXPECT_EQ(config.score_scale, name == "gemma4"                    ? 1.0
                                  : architecture.has_latent_attention ? 0.0625
                                                                      : 0.125);
    expect_error(valid_of(name).set(name + ".block_count", 0u), ErrorCode::kDamagedFile,
                 name + ".block_count", "is 0; 1 to 1024 is allowed");
  }
}

TEST(ModelConfig, ArchitecturesSayWhatTheirExpertsAre) {
  const ExpertConfig none = config_of(valid()).experts;
  EXPECT_FALSE(none.in_layer(0));
  const ExpertConfig mixtral = config_of(valid()
                                             .set("llama.expert_count", 8u)
                                             .set("llama.expert_used_count", 2u)
                                             .set("llama.expert_shared_feed_forward_length", 32u))
                                   .experts;
  EXPECT_EQ(mixtral.num_experts, 8);
  EXPECT_EQ(mixtral.num_used, 2);
  EXPECT_EQ(mixtral.expert_length, 1536);
  EXPECT_EQ(mixtral.shared_length, 32);
  EXPECT_TRUE(mixtral.normalises_weights);
  EXPECT_TRUE(mixtral.in_layer(0));
  const ModelConfig qwen = config_of(valid_of("qwen3moe").remove("qwen3moe.feed_forward_length"));
  EXPECT_EQ(qwen.experts.expert_length, 96);
  EXPECT_EQ(qwen.feed_forward_length, 0) << "no layer has one";
  EXPECT_EQ(
      config_of(valid_of("qwen3moe").remove("qwen3moe.expert_feed_forward_length")).experts.expert_length,
      128);
  const ModelConfig glm = config_of(valid_of("glm4moe")
                                        .set("glm4moe.leading_dense_block_count", 1u)
                                        .set("glm4moe.expert_shared_count", 2u)
                                        .set("glm4moe.expert_weights_scale", 2.5f)
                                        .set("glm4moe.expert_weights_norm", true)
                                        .set("glm4moe.nextn_predict_layers", 1u));
  EXPECT_EQ(glm.num_layers, 7);
  EXPECT_EQ(glm.num_skipped_layers, 1);
  EXPECT_EQ(glm.feed_forward_length, 512);
  EXPECT_EQ(glm.experts.shared_length, 192);
  EXPECT_EQ(glm.experts.scoring, kernels::RouterScoring::kSigmoid);
  EXPECT_EQ(glm.experts.weights_scale, 2.5f);
  EXPECT_TRUE(glm.experts.normalises_weights);
  EXPECT_FALSE(glm.experts.in_layer(0));
  EXPECT_TRUE(glm.experts.in_layer(1));
  EXPECT_FALSE(config_of(valid_of("glm4moe")).experts.normalises_weights);
  const ModelConfig oss = config_of(valid_of("gpt-oss").set("gpt-oss.attention.sliding_window", 128u));
  EXPECT_EQ(oss.experts.scoring, kernels::RouterScoring::kSoftmaxOfSelected);
  EXPECT_EQ(windowed_layers(oss), "w-w-w-w-");
}

TEST(ModelConfig, LatentAttentionKeepsOneKeyForAllHeads) {
  const ModelConfig config = config_of(valid_of("deepseek2")
                                           .set("deepseek2.attention.key_length", 576u)
                                           .set("deepseek2.attention.value_length", 512u)
                                           .set("deepseek2.attention.q_lora_rank", 768u));
  EXPECT_EQ(config.kv_heads(3), (kernels::KvHeads{1, 576, 512}));
  EXPECT_EQ(find_kv_uses(config).places, (std::vector<kernels::KvHeads>(8, {1, 576, 512})));
  EXPECT_EQ(config.latent.query_rank, 768);
  EXPECT_EQ(config.latent.query_dim, 256);
  EXPECT_EQ(config.latent.unrotated_dim(), 192);
  EXPECT_EQ(config.latent.value_dim, 128);
  EXPECT_FALSE(config.latent.has_joint_matrix);
  EXPECT_EQ(config.score_scale, 1.0 / 16.0) << "a head's size, not that of what is kept";
  EXPECT_EQ(config_of(valid_of("deepseek2")).latent.query_rank, 0);

  const ModelConfig old = config_of(valid_of("deepseek2")
                                        .remove("deepseek2.attention.key_length_mla")
                                        .remove("deepseek2.attention.value_length_mla")
                                        .set("deepseek2.attention.key_length", 192u)
                                        .set("deepseek2.attention.value_length", 96u)
                                        .set("deepseek2.attention.head_count_kv", 8u));
  EXPECT_TRUE(old.latent.has_joint_matrix);
  EXPECT_EQ(old.kv_heads(0), (kernels::KvHeads{1, 576, 512}));
  EXPECT_EQ(old.latent.query_dim, 192);
  EXPECT_EQ(old.latent.value_dim, 96);
}

TEST(ModelConfig, LatentAttentionsScoresGrowByWhatYarnStretches) {
  const auto stretched = [] {
    return valid_of("deepseek2")
        .set("deepseek2.rope.scaling.type", "yarn")
        .set("deepseek2.rope.scaling.factor", 40.0f)
        .set("deepseek2.rope.scaling.original_context_length", 4096u);
  };
  const ModelConfig plain = config_of(stretched());
  EXPECT_EQ(plain.score_scale, 1.0 / 16.0);
  EXPECT_FALSE(plain.rope.yarn_attention_factor) << "queries and keys grow instead";
  const ModelConfig config = config_of(stretched().set("deepseek2.rope.scaling.yarn_log_multiplier", 0.1f));
  const double factor = 1.0 + 0.1 * std::log(40.0);
  EXPECT_NEAR(config.score_scale, factor * factor / 16.0, 1e-8);
  EXPECT_EQ(config.rope.yarn_attention_factor, 1.0);
  EXPECT_EQ(
      config_of(valid_of("deepseek2").set("deepseek2.rope.scaling.yarn_log_multiplier", 0.1f)).score_scale,
      1.0 / 16.0)
      << "nothing is stretched";
  EXPECT_EQ(
      config_of(valid_of("mistral4").set("mistral4.attention.temperature_scale", 0.1f)).query_scale_factor,
      static_cast<double>(0.1f));
}

TEST(ModelConfig, RoutersOfTheFirstGlmFlashFilesAreSigmoids) {
  const auto scoring_of = [](std::uint32_t num_layers, std::size_t num_tokens, const KeySet& keys) {
    KeySet changed = keys;
    changed.set("deepseek2.block_count", num_layers).set("deepseek2.expert_count", 8u);
    changed.set("deepseek2.expert_used_count", 2u).set("deepseek2.expert_feed_forward_length", 96u);
    changed.set_list("tokenizer.ggml.tokens", std::vector<std::int32_t>(num_tokens));
    return config_of(changed).experts.scoring;
  };
  using kernels::RouterScoring;
  const KeySet silent = valid_of("deepseek2");
  EXPECT_EQ(scoring_of(47, 154'880, silent), RouterScoring::kSigmoid);
  EXPECT_EQ(scoring_of(48, 154'880, silent), RouterScoring::kSigmoid);
  EXPECT_EQ(scoring_of(46, 154'880, silent), RouterScoring::kSoftmax);
  EXPECT_EQ(scoring_of(47, 154'881, silent), RouterScoring::kSoftmax);
  KeySet said = silent;
  said.set("deepseek2.expert_gating_func", 1u);
  EXPECT_EQ(scoring_of(47, 154'880, said), RouterScoring::kSoftmax);
  said.set("deepseek2.expert_gating_func", 2u);
  EXPECT_EQ(scoring_of(10, 154'881, said), RouterScoring::kSigmoid);
}

TEST(ModelConfig, LatentAttentionThatCannotBeIsRefused) {
  const auto damaged = [](const std::string& suffix, auto value, const std::string& sentence) {
    expect_error(valid_of("deepseek2").set("deepseek2." + suffix, value), ErrorCode::kDamagedFile,
                 "deepseek2." + suffix, sentence);
  };
  const auto missing = [](const std::string& suffix) {
    expect_error(valid_of("deepseek2").remove("deepseek2." + suffix), ErrorCode::kDamagedFile,
                 "deepseek2." + suffix, "is missing");
  };
  for (const char* suffix : {"attention.kv_lora_rank", "attention.key_length_mla",
                             "attention.value_length_mla", "rope.dimension_count"})
    missing(suffix);
  damaged("attention.kv_lora_rank", 0u, "is 0; 1 to 4032 is allowed");
  damaged("attention.kv_lora_rank", 4033u, "is 4033; 1 to 4032 is allowed");
  damaged("attention.q_lora_rank", 65'537u, "is 65537; 0 to 65536 is allowed");
  damaged("attention.key_length_mla", 64u, "is 64; 65 to 4096 is allowed");
  damaged("attention.value_length_mla", 4097u, "is 4097; 1 to 4096 is allowed");
  damaged("attention.key_length", 192u, "is 192, but the ranks make it 576");
  damaged("attention.value_length", 128u, "is 128, but the ranks make it 512");
  damaged("rope.dimension_count", 63u, "is 63; dimensions are rotated in pairs, so this must be even");
  damaged("rope.dimension_count", 4096u, "is 4096; 2 to 4095 is allowed");
  KeySet old = valid_of("deepseek2");
  old.remove("deepseek2.attention.key_length_mla").remove("deepseek2.attention.value_length_mla");
  expect_error(old, ErrorCode::kDamagedFile, "deepseek2.attention.key_length", "is missing");
}

std::string recurrent_layers(const ModelConfig& config) {
  std::string text;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer)
    text += config.is_recurrent(layer) ? 'r' : 'a';
  return text;
}

TEST(ModelConfig, RecurrentLayersAreListedOrAllButEveryNth) {
  const ModelConfig usual = config_of(valid_of("qwen35"));
  EXPECT_EQ(recurrent_layers(usual), "rrrarrra");
  EXPECT_EQ(find_kv_uses(usual).places.size(), 2u);
  EXPECT_EQ(find_kv_uses(usual).layers[3].place, 0);
  EXPECT_EQ(find_kv_uses(usual).layers[7].place, 1);
  EXPECT_EQ(usual.state_layer(0), 0);
  EXPECT_EQ(usual.state_layer(4), 3);
  EXPECT_EQ(recurrent_layers(config_of(valid_of("qwen35").set("qwen35.full_attention_interval", 3u))),
            "rrarrarr");
  const ModelConfig none = config_of(valid_of("qwen35").set("qwen35.full_attention_interval", 1u));
  EXPECT_EQ(recurrent_layers(none), "aaaaaaaa");
  EXPECT_TRUE(none.recurrent.state_layout().empty());
  const std::vector<bool> listed = {true, false, false, true, true, false, true, false};
  EXPECT_EQ(recurrent_layers(config_of(valid_of("qwen35").set("qwen35.attention.recurrent_layers", listed))),
            "raarrara");
  const std::vector<std::int32_t> numbers = {1, 0, 0, 1, 1, 0, 1, 0};  // as llama.cpp saves them
  EXPECT_EQ(recurrent_layers(config_of(valid_of("qwen35").set("qwen35.attention.recurrent_layers", numbers))),
            "raarrara");
  EXPECT_EQ(recurrent_layers(config_of(valid_of("qwen35")
                                           .set("qwen35.attention.recurrent_layers", listed)
                                           .set("qwen35.nextn_predict_layers", 2u))),
            "raarra")
      << "a layer that only guesses is in the list, and is none of the model's";
  const ModelConfig llama = config_of(valid());
  EXPECT_EQ(find_kv_uses(llama).places.size(), 30u);
  EXPECT_EQ(find_kv_uses(llama).layers[29].place, 29);
  EXPECT_TRUE(llama.recurrent.state_layout().empty());
}

TEST(ModelConfig, RecurrentLayersHaveSizesOfTheirOwn) {
  const ModelConfig config = config_of(valid_of("qwen35"));
  const kernels::DeltaNetShape& shape = config.recurrent.delta_net;
  EXPECT_EQ(shape.num_key_heads, 2);
  EXPECT_EQ(shape.num_value_heads, 6);
  EXPECT_EQ(shape.key_dim, 32);
  EXPECT_EQ(shape.value_dim, 24);
  EXPECT_EQ(shape.convolution_width, 4);
  EXPECT_EQ(shape.key_head_order, kernels::KeyHeadOrder::kTiled);
  EXPECT_EQ(config_of(valid_of("qwen3next")).recurrent.delta_net.key_head_order,
            kernels::KeyHeadOrder::kGrouped);
  const kernels::StateLayout layout = config.recurrent.state_layout();
  EXPECT_EQ(layout.num_layers, 6);
  EXPECT_EQ(layout.recurrent_floats, 6 * 32 * 24);
  EXPECT_EQ(layout.convolution_floats, 3 * (2 * 2 * 32 + 6 * 24));
}

TEST(ModelConfig, RecurrentLayersThatCannotBeAreRefused) {
  const auto damaged = [](const std::string& suffix, auto value, const std::string& sentence) {
    expect_error(valid_of("qwen35").set("qwen35." + suffix, value), ErrorCode::kDamagedFile,
                 "qwen35." + suffix, sentence);
  };
  for (const char* suffix :
       {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"}) {
    damaged(suffix, 0u, "is 0; 1 to ");
    damaged(suffix, "four", "has type string");
    expect_error(valid_of("qwen35").remove(std::string("qwen35.") + suffix), ErrorCode::kDamagedFile,
                 std::string("qwen35.") + suffix, "is missing; 1 to ");
  }
  damaged("ssm.conv_kernel", 65u, "is 65; 1 to 64 is allowed");
  damaged("ssm.state_size", 1'025u, "is 1025; 1 to 1024 is allowed");
  damaged("ssm.time_step_rank", 7u, "is 7, which is no multiple of the 2 key heads");
  damaged("ssm.inner_size", 145u, "is 145, which does not make 6 value heads of 1 to 1024 dimensions");
  damaged("ssm.inner_size", 6'150u, "is 6150, which does not make 6 value heads of 1 to 1024 dimensions");
  damaged("full_attention_interval", 0u, "is 0; 1 to 1024 is allowed");
  damaged("full_attention_interval", 9u, "leaves no layer with attention");
  damaged("attention.recurrent_layers", std::vector<bool>(8, true), "leaves no layer with attention");
  damaged("attention.recurrent_layers", std::vector<bool>(7, false), "holds 7 entries for 8 layers");
  damaged("attention.recurrent_layers", std::vector<std::int32_t>(8, 2),
          "has type array of i32 where an array of booleans is needed");
  damaged("attention.recurrent_layers", true, "has type bool where an array of booleans is needed");
}

std::string layer_parts(const ModelConfig& config) {
  std::string text;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    if (layer > 0) text += ' ';
    if (config.has_attention(layer)) text += 'a';
    if (config.is_recurrent(layer)) text += 'r';
    if (config.has_feed_forward(layer)) text += 'f';
  }
  return text;
}

TEST(ModelConfig, LayersWithoutHeadsOfKeysAreRecurrent) {
  for (const char* name : {"lfm2", "lfm2moe", "granitehybrid"}) {
    const ModelConfig config = config_of(valid_of(name));
    EXPECT_EQ(layer_parts(config), "rf af af rf rf af rf rf") << name;
    EXPECT_EQ(find_kv_uses(config).places, (std::vector<kernels::KvHeads>(3, {4, 64})));
    EXPECT_EQ(find_kv_uses(config).layers[5].place, 2);
    EXPECT_EQ(config.kv_owner(6), ModelConfig::kNoLayer);
    EXPECT_EQ(config.state_layer(6), 3);
    EXPECT_EQ(config.recurrent.state_layout().num_layers, 5);
  }
  const ModelConfig alone = config_of(valid_of("nemotron_h"));
  EXPECT_EQ(layer_parts(alone), "r f a r f a f f");
  EXPECT_EQ(find_kv_uses(alone).layers[5].place, 1);
  for (const std::int32_t layer : {0, 1}) EXPECT_EQ(alone.kv_owner(layer), ModelConfig::kNoLayer);
  EXPECT_EQ(alone.state_layer(3), 1);
  EXPECT_EQ(alone.feed_forward_length, 512);
  EXPECT_EQ(alone.num_kv_heads, 4);
  const ModelConfig both = config_of(valid_of("falcon-h1"));
  EXPECT_EQ(layer_parts(both), "arf arf arf arf arf arf arf arf");
  EXPECT_EQ(find_kv_uses(both).layers[7].place, 7);
  EXPECT_EQ(both.state_layer(7), 7);
  const ModelConfig unequal = config_of(valid_of("lfm2").set(
      "lfm2.attention.head_count_kv", std::vector<std::int32_t>{0, 4, 2, 0, 0, 4, 0, 0}));
  EXPECT_EQ(layer_parts(unequal), "rf af af rf rf af rf rf");
  EXPECT_EQ(find_kv_uses(unequal).places, (std::vector<kernels::KvHeads>{{4, 64}, {2, 64}, {4, 64}}));
  const ModelConfig none = config_of(valid_of("lfm2").set("lfm2.attention.head_count_kv", 2u));
  EXPECT_EQ(layer_parts(none), "af af af af af af af af");
  EXPECT_TRUE(none.recurrent.state_layout().empty());
  const std::vector<std::int32_t> equal(30, 9);
  EXPECT_EQ(config_of(valid().set("llama.attention.head_count", equal)).num_heads, 9);
}

TEST(ModelConfig, StateSpacesAndShortConvolutionsHaveTheirSizes) {
  const ModelConfig granite = config_of(valid_of("granitehybrid"));
  const kernels::StateSpaceShape& shape = granite.recurrent.state_space;
  EXPECT_EQ(shape.num_heads, 6);
  EXPECT_EQ(shape.head_dim, 24);
  EXPECT_EQ(shape.num_groups, 2);
  EXPECT_EQ(shape.state_size, 32);
  EXPECT_EQ(granite.recurrent.output_columns(), 144);
  EXPECT_EQ(granite.recurrent.state_layout().recurrent_floats, 32 * 144);
  EXPECT_EQ(granite.recurrent.state_layout().convolution_floats, 3 * (144 + 2 * 2 * 32));
  const ModelConfig lfm2 = config_of(valid_of("lfm2"));
  EXPECT_EQ(lfm2.recurrent.short_convolution.num_channels, 256);
  EXPECT_EQ(lfm2.recurrent.output_columns(), 256);
  EXPECT_EQ(lfm2.recurrent.state_layout().recurrent_floats, 0);
  EXPECT_EQ(lfm2.recurrent.state_layout().convolution_floats, 2 * 256);
}

TEST(ModelConfig, LayersThatCannotBeAreRefused) {
  using Numbers = std::vector<std::int32_t>;
  const auto damaged = [](const std::string& architecture, const std::string& suffix, auto value,
                          const std::string& sentence) {
    expect_error(valid_of(architecture).set(architecture + "." + suffix, value), ErrorCode::kDamagedFile,
                 architecture + "." + suffix, sentence);
  };
  const std::string heads = "attention.head_count", kv_heads = "attention.head_count_kv";
  damaged("lfm2", kv_heads, Numbers{0, 4, 4}, "holds 3 entries for 8 layers");
  damaged("lfm2", kv_heads, Numbers(8, 0), "is 0; 1 to 1024 is allowed");
  damaged("lfm2", kv_heads, "all", "has type string where a whole number is needed");
  damaged("lfm2", kv_heads, std::vector<bool>(8, true),
          "has type array of bool where an array of whole numbers is needed");
  damaged("lfm2", heads, Numbers{4, 4, 0, 4, 4, 4, 4, 4}, "is 0 in a layer that needs some");
  damaged("lfm2", "feed_forward_length", Numbers{512, 0, 512, 512, 512, 512, 512, 512},
          "is 0; 1 to 1048576 is allowed");
  damaged("falcon-h1", kv_heads, Numbers{4, 4, 0, 4, 4, 4, 4, 4}, "is 0, which does not divide the");
  damaged("qwen3", kv_heads, Numbers{4, 4, 0, 4, 4, 4, 4, 4}, "is 0, which does not divide the");
  damaged("qwen3", kv_heads, Numbers(8, 0), "is 0; 1 to 1024 is allowed");
  expect_error(valid_of("nemotron_h").set("nemotron_h.feed_forward_length", 512u), ErrorCode::kDamagedFile,
               "nemotron_h.attention.head_count_kv", "leaves no layer with attention");
  expect_error(valid_of("lfm2").set("lfm2." + heads, Numbers{4, 4, 2, 4, 4, 4, 4, 4}),
               ErrorCode::kUnsupported, "lfm2." + heads, "holds 2 and 4; layers that differ so");
  for (const std::uint32_t width : {0u, 1u, 65u})
    damaged("lfm2", "shortconv.l_cache", width, "is " + std::to_string(width) + "; 2 to 64 is allowed");
  damaged("falcon-h1", "ssm.time_step_rank", 7u, "is 7, which is no multiple of the 2 groups");
  damaged("falcon-h1", "ssm.inner_size", 145u, "is 145, which does not make 6 heads of 1 to 1024 dimensions");
  expect_error(valid_of("lfm2moe").set("lfm2moe.expert_gating_func", 1u), ErrorCode::kUnsupported,
               "lfm2moe.expert_gating_func", "needs something that Octavo does not support");
}

TEST(ModelConfig, SomeNamesOfKeysAreTheFamilys) {
  const std::string rms = "nemotron_h.attention.layer_norm_rms_epsilon",
                    layer = "nemotron_h.attention.layer_norm_epsilon";
  EXPECT_EQ(config_of(valid_of("nemotron_h").set(layer, 0.5f)).norm_epsilon, 1e-6f);
  EXPECT_EQ(config_of(valid_of("nemotron_h").set(layer, 0.5f).remove(rms)).norm_epsilon, 0.5f);
  expect_error(valid_of("nemotron_h").remove(rms), ErrorCode::kDamagedFile, rms, "is missing");
  EXPECT_EQ(config_of(valid_of("granitehybrid")).logit_multiplier, 0.125);
  EXPECT_EQ(config_of(valid_of("granitehybrid").set("granitehybrid.logit_scale", 0.0f)).logit_multiplier,
            1.0);
  EXPECT_EQ(config_of(valid_of("granitehybrid").remove("granitehybrid.logit_scale")).logit_multiplier, 1.0);
}

TEST(ModelConfig, PositionsOfPicturesAreNoneOfTextsBusiness) {
  const std::vector<std::int32_t> sections = {11, 11, 10, 0};
  EXPECT_TRUE(valid_of("qwen35").set("qwen35.rope.dimension_sections", sections).read().has_value());
  EXPECT_TRUE(valid_of("qwen35moe").set("qwen35moe.rope.dimension_sections", sections).read().has_value());
  for (const char* architecture : {"qwen3next", "qwen3"}) {
    const std::string key = std::string(architecture) + ".rope.dimension_sections";
    expect_error(valid_of(architecture).set(key, sections), ErrorCode::kUnsupported, key,
                 "needs something that Octavo does not support");
  }
  expect_error(valid_of("qwen35").set("qwen35.rope.dimension_sections", "all"), ErrorCode::kDamagedFile,
               "qwen35.rope.dimension_sections", "has type string");
}

TEST(ModelConfig, AGatedSharedExpertIsAlwaysThere) {
  const std::string length = "qwen35moe.expert_shared_feed_forward_length";
  EXPECT_EQ(config_of(valid_of("qwen35moe").set(length, 80u)).experts.shared_length, 80);
  EXPECT_EQ(config_of(valid_of("qwen35moe")).experts.shared_length, 512);
  EXPECT_EQ(config_of(valid_of("qwen35moe").set(length, 0u)).experts.shared_length, 512);
  EXPECT_EQ(config_of(valid_of("qwen35moe").set("qwen35moe.expert_shared_count", 1u)).experts.shared_length,
            512);
  expect_error(valid_of("qwen35moe").remove("qwen35moe.feed_forward_length"), ErrorCode::kDamagedFile, length,
               "is missing");
  EXPECT_TRUE(config_of(valid_of("qwen35moe")).experts.normalises_weights);
}

// Where a family's programs do not look at a key, another value than theirs is no reason for other answers.
TEST(ModelConfig, ExpertsThatWouldBeOthersAreRefused) {
  const char* not_computed = "needs something that Octavo does not support";
  const auto unsupported = [&](const std::string& architecture, const std::string& suffix, auto value) {
    expect_error(valid_of(architecture).set(architecture + "." + suffix, value), ErrorCode::kUnsupported,
                 architecture + "." + suffix, not_computed);
  };
  unsupported("qwen2", "expert_count", 8u);
  unsupported("qwen3moe", "expert_gating_func", 2u);
  unsupported("qwen3moe", "expert_weights_norm", false);
  unsupported("qwen3moe", "expert_weights_scale", 2.0f);
  unsupported("qwen3moe", "expert_shared_count", 1u);
  unsupported("qwen3moe", "expert_shared_feed_forward_length", 8u);
  unsupported("qwen3moe", "leading_dense_block_count", 1u);
  unsupported("qwen3moe", "interleave_moe_layer_step", 2u);
  unsupported("glm4moe", "expert_gating_func", 4u);
  const std::string shared = "qwen3moe.expert_shared_feed_forward_length",
                    scale = "qwen3moe.expert_weights_scale";
  EXPECT_TRUE(valid_of("qwen3moe").set(shared, 0u).set(scale, 1.0f).read().has_value());
  EXPECT_TRUE(valid_of("qwen3moe").set("qwen3moe.expert_gating_func", 1u).read().has_value());
}

TEST(ModelConfig, Gemma2HasCapsAndAWindowInEveryOtherLayer) {
  const ModelConfig usual = config_of(valid_of("gemma2"));
  EXPECT_EQ(usual.score_soft_cap, 50.0f);
  EXPECT_EQ(usual.logit_soft_cap, 30.0f);
  EXPECT_EQ(usual.sliding_window, 4096);
  EXPECT_EQ(windowed_layers(usual), "w-w-w-w-");
  EXPECT_EQ(usual.embedding_scale(), 16.0f);
  EXPECT_FALSE(usual.local_rope.has_value());
  const ModelConfig given = config_of(valid_of("gemma2")
                                          .set("gemma2.attn_logit_softcapping", 0.0f)
                                          .set("gemma2.final_logit_softcapping", 12.0f)
                                          .set("gemma2.attention.sliding_window", 77u));
  EXPECT_EQ(given.score_soft_cap, 0.0f);
  EXPECT_EQ(given.logit_soft_cap, 12.0f);
  EXPECT_EQ(given.sliding_window, 77);
  EXPECT_EQ(config_of(valid_of("gemma2").set("gemma2.block_count", 46u)).score_scale, 1.0 / 8.0);
  EXPECT_EQ(config_of(valid_of("gemma2")
                          .set("gemma2.block_count", 46u)
                          .set("gemma2.attention.key_length", 16u)
                          .set("gemma2.attention.value_length", 16u))
                .score_scale,
            1.0 / 8.0)
      << "the scale of the 27B model follows from its width, not from its heads";
}

TEST(ModelConfig, Gemma4sLayersDifferInHeadsAndShareKeysAndValues) {
  KeySet keys = valid_of("gemma4");
  keys.set_flags("gemma4.attention.sliding_window_pattern", {1, 1, 0, 1, 0, 1, 1, 0});
  const ModelConfig plain = config_of(keys);
  EXPECT_EQ(windowed_layers(plain), "ww-w-ww-");
  EXPECT_EQ(plain.kv_heads(0), (kernels::KvHeads{4, 32}));
  EXPECT_EQ(plain.kv_heads(2), (kernels::KvHeads{4, 64}));
  EXPECT_EQ(plain.kv_owner(7), 7);
  ASSERT_TRUE(plain.local_rope.has_value());
  EXPECT_EQ(plain.local_rope->rotary_dim, 32);
  EXPECT_EQ(plain.local_rope->frequency_base, 10'000.0);
  EXPECT_EQ(plain.rope.rotary_dim, 64);
  EXPECT_EQ(plain.score_scale, 1.0);
  EXPECT_EQ(plain.embedding_scale(), 16.0f);
  EXPECT_EQ(plain.logit_soft_cap, 0.0f) << "a file without the key has none";
  EXPECT_FALSE(plain.has_usual_layers());
  EXPECT_TRUE(config_of(valid_of("gemma3")).has_usual_layers());

  keys.set_list("gemma4.attention.head_count_kv", {4, 4, 1, 4, 1, 4, 4, 1})
      .set_list("gemma4.feed_forward_length", {512, 512, 512, 512, 512, 1024, 1024, 1024})
      .set_list("gemma4.attention.sliding_window_pattern", {1, 1, 0, 1, 0, 1, 1, 0})
      .set("gemma4.attention.shared_kv_layers", 3u)
      .set("gemma4.rope.dimension_count_swa", 16u)
      .set("gemma4.rope.freq_base_swa", 20'000.0f)
      .set("gemma4.rope.freq_base", 1'000'000.0f)
      .set("gemma4.rope.scaling.type", "linear")
      .set("gemma4.rope.scaling.factor", 8.0f)
      .set("gemma4.embedding_length_per_layer_input", 24u)
      .set("gemma4.final_logit_softcapping", 30.0f);
  const ModelConfig lists = config_of(keys);
  EXPECT_EQ(windowed_layers(lists), "ww-w-ww-") << "some writers make the flags integers";
  EXPECT_EQ(lists.kv_heads(3), (kernels::KvHeads{4, 32}));
  EXPECT_EQ(lists.kv_heads(4), (kernels::KvHeads{1, 64}));
  EXPECT_EQ(lists.num_kv_heads, 4);
  EXPECT_EQ(lists.feed_forward_length_of(4), 512);
  EXPECT_EQ(lists.feed_forward_length_of(5), 1024);
  EXPECT_EQ(lists.feed_forward_length, 1024);
  EXPECT_EQ(lists.kv_owner(5), 3);
  EXPECT_EQ(lists.kv_owner(7), 4);
  EXPECT_EQ(lists.layer_embedding_length, 24);
  EXPECT_EQ(lists.local_rope->rotary_dim, 16);
  EXPECT_EQ(lists.local_rope->frequency_base, 20'000.0);
  EXPECT_EQ(lists.local_rope->scaling, RopeScalingType::kNone)
      << "positions are stretched in other layers only";
  EXPECT_EQ(lists.logit_soft_cap, 30.0f);

  const ModelConfig experts = config_of(valid_of("gemma4")
                                            .set("gemma4.expert_count", 8u)
                                            .set("gemma4.expert_used_count", 2u)
                                            .set("gemma4.expert_feed_forward_length", 96u));
  EXPECT_EQ(experts.experts.shared_length, 512) << "the usual layer stands beside the experts";
  EXPECT_EQ(experts.feed_forward_length, 0) << "and nowhere else";
  EXPECT_TRUE(experts.experts.normalises_weights);
}

std::string rotated_layers(const ModelConfig& config) {
  std::string text;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) text += config.rotates(layer) ? 'r' : '-';
  return text;
}

TEST(ModelConfig, SomeModelsRotateWhereTheyHaveAWindowOnly) {
  for (const char* const architecture : {"muse-glimmer", "cohere2"}) {
    const std::string prefix = std::string(architecture) + ".attention.";
    const ModelConfig usual = config_of(valid_of(architecture));
    EXPECT_EQ(windowed_layers(usual), "www-www-");
    EXPECT_EQ(rotated_layers(usual), "rrr-rrr-");
    EXPECT_EQ(usual.logit_multiplier, 8.0);
    KeySet keys = valid_of(architecture);
    keys.set_flags(prefix + "sliding_window_pattern", {1, 0, 1, 1, 1, 1, 1, 0});
    EXPECT_EQ(rotated_layers(config_of(keys)), "r-rrrrr-");
    keys = valid_of(architecture);
    keys.set(prefix + "sliding_window", 8192u);
    EXPECT_EQ(rotated_layers(config_of(keys)), "rrr-rrr-") << "a window as long as the context is still one";
    keys.set(prefix + "sliding_window", 0u);
    expect_error(keys, ErrorCode::kDamagedFile, prefix + "sliding_window",
                 "is 0, and layers with a window alone rotate");
    keys.remove(prefix + "sliding_window");
    expect_error(keys, ErrorCode::kDamagedFile, prefix + "sliding_window", "is missing");
    keys = valid_of(architecture);
    keys.remove(std::string(architecture) + ".logit_scale");
    expect_error(keys, ErrorCode::kDamagedFile, std::string(architecture) + ".logit_scale", "is missing");
  }
  EXPECT_EQ(config_of(valid_of("command-r")).logit_multiplier, 8.0);
  KeySet keys = valid_of("command-r");
  keys.remove("command-r.logit_scale");
  EXPECT_EQ(config_of(keys).logit_multiplier, 1.0);
  EXPECT_EQ(rotated_layers(config_of(keys)), "rrrrrrrr");
}

TEST(ModelConfig, WindowsOfExaone4FollowFromItsLayersUnlessTheFileSaysSo) {
  const ModelConfig small = config_of(valid_of("exaone4"));
  EXPECT_EQ(small.sliding_window, 0);
  EXPECT_EQ(rotated_layers(small), "rrrrrrrr");
  const ModelConfig large = config_of(valid_of("exaone4").set("exaone4.block_count", 64u));
  EXPECT_EQ(large.window_of(0), 4096);
  EXPECT_EQ(large.window_of(3), 0);
  EXPECT_FALSE(large.rotates(3));
  KeySet given = valid_of("exaone4");
  given.set("exaone4.attention.sliding_window", 100u);
  EXPECT_EQ(rotated_layers(config_of(given)), "rrr-rrr-");
  given.set("exaone4.rope.scaling.yarn_ext_factor", -1.0f);
  EXPECT_EQ(rotated_layers(config_of(given)), "rrrrrrrr") << "saved by llama.cpp, which then has none";
}

TEST(ModelConfig, Olmo3StretchesPositionsInLayersWithoutAWindowOnly) {
  EXPECT_EQ(config_of(valid_of("olmo2")).sliding_window, 0);
  KeySet keys = valid_of("olmo2");
  keys.set("olmo2.attention.sliding_window", 512u)
      .set("olmo2.rope.freq_base", 500'000.0f)
      .set("olmo2.rope.scaling.type", "yarn")
      .set("olmo2.rope.scaling.factor", 8.0f);
  const ModelConfig config = config_of(keys);
  EXPECT_EQ(windowed_layers(config), "www-www-");
  EXPECT_EQ(config.rope.scaling, RopeScalingType::kYarn);
  ASSERT_TRUE(config.local_rope.has_value());
  EXPECT_EQ(config.local_rope->scaling, RopeScalingType::kNone);
  EXPECT_EQ(config.local_rope->frequency_base, 500'000.0);
}

TEST(ModelConfig, Llama4sChunksAreTheSameInEveryFile) {
  KeySet keys = valid_of("llama4");
  keys.set("llama4.context_length", 65'536u);
  const ModelConfig config = config_of(keys);
  EXPECT_EQ(config.sliding_window, 8192);
  EXPECT_TRUE(config.has_chunks());
  EXPECT_EQ(windowed_layers(config), "www-www-");
  EXPECT_EQ(rotated_layers(config), "rrr-rrr-");
  EXPECT_EQ(config.experts.layers, (std::vector<bool>{false, true, false, true, false, true, false, true}));
  EXPECT_EQ(config.experts.shared_length, 96);
  EXPECT_EQ(config.feed_forward_length, 512);
  EXPECT_FALSE(config.scales_queries(0));
  EXPECT_TRUE(config.scales_queries(3));
  EXPECT_EQ(config.query_scale(8190), 1.0f);
  EXPECT_FLOAT_EQ(config.query_scale(8191), 1.0f + 0.1f * std::log(2.0f));
  EXPECT_FLOAT_EQ(config.query_scale(16'383), 1.0f + 0.1f * std::log(3.0f));
  keys.set("llama4.attention.sliding_window", 100u);
  EXPECT_EQ(config_of(keys).sliding_window, 8192) << "only whether there is one is read";
  keys.set("llama4.attention.sliding_window", 0u);
  const ModelConfig without = config_of(keys);
  EXPECT_FALSE(without.has_chunks());
  EXPECT_EQ(rotated_layers(without), "rrrrrrrr");
  EXPECT_EQ(without.query_scale_factor, 0.0);
  EXPECT_FALSE(config_of(valid_of("llama4")).has_chunks()) << "a context of one chunk";
  const std::string step = "llama4.interleave_moe_layer_step";
  expect_error(valid_of("llama4").set(step, 0u), ErrorCode::kDamagedFile, step, "is 0; 1 to 8 is allowed");
  expect_error(valid_of("llama4").set(step, 9u), ErrorCode::kDamagedFile, step, "is 9; 1 to 8 is allowed");
  keys.remove(step);
  expect_error(keys, ErrorCode::kDamagedFile, step, "is missing");
}

TEST(ModelConfig, HunyuansAlphaRaisesTheBaseOfItsFrequencies) {
  KeySet keys = valid_of("hunyuan-dense");
  keys.set("hunyuan-dense.rope.scaling.alpha", 1000.0f);
  EXPECT_NEAR(config_of(keys).rope.frequency_base, 1e4 * std::pow(1000.0, 64.0 / 62.0), 1.0);
  keys.set("hunyuan-dense.rope.scaling.alpha", 0.0f);
  EXPECT_EQ(config_of(keys).rope.frequency_base, 1e4);
  for (const float alpha : {-1.0f, std::nanf(""), 1e30f}) {
    keys.set("hunyuan-dense.rope.scaling.alpha", alpha);
    expect_error(keys, ErrorCode::kDamagedFile, "hunyuan-dense.rope.scaling.alpha",
                 "is " + std::to_string(alpha) + ", by which no base can be raised");
  }
}

TEST(ModelConfig, LayersOfNemotronHHaveExpertsWhereTheyHaveAFeedForwardLength) {
  KeySet keys = valid_of("nemotron_h_moe");
  EXPECT_EQ(config_of(keys).experts.num_experts, 0);
  keys.set("nemotron_h_moe.expert_count", 16u)
      .set("nemotron_h_moe.expert_used_count", 4u)
      .set("nemotron_h_moe.expert_feed_forward_length", 96u)
      .set("nemotron_h_moe.expert_shared_feed_forward_length", 160u)
      .set("nemotron_h_moe.expert_shared_count", 1u)
      .set("nemotron_h_moe.expert_weights_norm", true)
      .set("nemotron_h_moe.expert_weights_scale", 2.5f)
      .set("nemotron_h_moe.moe_latent_size", 40u);
  const ModelConfig config = config_of(keys);
  EXPECT_EQ(config.experts.layers, (std::vector<bool>{false, true, false, false, true, false, true, true}));
  EXPECT_EQ(config.experts.shared_length, 160);
  EXPECT_EQ(config.experts.latent_length, 40);
  EXPECT_EQ(config.experts.scoring, kernels::RouterScoring::kSigmoid);
  EXPECT_TRUE(config.experts.normalises_weights);
  EXPECT_EQ(config.experts.weights_scale, 2.5f);
  EXPECT_TRUE(config.has_feed_forward(1));
  EXPECT_FALSE(config.has_feed_forward(0));
  EXPECT_TRUE(config.is_recurrent(0));
  EXPECT_TRUE(config.has_attention(2));
  keys.set("nemotron_h_moe.moe_latent_size", 1u << 20);
  expect_error(keys, ErrorCode::kDamagedFile, "nemotron_h_moe.moe_latent_size",
               "is 1048576; 0 to 65536 is allowed");
  KeySet other = valid_of("qwen3moe");
  other.set("qwen3moe.moe_latent_size", 40u);
  expect_error(other, ErrorCode::kUnsupported, "qwen3moe.moe_latent_size",
               "needs something that Octavo does not support");
}

// A list of what all layers have is a number, whatever the architecture.
TEST(ModelConfig, ListsOfEqualNumbersAreNumbers) {
  KeySet keys = valid_of("qwen3");
  keys.set_list("qwen3.attention.head_count_kv", std::vector<std::int32_t>(8, 2))
      .set_list("qwen3.feed_forward_length", std::vector<std::int32_t>(8, 320));
  const ModelConfig config = config_of(keys);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.feed_forward_length, 320);
  EXPECT_TRUE(config.has_usual_layers());
}

TEST(ModelConfig, WhatGemma4CannotBeIsRefusedByTheKey) {
  const auto damaged = [](const std::function<void(KeySet&)>& change, const std::string& suffix,
                          const std::string& sentence) {
    KeySet keys = valid_of("gemma4");
    change(keys);
    expect_error(keys, ErrorCode::kDamagedFile, "gemma4." + suffix, sentence);
  };
  const std::string heads = "gemma4.attention.head_count_kv",
                    pattern = "gemma4.attention.sliding_window_pattern",
                    shared = "gemma4.attention.shared_kv_layers";
  damaged([&](KeySet& k) { k.remove(pattern); }, "attention.sliding_window_pattern", "is missing");
  damaged([&](KeySet& k) { k.remove("gemma4.attention.sliding_window"); }, "attention.sliding_window",
          "is missing");
  damaged([&](KeySet& k) { k.set("gemma4.attention.sliding_window", 0u); }, "attention.sliding_window",
          "is 0, and layers with a window have heads of their own");
  damaged(
      [&](KeySet& k) {
        k.set_list(heads, {4, 4});
      },
      "attention.head_count_kv", "holds 2 entries for 8 layers");
  damaged([&](KeySet& k) { k.set_list(heads, {}); }, "attention.head_count_kv",
          "holds 0 entries for 8 layers");
  damaged(
      [&](KeySet& k) {
        k.set_list(heads, {4, 4, 4, 4, 4, 4, 4, 3});
      },
      "attention.head_count_kv", "is 3, which does not divide the 4 heads");
  damaged(
      [&](KeySet& k) {
        k.set_list(heads, {4, 4, 4, 0, 4, 4, 4, 4});
      },
      "attention.head_count_kv", "is 0, which does not divide the 4 heads");
  damaged(
      [&](KeySet& k) {
        k.set_list(pattern, {1, 1, 1, 0, 1, 1, 2, 0});
      },
      "attention.sliding_window_pattern", "holds 2; 0 or 1 is allowed");
  damaged(
      [&](KeySet& k) {
        k.set_flags(pattern, {1, 1, 0});
      },
      "attention.sliding_window_pattern", "holds 3 entries for 8 layers");
  damaged([&](KeySet& k) { k.set(shared, 8u); }, "attention.shared_kv_layers", "is 8; 0 to 7 is allowed");
  damaged([&](KeySet& k) { k.set(shared, -1); }, "attention.shared_kv_layers",
          "holds a number that is out of range");
  damaged([&](KeySet& k) { k.set(shared, 6u); }, "attention.shared_kv_layers",
          "leaves layer 3 without one of its kind to read from");
  damaged(
      [&](KeySet& k) {
        k.set(shared, 2u).set_list(heads, {4, 4, 4, 2, 4, 4, 4, 4});
      },
      "attention.head_count_kv", "gives layer 7 other heads than those that it reads");
  damaged([&](KeySet& k) { k.set("gemma4.rope.dimension_count_swa", 33u); }, "rope.dimension_count_swa",
          "is 33; 2 to 32 is allowed");
  damaged([&](KeySet& k) { k.set("gemma4.rope.dimension_count_swa", 15u); }, "rope.dimension_count_swa",
          "is 15; dimensions are rotated in pairs");
  damaged(
      [&](KeySet& k) {
        k.set("gemma4.attention.key_length_swa", 0u).set("gemma4.attention.value_length_swa", 0u);
      },
      "attention.key_length_swa", "is 0; 1 to 4096 is allowed");
  damaged([&](KeySet& k) { k.remove("gemma4.attention.key_length_swa"); }, "attention.key_length_swa",
          "is missing");
  damaged([&](KeySet& k) { k.set("gemma4.embedding_length_per_layer_input", 65'537u); },
          "embedding_length_per_layer_input", "is 65537; 0 to 65536 is allowed");
  damaged(
      [&](KeySet& k) {
        k.set_list("gemma4.feed_forward_length", {512, 512, 512, 512, 512, 512, 512, 0});
      },
      "feed_forward_length", "is 0; 1 to");
  KeySet values = valid_of("gemma4").set("gemma4.attention.value_length_swa", 16u);
  expect_error(values, ErrorCode::kUnsupported, "gemma4.attention.value_length_swa",
               "makes values of 16 dimensions and keys of 32");
  KeySet uneven = valid_of("gemma4");
  uneven.set("gemma4.expert_count", 8u).set("gemma4.expert_used_count", 2u);
  uneven.set("gemma4.expert_feed_forward_length", 96u);
  uneven.set_list("gemma4.feed_forward_length", {512, 512, 512, 512, 512, 512, 512, 256});
  expect_error(uneven, ErrorCode::kUnsupported, "gemma4.feed_forward_length", "needs something that Octavo");
  for (const char* suffix : {"attention.shared_kv_layers", "embedding_length_per_layer_input"}) {
    const std::string key = std::string("gemma3.") + suffix;
    expect_error(valid_of("gemma3").set(key, 2u), ErrorCode::kUnsupported, key,
                 "needs something that Octavo");
    EXPECT_TRUE(valid_of("gemma3").set(key, 0u).read().has_value());
  }
}

TEST(ModelConfig, Gemma3HasGlobalLayersOfTheirOwnRotation) {
  const ModelConfig config = config_of(valid_of("gemma3")
                                           .set("gemma3.attention.sliding_window", 512u)
                                           .set("gemma3.rope.freq_base", 1'000'000.0f)
                                           .set("gemma3.rope.scaling.type", "linear")
                                           .set("gemma3.rope.scaling.factor", 8.0f));
  EXPECT_EQ(windowed_layers(config), "wwwww-ww");
  EXPECT_EQ(config.rope.frequency_base, 1'000'000.0);
  EXPECT_EQ(config.rope.scaling, RopeScalingType::kLinear);
  ASSERT_TRUE(config.local_rope.has_value());
  EXPECT_EQ(config.local_rope->frequency_base, 10'000.0);
  EXPECT_EQ(config.local_rope->scaling, RopeScalingType::kNone);
  EXPECT_EQ(config.local_rope->factor, 1.0);
  EXPECT_EQ(config.logit_soft_cap, 0.0f);
  const auto pattern = [](std::uint32_t period) {
    return windowed_layers(config_of(valid_of("gemma3")
                                         .set("gemma3.attention.sliding_window", 512u)
                                         .set("gemma3.attention.sliding_window_pattern", period)));
  };
  EXPECT_EQ(pattern(3), "ww-ww-ww");
  EXPECT_EQ(pattern(1), "--------");
  EXPECT_EQ(pattern(0), "wwwwwwww");
  const ModelConfig without = config_of(valid_of("gemma3"));
  EXPECT_EQ(windowed_layers(without), "--------");
  EXPECT_FALSE(without.local_rope.has_value());
  expect_error(valid_of("gemma3").set("gemma3.attn_logit_softcapping", 50.0f), ErrorCode::kUnsupported,
               "gemma3.attn_logit_softcapping", "needs something that Octavo does not support");
}

TEST(ModelConfig, WindowsOfEveryLayerAreComputedWhereTheArchitectureHasThem) {
  for (const std::string name : {"llama", "phi3", "phimoe"}) {
    const ModelConfig config = config_of(valid_of(name).set(name + ".attention.sliding_window", 2047u));
    EXPECT_EQ(windowed_layers(config), "wwwwwwww");
    EXPECT_EQ(windowed_layers(config_of(valid_of(name).set(name + ".attention.sliding_window", 0u))),
              "--------");
  }
  for (const std::string name : {"qwen2", "qwen3", "gpt2", "gemma"}) {
    const std::string key = name + ".attention.sliding_window";
    expect_error(valid_of(name).set(key, 4096u), ErrorCode::kUnsupported, key,
                 "needs something that Octavo does not support");
    EXPECT_TRUE(valid_of(name).set(key, 8192u).read().has_value());
  }
}

TEST(ModelConfig, SoftCapsAreHeldAgainstTheirRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float wrong : {-1.0f, 1e-9f, 1e9f, nan}) {
    const auto config = valid_of("gemma2").set("gemma2.attn_logit_softcapping", wrong).read();
    ASSERT_FALSE(config.has_value()) << wrong;
    EXPECT_EQ(config.error().subject, "gemma2.attn_logit_softcapping");
  }
}

TEST(ModelConfig, AnAttentionScaleReplacesTheUsualOne) {
  EXPECT_EQ(valid().set("llama.attention.scale", 0.0625f).read()->score_scale, 0.0625);
  EXPECT_EQ(valid().set("llama.attention.scale", 0.0f).read()->score_scale, 0.125)
      << "files that llama.cpp saves";
}

TEST(ModelConfig, MultipliersAreThoseOfTheFileOrOfTheFamily) {
  const ModelConfig given = config_of(valid_of("granite")
                                          .set("granite.embedding_scale", 12.0f)
                                          .set("granite.residual_scale", 0.25f)
                                          .set("granite.logit_scale", 16.0f));
  EXPECT_EQ(given.embedding_multiplier, 12.0);
  EXPECT_EQ(given.residual_multiplier, 0.25);
  EXPECT_EQ(given.logit_multiplier, 1.0 / 16.0) << "granite divides";
  EXPECT_EQ(given.embedding_scale(), 48.0f) << "the stream is kept divided by residual_multiplier";
  EXPECT_EQ(given.stream_epsilon(), 16e-6f) << "and the epsilon of its norms goes with it";
  const ModelConfig off =
      config_of(valid_of("granite").set("granite.embedding_scale", 0.0f).set("granite.residual_scale", 0.0f));
  EXPECT_EQ(off.embedding_scale(), 1.0f) << "0 is how files say that there is none";
  EXPECT_EQ(off.stream_epsilon(), 1e-6f);
  expect_error(valid_of("granite").remove("granite.logit_scale"), ErrorCode::kDamagedFile,
               "granite.logit_scale", "is missing");
  // The first files of minicpm have none of the keys.
  const ModelConfig old = config_of(valid_of("minicpm"));
  EXPECT_EQ(old.embedding_multiplier, 12.0);
  EXPECT_EQ(old.residual_multiplier, 1.4 / std::sqrt(8.0));
  EXPECT_EQ(old.logit_multiplier, 1.0) << "of the width 256";
  EXPECT_EQ(config_of(valid_of("minicpm").set("minicpm.embedding_length", 1024u)).logit_multiplier, 0.25);
  EXPECT_EQ(config_of(valid_of("minicpm").set("minicpm.logit_scale", 9.0f)).logit_multiplier, 1.0 / 9.0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* key : {"granite.embedding_scale", "granite.residual_scale", "granite.logit_scale"}) {
    for (const float wrong : {-1.0f, 1e-4f, 1e7f, nan}) {
      const auto config = valid_of("granite").set(key, wrong).read();
      ASSERT_FALSE(config.has_value()) << key << " " << wrong;
      EXPECT_EQ(config.error().subject, key);
    }
  }
  EXPECT_EQ(valid_of("granite").set("granite.logit_scale", 0.0f).read().error().subject,
            "granite.logit_scale");
  for (const char* key : {"llama.embedding_scale", "llama.residual_scale", "llama.logit_scale"})
    EXPECT_TRUE(valid().set(key, 0.0f).read().has_value()) << key;
}

// A family with both would need two epsilons.
TEST(ModelConfig, NoFamilyWithMultipliersNormalisesHeadsOrBranches) {
  for (const Architecture& each : architectures()) {
    if (!each.multipliers.are_read) continue;
    EXPECT_FALSE(each.has_head_norms || each.has_row_norms || each.head_norms_are_optional ||
                 each.has_post_norms || each.scales_embedding)
        << each.name;
  }
}

TEST(ModelConfig, GraniteHasASwitchForItsRotation) {
  const auto switched = [](bool is_on) {
    return config_of(valid_of("granite").set("granite.rope.scaling.finetuned", is_on));
  };
  EXPECT_TRUE(config_of(valid_of("granite")).rotates(0));
  EXPECT_TRUE(switched(true).rotates(0));
  EXPECT_FALSE(switched(false).rotates(0));
  EXPECT_FALSE(switched(false).rotates(7));
  EXPECT_TRUE(config_of(valid_of("granitemoe").set("granitemoe.rope.scaling.finetuned", false)).rotates(0))
      << "llama.cpp saves it of every model";
}

TEST(ModelConfig, EveryNeededKeyIsNamedWhenItIsMissing) {
  for (const char* key : {"general.architecture", "llama.block_count", "llama.context_length",
                          "llama.embedding_length", "llama.feed_forward_length", "llama.attention.head_count",
                          "llama.attention.layer_norm_rms_epsilon"}) {
    expect_error(valid().remove(key), ErrorCode::kDamagedFile, key, "is missing");
  }
}

// The values at both ends of a range are taken and the next ones beyond are not.
void expect_range(const std::string& key, std::uint32_t least, std::uint32_t most,
                  const std::function<KeySet()>& base) {
  EXPECT_TRUE(base().set(key, least).read().has_value())
      << key << " " << base().set(key, least).read().error().message;
  EXPECT_TRUE(base().set(key, most).read().has_value())
      << key << " " << base().set(key, most).read().error().message;
  const std::string sentence = std::to_string(least) + " to " + std::to_string(most) + " is allowed";
  for (const std::uint32_t wrong : {least - 1, most + 1}) {
    const auto config = base().set(key, wrong).read();
    ASSERT_FALSE(config.has_value()) << key << " " << wrong;
    EXPECT_EQ(config.error().subject, key);
    EXPECT_NE(config.error().message.find("is " + std::to_string(wrong) + "; " + sentence), std::string::npos)
        << config.error().message;
  }
  EXPECT_EQ(base().set(key, 0xffffffffu).read().error().subject, key);
  EXPECT_EQ(base().set(key, -1).read().error().subject, key);
}

TEST(ModelConfig, HyperparametersAreHeldAgainstTheirRanges) {
  expect_range("llama.block_count", 1, kMaxLayers, valid);
  expect_range("llama.context_length", 1, kMaxContextLength, valid);
  expect_range("llama.feed_forward_length", 1, kMaxFeedForwardLength, valid);
  expect_range("llama.vocab_size", 1, kMaxVocabularySize, valid);
  const auto with_head_size = [] {
    return valid()
        .set("llama.attention.key_length", 64u)
        .set("llama.attention.value_length", 64u)
        .remove("llama.attention.head_count_kv");
  };
  expect_range("llama.embedding_length", 1, kMaxEmbeddingLength, with_head_size);
  expect_range("llama.attention.head_count", 1, kMaxHeads, with_head_size);
  expect_range("llama.rope.dimension_count", 2, 64, valid);
  expect_range("llama.rope.scaling.original_context_length", 1, kMaxContextLength, valid);
}

TEST(ModelConfig, ExpertsAreHeldAgainstTheirRanges) {
  const auto qwen = [] { return valid_of("qwen3moe"); };
  expect_range("qwen3moe.expert_used_count", 1, 16, qwen);
  expect_range("gpt-oss.expert_feed_forward_length", 1, kMaxFeedForwardLength,
               [] { return valid_of("gpt-oss"); });
  const auto from_zero = valid_of("qwen3moe").set("qwen3moe.expert_feed_forward_length", 0u).read();
  ASSERT_TRUE(from_zero.has_value());
  EXPECT_EQ(from_zero->experts.expert_length, 128) << "as if the key were missing";
  const auto one = [] { return valid_of("qwen3moe").set("qwen3moe.expert_used_count", 1u); };
  EXPECT_TRUE(one().set("qwen3moe.expert_count", kMaxExperts).read().has_value());
  expect_error(one().set("qwen3moe.expert_count", kMaxExperts + 1), ErrorCode::kDamagedFile,
               "qwen3moe.expert_count", "is 4097; 0 to 4096 is allowed");
  const auto damaged = [](const std::string& architecture, const std::string& suffix, auto value,
                          const std::string& sentence) {
    expect_error(valid_of(architecture).set(architecture + "." + suffix, value), ErrorCode::kDamagedFile,
                 architecture + "." + suffix, sentence);
  };
  damaged("glm4moe", "leading_dense_block_count", 9u, "is 9; 0 to 8 is allowed");
  damaged("glm4moe", "expert_shared_count", 1u << 20, "is 1048576; 0 to 10922 is allowed");
  damaged("glm4moe", "expert_group_count", 3u, "is 3, which does not make groups of two or more");
  damaged("glm4moe", "expert_group_count", 16u, "is 16, which does not make groups of two or more");
  damaged("glm4moe", "expert_weights_scale", std::numeric_limits<float>::quiet_NaN(), "is ");
  damaged("glm4moe", "nextn_predict_layers", 8u, "is 8 of 8 layers");
  expect_error(valid_of("glm4moe").set("glm4moe.expert_group_count", 4u), ErrorCode::kDamagedFile,
               "glm4moe.expert_group_used_count", "is missing; 1 to 4 is allowed");
  expect_error(valid_of("gpt-oss").remove("gpt-oss.expert_feed_forward_length"), ErrorCode::kDamagedFile,
               "gpt-oss.expert_feed_forward_length", "is missing");
  expect_error(valid_of("qwen3moe").remove("qwen3moe.expert_count"), ErrorCode::kDamagedFile,
               "qwen3moe.expert_count", "is 0 or missing");
  expect_error(
      valid_of("glm4moe").remove("glm4moe.feed_forward_length").set("glm4moe.leading_dense_block_count", 1u),
      ErrorCode::kDamagedFile, "glm4moe.feed_forward_length", "is missing");
}

TEST(ModelConfig, RealNumbersAreHeldAgainstTheirRanges) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto expect_real_range = [&](const std::string& key, std::vector<float> right,
                                     std::vector<float> wrong) {
    for (const float value : right)
      EXPECT_TRUE(valid().set(key, value).read().has_value()) << key << " " << value;
    wrong.insert(wrong.end(), {nan, infinity, -infinity});
    for (const float value : wrong) {
      const auto config = valid().set(key, value).read();
      ASSERT_FALSE(config.has_value()) << key << " " << value;
      EXPECT_EQ(config.error().subject, key);
    }
  };
  expect_real_range("llama.attention.layer_norm_rms_epsilon", {1e-12f, 1e-6f, 1.0f},
                    {0.0f, -1e-5f, 9e-13f, 1.001f});
  expect_real_range("llama.rope.freq_base", {1.0f, 1e4f, 1e12f}, {0.0f, 0.99f, -1e4f, 1.1e12f});
  expect_real_range("llama.rope.scaling.factor", {0.5f, 1.0f, 128.0f}, {0.0f, -2.0f, 1e7f});
  expect_real_range("llama.rope.scaling.attn_factor", {0.5f, 1.0f}, {0.0f, -1.0f});
  expect_real_range("llama.rope.scaling.yarn_ext_factor", {0.0f, 1.0f}, {-0.1f, 1.1f});
  expect_real_range("llama.rope.scaling.yarn_attn_factor", {0.5f, 2.0f}, {0.0f, -1.0f});
  expect_real_range("llama.rope.scaling.yarn_beta_slow", {0.5f, 32.0f}, {0.0f, -1.0f});
  expect_real_range("llama.rope.scaling.yarn_beta_fast", {1.0f, 64.0f}, {0.0f, 0.5f});
  expect_real_range("llama.rope.scaling.low_freq_factor", {0.5f, 3.9f}, {0.0f, -1.0f});
  expect_real_range("llama.rope.scaling.high_freq_factor", {1.5f, 8.0f}, {0.5f, 1.0f});
  expect_real_range("llama.attention.scale", {0.01f, 1.0f}, {1e-4f, -1.0f});
}

TEST(ModelConfig, HeadsMustDivideWhatTheyShare) {
  expect_error(valid().set("llama.attention.head_count_kv", 2u), ErrorCode::kDamagedFile,
               "llama.attention.head_count_kv", "is 2, which does not divide the 9 heads");
  expect_error(valid().set("llama.attention.head_count_kv", 0u), ErrorCode::kDamagedFile,
               "llama.attention.head_count_kv", "is 0");
  expect_error(valid().set("llama.attention.head_count", 7u), ErrorCode::kDamagedFile,
               "llama.attention.head_count", "is 7, which does not divide the embedding length 576");
  expect_error(valid().set("llama.attention.head_count", 0u), ErrorCode::kDamagedFile,
               "llama.attention.head_count", "is 0");
  expect_error(valid().set("llama.rope.dimension_count", 63u), ErrorCode::kDamagedFile,
               "llama.rope.dimension_count", "is 63; dimensions are rotated in pairs, so this must be even");
  expect_error(valid().set("llama.attention.head_count", 192u).set("llama.attention.head_count_kv", 192u),
               ErrorCode::kDamagedFile, "llama.rope.dimension_count",
               "is 3; dimensions are rotated in pairs");
  expect_error(valid().set("llama.attention.key_length", 4097u).set("llama.attention.value_length", 4097u),
               ErrorCode::kDamagedFile, "llama.attention.key_length", "is 4097; 1 to 4096 is allowed");
}

TEST(ModelConfig, OneNumberForAllLayersIsNeeded) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama")
      .add_u32("llama.block_count", 2)
      .add_u32("llama.context_length", 64);
  writer.add_u32("llama.feed_forward_length", 64);
  writer.add_array<std::uint32_t>("llama.embedding_length", {4, 8});
  const auto bytes = writer.bytes();
  const auto header = GgufHeader::parse(MemorySource(bytes), "test.gguf");
  const auto config = read_model_config(*header);
  ASSERT_FALSE(config.has_value());
  EXPECT_NE(config.error().message.find(
                "llama.embedding_length has type array of u32 where a whole number is needed"),
            std::string::npos);
}

TEST(ModelConfig, RangesSayWhichKeyIsWrong) {
  ModelConfig config = *valid().read();
  EXPECT_FALSE(find_range_problem(config).has_value());
  config.num_layers = 0;
  const auto problem = find_range_problem(config);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->key, "llama.block_count");
  EXPECT_EQ(problem->sentence, "is 0; 1 to 1024 is allowed");
  EXPECT_TRUE(find_range_problem(ModelConfig{}).has_value());
}

TEST(ModelConfig, Mistral3ScalesQueriesFromTheOriginalLengthOn) {
  const ModelConfig config = config_of(valid_of("mistral3")
                                           .set("mistral3.attention.temperature_scale", 0.5f)
                                           .set("mistral3.rope.scaling.original_context_length", 1024u));
  EXPECT_EQ(config.query_scale(1023), 1.0f);
  EXPECT_EQ(config.query_scale(1024), static_cast<float>(1.0 + 0.5 * std::log(2.0)));
  EXPECT_EQ(config.query_scale(2048), static_cast<float>(1.0 + 0.5 * std::log(3.0)));
  EXPECT_EQ(config_of(valid_of("mistral3")).query_scale(1 << 20), 1.0f);
  KeySet longer = valid_of("mistral4");
  longer.set("mistral4.attention.temperature_scale", 0.5f);
  longer.set("mistral4.rope.scaling.original_context_length", 1024u);
  EXPECT_EQ(config_of(longer.set("mistral4.attention.temperature_length", 0u)).query_scale_length, 1024);
  EXPECT_EQ(config_of(longer.set("mistral4.attention.temperature_length", 4096u)).query_scale_length, 4096);
  expect_error(longer.set("mistral4.attention.temperature_length", -1), ErrorCode::kDamagedFile,
               "mistral4.attention.temperature_length", "is -1");
  expect_error(valid().set("llama.attention.temperature_scale", 0.5f), ErrorCode::kUnsupported,
               "llama.attention.temperature_scale", "needs something that Octavo does not support");
  expect_error(valid().set("llama.rope.scaling.yarn_log_multiplier", 1.0f), ErrorCode::kUnsupported,
               "llama.rope.scaling.yarn_log_multiplier", "needs something that Octavo does not support");
}

// As it saves files that say nothing of all this.
KeySet& save_as_llama_cpp(KeySet& keys, const std::string& architecture) {
  const auto set = [&](const std::string& suffix, auto value) {
    keys.set(architecture + "." + suffix, value);
  };
  for (const char* suffix : {"attention.output_scale", "attention.temperature_scale", "attention.clamp_kqv",
                             "attention.max_alibi_bias", "rope.scaling.factor", "attention.scale",
                             "rope.scaling.yarn_log_multiplier"})
    set(suffix, 0.0f);
  set("rope.scaling.type", "linear");
  set("rope.scaling.attn_factor", 1.0f);
  set("rope.scaling.yarn_ext_factor", -1.0f);
  set("rope.scaling.yarn_attn_factor", 1.0f);
  set("attn_logit_softcapping", 50.0f);
  set("use_parallel_residual", false);
  keys.set_list(architecture + ".rope.dimension_sections", {0, 0, 0, 0});
  return keys;
}

TEST(ModelConfig, WhatLlamaCppSavesOfEveryModelSaysNothing) {
  KeySet keys = valid_of("qwen3");
  save_as_llama_cpp(keys, "qwen3");
  for (const char* suffix :
       {"attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"})
    keys.set(std::string("qwen3.") + suffix, 64u);
  keys.set("qwen3.final_logit_softcapping", 30.0f);
  const ModelConfig config = config_of(keys);
  EXPECT_EQ(config.score_soft_cap, 0.0f);
  EXPECT_EQ(config.logit_soft_cap, 0.0f);
  EXPECT_EQ(config.score_scale, 0.125);
  EXPECT_EQ(config.rope.factor, 1.0);
  EXPECT_EQ(config.rope.yarn_extrapolation_factor, 1.0);
  EXPECT_FALSE(config.rope.yarn_attention_factor.has_value());
  KeySet four = valid_of("gemma4");
  EXPECT_EQ(config_of(save_as_llama_cpp(four, "gemma4").set("gemma4.final_logit_softcapping", 20.0f))
                .logit_soft_cap,
            20.0f);
  KeySet experts = valid_of("qwen3moe");
  save_as_llama_cpp(experts, "qwen3moe")
      .set("qwen3moe.expert_gating_func", 0u)
      .set("qwen3moe.expert_weights_norm", false);
  EXPECT_TRUE(config_of(experts).experts.normalises_weights);
  KeySet sigmoids = valid_of("lfm2moe");
  save_as_llama_cpp(sigmoids, "lfm2moe")
      .set("lfm2moe.expert_gating_func", 2u)
      .set("lfm2moe.expert_weights_norm", false);
  EXPECT_TRUE(config_of(sigmoids).experts.normalises_weights);
  KeySet unrotated = valid_of("llama4");
  save_as_llama_cpp(unrotated, "llama4").set("llama4.attention.temperature_scale", 0.1f);
  EXPECT_EQ(config_of(unrotated).query_scale_factor, 0.1);
}

TEST(ModelConfig, WhatAFileSavedByLlamaCppSaysOtherwiseIsRefused) {
  const auto refused = [](const std::string& suffix, auto value) {
    KeySet keys = valid_of("qwen3");
    expect_error(save_as_llama_cpp(keys, "qwen3").set("qwen3." + suffix, value), ErrorCode::kUnsupported,
                 "qwen3." + suffix, "needs something that Octavo");
  };
  refused("attention.key_length_swa", 32u);
  refused("attention.value_length_swa", 32u);
  refused("rope.dimension_count_swa", 32u);
  refused("attn_logit_softcapping", 40.0f);
  refused("final_logit_softcapping", 50.0f);
  refused("attention.output_scale", 2.0f);
  expect_error(valid_of("llama4").set("llama4.attention.temperature_scale", 0.2f), ErrorCode::kUnsupported,
               "llama4.attention.temperature_scale", "needs something that Octavo");
  KeySet sections = valid_of("qwen3");
  save_as_llama_cpp(sections, "qwen3").set_list("qwen3.rope.dimension_sections", {8, 8, 16, 0});
  expect_error(sections, ErrorCode::kUnsupported, "qwen3.rope.dimension_sections",
               "needs something that Octavo");
}

}  // namespace
}  // namespace octavo::model
