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

// "34 % of 2.3 GiB · 3 min left · 12 MiB/s"
std::string download_text(const DownloadState& download);

}  // namespace octavo::ui
