#include "tests/emulation/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// ucontext's switch asks the kernel for the signal mask, 0.3 microseconds; a warp's tensor-core step is 32
// switches. So on x86-64 the switch is written out: the registers that a function must preserve, and the
// stack.
#if defined(__x86_64__)
extern "C" void octavo_switch_stack(void** save_here, void* go_there);
asm(R"(
.text
.globl octavo_switch_stack
.type octavo_switch_stack, @function
octavo_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size octavo_switch_stack, .-octavo_switch_stack
)");
#endif

namespace octavo::emulation {
namespace {

// Below it lies a page that may not be touched. Sanitizers make frames larger.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 512 * 1024;
#else
constexpr std::size_t kStackBytes = 64 * 1024;
#endif
constexpr std::size_t kGuardBytes = 4096;

}  // namespace

struct Fiber::Context {
  std::byte* stack = nullptr;  // its lowest byte
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  bool is_new = false;
#if defined(__x86_64__)
  void* own = nullptr;
  void* caller = nullptr;
#else
  ucontext_t own, caller;
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* caller_stack = nullptr;
  std::size_t caller_bytes = 0;
#endif
};

Fiber::Context* Fiber::entering_ = nullptr;

Fiber::Fiber() : context_(new Context) {
  void* memory = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(memory, kGuardBytes, PROT_NONE);
  context_->stack = static_cast<std::byte*>(memory) + kGuardBytes;
}

Fiber::~Fiber() {
  ::munmap(context_->stack - kGuardBytes, kGuardBytes + kStackBytes);
  delete context_;
}

void Fiber::start(void (*function)(void*), void* argument) {
  context_->function = function;
  context_->argument = argument;
  context_->is_new = true;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(context_->stack, kStackBytes);  // of frames that were dropped
#endif
}

void Fiber::begin() {
  Context& context = *entering_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &context.caller_stack, &context.caller_bytes);
#endif
  context.function(context.argument);
  std::abort();  // it returned
}

void Fiber::resume() {
  Context& context = *context_;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, context.stack, kStackBytes);
#endif
  entering_ = &context;
  if (context.is_new) {
    context.is_new = false;
#if defined(__x86_64__)
    // As if the function had been called: with its return address taken, a stack ends at a multiple of 16
    // less 8.
    auto* top = reinterpret_cast<void**>(context.stack + kStackBytes) - 1;
    *--top = reinterpret_cast<void*>(&Fiber::begin);
    for (int i = 0; i < 6; ++i) *--top = nullptr;  // the registers that the switch takes from the stack
    context.own = top;
#else
    ::getcontext(&context.own);
    context.own.uc_stack.ss_sp = context.stack;
    context.own.uc_stack.ss_size = kStackBytes;
    context.own.uc_link = nullptr;
    ::makecontext(&context.own, reinterpret_cast<void (*)()>(&Fiber::begin), 0);
#endif
  }
#if defined(__x86_64__)
  octavo_switch_stack(&context.caller, context.own);
#else
  ::swapcontext(&context.caller, &context.own);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::give_way() {
  Context& context = *context_;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, context.caller_stack, context.caller_bytes);
#endif
#if defined(__x86_64__)
  octavo_switch_stack(&context.own, context.caller);
#else
  ::swapcontext(&context.own, &context.caller);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, &context.caller_stack, &context.caller_bytes);
#endif
}

}  // namespace octavo::emulation
