// What a person asked for about chats and their messages, folders and presets, and in searching them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "engine/api/context_policy.h"
#include "engine/api/sampling_params.h"
#include "engine/api/template_values.h"
#include "engine/base/ids.h"
#include "ui/action_sink.h"
#include "ui/chat_state.h"

namespace octavo::ui::actions {

struct NewChat {};
struct SelectChat {
  ChatId chat_id;
};
struct SelectNeighbour {  // +1: the next one in the list, -1: the one before; goes round
  std::int32_t offset;
};
struct RenameChat {
  ChatId chat_id;
  std::string title;
};
struct DeleteChat {
  ChatId chat_id;
};
struct UndoDelete {};
struct DismissUndo {};

struct SendMessage {  // starts an answer, or queues while one is generated
  ChatId chat_id;
  std::string text;
};
struct ChangeDraft {  // so that the context meter counts it
  ChatId chat_id;
  std::string text;
};
struct RemoveQueued {
  ChatId chat_id;
  std::size_t index;
};
struct StopAnswer {
  ChatId chat_id;
};
struct Regenerate {  // another answer beside this one
  ChatId chat_id;
  MessageId message_id;
};
struct EditMessage {  // another question beside this one, and an answer to it
  ChatId chat_id;
  MessageId message_id;
  std::string text;
};
// Another answer in a person's own words, as it is or for the model to continue at its end.
enum class AnswerEnd { kFinished, kContinued };
struct WriteAnswer {
  ChatId chat_id;
  MessageId message_id;  // the answer that it stands beside, or the question that it answers
  std::string text;
  AnswerEnd end;
};
// Whether what follows in all branches goes too, or moves up.
enum class DeleteExtent { kMessage, kBranch };
struct DeleteMessage {
  ChatId chat_id;
  MessageId message_id;
  DeleteExtent extent;
};
struct ShowSibling {
  ChatId chat_id;
  MessageId message_id;
  std::int32_t offset;
};

struct ChangeSystemPrompt {
  ChatId chat_id;
  std::string text;
};
struct ChangeContextPolicy {
  ChatId chat_id;
  ContextPolicy policy;
};
struct ChangeTemplateValue {  // that the model's chat template is told; none: what is usual
  ChatId chat_id;
  std::string name;
  std::optional<TemplateValue> value;
};
struct ChangeSummary {  // of what has left the context
  ChatId chat_id;
  std::string text;
};
struct ChangeSampling {
  ChatId chat_id;
  SamplingParams sampling;
};

struct StartTwoLongChats {};  // more than a tiny pool holds

// ---- the chats on the disk

struct ContinueAnswer {  // an interrupted, stopped or cut one; a question that has none is answered
  ChatId chat_id;
  MessageId message_id;
};
struct RestoreChat {  // out of the trash
  ChatId chat_id;
};
struct EraseChat {  // permanently
  ChatId chat_id;
};
struct EmptyTrash {};
struct PinChat {
  ChatId chat_id;
  bool pinned;
};
struct MoveChat {  // in the list: before that one, or to the end
  ChatId chat_id;
  ChatId before;  // 0: to the end
};
struct DuplicateChat {  // with all its branches
  ChatId chat_id;
};
struct CreateFolder {
  std::string name;
  ChatId chat_id = {};  // that is put into it; 0: none
};
struct RenameFolder {
  FolderId folder_id;
  std::string name;
};
struct DeleteFolder {  // its chats stay
  FolderId folder_id;
};
struct MoveToFolder {
  ChatId chat_id;
  FolderId folder_id;  // 0: out of any
};
struct ShowSearch {  // closing it ends the search
  bool open;
};
struct SearchChats {  // titles and texts; empty: no search
  std::string query;
};
struct ShowMessage {  // opens the chat, on the branch that holds the message
  ChatId chat_id;
  MessageId message_id;
  MessageEditor editor = MessageEditor::kNone;
};
struct SavePreset {  // id 0: a new one
  PresetState preset;
};
struct ErasePreset {
  PresetId preset_id;
};
struct ApplyPreset {  // its system prompt, sampling and thinking become the chat's
  ChatId chat_id;
  PresetId preset_id;
};
enum class ChatFormat { kJson, kMarkdown };
struct ExportChat {
  ChatId chat_id;
  ChatFormat format;
  std::string path;  // empty: it is asked for
};
struct ExportAllChats {  // one JSON file
  std::string path;      // empty: it is asked for
};
struct ImportChats {  // Octavo's, ChatGPT's or Open WebUI's JSON
  std::string path;
};

struct ChatAction
    : std::variant<NewChat, SelectChat, SelectNeighbour, RenameChat, DeleteChat, UndoDelete, DismissUndo,
                   SendMessage, ChangeDraft, RemoveQueued, StopAnswer, Regenerate, EditMessage, WriteAnswer,
                   DeleteMessage, ShowSibling, ChangeSystemPrompt, ChangeContextPolicy, ChangeTemplateValue,
                   ChangeSummary, ChangeSampling, ContinueAnswer, RestoreChat, EraseChat, EmptyTrash, PinChat,
                   MoveChat, DuplicateChat, CreateFolder, RenameFolder, DeleteFolder, MoveToFolder,
                   ShowSearch, SearchChats, ShowMessage, SavePreset, ErasePreset, ApplyPreset, ExportChat,
                   ExportAllChats, ImportChats, StartTwoLongChats> {
  using variant::variant;
  ChatAction(const ChatAction&);
  ChatAction(ChatAction&&) noexcept;
  ChatAction& operator=(const ChatAction&);
  ChatAction& operator=(ChatAction&&) noexcept;
  ~ChatAction();
};

}  // namespace octavo::ui::actions
