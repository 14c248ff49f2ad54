#include "engine/tokenizer/unigram_model.h"

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/hash.h"
#include "engine/base/text.h"

namespace octavo::tokenizer {
namespace {

std::uint64_t edge_of(std::uint32_t node, char byte) {
  return (static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte)) + 1;
}

// The best way to cut a text up to some place: how its last part begins, and what it is.
struct BestPath {
  double score = 0;
  std::int64_t begin = -1;  // -1: no way leads here
  TokenId token_id = -1;

  void offer(double other, std::size_t from, TokenId id) {
    if (begin >= 0 && other <= score) return;
    *this = {other, static_cast<std::int64_t>(from), id};
  }
};

}  // namespace

Result<UnigramModel> UnigramModel::create(std::span<const Token> tokens, double lowest_score) {
  constexpr double kUnknownPenalty = 10;
  std::size_t most_nodes = 1;
  for (const Token& token : tokens) most_nodes += token.text.size();
  UnigramModel model(lowest_score - kUnknownPenalty);
  model.slots_.resize(std::bit_ceil(2 * std::min(most_nodes, kMaxNodes) + 1));
  for (const Token& token : tokens) {
    std::uint32_t node = 0;
    for (const char byte : token.text) node = model.add_child(node, byte);
    if (model.nodes_.size() + 512 > kMaxNodes) {
      return Error{ErrorCode::kUnsupported, "tokenizer.json has tokens of more than " +
                                                std::to_string(kMaxNodes) +
                                                " bytes together: choose another model"};
    }
    model.nodes_[node] = {token.token_id, token.score};
  }
  return model;
}

std::size_t UnigramModel::slot_of(std::uint64_t edge) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(mix64(edge)) & mask;
  while (slots_[slot].edge != 0 && slots_[slot].edge != edge) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t UnigramModel::child_of(std::uint32_t node, char byte) const {
  return slots_[slot_of(edge_of(node, byte))].child;
}

std::uint32_t UnigramModel::add_child(std::uint32_t node, char byte) {
  Slot& slot = slots_[slot_of(edge_of(node, byte))];
  if (slot.edge == 0) {
    slot = {edge_of(node, byte), static_cast<std::uint32_t>(nodes_.size())};
    nodes_.emplace_back();
  }
  return slot.child;
}

std::vector<UnigramModel::Found> UnigramModel::encode(std::string_view text,
                                                      const std::stop_token& stop) const {
  constexpr std::size_t kCharactersPerLook = 4096;
  std::vector<BestPath> paths(text.size() + 1);
  paths[0].begin = 0;
  std::size_t num_characters = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    if (++num_characters % kCharactersPerLook == 0 && stop.stop_requested()) return {};
    const double so_far = paths[begin].score;
    const std::size_t one = decode_utf8(text, begin).length;
    bool is_known = false;
    std::uint32_t node = 0;
    for (std::size_t end = begin; end < text.size();) {
      node = child_of(node, text[end++]);
      if (node == 0) break;
      if (nodes_[node].token_id < 0) continue;
      paths[end].offer(so_far + nodes_[node].score, begin, nodes_[node].token_id);
      is_known |= end == begin + one;
    }
    if (!is_known) paths[begin + one].offer(so_far + unknown_score_, begin, -1);
    begin += one;
  }
  std::vector<Found> found;
  for (std::size_t end = text.size(); end > 0;) {
    const auto begin = static_cast<std::size_t>(paths[end].begin);
    found.push_back({text.substr(begin, end - begin), paths[end].token_id});
    end = begin;
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace octavo::tokenizer
