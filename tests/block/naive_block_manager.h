// What BlockManager promises, without any of its means: contents are whole token lists in ordered maps, every
// block ever taken has a number of its own, and each question is answered by looking at everything. For
// comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"

namespace octavo::block {

class NaiveBlockManager {
 public:
  struct Content {
    std::string salt;
    std::vector<TokenId> tokens;  // everything up to the end of the block
    friend auto operator<=>(const Content&, const Content&) = default;
  };
  struct Table {
    std::vector<int> blocks;  // of the host pool while it is swapped out
    std::int32_t num_computed = 0;
    bool is_swapped_out = false;
  };
  struct Found {
    std::int32_t num_hit_live = 0, num_hit_cached = 0, num_copied_partial = 0;
    friend bool operator==(const Found&, const Found&) = default;
  };

  NaiveBlockManager(std::int32_t num_blocks, std::int32_t num_host_blocks, std::int32_t block_size,
                    bool caches)
      : num_blocks_(num_blocks),
        num_host_blocks_(num_host_blocks),
        block_size_(block_size),
        caches_(caches) {}

  std::map<int, Table> tables;

  std::int32_t num_used() const {
    return static_cast<std::int32_t>(
        std::ranges::count_if(blocks_, [&](const auto& entry) { return is_used(entry.first); }));
  }
  std::int32_t num_cached() const { return static_cast<std::int32_t>(blocks_.size()) - num_used(); }
  std::int32_t num_free() const { return num_blocks_ - static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_available() const {
    std::int32_t num_kept = 0;
    for (const auto& [content, block] : holders_) {
      if (!is_used(block) && retention_.at(content) == RetentionClass::kPinned) ++num_kept;
    }
    return num_free() + num_cached() - num_kept;
  }
  std::int32_t num_host_used() const { return static_cast<std::int32_t>(host_blocks().size()); }
  std::int32_t num_evicted() const { return num_evicted_; }
  std::int32_t num_copies() const { return num_copies_; }
  int num_references(int block) const {
    auto count =
        static_cast<int>(std::ranges::count(copy_sources_, block) + std::ranges::count(held_, block));
    for (const auto& [id, table] : tables) {
      if (!table.is_swapped_out) count += static_cast<int>(std::ranges::count(table.blocks, block));
    }
    return count;
  }
  bool is_used(int block) const { return num_references(block) > 0; }

  std::vector<int> match(int id, const Content& all, std::int32_t max) {
    std::vector<int> found;
    if (!caches_) return found;
    for (std::int32_t i = tables[id].num_computed / block_size_; (i + 1) * block_size_ <= max; ++i) {
      const auto holder = holders_.find(start_of(all, (i + 1) * block_size_));
      if (holder == holders_.end()) break;
      found.push_back(holder->second);
    }
    return found;
  }

  Found append_match(int id, const Content& all, std::int32_t max, RetentionClass retention,
                     bool copies_partial) {
    Found found;
    Table& table = tables[id];
    for (const int block : match(id, all, max)) {
      const auto num_full = static_cast<std::size_t>(table.num_computed / block_size_);
      const std::int32_t num_tokens =
          (static_cast<std::int32_t>(num_full) + 1) * block_size_ - table.num_computed;
      (is_used(block) ? found.num_hit_live : found.num_hit_cached) += num_tokens;
      const std::vector<int> own(table.blocks.begin() + static_cast<std::ptrdiff_t>(num_full),
                                 table.blocks.end());
      table.blocks.resize(num_full);
      table.blocks.push_back(block);
      table.num_computed += num_tokens;
      raise(start_of(all, table.num_computed), retention);
      for (const int dropped : own) forget_if_unused(dropped);
    }
    if (caches_ && copies_partial) copy_partial(table, all, max, found);
    return found;
  }

  std::int32_t grow(int id, std::int32_t num_tokens) {
    Table& table = tables[id];
    const auto index = static_cast<std::size_t>(table.num_computed / block_size_);
    std::int32_t taken = 0;
    if (index < table.blocks.size() && num_references(table.blocks[index]) > 1) {
      table.blocks[index] = take();
      ++num_copies_;
      ++taken;
    }
    while (static_cast<std::int32_t>(table.blocks.size()) * block_size_ < num_tokens) {
      table.blocks.push_back(take());
      ++taken;
    }
    return taken;
  }

  void commit(int id, const Content& all, std::int32_t num_computed, RetentionClass retention) {
    tables[id].num_computed = num_computed;
    seal_full(id, all, retention);
  }

  void trim(int id) { trim(tables[id]); }

  // Everything that is full is findable.
  void seal_full(int id, const Content& all, RetentionClass retention) {
    const Table& table = tables[id];
    for (std::int32_t i = 0; (i + 1) * block_size_ <= table.num_computed && caches_; ++i) {
      const int block = table.blocks[static_cast<std::size_t>(i)];
      if (blocks_.at(block)) continue;
      const Content content = start_of(all, (i + 1) * block_size_);
      if (!holders_.contains(content)) displace_covered(content);
      const auto [holder, is_new] = holders_.emplace(content, block);
      if (is_new) created_[content] = ++clock_;
      if (!is_new && !is_used(holder->second)) blocks_.erase(std::exchange(holder->second, block));
      blocks_[block] = content;
      sealed_at_[block] = ++clock_;
      raise(content, retention);
    }
  }

  void fork(int parent, int child) { tables[child] = Table(tables[parent]); }
  void share_start(int source, int child, std::int32_t num_blocks) {
    tables[child] = Table(tables[source]);
    tables[child].blocks.resize(static_cast<std::size_t>(num_blocks));
    tables[child].num_computed = num_blocks * block_size_;
  }

  bool swap_out(const std::vector<int>& ids) {
    std::map<int, int> moved_to;
    for (const int id : ids) {
      for (const int block : computed_part(tables[id])) moved_to.emplace(block, 0);
    }
    if (std::ssize(moved_to) > num_host_blocks_ - num_host_used()) return false;
    for (auto& [block, host_block] : moved_to) host_block = ++last_block_;
    for (const int id : ids) trim(tables[id]);
    for (std::size_t i = ids.size(); i-- > 0;) {
      Table& table = tables[ids[i]];
      std::vector<int> host_blocks;
      for (const int block : table.blocks) host_blocks.push_back(moved_to.at(block));
      while (!table.blocks.empty()) pop_back(table);
      table.blocks = std::move(host_blocks);
      table.is_swapped_out = !table.blocks.empty();
    }
    return true;
  }

  // Returns how many blocks had to be copied.
  std::int32_t swap_in(const std::vector<int>& ids, const std::vector<Content>& all,
                       const std::vector<RetentionClass>& retentions) {
    std::vector<std::vector<int>> device(ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) {
      Table& table = tables[ids[k]];
      const std::int32_t num_computed = std::exchange(table.num_computed, 0);
      device[k] = match(ids[k], all[k], num_computed);
      table.num_computed = num_computed;
      held_.insert(held_.end(), device[k].begin(), device[k].end());  // until the tables name them
      for (std::int32_t i = 1; i <= std::ssize(device[k]); ++i) {
        raise(start_of(all[k], i * block_size_), retentions[k]);
      }
    }
    std::map<int, int> moved_to;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const std::vector<int>& host_blocks = tables[ids[k]].blocks;
      for (std::size_t i = device[k].size(); i < host_blocks.size(); ++i) {
        const auto [moved, is_new] = moved_to.try_emplace(host_blocks[i], 0);
        if (is_new) {
          moved->second = take();
          held_.push_back(moved->second);
        }
        device[k].push_back(moved->second);
      }
    }
    for (std::size_t k = 0; k < ids.size(); ++k) {
      tables[ids[k]].blocks = device[k];
      tables[ids[k]].is_swapped_out = false;
    }
    held_.clear();
    return static_cast<std::int32_t>(moved_to.size());
  }

  void release(int id) {
    Table& table = tables[id];
    if (table.is_swapped_out) table.blocks.clear();
    while (!table.blocks.empty()) pop_back(table);
    table = {};
  }

  void release_findable(int id, const Content& all, RetentionClass retention) {
    Table& table = tables[id];
    const bool is_partial = table.num_computed % block_size_ > 0;
    if (caches_ && !table.is_swapped_out && is_partial) {
      trim(table);
      insert_partial(table.blocks.back(), start_of(all, table.num_computed), retention);
    }
    release(id);
  }

  void end_step() {
    while (!copy_sources_.empty()) {
      const int block = copy_sources_.front();
      copy_sources_.erase(copy_sources_.begin());
      forget_if_unused(block);
    }
  }

  void release_pins() {
    for (auto& [content, retention] : retention_)
      retention = std::min(retention, RetentionClass::kSystemPrompt);
  }
  void reset() {
    release_pins();
    while (evict()) {
    }
  }

 private:
  static Content start_of(const Content& all, std::int32_t num_tokens) {
    return {all.salt, {all.tokens.begin(), all.tokens.begin() + num_tokens}};
  }
  std::size_t num_tokens_before(const Content& content) const {  // its block
    const auto size = static_cast<std::size_t>(block_size_);
    return (content.tokens.size() - 1) / size * size;
  }
  bool is_full(const Content& content) const {
    return content.tokens.size() % static_cast<std::size_t>(block_size_) == 0;
  }
  // How many tokens of `content`'s block are alike in `other`; none when they do not follow the same.
  std::int32_t num_alike(const Content& content, const Content& other) const {
    const std::size_t begin = num_tokens_before(content);
    if (other.salt != content.salt || other.tokens.size() <= begin || num_tokens_before(other) != begin)
      return 0;
    const auto equal = std::ranges::mismatch(content.tokens, other.tokens).in1 - content.tokens.begin();
    return std::max(0, static_cast<std::int32_t>(equal) - static_cast<std::int32_t>(begin));
  }

  std::set<int> host_blocks() const {
    std::set<int> blocks;
    for (const auto& [id, table] : tables) {
      if (table.is_swapped_out) blocks.insert(table.blocks.begin(), table.blocks.end());
    }
    return blocks;
  }

  int take() {
    if (num_free() == 0) evict();
    blocks_[++last_block_];
    return last_block_;
  }

  void pop_back(Table& table) {
    const int block = table.blocks.back();
    table.blocks.pop_back();
    forget_if_unused(block);
  }

  std::vector<int> computed_part(const Table& table) const {
    return {table.blocks.begin(),
            table.blocks.begin() + (table.num_computed + block_size_ - 1) / block_size_};
  }
  void trim(Table& table) {
    while (table.blocks.size() > computed_part(table).size()) pop_back(table);
  }

  // ---- the starts of blocks

  void copy_partial(Table& table, const Content& all, std::int32_t max, Found& found) {
    const std::int32_t end = std::min(max, table.num_computed + block_size_);
    const bool holds_more =
        table.num_computed % block_size_ > 0 || std::ssize(table.blocks) > table.num_computed / block_size_;
    if (holds_more || end <= table.num_computed) return;
    const Content wanted = start_of(all, end);
    const Content* closest = nullptr;
    std::int32_t num_equal = 0;
    for (const auto& [content, block] : holders_) {
      const std::int32_t num = num_alike(wanted, content);
      const auto better_of_equals = [&] {  // the shorter, then the newer one
        if (content.tokens.size() != closest->tokens.size())
          return content.tokens.size() < closest->tokens.size();
        return created_.at(content) > created_.at(*closest);
      };
      if (num == 0 || num < num_equal || (num == num_equal && !better_of_equals())) continue;
      closest = &content;
      num_equal = num;
    }
    if (closest == nullptr) return;
    const auto num_there = static_cast<std::int32_t>(closest->tokens.size() - num_tokens_before(*closest));
    if (num_equal < std::min(4, num_there)) return;
    const int source = holders_.at(*closest);
    const bool occupies = !is_used(source) && retention_.at(*closest) != RetentionClass::kPinned;
    const std::int32_t num_needed = max / block_size_ + 1 - static_cast<std::int32_t>(table.blocks.size());
    if (num_available() - (occupies ? 1 : 0) < num_needed) return;
    copy_sources_.push_back(source);
    table.blocks.push_back(take());
    ++num_copies_;
    table.num_computed += num_equal;
    found.num_copied_partial = num_equal;
  }

  void insert_partial(int block, const Content& content, RetentionClass retention) {
    if (num_references(block) > 1) return;
    const auto size = static_cast<std::int32_t>(content.tokens.size() - num_tokens_before(content));
    for (const auto& [other, holder] : holders_) {
      if (num_alike(content, other) == size) return;
    }
    displace_covered(content);
    holders_[content] = block;
    blocks_[block] = content;
    created_[content] = ++clock_;
    raise(content, retention);
  }

  void displace_covered(const Content& content) {
    std::vector<Content> covered;
    for (const auto& [other, block] : holders_) {
      if (is_full(other) || is_used(block) || retention_.at(other) == RetentionClass::kPinned) continue;
      const auto size = static_cast<std::int32_t>(other.tokens.size() - num_tokens_before(other));
      if (num_alike(content, other) == size) covered.push_back(other);
    }
    for (const Content& other : covered) forget(other);
  }

  // ---- being kept and being forgotten

  std::int32_t num_pinned() const {
    return static_cast<std::int32_t>(std::ranges::count_if(
        retention_, [](const auto& entry) { return entry.second == RetentionClass::kPinned; }));
  }

  void raise(const Content& content, RetentionClass to) {
    RetentionClass& retention = retention_.try_emplace(content, RetentionClass::kScratch).first->second;
    if (to == RetentionClass::kPinned && retention != to) {
      const auto begin = static_cast<std::int32_t>(num_tokens_before(content));
      const bool follows_pin =
          begin == 0 || retention_.at(start_of(content, begin)) == RetentionClass::kPinned;
      if (!follows_pin || num_pinned() >= num_blocks_ / 4) to = RetentionClass::kSystemPrompt;
    }
    retention = std::max(retention, to);
  }

  void forget_if_unused(int block) {
    if (is_used(block)) return;
    const auto key = blocks_.at(block);
    const auto holder = key ? holders_.find(*key) : holders_.end();
    if (holder == holders_.end() || holder->second != block) {
      blocks_.erase(block);
      return;
    }
    std::optional<int> heir;
    for (const auto& [other, other_key] : blocks_) {
      const bool holds_the_same = other != block && other_key == key && is_used(other);
      if (holds_the_same && (!heir || sealed_at_[other] < sealed_at_[*heir])) heir = other;
    }
    if (!heir) {
      last_used_[*key] = ++clock_;
      return;
    }
    holder->second = *heir;
    blocks_.erase(block);
  }

  void forget(const Content& content) {
    blocks_.erase(holders_.at(content));
    retention_.erase(content);
    holders_.erase(Content(content));
  }

  bool is_leaf(const Content& content) const {
    return std::ranges::none_of(holders_, [&](const auto& other) {
      return other.first.salt == content.salt && other.first.tokens.size() > content.tokens.size() &&
             num_tokens_before(other.first) == content.tokens.size() &&
             std::ranges::equal(content.tokens, std::span(other.first.tokens).first(content.tokens.size()));
    });
  }

  bool evict() {
    std::optional<Content> first;
    const auto order = [&](const Content& content) {
      return std::pair(retention_.at(content), last_used_.at(content));
    };
    for (const auto& [content, block] : holders_) {
      if (is_used(block) || retention_.at(content) == RetentionClass::kPinned || !is_leaf(content)) continue;
      if (!first || order(content) < order(*first)) first = content;
    }
    if (!first) return false;
    forget(*first);
    ++num_evicted_;
    return true;
  }

  const std::int32_t num_blocks_;
  const std::int32_t num_host_blocks_;
  const std::int32_t block_size_;
  const bool caches_;
  int last_block_ = 0;  // of both pools
  std::int64_t clock_ = 0;
  std::int32_t num_evicted_ = 0;
  std::int32_t num_copies_ = 0;
  std::map<int, std::optional<Content>> blocks_;  // all that are not free, with what is sealed in them
  std::vector<int> copy_sources_, held_;
  std::map<Content, int> holders_;  // what can be found, and in which block
  std::map<Content, std::int64_t> created_, last_used_;
  std::map<Content, RetentionClass> retention_;
  std::map<int, std::int64_t> sealed_at_;
};

}  // namespace octavo::block
