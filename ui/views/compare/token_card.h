// What the engine said about one token: its probability, what else could have stood there, and where its keys
// and values are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/compare_look.h"

namespace octavo::ui {

// White space made visible, controls left out, cut: "␣rain", "⏎".
std::string visible_token(std::string_view text, std::size_t max_bytes = 40);

// Where the keys and values of a token are: its index in the column's table, and its slot there.
struct TokenSlot {
  std::size_t block_index = 0;
  std::int32_t slot = 0;
};
TokenSlot slot_of(const ComparedColumn& column, std::int32_t block_size, std::size_t token);
// None while it has no block, or after the column was never seen.
std::optional<BlockId> block_of(const ComparedColumn& column, std::int32_t block_size, std::size_t token);

// Beside the pointer, while it rests on a token.
void draw_token_hint(const Frame& frame, const UiState& state, const ComparedColumn& column,
                     std::size_t token);

// "62 %", and "< 0.1 %" for the least.
std::string probability_text(double logprob);

// The card that `look.open_card` opens: its alternatives are buttons that fork there, into a column or a
// chat.
void draw_token_card(const Frame& frame, const UiState& state, CompareLook& look);

}  // namespace octavo::ui
