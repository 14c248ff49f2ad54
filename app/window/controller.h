// Turns what a person asked into engine calls, and what the engine reports into what is drawn. Owns the
// chats of this window; an answer goes on whether its chat is shown or not.
//
// UI thread. Holds no window and draws nothing: tests drive it with a scripted engine and a manual clock.
// What only the application can do (clipboard, loading, saving) comes out of `take_effects`.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/attachments.h"
#include "app/chat/chat.h"
#include "app/window/chat/branch_tree.h"
#include "app/window/chat/chat_keeper.h"
#include "app/window/chat/file_reader.h"
#include "app/window/compare/comparison.h"
#include "app/window/compare/comparison_export.h"
#include "app/window/memory/memory_fold.h"
#include "app/window/memory/memory_workspace.h"
#include "app/window/models/model_picker.h"
#include "app/window/settings.h"
#include "engine/base/clock.h"
#include "engine/engine.h"
#include "ui/actions.h"
#include "ui/state.h"

namespace octavo::app {

// Chats to be written to a file.
struct ChatExport {
  std::vector<Chat> chats;
  ui::actions::ChatFormat format = ui::actions::ChatFormat::kJson;
  std::string path;  // empty: `file_name` in the person's folder
  std::string file_name;
};

// What the controller wants done outside of it.
struct Effects {
  std::optional<std::string> clipboard;
  std::optional<std::string> open_link;  // an address that a person confirmed
  bool load_model = false;               // the one that was tried last
  bool cancel_loading = false;
  bool continue_on_cpu = false;  // the present model
  bool settings_changed = false;
  std::optional<std::filesystem::path> picture;  // where a PNG of the window is wanted
  std::optional<ExportedComparison> exported_comparison;
  std::vector<ChatExport> chat_exports;
  std::optional<std::string> import_path;
  std::vector<FilesToRead> files_to_read;
  std::vector<ScoutJob> scout_jobs;
  std::optional<ModelLoadRequest> load;  // another model
};

class Controller {
 public:
  // Counts tokens of a chat, later or at once, and hands the result to `fold_token_count`.
  using CountTokens = std::function<void(ChatId, std::vector<ChatMessage>)>;
  // Counts tokens of a file that waits to be sent, and hands the result to `fold_attachment_count`.
  using CountAttachment = std::function<void(ChatId, std::uint64_t attachment_id, std::string text)>;

  // The clock must outlive the controller.
  Controller(const Clock& clock, const Settings& settings);

  // The engine, loaded; it must outlive the controller or `detach_engine`. Opens the first chat.
  // The engine before it finishes what it was asked, and must live on as long as `uses` says;
  // everything new goes to this one.
  void attach_engine(Engine& engine, CountTokens count_tokens);
  bool uses(const Engine& engine) const;

  // Where the chats are kept; it must outlive the controller's use. Without one they live as long as the
  // window. Attach it before the engine, and the engine when `store_opened`: ids of new chats follow those of
  // old ones.
  void attach_store(ChatStore& store, std::function<std::int64_t()> unix_time_ms);
  bool store_opened() const { return store_opened_; }
  // Everything that the store has reported, and the messages that it has saved since. True when something
  // that is drawn changed.
  bool poll_store();
  // Chats that were read from a file, as new ones; the last is shown.
  void take_imported(std::vector<Chat> chats);

  // After the engine was attached.
  void set_attachment_counter(CountAttachment count_attachment);
  // What dropped, named and attached files turned out to be.
  void take_read_files(FilesRead read);

  // What is under way is interrupted, and can be continued with the next engine.
  void detach_engine();

  // What the options of this start have in common for every model.
  void set_model_base(const EngineOptions& options) { picker_.set_base(options); }
  // A model loads, beside the present one if there is one.
  void show_loading(const std::string& path, double fraction);
  void note_model_loaded(const std::string& path, std::int64_t unix_time_ms);
  // The present model goes on, as do all chats. REQUIRES: there is one
  void show_load_failed(const std::string& path, const Error& error);
  // No model: `path` may be empty, `problem` is one sentence or empty.
  void show_no_model(const std::string& path, const std::string& problem);
  void take_scouted(ScoutReport report);
  void show_banner(ui::BannerKind kind, std::string text);

  void apply(const ui::actions::ChatAction& action);
  void apply(const ui::actions::CompareAction& action);
  void apply(const ui::actions::MemoryAction& action);
  void apply(const ui::actions::ModelAction& action);
  void apply(const ui::actions::DesktopAction& action);
  // Of any area. A template, so that a single action is not taken for one of these: it is of its own area.
  template <std::same_as<ui::Action> AnyAction>
  void apply(const AnyAction& action) {
    std::visit([this](const auto& of_area) { apply(of_area); }, action);
  }
  // Everything that the engine has reported. True when something that is drawn changed.
  bool poll_engine();

  void fold(const EngineEvent& event);
  void fold_token_count(ChatId chat_id, std::int32_t num_tokens);
  void fold_attachment_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens);

  // Whether the engine owes a report that comes without a wake-up.
  bool wants_poll() const { return polls_left_ > 0 || memory_workspace_.wants_tick(); }
  // Whether any answer is being generated.
  bool busy() const { return !answers_.empty() || !submissions_.empty() || comparison_.running(); }

  const ui::UiState& state() const { return state_; }
  // nullptr when there is none. For tests and for export.
  const Chat* chat(ChatId chat_id) const;
  Settings settings() const;
  Effects take_effects() { return std::exchange(effects_, {}); }

 private:
  // What became of several files.
  struct FileOutcomes {
    std::vector<std::string> attached;  // names
    std::vector<std::string> imported;  // sentences
    std::vector<std::string> problems;  // sentences without their full stops
  };
  // A file that goes with the next message.
  struct Attachment {
    ui::AttachmentState shown;
    AttachedFile file;
  };
  struct OpenChat {
    Chat chat;
    std::deque<std::string> queued;
    std::string draft;
    std::vector<Attachment> attachments;
    std::string attachment_blocks;  // of these, as they stand behind a message
    std::optional<RequestId> answering;
    bool failed = false;      // the last answer did
    bool submitting = false;  // an answer waits for its question to be on the disk
    ChatHead head;            // what of it is no part of the chat; title and texts are not kept here
    KeptChat kept;
  };
  // One answer on its way.
  struct Answer {
    ChatId chat_id;
    MessageId message_id;
    Engine* engine = nullptr;  // that gives it
    bool admitted = false;
    bool swapped_out = false;  // until its next token
    std::int32_t num_prompt_tokens = 0;
    std::int32_t num_cached_tokens = 0;
    std::int32_t num_tokens = 0;
    std::int64_t submitted_us = 0;
    std::int64_t first_token_us = 0;
    std::int64_t newest_token_us = 0;
    StopReason stop_reason = {};
    // False where the beginning of the message is text without ids: ids of the rest alone would be of no use.
    bool keeps_token_ids = true;
  };
  // An answer that is asked for as soon as what it answers is saved.
  struct Submission {
    ChatId chat_id;
    MessageId message_id;
    GenerationRequest request;
    StoreTicket ticket = 0;
    bool keeps_token_ids = true;
  };

  // Actions; the rest is handled in `apply`.
  void settle();
  ChatId new_chat();
  void select_neighbour(std::int32_t offset);
  void delete_chat(ChatId chat_id);
  void undo_delete();
  void send(ChatId chat_id, const std::string& text);
  void ask(ChatId chat_id, MessageId parent, const std::string& text);
  void answer(ChatId chat_id, MessageId question);
  void regenerate(ChatId chat_id, MessageId message_id);
  void stop(ChatId chat_id);
  void change_settings(const ui::SettingsState& settings);
  void change_sampling(ChatId chat_id, const SamplingParams& sampling);

  // The Compare workspace.
  void open_comparison(ChatId chat_id, MessageId message_id);
  void type_comparison(const std::string& text);
  void show_comparison();
  void keep_column(ui::ColumnId column_id);
  void keep_all_columns();
  void continue_column(ui::ColumnId column_id);
  void export_comparison(ui::actions::ComparisonFormat format);
  static void add_answer(OpenChat& open_chat, MessageId question, const Message& answer);

  // The chats on the disk (controller_store.cc).
  void keep_chats();
  StoreTicket keep_chat(ChatId chat_id, Urgency urgency);
  void keep_trashed(ChatId chat_id);
  ChatHead new_head(ChatId chat_id);
  ChatHead head_of(const OpenChat& open_chat, const std::string& shown_title) const;
  std::string title_of(const OpenChat& open_chat) const;
  void fold_report(const StoreOpened& report);
  void fold_report(const StoreProblemChanged& report);
  void fold_report(const StoreNotice& report);
  void fold_report(ChatLoaded& report);
  void fold_report(const SearchProgress& report);
  void add_stored_chat(const ChatHead& head);
  ChatId add_chat(Chat chat);
  ui::ChatState new_shown(ChatId chat_id) const;
  void insert_by_position(ui::ChatState shown);
  void show_chat(ChatId chat_id);
  void load_chat(ChatId chat_id);
  void restore_chat(ChatId chat_id);
  void erase_chat(ChatId chat_id);
  void empty_trash();
  void show_trash();
  void dismiss_undo();
  void pin_chat(ChatId chat_id, bool pinned);
  void move_chat(ChatId chat_id, ChatId before);
  void number_positions();
  void create_folder(const std::string& name);
  void rename_folder(FolderId folder_id, const std::string& name);
  void save_folder(const ui::FolderState& folder);
  void delete_folder(FolderId folder_id);
  void move_to_folder(ChatId chat_id, FolderId folder_id);
  void search_chats(const std::string& query);
  void show_search(bool open);
  void show_message(ChatId chat_id, MessageId message_id);
  void save_preset(const ui::PresetState& preset);
  void push_preset(const ui::PresetState& preset);
  void erase_preset(PresetId preset_id);
  void apply_preset(ChatId chat_id, PresetId preset_id);
  void export_chat(const ui::actions::ExportChat& action);
  void export_all_chats(const std::string& path);
  void export_loaded();

  // Files, and the panels around the chat (controller_desktop.cc).
  void use_file(ChatId chat_id, ReadFile file, FileOutcomes& outcomes);
  std::string attach(ChatId chat_id, ReadFile file);
  void remove_attachment(ChatId chat_id, std::uint64_t attachment_id);
  void count_attachment(ChatId chat_id, const Attachment& attachment) const;
  void show_attachments(ChatId chat_id);
  static std::string blocks_of(const std::vector<Attachment>& attachments);
  std::string take_draft(ChatId chat_id, const std::string& text);
  std::string composed_draft(const OpenChat& open_chat) const;
  void restore_draft(OpenChat& open_chat, const std::string& kept);
  void show_tree();

  // Asking for answers (controller_store.cc).
  void continue_answer(ChatId chat_id, MessageId message_id);
  void submit_when_saved(ChatId chat_id, MessageId message_id, GenerationRequest request,
                         bool keeps_token_ids = true);
  bool submit_saved();
  void submit(Submission submission);
  void drop_submissions(ChatId chat_id);
  void interrupt_answers();
  void send_queued(ChatId chat_id);

  // Models, and one after the other (controller_models.cc).
  void forget_memory();
  bool poll_retired();
  void attach_comparison();
  void describe_model();
  void count_everything();
  bool is_used(const Engine& engine) const;
  void pick_model(const ui::actions::ModelAction& action);
  void take_picker_effects();
  PresentMemory present_memory() const;
  void show_running();

  // Events.
  void fold_event(const RequestAccepted& event);
  void fold_event(const BeamsAdvanced&) {}  // chats ask for no beams
  void fold_event(const RequestAdmitted& event);
  void fold_event(const TokensGenerated& event);
  void fold_event(const RequestPreempted& event);
  void fold_event(const OutputFinished& event);
  void fold_event(const RequestFinished& event);
  void fold_event(const RequestFailed& event);
  void finish(RequestId request_id, const RequestMetrics& metrics, const std::string& error);
  void drop_end_token(const Answer& answer, Message& message) const;

  // Keeping what is shown in step with what is known.
  OpenChat* find_chat(ChatId chat_id);
  ui::ChatState* shown_chat(ChatId chat_id);
  ui::MessageState* shown_message(ChatId chat_id, MessageId message_id);
  ui::MessageState message_state(const OpenChat& open_chat, const Message& message) const;
  void show_messages(ChatId chat_id);
  void show_title(ChatId chat_id);
  void show_queue(ChatId chat_id);
  void show_answer_figures(const Answer& answer);
  void show_activity();
  void take_event(const EngineEvent& event);
  void offer_cpu(const Error& lost);
  void show_context(ChatId chat_id, std::int32_t num_tokens);
  void count_context(ChatId chat_id);
  ui::AnswerFigures figures_of(const Message& message) const;
  std::optional<ChatId> chat_of(RequestId request_id) const;
  bool fold_reports();
  void note_prompt(RequestId request_id, ChatId chat_id, MessageId answer);
  void take_memory_effects();

  const Clock& clock_;
  Settings settings_;
  Engine* engine_ = nullptr;
  std::vector<Engine*> retired_;  // that still have answers to finish
  Engine* comparison_engine_ = nullptr;
  CountTokens count_tokens_;
  CountAttachment count_attachment_;
  ui::UiState state_;
  Effects effects_;
  std::map<ChatId, OpenChat> chats_;
  std::map<RequestId, Answer> answers_;
  std::map<RequestId, ChatId> request_chats_;  // also of ended requests: late events still find their chat
  std::map<ChatId, ui::ChatState> trash_;      // as they stood in the list
  std::optional<ChatId> undoable_;             // in the trash
  std::deque<Submission> submissions_;         // oldest first
  ChatKeeper keeper_;
  bool store_opened_ = true;  // also without one
  std::uint64_t next_folder_ = 1, next_preset_ = 1, newest_search_ = 0;
  std::int64_t next_position_ = 1;
  std::optional<std::string> exporting_all_;  // the path, while chats are still being read
  std::vector<ui::actions::ExportChat> waiting_exports_;
  std::optional<ui::MessageFocus> focus_when_loaded_;
  MemoryFold memory_;
  MemoryWorkspace memory_workspace_;
  Comparison comparison_;
  ModelPicker picker_{state_.picker};
  std::uint64_t next_chat_ = 1, next_attachment_ = 1;
  TreeVersion shown_tree_;  // what the tree on show was made of
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::int64_t newest_step_ = -1;
  int polls_left_ = 0;
};

}  // namespace octavo::app
