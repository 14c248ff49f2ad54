// The prompts of a batch, from text: a prompt a line, or a table as RFC 4180 describes it. Pure.
//
// A table's fields stand apart by commas and may be quoted; inside quotes, commas and line ends are text, and
// a quote is written twice. Its first row is a header when a field of it is "prompt" (in any case); that
// column is then taken, and the others are passed over. Without a header the table has one column. Blank rows
// are passed over. Lines end with LF or CR LF; a byte order mark at the beginning is no text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "ui/batch_state.h"

namespace octavo::app {

// A sentence says which line is wrong, and what to do. At least one prompt, ui::kMostBatchPrompts at most.
Result<std::vector<std::string>> read_prompts(std::string_view text, ui::PromptFormat format);

}  // namespace octavo::app
