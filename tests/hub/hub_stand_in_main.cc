// The stand-in of a hub as a program, for tests of whole processes: serves the files that are named as the
// repository test/model, or as those named before them, until standard input ends. Its first line of output
// is its address.
//   octavo_hub_stand_in [--bytes-per-s N] [--cut-after N] [[--repository NAME] FILE...]...
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/hub/hub_stand_in.h"

int main(int argc, char** argv) {
  std::vector<octavo::testing::StandInRepository> repositories;
  std::int64_t bytes_per_s = 0, cut_after = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if ((argument == "--bytes-per-s" || argument == "--cut-after") && i + 1 < argc) {
      (argument == "--cut-after" ? cut_after : bytes_per_s) = std::stoll(argv[++i]);
      continue;
    }
    if (argument == "--repository" && i + 1 < argc) {
      repositories.push_back({.name = argv[++i]});
      continue;
    }
    if (repositories.empty()) repositories.push_back({.name = "test/model"});
    std::ifstream file(argument, std::ios::binary);
    repositories.back().files.push_back({.path = std::filesystem::path(argument).filename().string(),
                                         .content = std::string(std::istreambuf_iterator<char>(file), {})});
  }
  octavo::testing::HubStandIn hub(std::move(repositories));
  hub.bytes_per_s = bytes_per_s;
  hub.cut_after = cut_after;
  hub.num_cuts = cut_after > 0 ? 1'000'000 : 0;
  std::printf("%s\n", hub.address().c_str());
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
  }
}
