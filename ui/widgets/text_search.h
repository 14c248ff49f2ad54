// Finds words in the messages of a chat as readers see them: markers of emphasis do not count, and neither
// does case.
//
// Keeps for each message what it has read of it; a message that grew is read again. UI thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ui/chat_state.h"
#include "ui/widgets/markdown.h"

namespace octavo::ui {

struct TextMatch {
  MessageId message_id;
  TextRange range;
  bool operator==(const TextMatch&) const = default;
};

class TextSearch {
 public:
  // All matches in the order of the messages, none over another. Cheap while neither messages nor query
  // change.
  const std::vector<TextMatch>& find(const std::vector<MessageState>& messages, std::string_view query);
  // Of one message, as ranges.
  std::span<const TextRange> matches_in(MessageId message_id) const;
  // Gives the memory back.
  void clear();

 private:
  // The shown characters of a message, folded, and where each stands in its text.
  struct Index {
    std::size_t text_size = 0;
    std::vector<MessagePart> parts;
    std::u32string characters;
    std::vector<TextRange> ranges;
    std::vector<TextRange> matches;
    bool searched = false;
  };

  static void read(Index& index, const MessageState& message);
  static void read_part(Index& index, std::string_view text, TextFormat format, std::uint32_t offset);
  void search(Index& index) const;

  std::u32string query_;
  std::unordered_map<MessageId, Index> indices_;
  std::vector<MessageId> order_;  // the messages of the matches
  std::vector<TextMatch> matches_;
};

// How the message's text is to be read.
inline TextFormat format_of(const MessageState& message) {
  return message.role == Role::kAssistant ? TextFormat::kMarkdown : TextFormat::kPlain;
}

}  // namespace octavo::ui
