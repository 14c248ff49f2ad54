#include "ui/fonts.h"

#include <imgui_freetype.h>

#include <cmath>
#include <filesystem>
#include <span>
#include <system_error>

namespace octavo::ui {
namespace {

struct Candidate {
  const char* path;
  float height_per_em;  // (ascender - descender) / units per em, from the file's hhea table
};

constexpr float kInterHeight = 1.210227f;
constexpr float kJetBrainsMonoHeight = 1.32f;
constexpr float kDejaVuHeight = 1.164062f;

constexpr Candidate kRegular[] = {
    {"/usr/share/fonts/opentype/inter/Inter-Regular.otf", kInterHeight},
    {"/usr/share/fonts/truetype/inter/Inter-Regular.ttf", kInterHeight},
    {"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", kDejaVuHeight},
};
constexpr Candidate kSemiBold[] = {
    {"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf", kInterHeight},
    {"/usr/share/fonts/truetype/inter/Inter-SemiBold.ttf", kInterHeight},
    {"/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf", kDejaVuHeight},
};
constexpr Candidate kItalic[] = {
    {"/usr/share/fonts/opentype/inter/Inter-Italic.otf", kInterHeight},
    {"/usr/share/fonts/truetype/inter/Inter-Italic.ttf", kInterHeight},
    {"/usr/share/fonts/truetype/dejavu/DejaVuSans-Oblique.ttf", kDejaVuHeight},
};
constexpr Candidate kMono[] = {
    {"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-Regular.ttf", kJetBrainsMonoHeight},
    {"/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf", kDejaVuHeight},
};

// Merged behind every face, first hit wins per glyph.
constexpr const char* kFallbacks[] = {
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/truetype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansSymbols2-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansMath-Regular.ttf",
    "/usr/share/fonts/truetype/ancient-scripts/Symbola_hint.ttf",
};
constexpr const char* kEmoji[] = {
    "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf",
    "/usr/share/fonts/noto/NotoColorEmoji.ttf",
};

bool is_file(const char* path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

void merge(const char* path, unsigned int loader_flags) {
  ImFontConfig config;
  config.MergeMode = true;
  config.FontLoaderFlags = loader_flags;
  ImGui::GetIO().Fonts->AddFontFromFileTTF(path, 0.0f, &config);
}

void merge_fallbacks() {
  for (const char* path : kFallbacks) {
    if (is_file(path)) merge(path, 0);
  }
  for (const char* path : kEmoji) {
    if (!is_file(path)) continue;
    merge(path, ImGuiFreeTypeLoaderFlags_LoadColor | ImGuiFreeTypeLoaderFlags_Bitmap);
    break;
  }
}

// Light hinting snaps to rows only: even text at 15 px without distorting widths.
ImFontConfig text_config() {
  ImFontConfig config;
  config.FontLoaderFlags = ImGuiFreeTypeLoaderFlags_LightHinting;
  return config;
}

const Candidate* first_installed(std::span<const Candidate> candidates) {
  for (const Candidate& candidate : candidates) {
    if (is_file(candidate.path)) return &candidate;
  }
  return nullptr;
}

}  // namespace

Fonts Fonts::load() {
  Fonts fonts;
  ImFontAtlas* atlas = ImGui::GetIO().Fonts;
  const std::span<const Candidate> faces[] = {kRegular, kSemiBold, kItalic, kMono};
  for (std::size_t i = 0; i < fonts.entries_.size(); ++i) {
    const Candidate* candidate = first_installed(faces[i]);
    if (candidate == nullptr) {
      fonts.entries_[i] = {atlas->AddFontDefault(), 1.0f};
      fonts.missing_.push_back(std::string("no font file at ") + faces[i].front().path +
                               ": install fonts-inter and fonts-jetbrains-mono");
      continue;
    }
    const ImFontConfig config = text_config();
    fonts.entries_[i] = {atlas->AddFontFromFileTTF(candidate->path, 0.0f, &config), candidate->height_per_em};
    merge_fallbacks();
  }
  return fonts;
}

Face Fonts::face(FontFace face, float em_pixels) const {
  const Entry& entry = entries_[static_cast<std::size_t>(face)];
  return {entry.font, std::round(em_pixels * entry.height_per_em)};
}

}  // namespace octavo::ui
