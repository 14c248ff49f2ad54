// What BlockManager promises, without any of its means: contents are whole token lists in ordered maps, every
// block ever taken has a number of its own, and each question is answered by looking at everything. For
// comparison.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/ids.h"

namespace octavo::block {

class NaiveBlockManager {
 public:
  using Content = std::pair<std::string, std::vector<TokenId>>;  // salt; everything up to the block's end
  struct Table {
    std::vector<int> blocks;
    std::int32_t num_computed = 0;
  };

  NaiveBlockManager(std::int32_t num_blocks, std::int32_t block_size, bool caches)
      : num_blocks_(num_blocks), block_size_(block_size), caches_(caches) {}

  std::int32_t num_used() const {
    return static_cast<std::int32_t>(
        std::ranges::count_if(blocks_, [&](const auto& entry) { return num_owners(entry.first) > 0; }));
  }
  std::int32_t num_cached() const { return static_cast<std::int32_t>(blocks_.size()) - num_used(); }
  std::int32_t num_free() const { return num_blocks_ - static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_evicted() const { return num_evicted_; }
  std::int32_t num_copies() const { return num_copies_; }
  std::map<int, Table> tables;
  int num_owners(int block) const {
    int count = 0;
    for (const auto& [id, table] : tables) count += static_cast<int>(std::ranges::count(table.blocks, block));
    return count;
  }

  std::vector<int> match(int id, const std::vector<TokenId>& tokens, const std::string& salt,
                         std::int32_t max) {
    std::vector<int> found;
    if (!caches_) return found;
    for (std::int32_t i = tables[id].num_computed / block_size_; (i + 1) * block_size_ <= max; ++i) {
      const auto holder = holders_.find(content(tokens, salt, i));
      if (holder == holders_.end()) break;
      found.push_back(holder->second);
    }
    return found;
  }

  void append_match(int id, const std::vector<TokenId>& tokens, const std::string& salt, std::int32_t max) {
    const auto found = match(id, tokens, salt, max);
    Table& table = tables[id];
    if (found.empty()) return;
    const auto num_full = static_cast<std::size_t>(table.num_computed / block_size_);
    std::vector<int> dropped(table.blocks.begin() + static_cast<std::ptrdiff_t>(num_full),
                             table.blocks.end());
    table.blocks.resize(num_full);
    table.blocks.insert(table.blocks.end(), found.begin(), found.end());
    table.num_computed = static_cast<std::int32_t>(table.blocks.size()) * block_size_;
    for (const int block : dropped) forget_if_unused(block);
  }

  std::int32_t grow(int id, std::int32_t num_tokens) {
    Table& table = tables[id];
    const auto index = static_cast<std::size_t>(table.num_computed / block_size_);
    std::int32_t taken = 0;
    if (index < table.blocks.size() && num_owners(table.blocks[index]) > 1) {
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

  void commit(int id, const std::vector<TokenId>& tokens, const std::string& salt,
              std::int32_t num_computed) {
    Table& table = tables[id];
    for (std::int32_t i = table.num_computed / block_size_; (i + 1) * block_size_ <= num_computed; ++i) {
      if (!caches_) break;
      const int block = table.blocks[static_cast<std::size_t>(i)];
      const Content key = content(tokens, salt, i);
      const auto [holder, is_new] = holders_.emplace(key, block);
      if (!is_new && num_owners(holder->second) == 0) blocks_.erase(std::exchange(holder->second, block));
      blocks_[block] = key;
      sealed_at_[block] = ++clock_;
    }
    table.num_computed = num_computed;
  }

  void fork(int parent, int child) { tables[child] = Table(tables[parent]); }

  void release(int id) {
    Table& table = tables[id];
    while (!table.blocks.empty()) {
      const int block = table.blocks.back();
      table.blocks.pop_back();
      forget_if_unused(block);
    }
    table.num_computed = 0;
  }

  void reset() {
    while (evict()) {
    }
  }

 private:
  Content content(const std::vector<TokenId>& tokens, const std::string& salt, std::int32_t index) const {
    return {salt, {tokens.begin(), tokens.begin() + (index + 1) * block_size_}};
  }

  int take() {
    if (num_free() == 0) evict();
    blocks_[++last_block_];
    return last_block_;
  }

  void forget_if_unused(int block) {
    if (num_owners(block) > 0) return;
    const auto key = blocks_.at(block);
    const auto holder = key ? holders_.find(*key) : holders_.end();
    if (holder == holders_.end() || holder->second != block) {
      blocks_.erase(block);
      return;
    }
    std::optional<int> heir;
    for (const auto& [other, other_key] : blocks_) {
      const bool holds_the_same = other != block && other_key == key && num_owners(other) > 0;
      if (holds_the_same && (!heir || sealed_at_[other] < sealed_at_[*heir])) heir = other;
    }
    if (!heir) {
      last_used_[*key] = ++clock_;
      return;
    }
    holder->second = *heir;
    blocks_.erase(block);
  }

  bool is_leaf(const Content& key) const {
    return std::ranges::none_of(holders_, [&](const auto& other) {
      const auto& [salt, tokens] = other.first;
      return salt == key.first &&
             tokens.size() == key.second.size() + static_cast<std::size_t>(block_size_) &&
             std::equal(key.second.begin(), key.second.end(), tokens.begin());
    });
  }

  bool evict() {
    std::optional<Content> oldest;
    for (const auto& [key, block] : holders_) {
      if (num_owners(block) > 0 || !is_leaf(key)) continue;
      if (!oldest || last_used_[key] < last_used_[*oldest]) oldest = key;
    }
    if (!oldest) return false;
    blocks_.erase(holders_.at(*oldest));
    holders_.erase(*oldest);
    ++num_evicted_;
    return true;
  }

  const std::int32_t num_blocks_;
  const std::int32_t block_size_;
  const bool caches_;
  int last_block_ = 0;
  std::int64_t clock_ = 0;
  std::int32_t num_evicted_ = 0;
  std::int32_t num_copies_ = 0;
  std::map<int, std::optional<Content>> blocks_;  // all that are not free, with what is sealed in them
  std::map<Content, int> holders_;                // what can be found, and in which block
  std::map<Content, std::int64_t> last_used_;
  std::map<int, std::int64_t> sealed_at_;
};

}  // namespace octavo::block
