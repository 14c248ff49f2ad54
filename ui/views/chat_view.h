// The middle of the Chat workspace: header, messages of the active path, and the questions that wait in the
// queue.
//
// Keeps what only matters for drawing: layouts of messages, the place each chat is scrolled to, and the text
// of a message while it is edited.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ui/frame.h"
#include "ui/state.h"
#include "ui/widgets/message_layout.h"

namespace octavo::ui {

class ChatView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, const SessionState& session, ImVec2 extent);

  // Shows the end from now on, as after sending.
  void follow_end(SessionId session_id) { transcripts_[session_id.value].following = true; }

 private:
  struct Placed {
    MessageLayout layout;
    float top = 0;     // within the transcript
    float height = 0;  // with everything that belongs to the message
  };
  struct Transcript {
    std::unordered_map<std::uint64_t, Placed> messages;
    float height = 0;
    float scroll = 0;
    bool following = true;
  };
  struct Column {
    float left = 0;  // screen
    float width = 0;
  };

  void draw_header(const Frame& frame, const UiState& state, const SessionState& session, float width);
  void lay_out(const Frame& frame, const SessionState& session, Transcript& transcript, float measure);
  void draw_transcript(const Frame& frame, const SessionState& session, Transcript& transcript,
                       ImVec2 extent);
  static void choose_scroll(Transcript& transcript, float end, ImVec2 extent);
  void draw_message(const Frame& frame, const SessionState& session, const MessageState& message,
                    Placed& placed, Column column, float top);
  void draw_question(const Frame& frame, const SessionState& session, const MessageState& message,
                     Placed& placed, Column column, float top);
  void draw_question_footer(const Frame& frame, const SessionState& session, const MessageState& message,
                            ImVec2 top_right);
  void draw_answer(const Frame& frame, const SessionState& session, const MessageState& message,
                   Placed& placed, Column column, float top);
  void draw_answer_footer(const Frame& frame, const SessionState& session, const MessageState& message,
                          ImVec2 top_left, float width);
  void draw_editor(const Frame& frame, const SessionState& session, const MessageState& message,
                   Column column, float top);
  void draw_queue(const Frame& frame, const SessionState& session, Column column, float top);
  void draw_jump_button(const Frame& frame, Transcript& transcript);

  std::unordered_map<std::uint64_t, Transcript> transcripts_;  // by session
  std::uint64_t editing_message_ = 0;                          // 0: none
  SessionId editing_session_{};
  std::string edit_text_;
  bool focus_editor_ = false;
};

}  // namespace octavo::ui
