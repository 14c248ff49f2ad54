// The middle of the Chat workspace: header, messages of the active path with all that can be done with them,
// and the questions that wait in the queue. Text is selected by mouse across messages, copied as text or as
// Markdown, and found (Ctrl+F); an address is opened only after it was shown in full.
//
// Keeps what only matters for drawing: layouts of messages, the place each chat is scrolled to, what is
// selected, and the text of a message while it is edited.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ui/chat_state.h"
#include "ui/frame.h"
#include "ui/views/find_bar.h"
#include "ui/views/transcript.h"

namespace octavo::ui {

class ChatView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 extent);

  // Shows the end from now on, as after sending.
  void follow_end(ChatId chat_id) { transcripts_[chat_id.value].following = true; }
  // Whether Escape closes something here before it stops an answer.
  bool keeps_escape() const { return find_.is_open(); }
  // Whether a message is being changed.
  bool is_editing() const { return editor_ != MessageEditor::kNone && editing_chat_ == shown_chat_; }
  // Shows a message of this chat, as a search over all chats does, and opens what is to be written there.
  void show_message(const ChatState& chat, const MessageFocus& focus);

 private:
  struct Column {
    float left = 0;  // screen
    float width = 0;
  };
  // What a drag of the mouse takes at once.
  enum class Grain { kCharacter, kWord, kParagraph };

  void draw_header(const Frame& frame, const UiState& state, const ChatState& chat, float width);
  void draw_transcript(const Frame& frame, const UiState& state, const ChatState& chat,
                       Transcript& transcript, ImVec2 extent);
  void sync(const Frame& frame, const ChatState& chat, Transcript& transcript, float measure) const;
  float lay_out(const Frame& frame, const UiState& state, const ChatState& chat, std::size_t index,
                Transcript::Entry& entry, float measure) const;
  MessageEditor editor_of(const ChatState& chat, const MessageState& message) const;
  float editor_height(const Frame& frame, const MessageState& message, const Transcript::Entry& entry) const;
  void open_editor(const ChatState& chat, const MessageState& message, MessageEditor editor);
  // Where the time of an answer went, below it: for one answer, until it is asked for again.
  bool tells_story(const ChatState& chat, const MessageState& message) const;
  void toggle_story(const ChatState& chat, const MessageState& message);
  void toggle_newest_story(const ChatState& chat);
  float story_height(const Frame& frame, const ChatState& chat, const MessageState& message,
                     float width) const;
  void draw_model_offer(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                        float width) const;
  void choose_scroll(Transcript& transcript, double end, ImVec2 extent);
  void jump(const Frame& frame, const UiState& state, const ChatState& chat, Transcript& transcript,
            float measure, ImVec2 extent);

  void draw_message(const Frame& frame, const UiState& state, const ChatState& chat, std::size_t index,
                    const Transcript& transcript, Column column, float top);
  void draw_cut(const Frame& frame, const ChatState& chat, Column column, float top) const;
  void draw_question(const Frame& frame, const UiState& state, const ChatState& chat,
                     const MessageState& message, const Transcript::Entry& entry, const TextMarks& marks,
                     Column column, float top);
  void draw_question_footer(const Frame& frame, const UiState& state, const ChatState& chat,
                            const MessageState& message, ImVec2 top_right);
  void draw_message_menu(const Frame& frame, const ChatState& chat, const MessageState& message);
  void draw_answer(const Frame& frame, const UiState& state, const ChatState& chat,
                   const MessageState& message, const Transcript::Entry& entry, const TextMarks& marks,
                   Column column, float top);
  void draw_answer_footer(const Frame& frame, const UiState& state, const ChatState& chat,
                          const MessageState& message, ImVec2 top_left, float width);
  void draw_question_editor(const Frame& frame, const ChatState& chat, const MessageState& message,
                            Column column, float top);
  void draw_answer_editor(const Frame& frame, const ChatState& chat, const MessageState& message,
                          Column column, float top, float height);
  void draw_queue(const Frame& frame, const ChatState& chat, Column column, float top);
  void draw_jump_button(const Frame& frame, Transcript& transcript);

  // Selecting, copying and following links.
  void take_mouse(const Frame& frame, const ChatState& chat, Transcript& transcript, Column column,
                  float origin, ImVec2 low, ImVec2 extent);
  void begin_selection(const ChatState& chat, Transcript& transcript, TextPosition position);
  void extend_selection(const ChatState& chat, Transcript& transcript, TextPosition position) const;
  void take_keys(const Frame& frame, const ChatState& chat, Transcript& transcript) const;
  void draw_menu(const Frame& frame, const ChatState& chat, Transcript& transcript);
  void draw_link_question(const Frame& frame);
  void report_hovered_text(const Frame& frame, const ChatState& chat, const TextPosition& position,
                           TextRange word);

  std::unordered_map<std::uint64_t, Transcript> transcripts_;  // by chat
  FindBar find_;
  ChatId shown_chat_{};
  MessageId jump_to_message_;  // 0: none
  MessageEditor editor_ = MessageEditor::kNone;
  MessageId editing_message_;
  MessageId told_message_{};
  ChatId told_chat_{};
  ChatId editing_chat_{};
  std::string edit_text_;
  bool focus_editor_ = false;
  Grain grain_ = Grain::kCharacter;
  TextSelection grasped_;     // what the first click took, which a drag only adds to
  std::string pressed_link_;  // under the mouse when it went down
  std::string menu_link_;     // under the mouse when the menu was opened
  std::string asked_link_;    // that is asked about
  bool ask_ = false;          // from the next frame on
  ImVec2 asked_at_{};
  TextRange hovered_word_;
  MessageId hovered_message_;
};

}  // namespace octavo::ui
