#include "engine/api/structured_output.h"

#include "engine/api/option_error.h"

namespace octavo {
namespace {

constexpr std::string_view kStructureOption = "structured_output";

Result<void> check_structure_size(std::string_view name, std::size_t size, std::size_t most) {
  if (size == 0)
    return option_out_of_range(kStructureOption, std::string(name) + " that is not empty", "empty");
  if (size <= most) return {};
  return option_out_of_range(kStructureOption,
                             std::string(name) + " of at most " + std::to_string(most) + " bytes",
                             std::to_string(size) + " bytes long");
}

Result<void> check_structured(const AnyJsonObject&) { return {}; }
Result<void> check_structured(const JsonSchema& wanted) {
  return check_structure_size("a JSON schema", wanted.schema.size(), kMostStructureBytes);
}
Result<void> check_structured(const RegularExpression& wanted) {
  return check_structure_size("a regular expression", wanted.pattern.size(), kMostPatternBytes);
}
Result<void> check_structured(const GrammarText& wanted) {
  return check_structure_size("a grammar", wanted.text.size(), kMostStructureBytes);
}
Result<void> check_structured(const StructuralTag& wanted) {
  return check_structure_size("a structural tag", wanted.json.size(), kMostStructureBytes);
}

Result<void> check_structured(const ChoiceOfTexts& wanted) {
  if (wanted.texts.empty() || wanted.texts.size() > kMostChoices) {
    return option_out_of_range(kStructureOption,
                               "a choice of 1 to " + std::to_string(kMostChoices) + " texts",
                               "one of " + std::to_string(wanted.texts.size()));
  }
  std::size_t num_bytes = 0;
  for (const std::string& text : wanted.texts) {
    if (text.empty())
      return option_out_of_range(kStructureOption, "a choice of texts with a character each",
                                 "one with an empty text");
    num_bytes += text.size();
  }
  return check_structure_size("a choice of texts", num_bytes, kMostStructureBytes);
}

}  // namespace

std::string_view structured_output_name(const StructuredOutput& wanted) {
  constexpr std::string_view kNames[] = {"any JSON object", "a JSON schema",     "a regular expression",
                                         "a grammar",       "a choice of texts", "a structural tag"};
  return kNames[wanted.index()];
}

Result<void> validate(const StructuredOutput& wanted) {
  return std::visit([](const auto& one) { return check_structured(one); }, wanted);
}

}  // namespace octavo
