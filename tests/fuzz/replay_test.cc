// The fuzzing targets without a fuzzer: every file of the corpora, every seed, and a fixed number of changes
// of them from a fixed seed. Any compiler, a few seconds; the millions are tests/long/run fuzz.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/fuzz/target.h"
#include "tests/support/paths.h"

namespace octavo::fuzz {
namespace {

std::vector<Bytes> corpus_of(const Target& target) {
  std::vector<Bytes> inputs = target.seeds();
  const std::filesystem::path folder = test::source_folder() / "tests/fuzz/corpus" / target.name;
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::exists(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

class FuzzReplay : public ::testing::TestWithParam<const Target*> {};

TEST_P(FuzzReplay, KeepsEveryPromise) {
  const Target& target = *GetParam();
  const std::vector<Bytes> corpus = corpus_of(target);
  ASSERT_FALSE(corpus.empty());
  for (const Bytes& input : corpus) target.run(input);
  constexpr std::uint64_t kSeed = 20'250'101;
  const int num_changes = target.name == "load" ? 2'000 : 20'000;
  Random random(kSeed);
  std::vector<Bytes> pool = corpus;
  for (int i = 0; i < num_changes; ++i) {
    Bytes input = pool[random.below(pool.size())];
    target.mutate(input, target.max_size, random, mutate_bytes);
    target.run(input);
    if (random.one_in(20) && pool.size() < 500) pool.push_back(std::move(input));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzReplay,
                         ::testing::Values(&kGgufTarget, &kTokenizerTarget, &kTemplateTarget, &kRequestTarget,
                                           &kLoadTarget, &kHttpTarget, &kCallTarget, &kGrammarTarget,
                                           &kAnswerTarget),
                         [](const auto& info) { return std::string(info.param->name); });

// A mutator that never gets past the first check would test nothing else.
TEST(FuzzMutation, MostChangedFilesStillHaveTheirFormat) {
  Random random(1);
  int num_whole = 0;
  for (int i = 0; i < 2'000; ++i) {
    Bytes input = kLoadTarget.seeds().front();
    kLoadTarget.mutate(input, kLoadTarget.max_size, random, mutate_bytes);
    num_whole += input.size() > 1000 && input[0] == 'G' && input[4] == 3;
  }
  EXPECT_GT(num_whole, 1'000);
}

TEST(FuzzMutation, MostChangedBodiesAreStillJson) {
  for (const Target* const target : {&kCallTarget, &kGrammarTarget}) {
    Random random(1);
    int num_whole = 0;
    for (int i = 0; i < 2'000; ++i) {
      Bytes input = target->seeds().front();
      target->mutate(input, target->max_size, random, mutate_bytes);
      num_whole +=
          nlohmann::json::accept(input.begin() + std::min<std::ptrdiff_t>(1, std::ssize(input)), input.end());
    }
    EXPECT_GT(num_whole, 1'300) << target->name;
  }
}

}  // namespace
}  // namespace octavo::fuzz
