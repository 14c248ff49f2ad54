// The form that an output must have: it is generated within a grammar that is made of one of these, so that
// every output that ends by itself has it. One that is cut (finish reason kLength, a stop string) has the
// beginning of it. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/result.h"

namespace octavo {

struct AnyJsonObject {
  bool operator==(const AnyJsonObject&) const = default;
};
// JSON that is valid by a schema, with its properties in the schema's order. Where a schema says nothing of
// further properties there are none. What of the standard cannot be kept is refused by name (engine/grammar).
struct JsonSchema {
  std::string schema;
  bool operator==(const JsonSchema&) const = default;
};
struct RegularExpression {  // of the whole output
  std::string pattern;
  bool operator==(const RegularExpression&) const = default;
};
// EBNF, or llama.cpp's GBNF; the rule "root" is the output.
struct GrammarText {
  std::string text;
  bool operator==(const GrammarText&) const = default;
};
struct ChoiceOfTexts {
  std::vector<std::string> texts;
  bool operator==(const ChoiceOfTexts&) const = default;
};
// xgrammar's JSON: {"type": "structural_tag", "format": {...}}; text, tags in it, and what is in those.
struct StructuralTag {
  std::string json;
  bool may_name_tokens = false;  // control tokens, which no client may: marks of calls
  bool operator==(const StructuralTag&) const = default;
};

using StructuredOutput =
    std::variant<AnyJsonObject, JsonSchema, RegularExpression, GrammarText, ChoiceOfTexts, StructuralTag>;

// "a JSON schema", "a regular expression", ...: for sentences.
std::string_view structured_output_name(const StructuredOutput& wanted);

inline constexpr std::size_t kMostStructureBytes = std::size_t{1} << 20u;  // of the text that says it
inline constexpr std::size_t kMostPatternBytes = 16384;
inline constexpr std::size_t kMostChoices = 4096;

// Sizes alone; subject "structured_output". What it says is read when it is compiled.
Result<void> validate(const StructuredOutput& wanted);

}  // namespace octavo
