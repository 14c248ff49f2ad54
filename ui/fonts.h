// The fonts of the window. Inter for text, JetBrains Mono for figures and code; Chinese, Japanese and Korean,
// symbols and emoji (in colour) from whatever well-known fonts the system or the user has. Characters are
// drawn one by one in logical order: no right-to-left order, no joining of Arabic or Indic letters, no joined
// emoji.
//
// Sizes are typographic (the em), as in the design: Dear ImGui's own sizes are ascent plus descent, which
// differs per family, so `face` converts.
#pragma once

#include <imgui.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::ui {

enum class FontFace { kRegular, kSemiBold, kItalic, kMono, kSemiBoldItalic };

// A font at a size on screen, as drawing and measuring take it.
struct Face {
  ImFont* font = nullptr;
  float size = 0;  // ascent plus descent, pixels on screen

  float width(std::string_view text) const {
    return font->CalcTextSizeA(size, FLT_MAX, 0.0f, text.data(), text.data() + text.size()).x;
  }
};

// UI thread; lives as long as the Dear ImGui context whose atlas holds the fonts.
class Fonts {
 public:
  // Where fonts are looked for, in order: the user's folders, then the system's.
  static std::vector<std::string> system_folders();

  // Adds every font to the current context's atlas. A family that is not installed is replaced by Dear
  // ImGui's built-in font; what is missing stands in `missing()`, one sentence each.
  static Fonts load(const std::vector<std::string>& folders = system_folders());

  // `em_pixels` on screen.
  Face face(FontFace face, float em_pixels) const;
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  struct Entry {
    ImFont* font = nullptr;
    float height_per_em = 1.0f;  // (ascent + descent) / em
  };

  std::array<Entry, 5> entries_;
  std::vector<std::string> missing_;
};

}  // namespace octavo::ui
