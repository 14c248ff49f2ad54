#include "ui/widgets/parts_layout.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/text_search.h"

namespace octavo::ui {
namespace {

constexpr float kThoughtLine = 28;  // the height of the line over thinking
constexpr float kBetween = 10;
constexpr float kThoughtIndent = 18;
constexpr float kBarX = 6;
constexpr float kLinePadding = 16;  // so that the arrow stands over the bar

std::string_view text_of(std::string_view text, const MessagePart& part) {
  return text.substr(part.begin, part.end - part.begin);
}

std::string thought_label(const MessagePart& part, bool streaming) {
  const bool runs = part.open && streaming;
  std::string label = runs ? "Thinking…" : "Thought";
  if (part.duration_ms) label += (runs ? " " : " for ") + duration_text(*part.duration_ms);
  if (part.open && !runs) label += ", not finished";
  return label;
}

// What of a range lies in a part, in bytes of the part.
TextRange within(TextRange range, const MessagePart& part) {
  const std::uint32_t begin = std::clamp(range.begin, part.begin, part.end);
  const std::uint32_t end = std::clamp(range.end, part.begin, part.end);
  return {begin - part.begin, end - part.begin};
}

std::vector<TextRange> within(std::span<const TextRange> ranges, const MessagePart& part) {
  std::vector<TextRange> result;
  for (const TextRange range : ranges) {
    if (const TextRange here = within(range, part); !here.empty()) result.push_back(here);
  }
  return result;
}

template <class Text>
std::string said(const MessageState& message, const Text& text) {
  std::string result;
  for (const MessagePart& part : parts_of(message)) {
    if (part.thinking) continue;
    if (!result.empty()) result += "\n\n";
    result += text(text_of(message.text, part));
  }
  return result;
}

}  // namespace

std::vector<MessagePart> parts_of(const MessageState& message) {
  if (message.parts.empty()) return {{.begin = 0, .end = static_cast<std::uint32_t>(message.text.size())}};
  std::vector<MessagePart> parts;
  for (const MessagePart& part : message.parts) {
    if (part.begin < part.end || part.open) parts.push_back(part);
  }
  return parts;
}

std::string said_text(const MessageState& message) {
  return said(message, [](std::string_view text) { return text; });
}

std::string said_plain_text(const MessageState& message) {
  return said(message, [&](std::string_view text) {
    return plain_text(text, format_of(message), {0, static_cast<std::uint32_t>(text.size())});
  });
}

// A part that is not the old one with more behind it is laid out anew.
void PartsLayout::adopt(Segment& segment, const MessagePart& part) const {
  if (segment.part.begin != part.begin || segment.part.end > part.end ||
      segment.part.thinking != part.thinking)
    segment.layout.clear();
  segment.part = part;
}

void PartsLayout::update(const Frame& frame, const MessageState& message, float width) {
  const std::vector<MessagePart> parts = parts_of(message);
  streaming_ = message.streaming;
  segments_.resize(parts.size());
  height_ = 0;
  end_.reset();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Segment& segment = segments_[i];
    adopt(segment, parts[i]);
    segment.top = height_ + (i > 0 ? frame.px(kBetween) : 0.0f);
    segment.text = {0, segment.top};
    if (segment.part.thinking)
      segment.text = {frame.px(kThoughtIndent), segment.top + frame.px(kThoughtLine)};
    segment.bottom = segment.text.y;
    if (segment.shown()) {
      segment.layout.update(frame, text_of(message.text, segment.part), format_of(message),
                            width - segment.text.x);
      segment.bottom += segment.layout.height();
      const ImVec2 end = segment.layout.end_position();
      end_ = ImVec2{end.x + segment.text.x, end.y + segment.text.y};
    } else {
      end_.reset();
    }
    height_ = segment.bottom;
  }
}

float PartsLayout::width() const {
  float widest = 0;
  for (const Segment& segment : segments_) {
    if (segment.shown()) widest = std::max(widest, segment.text.x + segment.layout.width());
  }
  return widest;
}

MissingGlyphs PartsLayout::missing_glyphs() const {
  MissingGlyphs missing;
  for (const Segment& segment : segments_) {
    if (!segment.shown()) continue;
    const MissingGlyphs& here = segment.layout.missing_glyphs();
    missing.ideographic |= here.ideographic;
    missing.emoji |= here.emoji;
    missing.other |= here.other;
  }
  return missing;
}

// True when it was pressed.
bool PartsLayout::draw_thought_line(const Frame& frame, const Segment& segment, ImVec2 top_left) const {
  ImGui::SetCursorScreenPos({top_left.x - frame.px(kLinePadding), top_left.y + segment.top});
  const ButtonOptions options{.kind = ButtonKind::kPlain,
                              .icon = segment.unfolded ? Icon::kChevronDown : Icon::kChevronRight,
                              .height = 26,
                              .align_left = true,
                              .help = segment.unfolded ? "Fold what the model thought"
                                                       : "Show what the model thought (Ctrl+Shift+T)"};
  return button(frame, "thought", thought_label(segment.part, streaming_), options);
}

std::optional<std::string> PartsLayout::draw(const Frame& frame, std::string_view text, ImVec2 top_left,
                                             float clip_top, float clip_bottom, ImU32 colour,
                                             const TextMarks& marks) {
  std::optional<std::string> copied;
  for (Segment& segment : segments_) {
    const float top = top_left.y + segment.top, bottom = top_left.y + segment.bottom;
    if (bottom < clip_top || top > clip_bottom) continue;
    ImGui::PushID(static_cast<int>(segment.part.begin));
    const bool shown = segment.shown();
    if (segment.part.thinking && draw_thought_line(frame, segment, top_left))
      segment.unfolded = !segment.unfolded;
    if (shown) {
      const ImVec2 at{top_left.x + segment.text.x, top_left.y + segment.text.y};
      if (segment.part.thinking)
        ImGui::GetWindowDrawList()->AddLineV(top_left.x + frame.px(kBarX), std::max(at.y, clip_top),
                                             std::min(bottom, clip_bottom), frame.theme.line, frame.px(2));
      const std::vector<TextRange> matches = within(marks.matches, segment.part);
      const std::vector<TextRange> highlights = within(marks.highlights, segment.part);
      const TextMarks here{.selection = within(marks.selection, segment.part),
                           .matches = matches,
                           .current_match = within(marks.current_match, segment.part),
                           .highlights = highlights,
                           .highlight_colour = marks.highlight_colour};
      auto code = segment.layout.draw(frame, text_of(text, segment.part), at, clip_top, clip_bottom,
                                      segment.part.thinking ? frame.theme.muted : colour, here);
      if (code) copied = std::move(code);
    }
    ImGui::PopID();
  }
  return copied;
}

void PartsLayout::unfold_at(std::uint32_t offset) {
  for (Segment& segment : segments_) {
    if (segment.part.thinking && segment.part.begin <= offset && offset < segment.part.end)
      segment.unfolded = true;
  }
}

bool PartsLayout::toggle_thinking() {
  const auto thinks = [](const Segment& segment) { return segment.part.thinking; };
  const bool all_open =
      std::all_of(segments_.begin(), segments_.end(), [](const Segment& segment) { return segment.shown(); });
  for (Segment& segment : segments_) segment.unfolded = !all_open;
  return std::any_of(segments_.begin(), segments_.end(), thinks);
}

std::vector<TextRange> PartsLayout::shown_ranges() const {
  std::vector<TextRange> ranges;
  for (const Segment& segment : segments_) {
    if (segment.shown()) ranges.push_back({segment.part.begin, segment.part.end});
  }
  return ranges;
}

// ---- places in the text

// nullptr only where there is none at all.
const PartsLayout::Segment* PartsLayout::segment_at(float y) const {
  const Segment* found = segments_.empty() ? nullptr : &segments_.front();
  for (const Segment& segment : segments_) {
    if (segment.top <= y) found = &segment;
  }
  return found;
}

const PartsLayout::Segment* PartsLayout::segment_of(std::uint32_t offset) const {
  const Segment* found = segments_.empty() ? nullptr : &segments_.front();
  for (const Segment& segment : segments_) {
    if (segment.part.begin <= offset) found = &segment;
  }
  return found;
}

std::uint32_t PartsLayout::offset_at(const Frame& frame, std::string_view text, ImVec2 position) const {
  const Segment* segment = segment_at(position.y);
  if (segment == nullptr) return 0;
  if (!segment->shown()) return segment->part.begin;
  const ImVec2 local{position.x - segment->text.x, position.y - segment->text.y};
  return segment->part.begin + segment->layout.offset_at(frame, text_of(text, segment->part), local);
}

std::string_view PartsLayout::link_at(ImVec2 position) const {
  const Segment* segment = segment_at(position.y);
  if (segment == nullptr || !segment->shown()) return {};
  return segment->layout.link_at({position.x - segment->text.x, position.y - segment->text.y});
}

bool PartsLayout::is_over_text(ImVec2 position) const {
  const Segment* segment = segment_at(position.y);
  if (segment == nullptr || !segment->shown()) return false;
  return segment->layout.is_over_text({position.x - segment->text.x, position.y - segment->text.y});
}

ImVec2 PartsLayout::position_of(const Frame& frame, std::string_view text, std::uint32_t offset) const {
  const Segment* segment = segment_of(offset);
  if (segment == nullptr) return {};
  if (!segment->shown()) return {0, segment->top};
  const std::uint32_t local = within({offset, offset}, segment->part).begin;
  const ImVec2 at = segment->layout.position_of(frame, text_of(text, segment->part), local);
  return {at.x + segment->text.x, at.y + segment->text.y};
}

TextRange PartsLayout::word_at(std::string_view text, std::uint32_t offset) const {
  const Segment* segment = segment_of(offset);
  if (segment == nullptr || !segment->shown()) return {offset, offset};
  const std::uint32_t begin = segment->part.begin, local = within({offset, offset}, segment->part).begin;
  const TextRange word = segment->layout.word_at(text_of(text, segment->part), local);
  return {begin + word.begin, begin + word.end};
}

TextRange PartsLayout::paragraph_at(std::string_view text, std::uint32_t offset) const {
  const Segment* segment = segment_of(offset);
  if (segment == nullptr || !segment->shown()) return {offset, offset};
  const std::uint32_t begin = segment->part.begin, local = within({offset, offset}, segment->part).begin;
  const TextRange paragraph = segment->layout.paragraph_at(text_of(text, segment->part), local);
  return {begin + paragraph.begin, begin + paragraph.end};
}

}  // namespace octavo::ui
