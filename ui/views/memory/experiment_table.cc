#include "ui/views/memory/experiment_table.h"

#include <algorithm>
#include <string>

#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

constexpr float kRow = 28, kNarrowRow = 50, kSecondLine = 19, kColumnGap = 14;
constexpr float kOurs = 118, kPaper = 104, kVerdict = 114, kSource = 176;  // design pixels
constexpr float kWide = 860, kNarrow = 600;  // with the sources; with names in a line of their own

struct Columns {
  bool is_narrow = false;
  float name = 0, ours = 0, paper = 0, verdict = 0, source = 0;  // widths; `source` 0: not shown
};

Columns columns_of(const Frame& frame, const ExperimentFindings& findings, float width) {
  Columns columns{.is_narrow = width < frame.px(kNarrow)};
  const float space = frame.px(kColumnGap);
  if (columns.is_narrow) {
    const float each = std::floor((width - 2 * space) / 3);
    columns.ours = columns.paper = columns.verdict = each;
    columns.name = width;
    return columns;
  }
  columns.ours = frame.px(kOurs);
  columns.paper = frame.px(kPaper);
  columns.verdict = frame.px(kVerdict);
  const bool has_sources =
      std::ranges::any_of(findings.figures, [](const ShownFigure& figure) { return !figure.source.empty(); });
  if (has_sources && width >= frame.px(kWide)) columns.source = frame.px(kSource);
  const float others = columns.ours + columns.paper + columns.verdict + 3 * space +
                       (columns.source > 0 ? columns.source + space : 0);
  columns.name = width - others;
  return columns;
}

ImU32 verdict_colour(const Frame& frame, FigureVerdict verdict, ImU32 ground) {
  switch (verdict) {
    case FigureVerdict::kInRange: return readable(frame.theme.accent, ground);
    case FigureVerdict::kNear: return readable(frame.theme.owner(0), ground);
    case FigureVerdict::kOutside: return readable(frame.theme.warning, ground);
    case FigureVerdict::kUncompared: break;
  }
  return readable(frame.theme.faint, ground);
}

void draw_right(const Frame& frame, ImVec2 at, const TextStyle& style, const std::string& text, float width) {
  const float room = std::min(text_width(frame, style, text), width);
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + width - room, at.y}, style, text, width + 1);
}

void draw_head(const Frame& frame, const Columns& columns) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const TextStyle style = tiny_text(frame);
  const float space = frame.px(kColumnGap);
  ImDrawList* const list = ImGui::GetWindowDrawList();
  float x = at.x;
  if (!columns.is_narrow) {
    draw_text(frame, list, at, style, "Figure", columns.name);
    x += columns.name + space;
  }
  draw_right(frame, {x, at.y}, style, "Ours", columns.ours);
  x += columns.ours + space;
  draw_right(frame, {x, at.y}, style, "Paper", columns.paper);
  x += columns.paper + space;
  draw_text(frame, list, {x, at.y}, style, "Verdict", columns.verdict);
  x += columns.verdict + space;
  if (columns.source > 0) draw_text(frame, list, {x, at.y}, style, "Where", columns.source);
  ImGui::Dummy({1, frame.px(kRow - 4)});
}

std::string with_unit(const std::string& value, const std::string& unit) {
  return unit.empty() ? value : value + " " + unit;
}

std::string row_help(const ShownFigure& figure) {
  std::string text = figure.name + "\nOurs: " + with_unit(figure.ours, figure.unit);
  text += figure.paper.empty()
              ? "\n" + figure.verdict_word
              : "\nPaper: " + with_unit(figure.paper, figure.unit) + ", " + figure.verdict_word;
  return figure.source.empty() ? text : text + "\n" + figure.source;
}

void draw_row(const Frame& frame, const ShownFigure& figure, int number, const Columns& columns,
              float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextStyle name = small_text(frame), value = small_text(frame), verdict = small_text(frame),
            source = tiny_text(frame);
  const bool wraps = text_width(frame, name, figure.name) > columns.name;
  const float more = wraps ? frame.px(kSecondLine) : 0, space = frame.px(kColumnGap);
  const float height = frame.px(columns.is_narrow ? kNarrowRow : kRow) + more;
  ImGui::PushID(number);
  ImGui::InvisibleButton("figure", {width, height}, ImGuiButtonFlags_EnableNav);
  ImGui::PopID();
  if (!ImGui::IsItemVisible()) return;
  ImDrawList* const list = ImGui::GetWindowDrawList();
  const bool is_pointed = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  const ImU32 ground = is_pointed ? frame.theme.raised : frame.theme.panel;
  const ImVec2 high{at.x + width, at.y + height - 1};
  if (is_pointed) list->AddRectFilled(at, high, ground, frame.px(4));
  list->AddLineH(at.x, high.x, high.y, frame.theme.line);
  tooltip(frame, row_help(figure));
  name.colour = value.colour = frame.theme.text;
  verdict.colour = verdict_colour(frame, figure.verdict, ground);
  const float top = at.y + frame.px(4);
  draw_lines(frame, list, {at.x, top}, name, figure.name, columns.name, 2);
  float x = columns.is_narrow ? at.x : at.x + columns.name + space;
  const float y = columns.is_narrow ? at.y + frame.px(25) + more : top;
  draw_right(frame, {x, y}, value, with_unit(figure.ours, figure.unit), columns.ours);
  x += columns.ours + space;
  draw_right(frame, {x, y}, small_text(frame), figure.paper, columns.paper);
  x += columns.paper + space;
  draw_text(frame, list, {x, y}, verdict, figure.verdict_word, columns.verdict);
  x += columns.verdict + space;
  if (columns.source > 0) draw_text(frame, list, {x, y + frame.px(1)}, source, figure.source, columns.source);
}

}  // namespace

void draw_experiment_table(const Frame& frame, const ExperimentFindings& findings, float width) {
  const Columns columns = columns_of(frame, findings, width);
  draw_head(frame, columns);
  for (std::size_t i = 0; i < findings.figures.size(); ++i)
    draw_row(frame, findings.figures[i], static_cast<int>(i), columns, width);
}

}  // namespace octavo::ui
