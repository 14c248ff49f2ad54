#include "app/requests/prompt_parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/chat_template/json_outline.h"
#include "engine/chat_template/prompt_span.h"

namespace octavo::app {
namespace {

using tokenizer::PromptOrigin;
using tokenizer::PromptSpan;

constexpr std::size_t kMostNameBytes = 120;      // names come from clients
constexpr std::size_t kMostTokensCompared = 64;  // behind the common ones, for their common bytes
constexpr std::size_t kMostBytesSkipped = 16;    // of a text that rules changed before it became tokens
constexpr std::size_t kMostSteps = 8;            // of a path into a tool

std::vector<std::string> names_of_tools(std::string_view tools) {
  std::vector<std::string> names;
  for (const std::string_view tool : json_elements(tools)) {
    const std::string_view function = json_member(tool, "function");
    const auto name = json_text(json_member(function.empty() ? tool : function, "name"));
    names.push_back(name ? escape_for_message(*name, kMostNameBytes) : std::string());
  }
  return names;
}

std::string numbered_name(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

MessageName usual_name(const ChatPrompt& prompt, std::size_t index) {
  return {.path = numbered_name("messages", index),
          .role = std::string(role_name(prompt.messages[index].role))};
}

// Makes parts of spans: blocks of a message apart, and neighbours of one name together.
class PartCollector {
 public:
  PartCollector(const ChatPrompt& prompt, std::span<const MessageName> names, RenderedParts& rendered)
      : prompt_(prompt), names_(names), rendered_(rendered) {}

  void add(const PromptSpan& span) {
    switch (span.origin.kind) {
      case PromptOrigin::Kind::kTemplate: begin(PromptPart::Kind::kTemplate, {}); break;
      case PromptOrigin::Kind::kMessage: add_message(span); break;
      case PromptOrigin::Kind::kCall: add_call(span.origin); break;
      case PromptOrigin::Kind::kTool: add_tool(static_cast<std::size_t>(span.origin.index)); break;
      case PromptOrigin::Kind::kOther: break;  // of what stands before it
    }
    rendered_.text += span.text;
  }

  // Template text is called by what it leads to.
  void finish() {
    std::string next;
    for (std::size_t i = rendered_.parts.size(); i-- > 0;) {
      PromptPart& part = rendered_.parts[i].part;
      if (part.kind != PromptPart::Kind::kTemplate) {
        next = part.name;
      } else {
        part.name = next.empty() ? "the template's end" : "the template, before " + next;
      }
    }
  }

 private:
  void begin(PromptPart::Kind kind, std::string name) {
    begin_at(rendered_.text.size(), kind, std::move(name));
  }
  void begin_at(std::size_t byte, PromptPart::Kind kind, std::string name) {
    auto& parts = rendered_.parts;
    if (!parts.empty() && parts.back().part.kind == kind && parts.back().part.name == name) return;
    parts.push_back({{kind, std::move(name)}, byte});
  }

  MessageName name_of(std::size_t index) const {
    return index < names_.size() ? names_[index] : usual_name(prompt_, index);
  }
  PromptPart::Kind kind_of(std::size_t index) const {
    return prompt_.messages[index].role == Role::kSystem ? PromptPart::Kind::kSystem
                                                         : PromptPart::Kind::kMessage;
  }
  static std::string with_role(std::string path, const MessageName& name) {
    return name.role.empty() ? path : path + " (" + name.role + ")";
  }

  void add_message(const PromptSpan& span) {
    const auto index = static_cast<std::size_t>(span.origin.index);
    const MessageName name = name_of(index);
    if (name.blocks.empty() || span.origin.offset < 0)
      return begin(kind_of(index), with_role(name.path, name));
    const auto offset = static_cast<std::size_t>(span.origin.offset);
    const std::string list = kind_of(index) == PromptPart::Kind::kSystem && name.path == "system"
                                 ? name.path
                                 : name.path + ".content";
    for (std::size_t i = 0; i < name.blocks.size(); ++i) {
      const std::size_t block_end = i + 1 < name.blocks.size() ? name.blocks[i + 1].begin : std::string::npos;
      if (block_end <= offset || name.blocks[i].begin >= offset + span.text.size()) continue;
      const std::size_t skipped = std::max(name.blocks[i].begin, offset) - offset;
      begin_at(rendered_.text.size() + skipped, kind_of(index),
               with_role(numbered_name(list, name.blocks[i].index), name));
    }
  }

  void add_call(const PromptOrigin& origin) {
    const auto index = static_cast<std::size_t>(origin.index);
    const auto& calls = prompt_.messages[index].tool_calls;
    const std::string& called = calls[static_cast<std::size_t>(origin.call)].name;
    begin(PromptPart::Kind::kMessage, with_role(name_of(index).path, name_of(index)) + ", the call of " +
                                          escape_for_message(called, kMostNameBytes));
  }

  void add_tool(std::size_t index) {
    std::string name = numbered_name("tools", index);
    if (index < rendered_.tools.size() && !rendered_.tools[index].empty())
      name += " " + rendered_.tools[index];
    begin(PromptPart::Kind::kTool, std::move(name));
  }

  const ChatPrompt& prompt_;
  std::span<const MessageName> names_;
  RenderedParts& rendered_;
};

// ---- text over tokens

// How many bytes of the text at `at` a token stands for.
std::size_t bytes_of_text(std::string_view text, std::size_t at, std::string_view token, bool is_control) {
  const std::string_view rest = text.substr(std::min(at, text.size()));
  if (rest.starts_with(token)) return token.size();
  if (token.starts_with(' ') && rest.starts_with(token.substr(1))) return token.size() - 1;
  if (is_control || token.empty()) return 0;
  const std::size_t found = rest.substr(0, token.size() + kMostBytesSkipped).find(token);
  return found == std::string_view::npos ? std::min(token.size(), rest.size()) : found + token.size();
}

std::string_view known_bytes(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  return id >= 0 && id < tokenizer.vocabulary_size() ? tokenizer.token_bytes(id) : std::string_view();
}

std::string text_between(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens,
                         std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < std::min(end, tokens.size()); ++i)
    text += known_bytes(tokenizer, tokens[i]);
  return text;
}

// A byte of a prompt, by its token.
struct BytePlace {
  std::size_t token = 0, offset = 0;
};

BytePlace go_on(const tokenizer::Tokenizer& tokenizer, const PromptWithAnswer& tokens, std::size_t token,
                std::size_t num_bytes) {
  while (token < tokens.size()) {
    const std::size_t length = known_bytes(tokenizer, tokens[token]).size();
    if (num_bytes < length) break;
    num_bytes -= length;
    ++token;
  }
  return {token, token < tokens.size() ? num_bytes : 0};
}

// ---- places within a part

// "parameters.properties.path.description": where a JSON text that ends somewhere has come to. Empty where it
// is none.
class JsonPlace {
 public:
  static std::string of(std::string_view text) {
    JsonPlace place;
    if (!place.read(text)) return {};
    return place.path();
  }

 private:
  struct Level {
    bool is_object = true;
    std::string name = {};
    std::size_t index = 0;
    bool awaits_value = false;
  };

  bool read(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n[");
    if (first == std::string_view::npos || text[first] != '{') return false;
    for (std::size_t at = first; at < text.size(); ++at) {
      switch (text[at]) {
        case '{': levels_.push_back({.is_object = true}); break;
        case '[': levels_.push_back({.is_object = false}); break;
        case '}':
        case ']':
          if (!levels_.empty()) levels_.pop_back();
          break;
        case ':':
          if (levels_.empty() || !levels_.back().is_object) return false;
          levels_.back().awaits_value = true;
          break;
        case ',':
          if (levels_.empty()) return true;
          ++levels_.back().index;
          levels_.back().awaits_value = false;
          levels_.back().name.clear();
          break;
        case '"': {
          const std::size_t begin = at + 1;
          for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
          if (levels_.empty()) return false;
          Level& level = levels_.back();
          const bool is_whole = at < text.size();
          if (level.is_object && !level.awaits_value && is_whole)
            level.name = std::string(text.substr(begin, at - begin));
          break;
        }
        default: break;
      }
    }
    return true;
  }

  std::string path() const {
    std::string path;
    std::size_t num_steps = 0;
    for (std::size_t i = 0; i < levels_.size() && num_steps < kMostSteps; ++i) {
      const Level& level = levels_[i];
      const bool is_wrapper = i == 0 && level.is_object && level.name == "function";
      if (is_wrapper) continue;
      if (!level.is_object) {
        path += "[" + std::to_string(level.index) + "]";
      } else if (!level.name.empty()) {
        path += (path.empty() ? "" : ".") + escape_for_message(level.name, kMostNameBytes);
      }
      ++num_steps;
    }
    return path;
  }

  std::vector<Level> levels_;
};

PromptPart place_of(const tokenizer::Tokenizer& tokenizer, const PromptParts& parts,
                    const PromptWithAnswer& tokens, const BytePlace& byte) {
  if (byte.token >= tokens.size()) return {PromptPart::Kind::kEnd, "the end"};
  if (byte.token >= tokens.prompt.size()) return {PromptPart::Kind::kAnswer, "the answer"};
  const auto next =
      std::find_if(parts.parts().begin(), parts.parts().end(), [&](const PromptParts::Part& part) {
        return std::pair(part.token, part.num_bytes_before) > std::pair(byte.token, byte.offset);
      });
  if (next == parts.parts().begin()) return {};
  const PromptParts::Part& part = *std::prev(next);
  PromptPart place = part.part;
  if (place.kind == PromptPart::Kind::kTemplate) return place;
  std::string before = text_between(tokenizer, tokens, part.token, byte.token);
  before += known_bytes(tokenizer, tokens[byte.token]).substr(0, byte.offset);
  before.erase(0, std::min(part.num_bytes_before, before.size()));
  if (place.kind == PromptPart::Kind::kTool) {
    const std::string within = JsonPlace::of(before);
    if (!within.empty()) place.name += ", " + within;
    return place;
  }
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  if (line > 1) place.name += ", line " + std::to_string(line);
  return place;
}

}  // namespace

std::optional<RenderedParts> render_parts(const ChatPrompt& prompt, std::span<const MessageName> names,
                                          std::int64_t unix_time_s, const tokenizer::Tokenizer& tokenizer) {
  if (prompt.messages.empty()) return std::nullopt;
  TemplateInputs inputs(unix_time_s, prompt.template_values);
  inputs.tools = prompt.tools;
  const std::size_t num_rendered = prompt.messages.size() - (prompt.continue_answer ? 1 : 0);
  const auto spans = tokenizer.apply_chat_template(std::span(prompt.messages).first(num_rendered), inputs);
  if (!spans) return std::nullopt;
  RenderedParts rendered;
  rendered.tools = names_of_tools(prompt.tools);
  rendered.values = prompt.template_values;
  PartCollector collector(prompt, names, rendered);
  for (const PromptSpan& span : *spans) collector.add(span);
  if (prompt.continue_answer) {
    collector.add({prompt.messages.back().content,
                   true,
                   -1,
                   {.kind = PromptOrigin::Kind::kMessage,
                    .index = static_cast<std::int32_t>(num_rendered),
                    .offset = 0}});
  }
  collector.finish();
  return rendered;
}

PromptParts::PromptParts(const RenderedParts& rendered, std::span<const TokenId> token_ids,
                         const tokenizer::Tokenizer& tokenizer)
    : tools_(rendered.tools), values_(rendered.values) {
  std::size_t at = 0, next = 0;
  for (std::size_t token = 0; token < token_ids.size() && next < rendered.parts.size(); ++token) {
    const std::string_view bytes = known_bytes(tokenizer, token_ids[token]);
    const std::size_t length =
        bytes_of_text(rendered.text, at, bytes, tokenizer.is_control(token_ids[token]));
    for (; next < rendered.parts.size() && rendered.parts[next].begin < at + length; ++next) {
      const std::size_t within = rendered.parts[next].begin - std::min(at, rendered.parts[next].begin);
      const std::size_t added = bytes.size() > length ? bytes.size() - length : 0;
      parts_.push_back({rendered.parts[next].part, token, within == 0 ? 0 : within + added});
    }
    at += length;
  }
  if (!parts_.empty()) parts_.front().token = parts_.front().num_bytes_before = 0;
}

DifferingPlaces differing_places(const tokenizer::Tokenizer& tokenizer, const PromptParts& my_parts,
                                 const PromptWithAnswer& mine, const PromptParts& their_parts,
                                 const PromptWithAnswer& theirs, std::size_t num_common) {
  const std::string my_text = text_between(tokenizer, mine, num_common, num_common + kMostTokensCompared);
  const std::string their_text =
      text_between(tokenizer, theirs, num_common, num_common + kMostTokensCompared);
  const auto differs = std::mismatch(my_text.begin(), my_text.end(), their_text.begin(), their_text.end());
  const auto num_bytes = static_cast<std::size_t>(differs.first - my_text.begin());
  const auto place = [&](const PromptParts& parts, const PromptWithAnswer& tokens) {
    return parts.empty()
               ? PromptPart{}
               : place_of(tokenizer, parts, tokens, go_on(tokenizer, tokens, num_common, num_bytes));
  };
  return {place(my_parts, mine), place(their_parts, theirs)};
}

ToolChange tool_change(std::span<const std::string> mine, std::span<const std::string> theirs) {
  if (std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end())) return ToolChange::kNone;
  std::vector<std::string> my_names(mine.begin(), mine.end()), their_names(theirs.begin(), theirs.end());
  std::sort(my_names.begin(), my_names.end());
  std::sort(their_names.begin(), their_names.end());
  if (my_names == their_names) return ToolChange::kReordered;
  if (std::includes(my_names.begin(), my_names.end(), their_names.begin(), their_names.end()))
    return ToolChange::kAdded;
  if (std::includes(their_names.begin(), their_names.end(), my_names.begin(), my_names.end()))
    return ToolChange::kLeftOut;
  return ToolChange::kReplaced;
}

}  // namespace octavo::app
