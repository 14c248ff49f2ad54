#include "tests/simulation/campaign.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simulation/campaign_state.h"
#include "tests/simulation/draw_script.h"
#include "tests/simulation/isolated.h"
#include "tests/simulation/pipe.h"
#include "tests/simulation/simulation.h"

namespace octavo::simulation {
namespace {

using Time = std::chrono::steady_clock;

constexpr std::uint64_t kSeedsPerOrder = 16;
constexpr std::chrono::seconds kBetweenNotes{5};

double seconds_since(Time::time_point begin) {
  return std::chrono::duration<double>(Time::now() - begin).count();
}

double processor_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What a worker is told to live out, and what it answers for each seed of it, in order.
struct Order {
  std::uint64_t first_seed = 0, num_seeds = 0;
};
struct Answer {
  bool has_problem = false;
  Counts counts;
};

// The other side of a Worker: lives out what it is told to until the pipe is closed.
void work(const FileDescriptor& orders, const FileDescriptor& answers, Mutation mutation) {
  for (Order order; orders.receive(order);) {
    for (std::uint64_t index = 0; index < order.num_seeds; ++index) {
      const Report report = live(draw_script(order.first_seed + index), mutation);
      if (!answers.send(Answer{report.problem.has_value(), report.counts})) return;
    }
  }
}

// A process that lives out seeds.
class Worker {
 public:
  explicit Worker(Mutation mutation) {
    Pipe orders = Pipe::make(), answers = Pipe::make();
    process_ = ::fork();
    if (process_ == 0) {
      ::signal(SIGINT, SIG_IGN);  // the campaign decides when to stop
      ::close(STDERR_FILENO);     // what a life that crashes says is told once, when it is tried again
      orders.write_end.close();
      answers.read_end.close();
      work(orders.read_end, answers.write_end, mutation);
      ::_exit(0);
    }
    orders_ = std::move(orders.write_end);
    answers_ = std::move(answers.read_end);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    ::kill(process_, SIGKILL);  // it keeps nothing that would be lost
    ::waitpid(process_, nullptr, 0);
  }

  bool is_busy() const { return num_answers_ < order_.num_seeds; }
  int answers() const { return answers_.number(); }
  const Order& order() const { return order_; }
  const Counts& counts() const { return counts_; }  // of the order so far
  std::uint64_t seed_under_way() const { return order_.first_seed + num_answers_; }
  // Computed since the last answer.
  double seconds_of_silence() const { return processor_seconds_of(process_) - seconds_at_answer_; }

  void tell(const Order& order) {
    order_ = order;
    num_answers_ = 0;
    counts_ = {};
    seconds_at_answer_ = processor_seconds_of(process_);
    orders_.send(order);
  }

  // False when the seed under way went wrong, or took the process with it: the order is over.
  bool listen() {
    Answer answer;
    const bool heard = answers_.receive(answer);
    if (!heard || answer.has_problem) return false;
    seconds_at_answer_ = processor_seconds_of(process_);
    ++num_answers_;
    add(counts_, answer.counts);
    return true;
  }

 private:
  pid_t process_ = -1;
  FileDescriptor orders_, answers_;
  Order order_;
  std::uint64_t num_answers_ = 0;
  Counts counts_;
  double seconds_at_answer_ = 0.0;
};

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const CampaignState& state, const volatile std::sig_atomic_t* stop)
      : options_(options), stop_(stop), state_(state), next_order_(state.next_seed) {
    end_seed_ = options.num_seeds > ~std::uint64_t{0} - options.first_seed
                    ? ~std::uint64_t{0}
                    : options.first_seed + options.num_seeds;
    for (int job = 0; job < options.jobs; ++job)
      workers_.push_back(std::make_unique<Worker>(options.mutation));
  }

  CampaignReport run() {
    for (auto& worker : workers_) give_order(*worker);
    while (std::ranges::any_of(workers_, &Worker::is_busy,
                               [](const auto& worker) -> const Worker& { return *worker; })) {
      wait();
      note();
    }
    keep_state();
    workers_.clear();
    CampaignReport report{.counts = state_.counts,
                          .next_seed = state_.next_seed,
                          .seconds = seconds_since(begin_),
                          .processor_seconds = processor_seconds_of_children() - processor_seconds_before_,
                          .num_steps = num_steps_,
                          .failure = {},
                          .error = error_};
    if (failing_seed_) report.failure = describe(*failing_seed_);
    return report;
  }

 private:
  bool should_stop() const {
    return failing_seed_ || (stop_ && *stop_ != 0) || steps_before_ + num_steps_ >= options_.num_steps ||
           seconds_since(begin_) >= options_.seconds || !error_.empty();
  }

  void give_order(Worker& worker) {
    if (should_stop() || next_order_ >= end_seed_) return;
    const std::uint64_t num_seeds = std::min(kSeedsPerOrder, end_seed_ - next_order_);
    worker.tell({next_order_, num_seeds});
    next_order_ += num_seeds;
  }

  void wait() {
    std::vector<pollfd> fds;
    std::vector<Worker*> busy;
    for (auto& worker : workers_) {
      if (!worker->is_busy()) continue;
      fds.push_back({worker->answers(), POLLIN, 0});
      busy.push_back(worker.get());
    }
    ::poll(fds.data(), fds.size(), 1000);
    for (std::size_t index = 0; index < busy.size(); ++index) {
      if (fds[index].revents != 0) {
        hear(*busy[index]);
      } else if (busy[index]->seconds_of_silence() > options_.longest_life) {
        fail(*busy[index]);
      }
    }
  }

  void hear(Worker& worker) {
    const Counts before = worker.counts();
    if (!worker.listen()) return fail(worker);
    num_steps_ += worker.counts().steps - before.steps;
    if (worker.is_busy()) return;
    complete(worker);
    give_order(worker);
  }

  // Counted in the order of seeds, so that what is kept is always all seeds up to one.
  void complete(const Worker& worker) {
    done_[worker.order().first_seed] = {worker.order(), worker.counts()};
    for (auto first = done_.begin(); first != done_.end() && first->first == state_.next_seed;
         first = done_.erase(first)) {
      state_.next_seed += first->second.first.num_seeds;
      add(state_.counts, first->second.second);
    }
  }

  void fail(Worker& worker) {
    const std::uint64_t seed = worker.seed_under_way();
    failing_seed_ = std::min(seed, failing_seed_.value_or(seed));
    std::erase_if(workers_, [&](const auto& other) { return other.get() == &worker; });
  }

  Failure describe(std::uint64_t seed) const {
    const Report report = live_isolated(draw_script(seed), options_.mutation, options_.longest_life);
    return {.seed = seed,
            .step = report.step,
            .problem = report.problem.value_or(
                "it went wrong once, and not again: a life depends on more than its seed")};
  }

  void note() {
    if (Time::now() - noted_at_ < kBetweenNotes) return;
    noted_at_ = Time::now();
    keep_state();
    if (!options_.shows_progress) return;
    std::fprintf(stderr, "seed %llu, %lld steps, %.0f steps a minute\n",
                 static_cast<unsigned long long>(state_.next_seed),
                 static_cast<long long>(state_.counts.steps),
                 static_cast<double>(num_steps_) / seconds_since(begin_) * 60.0);
  }

  void keep_state() {
    if (options_.state_file.empty()) return;
    if (auto written = write_campaign_state(options_.state_file, state_); !written)
      error_ = written.error().message;
  }

  const CampaignOptions& options_;
  const volatile std::sig_atomic_t* const stop_;
  const Time::time_point begin_ = Time::now();
  const double processor_seconds_before_ = processor_seconds_of_children();
  Time::time_point noted_at_ = begin_;
  CampaignState state_;
  const std::int64_t steps_before_ = state_.counts.steps;
  std::uint64_t next_order_ = 0, end_seed_ = 0;
  std::map<std::uint64_t, std::pair<Order, Counts>> done_;  // by first seed, not yet part of state_
  std::int64_t num_steps_ = 0;
  std::optional<std::uint64_t> failing_seed_;
  std::string error_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

CampaignReport run_campaign(const CampaignOptions& options, const volatile std::sig_atomic_t* stop) {
  CampaignState state{.program = 0, .next_seed = options.first_seed, .counts = {}};
  if (!options.state_file.empty()) {
    auto read = read_campaign_state(options.state_file, options.first_seed);
    if (!read) return {.counts = {}, .failure = {}, .error = read.error().message};
    state = *std::move(read);
  }
  return Campaign(options, state, stop).run();
}

}  // namespace octavo::simulation
