#include "app/server/http/pending_answer.h"

#include <utility>

#include "engine/base/check.h"

namespace octavo::http {

void PendingAnswer::send(const Response& response) {
  std::function<void()> unneeded;  // before the lock: destroyed behind it
  const std::lock_guard lock(mutex_);
  if (is_over()) return;
  begin_stage(Stage::kEnded);
  add(whole_answer_text(response, form_));
  unneeded.swap(callback_);
  tell_server();
}

void PendingAnswer::begin(int status, const std::vector<Header>& headers) {
  const std::lock_guard lock(mutex_);
  if (is_over()) return;
  begin_stage(Stage::kBegun);
  has_begun_ = true;
  status_ = status;
  add(answer_head_text(status, headers, form_));
  tell_server();
}

void PendingAnswer::write(std::string piece) {
  const std::lock_guard lock(mutex_);
  if (is_over()) return;
  OCTAVO_CHECK(stage_ == Stage::kBegun, "pieces come between begin and end");
  if (num_waiting_bytes_ > waiting_bytes_) return overflow();
  add(answer_piece_text(std::move(piece), status_, form_));
  tell_server();
}

void PendingAnswer::end() {
  std::function<void()> unneeded;
  const std::lock_guard lock(mutex_);
  if (is_over()) return;
  OCTAVO_CHECK(stage_ == Stage::kBegun, "an answer ends once, and after it has begun");
  stage_ = Stage::kEnded;
  add(answer_end_text(status_, form_));
  unneeded.swap(callback_);
  tell_server();
}

void PendingAnswer::give_up() {
  std::function<void()> unneeded;
  const std::lock_guard lock(mutex_);
  if (is_over() || stage_ == Stage::kEnded) return;
  stage_ = Stage::kGivenUp;
  unneeded.swap(callback_);
  tell_server();
}

void PendingAnswer::on_client_left(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::kEnded) return;
  callback_.swap(callback);
  if (has_client_left_) tell_server();
}

void PendingAnswer::client_left() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    has_client_left_ = true;
    is_server_told_ = false;
    pieces_.clear();
    num_waiting_bytes_ = 0;
    callback.swap(callback_);
  }
  if (callback) callback();
}

PendingAnswer::Taken PendingAnswer::take(std::size_t most) {
  const std::lock_guard lock(mutex_);
  is_server_told_ = false;
  Taken taken;
  while (!pieces_.empty() && (taken.bytes.empty() || taken.bytes.size() + pieces_.front().size() <= most)) {
    if (taken.bytes.empty()) {
      taken.bytes = std::move(pieces_.front());
    } else {
      taken.bytes += pieces_.front();
    }
    pieces_.pop_front();
  }
  num_waiting_bytes_ -= taken.bytes.size();
  taken.state = state_when_taken();
  return taken;
}

PendingAnswer::Taken::State PendingAnswer::state_when_taken() const {
  if (!pieces_.empty()) return Taken::State::kMore;
  switch (stage_) {
    case Stage::kNothing:
    case Stage::kBegun: return Taken::State::kMore;
    case Stage::kEnded: return Taken::State::kEnded;
    case Stage::kGivenUp: break;
  }
  return has_begun_ ? Taken::State::kCut : Taken::State::kUnanswered;
}

bool PendingAnswer::has_overflowed() const {
  const std::lock_guard lock(mutex_);
  return has_overflowed_;
}

AnswerForm PendingAnswer::form() const {
  const std::lock_guard lock(mutex_);
  return form_;
}

void PendingAnswer::begin_stage(Stage stage) {
  OCTAVO_CHECK(stage_ == Stage::kNothing, "a request is answered once");
  stage_ = stage;
  if (mailbox_->is_asked_to_stop_accepting()) form_.keeps_alive = false;
}

void PendingAnswer::overflow() {
  stage_ = Stage::kGivenUp;
  has_overflowed_ = true;
  pieces_.clear();
  num_waiting_bytes_ = 0;
  is_server_told_ = false;  // it was, of pieces, and looks only when the client takes some
  tell_server();
}

void PendingAnswer::add(std::string bytes) {
  if (bytes.empty()) return;
  num_waiting_bytes_ += bytes.size();
  pieces_.push_back(std::move(bytes));
}

// With the lock held: the mailbox's is taken behind this one, never the other way round.
void PendingAnswer::tell_server() {
  if (std::exchange(is_server_told_, true)) return;
  mailbox_->post(shared_from_this());
}

// ---- the outside

void Reply::send(Response response) const { place_->answer().send(response); }
void Reply::begin(int status, std::vector<Header> headers) const { place_->answer().begin(status, headers); }
void Reply::write(std::string piece) const { place_->answer().write(std::move(piece)); }
void Reply::end() const { place_->answer().end(); }
void Reply::on_client_left(std::function<void()> callback) const {
  place_->answer().on_client_left(std::move(callback));
}

}  // namespace octavo::http
