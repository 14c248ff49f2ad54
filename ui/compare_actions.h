// What a person asked for in the Compare workspace.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "engine/base/ids.h"
#include "ui/action_sink.h"
#include "ui/compare_state.h"

namespace octavo::ui::actions {

struct OpenComparison {  // of a message of the user, with everything before it
  ChatId chat_id;
  MessageId message_id;
};
struct TypeComparison {  // a question of its own, without a chat
  std::string text;
};
struct ChangeComparison {
  ComparisonSetup setup;
};
struct RunComparison {};
struct RunComparisonAgain {};  // what ran last, with the seeds that it had
struct StopComparison {};
struct ForkAtToken {  // a column that begins with the tokens before, and this alternative
  ColumnId column_id;
  std::size_t token_index = 0;
  std::size_t alternative = 0;
};
struct KeepColumn {  // as the chat's answer, on the active path
  ColumnId column_id;
};
struct KeepAllColumns {};  // as answers beside each other
struct ContinueColumn {    // question and answer become a chat of their own
  ColumnId column_id;
};
enum class ComparisonFormat { kJson, kMarkdown };
struct ExportComparison {
  ComparisonFormat format;
};

struct CompareAction : std::variant<OpenComparison, TypeComparison, ChangeComparison, RunComparison,
                                    RunComparisonAgain, StopComparison, ForkAtToken, KeepColumn,
                                    KeepAllColumns, ContinueColumn, ExportComparison> {
  using variant::variant;
};

}  // namespace octavo::ui::actions
