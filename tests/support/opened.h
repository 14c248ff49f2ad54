// Lets a test break what a class keeps whole, to see that the class's own check finds it. An explicit
// instantiation may name private members (C++20, [temp.spec.general]/6), and hands them to a friend that the
// test can call:
//
//   namespace octavo::opening {
//   struct Count { friend auto& opened(Count, Counter&); };
//   template struct Opened<Count, Counter, &Counter::count_>;
//   }
//   opened(Count{}, counter) = -1;
#pragma once

namespace octavo::opening {

template <typename Tag, typename Class, auto member>
struct Opened {
  friend auto& opened(Tag, Class& object) { return object.*member; }
};

}  // namespace octavo::opening
