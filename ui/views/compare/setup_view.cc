#include "ui/views/compare/setup_view.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "engine/base/format.h"
#include "ui/compare_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kPadding = 14;
constexpr float kQuestionHeight = 60;
constexpr float kEditorHeight = 122;
constexpr float kOptionHeight = 36;
constexpr float kOptionGap = 8;
constexpr float kKindWidth = 234;
constexpr float kSliderWidth = 132;
constexpr float kVariantWidth = 34;

// Of everything in the row of options, design pixels.
float options_width(const ComparisonSetup& setup) {
  constexpr float kOption = kSliderWidth + kOptionGap;
  switch (setup.kind) {
    case ComparisonKind::kSamples: return kKindWidth + 6 * kOption;
    case ComparisonKind::kBeams: return kKindWidth + 3 * kOption;
    case ComparisonKind::kSettings:
      return kKindWidth + 5 * kOption + kVariantWidth * static_cast<float>(setup.variants.size() + 2) + 12;
  }
  return 0;
}

// A slider that says its name itself, so that a row of them stays a row.
bool real_option(const Frame& frame, const char* id, double& value, float low, float high, const char* format,
                 const char* help) {
  auto shown = static_cast<float>(value);
  ImGui::SetNextItemWidth(frame.px(kSliderWidth));
  const bool changed = ImGui::SliderFloat(id, &shown, low, high, format, ImGuiSliderFlags_AlwaysClamp);
  tooltip(frame, help);
  if (changed) value = std::round(static_cast<double>(shown) * 100.0) / 100.0;
  return changed;
}

bool count_option(const Frame& frame, const char* id, std::int32_t& value, int low, int high,
                  const char* format, const char* help, ImGuiSliderFlags flags = 0) {
  int shown = value;
  ImGui::SetNextItemWidth(frame.px(kSliderWidth));
  const bool changed = ImGui::SliderInt(id, &shown, low, high, format, flags | ImGuiSliderFlags_AlwaysClamp);
  tooltip(frame, help);
  if (changed) value = shown;
  return changed;
}

std::string prompt_words(const UiState& state) {
  const ComparisonState& comparison = state.comparison;
  std::string text = comparison.chat_title.empty() ? "Question" : "From “" + comparison.chat_title + "”";
  if (comparison.num_prompt_tokens == 0) return text;
  const std::int32_t block_size = std::max(1, state.model.block_size);
  const std::int32_t blocks = (comparison.num_prompt_tokens + block_size - 1) / block_size;
  text += " · prompt of " + count_text(comparison.num_prompt_tokens, "token") + " · " +
          count_text(blocks, "block") + ", computed once";
  if (comparison.num_cached_tokens > 0)
    text += " · " + with_thousands(comparison.num_cached_tokens) + " tokens cached";
  return text;
}

}  // namespace

float SetupView::height(const Frame& frame, const UiState& state, float width) const {
  const bool two_rows = frame.px(options_width(state.comparison.setup) + 2 * kPadding + 12) > width;
  const float options = two_rows ? 2 * kOptionHeight + kOptionGap : kOptionHeight;
  return frame.px((editing_ ? kEditorHeight : kQuestionHeight) + options + 2 * kPadding + 4);
}

void SetupView::draw(const Frame& frame, const UiState& state, float width) {
  const float card_height = height(frame, state, width);
  begin_card(frame, "setup", {width, card_height}, kPadding);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float inner = ImGui::GetContentRegionAvail().x;
  draw_buttons(frame, state, {at.x + inner, at.y});
  ImGui::SetCursorScreenPos(at);
  draw_question(frame, state, inner);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(editing_ ? kEditorHeight : kQuestionHeight)});
  draw_options(frame, state, inner);
  if (state.comparison.running) {
    const float y = at.y - frame.px(kPadding) + card_height - frame.px(6),
                end = inner * static_cast<float>(state.comparison.progress);
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddRectFilled({at.x, y}, {at.x + inner, y + frame.px(3)}, frame.theme.free, frame.px(1.5f));
    list->AddRectFilled({at.x, y}, {at.x + std::max(end, frame.px(3)), y + frame.px(3)}, frame.theme.accent,
                        frame.px(1.5f));
  }
  end_card();
}

void SetupView::draw_question(const Frame& frame, const UiState& state, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = width - frame.px(330);
  TextStyle faint = tiny_text(frame);
  faint.colour = frame.theme.faint;
  const std::string words = prompt_words(state);
  const std::string_view other = editing_ ? "cancel" : "Ask another question";
  const float words_room = std::max(frame.px(60), room - text_width(frame, faint, other) - frame.px(24));
  line(frame, faint, words, words_room);
  tooltip(frame,
          "The prompt's blocks are computed once. All answers share them until one writes to a block.");
  const float used = std::min(text_width(frame, faint, words), words_room);
  ImGui::SetCursorScreenPos({at.x + used + frame.px(12), at.y});
  if (link(frame, "other_question", other)) {
    editing_ = !editing_;
    focus_ = editing_;
    typed_ = state.comparison.question;
  }
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(24)});
  if (editing_) return draw_editor(frame, width - frame.px(330));
  TextStyle body = body_text(frame);
  line(frame, body, state.comparison.question, room);
  tooltip(frame, state.comparison.question.size() < 1200 ? std::string_view(state.comparison.question)
                                                         : std::string_view());
  if (!state.comparison.problem.empty()) {
    TextStyle error = tiny_text(frame);
    error.colour = frame.theme.error;
    line(frame, error, state.comparison.problem, room);
  }
}

void SetupView::draw_editor(const Frame& frame, float width) {
  if (focus_) take_keyboard("##question");
  focus_ = false;
  const bool entered =
      text_area(frame, "##question", typed_, {width - frame.px(96), frame.px(88)},
                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CtrlEnterForNewLine);
  beside(frame, 8);
  const bool has_text = typed_.find_first_not_of(" \t\r\n") != std::string::npos;
  const bool pressed =
      button(frame, "ask", "Use", {.kind = ButtonKind::kPrimary, .width = 88, .enabled = has_text});
  if ((entered || pressed) && has_text) {
    frame.actions.push(actions::TypeComparison{typed_});
    editing_ = false;
  }
}

void SetupView::draw_buttons(const Frame& frame, const UiState& state, ImVec2 top_right) {
  const ComparisonState& comparison = state.comparison;
  const float y = top_right.y - frame.px(2);
  float x = top_right.x;
  const auto place = [&](float design_width) {
    x -= frame.px(design_width);
    ImGui::SetCursorScreenPos({x, y});
    x -= frame.px(8);
  };
  if (comparison.running) {
    place(96);
    if (button(frame, "stop", "Stop", {.icon = Icon::kStop, .width = 96, .help = "Stop all answers (Esc)"}))
      frame.actions.push(actions::StopComparison{});
    return;
  }
  const bool ran = !comparison.columns.empty();
  place(80);
  const ButtonOptions run{
      .kind = ButtonKind::kPrimary, .width = 80, .help = "Run with these settings (Ctrl+Enter)"};
  if (button(frame, "run", "Run", run)) frame.actions.push(actions::RunComparison{});
  if (!ran) return;
  place(100);
  const ButtonOptions again{.width = 100, .help = "Run again with the same seeds, for the same text (A)"};
  if (button(frame, "run_again", "Run again", again)) frame.actions.push(actions::RunComparisonAgain{});
  place(110);
  if (button(frame, "keep_all", "Keep all",
             {.width = 110,
              .enabled = comparison.chat_id != ChatId{},
              .help = "Keep all answers as branches of the chat (Shift+K)"})) {
    frame.actions.push(actions::KeepAllColumns{});
  }
}

void SetupView::draw_options(const Frame& frame, const UiState& state, float width) {
  constexpr std::array kLabels = {"Samples", "Beams", "Settings"};
  constexpr std::array kIds = {"samples", "beams", "settings"};
  ComparisonSetup setup = state.comparison.setup;
  const float left = ImGui::GetCursorScreenPos().x, right = left + width;
  const auto before = static_cast<std::size_t>(setup.kind);
  const std::size_t after = segments(frame, "kind", kLabels, kIds, before, frame.px(kKindWidth));
  bool changed = after != before;
  setup.kind = static_cast<ComparisonKind>(after);
  beside(frame, 10);
  SamplingParams* sampling = &setup.sampling;
  const Face face = frame.face(FontFace::kRegular, size::kTiny);
  ImGui::PushFont(face.font, face.size);
  // The name stands on the slider: the mark behind it is pale.
  ImGui::PushStyleColor(ImGuiCol_SliderGrab, with_alpha(frame.theme.accent, 0.35f));
  ImGui::PushStyleColor(ImGuiCol_SliderGrabActive, with_alpha(frame.theme.accent, 0.55f));
  ImGui::PushStyleVar(ImGuiStyleVar_GrabMinSize, frame.px(6));
  switch (setup.kind) {
    case ComparisonKind::kSamples:
      changed |= count_option(frame, "##samples", setup.num_samples, kFewestCompared, kMostCompared,
                              "%d samples", "Several answers to one prompt, each sampled independently.");
      break;
    case ComparisonKind::kBeams:
      changed |= count_option(
          frame, "##width", setup.beam_width, kFewestCompared, kMostCompared, "width %d",
          "Keeps the likeliest continuations at every step. Their text is often duller than a sample.");
      break;
    case ComparisonKind::kSettings:
      changed |= draw_variants(frame, setup);
      if (!setup.variants.empty()) sampling = &setup.variants[std::min(variant_, setup.variants.size() - 1)];
      break;
  }
  changed |= draw_sliders(frame, setup, *sampling, left, right);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
  ImGui::PopFont();
  if (changed) frame.actions.push(actions::ChangeComparison{setup});
}

// Letters to choose what the sliders show, and to add and take away.
bool SetupView::draw_variants(const Frame& frame, ComparisonSetup& setup) {
  bool changed = false;
  variant_ = std::min(variant_, setup.variants.size() - 1);
  for (std::size_t i = 0; i < setup.variants.size(); ++i) {
    const std::string letter(1, static_cast<char>('A' + i));
    const std::string id = "variant_" + letter;
    const ButtonOptions options{.kind = i == variant_ ? ButtonKind::kPrimary : ButtonKind::kOutline,
                                .width = 30};
    if (button(frame, id.c_str(), letter, options)) variant_ = i;
    beside(frame, 4);
  }
  const bool more = setup.variants.size() < static_cast<std::size_t>(kMostCompared);
  if (button(frame, "add_variant", "", {.icon = Icon::kPlus, .enabled = more, .help = "Add a setting"})) {
    setup.variants.push_back(setup.variants[variant_]);
    variant_ = setup.variants.size() - 1;
    changed = true;
  }
  beside(frame, 4);
  const bool fewer = setup.variants.size() > static_cast<std::size_t>(kFewestCompared);
  if (button(frame, "remove_variant", "",
             {.icon = Icon::kTrash, .enabled = fewer, .help = "Remove this setting"})) {
    setup.variants.erase(setup.variants.begin() + static_cast<std::ptrdiff_t>(variant_));
    changed = true;
  }
  return changed;
}

bool SetupView::draw_sliders(const Frame& frame, ComparisonSetup& setup, SamplingParams& sampling, float left,
                             float right) {
  bool changed = false;
  float top = ImGui::GetItemRectMin().y;
  // What does not fit into the row goes on in a second one.
  const auto next = [&] {
    const float x = ImGui::GetItemRectMax().x + frame.px(kOptionGap);
    if (x + frame.px(kSliderWidth) <= right) return ImGui::SetCursorScreenPos({x, top});
    top += frame.px(kOptionHeight + kOptionGap);
    ImGui::SetCursorScreenPos({left, top});
  };
  if (setup.kind == ComparisonKind::kBeams) {
    next();
    changed |= real_option(frame, "##length_penalty", sampling.length_penalty, 0, 2, "length penalty %.2f",
                           "score = sum of log-probabilities / tokens ^ length penalty");
  } else {
    next();
    changed |= real_option(frame, "##temperature", sampling.temperature, 0, 2, "temperature %.2f",
                           "0 always picks the likeliest token.");
    next();
    changed |= real_option(
        frame, "##top_p", sampling.top_p, 0.05f, 1, "top-p %.2f",
        "Samples from the likeliest tokens whose probabilities add up to this. 1 keeps all tokens.");
    next();
    changed |= count_option(frame, "##top_k", sampling.top_k, 0, 200, "top-k %d",
                            "Samples from this many of the likeliest tokens. 0 keeps all tokens.");
  }
  next();
  changed |= count_option(frame, "##max_tokens", sampling.max_tokens, 8, 2048, "up to %d tokens",
                          "Maximum length of an answer.", ImGuiSliderFlags_Logarithmic);
  if (setup.kind != ComparisonKind::kBeams) {
    next();
    // Somebody else's seed is shown unless this field holds the same number already.
    std::uint64_t typed = 0;
    const auto parse = [&] {
      const auto [end, error] =
          std::from_chars(seed_text_.data(), seed_text_.data() + seed_text_.size(), typed);
      return error == std::errc() && !seed_text_.empty() && end == seed_text_.data() + seed_text_.size();
    };
    const bool valid = parse();
    if (sampling.seed && (!valid || typed != *sampling.seed)) seed_text_ = std::to_string(*sampling.seed);
    if (!sampling.seed && valid) seed_text_.clear();
    if (text_field(frame, "##seed", seed_text_, "seed: random", frame.px(kSliderWidth),
                   ImGuiInputTextFlags_CharsDecimal)) {
      sampling.seed = parse() ? std::optional(typed) : std::nullopt;
      changed = true;
    }
    tooltip(frame, "The same seed and settings give the same answers. Leave empty for a new seed each time.");
  }
  return changed;
}

void SetupView::draw_empty(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = std::min(frame.px(600), extent.x - frame.px(48));
  const float left = std::floor(low.x + (extent.x - width) * 0.5f);
  ImGui::SetCursorScreenPos({left, low.y + std::max(frame.px(40), extent.y * 0.26f)});
  ImGui::BeginGroup();
  TextStyle title = heading_text(frame);
  title.em = 20;
  line(frame, title, "Compare answers");
  gap(frame, 8);
  paragraph(frame, small_text(frame),
            "One question, several answers side by side: samples, beams or different settings. The prompt is "
            "computed once and its blocks are shared. To bring a message from a chat here, choose “Compare” "
            "below it.",
            width);
  gap(frame, 16);
  // A field on the bare background needs an edge to be seen.
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1.0f);
  text_area(frame, "##first_question", typed_, {width, frame.px(96)}, 0, "Ask a question to compare answers");
  ImGui::PopStyleVar();
  gap(frame, 12);
  const bool has_text = typed_.find_first_not_of(" \t\r\n") != std::string::npos;
  const bool key = ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Enter);
  const bool pressed = button(frame, "compare_question", "Compare",
                              {.kind = ButtonKind::kPrimary, .width = 110, .enabled = has_text});
  if ((pressed || key) && has_text) {
    frame.actions.push(actions::TypeComparison{typed_});
    frame.actions.push(actions::RunComparison{});
  }
  ImGui::EndGroup();
  (void)state;
}

}  // namespace octavo::ui
