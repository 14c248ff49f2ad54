#include "engine/model/inspection.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "engine/base/format.h"
#include "engine/model/kv_use.h"
#include "engine/model/sampling_advice.h"

namespace octavo::model {
namespace {

// Tables of factors, which are not learnt.
bool is_rope_table(const SourceTensor& tensor) { return tensor.name.starts_with("rope_f"); }

// Of all experts of a layer.
bool is_of_experts(const SourceTensor& tensor) {
  return tensor.name.find("_exps.weight") != std::string::npos;
}

// Of the tensor's elements those that a row meets which uses so many experts.
std::uint64_t num_elements_met(const SourceTensor& tensor, const ModelConfig& config,
                               std::int32_t num_experts_used) {
  const auto elements = static_cast<std::uint64_t>(tensor.num_elements);
  if (config.experts.num_experts == 0 || !is_of_experts(tensor)) return elements;
  return elements / static_cast<std::uint64_t>(config.experts.num_experts) *
         static_cast<std::uint64_t>(num_experts_used);
}

bool is_matrix(const SourceTensor& tensor) { return tensor.dimensions[1] > 1; }

template <class Accept>
std::vector<TypeCount> count_types_of(const ModelSource& file, Accept&& accept) {
  std::map<std::string_view, TypeCount> counts;
  for (const SourceTensor& tensor : file.tensors()) {
    if (!accept(tensor)) continue;
    TypeCount& count = counts[tensor.type_name];
    count.type = tensor.type_name;
    count.num_tensors += 1;
    count.num_elements +=
        static_cast<std::uint64_t>(tensor.num_elements);  // all lie inside files: cannot wrap
    count.num_bytes += tensor.num_bytes;
  }
  std::vector<TypeCount> sorted;
  for (const auto& [type, count] : counts) sorted.push_back(count);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TypeCount& a, const TypeCount& b) { return a.num_elements > b.num_elements; });
  return sorted;
}

}  // namespace

std::vector<TypeCount> count_types(const ModelSource& file) {
  return count_types_of(file, [](const SourceTensor&) { return true; });
}

std::uint64_t count_parameters(const ModelSource& file) {
  std::uint64_t total = 0;
  for (const SourceTensor& tensor : file.tensors()) {
    if (!is_rope_table(tensor)) total += static_cast<std::uint64_t>(tensor.num_elements);
  }
  return total;
}

std::uint64_t count_layer_parameters(const ModelSource& file, const ModelConfig& config) {
  std::uint64_t total = 0;
  for (const SourceTensor& tensor : file.tensors()) {
    if (!tensor.name.starts_with("blk.") || config.is_in_skipped_layer(tensor.name)) continue;
    total += num_elements_met(tensor, config, config.experts.num_used);
  }
  return total;
}

std::string size_label(const ModelSource& file, const ModelConfig& config) {
  std::uint64_t count = 0;
  for (const SourceTensor& tensor : file.tensors())
    if (!is_rope_table(tensor)) count += num_elements_met(tensor, config, 1);
  constexpr std::pair<double, char> kUnits[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}};
  const auto unit =
      std::ranges::find_if(kUnits, [&](const auto& one) { return static_cast<double>(count) > one.first; });
  const auto [size, letter] = unit != std::end(kUnits) ? *unit : std::pair(1e3, 'K');
  const double scaled = static_cast<double>(count) / size;
  const int places = std::round(scaled) >= 10.0 ? 0 : std::round(scaled) >= 1.0 ? 1 : 2;
  const std::int32_t num_experts = config.experts.num_experts;
  return (num_experts > 0 ? std::to_string(num_experts) + "x" : "") + fixed_text(scaled, places) + letter;
}

KvShape kv_shape(const ModelConfig& config) {
  std::vector<KvLayers> kinds;
  for (const kernels::KvHeads& heads : find_kv_uses(config).places) {
    const auto alike = std::ranges::find_if(kinds, [&](const KvLayers& kind) {
      return kernels::KvHeads{kind.num_kv_heads, kind.head_dim, kind.latent_dim} == heads;
    });
    if (alike == kinds.end()) {
      kinds.push_back({1, heads.num_kv_heads, heads.head_dim, heads.latent_dim});
    } else {
      ++alike->num_layers;
    }
  }
  return kinds;
}

std::string heads_text(const ModelDescription& description) {
  std::string text = std::to_string(description.num_heads) + " heads";
  const std::int32_t all_layers = description.num_layers - description.num_recurrent_layers;
  std::int32_t num_layers = 0;
  for (const KvLayersDescription& layers : description.kv_layers) {
    const std::string size =
        layers.latent_dim > 0
            ? "one latent key of " + std::to_string(layers.head_dim) + " for all, " +
                  std::to_string(layers.latent_dim) + " of them its value"
            : std::to_string(layers.num_kv_heads) + " KV heads of " + std::to_string(layers.head_dim);
    if (layers.num_layers == all_layers) return text + " and " + size;
    text += (num_layers == 0 ? "; " : ", ") + size + " in " + std::to_string(layers.num_layers) + " layers";
    num_layers += layers.num_layers;
  }
  const std::int32_t others = all_layers - num_layers;
  return others == 0 ? text : text + ", " + std::to_string(others) + " layers without their own";
}

ModelDescription describe_model(const ModelSource& file, const ModelConfig& config) {
  ModelDescription description;
  description.path = file.path().string();
  description.name = config.name;
  description.architecture = config.architecture;
  const std::vector<TypeCount> types = count_types_of(file, is_matrix);
  if (!types.empty()) description.quantisation = std::string(types.front().type);
  description.num_parameters = static_cast<std::int64_t>(count_parameters(file));
  description.num_layer_parameters = static_cast<std::int64_t>(count_layer_parameters(file, config));
  description.file_bytes = static_cast<std::int64_t>(file.file_bytes());
  description.num_layers = config.num_layers;
  description.num_recurrent_layers = config.recurrent.num_before(config.num_layers);
  description.state_bytes = config.recurrent.state_layout().state_bytes();
  description.num_skipped_layers = config.num_skipped_layers;
  description.predicts_next_tokens = config.num_skipped_layers > 0 && config.parts.predicts_next_tokens;
  description.embedding_length = config.embedding_length;
  description.num_heads = config.num_heads;
  for (const KvLayers& layers : kv_shape(config).kinds)
    description.kv_layers.push_back(
        {layers.num_layers, layers.num_kv_heads, layers.head_dim, layers.latent_dim});
  description.num_experts = config.experts.num_experts;
  description.num_used_experts = config.experts.num_used;
  for (const SourceTensor& tensor : file.tensors()) {
    const auto bytes = static_cast<std::int64_t>(tensor.num_bytes);
    if (config.is_in_skipped_layer(tensor.name)) {
      description.skipped_bytes += bytes;
    } else if (config.experts.num_experts > 0 && is_of_experts(tensor)) {
      description.expert_bytes += bytes;
    }
  }
  description.context_length = config.context_length;
  description.vocabulary_size = config.vocabulary_size;
  description.has_chat_template = file.has_chat_template();
  description.sampling_advice = file.sampling_advice();
  if (description.sampling_advice.empty()) description.sampling_advice = published_advice(config.name);
  return description;
}

}  // namespace octavo::model
