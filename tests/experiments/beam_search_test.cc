#include "tests/experiments/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/experiments/experiment_data.h"
#include "tests/support/temporary_folder.h"

namespace octavo::paper {
namespace {

using Parents = std::vector<std::size_t>;

TEST(RecordedBeams, BeginsAgainAfterTheFirstStep) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "beams.json";
  std::ofstream(path)
      << R"({"searches":[{"width":2,"parents":["00","10","11"]},{"width":3,"parents":["000","210"]}]})";
  const auto beams = RecordedBeams::read(path, 2);
  ASSERT_TRUE(beams.has_value());
  const auto search = beams->start(1);
  for (const Parents& parents : {Parents{0, 0}, Parents{1, 0}, Parents{1, 1}, Parents{1, 0}, Parents{1, 1}}) {
    EXPECT_EQ(search->next_parents(), parents);
  }
}

TEST(RecordedBeams, RefusesWhatNoBeamSearchMakes) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "beams.json";
  for (const char* text : {"", "{}", R"({"searches":[]})", R"({"searches":[{"width":2,"parents":["00"]}]})",
                           R"({"searches":[{"width":2,"parents":["01","01"]}]})",
                           R"({"searches":[{"width":2,"parents":["00","02"]}]})",
                           R"({"searches":[{"width":2,"parents":["00","0"]}]})",
                           R"({"searches":[{"width":2,"parents":["00",1]}]})"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(RecordedBeams::read(path, 2).has_value()) << text;
  }
}

TEST(RecordedBeams, HoldSearchesOfTheRealModelForThePapersWidths) {
  for (const std::int32_t width : {2, 4, 6}) {
    const RecordedBeams beams = recorded_beams(width);
    const auto search = beams.start(0);
    EXPECT_EQ(search->next_parents(), Parents(static_cast<std::size_t>(width), 0));
  }
}

int num_dropped(const ZipfBeams& beams) {
  const auto search = beams.start(1);
  EXPECT_EQ(search->next_parents(), Parents(4, 0));
  int dropped = 0;
  for (int step = 0; step < 1'000; ++step) {
    const Parents parents = search->next_parents();
    EXPECT_EQ(parents.size(), 4u);
    for (std::size_t beam = 0; beam < 4; ++beam) dropped += std::ranges::count(parents, beam) == 0 ? 1 : 0;
  }
  return dropped;
}

// A sure model has one continuation for each beam, and a rival of low score overtakes rarely.
TEST(ZipfBeams, DropMoreBeamsTheMoreTheModelHesitates) {
  const int hesitating = num_dropped(ZipfBeams(4, 0.5, 1.5));
  const int sure = num_dropped(ZipfBeams(4, 4.0, 8.0));
  EXPECT_GT(sure, 0);
  EXPECT_LT(2 * sure, hesitating);
}

}  // namespace
}  // namespace octavo::paper
