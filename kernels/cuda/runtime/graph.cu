#include "kernels/cuda/runtime/graph.h"

#include <string>

namespace octavo::kernels::cuda {
namespace {

Result<void> checked_recording(cudaError_t code, const char* purpose, const char* call) {
  const Result<void> result = checked(code, call);
  if (result) return {};
  return Error{result.error().code, std::string(purpose) + " could not be recorded as a CUDA graph (" +
                                        result.error().message + "); use --cuda-graphs off"};
}

struct Recording {
  cudaGraph_t graph = nullptr;
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
  }
};

}  // namespace

// Of this thread only: another engine's calls, on its own thread, neither break the recording nor are broken
// by it.
Result<Graph> Graph::record(Stream& stream, const char* purpose, const std::function<void()>& body) {
  Recording recording;
  OCTAVO_TRY_VOID(checked_recording(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal),
                                    purpose, "cudaStreamBeginCapture"));
  body();
  const cudaError_t ended = cudaStreamEndCapture(stream.handle(), &recording.graph);
  OCTAVO_TRY_VOID(stream.status().result());  // what failed first
  OCTAVO_TRY_VOID(checked_recording(ended, purpose, "cudaStreamEndCapture"));
  cudaGraphExec_t executable = nullptr;
  OCTAVO_TRY_VOID(checked_recording(cudaGraphInstantiate(&executable, recording.graph, 0), purpose,
                                    "cudaGraphInstantiate"));
  Graph graph(executable);
  OCTAVO_TRY_VOID(
      checked_recording(cudaGraphUpload(executable, stream.handle()), purpose, "cudaGraphUpload"));
  OCTAVO_TRY_VOID(
      checked_recording(cudaStreamSynchronize(stream.handle()), purpose, "cudaStreamSynchronize"));
  return Result<Graph>(std::move(graph));
}

Graph::~Graph() {
  if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
}

void Graph::launch(Stream& stream) const {
  if (!stream.status().ok()) return;
  stream.status().check(cudaGraphLaunch(executable_, stream.handle()), "cudaGraphLaunch");
}

}  // namespace octavo::kernels::cuda
