#include "ui/widgets/answer_form_field.h"

#include <cmath>
#include <string_view>
#include <variant>

#include "ui/widgets/controls.h"
#include "ui/widgets/sampling_fields.h"

namespace octavo::ui {
namespace {

constexpr float kNarrowestThree = 240;

struct Kind {
  const char* id;
  const char* label;
  std::string_view help;
  const char* text_id;  // of the field below; none: the kind says all
  std::string_view hint;
};
// The first is no form; the others in the order of StructuredOutput's alternatives. A structural tag comes
// from programs only: none of these is lit then, and choosing one replaces it.
constexpr std::array kKinds = {
    Kind{"form_free", "Free", "The model writes what it likes.", nullptr, {}},
    Kind{"form_json", "JSON", "Every answer is a JSON object.", nullptr, {}},
    Kind{"form_schema", "Schema", "Every answer is JSON that is valid by a JSON schema.",
         "##form_schema_text", R"({"type": "object", "properties": {"name": {"type": "string"}}})"},
    Kind{"form_pattern", "Pattern", "The whole answer matches a regular expression.", "##form_pattern_text",
         R"([0-9]{4}-[0-9]{2}-[0-9]{2})"},
    Kind{"form_grammar", "Grammar",
         "The answer is what the rule \"root\" of an EBNF or GBNF grammar derives.", "##form_grammar_text",
         R"(root ::= "yes" | "no")"},
    Kind{"form_choices", "Choices", "The answer is one of these texts. One on each line.",
         "##form_choices_text", "one on each line"},
};

std::size_t kind_of(const std::optional<StructuredOutput>& form) { return form ? form->index() + 1 : 0; }

std::string text_of(const StructuredOutput& form) {
  if (const auto* schema = std::get_if<JsonSchema>(&form)) return schema->schema;
  if (const auto* expression = std::get_if<RegularExpression>(&form)) return expression->pattern;
  if (const auto* grammar = std::get_if<GrammarText>(&form)) return grammar->text;
  if (const auto* choice = std::get_if<ChoiceOfTexts>(&form)) return lines_of_texts(choice->texts);
  return {};
}

StructuredOutput form_of(std::size_t kind, const std::string& text) {
  if (kind == kind_of(JsonSchema{})) return JsonSchema{text};
  if (kind == kind_of(RegularExpression{})) return RegularExpression{text};
  if (kind == kind_of(GrammarText{})) return GrammarText{text};
  if (kind == kind_of(ChoiceOfTexts{})) return ChoiceOfTexts{texts_of_lines(text)};
  return AnyJsonObject{};
}

}  // namespace

bool AnswerFormField::draw(const Frame& frame, SamplingParams& sampling, float width) {
  static_assert(kKinds.size() == kNumKinds);
  const std::size_t now = kind_of(sampling.structured_output);
  if (sampling.structured_output != known_) {
    known_ = sampling.structured_output;
    chosen_.reset();
    problem_.clear();
    if (now > 0 && now < kNumKinds) texts_[now] = text_of(*known_);
  }
  bool changed = draw_kinds(frame, sampling, width);
  changed |= draw_text(frame, sampling, width);
  gap(frame, 12);
  if (!changed) return false;
  if (sampling.structured_output) sampling.ignore_eos = false;
  known_ = sampling.structured_output;
  return true;
}

bool AnswerFormField::draw_kinds(const Frame& frame, SamplingParams& sampling, float width) {
  const std::size_t lit = chosen_.value_or(kind_of(sampling.structured_output));
  const std::size_t per_row = width >= frame.px(kNarrowestThree) ? 3 : 2;
  const auto beside_each_other = static_cast<float>(per_row);
  const float each =
      std::floor((width - frame.px(6) * (beside_each_other - 1)) / beside_each_other / frame.theme.scale);
  bool changed = false;
  for (std::size_t kind = 0; kind < kNumKinds; ++kind) {
    if (kind > 0 && kind % per_row == 0) gap(frame, 6);
    if (kind % per_row != 0) beside(frame, 6);
    const ButtonOptions options{.kind = kind == lit ? ButtonKind::kPrimary : ButtonKind::kOutline,
                                .width = each,
                                .height = 30,
                                .help = kKinds[kind].help};
    if (!button(frame, kKinds[kind].id, kKinds[kind].label, options) || kind == lit) continue;
    problem_.clear();
    // A kind whose text is missing waits for it, and answers are free until then.
    const bool is_complete = kKinds[kind].text_id == nullptr || !texts_[kind].empty();
    chosen_ = is_complete ? std::nullopt : std::optional(kind);
    changed = true;
    sampling.structured_output.reset();
    if (is_complete && kind > 0) sampling.structured_output = form_of(kind, texts_[kind]);
  }
  return changed;
}

bool AnswerFormField::draw_text(const Frame& frame, SamplingParams& sampling, float width) {
  const std::size_t kind = chosen_.value_or(kind_of(sampling.structured_output));
  if (kind >= kNumKinds || kKinds[kind].text_id == nullptr) return false;
  gap(frame, 6);
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const ImVec2 area = {width, face.size * 4 + frame.px(18)};
  bool changed = false;
  if (text_area(frame, kKinds[kind].text_id, texts_[kind], area, 0, kKinds[kind].hint)) {
    StructuredOutput form = form_of(kind, texts_[kind]);
    const bool is_empty = is_blank(texts_[kind]);
    const auto valid = validate(form);
    problem_ = is_empty || valid ? "" : valid.error().message + ".";
    changed = is_empty || valid.has_value();
    if (changed && is_empty) sampling.structured_output.reset();
    if (changed && !is_empty) sampling.structured_output = std::move(form);
    chosen_ = is_empty ? std::optional(kind) : std::nullopt;
  }
  if (!problem_.empty()) {
    gap(frame, 2);
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, problem_, width);
  } else if (chosen_) {
    gap(frame, 2);
    paragraph(frame, small_text(frame), "Answers are free until this is filled in.", width);
  }
  return changed;
}

}  // namespace octavo::ui
