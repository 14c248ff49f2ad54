// Graphs on the emulated device: what a capture notes down, what breaks it, and kernels/cuda/runtime/graph.h
// on top.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/matmul/library.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/runtime/graph.h"
#include "tests/cuda/device_arrays.h"

namespace octavo::kernels::cuda {
namespace {

__global__ void add_kernel(int* out, int added) { out[threadIdx.x] += added; }

class Capture : public ::testing::Test {
 protected:
  void add(Stream& stream, const DeviceArray<int>& numbers, int added) {
    launch(add_kernel, {.grid = dim3(1), .block = dim3(4)}, stream, numbers.data(), added);
  }
  // What ends a capture in which `call` failed with `expected`.
  void breaks(cudaError_t expected, const std::function<cudaError_t()>& call, const char* what) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_.get().handle(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(), expected) << what;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_.get().handle(), &graph), cudaErrorStreamCaptureInvalidated)
        << what;
    EXPECT_EQ(graph, nullptr);
  }

  TestStream stream_;
};

TEST_F(Capture, NotesArgumentsDownAndRunsNothing) {
  const DeviceArray<int> numbers(std::vector<int>(4));
  int added = 5;
  Graph graph = Graph::record(stream_.get(), "a test", [&] {
                  add(stream_.get(), numbers, added);
                  add(stream_.get(), numbers, 100);
                }).value();
  added = 1000;
  stream_.finish();
  EXPECT_EQ(numbers.read()[3], 0);
  const std::int64_t graphs = emulation::num_graph_launches(), single = emulation::num_single_launches(),
                     kernels = emulation::num_launches();
  for (int i = 0; i < 3; ++i) graph.launch(stream_.get());
  stream_.finish();
  EXPECT_EQ(numbers.read()[3], 315);
  EXPECT_EQ(emulation::num_graph_launches() - graphs, 3);
  EXPECT_EQ(emulation::num_single_launches() - single, 0);
  EXPECT_EQ(emulation::num_launches() - kernels, 6);
}

TEST_F(Capture, CopiesReadTheirSourceWhenTheGraphRuns) {
  const DeviceArray<int> numbers(std::vector<int>(4));
  const PinnedMemory source = PinnedMemory::allocate(16, "a test").value();
  Graph graph = Graph::record(stream_.get(), "a test", [&] {
                  stream_.get().copy(numbers.data(), source.data(), 16);
                  add(stream_.get(), numbers, 1);
                }).value();
  for (const int value : {7, 8}) {
    source.as<int>()[2] = value;
    graph.launch(stream_.get());
    stream_.finish();
    EXPECT_EQ(numbers.read()[2], value + 1);
  }
}

TEST_F(Capture, WhatWaitsOrMayWaitBreaksIt) {
  const cudaStream_t stream = stream_.get().handle();
  const DeviceArray<int> numbers(std::vector<int>(4));
  const Event outside = Event::create().value();
  stream_.get().record(outside);
  constexpr cudaError_t kRefused = cudaErrorStreamCaptureUnsupported;
  int number = 0;
  void* memory = nullptr;
  breaks(
      kRefused, [&] { return cudaStreamSynchronize(stream); }, "cudaStreamSynchronize");
  breaks(
      kRefused, [&] { return cudaStreamQuery(stream); }, "cudaStreamQuery");
  breaks(
      kRefused, [&] { return cudaDeviceSynchronize(); }, "cudaDeviceSynchronize");
  breaks(
      kRefused, [&] { return cudaMalloc(&memory, 16); }, "cudaMalloc");
  breaks(
      kRefused, [&] { return cudaHostAlloc(&memory, 16, cudaHostAllocDefault); }, "cudaHostAlloc");
  breaks(
      kRefused, [&] { return cudaMemcpy(numbers.data(), &number, 4, cudaMemcpyDefault); }, "cudaMemcpy");
  breaks(
      kRefused, [&] { return cudaMemset(numbers.data(), 0, 4); }, "cudaMemset");
  breaks(
      cudaErrorStreamCaptureIsolation, [&] { return cudaStreamWaitEvent(stream, outside.handle(), 0); },
      "an event from outside");
  const Event inside = Event::create().value();
  breaks(
      cudaErrorCapturedEvent,
      [&] {
        EXPECT_EQ(cudaEventRecord(inside.handle(), stream), cudaSuccess);
        return cudaEventSynchronize(inside.handle());
      },
      "an event of the capture");
  // The stream works again.
  add(stream_.get(), numbers, 2);
  stream_.finish();
  EXPECT_EQ(numbers.read()[0], 2);
}

// As the library may load code or allocate then.
TEST_F(Capture, TheFirstProductOfAShapeBreaksItAndNoLaterOne) {
  const cublasLtHandle_t library = open_library();
  const auto products = LibraryProducts::create(library).value();
  const DeviceArray<float> weights(std::vector<float>(6, 2.0f)), rows(std::vector<float>(3, 1.0f)),
      sums(std::vector<float>(2));
  DeviceStatus status;
  {
    Stream stream = Stream::create(status).value();
    const LibraryProduct product{
        .shape = {.type = TensorType::kF32, .outputs = 2, .rows = 1, .columns = 3, .out_stride = 2},
        .weights = weights.data(),
        .activations = rows.data(),
        .out = sums.data()};
    LibraryProduct smaller = product;
    smaller.shape.outputs = 1;
    const auto multiply = [&] { EXPECT_TRUE(products->multiply(stream, product)); };
    multiply();
    EXPECT_TRUE(Graph::record(stream, "a test", multiply));
    // Refused; what follows in its place fails as the capture did.
    EXPECT_FALSE(Graph::record(stream, "a test", [&] { EXPECT_FALSE(products->multiply(stream, smaller)); }));
    EXPECT_FALSE(products->serves(smaller.shape));
  }
  close_library(library);
}

TEST_F(Capture, OtherThreadsAreNotItsAffairUnlessItIsGlobal) {
  const cudaStream_t stream = stream_.get().handle();
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
    cudaError_t there = cudaSuccess;
    std::thread([&] { there = cudaDeviceSynchronize(); }).join();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    const bool is_global = mode == cudaStreamCaptureModeGlobal;
    EXPECT_EQ(there, is_global ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    EXPECT_EQ(ended, is_global ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
  }
}

TEST_F(Capture, AForkHasToComeBack) {
  TestStream other;
  const DeviceArray<int> numbers(std::vector<int>(4)), others(std::vector<int>(4));
  const Event forked = Event::create().value(), joined = Event::create().value();
  for (const bool comes_back : {true, false}) {
    const std::int64_t captures = emulation::num_captures();
    const auto graph = Graph::record(stream_.get(), "a test", [&] {
      stream_.get().record(forked);
      other.get().wait_for(forked);
      add(other.get(), others, 1);
      add(stream_.get(), numbers, 1);
      if (!comes_back) return;
      other.get().record(joined);
      stream_.get().wait_for(joined);
    });
    EXPECT_EQ(graph.has_value(), comes_back);
    EXPECT_EQ(emulation::num_captures() - captures, comes_back ? 1 : 0);
    if (!graph) {
      EXPECT_NE(graph.error().message.find("cudaErrorStreamCaptureUnjoined"), std::string::npos);
      continue;
    }
    graph->launch(stream_.get());
    stream_.finish();
    EXPECT_EQ(others.read()[1], 1);
    EXPECT_EQ(numbers.read()[1], 1);
  }
  other.finish();
}

TEST_F(Capture, MemoryThatIsGoneIsFound) {
  TestStream stream;
  DeviceMemory memory = DeviceMemory::allocate(64, "a test").value();
  Graph graph = Graph::record(stream.get(), "a test", [&] {
                  launch(add_kernel, {.grid = dim3(1), .block = dim3(4)}, stream.get(), memory.as<int>(), 1);
                }).value();
  { const DeviceMemory gone = std::move(memory); }
  graph.launch(stream.get());
  stream.get().synchronize();
  EXPECT_FALSE(stream.get().status().ok());
  const std::vector<std::string> violations = emulation::take_violations();
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0], "work in a stream uses memory that was freed");
}

// Whichever call it is: one sentence that says what to do, and a stream that does not capture any more.
TEST_F(Capture, EachFailingCallOfARecordingIsAnError) {
  const DeviceArray<int> numbers(std::vector<int>(4));
  std::int64_t num_calls = 0;
  {
    TestStream stream;
    const std::int64_t begin = emulation::num_calls();
    const auto graph = Graph::record(stream.get(), "a test", [&] { add(stream.get(), numbers, 1); });
    ASSERT_TRUE(graph.has_value());
    num_calls = emulation::num_calls() - begin;
  }
  EXPECT_EQ(num_calls, 6);  // begin, kernel, end, instantiate, upload, wait
  for (std::int64_t call = 1; call <= num_calls; ++call) {
    for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorLaunchFailure}) {
      TestStream stream;
      emulation::fail_call(call - 1, error);
      const auto graph = Graph::record(stream.get(), "a test", [&] { add(stream.get(), numbers, 1); });
      ASSERT_FALSE(graph.has_value()) << call;
      const std::string& message = graph.error().message;
      if (call == 2) {  // what failed is the work itself
        EXPECT_EQ(graph.error().code, ErrorCode::kDeviceLost);
      } else {
        EXPECT_EQ(graph.error().code,
                  error == cudaErrorMemoryAllocation ? ErrorCode::kOutOfMemory : ErrorCode::kDevice);
        EXPECT_EQ(message.find("a test could not be recorded as a CUDA graph (cuda"), 0u) << message;
        EXPECT_NE(message.find("--cuda-graphs off"), std::string::npos) << message;
      }
      emulation::heal();
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
