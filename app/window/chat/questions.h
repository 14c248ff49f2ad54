// What a person asks in a chat: new questions, the same again, edited ones, answers that go on, and those
// that wait until the answer under way is done or the model is loaded.
//
// Each is planned before it is asked (context_plan.h), and is a message while it waits for that: what cannot
// be sent goes back into the draft with the reason. Where a summary is wanted first, it is written first.
//
// UI thread. Chats, answers, counter, drafts, summaries and state must outlive the questions.
#pragma once

#include <cstdint>
#include <string>

#include "app/window/chat/answers.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "app/window/chat/drafts.h"
#include "app/window/chat/summaries.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class Questions {
 public:
  Questions(Chats& chats, Answers& answers, ContextCounter& context, Drafts& drafts, Summaries& summaries,
            ui::UiState& state)
      : chats_(chats),
        answers_(answers),
        context_(context),
        drafts_(drafts),
        summaries_(summaries),
        state_(state) {}

  void apply(const ui::actions::SendMessage& a);
  void apply(const ui::actions::RemoveQueued& a);
  void apply(const ui::actions::StopAnswer& a);
  void apply(const ui::actions::Regenerate& a);
  void apply(const ui::actions::EditMessage& a);
  void apply(const ui::actions::ContinueAnswer& a);
  void apply(const ui::actions::WriteAnswer& a);

  // Empty: there is no vocabulary to plan with, and questions wait. Those that wait already are planned anew.
  void set_plan_context(PlanContext plan_context);
  void take_plan(PlanMade made);
  // The summary that the question waits for has ended; empty: without one.
  void take_summary(ChatId chat_id, const std::string& problem);

  // The next question of the queue, when nothing keeps it from being asked.
  void send_queued(ChatId chat_id);

 private:
  void ask_new(ChatId chat_id, MessageId parent, const std::string& text);
  void ask(ChatId chat_id, PlannedQuestion question);
  void make_way(ChatRecord& record, MessageId kept = kRootMessage);
  void plan(ChatRecord& record);
  void submit(ChatRecord& record, ChatPrompt prompt);
  void answer(ChatRecord& record, MessageId question, ChatPrompt prompt);
  void continue_answer(ChatRecord& record, Message& message, ChatPrompt prompt);
  void give_back(ChatRecord& record, const std::string& reason);
  std::string take_back(ChatRecord& record);

  Chats& chats_;
  Answers& answers_;
  ContextCounter& context_;
  Drafts& drafts_;
  Summaries& summaries_;
  ui::UiState& state_;
  PlanContext plan_context_;
  std::uint64_t next_question_ = 1;
};

}  // namespace octavo::app
