// Which functions an answer asks to be called, in the marks that models write:
//
//   <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>           kHermes: Hermes, Qwen 2.5 and 3
//   the same, or <code>f(k="v")</code>                                     kHermesOrCode: SmolLM3; statements
//                                                                          that only call known functions
//   <tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n            kFunctionTags: Qwen3-Coder,
//   Qwen 3.5
//   </function>\n</tool_call>
//   {"name": "f", "parameters": {...}}                                     kWholeJson: Llama 3.1; the whole
//                                                                          answer, or behind <|python_tag|>
//   [TOOL_CALLS][{"name": "f", "arguments": {...}}]                        kMistral
//   [TOOL_CALLS]f[ARGS]{...}
//   <|channel|>commentary to=functions.f <|constrain|>json<|message|>{...} kHarmony: gpt-oss; <|call|> ends
//   it
//   <|tool_call>call:f{k:<|"|>v<|"|>}<tool_call|>                          kGemma: Gemma 4
//   <tool_call>f\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>           kArgumentTags: GLM 4
//   </tool_call>
//   <｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{...}\n```      kDeepSeek: V3 and R1; V3.1 writes
//   f, <｜tool▁call▁end｜>                                                    the separator and {...}
//   <|tool_call|>[{"name": "f", "arguments": {...}}]                       kGranite: 3; also as kHermes: 4
//   <|tool_call_start|>[f(k="v")]<|tool_call_end|>                         kPython: LFM2
//   <atem:function_calls><atem:invoke name="f"><atem:parameter name="k">v  kInvokeTags: Muse; DeepSeek V3.2
//   </atem:parameter></atem:invoke></atem:function_calls>                  with ｜DSML｜ in place of atem:
//
// A call is told when all of it has come and its arguments are an object of JSON: what is not, is text as it
// was written, marks included. Blank space next to a call belongs to it. In streams calls are told as they
// come (CallsAreTold); joined, the pieces are the call as it is told whole.
//
// Many of these marks are control tokens, which are no text of an answer. Whoever has the ids puts those of
// tool_call_marks() back where they stood; without them kMistral, kGemma, kDeepSeek and kPython see nothing,
// and kGranite and kWholeJson only the forms without such marks. Not read: Python behind <|python_tag|>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/call_stream.h"
#include "engine/chat_template/json_outline.h"
#include "engine/chat_template/tag_stream.h"
#include "engine/chat_template/tool_arguments.h"

namespace octavo {

enum class ToolCallFormat : std::uint8_t {
  kHermes,
  kHermesOrCode,
  kFunctionTags,
  kWholeJson,
  kMistral,
  kHarmony,
  kGemma,
  kArgumentTags,
  kDeepSeek,
  kGranite,
  kPython,
  kInvokeTags,
};

// By the marks in a template; kHermes when it has none of them.
ToolCallFormat tool_call_format(std::string_view template_source);

// The marks of a format that are, or may be, tokens of their own.
std::span<const std::string_view> tool_call_marks(ToolCallFormat format);

// The function that a message of gpt-oss calls, by the header that ends where its text begins; empty: none.
std::string_view called_by_header(std::string_view answer, std::size_t message_begin);

// How calls are told: when they are whole, or as they come, where their form is JSON behind a mark
// (call_stream.h) or arguments between tags (tag_stream.h). A call that was told while it came and turns out
// not to be whole ends where it went wrong.
enum class CallsAreTold : std::uint8_t { kWhole, kAsTheyCome };

// Reads an answer, without its thinking, piece by piece; however it is cut, what is told adds up to the same.
// It holds back what may become a mark or belong to a call, at most kMostCallBytes, and takes time linear in
// the text.
//
// Thread: a value; one at a time.
class ToolCallReader {
 public:
  static constexpr std::size_t kMostCallBytes = std::size_t{4} << 20u;

  // `tools` are shared by the answers of one request; nullptr: none are known.
  explicit ToolCallReader(ToolCallFormat format, std::shared_ptr<const CallableTools> tools = nullptr,
                          CallsAreTold told = CallsAreTold::kWhole);

  std::vector<ToolCallPiece> add(std::string_view text);
  // The rest, when nothing more comes. A call that only lacks its last mark is one.
  std::vector<ToolCallPiece> end();

 private:
  enum class State : std::uint8_t { kText, kHead, kJson, kTail, kTags };
  // How a call goes on behind its first mark.
  enum class Body : std::uint8_t { kObject, kNamed, kHeader, kBetween, kTags };

  struct Opener {
    std::string_view mark;
    Body body = Body::kObject;
    std::string_view closer = {};  // that must follow; empty: the end of the object is the call's
  };
  static std::span<const Opener> openers_of(ToolCallFormat format);
  static std::span<const std::string_view> trailers_of(ToolCallFormat format);

  void read(bool is_final);
  bool step(bool is_final);
  bool find_call(bool is_final);
  bool read_head(bool is_final);
  bool read_json(bool is_final);
  bool stream_json(std::string_view text, bool is_final);
  bool leave_told_call(std::size_t end);
  bool read_tail(bool is_final);
  bool read_tags(bool is_final);
  bool stream_tags(bool is_final);

  bool begin_json(std::size_t begin, std::string name);
  bool begin_tags();
  bool finish_json(std::size_t end);
  bool finish(std::optional<std::vector<NamedArguments>> calls, std::size_t end);
  bool give_up();

  void give_text(std::string_view text);
  std::string_view rest() const { return std::string_view(held_).substr(at_); }
  const CallableTools& tools() const;

  ToolCallFormat format_;
  std::shared_ptr<const CallableTools> tools_;
  CallsAreTold told_;

  std::string held_;    // not yet told
  std::size_t at_ = 0;  // within held_; what is before is told
  State state_ = State::kText;
  bool at_beginning_ = true;   // of the answer, or behind a call that another may follow
  bool behind_call_ = false;   // with only blank space between
  std::string blanks_;         // at the end of the text that was told
  int num_long_failures_ = 0;  // calls that were none after all

  // Of the call that begins at at_; places count from there.
  Opener opener_ = {};
  std::string name_;
  std::size_t json_begin_ = 0, json_end_ = 0, scanned_ = 0;
  BracketCounter brackets_;
  std::optional<CallStream> stream_;  // none: what comes is told when it is whole
  std::optional<TagStream> tag_stream_;
  int num_ends_tried_ = 0;

  std::vector<ToolCallPiece> pieces_;
};

}  // namespace octavo
