// A store without its thread, in a folder of its own, with a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/store/store_worker.h"
#include "tests/store/plain_store.h"
#include "tests/support/temporary_folder.h"

namespace octavo::testing {

class WorkerTest : public ::testing::Test {
 protected:
  app::StoreOptions options() {
    app::StoreOptions options;
    options.paths.database = database_path();
    options.unix_time_ms = [this] { return unix_ms_; };
    options.vfs = vfs_;
    return options;
  }
  std::filesystem::path database_path() const { return folder_ / "octavo" / "chats.db"; }

  void open() {
    worker_ = std::make_unique<app::StoreWorker>(options());
    step_until_idle();
  }
  void close() { worker_.reset(); }
  void reopen() {
    close();
    reset_reports();
    open();
  }

  // Steps while there is anything to do at this moment. A store that never comes to rest would keep its
  // thread busy.
  void step_until_idle() {
    int num_steps = 0;
    for (auto due = worker_->due_us(); due && *due <= now_us_; due = worker_->due_us()) {
      ASSERT_LT(++num_steps, 20'000) << "the store does not come to rest";
      step();
    }
  }
  void step() {
    worker_->step(now_us_);
    for (auto& report : worker_->take_reports()) take(std::move(report));
  }
  void wait_ms(std::int64_t ms) {
    now_us_ += ms * 1000;
    step_until_idle();
  }

  app::StoreTicket push(app::StoreChange change, bool urgent = false) {
    worker_->change(++ticket_, std::move(change), urgent, now_us_);
    return ticket_;
  }
  void push_all(std::vector<app::StoreChange> changes) {
    for (auto& change : changes) push(std::move(change));
  }
  void fill(int num_chats, int num_pairs) {
    for (int i = 1; i <= num_chats; ++i) {
      const auto id = static_cast<std::uint64_t>(i);
      push_all(changes_for(some_head(id), some_chat(id, num_pairs)));
    }
    wait_ms(1'000);
  }
  // As it stands in the file.
  std::optional<app::Chat> load(std::uint64_t id) {
    loaded_.erase(id);
    worker_->load(ChatId{id});
    step_until_idle();
    const auto found = loaded_.find(id);
    if (found == loaded_.end()) return std::nullopt;
    return found->second;
  }

  void reset_reports() {
    contents_.reset();
    problem_ = {};
    notices_.clear();
    loaded_.clear();
    hits_.clear();
  }

  void take(app::StoreReport report) {
    if (auto* opened = std::get_if<app::StoreOpened>(&report)) contents_ = std::move(opened->contents);
    if (auto* changed = std::get_if<app::StoreProblemChanged>(&report)) problem_ = changed->problem;
    if (auto* notice = std::get_if<app::StoreNotice>(&report)) notices_.push_back(*notice);
    if (auto* loaded = std::get_if<app::ChatLoaded>(&report))
      loaded_.insert_or_assign(loaded->chat_id.value, std::move(loaded->chat));
    if (auto* found = std::get_if<app::SearchProgress>(&report)) {
      hits_.insert(hits_.end(), found->hits.begin(), found->hits.end());
      search_done_ = found->done;
    }
  }

  test::TemporaryFolder folder_;
  const char* vfs_ = nullptr;
  std::int64_t now_us_ = 0, unix_ms_ = 1'800'000'000'000;
  app::StoreTicket ticket_ = 0;
  std::unique_ptr<app::StoreWorker> worker_;
  std::optional<app::StoreContents> contents_;
  app::StoreProblem problem_;
  std::vector<app::StoreNotice> notices_;
  std::map<std::uint64_t, app::Chat> loaded_;
  std::vector<app::SearchHit> hits_;
  bool search_done_ = false;
};

}  // namespace octavo::testing
