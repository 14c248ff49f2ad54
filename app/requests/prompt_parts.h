// Which part of a request each stretch of its prompt came from: the system text, a tool, a message, or the
// template itself. So a difference between two prompts is told in words that a client knows:
// "tools[3] edit_file, description", "system, line 3", "messages[5] (user)".
//
// Parts are found where templates are rendered (PromptOrigin), as bytes of the text, and are laid over the
// token ids when these are known.
//
// Thread: values and pure functions; any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/requests/prompt_difference.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// How a client knows a message that the template is given.
struct MessageName {
  struct Block {
    std::size_t begin = 0;  // in the message's content
    std::size_t index = 0;  // among the blocks that the client sent
  };

  std::string path;                // "system", "messages[5]", "input[2]"
  std::string role = {};           // as it is told; empty: the path says it
  std::vector<Block> blocks = {};  // where the content was sent in more than one; else empty
};

struct PromptPart {
  enum class Kind : std::uint8_t { kTemplate, kSystem, kTool, kMessage, kAnswer, kEnd };
  Kind kind = Kind::kTemplate;
  std::string name = {};
};

// A prompt as text, before it is token ids.
struct RenderedParts {
  struct Part {
    PromptPart part;
    std::size_t begin = 0;  // bytes
  };
  std::string text;
  std::vector<Part> parts;         // ascending; the first begins at 0
  std::vector<std::string> tools;  // names of the functions
  TemplateValues values = {};
};
// As the engine will render it.
//   names  of the prompt's messages; fewer than there are: "messages[i] (role)"
// nullopt: the template refuses it.
std::optional<RenderedParts> render_parts(const ChatPrompt& prompt, std::span<const MessageName> names,
                                          std::int64_t unix_time_s, const tokenizer::Tokenizer& tokenizer);

class PromptParts {
 public:
  struct Part {
    PromptPart part;
    std::size_t token = 0;             // that holds its first byte
    std::size_t num_bytes_before = 0;  // of that token, which are of the part before
  };

  PromptParts() = default;  // of a prompt of which nothing is known
  // Tokens that are not in the text (BOS), and spaces that a vocabulary adds, belong to what stands there.
  PromptParts(const RenderedParts& rendered, std::span<const TokenId> token_ids,
              const tokenizer::Tokenizer& tokenizer);

  bool empty() const { return parts_.empty(); }
  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<std::string>& tools() const { return tools_; }
  const TemplateValues& values() const { return values_; }

 private:
  std::vector<Part> parts_;  // ascending; the first begins at 0
  std::vector<std::string> tools_;
  TemplateValues values_;
};

// Where two prompts first differ, on both sides. A side whose parts are not known has no name.
struct DifferingPlaces {
  PromptPart mine, theirs;
};
//   num_common  tokens that are the same at the beginning
DifferingPlaces differing_places(const tokenizer::Tokenizer& tokenizer, const PromptParts& my_parts,
                                 const PromptWithAnswer& mine, const PromptParts& their_parts,
                                 const PromptWithAnswer& theirs, std::size_t num_common);

// What became of the tools that were offered.
enum class ToolChange : std::uint8_t { kNone, kReordered, kAdded, kLeftOut, kReplaced };
ToolChange tool_change(std::span<const std::string> mine, std::span<const std::string> theirs);

}  // namespace octavo::app
