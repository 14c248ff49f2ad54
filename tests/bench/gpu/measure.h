// What all sections share: the device, its limits, sizes, and the measuring itself. Cases of one section are
// measured in turns, several rounds, so that what a device does in between (clocks, heat) meets all of them;
// a case's figure is the median of its rounds. A round's sample is as many calls as fill kSampleSeconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "kernels/cuda/runtime/device.h"
#include "tests/bench/gpu/random_memory.h"
#include "tests/bench/gpu/toolkit.h"

namespace octavo::bench {

// What the device reached, in bytes and operations (multiplications and additions) a second. 0: not measured.
struct Limits {
  double copy_bytes = 0;  // within the device: read and written ones together
  double f16_operations = 0, bf16_operations = 0;
  double to_host_bytes = 0, to_device_bytes = 0;
};

// One line of the report.
struct Record {
  std::string section, name;
  std::vector<std::pair<std::string, std::string>> facts;  // "type": "Q4_0", "way": "tiles of 64 rows"
  double bytes = 0;                                        // the fewest that must move in one call
  double operations = 0;                                   // the fewest that one call needs
  double tokens = 0;                                       // of one call
  double limit_bytes = 0;                                  // a second; 0: no such limit
  double limit_operations = 0;
  std::vector<double> seconds;  // of one call, each round
  std::string left_out;         // the reason, where nothing was measured

  double median_seconds() const;  // REQUIRES: it was measured
};

struct Case {
  Record record;
  std::function<void(std::int64_t call)> run;  // starts one call's work; `call` counts up
};

struct Sizes {
  bool is_quick = false, is_emulated = false;
  int num_rounds = 5;
};

struct ModelShape {
  const char* name;
  std::int32_t num_layers, embedding_length, feed_forward_length, num_heads, num_kv_heads, head_dim,
      vocabulary;
  bool is_tied;  // the embedding is the output head
};
std::vector<ModelShape> model_shapes(const Sizes& sizes);

class Bench {
 public:
  static Result<std::unique_ptr<Bench>> create(const Sizes& sizes);

  // Seconds of the given work, waited for.
  using Timer = std::function<double(const std::function<void()>&)>;
  // By the stream's own clock; the work must be in stream().
  Timer stream_timer();
  // By the host's clock until the device has nothing left to do: for work in other streams.
  Timer host_timer();

  // Fills in the seconds and adds the records to the report. REQUIRES: at least one case.
  Result<void> measure(std::vector<Case> cases, const Timer& timer);
  void leave_out(Record record, const std::string& reason);

  // Empty: there is enough free device memory for `bytes`; else the reason to leave a case out.
  std::string memory_is_missing(std::int64_t bytes) const;

  kernels::cuda::Stream& stream() { return stream_; }
  RandomMemory& random() { return random_; }
  const DeviceFigures& figures() const { return figures_; }
  const Sizes& sizes() const { return sizes_; }
  Limits& limits() { return limits_; }
  const std::vector<Record>& records() const { return records_; }

 private:
  Bench(const Sizes& sizes, DeviceFigures figures, std::unique_ptr<kernels::cuda::DeviceStatus> status,
        kernels::cuda::Stream stream, std::unique_ptr<StreamClock> clock);

  const Sizes sizes_;
  const DeviceFigures figures_;
  std::unique_ptr<kernels::cuda::DeviceStatus> status_;
  kernels::cuda::Stream stream_;
  std::unique_ptr<StreamClock> clock_;
  RandomMemory random_;
  Limits limits_;
  std::vector<Record> records_;
};

}  // namespace octavo::bench
