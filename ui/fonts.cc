#include "ui/fonts.h"

#include <imgui_freetype.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>

#include "engine/base/home_folder.h"

namespace octavo::ui {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  const char* file;
  float height_per_em;  // (ascender - descender) / units per em, from the file's hhea table
};

constexpr float kInterHeight = 1.210227f;
constexpr float kJetBrainsMonoHeight = 1.32f;
constexpr float kDejaVuHeight = 1.164062f;

constexpr Candidate kRegular[] = {{"Inter-Regular.otf", kInterHeight},
                                  {"Inter-Regular.ttf", kInterHeight},
                                  {"DejaVuSans.ttf", kDejaVuHeight}};
constexpr Candidate kSemiBold[] = {{"Inter-SemiBold.otf", kInterHeight},
                                   {"Inter-SemiBold.ttf", kInterHeight},
                                   {"DejaVuSans-Bold.ttf", kDejaVuHeight}};
constexpr Candidate kItalic[] = {{"Inter-Italic.otf", kInterHeight},
                                 {"Inter-Italic.ttf", kInterHeight},
                                 {"DejaVuSans-Oblique.ttf", kDejaVuHeight}};
constexpr Candidate kMono[] = {{"JetBrainsMono-Regular.ttf", kJetBrainsMonoHeight},
                               {"DejaVuSansMono.ttf", kDejaVuHeight}};
constexpr Candidate kSemiBoldItalic[] = {{"Inter-SemiBoldItalic.otf", kInterHeight},
                                         {"Inter-SemiBoldItalic.ttf", kInterHeight},
                                         {"DejaVuSans-BoldOblique.ttf", kDejaVuHeight}};

// Merged behind every face, one of each row: the first that is installed. The first font with a glyph wins.
using Alternatives = std::array<const char*, 9>;
constexpr Alternatives kFallbacks[] = {
    {"DejaVuSans.ttf"},
    {"NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "NotoSansSC-Regular.otf",
     "SourceHanSans-Regular.ttc", "wqy-microhei.ttc", "wqy-zenhei.ttc", "DroidSansFallbackFull.ttf",
     "DroidSansFallback.ttf", "uming.ttc"},
    {"NotoSansArabic-Regular.ttf", "DroidSansArabic.ttf"},
    {"NotoSansHebrew-Regular.ttf"},
    {"NotoSansDevanagari-Regular.ttf", "lohit-devanagari.ttf"},
    {"NotoSansThai-Regular.ttf", "Garuda.ttf", "Loma.ttf"},
    {"NotoSansSymbols2-Regular.ttf", "NotoSansSymbols-Regular.ttf"},
    {"NotoSansMath-Regular.ttf"},
    {"Symbola_hint.ttf", "Symbola.ttf", "unifont.ttf", "unifont.otf"},
};
constexpr Alternatives kEmoji = {"NotoColorEmoji.ttf", "Twemoji.ttf", "TwitterColorEmoji-SVGinOT.ttf",
                                 "TwemojiMozilla.ttf", "JoyPixels.ttf"};

// The files of the font folders by name. Found by looking, as fontconfig does: distributions differ in the
// folders, hardly in the names.
class FontFiles {
 public:
  explicit FontFiles(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders) add_folder(folder);
  }

  // Empty when it is not installed.
  std::string find(const char* file) const {
    const auto found = paths_.find(file);
    return found == paths_.end() ? std::string() : found->second;
  }

  std::string find_first(const Alternatives& files) const {
    for (const char* file : files) {
      if (file == nullptr) break;
      if (std::string path = find(file); !path.empty()) return path;
    }
    return {};
  }

 private:
  void add_folder(const std::string& folder) {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
    constexpr int kDeepest = 6;
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (entry.depth() > kDeepest) entry.disable_recursion_pending();
      std::error_code unreadable;
      if (entry->is_regular_file(unreadable))
        paths_.try_emplace(entry->path().filename().string(), entry->path().string());
    }
  }

  std::map<std::string, std::string> paths_;
};

constexpr ImWchar kMissingBox = 0x25A1;

// Reads a file once however many faces it is merged into; the atlas keeps the bytes.
class FontAdder {
 public:
  explicit FontAdder(ImFontAtlas* atlas) : atlas_(atlas) {}

  ImFont* add(const std::string& path, ImFontConfig config) {
    const auto known = loaded_.find(path);
    if (known == loaded_.end()) {
      ImFont* font = atlas_->AddFontFromFileTTF(path.c_str(), 0.0f, &config);
      if (font != nullptr) loaded_.emplace(path, last_source());
      return font;
    }
    config.FontDataOwnedByAtlas = false;
    return atlas_->AddFontFromMemoryTTF(known->second.data, known->second.size, 0.0f, &config);
  }

 private:
  struct Bytes {
    void* data;
    int size;
  };
  Bytes last_source() const {
    const ImFontConfig& source = atlas_->Sources.back();
    return {source.FontData, source.FontDataSize};
  }

  ImFontAtlas* atlas_;
  std::map<std::string, Bytes> loaded_;
};

ImFontConfig merged(unsigned int loader_flags) {
  ImFontConfig config;
  config.MergeMode = true;
  config.FontLoaderFlags = loader_flags;
  return config;
}

void merge_fallbacks(FontAdder& adder, const FontFiles& files) {
  // Before the others, some of which have emoji in black and white.
  if (const std::string path = files.find_first(kEmoji); !path.empty())
    adder.add(path, merged(ImGuiFreeTypeLoaderFlags_LoadColor | ImGuiFreeTypeLoaderFlags_Bitmap));
  for (const Alternatives& alternatives : kFallbacks) {
    if (const std::string path = files.find_first(alternatives); !path.empty()) adder.add(path, merged(0));
  }
}

// Light hinting snaps to rows only: even text at 15 px without distorting widths.
ImFontConfig text_config() {
  ImFontConfig config;
  config.FontLoaderFlags = ImGuiFreeTypeLoaderFlags_LightHinting;
  return config;
}

}  // namespace

std::vector<std::string> Fonts::system_folders() {
  std::vector<std::string> folders;
  return {(data_folder() / "fonts").string(), (home_folder() / ".fonts").string(), "/usr/local/share/fonts",
          "/usr/share/fonts"};
}

Fonts Fonts::load(const std::vector<std::string>& folders) {
  Fonts fonts;
  ImFontAtlas* atlas = ImGui::GetIO().Fonts;
  const FontFiles files(folders);
  FontAdder adder(atlas);
  const std::span<const Candidate> faces[] = {kRegular, kSemiBold, kItalic, kMono, kSemiBoldItalic};
  for (std::size_t i = 0; i < fonts.entries_.size(); ++i) {
    const auto candidate = std::find_if(faces[i].begin(), faces[i].end(),
                                        [&](const Candidate& c) { return !files.find(c.file).empty(); });
    ImFont* font =
        candidate == faces[i].end() ? nullptr : adder.add(files.find(candidate->file), text_config());
    if (font == nullptr) {
      fonts.entries_[i] = {atlas->AddFontDefault(), 1.0f};
      fonts.missing_.push_back(std::string("font file not found: ") + faces[i].front().file +
                               ": install fonts-inter and fonts-jetbrains-mono");
    } else {
      fonts.entries_[i] = {font, candidate->height_per_em};
    }
    merge_fallbacks(adder, files);
    // A box, as in messages, where no font has a character: "?" would be a part of a title.
    ImFont* const merged_font = fonts.entries_[i].font;
    if (merged_font->IsGlyphInFont(kMissingBox)) merged_font->FallbackChar = kMissingBox;
  }
  return fonts;
}

Face Fonts::face(FontFace face, float em_pixels) const {
  const Entry& entry = entries_[static_cast<std::size_t>(face)];
  return {entry.font, std::round(em_pixels * entry.height_per_em)};
}

}  // namespace octavo::ui
