// Two models over one text, as the window has it: what a person chose and asked, and what the worker reports,
// into ui::TwoModelsState. What it wants done comes out of `take_effects`.
//
// UI thread; no file, thread or engine. What the constructor takes must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/window/compare/compared_chats.h"
#include "app/window/two_models/two_models_worker.h"
#include "engine/api/engine_options.h"
#include "ui/state.h"
#include "ui/two_models_actions.h"

namespace octavo::app {

struct TwoModelsEffects {
  std::vector<TwoModelsJob> jobs = {};
  bool cancel = false;  // the comparison under way
};

class TwoModels {
 public:
  TwoModels(ComparedChats& chats, ui::UiState& state) : chats_(chats), state_(state) {}

  // What the options of this start have in common for every model.
  void set_base(const EngineOptions& options) { base_ = options; }
  // The model that answers from now on is A.
  void set_first(const std::string& path);

  void apply(const ui::actions::ShowTwoModels& a);
  void apply(const ui::actions::ChooseSecondModel&) {}  // is the model picker's affair
  void apply(const ui::actions::TakeSecondModel& a);
  void apply(const ui::actions::ChangeWindowOfText& a);
  void apply(const ui::actions::ReadTextToCompare& a);
  void apply(const ui::actions::TakeAnswerAsText&);
  void apply(const ui::actions::CompareTwoModels& a);
  void apply(const ui::actions::CancelTwoModels&);
  void apply(const ui::actions::ForkText& a);

  void take(TwoModelsReport report);
  // True when something that is drawn changed.
  bool show_progress(const TwoModelsProgress& progress);

  bool running() const { return shown().phase != ui::TwoModelsPhase::kSetUp; }
  TwoModelsEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  ui::TwoModelsState& shown() { return state_.two_models; }
  const ui::TwoModelsState& shown() const { return state_.two_models; }
  comparison::ComparisonOptions options() const;
  void look();
  void take_one(TwoModelsSeen& report);
  void take_one(TextFileRead& report);
  void take_one(TextCompared& report);
  void put_text(std::string text, std::string source);

  ComparedChats& chats_;
  ui::UiState& state_;
  EngineOptions base_;
  std::string first_path_;
  std::vector<ChatMessage> answer_;    // that the text was taken from; empty: it is typed or read
  std::vector<ChatMessage> compared_;  // that the result is of
  std::uint64_t newest_look_ = 0, newest_comparison_ = 0;
  TwoModelsEffects effects_;
};

}  // namespace octavo::app
