// Where views put what a person asked for while they draw; the controller takes it out after the frame.
//
// A view includes this through the header of its own area, such as chat_actions.h, and pushes that area's
// actions: `push(actions::NewChat{})`. The actions of the areas that it does not include stay incomplete
// here.
#pragma once

#include <vector>

namespace octavo::ui {

namespace actions {
struct ChatAction;
struct CompareAction;
struct MemoryAction;
struct ModelAction;
struct DesktopAction;
struct TwoModelsAction;
}  // namespace actions

struct Action;  // actions.h

// UI thread only.
class ActionSink {
 public:
  ActionSink();
  ~ActionSink();
  ActionSink(const ActionSink&) = delete;
  ActionSink& operator=(const ActionSink&) = delete;

  void push(const actions::ChatAction& action);
  void push(const actions::CompareAction& action);
  void push(const actions::MemoryAction& action);
  void push(const actions::ModelAction& action);
  void push(const actions::DesktopAction& action);
  void push(const actions::TwoModelsAction& action);

  // All of them, in the order in which they were pushed.
  std::vector<Action> take();

 private:
  std::vector<Action> actions_;
};

}  // namespace octavo::ui
