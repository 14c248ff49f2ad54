// The Compare workspace's own logic: where its questions come from, what is asked of the engine, and where
// answers that a person keeps go. What is sent of a long chat is planned first, as for the chat itself
// (context_plan.h).
//
// Owns the comparison. Writes comparison, workspace and banner of the state. UI thread. What the constructor
// takes must outlive the workspace, an engine until it is detached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/chat/context_plan.h"
#include "app/window/compare/compared_chats.h"
#include "app/window/compare/comparison.h"
#include "app/window/compare/comparison_export.h"
#include "app/window/plan_context.h"
#include "engine/engine.h"
#include "ui/compare_actions.h"
#include "ui/state.h"

namespace octavo::app {

class CompareWorkspace {
 public:
  // A question that is typed here is first asked with `sampling`, the one that was chosen last.
  CompareWorkspace(const Clock& clock, SeedSource draw_seed, ComparedChats& chats,
                   const SamplingParams& sampling, ui::UiState& state)
      : chats_(chats),
        sampling_(sampling),
        state_(state),
        comparison_(clock, std::move(draw_seed), state.comparison) {}

  // This engine, which the state describes already, is asked from now on. What runs on the one before is let
  // finish.
  void attach_engine(Engine& engine, PlanContext plan_context);
  void detach_engine();
  // Of a poll: the engine that was attached last is asked as soon as nothing runs on the one before.
  void follow_engine();

  void apply(const ui::actions::OpenComparison& a);
  void apply(const ui::actions::TypeComparison& a);
  void apply(const ui::actions::ChangeComparison& a) { comparison_.change_setup(a.setup); }
  void apply(const ui::actions::RunComparison&);
  void apply(const ui::actions::RunComparisonAgain&);
  void apply(const ui::actions::StopComparison&);
  void apply(const ui::actions::StopColumn& a) { comparison_.stop_column(a.column_id); }
  void apply(const ui::actions::ForkAtToken& a) {
    comparison_.fork(a.column_id, a.token_index, a.alternative);
  }
  void apply(const ui::actions::KeepColumn& a);
  void apply(const ui::actions::KeepAllColumns&);
  void apply(const ui::actions::ContinueColumn& a) { continue_column(a.column_id); }
  void apply(const ui::actions::ForkChatAtToken& a);
  void apply(const ui::actions::ExportComparison& a);

  void take_plan(PlanMade made);

  // Shown without a question: the newest one of the chat at hand is the likeliest to be meant.
  void show_newest_question();

  // What it shows of the pool.
  Comparison& comparison() { return comparison_; }
  bool fold(const EngineEvent& event) { return comparison_.fold(event); }
  void finish_poll();
  bool running() const { return comparison_.running() || !plans_.empty(); }
  bool asks(const Engine& engine) const { return asked_ == &engine; }
  std::optional<ExportedComparison> take_export() { return std::exchange(export_, std::nullopt); }

 private:
  void open(ChatId chat_id, MessageId message_id);
  void open(ContextQuestion question, Comparison::Source source);
  // What the lanes with one system prompt send, planned together: the longest answer counts.
  struct LanePlan {
    std::uint64_t id = 0;
    ContextQuestion question = {};
    std::vector<std::size_t> lanes = {};
    bool made = false;
    Comparison::LanePrompt prompt = {};
  };
  std::vector<LanePlan> lane_plans() const;
  void plan();
  void run_planned();
  std::pair<ChatId, MessageId> begin_chat(const ui::ComparedColumn& column, const Message& answer);
  void ask_newest_engine();
  void continue_column(ui::ColumnId column_id);
  bool has_source() const;

  ComparedChats& chats_;
  const SamplingParams& sampling_;
  ui::UiState& state_;
  Comparison comparison_;
  ContextQuestion question_;     // that is shown
  PlanContext plan_context_;     // empty: there is no vocabulary to plan with
  std::vector<LanePlan> plans_;  // that the comparison waits for
  std::uint64_t next_plan_id_ = 1;
  Engine* newest_ = nullptr;
  Engine* asked_ = nullptr;
  std::optional<ExportedComparison> export_;
};

}  // namespace octavo::app
