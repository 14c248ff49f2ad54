#include "engine/model/recurrent_config.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/model/limits.h"
#include "engine/model/whole_number.h"

namespace octavo::model {
namespace {

constexpr std::string_view kLayersSuffix = "attention.recurrent_layers";
constexpr std::string_view kIntervalSuffix = "full_attention_interval";
constexpr std::int32_t kUsualInterval = 4;

class RecurrentReader {
 public:
  RecurrentReader(const GgufHeader& header, const RecurrentContext& context)
      : header_(header), context_(context) {}

  Result<RecurrentConfig> read() {
    OCTAVO_TRY_VOID(read_layers());
    OCTAVO_TRY_VOID(read_heads());
    OCTAVO_TRY_VOID(read_value_dim());
    config_.shape.key_head_order = context_.parts == RecurrentLayers::kGrouped
                                       ? kernels::KeyHeadOrder::kGrouped
                                       : kernels::KeyHeadOrder::kTiled;
    return config_;
  }

 private:
  std::string key(std::string_view suffix) const {
    return std::string(context_.architecture) + "." + std::string(suffix);
  }
  Error damaged(std::string_view suffix, const std::string& sentence) const {
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile, sentence + "; convert the model again");
  }

  Result<void> read_layers() {
    const bool has_list = header_.contains(key(kLayersSuffix));
    OCTAVO_TRY_VOID(has_list ? read_list() : read_interval());
    const bool any_has_attention = std::ranges::find(config_.layers, false) != config_.layers.end();
    if (any_has_attention) return {};
    return damaged(has_list ? kLayersSuffix : kIntervalSuffix, "leaves no layer with attention");
  }

  Result<void> read_list() {
    OCTAVO_TRY(config_.layers, read_flags(key(kLayersSuffix)));
    const std::int32_t num_in_file = context_.num_layers + context_.num_skipped_layers;
    if (std::cmp_not_equal(config_.layers.size(), num_in_file)) {
      return damaged(kLayersSuffix, "holds " + std::to_string(config_.layers.size()) + " entries for " +
                                        std::to_string(num_in_file) + " layers");
    }
    config_.layers.resize(static_cast<std::size_t>(context_.num_layers));
    return {};
  }

  // Files that llama.cpp saves hold zeros and ones.
  Result<std::vector<bool>> read_flags(const std::string& name) const {
    auto flags = header_.get<std::vector<bool>>(name);
    if (flags) return flags;
    const auto numbers = header_.get<std::vector<std::int32_t>>(name);
    if (!numbers || std::ranges::any_of(*numbers, [](std::int32_t n) { return n != 0 && n != 1; }))
      return flags;
    return std::vector<bool>(numbers->begin(), numbers->end());
  }

  Result<void> read_interval() {
    std::int32_t interval = kUsualInterval;
    if (header_.contains(key(kIntervalSuffix))) {
      OCTAVO_TRY(interval, read_whole(header_, key(kIntervalSuffix), {1, kMaxLayers}));
    }
    for (std::int32_t i = 0; i < context_.num_layers; ++i) config_.layers.push_back((i + 1) % interval != 0);
    return {};
  }

  Result<void> read_heads() {
    kernels::DeltaNetShape& shape = config_.shape;
    OCTAVO_TRY(shape.convolution_width, read_whole(header_, key("ssm.conv_kernel"), {1, kMaxConvolution}));
    OCTAVO_TRY(shape.key_dim, read_whole(header_, key("ssm.state_size"), {1, kMaxStateDim}));
    OCTAVO_TRY(shape.num_key_heads, read_whole(header_, key("ssm.group_count"), {1, kMaxHeads}));
    OCTAVO_TRY(shape.num_value_heads, read_whole(header_, key("ssm.time_step_rank"), {1, kMaxHeads}));
    if (shape.num_value_heads % shape.num_key_heads == 0) return {};
    return damaged("ssm.time_step_rank", "is " + std::to_string(shape.num_value_heads) +
                                             ", which is no multiple of the " +
                                             std::to_string(shape.num_key_heads) + " key heads");
  }

  Result<void> read_value_dim() {
    constexpr std::string_view kSuffix = "ssm.inner_size";
    kernels::DeltaNetShape& shape = config_.shape;
    OCTAVO_TRY(const std::int32_t inner_size,
               read_whole(header_, key(kSuffix), {1, std::int64_t{kMaxHeads} * kMaxStateDim}));
    shape.value_dim = inner_size / shape.num_value_heads;
    if (inner_size % shape.num_value_heads == 0 && shape.value_dim <= kMaxStateDim) return {};
    return damaged(kSuffix, "is " + std::to_string(inner_size) + ", which does not make " +
                                std::to_string(shape.num_value_heads) + " value heads of 1 to " +
                                std::to_string(kMaxStateDim) + " dimensions");
  }

  const GgufHeader& header_;
  const RecurrentContext& context_;
  RecurrentConfig config_;
};

}  // namespace

std::int32_t RecurrentConfig::num_before(std::int32_t num_layers) const {
  if (layers.empty()) return 0;
  return static_cast<std::int32_t>(std::count(layers.begin(), layers.begin() + num_layers, true));
}

kernels::StateLayout RecurrentConfig::state_layout() const {
  return {.num_layers = num_before(static_cast<std::int32_t>(layers.size())),
          .recurrent_floats = shape.recurrent_floats(),
          .convolution_floats = shape.convolution_floats()};
}

Result<RecurrentConfig> read_recurrent_config(const GgufHeader& header, const RecurrentContext& context) {
  if (context.parts == RecurrentLayers::kNone) return RecurrentConfig();
  return RecurrentReader(header, context).read();
}

}  // namespace octavo::model
