#include "app/window/memory/linked_hover.h"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace octavo::app {

ui::LinkedHover words_of_block(BlockId block, std::int32_t block_size, TokenBook& tokens,
                               const TokenBytes& bytes, const ui::UiState& state) {
  ui::LinkedHover hover{.blocks = {block}};
  std::set<RequestId> lit;
  const auto light_request = [&](RequestId request, std::int32_t index) {
    if (!lit.insert(request).second) return;
    for (const TokenBook::Stretch& stretch :
         tokens.stretches_of(request, index * block_size, (index + 1) * block_size, bytes)) {
      hover.ranges[{stretch.chat_id, stretch.message}].push_back(stretch.range);
    }
  };
  // Chats whose answer runs name it in a table; of the others the window knows what they left in the cache.
  for (const ui::ChatState& chat : state.chats) {
    const auto& blocks = chat.memory.blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].block_id != block) continue;
      if (const auto request = tokens.newest_of(chat.id))
        light_request(*request, static_cast<std::int32_t>(i));
    }
  }
  return hover;
}

ui::LinkedHover blocks_of_words(const ui::actions::HoverText& pointed, std::int32_t block_size,
                                TokenBook& tokens, const TokenBytes& bytes, const ui::UiState& state) {
  if (pointed.message_id == MessageId{}) return {};
  const auto place = tokens.find(pointed.chat_id, pointed.message_id, pointed.begin, pointed.end, bytes);
  const ui::ChatState* chat = ui::find_chat(state, pointed.chat_id);
  if (!place || chat == nullptr) return {};
  std::vector<BlockId> lit;
  for (std::int32_t i = place->begin / block_size; i <= (place->end - 1) / block_size; ++i) {
    if (static_cast<std::size_t>(i) < chat->memory.blocks.size())
      lit.push_back(chat->memory.blocks[static_cast<std::size_t>(i)].block_id);
  }
  if (lit.empty()) return {};
  ui::LinkedHover hover = words_of_block(lit.front(), block_size, tokens, bytes, state);
  hover.blocks = std::move(lit);
  return hover;
}

}  // namespace octavo::app
