// The right side of the model picker: what is inside the chosen file, the memory that it needs before it is
// loaded, what can be chosen about that, and the load itself.
#pragma once

#include <cstdint>
#include <vector>

#include "ui/frame.h"

namespace octavo::ui {

// In the current window.
void draw_model_inside(const Frame& frame, const UiState& state);

// The lengths that the control steps through: powers of two from 512 on that are below the model's context;
// last 0, the context itself.
std::vector<std::int32_t> context_steps(std::int32_t context_length);
// Sizes of the pool, MiB: 0 (as many blocks as usual), then powers of two up to the first that is not below
// `free_bytes`.
std::vector<std::int64_t> pool_steps(std::int64_t free_bytes);

}  // namespace octavo::ui
