// OCTAVO_CHECK(condition, "format", args...): an invariant of our own code. It is on in release builds: a
// broken invariant means that memory could be shared wrongly, and stopping is the smaller harm. Never use it
// on what a file, a user or the network says: those are Results.
#pragma once

#include <cstdio>
#include <cstdlib>

#define OCTAVO_CHECK(condition, ...)                                                         \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s: ", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, "" __VA_ARGS__);                                                  \
      std::fputc('\n', stderr);                                                              \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
