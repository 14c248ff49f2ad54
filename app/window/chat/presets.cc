#include "app/window/chat/presets.h"

#include <algorithm>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

// What a person chose: where it is only what this model's makers advise, what was chosen before stays, for
// other models.
SamplingParams without_advice(SamplingParams chosen, const SamplingAdvice& advice,
                              const SamplingParams& before) {
  for_each_advised([&](const char*, auto advised, auto option) {
    if (advice.*advised == chosen.*option) chosen.*option = before.*option;
  });
  return chosen;
}

}  // namespace

void Presets::apply(const ui::actions::ChangeSystemPrompt& a) {
  if (!chats_.is_listed(a.chat_id)) return;
  chats_.change(a.chat_id, Changed::kHead)->chat.system_prompt = sanitise_utf8(a.text);
  context_.count(a.chat_id);
}

void Presets::apply(const ui::actions::ChangeSampling& a) {
  if (!chats_.is_listed(a.chat_id)) return;
  chats_.change(a.chat_id, Changed::kHead)->chat.sampling = a.sampling;
  sampling_ = without_advice(a.sampling, advice_, sampling_);
  sampling_.seed.reset();  // a seed belongs to one chat
  effects_.settings_changed = true;
  context_.count(a.chat_id);  // how long an answer may be decides what fits beside it
}

void Presets::apply(const ui::actions::ChangeContextPolicy& a) {
  if (!chats_.is_listed(a.chat_id)) return;
  chats_.change(a.chat_id, Changed::kHead)->chat.context_policy = a.policy;
  context_.count(a.chat_id);
}

void Presets::apply(const ui::actions::ChangeTemplateValue& a) {
  if (!chats_.is_listed(a.chat_id)) return;
  TemplateValues& values = chats_.change(a.chat_id, Changed::kHead)->chat.template_values;
  values.erase(a.name);
  if (a.value) values.emplace(a.name, *a.value);
  context_.count(a.chat_id);  // a template may print it
}

void Presets::apply(const ui::actions::SavePreset& a) {
  ui::PresetState saved = a.preset;
  saved.name = first_line(sanitise_utf8(a.preset.name), kLongestName);
  saved.system_prompt = sanitise_utf8(a.preset.system_prompt);
  const auto found = find(a.preset.id);
  if (found == presets_.end()) {
    saved.id = PresetId{next_id_++};
    presets_.push_back(saved);
  } else {
    *found = saved;
  }
  keep(saved);
}

void Presets::apply(const ui::actions::ErasePreset& a) {
  const auto found = find(a.preset_id);
  if (found == presets_.end()) return;
  presets_.erase(found);
  keeper_.push(changes::ErasePreset{a.preset_id});
}

void Presets::apply(const ui::actions::ApplyPreset& a) {
  const auto found = find(a.preset_id);
  if (found == presets_.end() || !chats_.is_listed(a.chat_id)) return;
  use_preset(chats_.change(a.chat_id, Changed::kHead)->chat, *found);
  context_.count(a.chat_id);
}

std::vector<ui::PresetState>::iterator Presets::find(PresetId preset_id) {
  return std::find_if(presets_.begin(), presets_.end(),
                      [&](const ui::PresetState& preset) { return preset.id == preset_id; });
}

// ---- the store

void Presets::add_stored(const StoreContents& contents) {
  next_id_ = std::max(next_id_, contents.last_preset.value + 1);
  for (const PresetRecord& preset : contents.presets)
    presets_.push_back(
        {preset.id, preset.name, preset.system_prompt, preset.sampling, preset.template_values});
}

void Presets::keep(const ui::PresetState& preset) {
  keeper_.push(changes::SavePreset{
      {preset.id, preset.name, preset.system_prompt, preset.sampling, preset.template_values}});
}

void Presets::keep_everything_again() {
  for (const ui::PresetState& preset : presets_) keep(preset);
}

}  // namespace octavo::app
