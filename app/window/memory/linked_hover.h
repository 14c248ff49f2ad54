// What is pointed at in a chat or in the pools, and what belongs to it on the other side: words light blocks,
// and blocks light words. Of the live engine. UI thread.
#pragma once

#include <cstdint>

#include "app/window/memory/token_book.h"
#include "engine/base/ids.h"
#include "ui/memory_actions.h"
#include "ui/state.h"

namespace octavo::app {

// The words of every chat that has this block.
ui::LinkedHover words_of_block(BlockId block, std::int32_t block_size, TokenBook& tokens,
                               const TokenBytes& bytes, const ui::UiState& state);
// The blocks of the words that are pointed at, and what else lies in the first of them.
ui::LinkedHover blocks_of_words(const ui::actions::HoverText& pointed, std::int32_t block_size,
                                TokenBook& tokens, const TokenBytes& bytes, const ui::UiState& state);

}  // namespace octavo::app
