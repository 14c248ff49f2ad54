// What a person asked for about two models over one text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "ui/action_sink.h"
#include "ui/two_models_state.h"

namespace octavo::ui::actions {

struct ShowTwoModels {
  bool open = true;
};
struct ChooseSecondModel {};  // in the model picker
struct TakeSecondModel {      // that was chosen there
  std::string path;
};
struct ChangeWindowOfText {
  std::int32_t context = 0;  // tokens
};
struct ReadTextToCompare {
  std::string path;  // as people type it
};
struct TakeAnswerAsText {};  // question and answer of the chat that is shown, as its model reads them
struct CompareTwoModels {
  std::string text;
};
struct CancelTwoModels {};
struct ForkText {         // a chat whose answer begins with the text before this token
  std::size_t token = 0;  // of TwoModelsResult::text
  std::string instead;    // what goes on there
};

struct TwoModelsAction
    : std::variant<ShowTwoModels, ChooseSecondModel, TakeSecondModel, ChangeWindowOfText, ReadTextToCompare,
                   TakeAnswerAsText, CompareTwoModels, CancelTwoModels, ForkText> {
  using variant::variant;
  TwoModelsAction(const TwoModelsAction&);
  TwoModelsAction(TwoModelsAction&&) noexcept;
  TwoModelsAction& operator=(const TwoModelsAction&);
  TwoModelsAction& operator=(TwoModelsAction&&) noexcept;
  ~TwoModelsAction();
};

}  // namespace octavo::ui::actions
