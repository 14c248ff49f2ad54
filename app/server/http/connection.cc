#include "app/server/http/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "engine/base/format.h"

namespace octavo::http {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;  // at once; the others have their turn between
constexpr std::size_t kTakeBytes = 64 * 1024;  // of an answer: the rest waits where it is counted
constexpr int kMaxTakes = 16;                  // in one go, of a writer that never pauses
constexpr std::size_t kMaxDroppedBytes = 1024 * 1024;
constexpr std::chrono::milliseconds kLeavingTime{1'000};

// clear() would keep the memory, for every idle connection.
void release(std::string& text) { std::string().swap(text); }

std::string time_text(std::chrono::milliseconds time) {
  return duration_text(static_cast<double>(time.count()));
}

}  // namespace

Connection::Connection(ConnectionId id, app::FileDescriptor socket, ConnectionContext& context, Time now)
    : id_(id),
      socket_(std::move(socket)),
      context_(context),
      transport_(context.tls != nullptr ? context.tls->transport(socket_.get())
                                        : plain_transport(socket_.get())),
      idle_since_(now),
      deadline_(now + context.limits.head_time),
      parser_(context.limits) {
  if (context.tls == nullptr) become_idle(now);
}

Connection::~Connection() {
  if (answer_ == nullptr) return;
  --context_.num_open_answers;
  answer_->client_left();
}

std::uint32_t Connection::wanted_events() const {
  const std::uint32_t incoming = phase_ == Phase::kAnswering ? EPOLLRDHUP : EPOLLIN;
  const bool wants_room = !unsent_.empty() || transport_->wants_room();
  return wants_room ? incoming | EPOLLOUT : incoming;
}

std::optional<Time> Connection::idle_since() const {
  const bool is_idle = phase_ == Phase::kIdle || phase_ == Phase::kOpening;
  return is_idle ? std::optional(idle_since_) : std::nullopt;
}

void Connection::on_events(std::uint32_t events, Time now) {
  const bool has_left =
      (events & (EPOLLERR | EPOLLHUP)) != 0 || ((events & EPOLLRDHUP) != 0 && phase_ == Phase::kAnswering);
  if (has_left) {
    is_over_ = true;
    return;
  }
  if (phase_ == Phase::kOpening) open(now);
  if (phase_ == Phase::kOpening || is_over_) return;
  if ((events & EPOLLOUT) != 0) send_waiting(now);
  const bool may_read = (events & EPOLLIN) != 0 || transport_->wants_room();
  if (may_read && phase_ != Phase::kAnswering && !read()) return;
  advance(now);
}

void Connection::on_answer(const PendingAnswer& answer, Time now) {
  if (answer_.get() != &answer) return;
  if (answer.has_overflowed()) is_over_ = true;
  advance(now);
}

void Connection::on_deadline(Time now) {
  if (phase_ == Phase::kHead) {
    refuse(408, "The head of the request took longer than " + time_text(context_.limits.head_time) + ".");
  } else if (phase_ == Phase::kBody) {
    refuse(408, "The body of the request took longer than " + time_text(context_.limits.body_time) + ".");
  } else {
    is_over_ = true;
  }
  advance(now);
}

// Goes on until something must come: bytes, an answer, or room for one.
void Connection::advance(Time now) {
  while (!is_over_) {
    if (phase_ == Phase::kAnswering) {
      if (!write_answer(now)) return;
    } else if (phase_ != Phase::kLeaving && !unread_.empty()) {
      read_request(now);
    } else {
      return;
    }
  }
}

// ---- requests

void Connection::open(Time now) {
  switch (transport_->open()) {
    case Transport::Opening::kGoesOn: return;
    case Transport::Opening::kDone: return become_idle(now);
    case Transport::Opening::kFailed: is_over_ = true; return;
    case Transport::Opening::kPlainRequest:
      transport_ = plain_transport(socket_.get());
      return refuse(400, "This port speaks HTTPS: begin the address with https://.");
  }
}

// Whether something came.
bool Connection::read() {
  std::array<char, kReadBytes> buffer;
  const Transport::Moved moved = transport_->receive(buffer);
  is_over_ = is_over_ || moved.is_over;
  if (moved.num_bytes == 0) return false;
  if (phase_ == Phase::kLeaving) {
    drop(moved.num_bytes);
  } else {
    unread_.append(buffer.data(), moved.num_bytes);
  }
  return true;
}

void Connection::read_request(Time now) {
  if (phase_ == Phase::kIdle) {
    phase_ = Phase::kHead;
    deadline_ = now + context_.limits.head_time;
  }
  feed_parser();
  if (parser_.state() == RequestParser::State::kHeadComplete && !let_body_in(now)) return;
  if (parser_.state() == RequestParser::State::kRefused)
    return refuse(parser_.refusal().status, parser_.refusal().sentence);
  if (parser_.state() == RequestParser::State::kComplete) handle_request();
}

void Connection::feed_parser() { unread_.erase(0, parser_.read(unread_)); }

// Whether the head may have its body, of which some may have come already.
bool Connection::let_body_in(Time now) {
  if (const auto refusal = context_.check_head(parser_.head())) {
    answer_and_close(*refusal);
    return false;
  }
  phase_ = Phase::kBody;
  deadline_ = now + context_.limits.body_time;
  if (parser_.expects_continue()) {
    unsent_ = kContinueText;
    send_waiting(now);
  }
  parser_.read_body();
  feed_parser();
  return true;
}

void Connection::handle_request() {
  const AnswerForm form = answer_form();
  Request request = parser_.take_request();
  begin_answer(form);
  context_.handle(std::move(request), Reply(std::make_shared<Reply::Place>(answer_)));
}

void Connection::refuse(int status, const std::string& sentence) {
  answer_and_close(context_.refuse(status, sentence));
}

// Where the next request begins is not known, or is behind a body that nobody wants.
void Connection::answer_and_close(const Response& response) {
  AnswerForm form = answer_form();
  form.keeps_alive = false;
  begin_answer(form);
  answer_->send(response);
}

AnswerForm Connection::answer_form() const {
  return {.has_body = !parser_.is_head_method(),
          .allows_chunks = parser_.is_http_1_1(),
          .keeps_alive = parser_.keeps_alive()};
}

void Connection::begin_answer(const AnswerForm& form) {
  phase_ = Phase::kAnswering;
  deadline_.reset();
  ++context_.num_open_answers;
  answer_ = new_answer(form);
}

std::shared_ptr<PendingAnswer> Connection::new_answer(const AnswerForm& form) const {
  return std::make_shared<PendingAnswer>(id_, form, context_.limits.waiting_bytes, context_.mailbox);
}

// ---- answers

// Sends what there is; whether the answer is complete with it, so that the connection can do something else.
bool Connection::write_answer(Time now) {
  for (int i = 0; i < kMaxTakes; ++i) {
    send_waiting(now);
    if (is_over_ || !unsent_.empty()) return false;
    PendingAnswer::Taken taken = answer_->take(kTakeBytes);
    unsent_ = std::move(taken.bytes);
    if (!unsent_.empty()) continue;
    switch (taken.state) {
      case PendingAnswer::Taken::State::kMore: return false;
      case PendingAnswer::Taken::State::kEnded: finish_answer(now); return true;
      case PendingAnswer::Taken::State::kUnanswered: say_that_nobody_answered(); break;
      case PendingAnswer::Taken::State::kCut: cut_answer(); return false;
    }
  }
  return false;  // what was taken last goes when the others have had their turn
}

void Connection::send_waiting(Time now) {
  const std::size_t num_sent_before = num_sent_;
  while (num_sent_ < unsent_.size()) {
    const Transport::Moved moved = transport_->send(std::string_view(unsent_).substr(num_sent_));
    is_over_ = is_over_ || moved.is_over;
    if (moved.num_bytes == 0) break;
    num_sent_ += moved.num_bytes;
  }
  const bool has_sent = num_sent_ > num_sent_before;
  if (num_sent_ == unsent_.size()) {
    unsent_.clear();
    num_sent_ = 0;
  }
  if (phase_ != Phase::kAnswering) return;
  if (unsent_.empty()) {
    deadline_.reset();  // the client has taken all: now it waits for us
  } else if (has_sent || !deadline_) {
    deadline_ = now + context_.limits.write_time;
  }
}

void Connection::finish_answer(Time now) {
  const bool keeps_alive = answer_->form().keeps_alive && !context_.mailbox->is_asked_to_stop_accepting();
  answer_.reset();
  --context_.num_open_answers;
  if (keeps_alive) {
    become_idle(now);
  } else {
    leave(now);
  }
}

void Connection::say_that_nobody_answered() {
  answer_ = new_answer(answer_->form());
  answer_->send(context_.refuse(500, "The server has lost this request."));
}

// The missing last chunk tells the client. Without chunks only a reset does: a plain end would look like the
// answer's.
void Connection::cut_answer() {
  if (!answer_->form().allows_chunks) {
    const linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  is_over_ = true;
}

// ---- between answers, and behind the last

void Connection::become_idle(Time now) {
  phase_ = Phase::kIdle;
  idle_since_ = now;
  deadline_ = now + context_.limits.idle_time;
  release(unsent_);
  if (unread_.empty()) release(unread_);
}

// A socket that is closed with unread bytes is reset, and the client may lose an answer that it has not read.
void Connection::leave(Time now) {
  phase_ = Phase::kLeaving;
  deadline_ = now + kLeavingTime;
  release(unread_);
  transport_->end_sending();
}

void Connection::drop(std::size_t count) {
  num_dropped_ += count;
  if (num_dropped_ > kMaxDroppedBytes) is_over_ = true;
}

}  // namespace octavo::http
