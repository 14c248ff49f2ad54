// Where a recording goes. Opened before the model is loaded, so that a path that cannot be written is refused
// at once; nothing of an older recording is lost until the first byte of the new one is there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.h"

namespace octavo::metrics {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual std::string name() const = 0;  // for messages
  // All of it, or an error that says why not.
  virtual Result<void> write(std::span<const std::byte> bytes) = 0;
};

class RecordingFile final : public ByteSink {
 public:
  // Refuses, in a sentence, what cannot be written, what is no file, and a file that holds something else
  // than a recording: a model named by mistake is not overwritten.
  static Result<std::unique_ptr<RecordingFile>> open(const std::filesystem::path& path);
  // A new file that nothing was written to is removed.
  ~RecordingFile() override;

  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  std::string name() const override;
  Result<void> write(std::span<const std::byte> bytes) override;

 private:
  RecordingFile(std::filesystem::path path, int descriptor, bool is_new)
      : path_(std::move(path)), descriptor_(descriptor), is_new_(is_new) {}

  const std::filesystem::path path_;
  const int descriptor_;
  const bool is_new_;
  bool has_begun_ = false;
};

// Whether a file begins as a recording does. False for any file that cannot be read.
bool is_recording(const std::filesystem::path& path);

}  // namespace octavo::metrics
