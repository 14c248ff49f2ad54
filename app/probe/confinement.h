// What a process gives up for good before it reads an untrusted file: the network, writing, other files,
// other programs, and more memory and time than the work needs. For the child that checks model files;
// whoever confines itself stays confined.
//
//   limits    setrlimit: address space, processor time, descriptors, no core file, no byte written to a file
//   landlock  only the named files, and those in named folders, can be opened, for reading (Linux 5.13, where
//   it is switched on) seccomp   a list of allowed system calls; everything else, sockets and exec among it,
//   fails with EPERM
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace octavo::app {

struct ConfinementLimits {
  // Beside what the process has mapped already, and the files that it will map
  std::uint64_t memory_bytes = 0;
  std::uint64_t cpu_seconds = 0;
  std::uint64_t num_files = 0;
};

// What holds from now on and what this machine refused, in words for a report ("no network", ...).
struct Confinement {
  std::vector<std::string> in_force;
  std::vector<std::string> missing;
};

// Call before other threads are started: they would stay free.
Confinement confine_this_process(const ConfinementLimits& limits,
                                 std::span<const std::filesystem::path> readable);

}  // namespace octavo::app
