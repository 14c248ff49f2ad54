#include "kernels/step_memory.h"

#include "kernels/backends.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/scratch_plan.h"

namespace octavo::kernels {

Result<std::int64_t> planned_scratch_bytes(const StepShape& shape, Activation activation,
                                           std::int32_t threads) {
  OCTAVO_TRY(const cpu::InstructionSet isa, cpu::choose_instruction_set());
  return cpu::plan_scratch(shape, activation, threads > 0 ? threads : num_physical_cores(), isa).bytes();
}

}  // namespace octavo::kernels
