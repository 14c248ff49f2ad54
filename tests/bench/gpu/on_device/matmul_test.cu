// A kernel of the test is the device's, so this compiler has to see it.
#include "tests/cuda/matmul_library_test.cc"
#include "tests/cuda/matmul_test.cc"
