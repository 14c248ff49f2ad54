#include "ui/widgets/template_switches.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

const char* switch_title(SwitchKind kind) {
  switch (kind) {
    case SwitchKind::kThinking: return "Thinking";
    case SwitchKind::kEffort: return "Effort";
    case SwitchKind::kEarlierThinking: return "Earlier thinking";
  }
  return "";
}

const char* switch_help(SwitchKind kind) {
  switch (kind) {
    case SwitchKind::kThinking: return "Whether the model thinks before it answers.";
    case SwitchKind::kEffort: return "How much the model thinks before it answers.";
    case SwitchKind::kEarlierThinking:
      return "Whether the model is shown again what it thought in earlier turns. That takes room in the "
             "context; left out, less of each turn can be reused from memory.";
  }
  return "";
}

// Of some templates the value says what is left out.
bool means_the_opposite(std::string_view name) {
  return name == "clear_thinking" || name == "drop_thinking" || name == "truncate_history_thinking";
}

std::string choice_label(const TemplateSwitch& one, const TemplateValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::string label = *text;
    if (!label.empty() && label[0] >= 'a' && label[0] <= 'z')
      label[0] = static_cast<char>(label[0] - 'a' + 'A');
    return label;
  }
  const auto* const flag = std::get_if<bool>(&value);
  if (flag == nullptr) return {};
  const bool is_on = *flag != means_the_opposite(one.name);
  if (one.kind == SwitchKind::kEarlierThinking) return is_on ? "Kept" : "Left out";
  return is_on ? "On" : "Off";
}

}  // namespace

bool template_switch(const Frame& frame, const TemplateSwitch& one, TemplateValues& values, const char* when,
                     float width) {
  line(frame, small_text(frame), switch_title(one.kind));
  tooltip(frame, std::string(switch_help(one.kind)) + when + " The template's name: " + one.name + ".");
  gap(frame, 4);
  const bool has_usual = one.usual < one.choices.size();
  std::vector<std::string> labels, ids;
  if (!has_usual) labels.emplace_back("Usual");
  for (const TemplateValue& value : one.choices) labels.push_back(choice_label(one, value));
  for (std::size_t i = 0; i < labels.size(); ++i) ids.push_back(one.name + "_" + std::to_string(i));
  const std::size_t first = has_usual ? 0 : 1;
  const auto told = values.find(one.name);
  std::size_t now = has_usual ? one.usual : 0;
  if (told != values.end()) {
    const auto at = std::ranges::find(one.choices, told->second);
    now = first + static_cast<std::size_t>(at - one.choices.begin());  // past the last: none of them
  }
  std::vector<const char*> label_texts, id_texts;
  for (const std::string& label : labels) label_texts.push_back(label.c_str());
  for (const std::string& id : ids) id_texts.push_back(id.c_str());
  const std::size_t chosen = segments(frame, one.name.c_str(), label_texts, id_texts, now, width);
  if (chosen == now) return false;
  values.erase(one.name);
  const bool is_usual = has_usual ? chosen == one.usual : chosen == 0;
  if (!is_usual) values.emplace(one.name, one.choices[chosen - first]);
  return true;
}

}  // namespace octavo::ui
