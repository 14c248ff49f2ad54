#include "kernels/cuda/cuda_backend.h"

#include <algorithm>

#include "kernels/cuda/create_cuda_backend.h"
#include "kernels/cuda/matmul/library.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/pool_size.h"

namespace octavo::kernels::cuda {
namespace {

// From which tokens are drawn together, so that the output head is read once for a usual batch; of a
// vocabulary of 128,256 they take 131 MB.
constexpr std::int32_t kMostDrawnRows = 256;
constexpr int kMostStarted = 2;  // calls of start_draws() that are not taken

Error no_device(const std::string& reason) {
  return Error{ErrorCode::kUnsupported, reason + "; use cpu", "device"};
}

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(DeviceMemory memory, std::int64_t size)
      : Buffer(memory.as<float>(), size), memory_(std::move(memory)) {}

 private:
  DeviceMemory memory_;
};

// "sm_90", "gfx1100"
std::string architecture_of(const cudaDeviceProp& properties) {
#ifdef OCTAVO_HIP
  return properties.gcnArchName;
#else
  return "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
#endif
}

// Kernels are written for 32 lanes in step. AMD's cards for graphics have them (RDNA); those for computing
// alone (CDNA) have 64.
Result<void> check_architecture(const cudaDeviceProp& properties) {
  if (properties.warpSize != static_cast<int>(kWarp)) {
    return no_device(std::string(properties.name) + " (" + architecture_of(properties) + ") has warps of " +
                     std::to_string(properties.warpSize) + " lanes; " + std::to_string(kWarp) +
                     " are required");
  }
#ifndef OCTAVO_HIP
  constexpr int kLeastMajor = 7,
                kLeastMinor = 5;  // tensor-core steps with float16 numbers and 8 x 8 loads
  const bool is_new_enough =
      properties.major > kLeastMajor || (properties.major == kLeastMajor && properties.minor >= kLeastMinor);
  if (!is_new_enough) {
    return no_device(std::string(properties.name) + " has compute capability " +
                     std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                     "; 7.5 or later is required");
  }
#endif
  return {};
}

Result<cudaDeviceProp> device_properties() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    return no_device(std::string("this machine has no ") + kVendor + " driver");
  }
  if (code != cudaSuccess)
    return no_device(std::string("no ") + kVendor + " device is usable: " + cudaGetErrorString(code));
  if (count == 0) return no_device(std::string("this machine has no ") + kVendor + " device");
  cudaDeviceProp properties{};
  OCTAVO_TRY_VOID(checked(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties"));
  OCTAVO_TRY_VOID(check_architecture(properties));
  return properties;
}

std::int64_t num_tables_entries(const StepShape& shape) {
  const std::int64_t blocks = (std::int64_t{shape.max_context_len} + shape.block_size - 1) / shape.block_size;
  return most_sequences(shape) * blocks;
}

// Of a step: three numbers and the rotations of each row, three of each sequence (which are filled up to no
// more than there are rows), the tables, and of each row a draw; each array filled up.
std::int64_t input_bytes(const StepShape& shape) {
  const std::int64_t rotations = shape.head_dim * (shape.has_local_rotations ? 2 : 1);
  constexpr std::int64_t kDrawNumbers = 1 + sizeof(DeviceDraw) / 4;
  const std::int64_t numbers =
      shape.num_rows * (3 + rotations + 2 + kDrawNumbers) + 1 + num_tables_entries(shape);
  constexpr std::int64_t kNumArrays = 12, kLeast = 64 * 1024;  // room for lists of copies
  return std::max(numbers * 4 + kNumArrays * UploadRing::kAlignment, kLeast);
}

// Angles of all positions that are kept: those of 131,072 with heads of 128. Of more, each step sends its
// rows'.
constexpr std::int64_t kMostRotationBytes = std::int64_t{64} << 20;

std::int64_t rotation_floats(const StepShape& shape) {
  return std::int64_t{shape.max_context_len} * shape.head_dim * (shape.has_local_rotations ? 2 : 1);
}

}  // namespace

Result<void> find_device() {
  OCTAVO_TRY([[maybe_unused]] const cudaDeviceProp properties, device_properties());
  return {};
}

Result<std::unique_ptr<Backend>> create_cuda_backend(const CudaOptions& options,
                                                     std::unique_ptr<Backend> host) {
  OCTAVO_TRY(std::unique_ptr<CudaBackend> backend, CudaBackend::create(options, std::move(host)));
  return std::unique_ptr<Backend>(std::move(backend));
}

Result<std::unique_ptr<CudaBackend>> CudaBackend::create(const CudaOptions& options,
                                                         std::unique_ptr<Backend> host) {
  OCTAVO_TRY(const cudaDeviceProp properties, device_properties());
  OCTAVO_TRY_VOID(checked(cudaSetDevice(0), "cudaSetDevice"));
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options, std::move(host)));
  backend->isa_ = architecture_of(properties) + " " + properties.name;
  OCTAVO_TRY(Stream compute, Stream::create(backend->status_));
  backend->compute_.emplace(std::move(compute));
  OCTAVO_TRY(Stream moves, Stream::create(backend->status_));
  backend->moves_.emplace(std::move(moves));
  OCTAVO_TRY(Event computed, Event::create());
  backend->computed_.emplace(std::move(computed));
  OCTAVO_TRY(Event moved, Event::create());
  backend->moved_.emplace(std::move(moved));
  for (std::optional<MoveTimer>* const timer : {&backend->out_timer_, &backend->in_timer_}) {
    OCTAVO_TRY(Event begin, Event::create(Event::Kind::kTellsTime));
    OCTAVO_TRY(Event end, Event::create(Event::Kind::kTellsTime));
    timer->emplace(MoveTimer{.begin = std::move(begin), .end = std::move(end)});
  }

  if (!options.deterministic) backend->library_ = open_library();
  const ProductOptions products{
      .deterministic = options.deterministic,
      .half_parts = options.activation == Activation::kF32 ? HalfParts::kTwo : HalfParts::kOne,
      .num_multiprocessors = properties.multiProcessorCount,
      .multiprocessor_shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor),
      .library = backend->library_};
  OCTAVO_TRY(backend->products_, MatrixProducts::create(*backend->compute_, products));
  backend->attention_ = PagedAttention::create(
      *backend->compute_, {.deterministic = options.deterministic,
                           .half_parts = products.half_parts,
                           .num_multiprocessors = properties.multiProcessorCount,
                           .max_shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin)});
  return Result<std::unique_ptr<CudaBackend>>(std::move(backend));
}

CudaBackend::~CudaBackend() {
  if (compute_) compute_->synchronize();
  if (moves_) moves_->synchronize();
  products_.reset();
  close_library(library_);
}

std::optional<DeviceBytes> CudaBackend::device_bytes() const {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
    return DeviceBytes{};  // status() has the reason, or will
  return DeviceBytes{.free_bytes = static_cast<std::int64_t>(free_bytes),
                     .total_bytes = static_cast<std::int64_t>(total_bytes)};
}

bool multiplies(TensorType type) { return !traits_of(type).quantised || is_quantised(type); }

Result<std::unique_ptr<Matrix>> CudaBackend::prepare_matrix(const MatrixSource& source) {
  OCTAVO_CHECK(multiplies(source.type) && source.scale == 1.0f && source.column_order.empty(),
               "a matrix of %s, scaled by %g", traits_of(source.type).name.data(),
               static_cast<double>(source.scale));
  if (!loader_) {
    OCTAVO_TRY(WeightLoader loader, WeightLoader::create(status_));
    loader_.emplace(std::move(loader));
  }
  OCTAVO_TRY(std::unique_ptr<DeviceMatrix> matrix, loader_->prepare(source));
  return std::unique_ptr<Matrix>(std::move(matrix));
}

Result<std::unique_ptr<Buffer>> CudaBackend::prepare_vector(std::span<const float> values) {
  OCTAVO_TRY(DeviceMemory memory,
             upload(values.data(), static_cast<std::int64_t>(values.size_bytes()), "a vector of weights"));
  return std::unique_ptr<Buffer>(
      std::make_unique<CudaBuffer>(std::move(memory), static_cast<std::int64_t>(values.size())));
}

Result<std::unique_ptr<KvCache>> CudaBackend::allocate_kv_cache(const KvLayout& layout,
                                                                std::int32_t num_blocks) {
  OCTAVO_TRY(const std::int64_t bytes, kv_pool_bytes(layout, num_blocks));
  OCTAVO_TRY(DeviceMemory memory, DeviceMemory::allocate(bytes, "the KV pool"));
  return std::unique_ptr<KvCache>(std::make_unique<CudaKvCache>(layout, num_blocks, std::move(memory)));
}

Result<std::unique_ptr<HostKvCache>> CudaBackend::allocate_host_kv_cache(const KvLayout& layout,
                                                                         std::int32_t num_blocks) {
  OCTAVO_TRY(const std::int64_t bytes, kv_pool_bytes(layout, num_blocks));
  OCTAVO_TRY(PinnedMemory memory, PinnedMemory::allocate(bytes, "the host pool"));
  return std::unique_ptr<HostKvCache>(
      std::make_unique<CudaHostKvCache>(layout, num_blocks, std::move(memory)));
}

Result<std::unique_ptr<Buffer>> CudaBackend::allocate_buffer(std::int64_t num_floats) {
  std::int64_t num_bytes;
  if (num_floats < 0 || __builtin_mul_overflow(num_floats, std::int64_t{sizeof(float)}, &num_bytes)) {
    return Error{ErrorCode::kInvalidArgument,
                 "a buffer of " + std::to_string(num_floats) + " floats is impossible"};
  }
  OCTAVO_TRY(DeviceMemory memory, DeviceMemory::allocate(num_bytes, "working memory"));
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(std::move(memory), num_floats));
}

Result<CudaBackend::Scratch> CudaBackend::allocate_scratch(const StepShape& shape) {
  constexpr const char* kPurpose = "working memory";
  constexpr std::int64_t kFloat = sizeof(float);
  const std::int64_t kv_bytes = std::int64_t{shape.num_rows} * shape.num_kv_heads * shape.head_dim * kFloat;
  const std::int64_t host_rows = shape.num_logits_rows;
  const std::int64_t rows =
      std::max(shape.num_logits_rows, std::min(shape.max_num_sequences, kMostDrawnRows));
  const std::int64_t row_bytes = shape.vocabulary_size * kFloat;
  const std::int64_t pieces_row_bytes = num_logits_pieces(shape.vocabulary_size) * kFloat;
  const std::int64_t list_bytes = LogitAdjuster::input_bytes(shape.num_adjusted_tokens, rows);
  OCTAVO_TRY(UploadRing inputs, UploadRing::create(std::max(input_bytes(shape), list_bytes)));
  OCTAVO_TRY(TokenSampler sampler, TokenSampler::create(*compute_, shape.vocabulary_size));
  OCTAVO_TRY(LogitAdjuster adjuster, LogitAdjuster::create(shape.num_adjusted_tokens, rows));
  Scratch scratch{
      .inputs = std::move(inputs), .sampler = std::move(sampler), .adjuster = std::move(adjuster)};
  const std::int64_t most_draws = std::max<std::int64_t>(shape.num_rows, rows);
  scratch.draw_bytes = draw_list_bytes(most_draws, most_draws);
  OCTAVO_TRY(scratch.step_inputs, DeviceMemory::allocate(scratch.draw_bytes + input_bytes(shape), kPurpose));
  if (const std::int64_t bytes = rotation_floats(shape) * kFloat; bytes <= kMostRotationBytes) {
    scratch.num_kept_rotations = shape.max_context_len;
    OCTAVO_TRY(scratch.rotations, DeviceMemory::allocate(bytes, kPurpose));
  }
  OCTAVO_TRY(scratch.keys, DeviceMemory::allocate(kv_bytes, kPurpose));
  OCTAVO_TRY(scratch.values, DeviceMemory::allocate(kv_bytes, kPurpose));
  const std::int64_t added_rows = shape.has_post_norms ? shape.num_rows : 0;
  OCTAVO_TRY(scratch.added, DeviceMemory::allocate(added_rows * shape.embedding_length * kFloat, kPurpose));
  scratch.logits_rows = static_cast<std::int32_t>(rows);
  OCTAVO_TRY(scratch.logits, DeviceMemory::allocate(rows * row_bytes, kPurpose));
  OCTAVO_TRY(scratch.sums, DeviceMemory::allocate(rows * kFloat, kPurpose));
  OCTAVO_TRY(scratch.piece_maxima, DeviceMemory::allocate(rows * pieces_row_bytes, kPurpose));
  OCTAVO_TRY(scratch.piece_sums, DeviceMemory::allocate(rows * pieces_row_bytes, kPurpose));
  OCTAVO_TRY(scratch.host_logits, PinnedMemory::allocate(host_rows * row_bytes, kPurpose));
  OCTAVO_TRY(scratch.host_sums, PinnedMemory::allocate(host_rows * kFloat, kPurpose));
  OCTAVO_TRY(scratch.host_piece_maxima, PinnedMemory::allocate(host_rows * pieces_row_bytes, kPurpose));
  const std::int64_t drawn_bytes = most_draws * static_cast<std::int64_t>(sizeof(DrawnToken));
  OCTAVO_TRY(scratch.drawn, DeviceMemory::allocate(drawn_bytes, kPurpose));
  for (int i = 0; i < kMostStarted; ++i) {
    OCTAVO_TRY(PinnedMemory tokens, PinnedMemory::allocate(drawn_bytes, kPurpose));
    OCTAVO_TRY(Event has_arrived, Event::create());
    scratch.host_drawn.push_back({std::move(tokens), std::move(has_arrived)});
  }
  return Result<Scratch>(std::move(scratch));
}

std::int64_t CudaBackend::Scratch::bytes() const {
  std::int64_t bytes = inputs.bytes() + sampler.bytes() + adjuster.bytes() + drawn.bytes();
  for (const DeviceMemory* memory :
       {&step_inputs, &rotations, &keys, &values, &added, &logits, &sums, &piece_maxima, &piece_sums})
    bytes += memory->bytes();
  return bytes;
}

Result<void> CudaBackend::reserve_step(const StepShape& shape) {
  loader_.reset();
  compute_->synchronize();
  recorded_.clear();  // they hold addresses of what ends here
  recorded_best_.clear();
  recorded_draws_.clear();
  graph_bytes_ = 0;
  OCTAVO_TRY(Scratch scratch, allocate_scratch(shape));
  scratch_.reset();
  scratch_.emplace(std::move(scratch));
  OCTAVO_TRY_VOID(products_->reserve(shape));
  OCTAVO_TRY_VOID(attention_->reserve(shape));
  shape_ = shape;
  decode_rows_ = filled_rows(std::min(most_sequences(shape), shape.num_rows));
  mixed_rows_.clear();
  if (!options_.deterministic) mixed_rows_ = filled_rows(shape.num_rows);
  std::erase(mixed_rows_, 1);
  drawn_rows_ = filled_rows(std::min(scratch_->logits_rows, shape.num_rows));
  return {};
}

Result<void> CudaBackend::keep_rotations(std::span<const float> rotations,
                                         std::span<const float> local_rotations) {
  OCTAVO_CHECK(scratch_.has_value() && rotations.size_bytes() + local_rotations.size_bytes() <=
                                           static_cast<std::size_t>(scratch_->rotations.bytes()),
               "angles of %zu and %zu numbers were not reserved", rotations.size(), local_rotations.size());
  float* const kept = scratch_->rotations.as<float>();
  scratch_->kept_rotations = kept;
  if (!local_rotations.empty()) scratch_->kept_local_rotations = kept + rotations.size();
  OCTAVO_TRY_VOID(upload_to(kept, rotations.data(), static_cast<std::int64_t>(rotations.size_bytes())));
  return upload_to(kept + rotations.size(), local_rotations.data(),
                   static_cast<std::int64_t>(local_rotations.size_bytes()));
}

// Set aside until steps are recorded: for each and layer a dozen kernels, and as many for draws in each of
// two ways. What a driver takes for one is not documented.
std::int64_t CudaBackend::planned_graph_bytes() const {
  constexpr std::int64_t kBytesPerLayer = 12 * 8 * 1024;
  if (!options_.graphs) return 0;
  const auto num_steps = static_cast<std::int64_t>(steps_to_record().size()),
             num_draws = 2 * std::ssize(drawn_rows_);
  return (num_steps * shape_.num_layers + num_draws) * kBytesPerLayer;
}

std::int64_t CudaBackend::scratch_bytes() const {
  const std::int64_t graph_bytes = recorded_.empty() ? planned_graph_bytes() : graph_bytes_;
  return graph_bytes + (scratch_ ? scratch_->bytes() : 0) + (loader_ ? loader_->bytes() : 0) +
         products_->scratch_bytes() + attention_->scratch_bytes();
}

}  // namespace octavo::kernels::cuda
