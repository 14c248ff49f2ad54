// The line about a model's download: how far it is, and what can be done with it.
#pragma once

#include <string>

#include "ui/catalogue_state.h"
#include "ui/frame.h"

namespace octavo::ui {

// Height of the card in this width on screen, design pixels; 0: there is none to show.
float download_height(const Frame& frame, const DownloadState& download, float width);

// From the cursor on, in a card.
void draw_download(const Frame& frame, const DownloadState& download, float width);

// "34 % of 2.3 GiB · 3 min left · 12 MiB/s"; short: without the speed, which changes all the time
std::string download_text(const DownloadState& download, bool is_short = false);

}  // namespace octavo::ui
