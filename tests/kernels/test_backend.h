// A backend with the way into its memory, so that one test can run on all of them: the host's memory is read
// and written as it is, a device's by copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {

class TestBackend {
 public:
  explicit TestBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  virtual ~TestBackend() = default;

  Backend& operator*() const { return *backend_; }
  Backend* operator->() const { return backend_.get(); }

  // Of the backend's memory; read() waits for what was started.
  virtual void read(void* target, const void* source, std::size_t num_bytes) const;
  virtual void write(void* target, const void* source, std::size_t num_bytes) const;
  virtual std::byte* pool(KvCache& kv) const;
  virtual std::byte* pool(HostKvCache& kv) const;

  // The problem's pool, and a pool's bytes.
  std::unique_ptr<KvCache> cache_with(const PagedProblem& problem) const;
  std::vector<std::byte> pool_bytes(KvCache& kv) const;

 private:
  std::unique_ptr<Backend> backend_;
};

// Rows of floats in a backend's memory.
class Rows {
 public:
  Rows(Backend& backend, const std::vector<float>& values, std::int64_t columns)
      : buffer_(backend.prepare_vector(values).value()), columns_(columns) {}

  MatrixView view() const { return {buffer_->data(), buffer_->size() / columns_, columns_, columns_}; }
  std::span<const float> span() const {
    if (buffer_->size() == 0) return {};
    return {buffer_->data(), static_cast<std::size_t>(buffer_->size())};
  }
  std::vector<float> read(const TestBackend& backend) const {
    std::vector<float> values(static_cast<std::size_t>(buffer_->size()));
    backend.read(values.data(), buffer_->data(), values.size() * sizeof(float));
    return values;
  }

 private:
  std::unique_ptr<Buffer> buffer_;
  std::int64_t columns_;
};

}  // namespace octavo::kernels::testing
