// The form that answers must have: free, JSON, or what a schema, a pattern, a grammar or a list of choices
// allows. What is typed is kept by kind, so that another kind can be looked at without losing it. Whether a
// schema or a grammar can be read is told by the engine when a question is sent.
//
// UI thread. Keeps what stands in the fields.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "engine/api/sampling_params.h"
#include "ui/frame.h"

namespace octavo::ui {

class AnswerFormField {
 public:
  // True when the form was changed. A form ends its answers itself, so choosing one turns ignore_eos off.
  bool draw(const Frame& frame, SamplingParams& sampling, float width);

 private:
  static constexpr std::size_t kNumKinds = 6;

  bool draw_kinds(const Frame& frame, SamplingParams& sampling, float width);
  bool draw_text(const Frame& frame, SamplingParams& sampling, float width);

  std::optional<std::size_t> chosen_;         // a kind whose text is still missing
  std::array<std::string, kNumKinds> texts_;  // by kind
  std::optional<StructuredOutput> known_;     // what texts_ were last made from
  std::string problem_;                       // of what was typed, one sentence
};

}  // namespace octavo::ui
