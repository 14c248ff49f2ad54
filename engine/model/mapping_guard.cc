#include "engine/model/mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace octavo::model {
namespace {

// Read by the signal handler: lock-free atomics only. An entry is in use while `end` is not zero.
struct GuardedRange {
  std::atomic<std::uintptr_t> start{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> damaged{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

constexpr std::size_t kMaxRanges = 4'096;  // four models of a thousand files
std::array<GuardedRange, kMaxRanges> ranges;
std::mutex ranges_mutex;  // for those who add and remove
struct sigaction previous_action;
std::uintptr_t page_bytes;

bool replace_page(std::uintptr_t address) {
  void* page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  return mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool repair(std::uintptr_t address) {
  for (GuardedRange& range : ranges) {
    const std::uintptr_t end = range.end.load(std::memory_order_acquire);
    if (end == 0 || address >= end || address < range.start.load(std::memory_order_acquire)) continue;
    range.damaged.store(true, std::memory_order_release);
    return replace_page(address);
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0)
    return previous_action.sa_sigaction(signal, info, context);
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    return previous_action.sa_handler(signal);
  }
  sigaction(SIGBUS, &previous_action, nullptr);  // the instruction faults again and meets it
}

void handle_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (!repair(reinterpret_cast<std::uintptr_t>(info->si_addr))) pass_on(signal, info, context);
  errno = saved_errno;
}

void install_handler() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = handle_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

}  // namespace

int guard_mapping(std::span<const std::byte> bytes) {
  if (bytes.empty()) return -1;
  install_handler();
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::lock_guard lock(ranges_mutex);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].end.load(std::memory_order_relaxed) != 0) continue;
    ranges[i].damaged.store(false, std::memory_order_relaxed);
    ranges[i].start.store(start, std::memory_order_release);
    ranges[i].end.store(start + bytes.size(), std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void unguard_mapping(int guard) {
  if (guard >= 0) ranges[static_cast<std::size_t>(guard)].end.store(0, std::memory_order_release);
}

bool guarded_mapping_is_damaged(int guard) {
  return guard >= 0 && ranges[static_cast<std::size_t>(guard)].damaged.load(std::memory_order_acquire);
}

}  // namespace octavo::model
