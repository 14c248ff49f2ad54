// FOLDER: writes the seeds that the target OCTAVO_FUZZ_TARGET makes, for libFuzzer.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/target.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("give a folder\n", stderr), 2;
  int index = 0;
  for (const octavo::fuzz::Bytes& seed : octavo::fuzz::OCTAVO_FUZZ_TARGET.seeds()) {
    std::ofstream file(std::filesystem::path(argv[1]) / ("seed-" + std::to_string(index++)),
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
    if (!file) return 1;
  }
  return 0;
}
