// What a person asked for while choosing a model, as values.
#pragma once

#include <string>
#include <variant>

#include "ui/model_picker_state.h"

namespace octavo::ui::actions {

struct OpenModelPicker {};
struct OpenModelFile {  // the picker, on this file
  std::string path;
};

struct CloseModelPicker {};
struct ChooseModel {  // a row, or a file of the browser
  std::string path;
};
struct ForgetModel {  // a recent one whose file is gone
  std::string path;
};
struct ChangeLoadOptions {
  ModelLoadOptions options;
};
// What may happen to answers under way. Those that are kept finish on the model that they began with.
enum class RunningAnswers { kFinish, kStop };
struct LoadChosenModel {
  RunningAnswers running = RunningAnswers::kFinish;
};
struct ShowFileBrowser {
  bool open = false;
};
struct BrowseTo {  // a path that was typed or chosen, whole or in part
  std::string text;
  bool is_typed = true;  // false: the field takes this text
};

using ModelPickerAction = std::variant<CloseModelPicker, ChooseModel, ForgetModel, ChangeLoadOptions,
                                       LoadChosenModel, ShowFileBrowser, BrowseTo>;

struct PickModel {
  ModelPickerAction action;
};

}  // namespace octavo::ui::actions
