// A function with a stack of its own, that runs until it gives way and goes on from there.
//
// Thread: all on one; a fiber that gives way returns to whoever resumed it. A fiber that is started again
// forgets what it was doing: the frames on its stack are dropped, so what runs in one owns nothing.
#pragma once

#include <cstddef>

namespace octavo::emulation {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() begins function(argument). It must not return: it ends by giving way for good.
  void start(void (*function)(void*), void* argument);
  // Runs the fiber until it gives way.
  void resume();
  // From inside: back to resume()'s caller.
  void give_way();

 private:
  struct Context;
  [[noreturn]] static void begin();
  static Context* entering_;  // being resumed
  Context* context_;
};

}  // namespace octavo::emulation
