#include "app/probe/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <optional>

namespace octavo::app {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadowMemory = true;  // terabytes of address space, which no limit can hold
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kHasShadowMemory = true;
#else
constexpr bool kHasShadowMemory = false;
#endif
#else
constexpr bool kHasShadowMemory = false;
#endif

void note(Confinement& confinement, bool holds, const char* what) {
  (holds ? confinement.in_force : confinement.missing).emplace_back(what);
}

// ---- limits

bool set_limit(__rlimit_resource resource, std::uint64_t most) {
  const struct rlimit limit = {most, most};
  return setrlimit(resource, &limit) == 0;
}

// A second before it is killed, SIGXCPU says why.
bool limit_cpu(std::uint64_t seconds) {
  const struct rlimit limit = {seconds, seconds + 1};
  return setrlimit(RLIMIT_CPU, &limit) == 0;
}

std::optional<std::uint64_t> mapped_bytes() {
  std::uint64_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  if (!(statm >> pages)) return std::nullopt;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t bytes_of_files(std::span<const std::filesystem::path> files) {
  std::uint64_t total = 0;
  for (const std::filesystem::path& file : files) {
    struct stat status {};
    std::uint64_t more = 0;
    if (stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      more = static_cast<std::uint64_t>(status.st_size);
    if (__builtin_add_overflow(total, more, &total)) return std::numeric_limits<std::uint64_t>::max() / 2;
  }
  return total;
}

bool limit_memory(std::uint64_t more_bytes, std::span<const std::filesystem::path> files) {
  const auto mapped = mapped_bytes();
  std::uint64_t most = 0;
  if (kHasShadowMemory || !mapped ||
      __builtin_add_overflow(*mapped + more_bytes, bytes_of_files(files), &most))
    return false;
  return set_limit(RLIMIT_AS, most);
}

// ---- files: landlock

constexpr std::uint64_t kWriteAccess =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

void allow_reading(int rules, const std::filesystem::path& file) {
  const int opened = open(file.c_str(), O_PATH | O_CLOEXEC);
  if (opened < 0) return;  // whoever opens it learns why
  struct stat status {};
  const bool is_folder = fstat(opened, &status) == 0 && S_ISDIR(status.st_mode);
  const struct landlock_path_beneath_attr rule = {
      .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | (is_folder ? LANDLOCK_ACCESS_FS_READ_DIR : 0ull),
      .parent_fd = opened};
  syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  close(opened);
}

bool restrict_files(std::span<const std::filesystem::path> readable) {
  const struct landlock_ruleset_attr handled = {
      .handled_access_fs = kWriteAccess | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR};
  const long rules = syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
  if (rules < 0) return false;
  for (const std::filesystem::path& file : readable) allow_reading(static_cast<int>(rules), file);
  const bool holds = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(static_cast<int>(rules));
  return holds;
}

// ---- system calls: seccomp

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// What reading a file and computing needs.
constexpr long kAllowedCalls[] = {
    SYS_read,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_exit,
    SYS_exit_group,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_sysinfo,
    SYS_uname,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_getcwd,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_faccessat,
    SYS_fcntl,
    SYS_prlimit64,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_restart_syscall,
    SYS_membarrier,
#if defined(__x86_64__)
    SYS_stat,
    SYS_lstat,
    SYS_readlink,
    SYS_access,
#endif
};

std::vector<sock_filter> filter_program() {
  std::vector<sock_filter> program;
  const auto load = [&](std::size_t offset) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  };
  const auto answer = [&](std::uint32_t action) { program.push_back(BPF_STMT(BPF_RET | BPF_K, action)); };
  // The next `count` instructions only if the loaded word is `value`.
  const auto only_if = [&](std::uint32_t value, std::uint8_t count) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
  };
  constexpr std::uint32_t kDeny = SECCOMP_RET_ERRNO | 1;  // EPERM
  load(offsetof(seccomp_data, arch));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
  for (const long call : kAllowedCalls) {
    only_if(static_cast<std::uint32_t>(call), 1);
    answer(SECCOMP_RET_ALLOW);
  }
  // Opening, for reading only: the flags are the third argument (little-endian: the low half comes first).
  only_if(SYS_openat, 5);
  load(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t));
  program.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND));
  only_if(O_RDONLY, 1);
  answer(SECCOMP_RET_ALLOW);
  answer(kDeny);
  answer(kDeny);
  return program;
}

bool filter_calls() {
  if (kArchitecture == 0) return false;
  std::vector<sock_filter> program = filter_program();
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

Confinement confine_this_process(const ConfinementLimits& limits,
                                 std::span<const std::filesystem::path> readable) {
  Confinement confinement;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);
  const bool no_privileges = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;  // landlock and seccomp ask for it
  note(confinement, limit_memory(limits.memory_bytes, readable), "a memory limit");
  note(confinement, limit_cpu(limits.cpu_seconds), "a time limit");
  note(confinement,
       set_limit(RLIMIT_NOFILE, limits.num_files) && set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_FSIZE, 0),
       "a limit on files");
  note(confinement, no_privileges && restrict_files(readable), "a ban on other files");
  note(confinement, no_privileges && filter_calls(), "a ban on the network and other programs");
  return confinement;
}

}  // namespace octavo::app
