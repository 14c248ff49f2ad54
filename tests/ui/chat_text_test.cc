// What belongs to the text of a chat and needs no window: places of messages, search, colours of code, links.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "app/window/platform/open_link.h"
#include "ui/views/transcript.h"
#include "ui/widgets/characters.h"
#include "ui/widgets/code_lexer.h"
#include "ui/widgets/text_search.h"

namespace octavo::ui {
namespace {

std::vector<MessageState> messages_of(std::size_t count) {
  std::vector<MessageState> messages(count);
  for (std::size_t i = 0; i < count; ++i) messages[i].id = {i + 1};
  return messages;
}

// Scrolls about in messages whose heights are guessed wrongly: what is on screen and known must not move.
TEST(Transcript, WrongGuessesDoNotMoveWhatIsOnScreen) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const auto messages = messages_of(500);
  std::vector<float> heights;
  for (std::size_t i = 0; i < messages.size(); ++i)
    heights.push_back(static_cast<float>(20 + random() % 900));
  Transcript transcript;
  const auto guess = [](std::size_t) { return 300.0f; };
  const auto lay_out = [&](std::size_t index, Transcript::Entry&) { return heights[index]; };
  constexpr float kExtent = 800;
  transcript.sync(messages, 28, 20, guess);
  transcript.resolve_end(kExtent, 32, lay_out);
  double scroll = transcript.height() - static_cast<double>(kExtent);
  for (int i = 0; i < 3000; ++i) {
    scroll = std::max(0.0, scroll + (static_cast<double>(random() % 400) - 250));
    scroll = std::min(scroll, transcript.height());
    std::vector<std::pair<std::size_t, double>> known;
    for (std::size_t m = transcript.index_at(scroll);
         m < messages.size() && transcript.entries()[m].top < scroll + 800; ++m) {
      if (transcript.entries()[m].exact) known.emplace_back(m, transcript.entries()[m].top - scroll);
    }
    transcript.sync(messages, 28, 20, guess);
    const double resolved = transcript.resolve(scroll, kExtent, lay_out);
    if (resolved > 0 && !known.empty()) {
      EXPECT_NEAR(transcript.entries()[known[0].first].top - resolved, known[0].second, 0.01)
          << "seed " << kSeed << ", step " << i;
    }
    scroll = resolved;
    for (std::size_t m = transcript.index_at(scroll);
         m < messages.size() && transcript.entries()[m].top < scroll + 800; ++m)
      ASSERT_TRUE(transcript.entries()[m].exact);
  }
  double y = 28;
  for (const Transcript::Entry& entry : transcript.entries()) {
    EXPECT_NEAR(entry.top, y, 0.01);
    y += static_cast<double>(entry.height + 20);
  }
}

TEST(Transcript, SelectionGoesOverMessagesInEitherDirection) {
  Transcript transcript;
  const auto messages = messages_of(4);
  transcript.sync(messages, 0, 0, [](std::size_t) { return 10.0f; });
  transcript.selection = TextSelection{{3, 5}, {2, 1}};
  const auto span = transcript.selected();
  ASSERT_TRUE(span);
  EXPECT_EQ(transcript.selected_in(*span, 0, 9), (TextRange{}));
  EXPECT_EQ(transcript.selected_in(*span, 1, 9), (TextRange{1, 9}));
  EXPECT_EQ(transcript.selected_in(*span, 2, 9), (TextRange{0, 5}));
  transcript.sync(messages_of(2), 0, 0, [](std::size_t) { return 10.0f; });
  EXPECT_FALSE(transcript.selected()) << "its message is not shown any more";
}

MessageState message(std::uint64_t id, Role role, std::string text) {
  MessageState state;
  state.id = {id};
  state.role = role;
  state.text = std::move(text);
  return state;
}

TEST(TextSearch, FindsWhatReadersSeeWhateverItsCase) {
  const std::vector<MessageState> messages = {
      message(1, Role::kUser,
              "Stra\xc3\x9f"
              "e **NO** markdown"),
      message(2, Role::kAssistant,
              "A **bold** WORD, \xce\xa3\xce\x99\xce\xa3\xce\xa5\xce\xa6\xce\x9f\xce\xa3\nnext line")};
  TextSearch search;
  EXPECT_EQ(search.find(messages, "bold word").size(), 1u);
  const TextRange range = search.find(messages, "BOLD word")[0].range;
  EXPECT_EQ(messages[1].text.substr(range.begin, range.end - range.begin), "bold** WORD");
  EXPECT_EQ(search.find(messages, "**no**").size(), 1u);
  EXPECT_EQ(search.find(messages, "\xcf\x83\xce\xb9\xcf\x83\xcf\x85\xcf\x86\xce\xbf\xcf\x82 next").size(),
            1u);
  EXPECT_EQ(search
                .find(messages,
                      "stra\xe1\xba\x9e"
                      "e")
                .size(),
            1u);
  EXPECT_TRUE(search.find(messages, "nowhere").empty());
  EXPECT_TRUE(search.find(messages, "").empty());
}

TEST(TextSearch, FollowsTextThatGrows) {
  std::vector<MessageState> messages = {message(1, Role::kAssistant, "one two")};
  TextSearch search;
  EXPECT_EQ(search.find(messages, "two").size(), 1u);
  messages[0].text += " and two again";
  EXPECT_EQ(search.find(messages, "two").size(), 2u);
  messages.push_back(message(2, Role::kUser, "two"));
  EXPECT_EQ(search.find(messages, "two").size(), 3u);
  EXPECT_EQ(search.matches_in({2}).size(), 1u);
  messages.resize(1);
  EXPECT_EQ(search.find(messages, "two").size(), 2u);
}

TEST(TextSearch, AMillionCharactersAreSearchedQuickly) {
  std::vector<MessageState> messages;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string text;
    while (text.size() < 500)
      text += "With **blocks of sixteen tokens**, memory is taken one block at a time. ";
    messages.push_back(message(i + 1, i % 2 == 0 ? Role::kUser : Role::kAssistant, text));
  }
  TextSearch search;
  for (const char* query : {"b", "blocks"}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(search.find(messages, query).empty());
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    std::printf("[ measured ] finding \"%s\" in 1 M characters: %.1f ms\n", query, ms);
  }
}

std::string coloured(std::string_view language, const std::vector<std::string>& lines) {
  constexpr char kLetters[] = ".cs0ktf+-";
  const CodeSyntax* syntax = find_syntax(language);
  if (syntax == nullptr) return "unknown";
  std::string result;
  CodeState state;
  for (const std::string& line : lines) {
    std::vector<CodeToken> tokens;
    lex_line(*syntax, line, state, tokens);
    std::string colours(line.size(), '.');
    std::uint32_t at = 0;
    for (const CodeToken& token : tokens) {
      EXPECT_LE(at, token.begin);
      EXPECT_LE(token.end, line.size());
      for (at = token.begin; at < token.end; ++at) colours[at] = kLetters[static_cast<int>(token.kind)];
    }
    result += (result.empty() ? "" : "|") + colours;
  }
  return result;
}

TEST(CodeLexer, KnowsTheLanguagesThatModelsWrite) {
  EXPECT_EQ(coloured("cpp", {"int a = 0x1F; // no"}), "ttt.....0000..ccccc");
  EXPECT_EQ(coloured("c", {"/* a", "b */ if (x)"}), "cccc|cccc.kk....");
  EXPECT_EQ(coloured("c", {"#include <a.h>"}), "kkkkkkkk.sssss");
  EXPECT_EQ(coloured("Python", {"def f(x):  # c", "s = \"\"\"a", "b\"\"\" + 'x'"}),
            "kkk.f......ccc|....ssss|ssss...sss");
  EXPECT_EQ(coloured("js", {"const s = `a", "b` + f(1)"}), "kkkkk.....ss|ss...f.0.");
  EXPECT_EQ(coloured("rust", {"fn f<'a>(x: &'a str) {}"}), "kk...tt......tt.ttt....");
  EXPECT_EQ(coloured("sh", {"if [ $A ]; then # c"}), "kk...tt....kkkk.ccc");
  EXPECT_EQ(coloured("json", {"{\"k\": \"v\", \"n\": 1.5}"}), ".ttt..sss..ttt..000.");
  EXPECT_EQ(coloured("yaml", {"key: true # c"}), "ttt..kkkk.ccc");
  EXPECT_EQ(coloured("html", {"<a href=\"x\">t</a>"}), "kk.tttt.sssk.kkkk");
  EXPECT_EQ(coloured("sql", {"SELECT a FROM t -- c"}), "kkkkkk...kkkk...cccc");
  EXPECT_EQ(coloured("lua", {"--[[ a", "b ]] local x -- c"}), "cccccc|cccc.kkkkk...cccc");
  EXPECT_EQ(coloured("diff", {"+a", "-b", "@@ x"}), "++|--|ffff");
  EXPECT_EQ(coloured("css", {"a { color: #fff; }"}), "....ttttt..0000...");
  for (const char* name : {"c++", "c#", "ts", "go", "java", "toml", "xml", "markdown", "bash", "yml", "rs"})
    EXPECT_NE(find_syntax(name), nullptr) << name;
  EXPECT_EQ(find_syntax("brainfuck"), nullptr);
}

TEST(CodeLexer, NeverLeavesTheLineWhateverItIsGiven) {
  std::mt19937 random(5);
  const std::string alphabet = "ab1 '\"`/*#<>-![]{}$@\\.\n&;:=";
  for (const char* name : {"c", "cpp", "python", "js", "rust", "sh", "json", "yaml", "html", "css", "sql",
                           "md", "lua", "diff", "toml"}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<std::string> lines(1);
      for (int i = 0; i < 60; ++i) {
        const char c = alphabet[random() % alphabet.size()];
        if (c == '\n') {
          lines.emplace_back();
        } else {
          lines.back() += c;
        }
      }
      coloured(name, lines);
    }
  }
}

TEST(Characters, HiddenOnesHaveNamesAndShownOnesNone) {
  EXPECT_EQ(mark_of(0x202e), "RLO");
  EXPECT_EQ(mark_of(0x1b), "ESC");
  EXPECT_EQ(mark_of(0x85), "U+0085");
  EXPECT_EQ(mark_of('a'), "");
  EXPECT_EQ(mark_of('\n'), "");
  EXPECT_EQ(visible_text("a\xe2\x80\xae"
                         "b\n\x01\xff"),
            "a[RLO]b [SOH]\xef\xbf\xbd");
}

TEST(OpenLink, RefusesWhatIsNoWebAddress) {
  for (const char* address :
       {"file:///etc/passwd", "javascript:x", "https://a b", "-help", "", "https://a\nb"}) {
    EXPECT_FALSE(app::open_link(address, "true")) << address;
  }
  EXPECT_FALSE(app::open_link("https://a.example", "/nonexistent/program"));
}

TEST(OpenLink, HandsTheAddressOverAsOneArgument) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("octavo-open-link-" + std::to_string(std::random_device{}()));
  fs::create_directories(folder);
  const fs::path script = folder / "open";
  std::ofstream(script) << "#!/bin/sh\nprintf '%s|%s' \"$#\" \"$1\" > '" << folder.string()
                        << "/part' && mv '" << folder.string() << "/part' '" << folder.string() << "/got'\n";
  fs::permissions(script, fs::perms::owner_all);
  const std::string address = "https://a.example/$(touch${IFS}x)`id`;&'\"";
  ASSERT_TRUE(app::open_link(address, script.c_str()));
  for (int i = 0; i < 500 && !fs::exists(folder / "got"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::string got;
  std::getline(std::ifstream(folder / "got"), got);
  EXPECT_EQ(got, "1|" + address);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace octavo::ui
