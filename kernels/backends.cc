#include "kernels/backends.h"

#include <cstdlib>
#include <string_view>

#include "engine/base/text.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/isa.h"
#include "kernels/device_check.h"
#include "kernels/reference/reference_backend.h"

#if defined(OCTAVO_HAS_CUDA)
#include "kernels/cuda/create_cuda_backend.h"
#endif

namespace octavo::kernels {
namespace {

Error unknown_name(const std::string& option, std::string_view value, const std::string& choices) {
  return Error{ErrorCode::kInvalidArgument,
               option + ": '" + escape_for_message(value) + "' is not a known device; choose " + choices,
               option};
}

Result<std::unique_ptr<Backend>> create_cpu(const BackendOptions& options) {
  if (options.threads < 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "threads is " + std::to_string(options.threads) +
                     "; choose 1 or more, or 0 for one per physical core",
                 "threads"};
  }
  OCTAVO_TRY(const cpu::InstructionSet isa, cpu::choose_instruction_set());
  const std::int32_t threads = options.threads == 0 ? num_physical_cores() : options.threads;
  return cpu::create_cpu_backend(threads, options.activation, isa);
}

#if defined(OCTAVO_HAS_CUDA)

constexpr bool kHasCuda = true;

Result<void> find_device() { return cuda::find_device(); }

Result<void> refuse_unwritten(const BackendOptions& options) {
  for (const TensorType type : options.types) {
    if (cuda::multiplies(type)) continue;
    return Error{
        ErrorCode::kUnsupported,
        "tensors of type " + std::string(traits_of(type).name) + " do not run on the GPU yet; use cpu",
        "device"};
  }
  const char* const what = options.needs_latent_attention ? "latent attention"
                           : options.needs_experts        ? "experts"
                           : options.needs_states         ? "recurrent layers or gated attention"
                           : options.needs_unequal_layers ? "unequal layers"
                           : options.needs_scaled_queries ? "queries scaled by position"
                           : options.needs_other_norms    ? "norms at other places"
                           : options.needs_chunks         ? "attention in chunks"
                           : options.needs_column_orders  ? "groups that are not neighbours (desc_act)"
                                                          : nullptr;
  if (what == nullptr) return {};
  return Error{ErrorCode::kUnsupported,
               "models with " + std::string(what) + " do not run on the GPU yet; use cpu", "device"};
}

Result<std::unique_ptr<Backend>> create_cuda(const BackendOptions& options) {
  OCTAVO_TRY_VOID(find_device());
  OCTAVO_TRY_VOID(refuse_unwritten(options));
  OCTAVO_TRY(std::unique_ptr<Backend> host, create_cpu(options));
  const Activation activation = options.rounds_activations ? Activation::kInt16 : options.activation;
  OCTAVO_TRY(std::unique_ptr<Backend> device,
             cuda::create_cuda_backend(
                 {.activation = activation, .deterministic = options.deterministic, .graphs = options.graphs},
                 std::move(host)));
  const std::unique_ptr<Backend> definition = reference::create_reference_backend(Activation::kF32);
  OCTAVO_TRY_VOID(check_device(*device, *definition));
  return Result<std::unique_ptr<Backend>>(std::move(device));
}

#else

constexpr bool kHasCuda = false;

Result<void> find_device() {
  return Error{ErrorCode::kUnsupported, "this build of Octavo has no CUDA backend; use cpu", "device"};
}

Result<std::unique_ptr<Backend>> create_cuda(const BackendOptions&) { return find_device().error(); }

#endif

// With the option's name before the reason.
Result<std::unique_ptr<Backend>> create_wanted_cuda(const BackendOptions& options,
                                                    const std::string& option) {
  auto backend = create_cuda(options);
  if (backend) return backend;
  Error error = std::move(backend).error();
  error.message = option + ": " + error.message;
  error.subject = option;
  return error;
}

Result<std::unique_ptr<Backend>> choose(const BackendOptions& options, std::string* notice) {
  if (!find_device()) return create_cpu(options);
  auto backend = create_cuda(options);
  if (backend) return backend;
  if (notice != nullptr) {
    *notice = "using the CPU instead of the GPU: " + std::move(backend).error().message;
  }
  return create_cpu(options);
}

}  // namespace

std::vector<std::string> built_backends() {
  if (kHasCuda) return {"cuda", "cpu", "reference"};
  return {"cpu", "reference"};
}

std::vector<std::string> usable_instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::InstructionSet isa : cpu::usable_instruction_sets())
    names.emplace_back(cpu::instruction_set_name(isa));
  return names;
}

Result<std::unique_ptr<Backend>> create_backend(const BackendOptions& options, std::string* notice) {
  if (const char* forced = std::getenv("OCTAVO_BACKEND"); forced != nullptr && *forced != '\0') {
    const std::string_view name = forced;
    if (name == "reference") return reference::create_reference_backend(options.activation);
    if (name == "cpu") return create_cpu(options);
    if (name == "cuda") return create_wanted_cuda(options, "OCTAVO_BACKEND");
    return unknown_name("OCTAVO_BACKEND", name, "reference, cpu or cuda");
  }
  if (options.device == "auto") return choose(options, notice);
  if (options.device == "cpu") return create_cpu(options);
  if (options.device == "cuda") return create_wanted_cuda(options, "device");
  return unknown_name("device", options.device, "auto, cpu or cuda");
}

}  // namespace octavo::kernels
