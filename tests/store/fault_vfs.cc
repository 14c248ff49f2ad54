#include "tests/store/fault_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace octavo::testing {

// As SQLite lays it out: its own part first, and the system's file behind it.
struct FaultFile {
  sqlite3_file base;
  std::string* path;
  sqlite3_file* real;

  static FaultFile& of(sqlite3_file* file) { return *reinterpret_cast<FaultFile*>(file); }

  static int close(sqlite3_file* file) {
    FaultFile& self = of(file);
    const int code = self.real->pMethods != nullptr ? self.real->pMethods->xClose(self.real) : SQLITE_OK;
    delete self.path;
    return code;
  }
  static int read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
    if (FaultVfs::instance().reads_fail) return SQLITE_IOERR_READ;
    return of(file).real->pMethods->xRead(of(file).real, bytes, count, offset);
  }
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
    FaultVfs& vfs = FaultVfs::instance();
    const bool has_room = vfs.bytes_left >= count;
    if (!vfs.allows(count)) return has_room ? SQLITE_IOERR_WRITE : SQLITE_FULL;
    if (vfs.remembers_) remember(of(file), offset, count);
    return of(file).real->pMethods->xWrite(of(file).real, bytes, count, offset);
  }
  static void remember(FaultFile& self, sqlite3_int64 offset, sqlite3_int64 length) {
    FaultVfs::Unsynced write{.offset = offset, .before = {}, .length = length, .file_size = 0};
    sqlite3_int64 size = 0;
    self.real->pMethods->xFileSize(self.real, &size);
    write.file_size = size;
    const sqlite3_int64 known = std::clamp<sqlite3_int64>(size - offset, 0, length);
    write.before.resize(static_cast<std::size_t>(known));
    if (known > 0)
      self.real->pMethods->xRead(self.real, write.before.data(), static_cast<int>(known), offset);
    FaultVfs::instance().unsynced_[*self.path].push_back(std::move(write));
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    FaultVfs& vfs = FaultVfs::instance();
    if (!vfs.allows(0)) return SQLITE_IOERR_TRUNCATE;
    if (vfs.remembers_) {
      sqlite3_int64 old_size = 0;
      of(file).real->pMethods->xFileSize(of(file).real, &old_size);
      if (old_size > size) remember(of(file), size, old_size - size);
    }
    return of(file).real->pMethods->xTruncate(of(file).real, size);
  }
  static int sync(sqlite3_file* file, int flags) {
    FaultVfs& vfs = FaultVfs::instance();
    if (!vfs.allows(0) || vfs.syncs_fail) return SQLITE_IOERR_FSYNC;
    if (vfs.remembers_) {
      if (!vfs.syncs_lie) vfs.unsynced_.erase(*of(file).path);
      return SQLITE_OK;  // the order is what matters, and real syncs cost milliseconds
    }
    return of(file).real->pMethods->xSync(of(file).real, flags);
  }
  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    return of(file).real->pMethods->xFileSize(of(file).real, size);
  }
  static int lock(sqlite3_file* file, int level) {
    return of(file).real->pMethods->xLock(of(file).real, level);
  }
  static int unlock(sqlite3_file* file, int level) {
    return of(file).real->pMethods->xUnlock(of(file).real, level);
  }
  static int check_lock(sqlite3_file* file, int* out) {
    return of(file).real->pMethods->xCheckReservedLock(of(file).real, out);
  }
  static int control(sqlite3_file* file, int operation, void* argument) {
    return of(file).real->pMethods->xFileControl(of(file).real, operation, argument);
  }
  static int sector_size(sqlite3_file* file) { return of(file).real->pMethods->xSectorSize(of(file).real); }
  static int characteristics(sqlite3_file*) { return 0; }  // promises nothing, as the worst disk

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    auto* system = static_cast<sqlite3_vfs*>(vfs->pAppData);
    // Version 1: no shared memory, which an exclusive connection does without.
    static const sqlite3_io_methods kMethods = {.iVersion = 1,
                                                .xClose = close,
                                                .xRead = read,
                                                .xWrite = write,
                                                .xTruncate = truncate,
                                                .xSync = sync,
                                                .xFileSize = file_size,
                                                .xLock = lock,
                                                .xUnlock = unlock,
                                                .xCheckReservedLock = check_lock,
                                                .xFileControl = control,
                                                .xSectorSize = sector_size,
                                                .xDeviceCharacteristics = characteristics,
                                                .xShmMap = nullptr,
                                                .xShmLock = nullptr,
                                                .xShmBarrier = nullptr,
                                                .xShmUnmap = nullptr,
                                                .xFetch = nullptr,
                                                .xUnfetch = nullptr};
    FaultFile& self = of(file);
    self.path = new std::string(name != nullptr ? name : "");
    self.real = reinterpret_cast<sqlite3_file*>(&self + 1);
    const int code = system->xOpen(system, name, self.real, flags, out_flags);
    self.base.pMethods = &kMethods;
    if (code != SQLITE_OK) {
      delete self.path;
      self.base.pMethods = nullptr;
    }
    return code;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    auto* system = static_cast<sqlite3_vfs*>(vfs->pAppData);
    if (!FaultVfs::instance().allows(0)) return SQLITE_IOERR_DELETE;
    FaultVfs::instance().unsynced_.erase(name);
    return system->xDelete(system, name, sync_folder);
  }
};

FaultVfs& FaultVfs::instance() {
  static FaultVfs self;
  static const bool registered = [] {
    auto* const system = sqlite3_vfs_find(nullptr);
    static sqlite3_vfs vfs = *system;
    vfs.zName = kName;
    vfs.pNext = nullptr;
    vfs.pAppData = system;
    vfs.szOsFile = static_cast<int>(sizeof(FaultFile)) + system->szOsFile;
    vfs.xOpen = FaultFile::open;
    vfs.xDelete = FaultFile::remove;
    return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
  }();
  if (!registered) std::abort();
  return self;
}

void FaultVfs::reset() {
  bytes_left = calls_left = std::numeric_limits<std::int64_t>::max();
  syncs_fail = reads_fail = syncs_lie = power_is_gone = remembers_ = false;
  num_calls = 0;
  unsynced_.clear();
}

bool FaultVfs::allows(std::int64_t num_bytes) {
  ++num_calls;
  if (power_is_gone || calls_left <= 0 || num_bytes > bytes_left) return false;
  if (calls_left != std::numeric_limits<std::int64_t>::max()) --calls_left;
  if (bytes_left != std::numeric_limits<std::int64_t>::max()) bytes_left -= num_bytes;
  return true;
}

void FaultVfs::remember_unsynced() {
  remembers_ = true;
  unsynced_.clear();
}

void FaultVfs::cut_power(std::mt19937_64& random) {
  constexpr std::int64_t kSector = 512;
  for (auto& [path, writes] : unsynced_) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) continue;
    std::int64_t size = writes.empty() ? -1 : writes.front().file_size;
    const bool keeps_length = random() % 2 == 0;
    for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
      const auto fate = random() % 3;
      if (fate == 0) continue;  // it reached the disk
      const auto known = static_cast<std::int64_t>(write->before.size());
      for (std::int64_t at = 0; at < known; at += kSector) {
        if (fate == 1 && random() % 2 == 0) continue;  // torn
        const std::int64_t count = std::min(kSector, known - at);
        if (::pwrite(file, write->before.data() + at, static_cast<std::size_t>(count), write->offset + at) <
            0)
          std::abort();
      }
      // Where there was nothing before there are zeros, as after a lost write into a grown file.
      const std::vector<char> zeros(static_cast<std::size_t>(write->length - known), '\0');
      if (!zeros.empty() && ::pwrite(file, zeros.data(), zeros.size(), write->offset + known) < 0)
        std::abort();
    }
    if (!keeps_length && size >= 0 && ::ftruncate(file, size) != 0) std::abort();
    ::close(file);
  }
  unsynced_.clear();
}

}  // namespace octavo::testing
