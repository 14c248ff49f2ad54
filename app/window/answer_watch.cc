#include "app/window/answer_watch.h"

namespace octavo::app {

void AnswerWatch::update(const std::vector<ui::ChatState>& chats, std::int64_t now_us) {
  std::map<ChatId, std::int64_t> busy;
  for (const ui::ChatState& chat : chats) {
    const auto begun = begun_us_.find(chat.id);
    if (ui::is_busy(chat)) {
      busy[chat.id] = begun == begun_us_.end() ? now_us : begun->second;
    } else if (begun != begun_us_.end() && now_us - begun->second > kLongAnswerUs) {
      ended_.push_back({chat.id, chat.title, chat.activity == ui::Activity::kFailed});
    }
  }
  begun_us_ = std::move(busy);
}

}  // namespace octavo::app
