// One answer on its way: what any thread has said of it, and the server's thread has not yet sent. It turns
// what is said into bytes, so that only bytes wait.
//
// Ownership: shared by the connection and the places (Reply::Place) of its replies. Places keep it alive, not
// the other way round: when the last of them goes, nobody can finish the answer, and it is given up.
// Thread: any, but take and client_left: the server's. Callbacks are called on the server's thread, and
// neither called nor destroyed with the lock held.
// Invariants: once the client has left, nothing waits and nothing more is taken in. The callback is gone
// when the answer has ended.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "app/server/http/answer_text.h"
#include "app/server/http/mailbox.h"
#include "app/server/http/message.h"
#include "app/server/http/server.h"

namespace octavo::http {

class PendingAnswer : public std::enable_shared_from_this<PendingAnswer> {
 public:
  //   waiting_bytes  the client counts as gone when a piece comes while more than these wait already
  PendingAnswer(ConnectionId connection, const AnswerForm& form, std::size_t waiting_bytes,
                std::shared_ptr<Mailbox> mailbox)
      : connection_(connection), waiting_bytes_(waiting_bytes), mailbox_(std::move(mailbox)), form_(form) {}

  ConnectionId connection() const { return connection_; }

  // As in Reply.
  void send(const Response& response);
  void begin(int status, const std::vector<Header>& headers);
  void write(std::string piece);
  void end();
  void on_client_left(std::function<void()> callback);
  void give_up();  // nothing where the answer has ended

  struct Taken {
    enum class State {
      kMore,        // what there is; more will come
      kEnded,       // the last
      kUnanswered,  // nobody will answer, and nothing has been said
      kCut,         // nobody will go on
    };
    State state = State::kMore;
    std::string bytes = {};
  };
  // Whole pieces, at least one where there is one, up to about `most` bytes.
  Taken take(std::size_t most);

  // Nothing is sent any more; calls the callback, if there is one. May be called again.
  void client_left();

  // More waited than may: the client is to be dropped, though it still could take something.
  bool has_overflowed() const;

  // The form as it was told: the server may have been asked to stop accepting before.
  AnswerForm form() const;

 private:
  enum class Stage { kNothing, kBegun, kEnded, kGivenUp };

  bool is_over() const { return has_client_left_ || stage_ == Stage::kGivenUp; }
  void begin_stage(Stage stage);
  void overflow();
  void add(std::string bytes);
  void tell_server();
  Taken::State state_when_taken() const;

  const ConnectionId connection_;
  const std::size_t waiting_bytes_;
  const std::shared_ptr<Mailbox> mailbox_;

  mutable std::mutex mutex_;  // of everything below
  AnswerForm form_;
  Stage stage_ = Stage::kNothing;
  int status_ = 0;
  bool has_begun_ = false;
  bool has_overflowed_ = false;
  bool has_client_left_ = false;
  bool is_server_told_ = false;  // and has taken nothing since
  std::deque<std::string> pieces_ = {};
  std::size_t num_waiting_bytes_ = 0;
  std::function<void()> callback_ = {};
};

class Reply::Place {
 public:
  explicit Place(std::shared_ptr<PendingAnswer> answer) : answer_(std::move(answer)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { answer_->give_up(); }

  PendingAnswer& answer() const { return *answer_; }

 private:
  std::shared_ptr<PendingAnswer> answer_;
};

}  // namespace octavo::http
