// What sequences are called in the views of memory: a chat's title, or what the comparison calls its columns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/ids.h"

namespace octavo::app {

// Between the name of a request and that of one of its outputs: "Poems · sample 2".
inline constexpr std::string_view kBetweenNames = " · ";

// The whole name of an output of a request that belongs to no chat; nullopt when it is not known.
using SequenceNamer = std::function<std::optional<std::string>(RequestId, std::int32_t output_index)>;

}  // namespace octavo::app
