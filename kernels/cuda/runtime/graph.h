// Work of a stream that was recorded once and is started again as one: a CUDA graph.
//
// Arguments of kernels are those of the recording; memory is read and written when the graph runs, at the
// addresses of the recording, which must still be there. Ownership: a Graph owns what the driver made of it.
// Thread: one at a time.
#pragma once

#include <functional>
#include <utility>

#include "engine/base/result.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

class Graph {
 public:
  // What `body` gives to the stream, of which nothing runs; and all that starting it will need of the device,
  // taken now. `body` may neither wait for the device nor allocate. Errors: kOutOfMemory, kDevice; that of
  // the stream's status if `body` failed. `purpose` begins the sentence.
  static Result<Graph> record(Stream& stream, const char* purpose, const std::function<void()>& body);

  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  Graph& operator=(Graph&&) = delete;
  ~Graph();

  // Starts it in the stream. A failure goes to the stream's status.
  void launch(Stream& stream) const;

 private:
  explicit Graph(cudaGraphExec_t executable) : executable_(executable) {}
  cudaGraphExec_t executable_;
};

}  // namespace octavo::kernels::cuda
