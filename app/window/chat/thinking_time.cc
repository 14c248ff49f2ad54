#include "app/window/chat/thinking_time.h"

#include <algorithm>

namespace octavo::app {

bool ThinkingTime::take(std::string_view text, std::int64_t now_us, AnswerThinking& thinking) {
  parts_ = reader_.read(text, /*is_final=*/false);
  const auto count = static_cast<std::size_t>(std::count_if(
      parts_.begin(), parts_.end(), [](const AnswerPart& part) { return part.kind == PartKind::kThinking; }));
  const bool is_open = count > 0 && parts_.back().open;
  const auto bring_up_to_date = [&] {
    thinking.durations_us[open_->index] = open_->before_us + now_us - open_->since_us;
  };
  if (open_) bring_up_to_date();
  const bool ended = open_ && !(is_open && open_->index + 1 == count);
  if (ended) open_.reset();
  // Of what began and ended in one piece of text, nothing is known.
  thinking.durations_us.resize(std::max(thinking.durations_us.size(), count), 0);
  if (is_open && !open_) open_ = Open{count - 1, now_us, thinking.durations_us[count - 1]};
  return ended;
}

}  // namespace octavo::app
