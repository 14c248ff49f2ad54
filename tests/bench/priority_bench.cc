// What a person notices of programs that use the same engine:
//   octavo_priority_bench [rounds [clients [threads [prompt tokens]]]]
// (9 rounds, 16 clients, all cores, prompts of 200 random tokens: some minutes)
// Default model. A chat of the person's (a prompt, 64 tokens) on an idle engine, and beside clients that send
// the same again and again: as background requests, and, to show what that is worth, as requests like the
// person's. Rounds in turns, each chat at another moment of the clients' work. Told of each: time to the
// first token and time per later token, medians, and the same over those of the idle engine; what the clients
// got. Beside each time stands the processor's time, which tells on a machine that others use, with one
// thread, what was computed meanwhile. Exit status 1 when a median beside background clients is above 1.3
// times that of the idle engine.

#include <time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/engine.h"
#include "engine/model/model_files.h"

namespace octavo {
namespace {

// By the wall, and what this process has computed.
struct Times {
  double wall_ms = 0.0, processor_ms = 0.0;
  Times operator-(const Times& other) const {
    return {wall_ms - other.wall_ms, processor_ms - other.processor_ms};
  }
};

Times now() {
  timespec processor{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double, std::milli>(wall).count(),
          1e3 * static_cast<double>(processor.tv_sec) + 1e-6 * static_cast<double>(processor.tv_nsec)};
}

constexpr std::int32_t kOutputTokens = 64;
constexpr double kMostRatio = 1.3;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Plan {
  std::int32_t rounds = 9, clients = 16, threads = 0, prompt_tokens = 200;
};

// Prompts that have no start in common.
GenerationRequest random_request(std::int32_t num_prompt_tokens, RequestPriority priority) {
  static std::uint64_t stream = 0;
  ++stream;
  TokenPrompt prompt;
  for (std::int32_t i = 0; i < num_prompt_tokens; ++i) {
    prompt.token_ids.push_back(
        static_cast<TokenId>(1000 + hash_combine(mix64(stream), static_cast<std::uint64_t>(i)) % 40'000));
  }
  GenerationRequest request{.prompt = std::move(prompt)};
  request.sampling = {.temperature = 0.0, .max_tokens = kOutputTokens, .ignore_eos = true};
  request.priority = priority;
  return request;
}

struct Measured {
  std::vector<double> first_token_ms, per_token_ms, clients_tokens_per_s;
  std::vector<double> first_token_processor_ms, per_token_processor_ms;
};

class Bench {
 public:
  explicit Bench(const Plan& plan) : plan_(plan) {
    EngineOptions options;
    options.model = model::default_model_path().string();
    options.device = Device::kCpu;
    options.threads = plan.threads;
    auto engine = Engine::create(options);
    if (!engine) fail(engine.error().message);
    engine_ = *std::move(engine);
    chat();  // warm
  }

  // One chat beside so many clients of this priority, which have been at work for a while.
  void run(std::int32_t num_clients, RequestPriority priority, Measured& measured) {
    priority_ = priority;
    num_clients_ = num_clients;
    num_client_tokens_ = 0;
    for (std::int32_t i = 0; i < num_clients; ++i) send();
    const auto& [first, later] = measured_chat(num_clients > 0);
    measured.first_token_ms.push_back(first.wall_ms);
    measured.first_token_processor_ms.push_back(first.processor_ms);
    measured.per_token_ms.push_back(later.wall_ms / (kOutputTokens - 1));
    measured.per_token_processor_ms.push_back(later.processor_ms / (kOutputTokens - 1));
    measured.clients_tokens_per_s.push_back(tokens_per_s_);
    num_clients_ = 0;
    for (const RequestId id : clients_) engine_->cancel(id);
    while (!clients_.empty()) listen({});
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    std::fprintf(stderr, "octavo_priority_bench: %s\n", why.c_str());
    std::exit(1);
  }

  void send() { clients_.push_back(engine_->submit(random_request(plan_.prompt_tokens, priority_))); }

  std::pair<Times, Times> measured_chat(bool has_clients) {
    static std::uint64_t round = 0;
    if (has_clients) {  // all of them answer, and the moment is any
      const std::int64_t enough = num_clients_ * 8 + static_cast<std::int64_t>(mix64(++round) % 200);
      while (num_client_tokens_ < enough) listen({});
      num_client_tokens_ = 0;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return chat();
  }

  std::pair<Times, Times> chat() {
    const Times begin = now();
    const RequestId id = engine_->submit(random_request(plan_.prompt_tokens, RequestPriority::kInteractive));
    std::vector<Times> tokens;
    while (tokens.size() < static_cast<std::size_t>(kOutputTokens)) {
      const std::int64_t count = listen(id);
      tokens.insert(tokens.end(), static_cast<std::size_t>(count), now());
    }
    tokens_per_s_ = static_cast<double>(num_client_tokens_) / (tokens.back() - begin).wall_ms * 1000.0;
    return {tokens.front() - begin, tokens.back() - tokens.front()};
  }

  // Takes what has happened; clients whose request has ended send the next. Returns the tokens of `chat`.
  std::int64_t listen(RequestId chat) {
    std::int64_t count = 0;
    for (const EngineEvent& event : engine_->poll(std::chrono::milliseconds(100))) {
      const RequestId id = request_id_of(event);
      if (const auto* const failed = std::get_if<RequestFailed>(&event)) fail(failed->error.message);
      if (const auto* const tokens = std::get_if<TokensGenerated>(&event))
        (id == chat ? count : num_client_tokens_) += static_cast<std::int64_t>(tokens->token_ids.size());
      if (std::holds_alternative<RequestFinished>(event) && std::erase(clients_, id) > 0 &&
          std::cmp_less(clients_.size(), num_clients_))
        send();
    }
    return count;
  }

  const Plan plan_;
  std::unique_ptr<Engine> engine_;
  std::vector<RequestId> clients_;
  RequestPriority priority_ = RequestPriority::kBackground;
  std::int32_t num_clients_ = 0;
  std::int64_t num_client_tokens_ = 0;
  double tokens_per_s_ = 0.0;
};

void print_row(const char* name, const Measured& measured, const Measured& idle) {
  const auto print = [](const std::vector<double>& values, const std::vector<double>& of_idle) {
    std::printf(" %8.2f (x %.2f)", median(values), median(values) / median(of_idle));
  };
  std::printf("  %-24s first token", name);
  print(measured.first_token_ms, idle.first_token_ms);
  print(measured.first_token_processor_ms, idle.first_token_processor_ms);
  std::printf("   each later");
  print(measured.per_token_ms, idle.per_token_ms);
  print(measured.per_token_processor_ms, idle.per_token_processor_ms);
  std::printf("   clients %6.1f tokens/s\n", median(measured.clients_tokens_per_s));
}

bool measure(const Plan& plan) {
  Bench bench(plan);
  Measured idle, background, alike;
  for (std::int32_t round = 0; round < plan.rounds; ++round) {
    bench.run(0, RequestPriority::kBackground, idle);
    bench.run(plan.clients, RequestPriority::kBackground, background);
    bench.run(plan.clients, RequestPriority::kInteractive, alike);
  }
  std::printf(
      "a chat of %d + %d tokens beside %d clients, medians of %d, in ms by the wall and of the processor:\n",
      plan.prompt_tokens, kOutputTokens, plan.clients, plan.rounds);
  print_row("idle engine", idle, idle);
  print_row("background clients", background, idle);
  print_row("clients like the person", alike, idle);
  const bool holds = median(background.first_token_ms) <= kMostRatio * median(idle.first_token_ms) &&
                     median(background.per_token_ms) <= kMostRatio * median(idle.per_token_ms);
  std::printf("at most %.1f times an idle engine: %s\n", kMostRatio, holds ? "holds" : "MISSED");
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
  bool is_right = argc <= 5;
  for (int i = 1; i < argc && is_right; ++i) {
    std::int32_t* const values[] = {&plan.rounds, &plan.clients, &plan.threads, &plan.prompt_tokens};
    is_right = octavo::read_number(argv[i], *values[i - 1]);
  }
  if (!is_right) {
    std::fprintf(
        stderr,
        "usage: octavo_priority_bench [rounds [clients [threads [prompt tokens]]]], all at least 1\n");
    return 2;
  }
  return octavo::measure(plan) ? 0 : 1;
}
