// Parts of models that not every backend computes: what a model asks for, and what a backend has. Whatever is
// not named here every backend computes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::kernels {

enum class Feature : std::uint32_t {
  kLayerNorm = 1u << 0,
  kHeadNorms = 1u << 1,  // of queries and keys
  kPostNorms = 1u << 2,  // of what attention and feed-forward layer add
  kGelu = 1u << 3,
  kUngatedFeedForward = 1u << 4,
  kEmbeddingScale = 1u << 5,
  kLearnedPositions = 1u << 6,
  kSoftCaps = 1u << 7,  // of scores or logits
  kSlidingWindow = 1u << 8,
  kLocalRotations = 1u << 9,  // some layers rotate by other angles
};

// Of a backend or a model.
class Features {
 public:
  constexpr Features() = default;
  constexpr explicit Features(std::uint32_t bits) : bits_(bits) {}
  constexpr bool has(Feature feature) const { return (bits_ & static_cast<std::uint32_t>(feature)) != 0; }
  constexpr void add(Feature feature) { bits_ |= static_cast<std::uint32_t>(feature); }

 private:
  std::uint32_t bits_ = 0;
};

inline constexpr Features kEveryFeature{~std::uint32_t{0}};

// The first feature that `wanted` has and `available` has not, in words that follow "does not compute".
// nullopt: none.
inline std::optional<std::string_view> first_missing(Features wanted, Features available) {
  struct Named {
    Feature feature;
    std::string_view name;
  };
  constexpr std::array<Named, 10> kNames = {
      {{Feature::kLayerNorm, "LayerNorm"},
       {Feature::kHeadNorms, "norms of queries and keys"},
       {Feature::kPostNorms, "norms behind attention and feed-forward layer"},
       {Feature::kGelu, "GELU"},
       {Feature::kUngatedFeedForward, "feed-forward layers without a gate"},
       {Feature::kEmbeddingScale, "a scaled embedding"},
       {Feature::kLearnedPositions, "learned positions"},
       {Feature::kSoftCaps, "soft caps"},
       {Feature::kSlidingWindow, "sliding windows"},
       {Feature::kLocalRotations, "rotations that differ by layer"}}};
  for (const Named& named : kNames) {
    if (wanted.has(named.feature) && !available.has(named.feature)) return named.name;
  }
  return std::nullopt;
}

}  // namespace octavo::kernels
