#include "ui/views/compare/settings_editor.h"

#include <algorithm>
#include <cmath>

#include "ui/widgets/controls.h"
#include "ui/widgets/sampling_controls.h"
#include "ui/widgets/template_switches.h"

namespace octavo::ui {
namespace {

constexpr float kLetterWidth = 30;
constexpr float kLetterGap = 4;
constexpr float kSeedLabel = 40;
constexpr float kSeedField = 128;
constexpr float kGroupGap = 28;
constexpr float kNarrowestGroup = 190;
constexpr float kBelowHeading = 6;
constexpr float kSlidersInGroup = 4;  // the highest group decides
constexpr float kFieldHeight = 78;
constexpr float kRowGap = 12;
constexpr float kSwitchGap = 6;

std::size_t num_groups(SettingsEditor::Groups groups, SettingsEditor::Switches switches) {
  if (groups != SettingsEditor::Groups::kSettings) return 4;
  return switches.empty() ? 5 : 6;
}

std::size_t groups_in_row(const Frame& frame, std::size_t count, float width) {
  const float each = frame.px(kNarrowestGroup + kGroupGap);
  const auto most = static_cast<std::size_t>(std::max(1.0f, (width + frame.px(kGroupGap)) / each));
  return std::min(count, most);
}

TextStyle group_heading(const Frame& frame) {
  TextStyle style = small_text(frame);
  style.face = FontFace::kSemiBold;
  style.colour = frame.theme.text;
  return style;
}

void heading(const Frame& frame, const char* text) {
  line(frame, group_heading(frame), text);
  gap(frame, kBelowHeading);
}

float group_height(const Frame& frame) {
  const float heading = line_pixels(frame, group_heading(frame)) + frame.px(kBelowHeading) +
                        2 * ImGui::GetStyle().ItemSpacing.y;
  return heading + kSlidersInGroup * slider_height(frame);
}

}  // namespace

ComparedSettings& SettingsEditor::chosen(std::vector<ComparedSettings>& variants) {
  return variants[std::min(variant_, variants.size() - 1)];
}

float SettingsEditor::letters_width(const Frame& frame, std::size_t num_variants) {
  return frame.px((kLetterWidth + kLetterGap) * static_cast<float>(num_variants + 2));
}

bool SettingsEditor::draw_letters(const Frame& frame, std::vector<ComparedSettings>& variants,
                                  std::size_t fewest) {
  bool changed = false;
  variant_ = std::min(variant_, variants.size() - 1);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string letter(1, static_cast<char>('A' + i));
    const std::string id = "variant_" + letter;
    const std::string help = "Change " + settings_name(i);
    const ButtonOptions options{.kind = i == variant_ ? ButtonKind::kPrimary : ButtonKind::kOutline,
                                .width = kLetterWidth,
                                .help = help};
    if (button(frame, id.c_str(), letter, options)) variant_ = i;
    beside(frame, kLetterGap);
  }
  const bool more = variants.size() < static_cast<std::size_t>(kMostCompared);
  if (button(frame, "add_variant", "",
             {.icon = Icon::kPlus, .enabled = more, .help = "Add settings like these"})) {
    variants.push_back(ComparedSettings(variants[variant_]));
    variant_ = variants.size() - 1;
    changed = true;
  }
  beside(frame, kLetterGap);
  if (button(frame, "remove_variant", "",
             {.icon = Icon::kTrash, .enabled = variants.size() > fewest, .help = "Remove these settings"})) {
    variants.erase(variants.begin() + static_cast<std::ptrdiff_t>(variant_));
    variant_ = std::min(variant_, variants.size() - 1);
    changed = true;
  }
  return changed;
}

float SettingsEditor::seed_width(const Frame& frame) { return frame.px(kSeedLabel + kSeedField); }

bool SettingsEditor::draw_seed(const Frame& frame, std::optional<std::uint64_t>& seed) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const TextStyle style = small_text(frame);
  draw_text(frame, ImGui::GetWindowDrawList(),
            {at.x, at.y + std::floor((frame.px(36) - line_pixels(frame, style)) * 0.5f)}, style, "Seed");
  ImGui::SetCursorScreenPos({at.x + frame.px(kSeedLabel), at.y});
  // Somebody else's seed is shown unless this field holds the same number already.
  const std::optional<std::uint64_t> typed = seed_of(seed_text_);
  if (seed && typed != seed) seed_text_ = std::to_string(*seed);
  if (!seed && typed) seed_text_.clear();
  const bool changed = text_field(frame, "##seed", seed_text_, "random", frame.px(kSeedField),
                                  ImGuiInputTextFlags_CharsDecimal);
  tooltip(frame,
          "The same seed and settings give the same answers. Leave empty for a new seed each time. Settings "
          "that are compared have one seed, so that chance makes no difference between them.");
  if (changed) seed = seed_of(seed_text_);
  return changed;
}

float SettingsEditor::groups_height(const Frame& frame, Groups groups, Switches switches, float width) {
  const std::size_t count = num_groups(groups, switches), per_row = groups_in_row(frame, count, width);
  const auto rows = static_cast<float>((count + per_row - 1) / per_row);
  return rows * group_height(frame) + (rows - 1) * frame.px(kRowGap);
}

bool SettingsEditor::draw_groups(const Frame& frame, ComparedSettings& settings, Groups groups,
                                 Switches switches, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::size_t count = num_groups(groups, switches), per_row = groups_in_row(frame, count, width);
  const float each = group_height(frame) + frame.px(kRowGap);
  const float column =
      std::floor((width + frame.px(kGroupGap)) / static_cast<float>(per_row)) - frame.px(kGroupGap);
  bool changed = false;
  std::size_t drawn = 0;
  const auto group = [&](const char* name, const auto& draw) {
    const auto x = static_cast<float>(drawn % per_row), y = static_cast<float>(drawn / per_row);
    ++drawn;
    ImGui::SetCursorScreenPos({at.x + x * (column + frame.px(kGroupGap)), at.y + y * each});
    ImGui::BeginGroup();
    heading(frame, name);
    changed |= draw();
    ImGui::EndGroup();
  };
  ImGui::PushID(static_cast<int>(groups == Groups::kSettings ? variant_ + 1 : 0));
  SamplingParams& sampling = settings.sampling;
  if (groups == Groups::kBeams) {
    group("Search", [&] { return length_penalty_slider(frame, sampling, column); });
  } else {
    group("Drawing of tokens", [&] { return drawing_sliders(frame, sampling, column); });
  }
  group("Penalties", [&] { return penalty_sliders(frame, sampling, column); });
  group("Length and stops", [&] {
    const bool moved = length_slider(frame, sampling, column);
    return stop_field(frame, sampling.stop, {column, frame.px(kFieldHeight)}) || moved;
  });
  if (groups == Groups::kSettings) {
    group("System prompt", [&] {
      return text_area(frame, "##lane_system_prompt", settings.system_prompt,
                       {column, 3 * slider_height(frame)}, 0, "None");
    });
    if (!switches.empty()) {
      group("Thinking", [&] {
        bool chosen = false;
        for (const TemplateSwitch& one : switches) {
          chosen |= template_switch(frame, one, settings.template_values, "", column);
          gap(frame, kSwitchGap);
        }
        return chosen;
      });
    }
  }
  group("Form of the answers", [&] {
    // What is wrong with a form takes lines of its own: it scrolls.
    ImGui::BeginChild("form", {column, kSlidersInGroup * slider_height(frame)}, ImGuiChildFlags_NavFlattened);
    const bool chosen = forms_[groups == Groups::kSettings ? variant_ : 0].draw(
        frame, sampling, ImGui::GetContentRegionAvail().x);
    ImGui::EndChild();
    return chosen;
  });
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, groups_height(frame, groups, switches, width)});
  return changed;
}

}  // namespace octavo::ui
