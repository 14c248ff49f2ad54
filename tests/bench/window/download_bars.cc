// What a download costs the window that shows it: frames while the wheel turns and while an answer streams,
// in turns with a download and without one.

#include <imgui.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/model/model_files.h"
#include "tests/bench/window/bar_window.h"
#include "tests/bench/window/bars.h"
#include "tests/hub/hub_stand_in.h"

namespace octavo::bench {
namespace {

constexpr const char* kRepository = "test/model";
constexpr const char* kFile = "long-Q4_1.gguf";
constexpr std::size_t kFileBytes = std::size_t{2} << 30;
constexpr std::int64_t kBytesPerS = 100'000'000;  // of each connection, so that the file lasts
constexpr double kScreenHz = 60, kStretchSeconds = 2;
constexpr int kNumRounds = 4;
constexpr std::int32_t kStreamTokens = 7'000;

// The default model with zeros behind it: it passes for a model, and lasts longer than a stretch.
Result<std::vector<testing::StandInRepository>> long_repository() {
  std::ifstream file(model::default_model_path(), std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(file), {});
  content.resize(kFileBytes);
  std::vector<testing::StandInRepository> repositories(1);
  repositories[0].name = kRepository;
  // No download comes to its end, so that nobody compares this.
  repositories[0].files.push_back(
      {.path = kFile, .content = std::move(content), .told_sha256 = std::string(64, '0')});
  return repositories;
}

const ui::DownloadState& download_of(const BarWindow& window) { return window.state().catalogue.download; }

Result<void> start_download(BarWindow& window) {
  window.controller().apply(ui::actions::GetModel{kRepository, kFile, "Long"});
  window.application().update();  // performs it
  OCTAVO_TRY_VOID(window.loop_until([&] {
    return download_of(window).received > 0 || download_of(window).phase == ui::DownloadPhase::kFailed;
  }));
  if (download_of(window).phase != ui::DownloadPhase::kFailed) return {};
  return Error{ErrorCode::kIo, download_of(window).sentence};
}

Result<void> end_download(BarWindow& window) {
  if (download_of(window).phase != ui::DownloadPhase::kReceiving) {
    return Error{ErrorCode::kInternal,
                 "the download did not last as long as it was measured: " + download_of(window).sentence};
  }
  window.controller().apply(ui::actions::CancelDownload{});
  window.application().update();  // performs it
  return window.loop_until([&] { return download_of(window).phase == ui::DownloadPhase::kNone; });
}

// Frames of some stretches of the same kind.
struct DrawnFrames {
  std::vector<double> late_ms;  // by the clock, from when the screen wants a frame until it is built
  std::uint64_t count = 0;
  double seconds = 0;

  double per_second() const { return static_cast<double>(count) / seconds; }
};

void sleep_until(double wall) {
  const double left = wall - wall_seconds();
  if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
}

// The wheel turns before each frame that a screen of 60 Hz shows. A frame that is too late for its turn takes
// the next one, as on a screen.
void scroll(BarWindow& window, DrawnFrames& frames) {
  const std::uint64_t drawn = window.application().num_frames_drawn();
  const double begin = wall_seconds();
  for (int i = 0; wall_seconds() < begin + kStretchSeconds; ++i) {
    const double due = begin + std::ceil((wall_seconds() - begin) * kScreenHz) / kScreenHz;
    sleep_until(due);
    ImGui::GetIO().AddMousePosEvent(700, 400);
    ImGui::GetIO().AddMouseWheelEvent(0, i % 2 == 0 ? 9.0f : 2.0f);
    window.application().step_for(0);
    frames.late_ms.push_back((wall_seconds() - due) * 1e3);
  }
  frames.seconds += wall_seconds() - begin;
  frames.count += window.application().num_frames_drawn() - drawn;
}

// The window draws what streams at its own pace.
void stream(BarWindow& window, DrawnFrames& frames) {
  const std::uint64_t drawn = window.application().num_frames_drawn();
  const double begin = wall_seconds();
  window.loop_for(kStretchSeconds);
  frames.seconds += wall_seconds() - begin;
  frames.count += window.application().num_frames_drawn() - drawn;
}

struct Turns {
  DrawnFrames without, with;
  double downloaded_mb = 0;
};

Result<Turns> in_turns(BarWindow& window, void (*move)(BarWindow&, DrawnFrames&)) {
  Turns turns;
  for (int round = 0; round < kNumRounds; ++round) {
    move(window, turns.without);
    OCTAVO_TRY_VOID(start_download(window));
    const std::int64_t before = download_of(window).received;
    move(window, turns.with);
    turns.downloaded_mb += static_cast<double>(download_of(window).received - before) / 1e6;
    OCTAVO_TRY_VOID(end_download(window));
  }
  return turns;
}

std::string beside(double with, double without, int decimals) {
  return number(with, decimals) + " (" + number(without, decimals) + " without)";
}

}  // namespace

Rows measure_download() {
  OCTAVO_TRY(auto repositories, long_repository());
  testing::HubStandIn hub(std::move(repositories));
  hub.bytes_per_s = kBytesPerS;
  OCTAVO_TRY(auto window, BarWindow::open(Engine::create, Pixels::kLeftOut, hub.address()));
  std::vector<app::Chat> chats;
  chats.push_back(long_chat());
  window->controller().take_imported(std::move(chats));
  window->loop_for(0.5);
  OCTAVO_TRY(const Turns scrolling, in_turns(*window, scroll));

  window->ask("Tell a long story about a ship that comes home with the morning tide.", kStreamTokens);
  window->loop_for(1);
  OCTAVO_TRY(const Turns streaming, in_turns(*window, stream));
  if (window->is_idle()) return Error{ErrorCode::kIo, "the answer ended before it was measured"};

  const double asked = kScreenHz, drawn = scrolling.with.per_second();
  const double longest = largest(scrolling.with.late_ms);
  const double answer_share = streaming.with.per_second() / streaming.without.per_second();
  const std::string speed = number(scrolling.downloaded_mb / scrolling.with.seconds, 0) + " MB/s: ";
  return std::vector<BarRow>{
      {"download at " + speed + "frames a second of 60 while the wheel turns",
       beside(drawn, scrolling.without.per_second(), 1), ">= 59", drawn >= 0.983 * asked},
      {"download at " + speed + "longest wait of the screen for a frame",
       beside(longest, largest(scrolling.without.late_ms), 1) + " ms", "< 33 ms", longest < 33},
      {"download: frames a second while an answer streams",
       beside(streaming.with.per_second(), streaming.without.per_second(), 1), ">= 95 % of without",
       answer_share >= 0.95}};
}

}  // namespace octavo::bench
