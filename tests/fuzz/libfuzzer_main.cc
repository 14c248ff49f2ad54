// One target as a libFuzzer program; OCTAVO_FUZZ_TARGET names it.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

const octavo::fuzz::Target& target() { return octavo::fuzz::OCTAVO_FUZZ_TARGET; }

void mutate_as_libfuzzer(octavo::fuzz::Bytes& input, std::size_t max_size, octavo::fuzz::Random&) {
  const std::size_t size = std::min(input.size(), max_size);
  input.resize(max_size);
  input.resize(LLVMFuzzerMutate(input.data(), size, max_size));
}

}  // namespace

// Before the options that were given, so that -max_len there counts.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static std::string longest = "-max_len=" + std::to_string(target().max_size);
  static std::vector<char*> words(*argv, *argv + *argc);
  words.insert(words.begin() + 1, longest.data());
  *argc = static_cast<int>(words.size());
  *argv = words.data();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().run({data, size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  octavo::fuzz::Bytes input(data, data + size);
  octavo::fuzz::Random random(seed);
  target().mutate(input, max_size, random, mutate_as_libfuzzer);
  if (input.size() > max_size) input.resize(max_size);
  std::copy(input.begin(), input.end(), data);
  return input.size();
}
