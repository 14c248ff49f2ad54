// Which beam continues which: all that a beam search means to memory.
//
// As in the paper's workload, lengths are fixed: no beam ends before its request does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace octavo::paper {

// One request's search.
class BeamSearch {
 public:
  virtual ~BeamSearch() = default;

  // The next step's beams, best first: each entry is the index of the beam, in the order of the step before,
  // that it continues. Before the first step there is one beam, 0.
  virtual std::vector<std::size_t> next_parents() = 0;
};

class BeamSearches {
 public:
  virtual ~BeamSearches() = default;

  // The search reads from this object, which outlives it.
  virtual std::unique_ptr<BeamSearch> start(std::uint64_t request) const = 0;
};

}  // namespace octavo::paper
