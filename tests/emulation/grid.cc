#include "tests/emulation/grid.h"

#include <emulated_hardware.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tests/emulation/fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace octavo::emulation {
namespace {

enum class State : std::uint8_t { kReady, kAtBarrier, kWithWarp, kEnded };

struct AsyncCopy {
  void* shared;
  const void* global;
  bool valid;
};

struct Thread {
  Fiber fiber;
  State state = State::kReady;
  uint3 index{};
  unsigned number = 0;  // in the block
  // Where it waits.
  const char* file = nullptr;
  int line = 0;
  int predicate = 0;
  bool has_awaited = false;
  // Copies that are not done yet: groups, the last one open.
  std::vector<std::vector<AsyncCopy>> copies;
};

// Lanes that wait for others of their mask.
struct Meeting {
  unsigned mask = 0, arrived = 0;
  Combine combine = nullptr;
  void* lanes[32] = {};
};

struct Warp {
  std::vector<Meeting> meetings;
};

std::string at(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) +
         ")";
}

void copy_now(const AsyncCopy& copy) {
  if (copy.valid) {
    std::memcpy(copy.shared, copy.global, 16);
  } else {
    std::memset(copy.shared, 0, 16);
  }
}

// The block that runs.
class Block {
 public:
  void run(const GridShape& shape, const std::function<void()>& thread, ThreadOrder order);

  Thread& current() { return *current_; }
  ThreadOrder order() const { return order_; }
  std::byte* shared() const { return shared_.get(); }
  int barrier_count() const { return barrier_count_; }
  const std::string& violation() const { return violation_; }
  void forget_violation() { violation_.clear(); }

  void meet(unsigned mask, Combine combine, void* argument);
  [[noreturn]] void stop(const std::string& violation);  // from a thread
  void add_violation(const std::string& violation) {
    if (violation_.empty())
      violation_ = violation + " in block " + at(blockIdx) + ", thread " + at(threadIdx);
  }

 private:
  void prepare(const GridShape& shape);
  void run_thread(Thread& thread);
  void run_warp(std::size_t warp);
  void pass_barrier();
  std::size_t in_order(std::size_t index, std::size_t count) const {
    return order_ == ThreadOrder::kAscending ? index : count - 1 - index;
  }

  static void thread_main(void* block) {
    auto& self = *static_cast<Block*>(block);
    (*self.function_)();
    self.current_->state = State::kEnded;
    if (self.awaits_inputs_ && !self.current_->has_awaited)
      self.add_violation("a thread ended that never awaited its inputs");
    self.current_->fiber.give_way();
    std::abort();  // an ended thread was resumed
  }

  std::vector<std::unique_ptr<Thread>> threads_;  // kept between blocks: their stacks are dear
  std::size_t num_threads_ = 0;
  bool awaits_inputs_ = false;
  std::vector<Warp> warps_;
  Thread* current_ = nullptr;
  const std::function<void()>* function_ = nullptr;
  ThreadOrder order_ = ThreadOrder::kAscending;
  int barrier_count_ = 0;
  std::string violation_;

  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(128)); }
  };
  std::unique_ptr<std::byte[], Free> shared_;
  std::size_t shared_capacity_ = 0;
};

Block& the_block() {
  static Block block;
  return block;
}

void Block::prepare(const GridShape& shape) {
  num_threads_ = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  awaits_inputs_ = shape.awaits_inputs;
  while (threads_.size() < num_threads_) threads_.push_back(std::make_unique<Thread>());
  warps_.assign((num_threads_ + 31) / 32, {});
  if (shape.shared_bytes > shared_capacity_ || shared_ == nullptr) {
    shared_capacity_ = std::max<std::size_t>(shape.shared_bytes, 16);
    shared_.reset(static_cast<std::byte*>(::operator new[](shared_capacity_, std::align_val_t(128))));
  }
  std::memset(shared_.get(), 0xff, shared_capacity_);  // a NaN in every type
  for (std::size_t i = 0; i < num_threads_; ++i) {
    Thread& thread = *threads_[i];
    const auto number = static_cast<unsigned>(i);
    thread.number = number;
    thread.index = {number % shape.block.x, number / shape.block.x % shape.block.y,
                    number / shape.block.x / shape.block.y};
    thread.state = State::kReady;
    thread.copies.assign(1, {});
    thread.has_awaited = false;
    thread.fiber.start(&thread_main, this);
  }
}

void Block::run_thread(Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
  thread.fiber.resume();
}

// Until no lane can go on.
void Block::run_warp(std::size_t warp) {
  const std::size_t first = warp * 32, count = std::min<std::size_t>(32, num_threads_ - first);
  for (bool any = true; any && violation_.empty();) {
    any = false;
    for (std::size_t i = 0; i < count && violation_.empty(); ++i) {
      Thread& thread = *threads_[first + in_order(i, count)];
      if (thread.state != State::kReady) continue;
      run_thread(thread);
      any = true;
    }
  }
}

void Block::run(const GridShape& shape, const std::function<void()>& function, ThreadOrder order) {
  function_ = &function;
  order_ = order;
  prepare(shape);
  for (;;) {
    for (std::size_t i = 0; i < warps_.size() && violation_.empty(); ++i)
      run_warp(in_order(i, warps_.size()));
    if (!violation_.empty()) return;
    std::size_t num_ended = 0;
    for (std::size_t i = 0; i < num_threads_; ++i) num_ended += threads_[i]->state == State::kEnded;
    if (num_ended == num_threads_) return;
    pass_barrier();
    if (!violation_.empty()) return;
  }
}

// Nobody can go on: all must wait at one barrier.
void Block::pass_barrier() {
  const Thread* first = nullptr;
  barrier_count_ = 0;
  for (std::size_t i = 0; i < num_threads_; ++i) {
    threadIdx = threads_[i]->index;
    if (threads_[i]->state == State::kWithWarp) {
      return add_violation("lanes wait for others of their mask that do not come");
    }
  }
  for (std::size_t i = 0; i < num_threads_; ++i) {
    Thread& thread = *threads_[i];
    threadIdx = thread.index;
    if (thread.state == State::kEnded) return add_violation("a thread ended while others wait at a barrier");
    if (first == nullptr) first = &thread;
    if (thread.line != first->line || std::strcmp(thread.file, first->file) != 0) {
      return add_violation(std::string("threads wait at different barriers: ") + first->file + ":" +
                           std::to_string(first->line) + " and " + thread.file + ":" +
                           std::to_string(thread.line));
    }
    barrier_count_ += thread.predicate != 0;
  }
  for (std::size_t i = 0; i < num_threads_; ++i) threads_[i]->state = State::kReady;
}

void Block::stop(const std::string& violation) {
  add_violation(violation);
  current_->state = State::kEnded;
  current_->fiber.give_way();
  std::abort();
}

void Block::meet(unsigned mask, Combine combine, void* argument) {
  Thread& thread = *current_;
  const unsigned lane = thread.number % 32;
  if ((mask >> lane & 1u) == 0) stop("a lane is not in the mask that it names");
  std::vector<Meeting>& meetings = warps_[thread.number / 32].meetings;
  Meeting* meeting = nullptr;
  for (Meeting& each : meetings) {
    if (each.mask == mask && each.combine == combine) meeting = &each;
  }
  if (meeting == nullptr) meeting = &meetings.emplace_back(Meeting{mask, 0, combine, {}});
  meeting->arrived |= 1u << lane;
  meeting->lanes[lane] = argument;
  if (meeting->arrived != mask) {
    thread.state = State::kWithWarp;
    thread.fiber.give_way();
    return;
  }
  combine(meeting->lanes, mask);
  const std::size_t first = thread.number / 32 * 32;
  for (unsigned i = 0; i < 32; ++i) {
    if ((mask >> i & 1u) != 0) threads_[first + i]->state = State::kReady;
  }
  meetings.erase(meetings.begin() + (meeting - meetings.data()));
  // Descending, others go first again: nobody may rely on the one that came last going on at once.
  thread.fiber.give_way();
}

// ---- memory that is not there
sigjmp_buf back_to_the_grid;
volatile sig_atomic_t is_running = 0;
const void* volatile bad_address = nullptr;
struct sigaction previous_action;

void on_bad_access(int signal_number, siginfo_t* info, void* context) {
  if (is_running == 0) {
    // Not ours: as it would have been without us.
    ::sigaction(SIGSEGV, &previous_action, nullptr);
    (void)signal_number;
    (void)context;
    return;
  }
  bad_address = info->si_addr;
  siglongjmp(back_to_the_grid, 1);
}

// The handler needs a stack of its own: a fiber's may be what overflowed. One for each thread of the system.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t stack{};
    stack.ss_sp = memory_.data();
    stack.ss_size = memory_.size();
    ::sigaltstack(&stack, &previous_);
  }
  ~HandlerStack() { ::sigaltstack(&previous_, nullptr); }

 private:
  std::array<std::byte, 64 * 1024> memory_;
  stack_t previous_{};
};

void watch_for_bad_accesses() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = &on_bad_access;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGSEGV, &action, &previous_action);
    return true;
  }();
  (void)installed;
}

}  // namespace

std::string run_grid(const GridShape& shape, const std::function<void()>& thread, ThreadOrder order) {
  watch_for_bad_accesses();
  static thread_local const std::unique_ptr<HandlerStack> handler_stack = std::make_unique<HandlerStack>();
  Block& block = the_block();
  block.forget_violation();
  blockDim = shape.block;
  gridDim = shape.grid;
  const std::uint64_t num_blocks = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  is_running = 1;
  if (sigsetjmp(back_to_the_grid, 0) != 0) {
    is_running = 0;
    char address[32];
    std::snprintf(address, sizeof address, "%p", const_cast<const void*>(bad_address));
    block.add_violation(std::string("an address that is not the device's, or not aligned: ") + address);
    return block.violation();
  }
  const std::uint64_t num_run = shape.most_blocks == 0
                                    ? num_blocks
                                    : std::min(std::max<std::uint64_t>(shape.most_blocks, 2), num_blocks);
  for (std::uint64_t i = 0; i < num_run && block.violation().empty(); ++i) {
    const std::uint64_t turn = order == ThreadOrder::kAscending ? i : num_run - 1 - i;
    const std::uint64_t number = num_run == num_blocks ? turn : turn * (num_blocks - 1) / (num_run - 1);
    blockIdx = {static_cast<unsigned>(number % shape.grid.x),
                static_cast<unsigned>(number / shape.grid.x % shape.grid.y),
                static_cast<unsigned>(number / shape.grid.x / shape.grid.y)};
    block.run(shape, thread, order);
  }
  is_running = 0;
  return block.violation();
}

// ---- what kernels call
int barrier(int predicate, const char* file, int line) {
  Thread& thread = the_block().current();
  thread.file = file;
  thread.line = line;
  thread.predicate = predicate;
  thread.state = State::kAtBarrier;
  thread.fiber.give_way();
  return the_block().barrier_count();
}

void warp_collective(unsigned mask, Combine combine, void* argument) {
  the_block().meet(mask, combine, argument);
}

unsigned lane_index() { return the_block().current().number % 32; }

unsigned ballot(unsigned mask, bool predicate) {
  struct Vote {
    bool predicate;
    unsigned result;
  } vote{predicate, 0};
  warp_collective(
      mask,
      [](void* const(&lanes)[32], unsigned) {
        unsigned result = 0;
        for (unsigned i = 0; i < 32; ++i) {
          if (lanes[i] != nullptr && static_cast<Vote*>(lanes[i])->predicate) result |= 1u << i;
        }
        for (void* lane : lanes) {
          if (lane != nullptr) static_cast<Vote*>(lane)->result = result;
        }
      },
      &vote);
  return vote.result;
}

std::byte* dynamic_shared_memory() { return the_block().shared(); }

void copy_async_16(void* shared, const void* global, bool valid) {
  if (reinterpret_cast<std::uintptr_t>(shared) % 16 != 0 ||
      (valid && reinterpret_cast<std::uintptr_t>(global) % 16 != 0)) {
    the_block().stop("an address of copy_async_16 is no multiple of 16");
  }
  const AsyncCopy copy{shared, global, valid};
  if (the_block().order() == ThreadOrder::kDescending) return copy_now(copy);
  the_block().current().copies.back().push_back(copy);
}

void await_inputs() { the_block().current().has_awaited = true; }

void copy_async_commit() { the_block().current().copies.emplace_back(); }

void copy_async_wait(int pending) {
  auto& copies = the_block().current().copies;
  const std::size_t kept = static_cast<std::size_t>(pending) + 1;  // and the open one
  while (copies.size() > kept) {
    for (const AsyncCopy& copy : copies.front()) copy_now(copy);
    copies.erase(copies.begin());
  }
}

namespace {

struct LoadMatrices {
  const void* row;
  std::uint32_t* out;
  int num_matrices;
  bool transposed;
};

void combine_load(void* const (&lanes)[32], unsigned) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const LoadMatrices*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (int matrix = 0; matrix < mine.num_matrices; ++matrix) {
      std::uint16_t pair[2];
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned row = mine.transposed ? 2 * t + i : g, column = mine.transposed ? g : 2 * t + i;
        const auto& owner = *static_cast<const LoadMatrices*>(lanes[static_cast<unsigned>(matrix) * 8 + row]);
        std::memcpy(&pair[i], static_cast<const std::byte*>(owner.row) + 2 * column, 2);
      }
      mine.out[matrix] = pair[0] | static_cast<std::uint32_t>(pair[1]) << 16;
    }
  }
}

struct MultiplyStep {
  float* c;
  const std::uint32_t *a, *b;
  float (*widen)(std::uint16_t);
};

// Products are exact in float; the hardware's order of the 16 sums is its own, and here ascending.
void combine_multiply(void* const (&lanes)[32], unsigned) {
  float a[16][16], b[16][8];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const MultiplyStep*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    const auto part = [&mine](std::uint32_t word, unsigned i) {
      return mine.widen(static_cast<std::uint16_t>(word >> (16 * i)));
    };
    for (unsigned i = 0; i < 2; ++i) {
      a[g][2 * t + i] = part(mine.a[0], i);
      a[g + 8][2 * t + i] = part(mine.a[1], i);
      a[g][2 * t + 8 + i] = part(mine.a[2], i);
      a[g + 8][2 * t + 8 + i] = part(mine.a[3], i);
      b[2 * t + i][g] = part(mine.b[0], i);
      b[2 * t + 8 + i][g] = part(mine.b[1], i);
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    float* const c = static_cast<const MultiplyStep*>(lanes[lane])->c;
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = i < 2 ? g : g + 8, column = 2 * t + i % 2;
      for (unsigned k = 0; k < 16; ++k) c[i] += a[row][k] * b[k][column];
    }
  }
}

struct ByteStep {
  int* sums;
  const std::uint32_t *a, *b;
  const int* c;
  int num_sixteens;
};

// Sums as the hardware's, modulo 2^32. `c` may be `sums`.
void combine_byte_steps(void* const (&lanes)[32], unsigned) {
  int a[16][32] = {}, b[32][8] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const ByteStep*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    const auto byte = [](std::uint32_t word, unsigned i) {
      return static_cast<std::int8_t>(word >> (8 * i));
    };
    for (unsigned i = 0; i < 4; ++i) {
      for (unsigned sixteen = 0; sixteen < static_cast<unsigned>(mine.num_sixteens); ++sixteen) {
        const unsigned k = 16 * sixteen + 4 * t + i;
        a[g][k] = byte(mine.a[2 * sixteen], i);
        a[g + 8][k] = byte(mine.a[2 * sixteen + 1], i);
        b[k][g] = byte(mine.b[sixteen], i);
      }
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const ByteStep*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = i < 2 ? g : g + 8, column = 2 * t + i % 2;
      auto sum = static_cast<std::uint32_t>(mine.c[i]);
      for (unsigned k = 0; k < 32; ++k) sum += static_cast<std::uint32_t>(a[row][k] * b[k][column]);
      mine.sums[i] = static_cast<int>(sum);
    }
  }
}

}  // namespace

void load_matrices(std::uint32_t* out, const void* row, int num_matrices, bool transposed) {
  const bool gives_address = lane_index() < static_cast<unsigned>(num_matrices) * 8;
  if (gives_address && reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    the_block().stop("an address of load_matrices is no multiple of 16");
  }
  LoadMatrices argument{row, out, num_matrices, transposed};
  warp_collective(0xffffffffu, &combine_load, &argument);
}

void multiply_step(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                   float (*widen)(std::uint16_t)) {
  MultiplyStep argument{c, a, b, widen};
  warp_collective(0xffffffffu, &combine_multiply, &argument);
}

void multiply_step_s8(int (&sums)[4], const std::uint32_t* a, const std::uint32_t* b, int num_sixteens,
                      const int (&c)[4]) {
  ByteStep argument{sums, a, b, c, num_sixteens};
  warp_collective(0xffffffffu, &combine_byte_steps, &argument);
}

}  // namespace octavo::emulation
