// Must not compile: the C++ compiler warns of a conversion that may change the number.
#include <cstdint>

std::int8_t narrowed(int number) { return number; }
