#include "tests/experiments/beam_search.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "engine/experiments/workload.h"

namespace octavo::paper {
namespace {

using Parents = std::vector<std::size_t>;

// ---- recorded

class Replay final : public BeamSearch {
 public:
  explicit Replay(const std::vector<Parents>& steps) : steps_(steps) {}

  std::vector<std::size_t> next_parents() override {
    if (next_ == steps_.size()) next_ = 1;
    return steps_[next_++];
  }

 private:
  const std::vector<Parents>& steps_;
  std::size_t next_ = 0;
};

Parents parents_of_digits(const std::string& digits) {
  Parents parents;
  for (const char digit : digits) parents.push_back(static_cast<std::size_t>(digit - '0'));
  return parents;
}

// A first step out of one beam, and a second at least, all of `width` beams.
bool is_search(const std::vector<Parents>& steps, std::size_t width) {
  const auto is_step = [&](const Parents& parents) {
    return parents.size() == width && std::ranges::all_of(parents, [&](std::size_t p) { return p < width; });
  };
  return steps.size() >= 2 && std::ranges::all_of(steps, is_step) && steps.front() == Parents(width, 0);
}

// ---- invented

constexpr int kNumRanks = 1'000;
constexpr int kNumExponents = 32;  // between the bounds

double log_total_weight(double exponent) {
  double total = 0.0;
  for (int rank = 1; rank <= kNumRanks; ++rank) total += std::pow(rank, -exponent);
  return std::log(total);
}

class ZipfSearch final : public BeamSearch {
 public:
  ZipfSearch(std::span<const ZipfBeams::Law> laws, std::size_t width, std::uint64_t seed)
      : laws_(laws), width_(width), uniform_(seed) {}

  std::vector<std::size_t> next_parents() override {
    std::vector<std::pair<double, std::size_t>> candidates;  // score, parent
    for (std::size_t beam = 0; beam < scores_.size(); ++beam) {
      const auto& law = laws_[static_cast<std::size_t>(uniform_.next() * static_cast<double>(laws_.size()))];
      for (std::size_t rank = 1; rank <= width_; ++rank) {
        const double logprob = -law.exponent * std::log(static_cast<double>(rank)) - law.log_total;
        candidates.emplace_back(scores_[beam] + logprob, beam);
      }
    }
    std::ranges::stable_sort(candidates, std::greater{}, &std::pair<double, std::size_t>::first);
    scores_.clear();
    Parents parents;
    for (std::size_t i = 0; i < width_; ++i) {
      scores_.push_back(candidates[i].first);
      parents.push_back(candidates[i].second);
    }
    return parents;
  }

 private:
  const std::span<const ZipfBeams::Law> laws_;
  const std::size_t width_;
  UniformStream uniform_;
  std::vector<double> scores_ = {0.0};
};

}  // namespace

Result<RecordedBeams> RecordedBeams::read(const std::filesystem::path& path, std::int32_t width) {
  const auto fail = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument,
                 path.string() + " " + what + ": make it again with make_beam_parents.py"};
  };
  RecordedBeams beams;
  try {
    std::ifstream file(path);
    const nlohmann::json record = nlohmann::json::parse(file);
    for (const auto& search : record.at("searches")) {
      if (search.at("width") != width) continue;
      std::vector<Parents>& steps = beams.searches_.emplace_back();
      for (const std::string digits : search.at("parents")) steps.push_back(parents_of_digits(digits));
    }
  } catch (const nlohmann::json::exception&) {
    return fail("is no record of beam searches");
  }
  const auto is_good = [&](const auto& steps) { return is_search(steps, static_cast<std::size_t>(width)); };
  if (beams.searches_.empty()) return fail("has no search of width " + std::to_string(width));
  if (!std::ranges::all_of(beams.searches_, is_good)) return fail("has a step that no beam search makes");
  return beams;
}

std::unique_ptr<BeamSearch> RecordedBeams::start(std::uint64_t request) const {
  return std::make_unique<Replay>(searches_[request % searches_.size()]);
}

ZipfBeams::ZipfBeams(std::int32_t width, double least_exponent, double most_exponent)
    : width_(static_cast<std::size_t>(width)) {
  for (int i = 0; i < kNumExponents; ++i) {
    const double exponent = least_exponent + (most_exponent - least_exponent) * (i + 0.5) / kNumExponents;
    laws_.push_back({exponent, log_total_weight(exponent)});
  }
}

std::unique_ptr<BeamSearch> ZipfBeams::start(std::uint64_t request) const {
  return std::make_unique<ZipfSearch>(laws_, width_, request);
}

}  // namespace octavo::paper
