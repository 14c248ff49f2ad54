#include "app/http_client/event_stream.h"

#include <utility>

namespace octavo::http {

std::vector<ServerEvent> EventStream::feed(std::string_view bytes) {
  std::vector<ServerEvent> events;
  while (!bytes.empty() && !has_overflowed_) {
    if (std::exchange(is_behind_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    has_overflowed_ = line_.size() + event_.data.size() + event_.name.size() > most_bytes_;
    if (end == std::string_view::npos) break;
    is_behind_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (!has_overflowed_) end_line(events);
  }
  return events;
}

void EventStream::end_line(std::vector<ServerEvent>& events) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string_view line = line_;
  if (std::exchange(is_first_line_, false) && line.starts_with(kByteOrderMark))
    line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(event_));
    event_ = {};
    has_data_ = false;
  } else if (line.front() != ':') {  // else a comment, which keeps the connection alive
    const std::size_t colon = line.find(':');
    std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    add_field(line.substr(0, colon), value);
  }
  line_.clear();
}

void EventStream::add_field(std::string_view name, std::string_view value) {
  if (name == "event") event_.name = value;
  if (name != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

}  // namespace octavo::http
