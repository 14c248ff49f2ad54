// The Chat workspace's own logic: gives what a person asked for to the part that it concerns, and keeps the
// disk and what is drawn in step with the chats.
//
// Owns the parts. Writes chats, active_chat, workspace, deleted, search_open, banner, library and
// desktop.tree of the state. UI thread; calls no disk and draws nothing. What only the application can do
// comes out of `take_effects`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "app/window/chat/answers.h"
#include "app/window/chat/branches.h"
#include "app/window/chat/chat_effects.h"
#include "app/window/chat/chat_exports.h"
#include "app/window/chat/chat_keeper.h"
#include "app/window/chat/chat_search.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "app/window/chat/drafts.h"
#include "app/window/chat/folders.h"
#include "app/window/chat/long_chats.h"
#include "app/window/chat/opened_files.h"
#include "app/window/chat/presets.h"
#include "app/window/chat/questions.h"
#include "app/window/chat/shown_chats.h"
#include "app/window/chat/summaries.h"
#include "app/window/chat/trash.h"
#include "app/window/compare/compared_chats.h"

namespace octavo::app {

class ChatWorkspace final : public ComparedChats {
 public:
  // All of these must outlive the workspace. `sampling` is the one that was chosen last; `unix_time_ms` is
  // the wall clock.
  ChatWorkspace(const Clock& clock, std::function<std::int64_t()> unix_time_ms, SamplingParams& sampling,
                TokenBook& tokens, ui::UiState& state);

  // Where the chats are kept; it must outlive the workspace's use. Without one they live as long as the
  // window.
  void attach_store(ChatStore& store);
  void finish_saving() { chats_.keep_all(); }
  bool all_given_to_store() const { return chats_.all_kept(); }
  bool store_opened() const { return chats_.store_opened(); }
  // Everything that the store has reported, and the messages that it has saved since. True when something
  // that is drawn changed.
  bool poll_store();

  // Which engine is asked from now on; the state describes it already. Opens the first chat.
  void attach_engine(Engine& engine, const PlanContext& plan_context);
  // What is under way is interrupted, and can be continued with the next engine.
  void detach_engine();
  void set_count_attachment(CountAttachment count) { drafts_.set_count_attachment(std::move(count)); }

  // Saves and draws what has changed. After everything that can change a chat.
  void update();
  // Whether it is another day than the one that is drawn: then an update is due.
  bool is_another_day() const;

  void apply(const ui::actions::ChatAction& action);
  // Those of the window's own actions that concern a chat and its files.
  void apply(const ui::actions::AttachFile& a) { files_.apply(a); }
  void apply(const ui::actions::OpenFiles& a) { files_.apply(a); }
  void apply(const ui::actions::RemoveAttachment& a) { drafts_.apply(a); }

  // What dropped, named and attached files turned out to be.
  void take_read_files(FilesRead read, const OpenElsewhere& open) { files_.take(std::move(read), open); }
  // Chats that were read from a file, as new ones; the last is shown.
  void take_imported(std::vector<Chat> chats);
  // Of what is shown, or of a question.
  void take_plan(PlanMade made);
  void take_attachment_count(ChatId id, std::uint64_t attachment_id, std::int32_t num_tokens) {
    drafts_.take_count(id, attachment_id, num_tokens);
  }

  void fold(const EngineEvent& event);
  // Whether anything is being generated, or waits to be.
  bool busy() const { return answers_.busy() || summaries_.busy(); }
  bool uses(const Engine& engine) const { return answers_.uses(engine) || summaries_.uses(engine); }
  const Answers& answers() const { return answers_; }
  ChatEffects take_effects() { return std::exchange(effects_, {}); }

  const Chat* chat(ChatId chat_id) const override;
  ChatId active_chat() const override { return state_.active_chat; }
  void edit(ChatId chat_id, const std::function<void(Chat&)>& change) override;
  ChatId begin() override { return chats_.begin(); }
  void show(ChatId chat_id) override { chats_.show(chat_id); }
  void continue_answer(ChatId chat_id, MessageId message_id) override {
    questions_.apply(ui::actions::ContinueAnswer{chat_id, message_id});
  }

 private:
  void take_report(const StoreOpened& report);
  void take_report(const StoreProblemChanged& report);
  void take_report(const StoreNotice& report);
  void take_report(ChatLoaded& report);
  void take_report(const SearchProgress& report) { search_.take(report); }
  void show_banner(ui::BannerKind kind, const std::string& sentence);
  void show_days();

  ui::UiState& state_;
  ChatEffects effects_;
  ChatKeeper keeper_;
  Chats chats_;
  ContextCounter context_;
  Drafts drafts_;
  Answers answers_;
  Summaries summaries_;
  Questions questions_;
  LongChats long_chats_;
  Trash trash_;
  Branches branches_;
  Presets presets_;
  Folders folders_;
  ChatSearch search_;
  ChatExports exports_;
  OpenedFiles files_;
  ShownChats shown_;
};

}  // namespace octavo::app
