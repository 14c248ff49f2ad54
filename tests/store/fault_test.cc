// What the store promises when the disk does not do what it should: nothing is lost that could be kept, and
// the person is told in one sentence.

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/fault_vfs.h"
#include "tests/store/worker_fixture.h"

namespace octavo::testing {
namespace {

using app::StoreProblemKind;
using app::changes::SaveChat;

class Faults : public WorkerTest {
 protected:
  Faults() : faults_(FaultVfs::instance()) {
    faults_.reset();
    vfs_ = FaultVfs::kName;
  }
  ~Faults() override {
    faults_.reset();
    close();
  }

  void push_chat(std::uint64_t id) { push_all(changes_for(some_head(id), some_chat(id, 20, 400))); }
  // As many as were promised; 0 when a cut left nothing that can be read as it was.
  std::uint64_t survivors_of_a_cut(bool syncs_lie, std::mt19937_64& random) {
    reset_reports();
    std::filesystem::remove_all(database_path().parent_path());
    faults_.reset();
    open();
    close();
    faults_.remember_unsynced();
    faults_.syncs_lie = syncs_lie;
    open();
    for (std::uint64_t id = 1; id <= 5; ++id) {
      push_chat(id);
      wait_ms(200);
    }
    faults_.power_is_gone = true;
    close();
    faults_.cut_power(random);
    faults_.reset();
    reopen();
    return notices_.empty() && contents_ ? contents_->chats.size() : 0;
  }
  void expect_chats(std::uint64_t count) {
    ASSERT_TRUE(contents_.has_value());
    EXPECT_EQ(contents_->chats.size(), count);
    for (std::uint64_t id = 1; id <= count; ++id) {
      const auto loaded = load(id);
      ASSERT_TRUE(loaded.has_value()) << id;
      auto expected = some_chat(id, 20, 400);
      expected.title = loaded->title, expected.system_prompt = loaded->system_prompt,
      expected.sampling = loaded->sampling;
      expected.context_policy = loaded->context_policy;
      expected.template_values = loaded->template_values;
      expect_same(*loaded, expected);
    }
  }

  FaultVfs& faults_;
};

TEST_F(Faults, FullDiskKeepsTextInMemoryUntilThereIsRoom) {
  open();
  push_chat(1);
  wait_ms(200);
  faults_.bytes_left = 10'000;
  push_chat(2);
  push_chat(3);
  wait_ms(200);
  EXPECT_EQ(problem_.kind, StoreProblemKind::kDiskFull);
  EXPECT_EQ(problem_.sentence, "The disk that holds " + database_path().parent_path().string() +
                                   " is full. New text is kept in memory and saved once there is space.");
  EXPECT_LT(worker_->committed(), ticket_);
  wait_ms(5'000);  // tries again, in vain
  EXPECT_EQ(problem_.kind, StoreProblemKind::kDiskFull);
  faults_.reset();
  wait_ms(2'000);
  EXPECT_EQ(worker_->committed(), ticket_);
  EXPECT_FALSE(problem_);
  reopen();
  expect_chats(3);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Faults, FailingWritesAndSyncsAreToldAndTriedAgain) {
  const auto syncs = [this] { faults_.syncs_fail = true; };
  const auto writes = [this] { faults_.calls_left = 3; };
  std::uint64_t id = 1;
  open();
  for (const std::function<void()>& break_disk :
       {std::function<void()>(syncs), std::function<void()>(writes)}) {
    push_chat(id++);
    break_disk();
    wait_ms(200);
    EXPECT_EQ(problem_.kind, StoreProblemKind::kIoError);
    EXPECT_NE(problem_.sentence.find("cannot be saved (disk I/O error)"), std::string::npos)
        << problem_.sentence;
    EXPECT_LT(worker_->committed(), ticket_) << "a failed sync was taken for a commit";
    faults_.reset();
    wait_ms(1'500);
    EXPECT_FALSE(problem_);
    EXPECT_EQ(worker_->committed(), ticket_);
  }
  reopen();
  expect_chats(2);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Faults, EveryCallThatFailsOnceLosesNothing) {
  open();
  push_chat(1);
  wait_ms(200);
  close();
  for (std::int64_t nth = 0; nth < 60; ++nth) {
    faults_.reset();
    faults_.calls_left = nth;
    reset_reports();
    worker_ = std::make_unique<app::StoreWorker>(options());
    step_until_idle();
    push_chat(2);
    wait_ms(200);
    faults_.reset();
    wait_ms(5'000);
    ASSERT_EQ(worker_->committed(), ticket_) << nth;
    reopen();
    expect_chats(2);
    ASSERT_FALSE(HasFailure()) << "the call after " << nth << " failed";
    EXPECT_TRUE(notices_.empty());
  }
}

TEST_F(Faults, FailingReadsAreNoDamage) {
  open();
  fill(2, 3);
  close();
  faults_.reads_fail = true;
  reset_reports();
  open();
  EXPECT_EQ(problem_.kind, StoreProblemKind::kIoError);
  EXPECT_TRUE(notices_.empty());
  ASSERT_TRUE(contents_.has_value());
  EXPECT_GT(contents_->last_chat.value, 1'000'000u) << "new chats could take the ids of unread ones";
  faults_.reset();
  wait_ms(1'500);
  EXPECT_FALSE(problem_);
  EXPECT_EQ(contents_->chats.size(), 2u);
}

TEST_F(Faults, PowerCutsLoseNoCommit) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  open();
  close();
  std::uint64_t newest = 0;
  for (int cut = 0; cut < 150; ++cut) {
    faults_.reset();
    faults_.remember_unsynced();
    reset_reports();
    worker_ = std::make_unique<app::StoreWorker>(options());
    step_until_idle();
    ASSERT_FALSE(problem_) << problem_.sentence;
    ASSERT_TRUE(notices_.empty()) << notices_[0].sentence;
    ASSERT_EQ(contents_->chats.size(), newest);
    const auto num_chats = random() % 4;
    for (std::uint64_t i = 0; i < num_chats; ++i) {
      push_chat(newest + 1);
      faults_.calls_left = random() % 3 == 0 ? static_cast<std::int64_t>(random() % 30) : faults_.calls_left;
      wait_ms(200);
      if (worker_->committed() != ticket_) break;
      ++newest;
    }
    const bool pending = worker_->committed() != ticket_;
    faults_.power_is_gone = true;
    close();
    faults_.cut_power(random);
    faults_.reset();
    if (!pending) continue;
    // What was not promised may be there, but then whole.
    reopen();
    ASSERT_TRUE(notices_.empty()) << notices_[0].sentence;
    ASSERT_GE(contents_->chats.size(), newest);
    newest = contents_->chats.size();
    close();
  }
  reopen();
  expect_chats(newest);
  EXPECT_GT(newest, 50u);
}

TEST_F(Faults, PowerCutsDoLoseCommitsOfADiskThatLies) {
  std::mt19937_64 random(1);
  int num_lost = 0;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(survivors_of_a_cut(false, random), 5u);
    num_lost += survivors_of_a_cut(true, random) < 5 ? 1 : 0;
  }
  EXPECT_GT(num_lost, 0) << "the simulated cut takes nothing away: it proves nothing";
}

TEST_F(Faults, ReadOnlyFolderIsReadAndSavedToAsSoonAsItMayBe) {
  // Root may write everywhere: then the test goes on as somebody else.
  constexpr uid_t kNobody = 65534;
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown(folder_.path().c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  vfs_ = nullptr;
  open();
  push_chat(1);
  push_chat(2);
  wait_ms(200);
  close();
  reset_reports();
  ::chmod(database_path().parent_path().c_str(), 0500);
  open();
  EXPECT_EQ(problem_.kind, StoreProblemKind::kReadOnlyFolder);
  EXPECT_EQ(problem_.sentence,
            "The folder " + database_path().parent_path().string() +
                " is read-only. New text is kept in memory and saved once you make the folder writable.");
  EXPECT_EQ(contents_->chats.size(), 2u);
  push_chat(3);
  wait_ms(3'000);
  EXPECT_LT(worker_->committed(), ticket_);
  ::chmod(database_path().parent_path().c_str(), 0700);
  wait_ms(2'000);
  EXPECT_FALSE(problem_);
  EXPECT_EQ(worker_->committed(), ticket_);
  reopen();
  expect_chats(3);
  close();
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
}

TEST_F(Faults, WhatIsPendingAtTheEndIsWritten) {
  open();
  push_chat(1);
  reopen();
  expect_chats(1);
}

// ---- another process

TEST_F(Faults, SecondProcessReadsAndSaysSo) {
  vfs_ = nullptr;
  open();
  fill(3, 5);
  push_chat(4);
  wait_ms(200);  // in the log only
  const auto committed = worker_->committed();
  const pid_t child = ::fork();
  if (child == 0) {
    app::StoreWorker second(options());
    second.step(0);
    second.step(1);
    std::size_t num_chats = 0;
    app::StoreProblem problem;
    for (const auto& report : second.take_reports()) {
      if (const auto* opened = std::get_if<app::StoreOpened>(&report))
        num_chats = opened->contents.chats.size();
      if (const auto* changed = std::get_if<app::StoreProblemChanged>(&report)) problem = changed->problem;
    }
    second.change(1, SaveChat{some_head(9)}, true, 2);
    second.step(3);
    const bool right = num_chats == 4 && problem.kind == StoreProblemKind::kOtherProcess &&
                       second.committed() == 1 &&
                       problem.sentence ==
                           "These chats are open in another Octavo window. You can read them here, but "
                           "nothing new is saved.";
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(worker_->committed(), committed);
  reopen();
  EXPECT_EQ(contents_->chats.size(), 4u);
  EXPECT_FALSE(problem_);
}

TEST_F(Faults, SecondProcessReadsWhileTheFirstWrites) {
  vfs_ = nullptr;
  open();
  fill(1, 5);
  const pid_t child = ::fork();
  if (child == 0) {
    int bad = 0;
    for (int i = 0; i < 10; ++i) {
      app::StoreWorker second(options());
      second.step(0);
      for (const auto& report : second.take_reports()) {
        if (const auto* opened = std::get_if<app::StoreOpened>(&report))
          bad += opened->contents.chats.empty();
      }
    }
    ::_exit(bad);
  }
  int status = 0;
  for (std::uint64_t id = 2; ::waitpid(child, &status, WNOHANG) == 0; ++id) {
    push_chat(id % 50 + 2);
    wait_ms(200);
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace octavo::testing
