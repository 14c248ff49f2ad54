// How a chat is answered: its system prompt, its sampling and what its model's template is told, and presets
// of these.
//
// Owns library.presets of the state. UI thread. What the constructor takes must outlive the presets.
#pragma once

#include <vector>

#include "app/window/chat/chat_effects.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class Presets {
 public:
  // `sampling` becomes the one that was chosen last, but for what only the model's `advice` chose; new chats
  // begin with it.
  Presets(Chats& chats, ContextCounter& context, ChatKeeper& keeper, SamplingParams& sampling,
          const SamplingAdvice& advice, ChatEffects& effects, std::vector<ui::PresetState>& presets)
      : chats_(chats),
        context_(context),
        keeper_(keeper),
        sampling_(sampling),
        advice_(advice),
        effects_(effects),
        presets_(presets) {}

  void apply(const ui::actions::ChangeSystemPrompt& a);
  void apply(const ui::actions::ChangeSampling& a);
  void apply(const ui::actions::ChangeContextPolicy& a);
  void apply(const ui::actions::ChangeTemplateValue& a);
  void apply(const ui::actions::SavePreset& a);
  void apply(const ui::actions::ErasePreset& a);
  void apply(const ui::actions::ApplyPreset& a);

  void add_stored(const StoreContents& contents);
  void keep_everything_again();

 private:
  std::vector<ui::PresetState>::iterator find(PresetId preset_id);
  void keep(const ui::PresetState& preset);

  Chats& chats_;
  ContextCounter& context_;
  ChatKeeper& keeper_;
  SamplingParams& sampling_;
  const SamplingAdvice& advice_;
  ChatEffects& effects_;
  std::vector<ui::PresetState>& presets_;
  std::uint64_t next_id_ = 1;
};

}  // namespace octavo::app
