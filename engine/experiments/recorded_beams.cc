#include "engine/experiments/recorded_beams.h"

#include <vector>

#include "engine/base/check.h"

namespace octavo::paper {
namespace {

class RecordedReplay final : public BeamSearch {
 public:
  explicit RecordedReplay(const RecordedSearch& search) : search_(search) {}

  std::vector<std::size_t> next_parents() override {
    const auto width = static_cast<std::size_t>(search_.width);
    if (next_ == search_.parents.size()) next_ = width;  // its second step
    std::vector<std::size_t> parents;
    for (const char digit : search_.parents.substr(next_, width))
      parents.push_back(static_cast<std::size_t>(digit - '0'));
    next_ += width;
    return parents;
  }

 private:
  const RecordedSearch& search_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<BeamSearch> DefaultModelBeams::start(std::uint64_t request) const {
  std::vector<const RecordedSearch*> of_width;
  for (const RecordedSearch& search : kRecordedSearches) {
    if (search.width == width_) of_width.push_back(&search);
  }
  OCTAVO_CHECK(!of_width.empty(), "no search of width %d was recorded", width_);
  return std::make_unique<RecordedReplay>(*of_width[request % of_width.size()]);
}

}  // namespace octavo::paper
