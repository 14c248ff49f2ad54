// What a chat template is told beside the messages: named values that its author reads ("enable_thinking",
// "reasoning_effort"), as `chat_template_kwargs` of vLLM and transformers. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/result.h"

namespace octavo {

using TemplateValue = std::variant<bool, std::int64_t, std::string>;
using TemplateValues = std::map<std::string, TemplateValue, std::less<>>;

inline constexpr std::size_t kMaxTemplateValues = 32;
inline constexpr std::size_t kMaxTemplateValueBytes = 4096;  // of a name or of a text

// Names that a template can read and that mean nothing else: letters, digits and underscores, and none of
// those that every template has (messages, tools, ...). Texts are valid UTF-8. One sentence else.
Result<void> validate(const TemplateValues& values);

struct TemplateInputs {
  TemplateInputs(std::int64_t now = 0,
                 TemplateValues told = {})  // NOLINT: mostly there is nothing but a date
      : today(now), values(std::move(told)) {}

  std::int64_t today;  // seconds since 1970, UTC, for strftime_now
  TemplateValues values;
  std::string tools = {};             // ChatPrompt::tools
  bool add_generation_prompt = true;  // whether the text ends where an answer begins
};

// How long a model thinks before it answers, how much it thinks, and whether it is shown again what it
// thought in earlier turns.
enum class SwitchKind { kThinking, kEffort, kEarlierThinking };

// A value that a template reads, and what it can be: each gives another prompt.
struct TemplateSwitch {
  SwitchKind kind = SwitchKind::kThinking;
  std::string name;
  std::vector<TemplateValue> choices;  // at least one
  // Index of the choice that is in force where nothing is said; choices.size(): none of them.
  std::size_t usual = 0;
  bool operator==(const TemplateSwitch&) const = default;
};

}  // namespace octavo
