#include "ui/actions.h"

namespace octavo::ui {
namespace actions {

ChatAction::ChatAction(const ChatAction&) = default;
ChatAction::ChatAction(ChatAction&&) noexcept = default;
ChatAction& ChatAction::operator=(const ChatAction&) = default;
ChatAction& ChatAction::operator=(ChatAction&&) noexcept = default;
ChatAction::~ChatAction() = default;

CompareAction::CompareAction(const CompareAction&) = default;
CompareAction::CompareAction(CompareAction&&) noexcept = default;
CompareAction& CompareAction::operator=(const CompareAction&) = default;
CompareAction& CompareAction::operator=(CompareAction&&) noexcept = default;
CompareAction::~CompareAction() = default;

DesktopAction::DesktopAction(const DesktopAction&) = default;
DesktopAction::DesktopAction(DesktopAction&&) noexcept = default;
DesktopAction& DesktopAction::operator=(const DesktopAction&) = default;
DesktopAction& DesktopAction::operator=(DesktopAction&&) noexcept = default;
DesktopAction::~DesktopAction() = default;

MemoryAction::MemoryAction(const MemoryAction&) = default;
MemoryAction::MemoryAction(MemoryAction&&) noexcept = default;
MemoryAction& MemoryAction::operator=(const MemoryAction&) = default;
MemoryAction& MemoryAction::operator=(MemoryAction&&) noexcept = default;
MemoryAction::~MemoryAction() = default;

ModelAction::ModelAction(const ModelAction&) = default;
ModelAction::ModelAction(ModelAction&&) noexcept = default;
ModelAction& ModelAction::operator=(const ModelAction&) = default;
ModelAction& ModelAction::operator=(ModelAction&&) noexcept = default;
ModelAction::~ModelAction() = default;

TwoModelsAction::TwoModelsAction(const TwoModelsAction&) = default;
TwoModelsAction::TwoModelsAction(TwoModelsAction&&) noexcept = default;
TwoModelsAction& TwoModelsAction::operator=(const TwoModelsAction&) = default;
TwoModelsAction& TwoModelsAction::operator=(TwoModelsAction&&) noexcept = default;
TwoModelsAction::~TwoModelsAction() = default;

}  // namespace actions

Action::Action(const Action&) = default;
Action::Action(Action&&) noexcept = default;
Action& Action::operator=(const Action&) = default;
Action& Action::operator=(Action&&) noexcept = default;
Action::~Action() = default;

}  // namespace octavo::ui
