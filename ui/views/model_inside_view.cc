#include "ui/views/model_inside_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/format.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/two_models_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kBarHeight = 14, kLabelWidth = 118, kSquare = 9;
constexpr std::int32_t kShortestContext = 512;
constexpr std::int64_t kSmallestPool = 32, kMebibyte = std::int64_t{1} << 20;

// ---- what is inside

void draw_facts(const Frame& frame, const std::vector<ModelFact>& facts, float width) {
  const float column = std::floor(width * 0.5f), label = frame.px(kLabelWidth - 20);
  const float row = line_pixels(frame, small_text(frame)) + frame.px(3);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const std::size_t rows = (facts.size() + 1) / 2;
  TextStyle value = small_text(frame);
  value.colour = frame.theme.text;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const float x = low.x + (i < rows ? 0 : column);
    const float y = low.y + row * static_cast<float>(i % rows);
    draw_text(frame, ImGui::GetWindowDrawList(), {x, y}, small_text(frame), facts[i].label, label);
    draw_text(frame, ImGui::GetWindowDrawList(), {x + label, y}, value, facts[i].value,
              column - label - frame.px(12));
  }
  ImGui::SetCursorScreenPos({low.x, low.y + row * static_cast<float>(rows)});
}

// ---- memory

struct Part {
  const char* name;
  std::int64_t bytes;
  std::string note;
  ImU32 colour;
};

std::string blocks_note(std::int32_t count, const ModelMemory& memory) {
  return count_text(count, "block") + " of " + std::to_string(memory.block_size) + " tokens, " +
         bytes_text(memory.bytes_per_block) + " each";
}

std::string host_note(const ModelMemory& memory) {
  if (memory.num_host_blocks == 0) return "none: swapping is off";
  const std::string blocks = count_text(memory.num_host_blocks, "block");
  if (memory.num_host_states == 0) return "for swapped-out blocks: " + blocks;
  return "for what is swapped out: " + blocks + ", " + count_text(memory.num_host_states, "state");
}

std::vector<Part> parts_of(const Theme& theme, const ModelMemory& memory) {
  std::vector<Part> parts = {
      {"Weights", memory.weight_bytes, {}, theme.owner(0)},
      {"KV pool", memory.kv_bytes, blocks_note(memory.num_blocks, memory), theme.accent},
      {"Working memory", memory.working_bytes, "activations, logits, scratch", theme.owner(1)},
      {"Host pool", memory.host_bytes, host_note(memory), theme.owner(3)}};
  if (memory.num_states > 0) {
    const Part states{"States", memory.state_bytes,
                      count_text(memory.num_states, "state") + " of recurrent layers, " +
                          bytes_text(memory.bytes_per_state) + " each",
                      theme.owner(2)};
    parts.insert(parts.begin() + 2, states);
  }
  return parts;
}

// What it takes, on what is free; longer than that when it does not fit, with a mark where free memory ends.
void draw_memory_bar(const Frame& frame, const ModelMemory& memory, std::span<const Part> parts,
                     float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = frame.px(kBarHeight), rounding = frame.px(4);
  const std::int64_t room =
      memory.fit == ModelFit::kFits ? memory.free_bytes : memory.free_bytes + memory.freed_bytes;
  const auto whole = static_cast<double>(std::max({room, memory.needed_bytes(), std::int64_t{1}}));
  list->AddRectFilled(low, {low.x + width, low.y + height}, frame.theme.free, rounding);
  std::int64_t sum = 0;
  for (const Part& part : parts) {
    const float begin = low.x + std::floor(width * static_cast<float>(static_cast<double>(sum) / whole));
    sum += part.bytes;
    const float end = low.x + std::floor(width * static_cast<float>(static_cast<double>(sum) / whole));
    if (part.bytes > 0)
      list->AddRectFilled({begin, low.y}, {std::max(end - 1, begin + 1), low.y + height}, part.colour,
                          frame.px(2));
  }
  if (room < memory.needed_bytes()) {
    const float mark =
        low.x +
        std::floor(width * static_cast<float>(static_cast<double>(std::max<std::int64_t>(room, 0)) / whole));
    list->AddLineV(mark, low.y - frame.px(4), low.y + height + frame.px(4), frame.theme.error,
                   std::max(2.0f, frame.px(2)));
  }
  ImGui::Dummy({width, height});
}

void draw_part(const Frame& frame, const Part& part, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float row = line_pixels(frame, small_text(frame)) + frame.px(2), square = frame.px(kSquare);
  const float middle = low.y + row * 0.5f;
  list->AddRectFilled({low.x, middle - square * 0.5f}, {low.x + square, middle + square * 0.5f}, part.colour,
                      frame.px(2));
  draw_text(frame, list, {low.x + frame.px(18), low.y}, small_text(frame), part.name);
  TextStyle figure = small_text(frame);
  figure.colour = frame.theme.text;
  const float right = low.x + frame.px(18 + kLabelWidth + 88);
  const std::string bytes = bytes_text(part.bytes);
  draw_text(frame, list, {right - text_width(frame, figure, bytes), low.y}, figure, bytes);
  draw_text(frame, list, {right + frame.px(16), low.y + frame.px(1)}, tiny_text(frame), part.note,
            low.x + width - right - frame.px(16));
  ImGui::Dummy({width, row});
}

void draw_memory(const Frame& frame, const ModelMemory& memory, float width) {
  const auto parts = parts_of(frame.theme, memory);
  heading_line(frame, "Memory needed",
               bytes_text(memory.needed_bytes()) + " in total, for requests of up to " +
                   with_thousands(memory.max_model_len) + " tokens");
  gap(frame, 8);
  draw_memory_bar(frame, memory, parts, width);
  gap(frame, 8);
  for (const Part& part : parts) draw_part(frame, part, width);
  gap(frame, 6);
  const bool is_good = memory.fit == ModelFit::kFits;
  const ImU32 colour = is_good                              ? frame.theme.muted
                       : memory.fit == ModelFit::kFitsAlone ? frame.theme.warning
                                                            : frame.theme.error;
  paragraph(frame, {.em = size::kSmall, .colour = colour}, memory.sentence, width);
}

// ---- what can be chosen

// A label, and a value between two buttons: the step that was asked for.
int stepper(const Frame& frame, const char* id, const char* label, std::string_view help,
            const std::string& value, bool can_lower, bool can_raise, float width) {
  ImGui::PushID(id);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x, low.y + frame.px(7)}, small_text(frame), label);
  ImGui::Dummy({frame.px(kLabelWidth), frame.px(32)});
  tooltip(frame, help);
  ImGui::SetCursorScreenPos({low.x + frame.px(kLabelWidth), low.y});
  int step = 0;
  if (button(frame, "lower", "–", {.width = 36, .enabled = can_lower})) step = -1;
  beside(frame, 0);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = width - frame.px(kLabelWidth + 72);
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  const float most = room - frame.px(8);
  const float shown = std::min(text_width(frame, style, value), most);
  draw_text(frame, ImGui::GetWindowDrawList(), {std::floor(at.x + (room - shown) * 0.5f), at.y + frame.px(7)},
            style, value, most);
  ImGui::SetCursorScreenPos({low.x + width - frame.px(36), low.y});
  if (button(frame, "raise", "+", {.width = 36, .enabled = can_raise})) step = +1;
  ImGui::PopID();
  return step;
}

// The index of the step that `value` stands on or below.
template <class Value>
std::size_t step_of(const std::vector<Value>& steps, Value value) {
  const auto found = std::find(steps.begin(), steps.end(), value);
  if (found != steps.end()) return static_cast<std::size_t>(found - steps.begin());
  return static_cast<std::size_t>(
      std::count_if(steps.begin(), steps.end(), [value](Value step) { return step != 0 && step < value; }));
}

bool draw_context(const Frame& frame, const ModelInside& inside, ModelLoadOptions& options, float width) {
  const auto steps = context_steps(inside.context_length);
  const std::size_t at = std::min(step_of(steps, options.max_model_len), steps.size() - 1);
  const std::string shown =
      with_thousands(options.max_model_len > 0 ? options.max_model_len : inside.context_length) + " tokens";
  const int step = stepper(frame, "context", "Context",
                           "Maximum length of a question and its answer together (max_model_len).", shown,
                           at > 0, at + 1 < steps.size(), width);
  if (step == 0) return false;
  options.max_model_len = steps[at + static_cast<std::size_t>(step)];
  return true;
}

bool draw_pool(const Frame& frame, const ModelInside& inside, ModelLoadOptions& options, float width) {
  const auto steps = pool_steps(inside.memory.free_bytes + inside.memory.freed_bytes);
  const std::size_t at = std::min(step_of(steps, options.kv_cache_mebibytes), steps.size() - 1);
  const std::string shown = options.kv_cache_mebibytes > 0
                                ? bytes_text(options.kv_cache_mebibytes * kMebibyte)
                                : std::string("automatic");
  const int step = stepper(frame, "pool", "KV pool",
                           "Memory for the keys and values of all chats. Automatic: 8 full contexts, at most "
                           "a quarter of free memory.",
                           shown, at > 0, at + 1 < steps.size(), width);
  if (step == 0) return false;
  options.kv_cache_mebibytes = steps[at + static_cast<std::size_t>(step)];
  return true;
}

// Types by name, of which one is on; `automatic` stands for the first.
template <class Type, std::size_t kCount>
bool draw_type(const Frame& frame, const char* id, const char* label, std::string_view help,
               const std::array<const char*, kCount>& names, const std::array<Type, kCount>& types,
               Type automatic, Type& value, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x, low.y + frame.px(8)}, small_text(frame), label);
  ImGui::Dummy({frame.px(kLabelWidth), frame.px(36)});
  tooltip(frame, help);
  ImGui::SetCursorScreenPos({low.x + frame.px(kLabelWidth), low.y});
  const Type present = value == automatic ? types[0] : value;
  const auto found = std::find(types.begin(), types.end(), present);
  const auto before = static_cast<std::size_t>(found - types.begin());
  const std::size_t after = segments(frame, id, names, names, before, width - frame.px(kLabelWidth));
  if (after == before) return false;
  value = types[after];
  return true;
}

void draw_options(const Frame& frame, const ModelPickerState& picker, float width) {
  constexpr std::array kKvNames = {"f16", "bf16", "int8", "fp8", "f32"};
  constexpr std::array kKvTypes = {KvCacheType::kF16, KvCacheType::kBf16, KvCacheType::kInt8,
                                   KvCacheType::kFp8E4m3, KvCacheType::kF32};
  constexpr std::array kActivationNames = {"int16", "int8", "f32"};
  constexpr std::array kActivationTypes = {ActivationType::kInt16, ActivationType::kInt8,
                                           ActivationType::kF32};
  ModelLoadOptions options = picker.options;
  bool changed = draw_context(frame, picker.inside, options, width);
  gap(frame, 4);
  changed |= draw_pool(frame, picker.inside, options, width);
  gap(frame, 4);
  changed |= draw_type(frame, "kv_type", "Keys and values", "Data type of keys and values (kv_cache_dtype).",
                       kKvNames, kKvTypes, KvCacheType::kAuto, options.kv_cache_dtype, width);
  if (picker.inside.has_quantised_weights) {
    gap(frame, 6);
    changed |=
        draw_type(frame, "activation_type", "Activations",
                  "Data type of activations for quantised weights (activation_dtype): int16 is as accurate "
                  "as f32; int8 is faster with long prompts.",
                  kActivationNames, kActivationTypes, ActivationType::kAuto, options.activation_dtype, width);
  }
  if (changed) frame.actions.push(actions::ChangeLoadOptions{options});
}

// ---- the load

std::string running_sentence(const UiState& state) {
  const std::int32_t count = state.picker.num_running;
  const bool is_one = count == 1;
  if (state.picker.inside.memory.fit == ModelFit::kFitsAlone)
    return count_text(count, "answer") +
           " in progress will be interrupted. You can continue with the new model.";
  return count_text(count, "answer") + " in progress " + (is_one ? "finishes" : "finish") + " on " +
         state.model.name + "; new questions go to the new model.";
}

void draw_loading(const Frame& frame, const ModelLoading& loading, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float bar = width - frame.px(104);
  TextStyle style = small_text(frame);
  line(frame, style,
       (loading.is_cancelling ? "Cancelling " : "Loading ") + loading.name + " · " +
           percent_text(std::floor(loading.fraction * 100.0) / 100.0),
       bar);
  gap(frame, 4);
  two_part_bar(frame, static_cast<float>(loading.fraction), 0, bar, frame.px(8));
  ImGui::SetCursorScreenPos({low.x + width - frame.px(88), low.y + frame.px(1)});
  if (button(frame, "cancel_load", "Cancel", {.width = 88, .enabled = !loading.is_cancelling}))
    frame.actions.push(actions::CancelLoading{});
}

void draw_load_buttons(const Frame& frame, const UiState& state, float width) {
  const ModelPickerState& picker = state.picker;
  const ModelInside& inside = picker.inside;
  const bool is_ready = state.model.phase == ModelPhase::kReady,
             is_alone = inside.memory.fit == ModelFit::kFitsAlone;
  const bool can_load =
      inside.problem.empty() && !inside.reading && (inside.memory.fit == ModelFit::kFits || is_alone);
  const bool interrupts = is_alone && picker.num_running > 0;
  const bool is_present = is_ready && inside.path == state.model.path;
  const char* const text = interrupts         ? "Stop answers and switch"
                           : inside.is_remote ? "Connect"
                           : is_present       ? "Reload"
                                              : "Load";
  const ButtonOptions load{.kind = ButtonKind::kPrimary, .enabled = can_load};
  const float button_pixels = button_width(frame, text, load);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  if (is_ready && picker.num_running > 0 && can_load)
    paragraph(frame, tiny_text(frame), running_sentence(state), width - button_pixels - frame.px(16));
  ImGui::SetCursorScreenPos({low.x + width - button_pixels, low.y});
  if (button(frame, "load_model", text, load))
    frame.actions.push(actions::LoadChosenModel{is_alone ? actions::RunningAnswers::kStop
                                                         : actions::RunningAnswers::kFinish});
}

// Nothing is loaded yet: what both models need is said where they are compared.
void draw_compare_button(const Frame& frame, const ModelInside& inside, float width) {
  constexpr std::string_view kText = "Compare with it";
  const ButtonOptions options{
      .kind = ButtonKind::kPrimary,
      .enabled = !inside.path.empty() && inside.problem.empty() && !inside.reading && !inside.is_remote};
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({low.x + width - button_width(frame, kText, options), low.y});
  if (!button(frame, "compare_model", kText, options)) return;
  frame.actions.push(actions::TakeSecondModel{inside.path});
  frame.actions.push(actions::CloseModelPicker{});
}

bool is_missing(const ModelPickerState& picker) {
  return std::any_of(picker.rows.begin(), picker.rows.end(),
                     [&](const ModelRow& row) { return row.path == picker.inside.path && !row.is_present; });
}

void draw_problem(const Frame& frame, const ModelPickerState& picker, float width) {
  paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, picker.inside.problem, width);
  if (!is_missing(picker)) return;
  gap(frame, 10);
  if (button(frame, "forget_model", "Remove from list"))
    frame.actions.push(actions::ForgetModel{picker.inside.path});
}

void draw_body(const Frame& frame, const UiState& state, float width) {
  const ModelPickerState& picker = state.picker;
  const ModelInside& inside = picker.inside;
  if (inside.path.empty()) {
    paragraph(frame, small_text(frame),
              "Choose a model on the left to see its details and whether it fits in memory.", width);
    return;
  }
  const auto row = std::find_if(picker.rows.begin(), picker.rows.end(),
                                [&](const ModelRow& each) { return each.path == inside.path; });
  const bool is_known = row != picker.rows.end();
  TextStyle title{.face = FontFace::kSemiBold, .em = 17, .colour = frame.theme.text};
  line(frame, title, !inside.name.empty() ? inside.name : is_known ? row->file_name : inside.path, width);
  line(frame, tiny_text(frame), is_known ? row->folder + "/" + row->file_name : inside.path, width);
  gap(frame, 10);
  if (!inside.problem.empty()) return draw_problem(frame, picker, width);
  if (inside.facts.empty()) return line(frame, small_text(frame), "Reading file…");
  draw_facts(frame, inside.facts, width);
  if (inside.is_remote) return;
  gap(frame, 14);
  if (inside.memory.fit == ModelFit::kUnknown) {
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, inside.memory.sentence, width);
  } else {
    draw_memory(frame, inside.memory, width);
  }
  gap(frame, 12);
  draw_options(frame, picker, width);
}

}  // namespace

std::vector<std::int32_t> context_steps(std::int32_t context_length) {
  std::vector<std::int32_t> steps;
  for (std::int64_t length = kShortestContext; length < context_length; length *= 2)
    steps.push_back(static_cast<std::int32_t>(length));
  steps.push_back(0);
  return steps;
}

std::vector<std::int64_t> pool_steps(std::int64_t free_bytes) {
  std::vector<std::int64_t> steps = {0};
  for (std::int64_t size = kSmallestPool; steps.size() < 2 || steps.back() * kMebibyte < free_bytes;
       size *= 2)
    steps.push_back(size);
  return steps;
}

void draw_model_inside(const Frame& frame, const UiState& state) {
  const ModelPickerState& picker = state.picker;
  const float footer = frame.px(52), width = ImGui::GetContentRegionAvail().x;
  ImGui::BeginChild("body", {width, ImGui::GetContentRegionAvail().y - footer}, ImGuiChildFlags_NavFlattened);
  draw_body(frame, state, ImGui::GetContentRegionAvail().x - frame.px(4));
  ImGui::EndChild();
  gap(frame, 12);
  if (picker.purpose == ModelPurpose::kComparison) {
    draw_compare_button(frame, picker.inside, width);
  } else if (picker.loading) {
    draw_loading(frame, *picker.loading, width);
  } else {
    draw_load_buttons(frame, state, width);
  }
}

}  // namespace octavo::ui
