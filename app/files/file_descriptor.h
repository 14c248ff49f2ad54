// A file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <utility>

namespace octavo::app {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int value) : value_(value) {}  // takes it; negative: none
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }

  int get() const { return value_; }
  bool ok() const { return value_ >= 0; }
  void reset() {
    if (value_ >= 0) ::close(std::exchange(value_, -1));
  }

 private:
  int value_ = -1;
};

}  // namespace octavo::app
