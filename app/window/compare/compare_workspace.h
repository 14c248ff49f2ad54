// The Compare workspace's own logic: where its questions come from, what is asked of the engine, and where
// answers that a person keeps go.
//
// Owns the comparison. Writes comparison, workspace and banner of the state. UI thread. What the constructor
// takes must outlive the workspace, an engine until it is detached.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "app/window/compare/compared_chats.h"
#include "app/window/compare/comparison.h"
#include "app/window/compare/comparison_export.h"
#include "engine/engine.h"
#include "ui/compare_actions.h"
#include "ui/state.h"

namespace octavo::app {

class CompareWorkspace {
 public:
  // A question that is typed here is first asked with `sampling`, the one that was chosen last.
  CompareWorkspace(const Clock& clock, ComparedChats& chats, const SamplingParams& sampling,
                   ui::UiState& state)
      : chats_(chats), sampling_(sampling), state_(state), comparison_(clock, state.comparison) {}

  // This engine is asked from now on. What runs on the one before is let finish.
  void attach_engine(Engine& engine);
  void detach_engine();
  // Of a poll: the engine that was attached last is asked as soon as nothing runs on the one before.
  void follow_engine();

  void apply(const ui::actions::OpenComparison& a);
  void apply(const ui::actions::TypeComparison& a);
  void apply(const ui::actions::ChangeComparison& a) { comparison_.change_setup(a.setup); }
  void apply(const ui::actions::RunComparison&);
  void apply(const ui::actions::RunComparisonAgain&);
  void apply(const ui::actions::StopComparison&) { comparison_.stop(); }
  void apply(const ui::actions::ForkAtToken& a) {
    comparison_.fork(a.column_id, a.token_index, a.alternative);
  }
  void apply(const ui::actions::KeepColumn& a);
  void apply(const ui::actions::KeepAllColumns&);
  void apply(const ui::actions::ContinueColumn& a) { continue_column(a.column_id); }
  void apply(const ui::actions::ExportComparison& a);

  // Shown without a question: the newest one of the chat at hand is the likeliest to be meant.
  void show_newest_question();

  // What it asks, and what it folds.
  Comparison& comparison() { return comparison_; }
  bool running() const { return comparison_.running(); }
  bool asks(const Engine& engine) const { return asked_ == &engine; }
  std::optional<ExportedComparison> take_export() { return std::exchange(export_, std::nullopt); }

 private:
  void open(ChatId chat_id, MessageId message_id);
  void ask_newest_engine();
  void continue_column(ui::ColumnId column_id);
  bool has_source() const;

  ComparedChats& chats_;
  const SamplingParams& sampling_;
  ui::UiState& state_;
  Comparison comparison_;
  Engine* newest_ = nullptr;
  Engine* asked_ = nullptr;
  std::optional<ExportedComparison> export_;
};

}  // namespace octavo::app
