// Every architecture, on every backend and instruction set, against tests/golden/make_tiny_models.py: the
// variants cross their windows, cap their scores and logits, and have odd sizes, biases and packed matrices.
#include "engine/model/architecture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "engine/model/gguf_file.h"
#include "kernels/backends.h"
#include "tests/model/golden_errors.h"
#include "tests/model/one_sequence.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::model {
namespace {

using kernels::Activation;
using kernels::TensorType;

constexpr std::int32_t kMostTokens = 80;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

SequenceOptions options_of(const nlohmann::json& model) {
  SequenceOptions options{.max_model_len = model["max_model_len"]};
  if (model.contains("chunk")) options.chunk = model["chunk"].get<std::int32_t>();
  return options;
}

TEST(Architectures, GiveTheLogProbabilitiesOfAnIndependentProgram) {
  const test::TemporaryFolder folder;
  std::set<std::string> covered = {"llama"};  // transformer_test.cc
  for (const nlohmann::json& model : test::tiny_models()) {
    const std::string name = model["name"];
    SCOPED_TRACE(name);
    covered.insert(model["architecture"].get<std::string>());
    test::make_tiny_model(model).write(folder / name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    OneSequence reference(folder / name, reference_backend(Activation::kF32), kMostTokens, options_of(model));
    const Errors defined = errors_of(reference.logits_of(token_ids), model);
    EXPECT_LT(defined.worst, 1e-4);
    EXPECT_LT(defined.mean, 1e-5);
    std::vector<float> first;
    for (const std::string& instruction_set : kernels::usable_instruction_sets()) {
      SCOPED_TRACE(instruction_set);
      const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", instruction_set);
      OneSequence cpu(folder / name, cpu_backend(Activation::kF32), kMostTokens, options_of(model));
      const std::vector<float> logits = cpu.logits_of(token_ids);
      const Errors errors = errors_of(logits, model);
      EXPECT_LT(errors.worst, 1e-4);
      EXPECT_LT(errors.mean, 1e-5);
      if (first.empty()) first = logits;
      EXPECT_TRUE(same_bits(logits, first)) << "every instruction set gives the same bits";
    }
  }
  for (const Architecture& architecture : architectures())
    EXPECT_TRUE(covered.contains(std::string(architecture.name))) << architecture.name << " has no golden";
}

// Models that guess their next tokens: how far their predictions are from the program's.
Errors prediction_errors(const std::vector<float>& logits, const nlohmann::json& model) {
  const std::vector<std::int32_t> token_ids = model["token_ids"];
  const std::size_t num_pairs = token_ids.size() - 1, num_rows = num_pairs + model["guesses"].size(),
                    size = logits.size() / num_rows;
  Errors errors;
  std::size_t count = 0;
  const auto add = [&](double found, double expected) {
    const double error = std::abs(found - expected);
    errors.worst = error <= errors.worst ? errors.worst : error;
    errors.mean += error;
    ++count;
  };
  for (std::size_t row = 0; row < num_rows; ++row) {
    const std::vector<double> found = log_softmax(std::span(logits).subspan(row * size, size));
    if (row + 1 < num_pairs) {
      add(found[static_cast<std::size_t>(token_ids[row + 2])], model["prediction_logprobs"][row]);
      continue;
    }
    for (std::size_t id = 0; id < size; ++id)
      add(found[id], model["last_predictions"][row + 1 - num_pairs][id]);
  }
  errors.mean /= static_cast<double>(count);
  return errors;
}

TEST(Architectures, GuessNextTokensAsAnIndependentProgramDoes) {
  const test::TemporaryFolder folder;
  std::set<std::string> covered;
  for (const nlohmann::json& model : test::tiny_models()) {
    if (!model.contains("guesses")) continue;
    const std::string name = model["name"];
    SCOPED_TRACE(name);
    covered.insert(model["architecture"].get<std::string>());
    test::make_tiny_model(model).write(folder / name);
    SequenceOptions options = options_of(model);
    options.predicts = true;
    for (const bool is_reference : {true, false}) {
      OneSequence sequence(folder / name,
                           is_reference ? reference_backend(Activation::kF32) : cpu_backend(Activation::kF32),
                           kMostTokens + 2, options);
      const Errors errors =
          prediction_errors(sequence.predictions_of(model["token_ids"], model["guesses"]), model);
      EXPECT_LT(errors.worst, 1e-4);
      EXPECT_LT(errors.mean, 1e-5);
    }
  }
  for (const Architecture& architecture : architectures()) {
    EXPECT_EQ(covered.contains(std::string(architecture.name)), architecture.predicts_next_tokens)
        << architecture.name;
  }
}

TEST(Architectures, GuessTheSameBitsForEveryChunkAndInstructionSet) {
  const test::TemporaryFolder folder;
  for (const char* name : {"glm4moe_predicts", "qwen35_odd_sizes", "qwen35moe"}) {
    const nlohmann::json model = test::tiny_model(name);
    test::make_tiny_model(model).write(folder / name);
    std::vector<float> first;
    for (const std::string& instruction_set : kernels::usable_instruction_sets()) {
      const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", instruction_set);
      for (const std::int32_t chunk : {0, 1, 7}) {
        OneSequence sequence(folder / name, cpu_backend(Activation::kF32), kMostTokens + 2,
                             {.block_size = 5, .predicts = true});
        const std::vector<float> logits =
            sequence.predictions_of(model["token_ids"], model["guesses"], chunk);
        if (first.empty()) first = logits;
        EXPECT_TRUE(same_bits(logits, first)) << name << ", " << instruction_set << ", chunks of " << chunk;
      }
    }
  }
}

// Guessing is beside the model: what it answers by is the same.
TEST(Architectures, GiveTheSameBitsWhetherTheyGuessOrNot) {
  const test::TemporaryFolder folder;
  for (const char* name : {"glm4moe_predicts", "qwen35_odd_sizes", "qwen35moe"}) {
    const nlohmann::json model = test::tiny_model(name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    test::make_tiny_model(model).write(folder / name);
    OneSequence plain(folder / name, cpu_backend(Activation::kF32), kMostTokens),
        guessing(folder / name, cpu_backend(Activation::kF32), kMostTokens, {.predicts = true});
    guessing.predictions_of(token_ids, {});
    EXPECT_TRUE(same_bits(guessing.logits_of(token_ids), plain.logits_of(token_ids))) << name;
  }
}

TEST(Architectures, GiveTheSameBitsForEveryChunkAndBlockSize) {
  const test::TemporaryFolder folder;
  for (const char* name : {"deepseek2",
                           "deepseek2_groups",
                           "deepseek2_joint",
                           "deepseek2_odd_sizes",
                           "cohere2_odd_sizes",
                           "command-r_head_norms",
                           "exaone4_windows",
                           "hunyuan-dense",
                           "llama4",
                           "llama4_odd_sizes",
                           "muse-glimmer",
                           "nemotron_h_moe",
                           "nemotron_h_moe_latent",
                           "olmo2_windows",
                           "stablelm_side_by_side",
                           "falcon-h1_odd_sizes",
                           "gemma2",
                           "gemma3",
                           "gemma4",
                           "gemma4_embedded",
                           "gemma4_experts",
                           "gemma4_odd_sizes",
                           "gemma4_shared_apart",
                           "glm4moe",
                           "glm4moe_groups",
                           "gpt-oss",
                           "gpt-oss_odd_sizes",
                           "glm4",
                           "gpt2",
                           "granite_odd_sizes",
                           "granitehybrid",
                           "lfm2_odd_sizes",
                           "llama_with_experts",
                           "mistral4",
                           "nemotron_h",
                           "phi3_with_window",
                           "phimoe",
                           "phimoe_odd_sizes",
                           "qwen3",
                           "qwen35",
                           "qwen35_odd_sizes",
                           "qwen3moe",
                           "qwen3next_packed",
                           "smollm3",
                           "starcoder2"}) {
    const nlohmann::json model = test::tiny_model(name);
    test::make_tiny_model(model).write(folder / name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    SequenceOptions options = options_of(model);
    OneSequence whole(folder / name, cpu_backend(Activation::kF32), kMostTokens, options);
    const std::vector<float> expected = whole.logits_of(token_ids);
    for (const std::int32_t block_size : {1, 5, 8, 16, 32}) {
      for (const std::int32_t chunk : {1, 7, 16, 64}) {
        options.block_size = block_size;
        OneSequence parts(folder / name, cpu_backend(Activation::kF32), kMostTokens, options);
        EXPECT_TRUE(same_bits(parts.logits_of(token_ids, chunk), expected))
            << name << ", blocks of " << block_size << ", chunks of " << chunk;
      }
    }
  }
}

TEST(Architectures, AreTheSameOnEveryBackendForQuantisedWeights) {
  const test::TemporaryFolder folder;
  for (const char* name : {"deepseek2_groups",
                           "deepseek2_joint",
                           "deepseek2_lite",
                           "cohere2",
                           "command-r",
                           "exaone4",
                           "hunyuan-dense",
                           "llama4",
                           "muse-glimmer",
                           "nemotron_h_moe",
                           "olmo2_windows",
                           "stablelm_side_by_side",
                           "falcon-h1",
                           "gemma",
                           "gemma2",
                           "gemma3",
                           "gemma4",
                           "gemma4_embedded",
                           "gemma4_experts",
                           "glm4moe",
                           "gpt-oss",
                           "gpt2",
                           "granite",
                           "granitehybrid_with_experts",
                           "granitemoe",
                           "lfm2",
                           "lfm2moe",
                           "nemotron_h",
                           "llama_with_experts",
                           "llama_with_shared_expert",
                           "olmoe",
                           "phi3",
                           "phi3_with_window",
                           "phimoe",
                           "qwen2",
                           "qwen3",
                           "qwen35",
                           "qwen35moe",
                           "qwen3moe",
                           "qwen3next"}) {
    const nlohmann::json model = test::tiny_model(name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    for (const TensorType type :
         {TensorType::kF16, TensorType::kQ4_1, TensorType::kQ8_0, TensorType::kMXFP4}) {
      test::make_tiny_model(model, {.weight_type = type}).write(folder / name);
      for (const Activation activation : {Activation::kF32, Activation::kInt16}) {
        OneSequence reference(folder / name, reference_backend(activation), kMostTokens, options_of(model));
        OneSequence cpu(folder / name, cpu_backend(activation), kMostTokens, options_of(model));
        const std::vector<float> expected = reference.logits_of(token_ids), found = cpu.logits_of(token_ids);
        double largest = 0.0;
        for (const float logit : expected) largest = std::max(largest, std::abs(static_cast<double>(logit)));
        EXPECT_GT(largest, 1.0) << name;
        EXPECT_LT(worst_difference(expected, found), 1e-2)
            << name << " " << kernels::traits_of(type).name << " largest logit " << largest;
      }
    }
  }
}

// Of files that nobody should write: rounded weights, but never rounded rows.
TEST(Architectures, ARouterOfQuantisedWeightsMeetsRowsThatAreNotRounded) {
  const test::TemporaryFolder folder;
  const nlohmann::json model = test::tiny_model("qwen3moe");
  const std::vector<std::int32_t> token_ids = model["token_ids"];
  test::make_tiny_model(model, {.weight_type = TensorType::kQ8_0, .quantises_routers = true})
      .write(folder / "model.gguf");
  OneSequence exact(folder / "model.gguf", reference_backend(Activation::kF32), kMostTokens);
  OneSequence cpu(folder / "model.gguf", cpu_backend(Activation::kInt16), kMostTokens);
  EXPECT_LT(worst_difference(exact.logits_of(token_ids), cpu.logits_of(token_ids)), 1e-2);
}

// What the picker and the memory plan say before loading, and what loading reports on its way.
TEST(Architectures, ExpertsAreCountedBeforeAndAfterLoadingAndCanBeCancelledOneByOne) {
  const test::TemporaryFolder folder;
  for (const char* name : {"qwen3moe", "qwen3moe_packed", "glm4moe", "gemma4_experts", "phimoe", "qwen35moe",
                           "qwen3next_packed", "deepseek2", "deepseek2_joint"}) {
    test::make_tiny_model(test::tiny_model(name)).write(folder / name);
    const auto file = GgufFile::open(folder / name);
    const auto config = read_model_config(file->header());
    const ModelTensors tensors = *find_model_tensors(*file, *config);
    const auto backend = reference_backend(Activation::kF32);
    std::vector<double> fractions;
    const auto weights = prepare_weights(tensors, WeightType::kAuto, *backend, [&](double fraction) {
      fractions.push_back(fraction);
      return true;
    });
    ASSERT_TRUE(weights);
    EXPECT_EQ(weights->memory_bytes(), planned_weight_bytes(tensors, WeightType::kAuto)) << name;
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_EQ(fractions.back(), 1.0);
    const auto num_experts = static_cast<std::size_t>(config->experts.num_experts);
    EXPECT_GT(fractions.size(), 3 * num_experts) << "one before each expert's matrices";
    std::size_t calls = 0;
    const auto cancelled =
        prepare_weights(tensors, WeightType::kAuto, *backend, [&](double) { return ++calls < 12; });
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(calls, 12u);
  }
}

// The window is what makes the difference, not something else of the variant.
TEST(Architectures, AWindowChangesWhatLiesBehindIt) {
  const test::TemporaryFolder folder;
  for (const char* name : {"cohere2", "exaone4_windows", "gemma2", "gemma3", "gemma4", "gpt-oss",
                           "llama_with_window", "muse-glimmer", "olmo2_windows", "phi3_with_window"}) {
    const nlohmann::json model = test::tiny_model(name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    const std::uint32_t window = model["keys"]["attention.sliding_window"];
    test::make_tiny_model(model).write(folder / "narrow");
    test::make_tiny_model(model, {.window = 64}).write(folder / "wide");
    OneSequence narrow(folder / "narrow", cpu_backend(Activation::kF32), kMostTokens);
    OneSequence wide(folder / "wide", cpu_backend(Activation::kF32), kMostTokens);
    const std::vector<float> a = narrow.logits_of(token_ids), b = wide.logits_of(token_ids);
    const std::size_t size = narrow.vocabulary_size(), same = window * size;
    EXPECT_TRUE(same_bits({a.begin(), a.begin() + static_cast<std::ptrdiff_t>(same)},
                          {b.begin(), b.begin() + static_cast<std::ptrdiff_t>(same)}))
        << name << ": a window of " << window << " holds as many positions";
    EXPECT_FALSE(same_bits(
        {a.begin() + static_cast<std::ptrdiff_t>(same), a.begin() + static_cast<std::ptrdiff_t>(same + size)},
        {b.begin() + static_cast<std::ptrdiff_t>(same),
         b.begin() + static_cast<std::ptrdiff_t>(same + size)}))
        << name << ": the next row sees one position less";
  }
}

// A chunk's first row sees itself alone in layers with chunks; up to there all rows are as without.
TEST(Architectures, AChunkChangesWhatLiesBehindItsBorder) {
  const test::TemporaryFolder folder;
  const nlohmann::json model = test::tiny_model("llama4");
  const std::vector<std::int32_t> token_ids = model["token_ids"];
  test::make_tiny_model(model).write(folder / "model");
  const auto logits_with = [&](std::int32_t chunk) {
    SequenceOptions options = options_of(model);
    options.chunk = chunk;
    OneSequence sequence(folder / "model", cpu_backend(Activation::kF32), kMostTokens, options);
    return sequence.logits_of(token_ids);
  };
  const std::vector<float> narrow = logits_with(12), wide = logits_with(13);
  const std::size_t size = narrow.size() / token_ids.size();
  // Queries are scaled by the chunk, too, from the row before a border on.
  EXPECT_TRUE(same_bits({narrow.begin(), narrow.begin() + static_cast<std::ptrdiff_t>(11 * size)},
                        {wide.begin(), wide.begin() + static_cast<std::ptrdiff_t>(11 * size)}));
  for (std::size_t row = 11; row < 13; ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(row * size),
               end = begin + static_cast<std::ptrdiff_t>(size);
    EXPECT_FALSE(
        same_bits({narrow.begin() + begin, narrow.begin() + end}, {wide.begin() + begin, wide.begin() + end}))
        << row;
  }
}

Result<void> found_tensors(const test::GgufWriter& writer, const std::filesystem::path& path) {
  writer.write(path);
  OCTAVO_TRY(const GgufFile file, GgufFile::open(path));
  OCTAVO_TRY(const ModelConfig config, read_model_config(file.header()));
  OCTAVO_TRY_VOID(find_model_tensors(file, config));
  return {};
}

TEST(Architectures, NameTheTensorThatIsMissingOrHasAnotherShape) {
  const test::TemporaryFolder folder;
  for (const nlohmann::json& model : test::tiny_models()) {
    const std::string architecture = model["architecture"];
    ASSERT_TRUE(found_tensors(test::make_tiny_model(model), folder / "model.gguf")) << model["name"];
    for (std::size_t i = 0; i < model["tensors"].size(); ++i) {
      const std::string name = model["tensors"][i][0];
      // Taken together, and neither is looked at: they belong to a layer that only guesses.
      const std::int32_t num_layers =
          model["keys"]["block_count"].get<std::int32_t>() - model["keys"].value("nextn_predict_layers", 0);
      const bool is_skipped = name.starts_with("blk." + std::to_string(num_layers) + ".");
      // One layer is as good as another, but for attention and what may stand in its place.
      const bool is_looked_at =
          name.starts_with("blk.1.") || (test::has_states(model) && name.starts_with("blk.0."));
      if (is_skipped || (name.starts_with("blk.") && !is_looked_at)) continue;
      SCOPED_TRACE(model["name"].get<std::string>() + " " + name);
      nlohmann::json less = model;
      less["tensors"].erase(i);
      const auto missing = found_tensors(test::make_tiny_model(less), folder / "model.gguf");
      const bool has_norm_biases = find_architecture(architecture)->has_norm_biases;
      const bool is_of_norm = name.find("norm.") != std::string::npos && has_norm_biases;
      const bool needs_biases = is_of_norm || name.ends_with("ssm_dt.bias") || architecture == "gpt2" ||
                                architecture == "gpt-oss" || architecture == "opt" ||
                                architecture == "phimoe" || architecture == "starcoder2";
      // Values come from keys, and scales are 1, where a file of gemma4 has none.
      const bool is_extra = architecture == "gemma4" &&
                            (name.ends_with("attn_v.weight") || name.ends_with("layer_output_scale.weight") ||
                             name.ends_with("ffn_down_exps.scale"));
      const bool is_optional_norm = architecture == "falcon-h1" && name.ends_with("ssm_norm.weight");
      // Taken where a file has them, both or neither; without ffn_norm both branches read the same rows.
      const bool is_way_of_stablelm = architecture == "stablelm" && name.ends_with("ffn_norm.weight");
      const bool is_optional = name == "output.weight" || is_extra || is_optional_norm ||
                               (name.ends_with(".bias") && !needs_biases);
      if (is_way_of_stablelm) {  // the bias of the norm that is gone is then of no use
        ASSERT_FALSE(missing);
        EXPECT_EQ(missing.error().subject, name.substr(0, 6) + "ffn_norm.bias");
        continue;
      }
      EXPECT_EQ(missing.has_value(), is_optional);
      if (!missing) {
        EXPECT_EQ(missing.error().code, ErrorCode::kDamagedFile);
        // What may be packed is looked for apart; falcon-h1's norm by its whole name.
        std::map<std::string, std::string> others = {{"ffn_gate_up_exps.weight", "ffn_gate_exps.weight"},
                                                     {"ffn_norm", "ffn_norm.weight"}};
        if (architecture == "qwen3next") others["ssm_in.weight"] = "attn_qkv.weight";
        const auto other = others.find(name.starts_with("blk.") ? name.substr(6) : name);
        EXPECT_EQ(missing.error().subject, other == others.end() ? name : name.substr(0, 6) + other->second);
        EXPECT_NE(missing.error().message.find("is missing"), std::string::npos) << missing.error().message;
      }
      nlohmann::json wider = model;
      wider["tensors"][i][2] = model["tensors"][i][2].get<std::size_t>() + 32;
      const auto wrong = found_tensors(test::make_tiny_model(wider), folder / "model.gguf");
      ASSERT_FALSE(wrong);
      EXPECT_EQ(wrong.error().subject, name);
      EXPECT_NE(wrong.error().message.find("but the metadata says"), std::string::npos)
          << wrong.error().message;
    }
  }
}

// What is found for guessing, and only then.
Result<std::int64_t> bytes_with_next_token_layer(const test::GgufWriter& writer,
                                                 const std::filesystem::path& path) {
  writer.write(path);
  OCTAVO_TRY(const GgufFile file, GgufFile::open(path));
  OCTAVO_TRY(ModelConfig config, read_model_config(file.header()));
  OCTAVO_TRY(ModelTensors tensors, find_model_tensors(file, config));
  const std::int64_t bytes = planned_weight_bytes(tensors, WeightType::kAuto);
  OCTAVO_TRY_VOID(add_next_token_layer(file, config, tensors));
  const auto backend = reference_backend(Activation::kF32);
  const std::int64_t planned = planned_weight_bytes(tensors, WeightType::kAuto);
  OCTAVO_TRY(const Weights weights, prepare_weights(std::move(tensors), WeightType::kAuto, *backend, {}));
  EXPECT_EQ(weights.memory_bytes(), planned);
  return planned - bytes;
}

TEST(Architectures, NameWhatIsMissingOrMisshapenForGuessing) {
  const test::TemporaryFolder folder;
  for (const char* const name : {"glm4moe_predicts", "qwen35_odd_sizes", "qwen35moe"}) {
    const nlohmann::json model = test::tiny_model(name);
    const std::string prefix =
        "blk." + std::to_string(model["keys"]["block_count"].get<std::int32_t>() - 1) + ".";
    std::int64_t num_bytes = 0;  // of matrices
    for (std::size_t i = 0; i < model["tensors"].size(); ++i) {
      const std::string tensor = model["tensors"][i][0];
      if (!tensor.starts_with(prefix)) continue;
      SCOPED_TRACE(std::string(name) + " " + tensor);
      const bool is_row = tensor.ends_with("ffn_gate_inp_shexp.weight");  // a matrix of one
      const std::int64_t rows = is_row ? 1 : model["tensors"][i][1].get<std::int64_t>();
      num_bytes += rows * model["tensors"][i][2].get<std::int64_t>() * 4;
      nlohmann::json less = model;
      less["tensors"].erase(i);
      const auto missing = bytes_with_next_token_layer(test::make_tiny_model(less), folder / "model.gguf");
      const bool is_optional = tensor.find("shared_head") != std::string::npos ||
                               tensor.ends_with("embed_tokens.weight") || tensor.ends_with(".bias");
      EXPECT_EQ(missing.has_value(), is_optional);
      if (!missing) {
        EXPECT_EQ(missing.error().code, ErrorCode::kDamagedFile);
        EXPECT_EQ(missing.error().subject, tensor);
        EXPECT_NE(missing.error().message.find("is missing"), std::string::npos) << missing.error().message;
      }
      nlohmann::json wider = model;
      wider["tensors"][i][2] = model["tensors"][i][2].get<std::size_t>() + 32;
      const auto wrong = bytes_with_next_token_layer(test::make_tiny_model(wider), folder / "model.gguf");
      ASSERT_FALSE(wrong);
      EXPECT_EQ(wrong.error().subject, tensor);
      EXPECT_NE(wrong.error().message.find("but the metadata says"), std::string::npos)
          << wrong.error().message;
      EXPECT_TRUE(found_tensors(test::make_tiny_model(less), folder / "model.gguf")) << "unless it guesses";
    }
    const auto all = bytes_with_next_token_layer(test::make_tiny_model(model), folder / "model.gguf");
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, num_bytes) << "no norm or bias is a matrix";
  }
  for (const char* const name : {"qwen3", "qwen35", "glm4", "qwen3next_packed"}) {
    const auto refused =
        bytes_with_next_token_layer(test::make_tiny_model(test::tiny_model(name)), folder / "model.gguf");
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().subject, "speculative");
    EXPECT_EQ(refused.error().message,
              "speculative is mtp, but this model has no layer that predicts further tokens; use ngram, or "
              "choose a file that has one");
  }
}

TEST(Architectures, LongRopeNeedsBothListsAndTakesTheOneForTheContext) {
  const test::TemporaryFolder folder;
  const nlohmann::json model = test::tiny_model("phi3_long");
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    nlohmann::json less = model;
    less["long_rope"].erase(name);
    const auto missing = found_tensors(test::make_tiny_model(less), folder / "model.gguf");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().subject, name);
  }
  test::make_tiny_model(model).write(folder / "model.gguf");
  const auto file = GgufFile::open(folder / "model.gguf");
  const auto config = read_model_config(file->header());
  const auto frequency_of = [&](std::int32_t max_model_len) {
    ModelTensors tensors = *find_model_tensors(*file, *config);
    const bool is_short = limit_context(tensors, *config, max_model_len);
    EXPECT_EQ(is_short, max_model_len <= 32) << max_model_len;
    EXPECT_NEAR(tensors.rope.attention_factor, 1.1, 1e-6);
    return tensors.rope.inverse_frequencies.back();
  };
  const double unscaled = std::pow(10'000.0, -14.0 / 16.0);
  EXPECT_NEAR(frequency_of(64), unscaled / 6.0, 1e-12);
  EXPECT_NEAR(frequency_of(33), unscaled / 6.0, 1e-12);
  EXPECT_NEAR(frequency_of(32), unscaled / 1.75, 1e-12);
}

TEST(Architectures, AreFoundByNameAndListedInOneSentence) {
  EXPECT_EQ(supported_architectures(),
            "cohere2, command-r, deepseek2, ernie4_5, exaone4, falcon-h1, gemma, gemma2, "
            "gemma3, gemma4, glm4, glm4moe, gpt-oss, gpt2, granite, granitehybrid, "
            "granitemoe, hunyuan-dense, lfm2, lfm2moe, llama, llama4, minicpm, mistral3, "
            "mistral4, muse-glimmer, nemotron_h, nemotron_h_moe, olmo2, olmoe, opt, phi3, phimoe, "
            "qwen2, qwen3, qwen35, qwen35moe, qwen3moe, qwen3next, seed_oss, smollm3, stablelm and "
            "starcoder2");
  for (const Architecture& architecture : architectures())
    EXPECT_EQ(find_architecture(architecture.name), &architecture);
  EXPECT_EQ(find_architecture("Llama"), nullptr);
  EXPECT_EQ(find_architecture(""), nullptr);
}

}  // namespace
}  // namespace octavo::model
