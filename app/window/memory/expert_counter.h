// Adds up which experts tokens chose, on a thread of its own: neither the engine, which only hands over what
// a step wrote down, nor the window counts. The thread begins with the first step that is given.
//
// UI thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/window/job_thread.h"
#include "engine/api/expert_choices.h"
#include "engine/base/ids.h"
#include "ui/memory_state.h"

namespace octavo::app {

// Counts of one chat, or of all.
struct ExpertCounts {
  std::int64_t num_tokens = 0;
  std::vector<std::uint32_t> counts = {};  // [layers, experts]
};

// What was chosen in one model. A value type without a thread.
class ExpertBook {
 public:
  // `chats`: of each of choices.rows, 0 where none is known. Of another model than before, all begins anew.
  void add(const ExpertChoices& choices, const std::vector<ChatId>& chats);
  void clear();
  // Of a chat that nothing is known of: no tokens. ChatId{}: all, also those that are of no chat.
  ui::ExpertHeat heat_of(ChatId chat) const;

 private:
  void count(const ExpertChoices& choices, std::size_t first_row, std::int32_t num_rows,
             ExpertCounts& counts);

  std::int32_t num_experts_ = 0, num_used_ = 0;
  std::vector<std::int32_t> layers_;
  std::map<ChatId, ExpertCounts> counts_;  // ChatId{}: all
};

// The fewest experts that have at least half of a layer's choices. REQUIRES: some choices
std::int32_t num_experts_for_half(std::vector<std::uint32_t> counts);

class ExpertCounter {
 public:
  using ChatOf = std::function<std::optional<ChatId>(RequestId)>;

  void add(std::vector<ExpertChoices> steps, const ChatOf& chat_of);
  void choose(ChatId chat);
  void restart();
  // Something was given whose counts are not taken yet.
  bool is_busy() const { return num_given_ > num_taken_; }
  // The newest counts since the last call.
  std::shared_ptr<const ui::ExpertHeat> take();

 private:
  struct Job {
    std::vector<ExpertChoices> steps = {};
    std::vector<std::vector<ChatId>> chats = {};  // of each step's rows
    ChatId chosen = {};
    bool restarts = false;
  };
  using Heat = std::shared_ptr<const ui::ExpertHeat>;

  void give(Job job);

  ChatId chosen_ = {};
  std::uint64_t num_given_ = 0, num_taken_ = 0;
  std::unique_ptr<JobThread<Job, Heat>> thread_;  // none before the first job
};

}  // namespace octavo::app
