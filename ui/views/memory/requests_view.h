// The requests of chats, comparisons and clients as a list; the one that is chosen with its prompt beside the
// nearest earlier one.
//
// Keeps only how the list is looked at. UI thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ui/frame.h"
#include "ui/memory_state.h"
#include "ui/views/memory/block_map.h"
#include "ui/views/memory/request_detail_view.h"

namespace octavo::ui {

enum class RequestColumn {
  kNumber,
  kClient,
  kArrived,
  kWaiting,
  kPrompt,
  kFirstToken,
  kSpeed,
  kTokens,
  kAccount,
  kReused,
  kLost,
  kCause
};
inline constexpr std::size_t kNumRequestColumns = 12;

class RequestsView {
 public:
  // The list, and below it one request or the blocks.
  void draw(const Frame& frame, const MemoryWorkspaceState& state, BlockMap& map, Pointing& pointing,
            ImVec2 extent);

  // In the order of the list. For tests.
  std::vector<std::uint64_t> shown_numbers(const RequestsState& requests) const;

 private:
  void sort_by(RequestColumn column);
  void draw_list(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent);
  void draw_filter(const Frame& frame, const RequestsState& requests);
  void draw_rows(const Frame& frame, const MemoryWorkspaceState& state);
  void draw_head(const Frame& frame, const std::vector<float>& widths);
  void draw_row(const Frame& frame, const MemoryWorkspaceState& state, const ShownRequest& request,
                const std::vector<float>& widths);
  void update_order(const RequestsState& requests);

  RequestColumn column_ = RequestColumn::kNumber;
  bool is_ascending_ = false;
  std::string group_;                                         // empty: all
  std::shared_ptr<const std::vector<ShownRequest>> ordered_;  // that order_ is of
  std::vector<std::uint32_t> order_;
  int order_key_ = -1;
  std::string ordered_group_;
  std::uint64_t pointed_ = 0;
  RequestDetailView detail_;
};

// What became of prompt tokens, in colours and words.
ImU32 account_colour(const Theme& theme, TokenAccount part);
const char* account_word(TokenAccount part);
// One sentence: where such tokens come from.
const char* account_help(TokenAccount part);
// The account as a bar; hatched where tokens were computed.
void draw_account_bar(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 extent,
                      const ShownRequest& request);
// "differs", "evicted", ... as people read it.
std::string cause_word(const std::string& cause);

}  // namespace octavo::ui
