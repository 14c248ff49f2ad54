#include "tests/ui/drawn_text.h"

#include <GLFW/glfw3.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace octavo::testing {
namespace {

constexpr float kReadableContrast = 4.5f;
constexpr unsigned kEllipsis = 0x2026;
constexpr int kSeen = 3;  // levels of a channel by which a glyph changes some pixel of what is behind it

struct Glyph {
  unsigned codepoint = 0;
  ImVec2 min, max;
  ImVec4 clip;
  ImU32 colour = 0;
  const ImDrawVert* vertices = nullptr;  // four
  bool coloured = false;                 // an emoji: its own colours
  bool is_scrolled = false;              // to the right: what is left of it was there to be read
};

// Which character stands in which texel of the atlas.
class AtlasText {
 public:
  AtlasText() {
    const ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
    width_ = atlas.TexData->Width;
    height_ = atlas.TexData->Height;
    texels_.assign(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), 0);
    auto& pool = atlas.Builder->BakedPool;
    for (int i = 0; i < pool.Size; ++i) {
      if (pool[i].WantDestroy) continue;
      for (const ImFontGlyph& glyph : pool[i].Glyphs) {
        if (glyph.Visible) add(glyph);
      }
    }
  }

  // 0: no character.
  unsigned codepoint_at(ImVec2 uv) const {
    const int x = texel(uv.x, width_), y = texel(uv.y, height_);
    return texels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                   static_cast<std::size_t>(x)] &
           ~kColoured;
  }
  bool is_coloured(ImVec2 uv) const {
    const int x = texel(uv.x, width_), y = texel(uv.y, height_);
    return (texels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                    static_cast<std::size_t>(x)] &
            kColoured) != 0;
  }

 private:
  static constexpr unsigned kColoured = 1u << 31;

  static int texel(float coordinate, int extent) {
    return std::clamp(static_cast<int>(coordinate * static_cast<float>(extent)), 0, extent - 1);
  }

  void add(const ImFontGlyph& glyph) {
    const unsigned value = glyph.Codepoint | (glyph.Colored ? kColoured : 0u);
    for (int y = texel(glyph.V0, height_); y <= texel(glyph.V1 - 1e-6f, height_); ++y) {
      for (int x = texel(glyph.U0, width_); x <= texel(glyph.U1 - 1e-6f, width_); ++x)
        texels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                static_cast<std::size_t>(x)] = value;
    }
  }

  int width_ = 0, height_ = 0;
  std::vector<unsigned> texels_;
};

ImGuiWindow* window_of(const ImDrawList* list) {
  for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (window->DrawList == list) return window;
  }
  return nullptr;
}

// Of the dialog on top, if there is one, and everything that it opened.
bool counts(ImGuiWindow* window) {
  ImGuiWindow* const dialog = ImGui::GetTopMostPopupModal();
  return dialog == nullptr || (window != nullptr && ImGui::IsWindowWithinBeginStackOf(window, dialog));
}

// By a popup or a tooltip in front of it. The pixels alone do not tell: they may change with its words.
bool is_covered(const ImGuiWindow* window, ImVec2 point) {
  bool in_front = false;
  for (const ImGuiWindow* other : ImGui::GetCurrentContext()->Windows) {
    if (window == nullptr) return false;
    if (other == window->RootWindow) in_front = true;
    if (!in_front || !other->WasActive || other->Hidden || window->RootWindow == other->RootWindow) continue;
    if ((other->Flags & (ImGuiWindowFlags_Popup | ImGuiWindowFlags_Tooltip)) != 0 &&
        other->Rect().Contains(point))
      return true;
  }
  return false;
}

bool is_in_tooltip(ImGuiWindow* window) {
  return window != nullptr && (window->RootWindow->Flags & ImGuiWindowFlags_Tooltip) != 0;
}

std::vector<Glyph> glyphs_of_frame(bool (*wanted)(ImGuiWindow*) = counts) {
  const AtlasText atlas;
  std::vector<Glyph> glyphs;
  for (const ImDrawList* list : ImGui::GetDrawData()->CmdLists) {
    ImGuiWindow* const window = window_of(list);
    if (!wanted(window)) continue;
    const bool is_scrolled = window != nullptr && window->Scroll.x > 0;
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (command.UserCallback != nullptr) continue;
      if (command.TexRef._TexData != ImGui::GetIO().Fonts->TexData) continue;
      for (unsigned i = 0; i + 6 <= command.ElemCount; i += 3) {
        const ImDrawIdx* const index = list->IdxBuffer.Data + command.IdxOffset + i;
        const bool is_quad = index[3] == index[0] && index[4] == index[2] && index[1] == index[0] + 1 &&
                             index[2] == index[0] + 2 && index[5] == index[0] + 3;
        if (!is_quad) continue;
        const ImDrawVert* const corners = list->VtxBuffer.Data + command.VtxOffset + index[0];
        const ImVec2 middle((corners[0].uv.x + corners[2].uv.x) / 2, (corners[0].uv.y + corners[2].uv.y) / 2);
        const unsigned codepoint = atlas.codepoint_at(middle);
        if (codepoint == 0 || corners[0].uv.x == corners[2].uv.x) continue;
        const ImVec2 centre((corners[0].pos.x + corners[2].pos.x) / 2,
                            (corners[0].pos.y + corners[2].pos.y) / 2);
        if (!is_in_tooltip(window) && is_covered(window, centre)) {  // a tooltip is in front of everything
          i += 3;
          continue;
        }
        glyphs.push_back({codepoint, corners[0].pos, corners[2].pos, command.ClipRect, corners[0].col,
                          corners, atlas.is_coloured(middle), is_scrolled});
        i += 3;  // its second triangle
      }
    }
  }
  return glyphs;
}

float linear(int level) {
  const float value = static_cast<float>(level) / 255.0f;
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

struct Colour {
  float red = 0, green = 0, blue = 0;  // 0..255
  float luminance() const {
    const auto of = [](float level) { return linear(static_cast<int>(std::lround(level))); };
    return 0.2126f * of(red) + 0.7152f * of(green) + 0.0722f * of(blue);
  }
};

float contrast_of(const Colour& a, const Colour& b) {
  const float one = a.luminance() + 0.05f, other = b.luminance() + 0.05f;
  return std::max(one, other) / std::min(one, other);
}

struct Pixels {
  int x0, y0, x1, y1;
  bool empty() const { return x0 >= x1 || y0 >= y1; }
};

Pixels seen_pixels(const Glyph& glyph, const app::Picture& picture) {
  const auto within = [](float value, int most) {
    return std::clamp(static_cast<int>(std::floor(value)), 0, most);
  };
  return {within(std::max(glyph.min.x, glyph.clip.x), picture.width),
          within(std::max(glyph.min.y, glyph.clip.y), picture.height),
          within(std::ceil(std::min(glyph.max.x, glyph.clip.z)), picture.width),
          within(std::ceil(std::min(glyph.max.y, glyph.clip.w)), picture.height)};
}

const std::uint8_t* pixel(const app::Picture& picture, int x, int y) {
  return picture.pixels.data() + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) +
                                      static_cast<std::size_t>(x));
}

// Whether it changed anything: what another window covers did not.
bool is_seen(const Pixels& area, const app::Picture& with, const app::Picture& without) {
  for (int y = area.y0; y < area.y1; ++y) {
    for (int x = area.x0; x < area.x1; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        if (std::abs(pixel(with, x, y)[channel] - pixel(without, x, y)[channel]) >= kSeen) return true;
      }
    }
  }
  return false;
}

// The median: a thin line through or beside a word is not what it stands on.
Colour ground_of(const Pixels& area, const app::Picture& picture) {
  std::array<std::vector<std::uint8_t>, 3> levels;
  for (int y = area.y0; y < area.y1; ++y) {
    for (int x = area.x0; x < area.x1; ++x) {
      for (std::size_t channel = 0; channel < 3; ++channel)
        levels[channel].push_back(pixel(picture, x, y)[channel]);
    }
  }
  const auto median = [](std::vector<std::uint8_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return static_cast<float>(*middle);
  };
  return {median(levels[0]), median(levels[1]), median(levels[2])};
}

Colour over(ImU32 colour, const Colour& behind) {
  const auto channel = [colour](int shift) { return static_cast<float>((colour >> shift) & 255u); };
  const float alpha = channel(IM_COL32_A_SHIFT) / 255.0f;
  const auto blend = [alpha](float front, float back) { return alpha * front + (1 - alpha) * back; };
  return {blend(channel(IM_COL32_R_SHIFT), behind.red), blend(channel(IM_COL32_G_SHIFT), behind.green),
          blend(channel(IM_COL32_B_SHIFT), behind.blue)};
}

// The same frame without its text.
app::Picture picture_without(const std::vector<Glyph>& glyphs, const app::Window& window) {
  std::vector<ImU32> colours;
  for (const Glyph& glyph : glyphs) {
    for (int corner = 0; corner < 4; ++corner) {
      auto& vertex = const_cast<ImDrawVert&>(glyph.vertices[corner]);
      colours.push_back(vertex.col);
      vertex.col = vertex.col & ~IM_COL32_A_MASK;
    }
  }
  app::Picture picture = picture_of_frame(window);
  auto colour = colours.begin();
  for (const Glyph& glyph : glyphs) {
    for (int corner = 0; corner < 4; ++corner)
      const_cast<ImDrawVert&>(glyph.vertices[corner]).col = *colour++;
  }
  return picture;
}

bool follows(const Glyph& glyph, const Glyph& before) {
  const float height = before.max.y - before.min.y + 8;
  return glyph.colour == before.colour && std::abs(glyph.max.y - before.max.y) < height &&
         glyph.min.x >= before.min.x && glyph.min.x - before.max.x < height &&
         glyph.clip.x == before.clip.x && glyph.clip.z == before.clip.z;
}

// Of two neighbours the taller one tells how large the font is: "t" alone would make a space of Inter too
// narrow.
bool is_space_between(const Glyph& before, const Glyph& glyph) {
  const float height = std::max(before.max.y - before.min.y, glyph.max.y - glyph.min.y);
  return glyph.min.x - before.max.x > height / 4;
}

void append_utf8(std::string& text, unsigned codepoint) {
  char bytes[5];
  ImTextCharToUtf8(bytes, codepoint);
  text += bytes;
}

std::string lines_of(const std::set<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

// Of a row that is scrolled half out of sight, of the half that is there to be pointed at.
ImVec2 seen_centre(const Glyph& glyph) {
  return {(std::max(glyph.min.x, glyph.clip.x) + std::min(glyph.max.x, glyph.clip.z)) / 2,
          (std::max(glyph.min.y, glyph.clip.y) + std::min(glyph.max.y, glyph.clip.w)) / 2};
}

}  // namespace

app::Picture picture_of_frame(const app::Window& window) {
  glfwSwapBuffers(glfwGetCurrentContext());  // then what is drawn to has the window's new size
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  return window.read_pixels();
}

std::vector<DrawnText> drawn_texts(const app::Window& window) {
  const std::vector<Glyph> glyphs = glyphs_of_frame();
  const app::Picture with = picture_of_frame(window), without = picture_without(glyphs, window);
  std::vector<DrawnText> texts;
  const Glyph* before = nullptr;
  for (const Glyph& glyph : glyphs) {
    const Pixels area = seen_pixels(glyph, with);
    if (area.empty() || !is_seen(area, with, without)) {
      before = nullptr;
      continue;
    }
    if (before == nullptr || !follows(glyph, *before)) {
      texts.push_back({.min = glyph.min, .max = glyph.max, .colour = glyph.colour, .contrast = 21});
    } else if (is_space_between(*before, glyph)) {
      texts.back().text += ' ';
    }
    DrawnText& text = texts.back();
    if (glyph.codepoint == kEllipsis) text.ellipses.push_back({text.text.size(), seen_centre(glyph)});
    append_utf8(text.text, glyph.codepoint);
    text.min = {std::min(text.min.x, glyph.min.x), std::min(text.min.y, glyph.min.y)};
    text.max = {std::max(text.max.x, glyph.max.x), std::max(text.max.y, glyph.max.y)};
    text.cut_left |= glyph.min.x < glyph.clip.x - 1 && !glyph.is_scrolled;
    text.cut_right |= glyph.max.x > glyph.clip.z + 1;
    if (!glyph.coloured) {
      const Colour behind = ground_of(area, without);
      text.contrast = std::min(text.contrast, contrast_of(over(glyph.colour, behind), behind));
    }
    before = &glyph;
  }
  return texts;
}

namespace {

std::string words_of(const std::vector<Glyph>& glyphs) {
  std::string words;
  const Glyph* before = nullptr;
  for (const Glyph& glyph : glyphs) {
    if (before != nullptr && !follows(glyph, *before)) {
      words += '\n';
    } else if (before != nullptr && is_space_between(*before, glyph)) {
      words += ' ';
    }
    append_utf8(words, glyph.codepoint);
    before = &glyph;
  }
  return words;
}

}  // namespace

std::string drawn_words() { return words_of(glyphs_of_frame()); }

bool is_said(std::string words) {
  std::string drawn = drawn_words();
  std::erase(words, ' ');
  std::erase(drawn, ' ');
  return drawn.find(words) != std::string::npos;
}

std::string hard_to_read(const std::vector<DrawnText>& texts) {
  std::set<std::string> lines;
  for (const DrawnText& text : texts) {
    if (text.contrast >= kReadableContrast) continue;
    char where[64];
    std::snprintf(where, sizeof where, ": %.2f, colour %08x at %.0f, %.0f\n",
                  static_cast<double>(text.contrast), text.colour, static_cast<double>(text.min.x),
                  static_cast<double>(text.min.y));
    lines.insert(text.text + where);
  }
  return lines_of(lines);
}

std::string cut_off(const std::vector<DrawnText>& texts) {
  std::set<std::string> lines;
  for (const DrawnText& text : texts) {
    if (!text.cut_left && !text.cut_right) continue;
    char where[64];
    std::snprintf(where, sizeof where, " [%.0f,%.0f]\n", static_cast<double>(text.min.x),
                  static_cast<double>(text.min.y));
    lines.insert(text.text + where);
  }
  return lines_of(lines);
}

namespace {

// Labels of what asks for more, of what is under way, and ranges: their ellipsis leaves nothing out.
constexpr const char* kOwnEllipses[] = {"Remote…",
                                        "Read a file…",
                                        "Get models…",
                                        "More models…",
                                        "looking into it…",
                                        "Asking the hub…",
                                        "Server for other programs…",
                                        "Choose a model file…",
                                        "Try a tiny pool…",
                                        "This chapter as a lesson…",
                                        "Choose a model…",
                                        "Searching…",
                                        "Two models…",
                                        "New folder…",
                                        "A better model…",
                                        "Change…",
                                        "Reading file…",
                                        "Reading both files…",
                                        "Choose a second model…",
                                        "Loading chat…",
                                        "Open file…",
                                        "“Open file…",
                                        "Looking for models…",
                                        "as Markdown…",
                                        "as JSON…",
                                        "as CSV…",
                                        "as PNG…",
                                        "as SVG…",
                                        "all chats…",
                                        "Import chats…",
                                        "Open a recording…",
                                        "Thinking…"};

// And without capitals: a tooltip may begin with one.
std::string without_spaces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' && c != '\n') result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

bool ends_with_own_ellipsis(const std::string& letters) {
  return std::ranges::any_of(kOwnEllipses,
                             [&](const char* label) { return letters.ends_with(without_spaces(label)); });
}

// "blocks 3 … 17"
bool is_range(std::string_view before, std::string_view after) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !before.empty() && !after.empty() && is_digit(before.back()) && is_digit(after.front());
}

// Nothing but an open menu can be pointed at.
bool is_below_popup(ImVec2 point) {
  const auto& open = ImGui::GetCurrentContext()->OpenPopupStack;
  return !open.empty() && open.back().Window != nullptr && !open.back().Window->Rect().Contains(point);
}

// The letters before the ellipsis by which a text is known: few, because neighbours may stand before them.
std::string_view last_letters(std::string_view letters) {
  constexpr std::size_t kEnough = 6;
  if (letters.size() > kEnough) letters.remove_prefix(letters.size() - kEnough);
  while (!letters.empty() && (static_cast<unsigned char>(letters.front()) & 0xc0) == 0x80)
    letters.remove_prefix(1);
  return letters;
}

}  // namespace

std::vector<std::string> unexplained_ellipses(const std::vector<DrawnText>& texts,
                                              const std::function<void(ImVec2)>& rest_pointer_on) {
  constexpr std::size_t kEllipsisBytes = 3;
  ImGuiStyle& style = ImGui::GetStyle();
  const float stationary = std::exchange(style.HoverStationaryDelay, 0.0f);
  const float short_delay = std::exchange(style.HoverDelayShort, 0.0f);
  std::vector<std::string> lines;
  for (const DrawnText& text : texts) {
    if (text.text.starts_with("…")) continue;  // from the middle of a message: it is opened, not shown beside
    for (const DrawnText::Ellipsis& ellipsis : text.ellipses) {
      const std::string before = without_spaces(std::string_view(text.text).substr(0, ellipsis.at));
      const std::string after =
          without_spaces(std::string_view(text.text).substr(ellipsis.at + kEllipsisBytes));
      if (ends_with_own_ellipsis(before + "…") || is_range(before, after)) continue;
      if (is_below_popup(ellipsis.centre)) continue;
      const std::string_view known = before.empty() ? std::string_view(after) : last_letters(before);
      const auto is_explained = [&] {
        rest_pointer_on(ellipsis.centre);
        const std::string shown = without_spaces(words_of(glyphs_of_frame(is_in_tooltip)));
        const std::size_t at = known.empty() ? 0 : shown.find(known);
        return at != std::string::npos && shown.size() > at + known.size();
      };
      // The display reports the pointer's place late now and then, after it was set.
      if (is_explained() || (rest_pointer_on({1, 1}), is_explained())) continue;
      char where[64];
      std::snprintf(where, sizeof where, " [%.0f,%.0f]", static_cast<double>(ellipsis.centre.x),
                    static_cast<double>(ellipsis.centre.y));
      lines.push_back("not shown as a whole: " + text.text + where);
    }
  }
  style.HoverStationaryDelay = stationary;
  style.HoverDelayShort = short_delay;
  return lines;
}

}  // namespace octavo::testing
