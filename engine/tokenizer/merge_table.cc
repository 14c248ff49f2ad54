#include "engine/tokenizer/merge_table.h"

#include <bit>

#include "engine/base/hash.h"
#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

struct Parts {
  TokenId left, right, result;
};

Error bad_merge(std::size_t index, std::string_view merge, std::string_view what) {
  return {ErrorCode::kDamagedFile,
          "tokenizer.ggml.merges[" + std::to_string(index) + "] \"" + escape_for_message(merge) + "\" " +
              std::string(what) + ": the file is damaged, download it again",
          "tokenizer.ggml.merges"};
}

// Exactly one space, with something on both sides.
bool is_well_formed(std::string_view merge, std::size_t space) {
  return space != std::string_view::npos && space > 0 && space + 1 < merge.size() &&
         merge.find(' ', space + 1) == std::string_view::npos;
}

Result<Parts> read_merge(std::size_t index, std::string_view merge, const TokenIndex& tokens,
                         std::string& joined) {
  const std::size_t space = merge.find(' ');
  if (!is_well_formed(merge, space))
    return bad_merge(index, merge, "is not two parts separated by one space");
  joined.assign(merge.substr(0, space)).append(merge.substr(space + 1));
  const auto left = tokens.find(merge.substr(0, space));
  const auto right = tokens.find(merge.substr(space + 1));
  const auto result = tokens.find(joined);
  if (left == tokens.end() || right == tokens.end())
    return bad_merge(index, merge, "has a part that is not a token");
  if (result == tokens.end()) return bad_merge(index, merge, "yields something that is not a token");
  return Parts{left->second, right->second, result->second};
}

TokenIndex index_texts(const Vocabulary& vocabulary) {
  TokenIndex index;
  index.reserve(vocabulary.tokens.size());
  for (const bool special : {true, false}) {
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      if (is_special_kind(vocabulary.kinds[id]) == special)
        index[vocabulary.tokens[id]] = static_cast<TokenId>(id);
    }
  }
  return index;
}

}  // namespace

Result<MergeTable> MergeTable::of_vocabulary(const Vocabulary& vocabulary) {
  return create(vocabulary.merges, index_texts(vocabulary),
                [&](TokenId id) { return !is_special_kind(vocabulary.kinds[static_cast<std::size_t>(id)]); });
}

MergeTable::MergeTable(std::size_t num_merges) : slots_(std::bit_ceil(2 * num_merges + 1)) {}

Result<MergeTable> MergeTable::create(std::span<const std::string> merges, const TokenIndex& tokens,
                                      const std::function<bool(TokenId)>& may_make) {
  MergeTable table(merges.size());
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    OCTAVO_TRY(const Parts parts, read_merge(i, merges[i], tokens, joined));
    if (!may_make(parts.result)) continue;
    Slot& slot = table.slots_[table.slot_of(parts.left, parts.right)];
    slot = {parts.left, parts.right, {static_cast<std::uint32_t>(i), parts.result}};
  }
  return table;
}

MergeTable MergeTable::of_tokens(std::span<const MergedTokens> merges,
                                 const std::function<bool(TokenId)>& may_make) {
  MergeTable table(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right, result] = merges[i];
    if (!may_make(result)) continue;
    table.slots_[table.slot_of(left, right)] = {left, right, {static_cast<std::uint32_t>(i), result}};
  }
  return table;
}

std::size_t MergeTable::slot_of(TokenId left, TokenId right) const {
  const std::uint64_t key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
                            static_cast<std::uint32_t>(right);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(mix64(key)) & mask;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right))
    slot = (slot + 1) & mask;
  return slot;
}

const Merge* MergeTable::find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[slot_of(left, right)];
  return slot.left >= 0 ? &slot.merge : nullptr;
}

}  // namespace octavo::tokenizer
