// What memory is for, as a bar: weights, KV pool, working memory. Arithmetic on a loaded engine, or on a
// shape that is known by name.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/api/model_description.h"
#include "ui/memory_state.h"

namespace octavo::app {

// Of this machine's memory. `working_bytes` is what the model needs beside weights and pool.
ui::MemoryBar memory_bar(const EngineDescription& description, std::int64_t total_bytes);

// A model by name with weights of two bytes (f16) on a device of `total_bytes`, the rest of it for KV blocks.
// An empty bar for a name that nobody knows. Amounts are decimal, as devices are sold.
ui::MemoryBar shape_memory_bar(std::string_view shape, std::int64_t total_bytes);

// Of the machine, as the system says; 0 when it does not.
std::int64_t physical_memory_bytes();

}  // namespace octavo::app
