// The chats of the window: which there are, in what order, and which one is shown.
//
// Owns the records; everybody else looks at them, and fetches one with `change` to change it. What was
// fetched so is drawn again by ShownChats and saved by `keep`: nobody has to remember either.
//
// Writes active_chat and workspace of the state. UI thread. The keeper, the sampling and the state must
// outlive the chats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "app/window/chat/chat_record.h"
#include "ui/chat_actions.h"
#include "ui/state.h"

namespace octavo::app {

// What of a chat changes.
enum class Changed {
  kFigures,   // activity and context: drawn, and not saved
  kHead,      // anything but messages
  kMessages,  // anything
};

// What of a chat is not drawn yet, beside its figures.
struct Undrawn {
  bool head = false;
  bool messages = false;         // all of them
  std::vector<MessageId> grown;  // only these
};

// Its system prompt, sampling and what the template is told become the chat's.
void use_preset(Chat& chat, const ui::PresetState& preset);

class Chats {
 public:
  // New chats begin with the settings' preset, or with `sampling`, as it is then, under what the model's file
  // advises; and with the system prompt of the settings.
  Chats(ChatKeeper& keeper, const SamplingParams& sampling, ui::UiState& state)
      : keeper_(keeper), sampling_(sampling), state_(state) {}

  // nullptr when there is none; those in the trash too.
  const ChatRecord* find(ChatId id) const;
  // Whether it exists and lies outside the trash.
  bool is_listed(ChatId id) const;
  // Those outside the trash, highest position first.
  const std::vector<ChatId>& list() const { return list_; }
  const std::map<ChatId, ChatRecord>& all() const { return records_; }

  // To change it: nullptr when there is none.
  ChatRecord* change(ChatId id, Changed what);
  // The same, for one message whose text or figures change; who changes it also says how it is saved.
  Message* change_message(ChatId id, MessageId message_id);

  void apply(const ui::actions::NewChat&) { begin(); }
  void apply(const ui::actions::SelectChat& a);
  void apply(const ui::actions::SelectNeighbour& a);
  void apply(const ui::actions::RenameChat& a);
  void apply(const ui::actions::PinChat& a);
  void apply(const ui::actions::MoveChat& a);
  void apply(const ui::actions::DuplicateChat& a);

  // Shows a new chat, or the empty one at the top.
  ChatId begin();
  ChatId add(Chat chat);
  // In the order of their dates, so that the newest is the first of the list, and shown. Chats that say
  // nothing of sampling get that of new ones.
  void add_imported(std::vector<Chat> chats);
  // Another model answers: a chat that is still new begins as its file advises.
  void begin_anew();
  // As the store has it, without its messages. nullptr when it is known already.
  ChatRecord* add_stored(const ChatHead& head);
  // New ids follow this one.
  void skip_ids(ChatId last) { next_id_ = std::max(next_id_, last.value + 1); }

  // Shows it in the Chat workspace, and reads it when that was not done yet.
  void show(ChatId id);
  void load(ChatId id);
  // The messages have been read. False when nobody waits for them.
  bool take_loaded(ChatId id, Chat chat);

  // REQUIRES: it is listed
  void put_in_trash(ChatId id);
  // REQUIRES: it lies in the trash
  void take_out_of_trash(ChatId id);
  void erase(ChatId id);

  // Tells the store of what has changed; of a very long chat a part, until it is called again.
  void keep();
  bool all_kept() const { return unsaved_.empty(); }
  // The program ends: the rest at once.
  void keep_all();
  // Of this one at once. The ticket is of everything so far.
  StoreTicket keep_now(ChatId id);
  // Whether all up to this ticket is on the disk.
  bool is_kept(StoreTicket ticket) const { return keeper_.saved(ticket); }
  void keep_message(ChatId id, const Message& message);
  // What was erased is gone from the disk, and back on it when it is restored. REQUIRES: the message exists
  ErasedMessages erase_messages(ChatId id, MessageId message_id, EraseExtent extent);
  void restore_messages(ChatId id, ErasedMessages erased);
  // A message that is written or asked for now, at the end of the active path. REQUIRES: the chat exists
  Message& append_message(ChatId id, MessageId parent, Role role, std::string content);
  std::int64_t unix_time_ms() const { return keeper_.unix_time_ms(); }
  // Text that is about to be added at the message's end.
  void keep_growth(ChatId id, const Message& message, std::string_view text,
                   const std::vector<TokenId>& token_ids);
  // The folder is gone from the disk with everything that said it.
  void forget_folder(FolderId folder);
  // The store lost all that it was told.
  void keep_everything_again();
  void wait_for_store() { store_opened_ = false; }
  void note_store_opened() { store_opened_ = true; }
  bool store_opened() const { return store_opened_; }

  // Since the last call.
  std::map<ChatId, Undrawn> take_undrawn() { return std::exchange(undrawn_, {}); }
  bool take_list_changed() { return std::exchange(list_changed_, false); }

 private:
  ChatRecord& add_record(ChatId id);
  SamplingParams sampling_of_new() const;
  void list_by_position(const ChatRecord& record);
  void number_positions();
  bool is_new(const ChatRecord& record) const;
  void begin_as_settled(ChatRecord& record) const;
  void duplicate(const ChatRecord& record);

  ChatKeeper& keeper_;
  const SamplingParams& sampling_;
  ui::UiState& state_;
  std::map<ChatId, ChatRecord> records_;
  std::vector<ChatId> list_;
  std::map<ChatId, Undrawn> undrawn_;
  std::set<ChatId> unsaved_;
  std::set<ChatId> duplicated_when_loaded_;
  bool list_changed_ = false;
  bool store_opened_ = true;  // also without one
  std::uint64_t next_id_ = 1;
  std::int64_t next_position_ = 1;
};

}  // namespace octavo::app
