// The answers of a program with the names of CUDA, for octavo_hip_tests to compare its own with.
#include "tests/hip/answers.h"

int main() { std::fputs(octavo::answers().c_str(), stdout); }
