// How long others wait while a long prompt is computed beside them, and what that costs the prompt:
//   octavo_gap_bench [rounds [target_ms [threads [prompt tokens [chats]]]]]
// (3 rounds of the default target, and all of the others: half an hour to two hours on two cores)
// Default model, 1 and 2 threads, prompts of 2,000 and 7,000 random tokens, 1 and 16 chats that generate. For
// each the gaps between a chat's tokens from the prompt's submission to its first token, beside the time of
// the prompt: with the target and without one (large chunks), in turns. Told of each: gaps at the 50th and
// 99th percentile and the longest, of all rounds; medians of the prompt's time and of the chats' tokens a
// second; the prompt's time over that with large chunks, round by round. With one chat two bars are judged:
// 150 ms at the 99th percentile, and 1.05 of the prompt's time. With 16 the first only: every step carries 16
// rows that are not the prompt's, and smaller steps are more of them. Exit status 1 when a bar is missed.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/engine.h"
#include "engine/model/model_files.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int32_t kChatPromptTokens = 32;
constexpr std::int32_t kTokensBefore = 16;  // of each chat, until the prompt comes
constexpr double kMostGapMs = 150.0, kMostSlowdown = 1.05;

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

double median(const std::vector<double>& values) { return percentile(values, 0.5); }

// Prompts that have no start in common.
GenerationRequest random_request(std::int32_t num_prompt_tokens, std::int32_t max_tokens) {
  static std::uint64_t stream = 0;
  ++stream;
  TokenPrompt prompt;
  for (std::int32_t i = 0; i < num_prompt_tokens; ++i) {
    prompt.token_ids.push_back(
        static_cast<TokenId>(1000 + hash_combine(mix64(stream), static_cast<std::uint64_t>(i)) % 40'000));
  }
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = {.temperature = 0.0, .max_tokens = max_tokens, .ignore_eos = true};
  return request;
}

struct Shape {
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_chats = 0;
};

// What rounds of one shape with one target came to.
struct Measured {
  std::vector<double> gaps_ms, prompt_s, tokens_per_s;
};

class Bench {
 public:
  Bench(std::int32_t threads, std::int32_t target_ms) {
    EngineOptions options;
    options.model = model::default_model_path().string();
    options.device = Device::kCpu;
    options.threads = threads;
    options.num_kv_blocks = 2048;
    options.enable_prefix_caching = false;
    options.target_step_ms = target_ms;
    auto engine = Engine::create(options);
    if (!engine) {
      std::fprintf(stderr, "octavo_gap_bench: %s\n", engine.error().message.c_str());
      std::exit(1);
    }
    engine_ = *std::move(engine);
    Measured warm_up;
    run({.num_prompt_tokens = 600, .num_chats = 1}, warm_up);
  }

  void run(const Shape& shape, Measured& measured) {
    chats_.clear();
    for (std::int32_t chat = 0; chat < shape.num_chats; ++chat) {
      chats_[engine_->submit(random_request(kChatPromptTokens, 7000))] = {};
    }
    const auto is_under_way = [](const auto& chat) { return chat.second.num_tokens >= kTokensBefore; };
    while (!std::ranges::all_of(chats_, is_under_way)) listen({}, nullptr);
    for (auto& [request_id, chat] : chats_) chat.num_tokens = 0;
    const Clock::time_point begin = Clock::now();
    const RequestId prompt = engine_->submit(random_request(shape.num_prompt_tokens, 1));
    while (!listen(prompt, &measured.gaps_ms)) {
    }
    const double seconds = ms_between(begin, Clock::now()) / 1000.0;
    std::int64_t num_tokens = 0;
    for (const auto& [request_id, chat] : chats_) num_tokens += chat.num_tokens;
    measured.prompt_s.push_back(seconds);
    measured.tokens_per_s.push_back(static_cast<double>(num_tokens) / seconds);
    for (const auto& [request_id, chat] : chats_) engine_->cancel(request_id);
    while (!chats_.empty()) listen({}, nullptr);
  }

 private:
  struct Chat {
    std::int64_t num_tokens = 0;
    Clock::time_point last_token;
  };

  // Takes what has happened; true when `prompt` has its first token. Gaps go to `gaps_ms`, if any.
  bool listen(RequestId prompt, std::vector<double>* gaps_ms) {
    bool has_token = false;
    const auto events = engine_->poll(std::chrono::milliseconds(100));
    const Clock::time_point now = Clock::now();
    for (const EngineEvent& event : events) {
      const RequestId request_id = request_id_of(event);
      if (std::holds_alternative<RequestFailed>(event)) {
        std::fprintf(stderr, "octavo_gap_bench: %s\n", std::get<RequestFailed>(event).error.message.c_str());
        std::exit(1);
      }
      if (std::holds_alternative<RequestFinished>(event)) chats_.erase(request_id);
      const auto* tokens = std::get_if<TokensGenerated>(&event);
      if (!tokens) continue;
      has_token |= request_id == prompt;
      const auto chat = chats_.find(request_id);
      if (chat == chats_.end()) continue;
      if (gaps_ms && chat->second.last_token != Clock::time_point{})
        gaps_ms->push_back(ms_between(chat->second.last_token, now));
      chat->second.last_token = now;
      chat->second.num_tokens += static_cast<std::int64_t>(tokens->token_ids.size());
    }
    return has_token;
  }

  std::unique_ptr<Engine> engine_;
  std::map<RequestId, Chat> chats_;
};

void print_row(const char* name, const Measured& measured) {
  std::printf("  %-12s gaps %6.0f %6.0f %6.0f ms   prompt %6.2f s   chats %6.1f tokens/s\n", name,
              percentile(measured.gaps_ms, 0.5), percentile(measured.gaps_ms, 0.99),
              percentile(measured.gaps_ms, 1.0), median(measured.prompt_s), median(measured.tokens_per_s));
}

struct Plan {
  std::int32_t rounds = 3, target_ms = EngineOptions{}.target_step_ms;
  std::vector<std::int32_t> threads = {1, 2}, prompt_tokens = {2000, 7000}, chats = {1, 16};
};

bool measure(std::int32_t threads, const Plan& plan) {
  const auto [rounds, target_ms] = std::pair(plan.rounds, plan.target_ms);
  Bench with_target(threads, target_ms), without(threads, 0);
  bool holds = true;
  for (const std::int32_t num_prompt_tokens : plan.prompt_tokens) {
    for (const std::int32_t num_chats : plan.chats) {
      const Shape shape{num_prompt_tokens, num_chats};
      Measured limited, free;
      std::vector<double> slowdowns;
      for (std::int32_t round = 0; round < rounds; ++round) {
        without.run(shape, free);
        with_target.run(shape, limited);
        slowdowns.push_back(limited.prompt_s.back() / free.prompt_s.back());
      }
      const double slowdown = median(slowdowns), gap_ms = percentile(limited.gaps_ms, 0.99);
      const bool is_quick = gap_ms <= kMostGapMs, is_cheap = num_chats > 1 || slowdown <= kMostSlowdown;
      holds &= is_quick && is_cheap;
      std::printf("%d thread%s, prompt of %d tokens, %d chat%s (50th and 99th percentile, longest):\n",
                  threads, threads > 1 ? "s" : "", num_prompt_tokens, num_chats, num_chats > 1 ? "s" : "");
      print_row("large chunks", free);
      print_row((std::to_string(target_ms) + " ms").c_str(), limited);
      std::printf("  prompt x %.3f; gaps %s%s\n", slowdown, is_quick ? "hold" : "MISSED",
                  num_chats > 1 ? ""
                  : is_cheap    ? ", prompt holds"
                                : ", prompt MISSED");
      std::fflush(stdout);
    }
  }
  return holds;
}

bool read_number(std::string_view text, std::int32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Plan plan;
  bool is_right = argc <= 6;
  for (int i = 1; i < argc && is_right; ++i) {
    std::int32_t value = 0;
    is_right = octavo::read_number(argv[i], value);
    if (i == 1) plan.rounds = value;
    if (i == 2) plan.target_ms = value;
    if (i == 3) plan.threads = {value};
    if (i == 4) plan.prompt_tokens = {value};
    if (i == 5) plan.chats = {value};
  }
  if (!is_right) {
    std::fprintf(
        stderr,
        "usage: octavo_gap_bench [rounds [target_ms [threads [prompt tokens [chats]]]]], all at least 1\n");
    return 2;
  }
  bool holds = true;
  for (const std::int32_t threads : plan.threads) holds &= octavo::measure(threads, plan);
  return holds ? 0 : 1;
}
