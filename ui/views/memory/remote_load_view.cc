#include "ui/views/memory/remote_load_view.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/format.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/sparkline.h"

namespace octavo::ui {
namespace {

constexpr float kCardWidth = 250, kCardHeight = 132, kGap = 12;
constexpr double kSpanSeconds = 120.0;

struct LoadFigure {
  const char* id;
  const char* name;
  const char* help;
  std::optional<double> RemoteLoadPoint::*value;
  enum class Unit { kShare, kCount, kRate } unit;
};

constexpr LoadFigure kFigures[] = {
    {"kv", "KV cache in use", "Share of the server's KV cache that holds tokens of requests.",
     &RemoteLoadPoint::kv_usage, LoadFigure::Unit::kShare},
    {"running", "Running", "Requests that the server computes now, ours and those of others.",
     &RemoteLoadPoint::num_running, LoadFigure::Unit::kCount},
    {"waiting", "Waiting", "Requests that wait for a place.", &RemoteLoadPoint::num_waiting,
     LoadFigure::Unit::kCount},
    {"swapped", "Swapped out", "Requests whose blocks were moved to the server's main memory.",
     &RemoteLoadPoint::num_swapped, LoadFigure::Unit::kCount},
    {"hits", "Prefix hits", "Of all prompt tokens so far, those found in the server's prefix cache.",
     &RemoteLoadPoint::hit_rate, LoadFigure::Unit::kShare},
    {"preemptions", "Preemptions", "How often requests lost their blocks since the server started.",
     &RemoteLoadPoint::num_preemptions, LoadFigure::Unit::kCount},
    {"prompt", "Prompt tokens", "Prompt tokens per second, of all clients.",
     &RemoteLoadPoint::prompt_tokens_per_s, LoadFigure::Unit::kRate},
    {"output", "Output tokens", "Generated tokens per second, of all clients.",
     &RemoteLoadPoint::output_tokens_per_s, LoadFigure::Unit::kRate},
};

std::string value_text(const LoadFigure& figure, const std::optional<double>& value) {
  if (!value) return "unknown";
  switch (figure.unit) {
    case LoadFigure::Unit::kShare: return percent_text(*value);
    case LoadFigure::Unit::kCount: return with_thousands(std::llround(*value));
    case LoadFigure::Unit::kRate: return short_number(*value) + "/s";
  }
  return {};
}

void draw_figure(const Frame& frame, const LoadFigure& figure, const RemoteLoadState& load, float width) {
  begin_card(frame, figure.id, {width, frame.px(kCardHeight)}, 13);
  const float inner = ImGui::GetContentRegionAvail().x;
  line(frame, tiny_text(frame), figure.name, inner);
  tooltip(frame, figure.help);
  const auto newest = load.points.empty() ? std::optional<double>() : load.points.back().*figure.value;
  const ImU32 colour = newest ? frame.theme.text : frame.theme.muted;
  line(frame, {.face = FontFace::kSemiBold, .em = 20, .colour = colour}, value_text(figure, newest), inner);
  std::vector<Sample> samples;
  for (const RemoteLoadPoint& point : load.points)
    if (const auto& value = point.*figure.value) samples.push_back({point.seconds, *value});
  if (!samples.empty()) {
    gap(frame, 6);
    const ImVec2 low = ImGui::GetCursorScreenPos();
    const ImVec2 high{low.x + inner, low.y + ImGui::GetContentRegionAvail().y};
    const double least = figure.unit == LoadFigure::Unit::kShare ? 0.05 : 1.0;
    draw_sparkline(frame, ImGui::GetWindowDrawList(), low, high, samples, load.points.back().seconds,
                   kSpanSeconds, least, frame.theme.accent);
  }
  end_card();
}

}  // namespace

bool shows_remote_load(const UiState& state) {
  const MemoryWorkspaceState& memory = state.memory_workspace;
  return state.model.is_remote && memory.page == MemoryPage::kPools && memory.source == MemorySource::kLive;
}

void draw_remote_load(const Frame& frame, const UiState& state, ImVec2 extent) {
  const RemoteLoadState& load = state.remote_load;
  ImGui::BeginChild("remote_load", extent, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  line(frame, {.face = FontFace::kSemiBold, .em = 17, .colour = frame.theme.text}, state.model.name, width);
  paragraph(frame, small_text(frame),
            "It runs at " + load.address +
                ". Its blocks are there: what is known here is what the server reports of itself.",
            width);
  if (!load.problem.empty()) {
    gap(frame, 6);
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.warning}, load.problem, width);
  }
  gap(frame, 12);
  const float space = frame.px(kGap);
  const int columns = std::clamp(static_cast<int>((width + space) / (frame.px(kCardWidth) + space)), 1, 4);
  const float card =
      std::floor((width - space * static_cast<float>(columns - 1)) / static_cast<float>(columns));
  int column = 0;
  for (const LoadFigure& figure : kFigures) {
    if (column > 0) beside(frame, kGap);
    draw_figure(frame, figure, load, card);
    column = (column + 1) % columns;
    if (column == 0) gap(frame, kGap);
  }
  ImGui::EndChild();
}

}  // namespace octavo::ui
