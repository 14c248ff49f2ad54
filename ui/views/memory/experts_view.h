// Which experts the tokens of a chat choose, layer by layer, as colours, with how many cover half of a
// layer's choices. Only of a model that has experts.
#pragma once

#include "ui/frame.h"
#include "ui/state.h"

namespace octavo::ui {

void draw_experts(const Frame& frame, const UiState& state, ImVec2 extent);

// How strong the colour of a share of a layer's choices is, when `most` is the largest: 0 to 1.
float heat_of_share(double share, double most);

}  // namespace octavo::ui
