#include "kernels/backends.h"

#include <cstdlib>
#include <string_view>

#include "engine/base/text.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::kernels {
namespace {

Error unknown_name(const std::string& option, std::string_view value, const std::string& choices) {
  return Error{ErrorCode::kInvalidArgument,
               option + ": '" + escape_for_message(value) + "' is not a device of Octavo; choose " + choices,
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

Error no_cuda(const std::string& option) {
  return Error{ErrorCode::kUnsupported, option + ": this build of Octavo has no CUDA backend; choose cpu",
               option};
}

}  // namespace

std::vector<std::string> built_backends() { return {"cpu", "reference"}; }

std::vector<std::string> usable_instruction_sets() {
  std::vector<std::string> names;
  for (const cpu::InstructionSet isa : cpu::usable_instruction_sets())
    names.emplace_back(cpu::instruction_set_name(isa));
  return names;
}

Result<std::unique_ptr<Backend>> create_backend(const BackendOptions& options) {
  if (const char* forced = std::getenv("OCTAVO_BACKEND"); forced != nullptr && *forced != '\0') {
    const std::string_view name = forced;
    if (name == "reference") return reference::create_reference_backend(options.activation);
    if (name == "cpu") return create_cpu(options);
    if (name == "cuda") return no_cuda("OCTAVO_BACKEND");
    return unknown_name("OCTAVO_BACKEND", name, "reference, cpu or cuda");
  }
  if (options.device == "auto" || options.device == "cpu") return create_cpu(options);
  if (options.device == "cuda") return no_cuda("device");
  return unknown_name("device", options.device, "auto, cpu or cuda");
}

}  // namespace octavo::kernels
