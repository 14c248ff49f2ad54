// TeX in messages stands as it was written, whatever Markdown would make of it.

#include "ui/widgets/mathematics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ui/widgets/markdown.h"

namespace octavo::ui {
namespace {

std::vector<std::string> formulas(const std::string& text) {
  std::vector<std::string> result;
  for (const Formula& formula : find_formulas(text))
    result.push_back(text.substr(formula.begin, formula.end - formula.begin));
  return result;
}

std::string plain(const std::string& text) {
  return plain_text(text, TextFormat::kMarkdown, {0, static_cast<std::uint32_t>(text.size())});
}

using Texts = std::vector<std::string>;

TEST(Mathematics, StandsBetweenItsMarks) {
  EXPECT_EQ(formulas(R"(so \(a_1 * b_1 * c\) and \[x^2\] and $$y$$.)"),
            (Texts{R"(\(a_1 * b_1 * c\))", R"(\[x^2\])", "$$y$$"}));
  EXPECT_EQ(formulas("\\[\na \\\\\nb\n\\]"), (Texts{"\\[\na \\\\\nb\n\\]"}));
  EXPECT_EQ(formulas(R"(\(f\(x\))"), (Texts{R"(\(f\(x\))"}));
  EXPECT_EQ(formulas(R"(\( a \\) b\))"), (Texts{R"(\( a \\) b\))"}));
}

TEST(Mathematics, NeedsBothMarksInOneParagraph) {
  EXPECT_EQ(formulas(R"(a \( b)"), Texts{});
  EXPECT_EQ(formulas("a \\( b\n\nc \\) d"), Texts{});
  EXPECT_EQ(formulas(R"(\\( not \\))"), Texts{});
  EXPECT_EQ(formulas(R"(\(\))"), Texts{});
  EXPECT_EQ(formulas("$$$$ $$ $$"), Texts{"$$ $$"});
}

TEST(Mathematics, IsNotFoundInCode) {
  EXPECT_EQ(formulas(R"(`\(a\)` and ``$$x$$``)"), Texts{});
  EXPECT_EQ(formulas("- ```tex\n  \\(a\\)\n  ```\n- \\(b\\)"), Texts{R"(\(b\))"});
  EXPECT_EQ(formulas("> ~~~\n> $$a$$\n> ~~~\n"), Texts{});
}

TEST(Mathematics, DollarsAreMoneyUnlessTheyAreSurelyMathematics) {
  for (const char* const text :
       {"It costs $5 and not $10.", "$5-$7", "from $1 to 2$", "$HOME and $PATH", "$HOME/$USER", "US$ and A$",
        "a $ b $ c", "$FOO_BAR$", "${a}$ ${b}", "$5", "echo $x", "$caf\xc3\xa9$", "$ x$", "$x $"}) {
    EXPECT_EQ(formulas(text), Texts{}) << text;
  }
  for (const char* const text : {"$x$", "$a_1$", "$E = m c^2$", R"($\alpha$)", R"($\frac{1}{2}$)", "$n-1$",
                                 "$f(x) = 2x + 1$", "$x^{10}$", R"($a \$ b \in c$)"}) {
    EXPECT_EQ(formulas("is " + std::string(text) + ", then"), Texts{text}) << text;
  }
}

TEST(Mathematics, IsShownAndCopiedAsItWasWritten) {
  for (const std::string text :
       {R"(\(a_1 * b_1 * c\))", R"(\(x_a\) and *not* \(x_b * c_d\))", R"(**\(a*b*c\)**)",
        R"(\( \mathbb{R}_{>0} \))", R"($$\sum_{i=1}^n a_i * b_i$$)", R"($a_i * b_i^2$ and $c_i * d_i^2$)"}) {
    std::string expected = text;
    for (const char* const mark : {"*not*", "**"}) {
      for (std::size_t at; (at = expected.find(mark)) != std::string::npos;)
        expected.replace(at, std::string(mark).size(), std::string(mark) == "*not*" ? "not" : "");
    }
    EXPECT_EQ(plain(text), expected);
    EXPECT_EQ(markdown_text(text, TextFormat::kMarkdown, {0, static_cast<std::uint32_t>(text.size())}), text);
  }
  EXPECT_EQ(plain("| a | b |\n|---|---|\n| \\(|x|\\) | y |\n"), "a\tb\n\\(|x|\\)\ty");
  EXPECT_EQ(plain("- \\[\n  a_1 * b_1\n  \\]\n- c"), "- \\[\n  a_1 * b_1\n  \\]\n- c");
}

TEST(Mathematics, StandsInTheFontOfCode) {
  MarkdownDocument document;
  const std::string text = R"(so \(a_1\) is)";
  document.update(text, TextFormat::kMarkdown);
  ASSERT_EQ(document.spans().size(), 3u);
  EXPECT_EQ(document.spans()[0].style, 0);
  EXPECT_EQ(document.spans()[1].style, span_style::kCode);
  EXPECT_EQ(document.shown(text, document.spans()[1]), R"(\(a_1\))");
  EXPECT_EQ(document.spans()[2].style, 0);
}

TEST(Mathematics, LinesOfItsOwnAreABlockThatCanBeCopied) {
  const std::string formula = "\\[\na_1 * b_1 = \\frac{c}{d} \\\\\n- e_1\n\\]";
  const std::string text = "So we have\n" + formula + "\nand then\n\n$$x^2$$\n\nand \\[y\\] in a line\n";
  MarkdownDocument document;
  document.update(text, TextFormat::kMarkdown);
  ASSERT_EQ(document.blocks().size(), 5u);
  EXPECT_EQ(document.blocks()[1].kind, BlockKind::kCode);
  EXPECT_TRUE(document.blocks()[1].formula);
  EXPECT_EQ(document.code_of(text, 1), formula);
  EXPECT_EQ(document.blocks()[2].kind, BlockKind::kParagraph);
  EXPECT_TRUE(document.blocks()[3].formula);
  EXPECT_EQ(document.code_of(text, 3), "$$x^2$$");
  EXPECT_EQ(document.blocks()[4].kind, BlockKind::kParagraph);
}

}  // namespace
}  // namespace octavo::ui
