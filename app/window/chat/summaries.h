// Summaries of what leaves a chat's context, while they are written: each is a request of its own, shown as
// it grows, and a part of the chat once it is whole.
//
// UI thread. The chats must outlive the summaries, an engine as long as it writes one of them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "app/chat/context_plan.h"
#include "app/window/chat/chats.h"
#include "engine/engine.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class Summaries {
 public:
  explicit Summaries(Chats& chats) : chats_(chats) {}

  // Called when one has ended: with nothing when the chat has it, else with a sentence.
  void set_when_ended(std::function<void(ChatId, const std::string& problem)> when_ended) {
    when_ended_ = std::move(when_ended);
  }

  void begin(ChatRecord& record, Engine& engine, WantedSummary wanted);
  // Nobody waits for it any more.
  void stop(ChatId chat_id);
  // Of every engine: the questions that wait for one are planned anew.
  void stop_all();
  // The same, of engines that end.
  void forget_all();
  // Another text in the place of the one that is sent now.
  void apply(const ui::actions::ChangeSummary& a);

  // False when it is about none of them.
  bool fold(const EngineEvent& event);

  bool busy() const { return !under_way_.empty(); }
  bool uses(const Engine& engine) const;

 private:
  struct UnderWay {
    ChatId chat_id;
    MessageId after;
    Engine* engine = nullptr;
    std::string text;
    bool whole = true;  // it was not cancelled
  };

  void end(RequestId request_id, const std::string& error);

  Chats& chats_;
  std::function<void(ChatId, const std::string&)> when_ended_ = [](ChatId, const std::string&) {};
  std::map<RequestId, UnderWay> under_way_;
};

}  // namespace octavo::app
