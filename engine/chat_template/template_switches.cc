#include "engine/chat_template/template_switches.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace octavo::tokenizer {
namespace {

struct KnownName {
  SwitchKind kind;
  std::string_view name;
};
constexpr KnownName kKnownNames[] = {
    {SwitchKind::kThinking, "enable_thinking"},
    {SwitchKind::kThinking, "thinking"},
    {SwitchKind::kEffort, "reasoning_effort"},
    {SwitchKind::kEffort, "reasoning_strength"},
    {SwitchKind::kEffort, "thinking_effort"},
    {SwitchKind::kEarlierThinking, "preserve_thinking"},
    {SwitchKind::kEarlierThinking, "preserved_thinking"},
    {SwitchKind::kEarlierThinking, "keep_past_thinking"},
    {SwitchKind::kEarlierThinking, "clear_thinking"},
    {SwitchKind::kEarlierThinking, "drop_thinking"},
    {SwitchKind::kEarlierThinking, "truncate_history_thinking"},
};
// The commonest words first: of several that print the same, the first is offered.
constexpr std::string_view kEfforts[] = {"high", "low", "medium", "none", "max", "xhigh", "minimal"};
constexpr std::string_view kEffortsAscending[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
constexpr std::string_view kUsualEfforts[] = {"low", "medium", "high"};
constexpr std::string_view kNoEffort = "octavo";  // that no template knows

// What a template prints for the chats that are tried; nothing: it refuses them.
using Printed = std::vector<std::optional<std::string>>;

class Trial {
 public:
  Trial(const ChatTemplate& chat_template, const ChatTemplateConstants& constants)
      : template_(chat_template), constants_(constants), usual_(print({})) {}

  const Printed& usual() const { return usual_; }
  bool prints_nothing() const {
    return std::ranges::none_of(usual_, [](const auto& text) { return text.has_value(); });
  }

  // nullopt: a chat that the template takes otherwise is refused.
  std::optional<Printed> with(std::string_view name, TemplateValue value) const {
    Printed printed = print({{std::string(name), std::move(value)}});
    for (std::size_t i = 0; i < printed.size(); ++i) {
      if (usual_[i] && !printed[i]) return std::nullopt;
    }
    return printed;
  }

 private:
  Printed print(const TemplateValues& values) const {
    const ChatMessage question{.role = Role::kUser, .content = "question"};
    const ChatMessage system{.role = Role::kSystem, .content = "instruction"};
    const ChatMessage answer{.role = Role::kAssistant, .content = "<think>\nthought\n</think>\n\nanswer"};
    Printed printed;
    for (const std::vector<ChatMessage>& chat :
         {std::vector{question}, std::vector{system, question}, std::vector{question, answer, question}}) {
      const auto spans = template_.render(chat, constants_, {0, values});
      std::string text;
      if (spans) {
        for (const PromptSpan& span : *spans) text += span.text;
      }
      printed.push_back(spans ? std::optional(std::move(text)) : std::nullopt);
    }
    return printed;
  }

  const ChatTemplate& template_;
  const ChatTemplateConstants& constants_;
  const Printed usual_;
};

bool is_free_text(const Trial& trial, std::string_view name) {
  const auto printed = trial.with(name, std::string(kNoEffort));
  return printed && std::ranges::any_of(*printed, [](const std::optional<std::string>& text) {
           return text && text->find(kNoEffort) != std::string::npos;
         });
}

std::vector<TemplateValue> candidates(const Trial& trial, const KnownName& known) {
  std::vector<TemplateValue> values;
  if (known.kind != SwitchKind::kEffort) return {true, false};
  const auto add = [&](const auto& names) {
    for (const std::string_view name : names) values.emplace_back(std::string(name));
  };
  if (is_free_text(trial, known.name)) {
    add(kUsualEfforts);
  } else {
    add(kEfforts);
  }
  return values;
}

struct Choice {
  TemplateValue value;
  Printed printed;
};

std::size_t rank(const Choice& choice) {
  const auto* const text = std::get_if<std::string>(&choice.value);
  if (text == nullptr) return 0;
  return static_cast<std::size_t>(std::ranges::find(kEffortsAscending, *text) -
                                  std::begin(kEffortsAscending));
}

std::optional<TemplateSwitch> find_switch(const Trial& trial, const KnownName& known) {
  std::vector<Choice> choices;
  for (TemplateValue& value : candidates(trial, known)) {
    auto printed = trial.with(known.name, value);
    if (!printed || std::ranges::find(choices, *printed, &Choice::printed) != choices.end()) continue;
    choices.push_back({std::move(value), *std::move(printed)});
  }
  std::ranges::stable_sort(choices, {}, rank);
  const auto usual = std::ranges::find(choices, trial.usual(), &Choice::printed);
  const bool changes_nothing = choices.size() == static_cast<std::size_t>(usual != choices.end());
  if (changes_nothing) return std::nullopt;
  TemplateSwitch found;
  found.kind = known.kind;
  found.name = known.name;
  found.usual = static_cast<std::size_t>(usual - choices.begin());
  for (Choice& choice : choices) found.choices.push_back(std::move(choice.value));
  return found;
}

}  // namespace

std::vector<TemplateSwitch> find_template_switches(const ChatTemplate& chat_template,
                                                   const ChatTemplateConstants& constants) {
  std::vector<TemplateSwitch> switches;
  std::optional<Trial> trial;  // most templates name none
  for (const KnownName& known : kKnownNames) {
    const bool is_found =
        std::ranges::any_of(switches, [&](const TemplateSwitch& other) { return other.kind == known.kind; });
    if (is_found || !chat_template.mentions(known.name)) continue;
    if (!trial) trial.emplace(chat_template, constants);
    if (trial->prints_nothing()) return {};
    if (auto found = find_switch(*trial, known)) switches.push_back(*std::move(found));
  }
  return switches;
}

}  // namespace octavo::tokenizer
