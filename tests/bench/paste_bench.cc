// What a pasted text does to those who are being answered:
//   octavo_paste_bench
// Two chats decode. Meanwhile texts are pasted: as a chat message and as a raw prompt, one that can never fit
// (30 MiB of words, of one letter, of spaces), and one that may (as many bytes of words as the context's
// tokens could hold). For each: ms from its submission to its refusal, and the longest gap between two tokens
// of the others from its submission on until 200 ms after its end, beside the longest in 2 s without a paste.
// The paste is cancelled in one more case, as soon as it was submitted: ms until its end.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/engine.h"
#include "tests/support/model_files.h"

namespace octavo {
namespace {

constexpr std::int64_t kMillisecond = 1'000, kSecond = 1'000'000;

std::string repeated(const std::string& part, std::size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += part;
  return text;
}

GenerationRequest decoding_request(const char* prompt) {
  return {.prompt = TextPrompt{prompt},
          .sampling = {.temperature = 0.0, .max_tokens = 6'000, .ignore_eos = true}};
}

class Bench {
 public:
  explicit Bench(Engine& engine) : engine_(engine) {}

  // Two answers that go on while this object lives.
  void start() {
    for (const char* prompt : {"Once upon a time", "The history of bread"}) {
      decoding_.push_back(engine_.submit(decoding_request(prompt)));
    }
    watch(clock_.now_us() + kSecond, {});
  }
  void stop() {
    for (const RequestId id : decoding_) engine_.cancel(id);
    watch(clock_.now_us() + kSecond, {});
    decoding_.clear();
    told_us_.clear();
  }

  double longest_gap_alone_ms() {
    longest_gap_us_ = 0;
    watch(clock_.now_us() + 2 * kSecond, {});
    return static_cast<double>(longest_gap_us_) / kMillisecond;
  }

  void paste(const char* what, Prompt prompt, bool is_cancelled = false) {
    longest_gap_us_ = 0;
    ended_us_.reset();
    sentence_.clear();
    const std::int64_t begin_us = clock_.now_us();
    const RequestId id = engine_.submit({.prompt = std::move(prompt), .sampling = {.max_tokens = 1}});
    if (is_cancelled) engine_.cancel(id);
    watch(begin_us + 60 * kSecond, id);
    const std::int64_t end_us = ended_us_.value_or(clock_.now_us());
    watch(end_us + 200 * kMillisecond, {});
    std::printf("%-44s %8.0f ms to its end, longest gap of the others %5.1f ms%s%s\n", what,
                static_cast<double>(end_us - begin_us) / kMillisecond,
                static_cast<double>(longest_gap_us_) / kMillisecond, sentence_.empty() ? "" : "\n    ",
                sentence_.c_str());
  }

 private:
  // Until the time, or the end of `awaited`.
  void watch(std::int64_t until_us, std::optional<RequestId> awaited) {
    while (clock_.now_us() < until_us && !(awaited && ended_us_)) {
      for (const EngineEvent& event : engine_.poll(std::chrono::milliseconds(5))) note(event, awaited);
    }
  }

  void note(const EngineEvent& event, std::optional<RequestId> awaited) {
    const RequestId id = request_id_of(event);
    const std::int64_t now_us = clock_.now_us();
    if (const auto* failed = std::get_if<RequestFailed>(&event)) sentence_ = failed->error.message;
    const bool is_end =
        std::holds_alternative<RequestFailed>(event) || std::holds_alternative<RequestFinished>(event);
    if (is_end && id == awaited) ended_us_ = now_us;
    if (!std::holds_alternative<TokensGenerated>(event) || std::ranges::count(decoding_, id) == 0) return;
    if (const auto told = told_us_.find(id); told != told_us_.end()) {
      longest_gap_us_ = std::max(longest_gap_us_, now_us - told->second);
    }
    told_us_[id] = now_us;
  }

  Engine& engine_;
  const SteadyClock clock_;
  std::vector<RequestId> decoding_;
  std::map<RequestId, std::int64_t> told_us_;  // the newest token of each
  std::int64_t longest_gap_us_ = 0;
  std::optional<std::int64_t> ended_us_;
  std::string sentence_;
};

int run() {
  if (const std::string missing = test::missing_default_model(); !missing.empty()) {
    std::fprintf(stderr, "octavo_paste_bench: %s\n", missing.c_str());
    return 1;
  }
  EngineOptions options;
  options.model = model::default_model_path().string();
  auto engine = Engine::create(options);
  if (!engine) {
    std::fprintf(stderr, "octavo_paste_bench: %s\n", engine.error().message.c_str());
    return 1;
  }
  const tokenizer::Tokenizer& tokenizer = (*engine)->tokenizer();
  std::size_t longest_bytes = 0;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.is_special(id)) longest_bytes = std::max(longest_bytes, tokenizer.token_bytes(id).size());
  }
  const std::size_t most_bytes =
      longest_bytes * static_cast<std::size_t>((*engine)->description().max_model_len - 1);
  const std::string words = "What is pasted here is far too long for any context. ";
  constexpr std::size_t kPasted = std::size_t{30} << 20;
  const auto chat = [](std::string text) { return ChatPrompt{{{Role::kUser, std::move(text), {}}}}; };

  struct Case {
    const char* what;
    Prompt prompt;
    bool is_cancelled = false;
  };
  // Made before anything is measured: this thread is the one that looks at the clock.
  std::vector<Case> cases = {
      {"30 MiB of words, chat", chat(repeated(words, kPasted))},
      {"30 MiB of words, raw", TextPrompt{repeated(words, kPasted)}},
      {"30 MiB of one letter, raw", TextPrompt{std::string(kPasted, 'a')}},
      {"30 MiB of spaces, raw", TextPrompt{std::string(kPasted, ' ')}},
      {"words that may fit by their bytes, chat", chat(repeated(words, most_bytes - 2'000))},
      {"the same as one word, raw", TextPrompt{std::string(most_bytes, 'a')}},
      {"the same, cancelled", TextPrompt{std::string(most_bytes, 'a')}, true}};

  Bench bench(**engine);
  bench.start();
  std::printf("longest gap without a paste: %.1f ms\n", bench.longest_gap_alone_ms());
  for (Case& one : cases) bench.paste(one.what, std::move(one.prompt), one.is_cancelled);
  bench.stop();
  return 0;
}

}  // namespace
}  // namespace octavo

int main() { return octavo::run(); }
