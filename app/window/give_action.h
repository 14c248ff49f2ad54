// Gives an action to the part of the window that takes it: the one that has an `apply` for it.
#pragma once

namespace octavo::app {

template <class Part, class Action>
concept Takes = requires(Part& part, const Action& action) {
  part.apply(action);
};

template <class Action, class... Parts>
void give_action(const Action& action, Parts&... parts) {
  static_assert((int{Takes<Parts, Action>} + ...) == 1, "exactly one part takes each action");
  const auto give = [&action]<class Part>(Part& part) {
    if constexpr (Takes<Part, Action>) part.apply(action);
  };
  (give(parts), ...);
}

}  // namespace octavo::app
