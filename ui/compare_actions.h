// What a person asked for in the Compare workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/ids.h"
#include "ui/action_sink.h"
#include "ui/batch_state.h"
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
struct StopColumn {  // the others go on
  ColumnId column_id;
};
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
// A chat whose answer begins with the tokens before, and this alternative, and goes on from there.
struct ForkChatAtToken {
  ColumnId column_id;
  std::size_t token_index = 0;
  std::size_t alternative = 0;
};
enum class ComparisonFormat { kJson, kMarkdown };
struct ExportComparison {
  ComparisonFormat format;
  std::string path = {};  // empty: it is asked for
};

// ---- the batch

struct ChangeBatch {
  std::vector<ComparedSettings> settings;
  std::optional<std::uint64_t> seed;
};
struct RunBatch {  // these prompts with each of the settings
  std::string prompts;
  PromptFormat format = PromptFormat::kLines;
};
struct StopBatch {};
struct ReadPrompts {  // from a file; a name that ends in ".csv" is a table
  std::string path;
};
enum class BatchFormat { kJson, kCsv };
struct ExportBatch {
  BatchFormat format;
  std::string path = {};  // empty: it is asked for
};
struct StartVote {};
struct CastVote {  // for the answer at this place of the ballot; none: a tie
  std::optional<std::size_t> place;
};
struct UndoVote {};  // the newest one
struct EndVote {};   // what was voted so far counts

struct CompareAction
    : std::variant<OpenComparison, TypeComparison, ChangeComparison, RunComparison, RunComparisonAgain,
                   StopComparison, StopColumn, ForkAtToken, KeepColumn, KeepAllColumns, ContinueColumn,
                   ForkChatAtToken, ExportComparison, ChangeBatch, RunBatch, StopBatch, ReadPrompts,
                   ExportBatch, StartVote, CastVote, UndoVote, EndVote> {
  using variant::variant;
  CompareAction(const CompareAction&);
  CompareAction(CompareAction&&) noexcept;
  CompareAction& operator=(const CompareAction&);
  CompareAction& operator=(CompareAction&&) noexcept;
  ~CompareAction();
};

}  // namespace octavo::ui::actions
