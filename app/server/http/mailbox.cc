#include "app/server/http/mailbox.h"

#include <sys/eventfd.h>

#include "app/server/http/pending_answer.h"

namespace octavo::http {

void Mailbox::post(std::shared_ptr<PendingAnswer> answer) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  answers_.push_back(std::move(answer));
  if (answers_.size() == 1) wake_up();
}

void Mailbox::ask_to_stop_accepting() {
  stop_accepting_ = true;
  wake_up();
}

void Mailbox::ask_to_end() {
  end_ = true;
  wake_up();
}

std::vector<std::shared_ptr<PendingAnswer>> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  eventfd_t ignored = 0;
  ::eventfd_read(event(), &ignored);  // fails when nobody has written: then nothing waits
  return std::exchange(answers_, {});
}

void Mailbox::close() {
  std::vector<std::shared_ptr<PendingAnswer>> dropped;  // behind the lock: what goes with them may post
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  dropped.swap(answers_);
}

void Mailbox::wake_up() { ::eventfd_write(event(), 1); }

}  // namespace octavo::http
