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
  RecurrentReader(const Metadata& header, const RecurrentContext& context)
      : header_(header), context_(context) {}

  Result<RecurrentConfig> read() {
    if (!is_delta_net(context_.parts)) config_.layers = context_.layers;
    switch (context_.parts) {
      case RecurrentLayers::kNone: break;
      case RecurrentLayers::kTiledDeltaNet:
      case RecurrentLayers::kGroupedDeltaNet:
        OCTAVO_TRY_VOID(read_layers());
        OCTAVO_TRY_VOID(read_delta_net());
        break;
      case RecurrentLayers::kStateSpace: OCTAVO_TRY_VOID(read_state_space()); break;
      case RecurrentLayers::kShortConvolution: OCTAVO_TRY_VOID(read_short_convolution()); break;
    }
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

  Result<void> read_delta_net() {
    kernels::DeltaNetShape& shape = config_.delta_net;
    shape.key_head_order = context_.parts == RecurrentLayers::kGroupedDeltaNet
                               ? kernels::KeyHeadOrder::kGrouped
                               : kernels::KeyHeadOrder::kTiled;
    OCTAVO_TRY_VOID(read_heads("key head", shape.convolution_width, shape.key_dim, shape.num_key_heads,
                               shape.num_value_heads));
    OCTAVO_TRY(shape.value_dim, read_head_dim("value head", shape.num_value_heads));
    return {};
  }

  Result<void> read_state_space() {
    kernels::StateSpaceShape& shape = config_.state_space;
    OCTAVO_TRY_VOID(
        read_heads("group", shape.convolution_width, shape.state_size, shape.num_groups, shape.num_heads));
    OCTAVO_TRY(shape.head_dim, read_head_dim("head", shape.num_heads));
    return {};
  }

  // A layer keeps nothing but inputs of its convolution: with a width of 1 there would be none.
  Result<void> read_short_convolution() {
    kernels::ShortConvolutionShape& shape = config_.short_convolution;
    OCTAVO_TRY(shape.convolution_width, read_whole(header_, key("shortconv.l_cache"), {2, kMaxConvolution}));
    shape.num_channels = context_.embedding_length;
    return {};
  }

  Result<void> read_heads(std::string_view group, std::int32_t& convolution_width, std::int32_t& state_size,
                          std::int32_t& num_groups, std::int32_t& num_heads) const {
    OCTAVO_TRY(convolution_width, read_whole(header_, key("ssm.conv_kernel"), {1, kMaxConvolution}));
    OCTAVO_TRY(state_size, read_whole(header_, key("ssm.state_size"), {1, kMaxStateDim}));
    OCTAVO_TRY(num_groups, read_whole(header_, key("ssm.group_count"), {1, kMaxHeads}));
    OCTAVO_TRY(num_heads, read_whole(header_, key("ssm.time_step_rank"), {1, kMaxHeads}));
    if (num_heads % num_groups == 0) return {};
    return damaged("ssm.time_step_rank", "is " + std::to_string(num_heads) +
                                             ", which is no multiple of the " + std::to_string(num_groups) +
                                             " " + std::string(group) + "s");
  }

  Result<std::int32_t> read_head_dim(std::string_view name, std::int32_t num_heads) const {
    constexpr std::string_view kSuffix = "ssm.inner_size";
    OCTAVO_TRY(const std::int32_t inner_size,
               read_whole(header_, key(kSuffix), {1, std::int64_t{kMaxHeads} * kMaxStateDim}));
    const std::int32_t head_dim = inner_size / num_heads;
    if (inner_size % num_heads == 0 && head_dim <= kMaxStateDim) return head_dim;
    return damaged(kSuffix, "is " + std::to_string(inner_size) + ", which does not make " +
                                std::to_string(num_heads) + " " + std::string(name) + "s of 1 to " +
                                std::to_string(kMaxStateDim) + " dimensions");
  }

  const Metadata& header_;
  const RecurrentContext& context_;
  RecurrentConfig config_;
};

}  // namespace

std::int32_t RecurrentConfig::num_before(std::int32_t num_layers) const {
  if (layers.empty()) return 0;
  return static_cast<std::int32_t>(std::count(layers.begin(), layers.begin() + num_layers, true));
}

// Numbers of a kind that the model has not are 0.
kernels::StateLayout RecurrentConfig::state_layout() const {
  return {.num_layers = num_before(static_cast<std::int32_t>(layers.size())),
          .recurrent_floats = delta_net.recurrent_floats() + state_space.recurrent_floats(),
          .convolution_floats = delta_net.convolution_floats() + state_space.convolution_floats() +
                                short_convolution.convolution_floats(),
          .draft_floats =
              delta_net.draft_floats() + state_space.draft_floats() + short_convolution.draft_floats()};
}

std::int64_t RecurrentConfig::output_columns() const {
  return delta_net.value_columns() + state_space.inner_columns() + short_convolution.num_channels;
}

Result<RecurrentConfig> read_recurrent_config(const Metadata& header, const RecurrentContext& context) {
  if (context.parts == RecurrentLayers::kNone) return RecurrentConfig();
  return RecurrentReader(header, context).read();
}

}  // namespace octavo::model
