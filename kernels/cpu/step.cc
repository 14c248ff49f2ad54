// What the layers of a step have in common.
#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::begin_step(const PagedBatch& batch, std::span<const std::int32_t>) {
  step_attention_->begin_step(batch);
}

}  // namespace octavo::kernels::cpu
