// The emulated device finds what it is there to find: kernels and programs that are wrong on purpose.
#include "tests/emulation/emulation.h"

#include <emulated_hardware.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"
#include "tests/cuda/violations.h"

namespace octavo::kernels::cuda {
namespace {

using emulation::StreamOrder;
using emulation::take_violations;

class Emulation : public ::testing::Test {
 protected:
  DeviceStatus status;
  std::optional<Stream> own_stream = Stream::create(status).value();
  Stream& stream = *own_stream;

  // After a violation: a device that works.
  void start_again() {
    own_stream.reset();
    emulation::heal();
    status = {};
    own_stream.emplace(Stream::create(status).value());
  }

  DeviceMemory numbers(int count) {
    DeviceMemory memory = DeviceMemory::allocate(count * 4, "test").value();
    stream.fill(memory.data(), 0, memory.bytes());
    return memory;
  }
  template <class T>
  std::vector<T> read(const DeviceMemory& memory) {
    stream.synchronize();
    std::vector<T> values(static_cast<std::size_t>(memory.bytes()) / sizeof(T));
    EXPECT_EQ(
        cudaMemcpy(values.data(), memory.data(), static_cast<std::size_t>(memory.bytes()), cudaMemcpyDefault),
        cudaSuccess);
    return values;
  }
  // The only violation so far.
  std::string violation() {
    stream.synchronize();
    const auto violations = take_violations();
    return violations.size() == 1 ? violations[0] : std::to_string(violations.size()) + " violations";
  }
};

testing::AssertionResult holds(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not say '" << part << "'";
}

__global__ void add_index(int* out, int factor) {
  out[blockIdx.x * blockDim.x + threadIdx.x] += factor * static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
}

TEST_F(Emulation, RunsEveryThreadOfEveryBlockOnce) {
  const DeviceMemory out = numbers(3 * 70);
  launch(add_index, {.grid = dim3(3), .block = dim3(70)}, stream, out.as<int>(), 2);
  const auto values = read<int>(out);
  for (int block = 0; block < 3; ++block) {
    for (int thread = 0; thread < 70; ++thread) {
      EXPECT_EQ(values[static_cast<std::size_t>(block * 70 + thread)], 2 * (block * 1000 + thread));
    }
  }
}

__global__ void reverse_in_block(const int* in, int* out, bool waits) {
  int* const shared = dynamic_shared<int>();
  shared[threadIdx.x] = in[threadIdx.x];
  if (waits) __syncthreads();
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

TEST_F(Emulation, FindsAMissingBarrier) {
  const DeviceMemory in = numbers(64), out = numbers(64);
  launch(add_index, {.grid = dim3(1), .block = dim3(64)}, stream, in.as<int>(), 1);
  const LaunchShape shape{.grid = dim3(1), .block = dim3(64), .shared_bytes = 256};
  launch(reverse_in_block, shape, stream, in.as<int>(), out.as<int>(), true);
  EXPECT_EQ(read<int>(out)[0], 63);
  launch(reverse_in_block, shape, stream, in.as<int>(), out.as<int>(), false);
  EXPECT_TRUE(holds(violation(), "a race"));
  EXPECT_FALSE(status.result().has_value() && cudaGetLastError() == cudaSuccess);
}

__global__ void last_one_wins(int* out) { *out = static_cast<int>(threadIdx.x); }
__global__ void count_threads(int* out) { atomicAdd(out, 1); }

TEST_F(Emulation, TellsTwoWritersFromAtomicOnes) {
  const DeviceMemory out = numbers(1);
  launch(count_threads, {.grid = dim3(5), .block = dim3(96)}, stream, out.as<int>());
  EXPECT_EQ(read<int>(out)[0], 480);
  launch(last_one_wins, {.grid = dim3(1), .block = dim3(2)}, stream, out.as<int>());
  EXPECT_TRUE(holds(violation(), "a race"));
}

__global__ void write_at(int* out, long index) { out[index] = 7; }
__global__ void read_at(const int* in, int* out, long index) { *out = in[index]; }

TEST_F(Emulation, FindsAccessesOutOfBounds) {
  for (const long index : {1000L, 5000L, -1L, -3000L}) {
    const DeviceMemory memory = numbers(1000), out = numbers(1);
    launch(write_at, {.grid = dim3(1), .block = dim3(1)}, stream, memory.as<int>(), index);
    EXPECT_NE(violation(), "0 violations") << index;
    start_again();
  }
  const DeviceMemory memory = numbers(1000), out = numbers(1);
  launch(read_at, {.grid = dim3(1), .block = dim3(1)}, stream, memory.as<int>(), out.as<int>(), 1000L);
  EXPECT_TRUE(holds(violation(), "an address that is not the device's"));
}

__global__ void write_through_const(const int* in) { *const_cast<int*>(in) = 7; }
struct Hidden {
  std::uint64_t inverted_address;
};
__global__ void write_hidden(Hidden hidden) {
  *reinterpret_cast<int*>(hidden.inverted_address ^ ~std::uint64_t{0}) = 7;
}

TEST_F(Emulation, AKernelUsesWhatItsArgumentsNameAsTheySay) {
  const DeviceMemory memory = numbers(1000);
  launch(write_through_const, {.grid = dim3(1), .block = dim3(1)}, stream, memory.as<int>());
  EXPECT_TRUE(holds(violation(), "an address that is not the device's"));
  start_again();
  const Hidden hidden{reinterpret_cast<std::uint64_t>(memory.data()) ^ ~std::uint64_t{0}};
  launch(write_hidden, {.grid = dim3(1), .block = dim3(1)}, stream, hidden);
  EXPECT_TRUE(holds(violation(), "an address that is not the device's"));
}

struct View {
  int rows;
  const int* data;
};
__global__ void read_view(View view, int* out) { *out = view.data[0]; }

TEST_F(Emulation, FindsAddressesOfTheHost) {
  const std::vector<int> mine(10, 3);
  const DeviceMemory out = numbers(1);
  launch(read_at, {.grid = dim3(1), .block = dim3(1)}, stream, mine.data(), out.as<int>(), 0L);
  EXPECT_TRUE(holds(violation(), "argument 0 of a kernel holds an address of the host's"));
  start_again();
  launch(read_view, {.grid = dim3(1), .block = dim3(1)}, stream, View{1, mine.data()}, out.as<int>());
  EXPECT_TRUE(holds(violation(), "argument 0 of a kernel holds an address of the host's"));
}

TEST_F(Emulation, TheHostCannotFollowAnAddressOfTheDevice) {
  const DeviceMemory memory = numbers(10);
  stream.synchronize();
  EXPECT_DEATH({ *memory.as<volatile int>() = 1; }, "");
}

__global__ void some_wait(int limit) {
  if (static_cast<int>(threadIdx.x) < limit) __syncthreads();
}
__global__ void wait_apart() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void vote_alone(int* out) {
  if (threadIdx.x == 3) *out = __any_sync(kAllLanes, 1);
}

TEST_F(Emulation, FindsThreadsThatDoNotMeet) {
  launch(some_wait, {.grid = dim3(1), .block = dim3(64)}, stream, 64);
  EXPECT_EQ(violation(), "0 violations");
  launch(some_wait, {.grid = dim3(1), .block = dim3(64)}, stream, 63);
  EXPECT_TRUE(holds(violation(),
                    "a thread ended while others wait at a barrier in block (0, 0, 0), thread (63, 0, 0)"));
  start_again();
  launch(wait_apart, {.grid = dim3(1), .block = dim3(64)}, stream);
  EXPECT_TRUE(holds(violation(), "different barriers"));
  start_again();
  const DeviceMemory out = numbers(1);
  launch(vote_alone, {.grid = dim3(1), .block = dim3(32)}, stream, out.as<int>());
  EXPECT_TRUE(holds(violation(), "lanes wait for others"));
}

__global__ void copy_beside(const uint4* in, uint4* out, bool waits) {
  uint4* const shared = dynamic_shared<uint4>();
  copy_async_16(shared + threadIdx.x, in + threadIdx.x);
  copy_async_commit();
  if (waits) copy_async_wait<0>();
  out[threadIdx.x] = shared[threadIdx.x];
}

TEST_F(Emulation, FindsWhoDoesNotWaitForHisCopies) {
  const DeviceMemory in = numbers(128), out = numbers(128);
  launch(add_index, {.grid = dim3(1), .block = dim3(128)}, stream, in.as<int>(), 1);
  const LaunchShape shape{.grid = dim3(1), .block = dim3(32), .shared_bytes = 512};
  launch(copy_beside, shape, stream, in.as<uint4>(), out.as<uint4>(), true);
  EXPECT_EQ(read<int>(out)[127], 127);
  launch(copy_beside, shape, stream, in.as<uint4>(), out.as<uint4>(), false);
  EXPECT_TRUE(holds(violation(), "a race"));
}

__global__ void warp_operations(float* out, unsigned* votes) {
  const auto lane = static_cast<float>(threadIdx.x % 32);
  out[threadIdx.x] = warp_sum(lane) + 1000.0f * warp_max(lane) + 1e6f * __shfl_sync(kAllLanes, lane, 5);
  votes[threadIdx.x] = __ballot_sync(kAllLanes, threadIdx.x % 3 == 0);
}

// A kernel that may begin before its inputs are there has to say where it needs them, in every thread.
__global__ void await_in_some(int* out, unsigned first_waiting) {
  if (threadIdx.x >= first_waiting) await_inputs();
  out[threadIdx.x] = 1;
}

TEST_F(Emulation, FindsThreadsThatDoNotAwaitTheirInputs) {
  const DeviceMemory out = numbers(64);
  const LaunchShape shape{.grid = dim3(1), .block = dim3(64), .awaits_inputs = true};
  launch(await_in_some, shape, stream, out.as<int>(), 0u);
  launch(await_in_some, {.grid = dim3(1), .block = dim3(64)}, stream, out.as<int>(), 64u);
  stream.synchronize();
  EXPECT_TRUE(take_violations().empty());
  launch(await_in_some, shape, stream, out.as<int>(), 1u);
  EXPECT_TRUE(holds(violation(), "never awaited its inputs"));
  start_again();
}

TEST_F(Emulation, WarpsShuffleAndVote) {
  const DeviceMemory out = numbers(64), votes = numbers(64);
  launch(warp_operations, {.grid = dim3(1), .block = dim3(64)}, stream, out.as<float>(),
         votes.as<unsigned>());
  for (const float value : read<float>(out)) EXPECT_EQ(value, 496.0f + 31000.0f + 5e6f);
  EXPECT_EQ(read<unsigned>(votes)[0], 0x49249249u);
  EXPECT_EQ(read<unsigned>(votes)[32], 0x92492492u);
}

// A [16][16] · B [16][8], the fragments loaded from shared memory as a kernel does.
__global__ void one_step(const __half* a, const __half* b, float* c) {
  __half* const shared = dynamic_shared<__half>();
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) shared[i] = a[i];
  for (unsigned i = lane; i < 128; i += 32) shared[256 + i] = b[i];
  __syncwarp();
  std::uint32_t fragment_a[4], fragment_b[2];
  load_matrices_x4(fragment_a, shared + (lane % 16) * 16 + lane / 16 * 8);
  load_matrices_x2_transposed(fragment_b, shared + 256 + (lane % 16) * 8);
  float sums[4] = {};
  multiply_step_f16(sums, fragment_a, fragment_b);
  for (unsigned i = 0; i < 4; ++i) c[(lane / 4 + (i < 2 ? 0 : 8)) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

TEST_F(Emulation, ATensorCoreStepIsAProduct) {
  PinnedMemory staging = PinnedMemory::allocate(768, "test").value();
  const DeviceMemory in = DeviceMemory::allocate(768, "test").value(), out = numbers(128);
  std::array<float, 256> a;
  std::array<float, 128> b;
  for (std::size_t i = 0; i < 256; ++i)
    staging.as<__half>()[i] = __float2half(a[i] = static_cast<float>(i % 7) - 3.0f);
  for (std::size_t i = 0; i < 128; ++i)
    staging.as<__half>()[256 + i] = __float2half(b[i] = static_cast<float>(i % 5) - 2.0f);
  stream.copy(in.data(), staging.data(), 768);
  launch(one_step, {.grid = dim3(1), .block = dim3(32), .shared_bytes = 768}, stream, in.as<__half>(),
         in.as<__half>() + 256, out.as<float>());
  const auto c = read<float>(out);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < 16; ++k) sum += a[row * 16 + k] * b[k * 8 + column];
      EXPECT_EQ(c[row * 8 + column], sum) << row << " " << column;
    }
  }
}

// A [16][32] · B [32][8] of signed bytes, begun with sums: in one step of 32 columns, and in two of 16. B
// stands as its columns. The fragments are loaded as a kernel does: rows of 16 bytes are rows of eight pairs.
__global__ void byte_steps(const std::int8_t* a, const std::int8_t* columns_of_b, const int* begin, int* c) {
  auto* const shared = dynamic_shared<std::int8_t>();
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 512; i += 32) shared[i] = a[i];
  for (unsigned i = lane; i < 256; i += 32) shared[512 + i] = columns_of_b[i];
  __syncwarp();
  std::uint32_t fragment_a[4], fragment_b[2];
  load_matrices_x4(fragment_a, shared + (lane % 16) * 32 + lane / 16 * 16);
  load_matrices_x2(fragment_b, shared + 512 + (lane % 8) * 32 + lane / 8 % 2 * 16);
  int start[4], whole[4], halves[4];
  const auto place = [lane](unsigned i) { return (lane / 4 + (i < 2 ? 0 : 8)) * 8 + lane % 4 * 2 + i % 2; };
  for (unsigned i = 0; i < 4; ++i) start[i] = begin[place(i)];
  multiply_step_s8_k32(whole, fragment_a, fragment_b, start);
  multiply_step_s8_k16(halves, fragment_a[0], fragment_a[1], fragment_b[0], start);
  multiply_step_s8_k16(halves, fragment_a[2], fragment_a[3], fragment_b[1], halves);
  for (unsigned i = 0; i < 4; ++i) c[place(i)] = whole[i], c[128 + place(i)] = halves[i];
}

TEST_F(Emulation, AStepOfSignedBytesIsAProduct) {
  PinnedMemory staging = PinnedMemory::allocate(768 + 512, "test").value();
  const DeviceMemory in = DeviceMemory::allocate(768 + 512, "test").value(), out = numbers(256);
  std::int8_t* const a = staging.as<std::int8_t>();
  std::int8_t* const b = a + 512;
  int* const begin = staging.as<int>() + 768 / 4;
  // Every byte is somewhere; the first row and column hold the least ones alone, whose product is the
  // largest.
  for (int i = 0; i < 512; ++i)
    a[i] = static_cast<std::int8_t>(i < 32 ? -128 : (i * 89 + i / 32) % 256 - 128);
  for (int i = 0; i < 256; ++i)
    b[i] = static_cast<std::int8_t>(i < 32 ? -128 : (i * 57 + i / 32) % 256 - 128);
  for (int i = 0; i < 128; ++i) begin[i] = 1000000 * i - 7;
  stream.copy(in.data(), staging.data(), 768 + 512);
  launch(byte_steps, {.grid = dim3(1), .block = dim3(32), .shared_bytes = 768}, stream, in.as<std::int8_t>(),
         in.as<std::int8_t>() + 512, in.as<int>() + 768 / 4, out.as<int>());
  const auto c = read<int>(out);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int sum = begin[row * 8 + column];
      for (int k = 0; k < 32; ++k) sum += a[row * 32 + k] * b[column * 32 + k];
      const auto place = static_cast<std::size_t>(row * 8 + column);
      EXPECT_EQ(c[place], sum) << row << " " << column;
      EXPECT_EQ(c[128 + place], sum) << row << " " << column << ", in two halves";
    }
  }
}

TEST_F(Emulation, AStreamDoesNotSeeWhatItDidNotWaitFor) {
  for (const StreamOrder order : {StreamOrder::kWhenNeeded, StreamOrder::kAtOnce}) {
    emulation::settings().stream_order = order;
    const DeviceMemory memory = numbers(4), copy = numbers(4);
    stream.synchronize();
    Stream other = Stream::create(status).value();
    const Event written = Event::create().value();
    for (const bool waits : {false, true}) {
      stream.fill(memory.data(), waits ? 2 : 1, 16);
      stream.record(written);
      if (waits) other.wait_for(written);
      other.copy(copy.data(), memory.data(), 16);
      other.synchronize();
      const bool is_seen = waits || order == StreamOrder::kAtOnce;
      EXPECT_EQ(read<std::uint8_t>(copy)[0], is_seen ? (waits ? 2 : 1) : 0);
    }
  }
}

TEST_F(Emulation, AsynchronousCopiesNeedPinnedMemory) {
  const DeviceMemory memory = numbers(4);
  std::vector<int> mine(4);
  stream.copy(memory.data(), mine.data(), 16);
  EXPECT_TRUE(holds(violation(), "the source of an asynchronous copy is not pinned"));
  EXPECT_EQ(status.result().error().code, ErrorCode::kDeviceLost);
}

TEST_F(Emulation, CopiesStayInTheirAllocation) {
  const DeviceMemory memory = numbers(4), other = numbers(8);
  stream.copy(memory.data(), other.data(), 20);
  EXPECT_TRUE(holds(violation(), "the target of a copy of 20 bytes leaves its allocation"));
}

TEST_F(Emulation, TheNthCallFailsAndAllAfterIt) {
  const DeviceMemory memory = numbers(4);
  emulation::fail_call(1, cudaErrorLaunchFailure);
  stream.fill(memory.data(), 1, 16);
  EXPECT_TRUE(status.ok());
  stream.synchronize();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(holds(status.result().error().message, "cudaStreamSynchronize: cudaErrorLaunchFailure"));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
}

TEST_F(Emulation, MemoryEnds) {
  emulation::settings().total_bytes = emulation::allocated_bytes() + 1000;
  const DeviceMemory some = DeviceMemory::allocate(900, "some").value();
  const auto more = DeviceMemory::allocate(101, "more");
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(holds(more.error().message, "more needs 101 bytes"));
  EXPECT_TRUE(DeviceMemory::allocate(100, "less").has_value());
}

TEST_F(Emulation, ACapturedStepRunsWhenItIsLaunched) {
  const DeviceMemory out = numbers(32);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  launch(add_index, {.grid = dim3(1), .block = dim3(32)}, stream, out.as<int>(), 1);
  ASSERT_EQ(cudaStreamEndCapture(stream.handle(), &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(read<int>(out)[31], 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream.handle()), cudaSuccess);
  EXPECT_EQ(read<int>(out)[31], 93);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

__global__ void sum_of_block(float* out) {
  out[threadIdx.x] = block_sum(static_cast<float>(threadIdx.x)) + block_max(static_cast<float>(threadIdx.x));
}

__global__ void nothing_kernel(int) {}

TEST_F(Emulation, CountsKernelsThatAreLoadedAndAllocations) {
  emulation::unload_kernels();
  for (int i = 0; i < 3; ++i) launch(nothing_kernel, {.grid = dim3(1), .block = dim3(1)}, stream, i);
  EXPECT_EQ(emulation::num_loaded_kernels(), 1);
  const std::int64_t before = emulation::num_allocations();
  const DeviceMemory memory = numbers(4);
  const PinnedMemory pinned = PinnedMemory::allocate(4, "test").value();
  EXPECT_EQ(emulation::num_allocations() - before, 2);
}

TEST_F(Emulation, SumsOfABlock) {
  const DeviceMemory out = numbers(96);
  launch(sum_of_block, {.grid = dim3(2), .block = dim3(96)}, stream, out.as<float>());
  for (const float value : read<float>(out)) EXPECT_EQ(value, 4560.0f + 95.0f);
}

}  // namespace
}  // namespace octavo::kernels::cuda
