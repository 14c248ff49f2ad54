#include "ui/views/download_view.h"

#include <cmath>

#include "engine/base/format.h"
#include "ui/model_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kHeight = 78, kButtonsRow = 30;  // without the row of buttons, where they stand below
constexpr float kPadding = 12, kWide = 420;
constexpr float kButton = 26;

bool is_wide(const Frame& frame, float width) { return width > frame.px(kWide); }

std::string left_text(double seconds) {
  const double whole = std::ceil(seconds);
  if (whole < 60) return fixed_text(whole, 0) + " s left";
  if (whole < 3600) return fixed_text(std::ceil(whole / 60), 0) + " min left";
  return fixed_text(whole / 3600, 1) + " h left";
}

double fraction_of(const DownloadState& download) {
  if (download.total <= 0) return 0;
  return static_cast<double>(download.received) / static_cast<double>(download.total);
}

// Buttons from the right edge to the left.
void draw_buttons(const Frame& frame, const DownloadState& download, ImVec2 high) {
  const auto place = [&](float& right, std::string_view text, const ButtonOptions& options) {
    right -= button_width(frame, text, options);
    ImGui::SetCursorScreenPos({right, high.y});
    right -= frame.px(6);
  };
  float right = high.x;
  const ButtonOptions plain{.kind = ButtonKind::kPlain, .height = kButton};
  const ButtonOptions strong{.height = kButton};
  if (download.phase == DownloadPhase::kDone) {
    place(right, "Dismiss", plain);
    if (button(frame, "dismiss_download", "Dismiss", plain)) frame.actions.push(actions::DismissDownload{});
    return;
  }
  ButtonOptions cancel = plain;
  cancel.help = "What has come is removed";
  place(right, "Cancel", cancel);
  if (button(frame, "cancel_download", "Cancel", cancel)) frame.actions.push(actions::CancelDownload{});
  const bool stands = download.phase == DownloadPhase::kPaused || download.phase == DownloadPhase::kFailed;
  const char* const text = !stands                                    ? "Pause"
                           : download.phase == DownloadPhase::kPaused ? "Resume"
                                                                      : "Try again";
  place(right, text, strong);
  if (!button(frame, stands ? "resume_download" : "pause_download", text, strong)) return;
  if (stands) {
    frame.actions.push(actions::ResumeDownload{});
  } else {
    frame.actions.push(actions::PauseDownload{});
  }
}

}  // namespace

std::string download_text(const DownloadState& download, bool is_short) {
  const std::string percent = percent_text(std::floor(fraction_of(download) * 100) / 100);
  const std::string of_all =
      download.total > 0 ? percent + " of " + bytes_text(download.total) : std::string();
  switch (download.phase) {
    case DownloadPhase::kNone: return {};
    case DownloadPhase::kAsking: return "Asking the hub…";
    case DownloadPhase::kWaiting: return "Another program downloads it…";
    case DownloadPhase::kRetrying: return of_all + " · trying again: " + download.sentence;
    case DownloadPhase::kVerifying: return "Verifying…";
    case DownloadPhase::kPaused: return of_all.empty() ? "Paused" : "Paused at " + of_all;
    case DownloadPhase::kFailed: return download.sentence;
    case DownloadPhase::kDone: return "Downloaded";
    case DownloadPhase::kReceiving: break;
  }
  std::string text = of_all;
  if (download.seconds_left) text += " · " + left_text(*download.seconds_left);
  if (download.bytes_per_s > 0 && !is_short)
    text += " · " + bytes_text(static_cast<std::int64_t>(download.bytes_per_s)) + "/s";
  return text;
}

float download_height(const Frame& frame, const DownloadState& download, float width) {
  if (download.phase == DownloadPhase::kNone) return 0;
  return is_wide(frame, width) ? kHeight : kHeight + kButtonsRow;
}

void draw_download(const Frame& frame, const DownloadState& download, float width) {
  if (download.phase == DownloadPhase::kNone) return;
  const bool wide = is_wide(frame, width);
  begin_card(frame, "download", {width, frame.px(download_height(frame, download, width))}, kPadding);
  const float inner = ImGui::GetContentRegionAvail().x;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  TextStyle name = small_text(frame);
  name.colour = frame.theme.text;
  // Wide, the buttons stand beside both lines of text, above the bar.
  const float buttons = frame.px(download.phase == DownloadPhase::kDone ? 92 : 180);
  const float room = wide ? inner - buttons : inner;
  ImDrawList* const list = ImGui::GetWindowDrawList();
  draw_text(frame, list, low, name, download.name, room);
  TextStyle tiny = tiny_text(frame);
  if (download.phase == DownloadPhase::kFailed) tiny.colour = readable(frame.theme.error, frame.theme.panel);
  const ImVec2 second{low.x, low.y + frame.px(21)};
  const std::string told = download_text(download);
  const bool fits = text_width(frame, tiny, told) <= room;
  draw_text(frame, list, second, tiny, fits ? told : download_text(download, /*is_short=*/true), room);
  if (!fits) tooltip_over(frame, second, {second.x + room, second.y + line_pixels(frame, tiny)}, told);
  const float bar = low.y + frame.px(46);
  ImGui::SetCursorScreenPos({low.x, bar});
  two_part_bar(frame,
               download.phase == DownloadPhase::kDone ? 1.0f : static_cast<float>(fraction_of(download)), 0,
               inner, frame.px(6));
  draw_buttons(frame, download, {low.x + inner, wide ? low.y + frame.px(6) : bar + frame.px(14)});
  end_card();
}

}  // namespace octavo::ui
