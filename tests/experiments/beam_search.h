// Two sources of beam searches: recorded on the real model, and over made-up next-token distributions, to see
// how far the figure depends on the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "engine/base/result.h"
#include "engine/experiments/beam_search.h"

namespace octavo::paper {

// tests/golden/beam_parents.json: the default model's searches from its golden prompts. Requests take them in
// turn, each from its first step; a request that is longer than a record begins the record's second step
// again.
class RecordedBeams final : public BeamSearches {
 public:
  // Fails with a sentence when the file is not such a record, or has no search of this width.
  static Result<RecordedBeams> read(const std::filesystem::path& path, std::int32_t width);

  std::unique_ptr<BeamSearch> start(std::uint64_t request) const override;

 private:
  std::vector<std::vector<std::vector<std::size_t>>> searches_;  // [search][step]: parents
};

// A real search (the best `width` sums of log-probabilities) over invented distributions: at each step, each
// beam's next token has the probabilities of Zipf's law, p(rank) proportional to rank^-s over 1,000 ranks,
// with s uniform between two bounds. Small s: the model hesitates. s = 1: rank 1 has 13 %; s = 2: 61 %; s =
// 4: 92 %; s = 8: 99.6 %.
class ZipfBeams final : public BeamSearches {
 public:
  struct Law {
    double exponent = 1.0;
    double log_total = 0.0;  // of rank^-exponent over all ranks
  };

  ZipfBeams(std::int32_t width, double least_exponent, double most_exponent);

  std::unique_ptr<BeamSearch> start(std::uint64_t request) const override;

 private:
  std::size_t width_;
  std::vector<Law> laws_;
};

}  // namespace octavo::paper
