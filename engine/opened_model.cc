#include "engine/opened_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model/inspection.h"
#include "engine/model/quantise_matrices.h"
#include "engine/model_preview.h"
#include "engine/runner/runner_plan.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

std::string_view device_name(Device device) {
  switch (device) {
    case Device::kAuto: return "auto";
    case Device::kCpu: return "cpu";
    case Device::kCuda: return "cuda";
  }
  return "auto";
}

std::optional<kernels::TensorType> type_of(WeightQuantisation quantisation) {
  switch (quantisation) {
    case WeightQuantisation::kNone: return std::nullopt;
    case WeightQuantisation::kQ8_0: return kernels::TensorType::kQ8_0;
    case WeightQuantisation::kQ6_K: return kernels::TensorType::kQ6_K;
    case WeightQuantisation::kQ5_K: return kernels::TensorType::kQ5_K;
    case WeightQuantisation::kQ5_1: return kernels::TensorType::kQ5_1;
    case WeightQuantisation::kQ5_0: return kernels::TensorType::kQ5_0;
    case WeightQuantisation::kQ4_K: return kernels::TensorType::kQ4_K;
    case WeightQuantisation::kQ4_1: return kernels::TensorType::kQ4_1;
    case WeightQuantisation::kQ4_0: return kernels::TensorType::kQ4_0;
  }
  return std::nullopt;
}

std::vector<TokenId> end_token_ids(const tokenizer::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_end_of_sequence(id)) ids.push_back(id);
  }
  return ids;
}

bool needs_states(const model::ModelConfig& config) {
  return config.parts.attention_gate != model::AttentionGate::kNone ||
         config.parts.recurrent_layers != model::RecurrentLayers::kNone;
}

bool needs_column_orders(const model::ModelTensors& tensors) {
  bool any = false;
  tensors.visit_multiplied([&](const kernels::MatrixSource& source) { any |= !source.column_order.empty(); });
  return any;
}

bool needs_other_norms(const model::Architecture& parts, const model::ModelTensors& tensors) {
  const auto has_head_norms = [](const model::LayerTensors& layer) { return !layer.query_norm.empty(); };
  const bool has_layer_norms =
      parts.head_norm_kind != kernels::NormKind::kRms && std::ranges::any_of(tensors.layers, has_head_norms);
  return parts.normalises_embedding || !parts.has_input_norms || parts.head_norms_follow_rotation ||
         has_layer_norms;
}

}  // namespace

Result<OpenedModel> open_model(const EngineOptions& options, std::int64_t reserved_bytes) {
  OCTAVO_TRY_VOID(validate(options));
  OCTAVO_TRY(ModelPreview preview, ModelPreview::open(options.model));
  auto [source, config, tensors, tokenizer, vocabulary_notice] = std::move(preview).take_parts();
  if (options.speculative == Speculation::kMtp) {
    OCTAVO_TRY_VOID(model::add_next_token_layer(*source, config, tensors));
  }
  std::string weights_notice, notice;
  if (const auto type = type_of(options.quantisation)) {
    model::quantise_matrices(tensors, *type);
  } else {
    weights_notice = source->notice();
  }
  OCTAVO_TRY(auto backend,
             kernels::create_backend({.device = std::string(device_name(options.device)),
                                      .threads = options.threads,
                                      .activation = runner::activation_of(options, tensors),
                                      .deterministic = options.deterministic.value_or(false),
                                      .graphs = options.cuda_graphs,
                                      .rounds_activations = options.activation_dtype != ActivationType::kF32,
                                      .needs_experts = config.experts.num_experts > 0,
                                      .needs_states = needs_states(config),
                                      .needs_unequal_layers = !config.has_usual_layers(),
                                      .needs_scaled_queries = config.query_scale_factor > 0.0,
                                      .needs_other_norms = needs_other_norms(config.parts, tensors),
                                      .needs_latent_attention = config.parts.has_latent_attention,
                                      .needs_chunks = config.has_chunks(),
                                      .needs_column_orders = needs_column_orders(tensors),
                                      .types = tensors.matrix_types()},
                                     &notice));
  const std::int64_t host_bytes = runner::available_memory_bytes() - reserved_bytes;
  OCTAVO_TRY(auto plan, backend->device_bytes()
                            ? runner::plan_runner_on_device(config, tensors, options, host_bytes, *backend)
                            : runner::plan_runner(config, tensors, options, host_bytes));
  for (const std::string& said : {notice, vocabulary_notice, weights_notice}) {
    if (!said.empty()) plan.notice = plan.notice.empty() ? said : said + "; " + plan.notice;
  }
  ModelDescription description = model::describe_model(*source, config);
  description.template_switches = tokenizer->template_switches();
  std::vector<TokenId> ends = end_token_ids(*tokenizer);
  return OpenedModel{.description = std::move(description),
                     .parts = {.source = std::move(source),
                               .config = std::move(config),
                               .tensors = std::move(tensors),
                               .plan = std::move(plan),
                               .backend = std::move(backend),
                               .end_token_ids = std::move(ends)},
                     .tokenizer = std::move(tokenizer)};
}

}  // namespace octavo
