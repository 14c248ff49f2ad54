#include "ui/widgets/message_layout.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>

#include "ui/action_sink.h"

namespace octavo::ui {
namespace {

// A Dear ImGui context without a window: fonts are measured, nothing is shown.
class Layout : public ::testing::Test {
 protected:
  void SetUp() override {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {1200, 800};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    fonts_ = Fonts::load(folders_);
    ImGui::NewFrame();
  }
  void TearDown() override {
    ImGui::EndFrame();
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures)
      texture->SetStatus(ImTextureStatus_Destroyed);
    ImGui::DestroyContext();
  }

  MessageLayout lay_out(const std::string& text, TextFormat format = TextFormat::kMarkdown,
                        float width = 600) {
    MessageLayout layout;
    layout.update(frame_, text, format, width);
    return layout;
  }

  std::vector<std::string> folders_ = Fonts::system_folders();
  Fonts fonts_;
  Theme theme_ = make_theme(ThemeName::kDark, 1.0f);
  ActionSink sink_;
  Frame frame_{theme_, fonts_, sink_};
};

class LayoutWithoutFonts : public Layout {
 protected:
  LayoutWithoutFonts() { folders_ = {}; }
};

TEST_F(Layout, EveryCharacterIsFoundWhereItIsDrawn) {
  const std::string text =
      "Some **bold words** and `code` in a paragraph that is long enough to be broken over several lines of "
      "the page, as "
      "answers are.\n\n- an item\n- \xc3\xa4nother one\n\n```c\nint main() { return 0; }\n```\n\n| a | b "
      "|\n|---|---|\n| one | two |\n";
  const MessageLayout layout = lay_out(text, TextFormat::kMarkdown, 300);
  for (const std::string word :
       {"Some", "bold", "code", "several", "page", "item", "nother", "main", "return", "one", "two"}) {
    const auto offset = static_cast<std::uint32_t>(text.find(word));
    ImVec2 position = layout.position_of(frame_, text, offset);
    position.x += 1;
    position.y += 4;
    EXPECT_EQ(layout.offset_at(frame_, text, position), offset) << word;
    EXPECT_TRUE(layout.is_over_text(position)) << word;
  }
}

TEST_F(Layout, NoLineIsWiderThanItsRoom) {
  std::mt19937 random(3);
  const std::string alphabet[] = {
      "word ", "longerword ",       "x", "-", "**b** ", "`c` ", "\xe4\xbd\xa0", "\xe3\x80\x82",
      "\t",    std::string(80, 'w')};
  for (int round = 0; round < 100; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += alphabet[random() % std::size(alphabet)];
    for (const TextFormat format : {TextFormat::kPlain, TextFormat::kMarkdown}) {
      EXPECT_LE(lay_out(text, format, 200).width(), 201) << "round " << round << ": " << text;
    }
  }
}

TEST_F(Layout, IdeographsBreakWithoutSpaces) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xe4\xbd\xa0\xe5\xa5\xbd";
  const MessageLayout layout = lay_out(text, TextFormat::kPlain, 200);
  EXPECT_GT(layout.height(), 5 * 22);
  EXPECT_LE(layout.width(), 201);
}

TEST_F(Layout, WordsMoveToTheNextLineWhole) {
  const std::string text = "aaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbb";
  const MessageLayout layout = lay_out(text, TextFormat::kPlain, 260);
  EXPECT_EQ(layout.position_of(frame_, text, static_cast<std::uint32_t>(text.find('b'))).x, 0);
  EXPECT_GT(layout.position_of(frame_, text, static_cast<std::uint32_t>(text.find('b'))).y, 0);
}

TEST_F(Layout, GrowthIsLaidOutOnceHoweverLongTheMessage) {
  for (const std::string unit : {"A closed paragraph of some words.\n\n", "no end of a line "}) {
    std::uint64_t blocks[2];
    for (int i = 0; i < 2; ++i) {
      std::string text;
      while (text.size() < (i == 0 ? 50'000u : 1'000'000u)) text += unit;
      MessageLayout layout = lay_out(text);
      const std::uint64_t before = layout.num_blocks_laid_out();
      const auto begin = std::chrono::steady_clock::now();
      for (int word = 0; word < 200; ++word) {
        text += "word ";
        layout.update(frame_, text, TextFormat::kMarkdown, 600);
      }
      const double us =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 200;
      blocks[i] = layout.num_blocks_laid_out() - before;
      std::printf("[ measured ] %zu characters of %zu-byte units: %.0f us to append a word\n", text.size(),
                  unit.size(), us);
    }
    EXPECT_LE(blocks[0], 201u);
    EXPECT_LE(blocks[1], 201u);
  }
}

TEST_F(Layout, GrownLayoutEqualsOneMadeAtOnce) {
  const std::string whole =
      "# Head\n\nA paragraph with **bold** text.\n- one\n- two\n\n```py\nprint(1)\nprint(2)\n```\n\n| a | b "
      "|\n|---|---|\n| 1 | 2 |\n\n> quote\n";
  MessageLayout grown;
  for (std::size_t size = 1; size <= whole.size(); ++size)
    grown.update(frame_, std::string_view(whole).substr(0, size), TextFormat::kMarkdown, 400);
  const MessageLayout once = lay_out(whole, TextFormat::kMarkdown, 400);
  EXPECT_EQ(grown.height(), once.height());
  EXPECT_EQ(grown.width(), once.width());
  for (std::uint32_t offset = 0; offset < whole.size(); ++offset) {
    EXPECT_EQ(grown.position_of(frame_, whole, offset).x, once.position_of(frame_, whole, offset).x)
        << offset;
    EXPECT_EQ(grown.position_of(frame_, whole, offset).y, once.position_of(frame_, whole, offset).y)
        << offset;
  }
}

TEST_F(Layout, CharactersThatHideAreMarked) {
  const float plain = lay_out("ab", TextFormat::kPlain).width();
  for (const std::string& hidden :
       {std::string("\0", 1), std::string("\x1b"), std::string("\xe2\x80\xae"), std::string("\xe2\x80\x8b"),
        std::string("\xe2\x81\xa6"), std::string("\xc2\x85"), std::string("\xf3\xa0\x81\x81")}) {
    EXPECT_GT(lay_out("a" + hidden + "b", TextFormat::kPlain).width(), plain + 10);
  }
  EXPECT_GT(lay_out("a\xff"
                    "b",
                    TextFormat::kPlain)
                .width(),
            plain + 4);
}

TEST_F(LayoutWithoutFonts, MissingGlyphsAreBoxesAndSaid) {
  const MessageLayout layout = lay_out("\xe4\xbd\xa0 \xf0\x9f\x98\x80 \xe0\xa4\x95 a", TextFormat::kPlain);
  EXPECT_TRUE(layout.missing_glyphs().ideographic);
  EXPECT_TRUE(layout.missing_glyphs().emoji);
  EXPECT_TRUE(layout.missing_glyphs().other);
  EXPECT_FALSE(lay_out("plain text", TextFormat::kPlain).missing_glyphs().any());
  EXPECT_FALSE(fonts_.missing().empty());
}

TEST_F(Layout, ClicksTakeWordsAndParagraphs) {
  const std::string text = "One **snake_case** word\nand a line.\n\n```\nfirst line\nsecond line\n```\n";
  const MessageLayout layout = lay_out(text);
  const auto cut = [&](TextRange range) { return text.substr(range.begin, range.end - range.begin); };
  const auto at = [&](std::string_view word) { return static_cast<std::uint32_t>(text.find(word)) + 1; };
  EXPECT_EQ(cut(layout.word_at(text, at("snake"))), "snake_case");
  EXPECT_EQ(cut(layout.paragraph_at(text, at("snake"))), "One **snake_case** word\nand a line.");
  EXPECT_EQ(cut(layout.paragraph_at(text, at("second"))), "second line");
}

TEST_F(Layout, LinksAreFoundUnderThePointer) {
  const std::string text = "see [here](https://a.example/x) and there";
  const MessageLayout layout = lay_out(text);
  ImVec2 position = layout.position_of(frame_, text, static_cast<std::uint32_t>(text.find("here")));
  EXPECT_EQ(layout.link_at({position.x + 3, position.y + 8}), "https://a.example/x");
  EXPECT_EQ(layout.link_at({2, position.y + 8}), "");
}

TEST_F(Layout, AMegabyteWithoutSpacesIsLaidOut) {
  const auto begin = std::chrono::steady_clock::now();
  const MessageLayout layout = lay_out(std::string(1 << 20, 'w'));
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  std::printf("[ measured ] a line of 1 MB without spaces: %.0f ms to lay out\n", ms);
  EXPECT_GT(layout.height(), 100'000);
  EXPECT_LE(layout.width(), 601);
}

float channel(ImU32 colour, int shift) {
  const float value = static_cast<float>((colour >> shift) & 255u) / 255.0f;
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}
float luminance(ImU32 colour) {
  return 0.2126f * channel(colour, IM_COL32_R_SHIFT) + 0.7152f * channel(colour, IM_COL32_G_SHIFT) +
         0.0722f * channel(colour, IM_COL32_B_SHIFT);
}

TEST(CodeColours, AreReadableInEveryTheme) {
  for (const ThemeName name : {ThemeName::kDark, ThemeName::kLight}) {
    const Theme theme = make_theme(name, 1.0f);
    for (int kind = 0; kind <= static_cast<int>(CodeKind::kRemoved); ++kind) {
      const float a = luminance(code_colour(theme, static_cast<CodeKind>(kind))), b = luminance(theme.raised);
      EXPECT_GE((std::max(a, b) + 0.05f) / (std::min(a, b) + 0.05f), 4.5f) << kind;
    }
  }
}

}  // namespace
}  // namespace octavo::ui
