// Server-sent events out of the bytes of an answer (WHATWG HTML, "Server-sent events"): what OpenAI's and
// Anthropic's protocols stream.
//
// A value; one thread at a time. Any cut of the same bytes gives the same events; lines end with LF, CRLF or
// CR. What a server sends is data: nothing of it is fatal. An event without data is none, and so is one that
// the answer breaks off in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {

struct ServerEvent {
  std::string name;  // of its `event:` line; may be empty
  std::string data;  // its `data:` lines, joined by line breaks
  bool operator==(const ServerEvent&) const = default;
};

class EventStream {
 public:
  // What one event may hold; a longer one ends the stream.
  static constexpr std::size_t kMostBytes = 16 * 1024 * 1024;
  explicit EventStream(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // The events that `bytes` completes, in order. None any more once the stream has overflowed.
  std::vector<ServerEvent> feed(std::string_view bytes);
  bool has_overflowed() const { return has_overflowed_; }

 private:
  void end_line(std::vector<ServerEvent>& events);
  void add_field(std::string_view name, std::string_view value);

  std::size_t most_bytes_;
  std::string line_;
  ServerEvent event_;
  bool has_data_ = false;
  bool is_first_line_ = true;
  bool is_behind_cr_ = false;  // an LF now belongs to the line that has ended
  bool has_overflowed_ = false;
};

}  // namespace octavo::http
