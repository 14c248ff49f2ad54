// What a model writes cannot control the terminal that it is shown on.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_draft.h"

namespace octavo::tests {
namespace {

// A random model whose every other token moves cursors, sets titles or turns text around.
std::string hostile_model() {
  const std::string sequences[] = {
      "\x1b[31m",           "\x1b]0;title\x07", "\x1b[2J", "\r",      "\x08\x08", "\x7f",
      "\u009b31m",          "\u009d0;t\u009c",  "\u202e",  "\u2066",  "\u200f",   "\u061c",
      "\x1b]52;c;aGk=\x07", "\x1bPq\x1b\\",     "\x0e",    "\x1b[6n", "\u0085",   "\v\f"};
  test::ModelDraft draft = test::tiny_draft({.own_output = true});
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(test::gpt2_spelling(byte));
  for (const char* merged : {"Ġt", "he", "Ġa", "in", "Ġthe", "er", "on", "re", "Ġs", "ou"})
    tokens.emplace_back(merged);
  for (std::size_t i = 0; i < 128; ++i) {  // bytes that no text of the prompt needs
    std::string spelled;
    for (const char byte : sequences[i % std::size(sequences)] + std::to_string(i)) {
      spelled += test::gpt2_spelling(static_cast<unsigned char>(byte));
    }
    tokens[3 + 128 + i] = spelled;
  }
  draft.set_strings("tokenizer.ggml.tokens", tokens);
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / ("octavo_terminal_" + std::to_string(getpid()) + ".gguf"))
          .string();
  draft.write(path);
  return path;
}

// The terminal itself writes a line break as "\r\n".
void expect_harmless(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (c.value == '\r') {
      ASSERT_TRUE(i + 1 < text.size() && text[i + 1] == '\n') << "a lone carriage return at " << i;
    } else {
      const bool harmless =
          c.value == '\n' || c.value == '\t' || strip_terminal_controls(text.substr(i, c.length)) != "";
      ASSERT_TRUE(harmless) << "U+" << std::hex << static_cast<unsigned>(c.value) << " at " << std::dec << i;
    }
    i += c.length;
  }
}

constexpr const char* kMany = "300";

TEST(Terminal, GeneratedTextIsHarmless) {
  const std::string model = hostile_model();
  const std::vector<std::string> arguments = {"generate", "--model",      model,           "--prompt",
                                              "a",        "--max-tokens", kMany,           "--seed",
                                              "3",        "--ignore-eos", "--temperature", "2"};
  const ProgramResult shown = run_program(arguments, {.output_is_terminal = true});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_GT(shown.out.size(), 100u);
  expect_harmless(shown.out);
  // A program that reads gets the text as it is.
  const ProgramResult piped = run_program(arguments);
  EXPECT_NE(piped.out.find('\x1b'), std::string::npos);
}

TEST(Terminal, JsonIsHarmless) {
  const ProgramResult shown =
      run_program({"generate", "--model", hostile_model(), "--prompt", "a", "--max-tokens", kMany, "--seed",
                   "3", "--ignore-eos", "--temperature", "2", "--json"},
                  {.output_is_terminal = true});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find("\\u001b"), std::string::npos);
  expect_harmless(shown.out);
}

TEST(Terminal, AChatIsHarmless) {
  const ProgramResult shown = run_program(
      {"chat", "--model", hostile_model(), "--max-tokens", kMany, "--seed", "3", "--temperature", "2"},
      {.input = "hello \x1b[31m\n/history\n/exit\n", .output_is_terminal = true});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_GT(shown.out.size(), 100u);
  expect_harmless(shown.out);
}

TEST(Terminal, ATableOfTokensIsHarmless) {
  const ProgramResult shown = run_program({"tokenize", "--model", hostile_model(), "a\x1b[31m\u202e\r\u009b"},
                                          {.output_is_terminal = true});
  EXPECT_EQ(shown.status, 0) << shown.err;
  expect_harmless(shown.out);
}

}  // namespace
}  // namespace octavo::tests
