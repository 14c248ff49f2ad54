#include "engine/model/latent_config.h"

#include <string>

#include "engine/model/limits.h"
#include "engine/model/whole_number.h"

namespace octavo::model {
namespace {

constexpr std::string_view kKeyLength = "attention.key_length", kValueLength = "attention.value_length",
                           kHeadKeyLength = "attention.key_length_mla",
                           kHeadValueLength = "attention.value_length_mla",
                           kRotaryDim = "rope.dimension_count";

class LatentReader {
 public:
  LatentReader(const Metadata& header, std::string_view architecture)
      : header_(header), architecture_(architecture) {}

  Result<LatentConfig> read() {
    OCTAVO_TRY_VOID(read_into(kRotaryDim, {2, kMaxHeadDim - 1}, config_.rotary_dim));
    OCTAVO_TRY_VOID(
        read_into("attention.kv_lora_rank", {1, kMaxHeadDim - config_.rotary_dim}, config_.latent_dim));
    OCTAVO_TRY_VOID(read_into("attention.q_lora_rank", {0, kMaxEmbeddingLength}, config_.query_rank));
    const bool names_heads = header_.contains(key(kHeadKeyLength)) || header_.contains(key(kHeadValueLength));
    config_.has_joint_matrix = !names_heads;
    const std::int64_t least = config_.rotary_dim + 1;
    OCTAVO_TRY_VOID(
        read_into(names_heads ? kHeadKeyLength : kKeyLength, {least, kMaxHeadDim}, config_.query_dim));
    OCTAVO_TRY_VOID(
        read_into(names_heads ? kHeadValueLength : kValueLength, {1, kMaxHeadDim}, config_.value_dim));
    if (names_heads) {
      OCTAVO_TRY_VOID(check_kept(kKeyLength, config_.key_dim()));
      OCTAVO_TRY_VOID(check_kept(kValueLength, config_.latent_dim));
    }
    return config_;
  }

 private:
  std::string key(std::string_view suffix) const { return architecture_ + "." + std::string(suffix); }

  Result<void> read_into(std::string_view suffix, const WholeRange& range, std::int32_t& field) const {
    OCTAVO_TRY(field, read_whole(header_, key(suffix), range));
    return {};
  }

  // What a file says of the sizes that are kept follows from others.
  Result<void> check_kept(std::string_view suffix, std::int32_t size) const {
    OCTAVO_TRY(const auto said, header_.find<std::int32_t>(key(suffix)));
    if (!said || *said == size) return {};
    return header_.error_about(key(suffix), ErrorCode::kDamagedFile,
                               "is " + std::to_string(*said) + ", but the ranks make it " +
                                   std::to_string(size) + "; convert the model again");
  }

  const Metadata& header_;
  std::string architecture_;
  LatentConfig config_;
};

}  // namespace

Result<LatentConfig> read_latent_config(const Metadata& header, std::string_view architecture) {
  return LatentReader(header, architecture).read();
}

}  // namespace octavo::model
