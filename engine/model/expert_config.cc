#include "engine/model/expert_config.h"

#include <algorithm>
#include <string>

#include "engine/model/limits.h"
#include "engine/model/whole_number.h"

namespace octavo::model {
namespace {

using kernels::RouterScoring;

// Of expert_gating_func, as llama.cpp numbers them.
constexpr std::uint32_t kSoftmaxNumber = 1, kSigmoidNumber = 2, kSoftmaxOfSelectedNumber = 3;

std::uint32_t number_of(RouterScoring scoring) {
  switch (scoring) {
    case RouterScoring::kSoftmax: return kSoftmaxNumber;
    case RouterScoring::kSigmoid:
    case RouterScoring::kSigmoidOfSelected: return kSigmoidNumber;
    case RouterScoring::kSoftmaxOfSelected: return kSoftmaxOfSelectedNumber;
  }
  return 0;
}

constexpr std::string_view kDenseKey = "leading_dense_block_count", kStepKey = "interleave_moe_layer_step";

class ExpertReader {
 public:
  ExpertReader(const Metadata& header, const ExpertContext& context) : header_(header), context_(context) {}

  Result<ExpertConfig> read() {
    OCTAVO_TRY_VOID(read_into("expert_count", {0, kMaxExperts}, config_.num_experts));
    if (parts().use == ExpertUse::kNever || config_.num_experts == 0) return read_none();
    OCTAVO_TRY_VOID(read_into("expert_used_count", {1, config_.num_experts}, config_.num_used));
    OCTAVO_TRY_VOID(read_layers());
    OCTAVO_TRY_VOID(read_length());
    OCTAVO_TRY_VOID(read_shared_length());
    OCTAVO_TRY_VOID(read_latent_length());
    OCTAVO_TRY_VOID(read_groups());
    OCTAVO_TRY_VOID(read_scoring());
    OCTAVO_TRY_VOID(read_weights());
    return config_;
  }

 private:
  const ExpertParts& parts() const { return context_.parts; }
  std::string key(std::string_view suffix) const {
    return std::string(context_.architecture) + "." + std::string(suffix);
  }

  Error damaged(std::string_view suffix, const std::string& sentence) const {
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile, sentence + "; convert the model again");
  }
  Error not_computed(std::string_view suffix) const {
    return header_.error_about(key(suffix), ErrorCode::kUnsupported,
                               "needs something that Octavo does not support; choose another model");
  }

  Result<void> read_into(std::string_view suffix, const WholeRange& range, std::int32_t& field) const {
    OCTAVO_TRY(field, read_whole(header_, key(suffix), range));
    return {};
  }

  // Zeros are what converters write of models without experts.
  Result<ExpertConfig> read_none() const {
    if (parts().use == ExpertUse::kAlways) return damaged("expert_count", "is 0 or missing");
    for (const std::string_view suffix : {"expert_count", "expert_used_count", "expert_shared_count"}) {
      OCTAVO_TRY(const auto value, header_.find<std::uint64_t>(key(suffix)));
      if (value && *value != 0) return not_computed(suffix);
    }
    return ExpertConfig();
  }

  Result<void> read_layers() {
    std::int32_t num_dense = 0, step = 1;
    if (parts().layers == ExpertLayers::kBehindDense) {
      OCTAVO_TRY_VOID(read_into(kDenseKey, {0, context_.num_layers}, num_dense));
    } else {
      OCTAVO_TRY(const auto dense, header_.find<std::uint64_t>(key(kDenseKey)));
      if (dense && *dense != 0) return not_computed(kDenseKey);
    }
    if (parts().layers == ExpertLayers::kEveryNth) {
      if (!header_.contains(key(kStepKey))) return damaged(kStepKey, "is missing");
      OCTAVO_TRY_VOID(read_into(kStepKey, {1, context_.num_layers}, step));
    } else {
      OCTAVO_TRY(const auto given, header_.find<std::uint64_t>(key(kStepKey)));
      if (given && *given > 1) return not_computed(kStepKey);
    }
    for (std::int32_t layer = 0; layer < context_.num_layers; ++layer)
      config_.layers.push_back(layer >= num_dense && (layer + 1) % step == 0 && may_have_experts(layer));
    // Those that only guess further tokens stand behind the others, and have some.
    OCTAVO_TRY(const auto num_guessing, header_.find<std::uint64_t>(key("nextn_predict_layers")));
    const std::uint64_t num_more = std::min<std::uint64_t>(num_guessing.value_or(0), kMaxLayers);
    config_.layers.insert(config_.layers.end(), static_cast<std::size_t>(num_more), true);
    return {};
  }

  bool may_have_experts(std::int32_t layer) const {
    const std::span<const std::int32_t> lengths = context_.layer_feed_forward_lengths;
    return parts().layers != ExpertLayers::kWithFeedForward || lengths.empty() ||
           lengths[static_cast<std::size_t>(layer)] > 0;
  }

  Result<void> read_length() {
    constexpr std::string_view kSuffix = "expert_feed_forward_length";
    const std::int64_t least = parts().length == ExpertLength::kOwnKey ? 1 : 0;
    if (header_.contains(key(kSuffix)))
      OCTAVO_TRY_VOID(read_into(kSuffix, {least, kMaxFeedForwardLength}, config_.expert_length));
    if (config_.expert_length > 0) return {};
    if (context_.feed_forward_length < 1) return damaged(kSuffix, "is missing");
    switch (parts().length) {
      case ExpertLength::kOwnKey: break;
      case ExpertLength::kFeedForward: config_.expert_length = context_.feed_forward_length; break;
      case ExpertLength::kFeedForwardPerUsed:
        config_.expert_length = context_.feed_forward_length / config_.num_used;
        break;
    }
    if (config_.expert_length < 1) return damaged(kSuffix, "is missing");
    return {};
  }

  Result<void> read_shared_length() {
    if (parts().stand_beside_dense) {
      config_.shared_length = context_.feed_forward_length;
      const bool is_possible = config_.shared_length >= 1 && config_.shared_length <= kMaxFeedForwardLength;
      return is_possible
                 ? Result<void>()
                 : damaged("feed_forward_length", "is " + std::to_string(config_.shared_length) + "; 1 to " +
                                                      std::to_string(kMaxFeedForwardLength) + " is allowed");
    }
    constexpr std::string_view kLength = "expert_shared_feed_forward_length";
    if (parts().shared == SharedExpert::kAsWide) {
      config_.shared_length = config_.expert_length;
      return {};
    }
    if (parts().shared == SharedExpert::kCounted) {
      std::int32_t count = 0;
      OCTAVO_TRY_VOID(
          read_into("expert_shared_count", {0, kMaxFeedForwardLength / config_.expert_length}, count));
      config_.shared_length = count * config_.expert_length;
      return {};
    }
    OCTAVO_TRY(const auto count, header_.find<std::uint64_t>(key("expert_shared_count")));
    if (parts().shared != SharedExpert::kNone) {
      OCTAVO_TRY_VOID(read_into(kLength, {0, kMaxFeedForwardLength}, config_.shared_length));
      if (parts().shared == SharedExpert::kIfGiven || config_.shared_length > 0) return {};
      config_.shared_length = context_.feed_forward_length;
      return config_.shared_length > 0 ? Result<void>() : damaged(kLength, "is missing");
    }
    if (count && *count != 0) return not_computed("expert_shared_count");
    OCTAVO_TRY(const auto length, header_.find<std::uint64_t>(key(kLength)));
    if (length && *length != 0) return not_computed(kLength);
    return {};
  }

  Result<void> read_latent_length() {
    constexpr std::string_view kSuffix = "moe_latent_size";
    OCTAVO_TRY_VOID(read_into(kSuffix, {0, kMaxEmbeddingLength}, config_.latent_length));
    if (config_.latent_length > 0 && !parts().has_latent_rows) return not_computed(kSuffix);
    return {};
  }

  Result<void> read_groups() {
    OCTAVO_TRY_VOID(read_into("expert_group_count", {0, config_.num_experts}, config_.num_groups));
    if (config_.num_groups <= 1) {
      config_.num_groups = 1;
      return {};
    }
    const std::int32_t size = config_.num_experts / config_.num_groups;
    if (config_.num_experts % config_.num_groups != 0 || size < 2) {
      return damaged("expert_group_count", "is " + std::to_string(config_.num_groups) +
                                               ", which does not make groups of two or more of the " +
                                               std::to_string(config_.num_experts) + " experts");
    }
    const std::int32_t least = (config_.num_used + size - 1) / size;
    return read_into("expert_group_used_count", {least, config_.num_groups}, config_.num_used_groups);
  }

  Result<void> read_scoring() {
    constexpr std::string_view kSuffix = "expert_gating_func";
    config_.scoring = parts().scoring;
    OCTAVO_TRY(const auto number, header_.find<std::uint64_t>(key(kSuffix)));
    if (!number || *number == 0 || *number == number_of(parts().scoring)) return {};
    if (!parts().reads_weights) return not_computed(kSuffix);
    switch (*number) {
      case kSoftmaxNumber: config_.scoring = RouterScoring::kSoftmax; return {};
      case kSigmoidNumber: config_.scoring = RouterScoring::kSigmoid; return {};
      case kSoftmaxOfSelectedNumber: config_.scoring = RouterScoring::kSoftmaxOfSelected; return {};
      default: return not_computed(kSuffix);
    }
  }

  Result<void> read_weights() {
    config_.normalises_weights = parts().normalises_weights;
    OCTAVO_TRY(const auto normalises, header_.find<bool>(key("expert_weights_norm")));
    // Of a family that does not read it llama.cpp saves what its structures hold (model_config.cc).
    const bool is_said = parts().reads_weights || !context_.is_saved_by_llama_cpp;
    if (normalises && is_said && *normalises != parts().normalises_weights) {
      if (!parts().reads_weights) return not_computed("expert_weights_norm");
      config_.normalises_weights = *normalises;
    }
    constexpr std::string_view kScale = "expert_weights_scale";
    OCTAVO_TRY(const auto scale, header_.find<float>(key(kScale)));
    if (!scale || *scale == 0.0f || *scale == 1.0f) return {};
    if (!parts().reads_weights) return not_computed(kScale);
    if (!(*scale >= static_cast<float>(kMinFactor) &&
          *scale <= static_cast<float>(kMaxFactor))) {  // also NaN
      return damaged(kScale, "is " + std::to_string(*scale) + ", by which nothing can be multiplied");
    }
    config_.weights_scale = *scale;
    return {};
  }

  const Metadata& header_;
  const ExpertContext& context_;
  ExpertConfig config_;
};

}  // namespace

Result<ExpertConfig> read_expert_config(const Metadata& header, const ExpertContext& context) {
  return ExpertReader(header, context).read();
}

}  // namespace octavo::model
