#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif

#include "kernels/backends.h"

namespace octavo::kernels {
namespace {

#if defined(__linux__)

// -1 when the file is not there, as in some containers.
int read_topology(int cpu, const char* name) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
  int value = -1;
  return file >> value ? value : -1;
}

// Distinct (package, core) among the processors that this process may run on; a processor without a known
// core counts as one. 0 when the system does not say.
std::int32_t count_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const int core = read_topology(cpu, "core_id");
    cores.insert(core < 0 ? std::pair{-1, cpu} : std::pair{read_topology(cpu, "physical_package_id"), core});
  }
  return static_cast<std::int32_t>(cores.size());
}

#else

std::int32_t count_cores() { return 0; }

#endif

}  // namespace

std::int32_t num_physical_cores() {
  const std::int32_t cores = count_cores();
  if (cores > 0) return cores;
  const unsigned threads = std::thread::hardware_concurrency();
  return threads > 0 ? static_cast<std::int32_t>(threads) : 1;
}

}  // namespace octavo::kernels
