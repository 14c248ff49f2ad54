// One end of a pipe to another process, plain values through it, and how long a process has computed.
#pragma once

#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace octavo::simulation {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

  // False when the other end is gone.
  bool write_all(const void* data, std::size_t size) const {
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(number_, bytes, size);
      if (written <= 0) return false;
      bytes += written;
      size -= static_cast<std::size_t>(written);
    }
    return true;
  }
  bool read_all(void* data, std::size_t size) const {
    char* bytes = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = ::read(number_, bytes, size);
      if (got <= 0) return false;
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  template <class Value>
  bool send(const Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return write_all(&value, sizeof(value));
  }
  template <class Value>
  bool receive(Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return read_all(&value, sizeof(value));
  }

 private:
  int number_ = -1;
};

// Processor time of a process of our own: it stands still while the machine does other things. 0 when it has
// ended.
inline double processor_seconds_of(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0.0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Pipe {
  FileDescriptor read_end, write_end;

  static Pipe make() {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) return {};
    return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  }
};

}  // namespace octavo::simulation
