// Beam searches of a real model: which beam continued which, 512 steps each, from the golden prompts of the
// default model (SmolLM2-135M-Instruct), end-of-text barred. The memory that beams share depends on that
// alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/experiments/beam_search.h"

namespace octavo::paper {

struct RecordedSearch {
  std::int32_t width;
  std::string_view parents;  // `width` digits a step
};
inline constexpr std::size_t kNumRecordedSearches = 18;  // six each of width 2, 4 and 6
extern const std::array<RecordedSearch, kNumRecordedSearches> kRecordedSearches;

// Requests take the searches of a width in turn, each from its first step; a request that is longer than a
// record begins the record's second step again.
class DefaultModelBeams final : public BeamSearches {
 public:
  // REQUIRES: width is 2, 4 or 6.
  explicit DefaultModelBeams(std::int32_t width) : width_(width) {}

  std::unique_ptr<BeamSearch> start(std::uint64_t request) const override;

 private:
  std::int32_t width_;
};

}  // namespace octavo::paper
