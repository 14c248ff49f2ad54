// A fuzzing target: what is done with untrusted input, and how such an input is changed into another
// that gets past the first check. The same targets run under libFuzzer (libfuzzer_main.cc) and as a test
// (replay_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Small, and the same everywhere for the same seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1du;
  }
  // REQUIRES: bound > 0
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>((next() >> 11) % bound); }
  bool one_in(std::size_t count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

// Changes bytes without knowing what they mean; at most `max_size` afterwards. libFuzzer's own, or
// mutate_bytes.
using MutateBytes = std::function<void(Bytes& input, std::size_t max_size, Random& random)>;
void mutate_bytes(Bytes& input, std::size_t max_size, Random& random);

struct Target {
  std::string_view name;
  std::size_t max_size;                              // bytes of an input
  void (*run)(std::span<const std::uint8_t> input);  // ends the program when a promise is broken
  void (*mutate)(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes);
  std::vector<Bytes> (*seeds)();  // beside the files of corpus/NAME
};

extern const Target kGgufTarget, kTokenizerTarget, kTemplateTarget, kRequestTarget, kLoadTarget, kHttpTarget,
    kCallTarget, kGrammarTarget, kAnswerTarget;

// Ends the program with a sentence, so that both libFuzzer and a person see what broke.
void require(bool holds, const char* promise);

// ---- for targets whose inputs are text: whole pieces inserted, repeated, taken away, exchanged
void mutate_text(Bytes& input, std::size_t max_size, Random& random,
                 std::span<const std::string_view> dictionary, const MutateBytes& mutate_bytes);

}  // namespace octavo::fuzz
