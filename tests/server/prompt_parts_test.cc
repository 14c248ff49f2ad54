// The parts of prompts that real templates print, byte by byte, and what is said where they differ.

#include "app/requests/prompt_parts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/requests/prompt_diagnostics.h"
#include "engine/chat_template/chat_template.h"
#include "tests/support/paths.h"

namespace octavo::app {
namespace {

// Each byte is a token; some vocabularies put a token in front of everything.
class ByteTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit ByteTokenizer(const std::string& name) {
    const std::ifstream file(test::source_folder() / "tests/golden/templates" / (name + ".jinja"));
    EXPECT_TRUE(file.good()) << name;
    std::ostringstream text;
    text << file.rdbuf();
    auto parsed = tokenizer::ChatTemplate::parse(text.str());
    EXPECT_TRUE(parsed);
    template_.emplace(*std::move(parsed));
    for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
    bytes_.push_back("<s>");
  }

  std::int32_t vocabulary_size() const override { return 257; }
  std::optional<TokenId> bos_token_id() const override { return 256; }
  bool is_end_of_sequence(TokenId) const override { return false; }
  bool has_chat_template() const override { return true; }
  Result<std::vector<TokenId>> encode(std::string_view text, bool, bool,
                                      const tokenizer::EncodeLimits&) const override {
    std::vector<TokenId> ids = {256};
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override {
    std::string text;
    for (const auto& span : spans) text += span.text;
    return encode(text, false, false, {});
  }
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(
      std::span<const ChatMessage> messages, const TemplateInputs& inputs) const override {
    return template_->render_any(messages, {}, inputs);
  }
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage> messages,
                                           const TemplateInputs& inputs,
                                           const tokenizer::EncodeLimits&) const override {
    OCTAVO_TRY(const auto spans, apply_chat_template(messages, inputs));
    return encode_spans(spans);
  }
  std::string_view token_bytes(TokenId id) const override { return bytes_[static_cast<std::size_t>(id)]; }
  bool is_special(TokenId id) const override { return id == 256; }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id);
    return text;
  }

 private:
  std::optional<tokenizer::ChatTemplate> template_;
  std::vector<std::string> bytes_;
};

std::string tool_text(const std::string& name, const std::string& description) {
  return R"({"type": "function", "function": {"name": ")" + name + R"(", "description": ")" + description +
         R"(", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}})";
}

ChatPrompt chat(std::string system, std::vector<std::string> tools, std::vector<ChatMessage> more) {
  ChatPrompt prompt;
  if (!system.empty()) prompt.messages.push_back({.role = Role::kSystem, .content = std::move(system)});
  for (ChatMessage& message : more) prompt.messages.push_back(std::move(message));
  for (const std::string& tool : tools) prompt.tools += (prompt.tools.empty() ? "[" : ", ") + tool;
  if (!prompt.tools.empty()) prompt.tools += "]";
  return prompt;
}

struct Prompt {
  PromptParts parts;
  std::vector<TokenId> ids;
};
Prompt prompt_of(const ByteTokenizer& tokenizer, const ChatPrompt& prompt,
                 const std::vector<MessageName>& names = {}) {
  const auto rendered = render_parts(prompt, names, 0, tokenizer);
  EXPECT_TRUE(rendered);
  if (!rendered) return {};
  TemplateInputs inputs(0, prompt.template_values);
  inputs.tools = prompt.tools;
  Prompt made{.parts = {}, .ids = *tokenizer.encode_chat(prompt.messages, inputs, {})};
  made.parts = PromptParts(*rendered, made.ids, tokenizer);
  return made;
}

std::string differing(const ByteTokenizer& tokenizer, const Prompt& mine, const Prompt& theirs) {
  const std::size_t common = common_prefix_len(mine.ids, {.prompt = theirs.ids});
  const auto places = differing_places(tokenizer, mine.parts, {.prompt = mine.ids}, theirs.parts,
                                       {.prompt = theirs.ids}, common);
  return places.mine.name == places.theirs.name ? places.mine.name
                                                : places.mine.name + " | " + places.theirs.name;
}

const ChatMessage kQuestion = {.role = Role::kUser, .content = "What?\nNow."};

TEST(PromptParts, NameTheToolAndWhatOfItDiffersInEveryTemplateThatPrintsJson) {
  for (const char* const name : {"qwen2.5", "qwen3", "granite4", "smollm2"}) {
    SCOPED_TRACE(name);
    const ByteTokenizer tokenizer(name);
    const auto prompt = [&](const std::string& description) {
      return prompt_of(tokenizer, chat("Be brief.",
                                       {tool_text("read", "Reads."), tool_text("edit", description),
                                        tool_text("run", "Runs.")},
                                       {kQuestion}));
    };
    EXPECT_EQ(differing(tokenizer, prompt("Edits a file."), prompt("Edits no file.")),
              "tools[1] edit, description");
  }
}

TEST(PromptParts, NameTheLineOfTheSystemTextAndTheMessage) {
  for (const char* const name : {"qwen2.5", "chatml", "llama3.1", "glm4.7", "gemma4", "smollm2", "phi4"}) {
    SCOPED_TRACE(name);
    const ByteTokenizer tokenizer(name);
    const auto prompt = [&](const std::string& date, const std::string& question) {
      return prompt_of(tokenizer,
                       chat("You help.\nBe brief.\nToday is " + date + ".\nThe end.", {},
                            {{.role = Role::kUser, .content = "One"},
                             {.role = Role::kAssistant, .content = "Two"},
                             {.role = Role::kUser, .content = question}}),
                       {{.path = "system"}});
    };
    EXPECT_EQ(differing(tokenizer, prompt("Monday", "Three"), prompt("Tuesday", "Three")), "system, line 3");
    EXPECT_EQ(differing(tokenizer, prompt("Monday", "Three\nfour"), prompt("Monday", "Three\nfive")),
              "messages[3] (user), line 2");
  }
}

TEST(PromptParts, BlocksOfOneMessageAreToldApart) {
  const ByteTokenizer tokenizer("chatml");
  const auto prompt = [&](const std::string& last) {
    return prompt_of(tokenizer, chat("first\nsecond\n" + last, {}, {kQuestion}),
                     {{.path = "system", .blocks = {{0, 0}, {6, 2}, {13, 3}}}});
  };
  EXPECT_EQ(differing(tokenizer, prompt("third"), prompt("other")), "system[3]");
}

TEST(PromptParts, EachSideHasAPlaceOfItsOwn) {
  const ByteTokenizer tokenizer("chatml");
  const Prompt asked = prompt_of(tokenizer, chat("a", {}, {{.role = Role::kUser, .content = "One"}}));
  const Prompt longer = prompt_of(tokenizer, chat("a", {}, {{.role = Role::kUser, .content = "One more"}}));
  EXPECT_EQ(differing(tokenizer, asked, longer), "the template's end | messages[1] (user)");
}

TEST(PromptParts, CallsAndResultsAreOfTheirMessages) {
  const ByteTokenizer tokenizer("qwen2.5");
  const auto prompt = [&](const std::string& arguments, const std::string& result) {
    return prompt_of(tokenizer, chat("", {tool_text("read", "Reads.")},
                                     {kQuestion,
                                      {.role = Role::kAssistant,
                                       .content = {},
                                       .token_ids = {},
                                       .tool_calls = {{"1", "read", arguments}}},
                                      {.role = Role::kTool, .content = result, .tool_call_id = "1"}}));
  };
  EXPECT_EQ(differing(tokenizer, prompt("{\"path\": \"a\"}", "text"), prompt("{\"path\": \"b\"}", "text")),
            "messages[1] (assistant), the call of read");
  EXPECT_EQ(differing(tokenizer, prompt("{}", "text"), prompt("{}", "test")), "messages[2] (tool)");
}

TEST(PromptParts, WhatBecameOfTheTools) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(tool_change(Names{"a", "b"}, Names{"a", "b"}), ToolChange::kNone);
  EXPECT_EQ(tool_change(Names{"b", "a"}, Names{"a", "b"}), ToolChange::kReordered);
  EXPECT_EQ(tool_change(Names{"a", "c", "b"}, Names{"a", "b"}), ToolChange::kAdded);
  EXPECT_EQ(tool_change(Names{"a"}, Names{"a", "b"}), ToolChange::kLeftOut);
  EXPECT_EQ(tool_change(Names{"a", "c"}, Names{"a", "b"}), ToolChange::kReplaced);
}

TEST(PromptDiagnostics, SayWhatChangedInTheWordsOfBothVendors) {
  const ByteTokenizer tokenizer("qwen2.5");
  const auto prompt = [&](const std::string& system, const std::string& tool, const std::string& question) {
    return prompt_of(tokenizer,
                     chat(system, {tool_text(tool, "Reads.")}, {{.role = Role::kUser, .content = question}}));
  };
  const Prompt base = prompt("Be brief.", "read", "What?");
  const auto told = [&](const Prompt& other) {
    const PromptDivergence divergence =
        find_divergence(tokenizer, other.parts, other.ids, base.parts, {.prompt = base.ids});
    const Json message = message_diagnostics(divergence);
    const std::string type =
        message.is_null() ? "null" : message["cache_miss_reason"]["type"].get<std::string>();
    const Json response = response_diagnostics(divergence);
    return type + " " + response["type"].get<std::string>() + " " +
           response.value("reason", std::string("-"));
  };
  EXPECT_EQ(told(base), "null cache_hit -");
  EXPECT_EQ(told(prompt("Be long.", "read", "What?")), "system_changed cache_miss input_changed");
  EXPECT_EQ(told(prompt("Be brief.", "write", "What?")), "tools_changed cache_miss tools_changed");
  EXPECT_EQ(told(prompt("Be brief.", "read", "Why?")), "messages_changed cache_miss input_changed");
}

}  // namespace
}  // namespace octavo::app
