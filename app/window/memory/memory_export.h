// What the Memory workspace shows, as files for other programs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "ui/memory_state.h"

namespace octavo::app {

// The pools at the cursor: totals, figures, blocks, sequences. One JSON object.
std::string memory_json(const ui::MemoryWorkspaceState& state);
// A line for each step that is kept, with a heading.
std::string steps_csv(const ui::TimelineState& timeline);

// What became of a file that was asked for.
struct WrittenFile {
  std::string path;
  std::optional<Error> problem = {};
};

// A whole new file, or none.
Result<void> write_export(const std::filesystem::path& path, const std::string& bytes);

}  // namespace octavo::app
