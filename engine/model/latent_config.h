// The sizes of multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434), read and held against
// plausible ranges.
//
// Keys, as llama.cpp's converter names them, in attention: kv_lora_rank; q_lora_rank, absent or 0 where
// queries are made from the rows at once; key_length_mla and value_length_mla, a head's sizes, with which
// key_length and value_length are those of what is kept. Files from before 2025-04 know only key_length and
// value_length, which are then a head's, and hold the heads' matrices of keys and values as one, attn_kv_b.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/result.h"
#include "engine/model/metadata.h"

namespace octavo::model {

struct LatentConfig {
  std::int32_t latent_dim =
      0;  // numbers of a token from which keys and values are made; 0: no such attention
  std::int32_t rotary_dim = 0;    // of the key's rotated part, which is kept beside them
  std::int32_t query_rank = 0;    // of queries; 0: they have none
  std::int32_t query_dim = 0;     // of a head: unrotated numbers, then rotary_dim rotated ones
  std::int32_t value_dim = 0;     // of a head
  bool has_joint_matrix = false;  // attn_kv_b instead of attn_k_b and attn_v_b

  std::int32_t key_dim() const { return latent_dim + rotary_dim; }  // of what is kept of a token
  std::int32_t unrotated_dim() const { return query_dim - rotary_dim; }
};

// kDamagedFile: a value that is missing, of the wrong type, out of range, or contradicts another.
Result<LatentConfig> read_latent_config(const Metadata& header, std::string_view architecture);

}  // namespace octavo::model
