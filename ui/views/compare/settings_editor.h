// What is asked with, as labelled groups of controls: for samples and beams one set, for settings side by
// side one for each letter.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/widgets/answer_form_field.h"

namespace octavo::ui {

class SettingsEditor {
 public:
  // Letters to choose what the groups show, and to add and take away; on one line at the cursor. True when
  // `variants` changed. REQUIRES: there are variants
  bool draw_letters(const Frame& frame, std::vector<ComparedSettings>& variants, std::size_t fewest);
  static float letters_width(const Frame& frame, std::size_t num_variants);
  // The one that the letters choose.
  ComparedSettings& chosen(std::vector<ComparedSettings>& variants);

  // A field with its label before it, on one line at the cursor.
  bool draw_seed(const Frame& frame, std::optional<std::uint64_t>& seed);
  static float seed_width(const Frame& frame);

  // The groups, side by side as far as `width` goes, at the cursor, which moves below them. kSettings has one
  // for `switches`, those of the model's template, if there are any.
  enum class Groups { kSamples, kBeams, kSettings };
  using Switches = std::span<const TemplateSwitch>;
  bool draw_groups(const Frame& frame, ComparedSettings& settings, Groups groups, Switches switches,
                   float width);
  static float groups_height(const Frame& frame, Groups groups, Switches switches, float width);

 private:
  std::size_t variant_ = 0;
  std::string seed_text_;
  std::array<AnswerFormField, kMostCompared> forms_;  // by letter
};

}  // namespace octavo::ui
