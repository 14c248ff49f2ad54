#include "engine/chat_template/tool_calls.h"

#include <algorithm>
#include <array>
#include <utility>

namespace octavo {
namespace {

constexpr std::string_view kCallBlanks = " \t\r\n";
constexpr std::size_t kMostHeadBytes = 512;    // of what stands before an object
constexpr std::size_t kMostTailBytes = 512;    // of blank space and marks behind one
constexpr std::size_t kMostBlanksKept = 4096;  // more than these are text, whatever follows
constexpr std::size_t kLongFailureBytes = 256;
constexpr int kMostLongFailures = 16;  // then there are no calls any more: reading again costs time
constexpr int kMostEndsTried = 4;      // of a call whose values may speak of its last mark

constexpr std::string_view kToolCall = "<tool_call>", kToolCallEnd = "</tool_call>";
constexpr std::string_view kFunction = "<function=", kFunctionEnd = "</function>";
constexpr std::string_view kPythonTag = "<|python_tag|>";
constexpr std::string_view kMistralCalls = "[TOOL_CALLS]", kMistralArguments = "[ARGS]",
                           kMistralId = "[CALL_ID]";
constexpr std::string_view kHeaderBegin = "<|channel|>", kHeaderStart = "<|start|>",
                           kHeaderEnd = "<|message|>", kHeaderCall = "<|call|>";
constexpr std::string_view kFunctionRecipient = "to=functions.";
constexpr std::string_view kGemmaCall = "<|tool_call>", kGemmaCallEnd = "<tool_call|>",
                           kGemmaQuote = "<|\"|>";
constexpr std::string_view kDeepSeekCalls = "<｜tool▁calls▁begin｜>",
                           kDeepSeekCallsEnd = "<｜tool▁calls▁end｜>",
                           kDeepSeekCall = "<｜tool▁call▁begin｜>", kDeepSeekSeparator = "<｜tool▁sep｜>",
                           kDeepSeekCallEnd = "<｜tool▁call▁end｜>";
constexpr std::string_view kGraniteCall = "<|tool_call|>", kGraniteCallEnd = "<|/tool_call|>";
constexpr std::string_view kPythonCall = "<|tool_call_start|>", kPythonCallEnd = "<|tool_call_end|>";
constexpr std::string_view kCode = "<code>", kCodeEnd = "</code>";
constexpr std::string_view kMusePrefix = "atem:", kMuseCalls = "<atem:function_calls>",
                           kMuseCallsEnd = "</atem:function_calls>", kMuseInvoke = "<atem:invoke ",
                           kMuseInvokeEnd = "</atem:invoke>";
constexpr std::string_view kDsmlPrefix = "｜DSML｜", kDsmlCalls = "<｜DSML｜function_calls>",
                           kDsmlCallsEnd = "</｜DSML｜function_calls>", kDsmlInvoke = "<｜DSML｜invoke ",
                           kDsmlInvokeEnd = "</｜DSML｜invoke>";

enum class Match : std::uint8_t { kNo, kMaybe, kYes };

// Whether the mark stands at the beginning, or may when more comes.
Match match_mark(std::string_view text, std::string_view mark) {
  if (text.starts_with(mark)) return Match::kYes;
  return mark.starts_with(text) ? Match::kMaybe : Match::kNo;
}

std::size_t skip_call_blanks(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(kCallBlanks, at);
  return next == std::string_view::npos ? text.size() : next;
}

// A head that was read: the object begins behind it.
struct CallHead {
  Match match = Match::kNo;
  std::size_t json_begin = 0;
  std::string_view name = {};
};

// Where the object begins, behind blank space.
CallHead head_before_json(std::string_view text, std::size_t at, std::string_view name) {
  const std::size_t begin = skip_call_blanks(text, at);
  if (begin == text.size()) return {Match::kMaybe};
  if (text[begin] != '{' && (text[begin] != '[' || !name.empty())) return {Match::kNo};
  return {Match::kYes, begin, name};
}

// `[TOOL_CALLS]f[ARGS]{`, `[TOOL_CALLS]f[CALL_ID]123[ARGS]{`, `[TOOL_CALLS]f{`
CallHead mistral_head(std::string_view text) {
  const std::size_t begin = skip_call_blanks(text, kMistralCalls.size());
  const std::size_t end = text.find_first_of("[{", begin);
  if (end == std::string_view::npos) return {Match::kMaybe};
  const std::string_view name = without_blanks(text.substr(begin, end - begin));
  if (name.empty()) return head_before_json(text, end, {});
  if (!is_tool_name(name)) return {Match::kNo};
  std::size_t at = end;
  if (const Match id = match_mark(text.substr(at), kMistralId); id != Match::kNo) {
    const std::size_t id_end = text.find('[', at + 1);
    if (id == Match::kMaybe || id_end == std::string_view::npos) return {Match::kMaybe};
    at = id_end;
  }
  const Match arguments = match_mark(text.substr(at), kMistralArguments);
  if (arguments == Match::kMaybe) return {Match::kMaybe};
  return head_before_json(text, arguments == Match::kYes ? at + kMistralArguments.size() : at, name);
}

// `<｜tool▁call▁begin｜>f<｜tool▁sep｜>{`, or `function` there and f on a line of its own.
CallHead deepseek_head(std::string_view text) {
  std::size_t at = 0;
  if (text.starts_with(kDeepSeekCalls)) at = skip_call_blanks(text, kDeepSeekCalls.size());
  const Match call = match_mark(text.substr(at), kDeepSeekCall);
  if (call != Match::kYes) return {call};
  at += kDeepSeekCall.size();
  const std::size_t separator = text.find(kDeepSeekSeparator, at);
  if (separator == std::string_view::npos) return {Match::kMaybe};
  std::string_view name = without_blanks(text.substr(at, separator - at));
  at = separator + kDeepSeekSeparator.size();
  if (name == "function") {
    const std::size_t line_end = text.find('\n', at);
    const std::size_t end = std::min(line_end, text.find('{', at));
    if (end == std::string_view::npos) return {Match::kMaybe};
    if (end == line_end) {
      name = without_blanks(text.substr(at, end - at));
      at = end;
    }
  }
  if (!is_tool_name(name)) return {Match::kNo};
  at = skip_call_blanks(text, at);
  for (const std::string_view fence : {"```json", "```"}) {
    const Match fenced = match_mark(text.substr(at), fence);
    if (fenced == Match::kMaybe) return {Match::kMaybe};
    if (fenced == Match::kNo) continue;
    at += fence.size();
    break;
  }
  return head_before_json(text, at, name);
}

std::string_view function_of_header(std::string_view header) {
  const std::size_t recipient = header.rfind(kFunctionRecipient);
  if (recipient == std::string_view::npos) return {};
  header.remove_prefix(recipient + kFunctionRecipient.size());
  const std::string_view name = header.substr(0, header.find_first_of(" \t\r\n<"));
  return is_tool_name(name) ? name : std::string_view();
}

// Of calls whose arguments stand between tags; nullopt: in a writing of their own.
std::optional<CallTags> call_tags(ToolCallFormat format, std::string_view mark, std::string_view closer) {
  if (format == ToolCallFormat::kArgumentTags) {
    return CallTags{.begin = std::string(mark),
                    .end = std::string(closer),
                    .key_begin = "<arg_key>",
                    .key_end = "</arg_key>",
                    .value_begin = "<arg_value>",
                    .value_end = "</arg_value>"};
  }
  const bool is_one = mark == kFunction || mark == kMuseInvoke || mark == kDsmlInvoke;
  if (mark == kToolCall || mark == kFunction) {
    return CallTags{.begin = std::string(is_one ? "" : mark),
                    .end = std::string(is_one ? "" : closer),
                    .call_begin = std::string(kFunction),
                    .name_end = ">",
                    .key_begin = "<parameter=",
                    .key_end = ">",
                    .value_end = "</parameter>",
                    .call_end = std::string(kFunctionEnd),
                    .values_have_lines = true,
                    .values_speak_of_tags = true};
  }
  if (format != ToolCallFormat::kInvokeTags) return std::nullopt;
  const std::string prefix(closer.substr(2).starts_with(kDsmlPrefix) ? kDsmlPrefix : kMusePrefix);
  return CallTags{.begin = std::string(is_one ? "" : mark),
                  .end = std::string(is_one ? "" : closer),
                  .call_begin = "<" + prefix + "invoke name=\"",
                  .name_end = "\"",
                  .key_begin = "<" + prefix + "parameter name=\"",
                  .key_end = "\"",
                  .value_end = "</" + prefix + "parameter>",
                  .call_end = "</" + prefix + "invoke>",
                  .may_be_many = !is_one,
                  .have_attributes = true};
}

CallHead harmony_head(std::string_view text) {
  const std::size_t end = text.find(kHeaderEnd);
  if (end == std::string_view::npos) return {Match::kMaybe};
  const std::string_view name = function_of_header(text.substr(0, end));
  if (name.empty()) return {Match::kNo};
  return head_before_json(text, end + kHeaderEnd.size(), name);
}

}  // namespace

ToolCallFormat tool_call_format(std::string_view template_source) {
  const auto has = [&](std::string_view text) {
    return template_source.find(text) != std::string_view::npos;
  };
  if (has(kMuseCalls) || has(kMuseInvoke) || has(kDsmlPrefix)) return ToolCallFormat::kInvokeTags;
  if (has(kPythonCall) || has("<|tool_response_start|>")) return ToolCallFormat::kPython;
  if (has(kGemmaCall) || has("<|tool_response>")) return ToolCallFormat::kGemma;
  if (has(kDeepSeekCall) || has(kDeepSeekCalls) || has("<｜tool▁outputs▁begin｜>"))
    return ToolCallFormat::kDeepSeek;
  if (has(kHeaderBegin) && has(kHeaderEnd)) return ToolCallFormat::kHarmony;
  if (has(kMistralCalls) || has("[AVAILABLE_TOOLS]")) return ToolCallFormat::kMistral;
  if (has("<arg_key>") || has("<|observation|>")) return ToolCallFormat::kArgumentTags;
  if (has(kFunction)) return ToolCallFormat::kFunctionTags;
  if (has(kGraniteCall) || has("<|start_of_role|>")) return ToolCallFormat::kGranite;
  if (has(kToolCall)) return has(kCode) ? ToolCallFormat::kHermesOrCode : ToolCallFormat::kHermes;
  if (has(kPythonTag) || has("ipython")) return ToolCallFormat::kWholeJson;
  return ToolCallFormat::kHermes;
}

std::span<const std::string_view> tool_call_marks(ToolCallFormat format) {
  static constexpr std::array kTagMarks = {kToolCall, kToolCallEnd};
  static constexpr std::array<std::string_view, 6> kArgumentTagMarks = {
      kToolCall, kToolCallEnd, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};
  static constexpr std::array kMistralMarks = {kMistralCalls, kMistralArguments, kMistralId};
  static constexpr std::array kGemmaMarks = {kGemmaCall, kGemmaCallEnd, kGemmaQuote};
  static constexpr std::array kDeepSeekMarks = {kDeepSeekCalls, kDeepSeekCallsEnd, kDeepSeekCall,
                                                kDeepSeekSeparator, kDeepSeekCallEnd};
  static constexpr std::array kGraniteMarks = {kGraniteCall, kGraniteCallEnd, kToolCall, kToolCallEnd};
  static constexpr std::array kPythonMarks = {kPythonCall, kPythonCallEnd};
  static constexpr std::array kWholeJsonMarks = {kPythonTag};
  static constexpr std::array kCodeMarks = {kToolCall, kToolCallEnd, kCode, kCodeEnd};
  static constexpr std::array kInvokeMarks = {kMuseCalls, kMuseCallsEnd, kDsmlPrefix};
  switch (format) {
    case ToolCallFormat::kHermesOrCode: return kCodeMarks;
    case ToolCallFormat::kInvokeTags: return kInvokeMarks;
    case ToolCallFormat::kHermes:
    case ToolCallFormat::kFunctionTags: return kTagMarks;
    case ToolCallFormat::kWholeJson: return kWholeJsonMarks;
    case ToolCallFormat::kMistral: return kMistralMarks;
    case ToolCallFormat::kHarmony: return {};  // of its messages: text already (answer_parts.h)
    case ToolCallFormat::kGemma: return kGemmaMarks;
    case ToolCallFormat::kArgumentTags: return kArgumentTagMarks;
    case ToolCallFormat::kDeepSeek: return kDeepSeekMarks;
    case ToolCallFormat::kGranite: return kGraniteMarks;
    case ToolCallFormat::kPython: return kPythonMarks;
  }
  return {};
}

std::string_view called_by_header(std::string_view answer, std::size_t message_begin) {
  const std::string_view before = answer.substr(0, message_begin);
  const std::size_t header_end = before.rfind(kHeaderEnd);
  if (header_end == std::string_view::npos ||
      skip_call_blanks(before, header_end + kHeaderEnd.size()) != before.size())
    return {};
  std::string_view header = before.substr(0, header_end);
  header = header.substr(header.size() - std::min(header.size(), kMostHeadBytes));
  // What ends the message before, or another header.
  for (const std::string_view mark : {kHeaderEnd, std::string_view("<|end|>"), kHeaderCall}) {
    const std::size_t last = header.rfind(mark);
    if (last != std::string_view::npos) header.remove_prefix(last + mark.size());
  }
  return function_of_header(header);
}

// The longer of two that begin alike is first.
std::span<const ToolCallReader::Opener> ToolCallReader::openers_of(ToolCallFormat format) {
  static constexpr std::array kHermesOpeners = {Opener{kToolCall, Body::kBetween, kToolCallEnd}};
  static constexpr std::array kFunctionTagOpeners = {Opener{kToolCall, Body::kBetween, kToolCallEnd},
                                                     Opener{kFunction, Body::kTags, kFunctionEnd}};
  static constexpr std::array kWholeJsonOpeners = {Opener{kPythonTag}};
  static constexpr std::array kMistralOpeners = {Opener{kMistralCalls, Body::kNamed}};
  static constexpr std::array kHarmonyOpeners = {Opener{kHeaderBegin, Body::kHeader, kHeaderCall},
                                                 Opener{kHeaderStart, Body::kHeader, kHeaderCall}};
  static constexpr std::array kGemmaOpeners = {Opener{kGemmaCall, Body::kTags, kGemmaCallEnd}};
  static constexpr std::array kDeepSeekOpeners = {Opener{kDeepSeekCalls, Body::kNamed, kDeepSeekCallEnd},
                                                  Opener{kDeepSeekCall, Body::kNamed, kDeepSeekCallEnd}};
  static constexpr std::array kGraniteOpeners = {Opener{kGraniteCall},
                                                 Opener{kToolCall, Body::kBetween, kToolCallEnd}};
  static constexpr std::array kPythonOpeners = {Opener{kPythonCall, Body::kTags, kPythonCallEnd}};
  static constexpr std::array kCodeOpeners = {Opener{kToolCall, Body::kBetween, kToolCallEnd},
                                              Opener{kCode, Body::kTags, kCodeEnd}};
  static constexpr std::array kInvokeOpeners = {
      Opener{kMuseCalls, Body::kTags, kMuseCallsEnd}, Opener{kMuseInvoke, Body::kTags, kMuseInvokeEnd},
      Opener{kDsmlCalls, Body::kTags, kDsmlCallsEnd}, Opener{kDsmlInvoke, Body::kTags, kDsmlInvokeEnd}};
  switch (format) {
    case ToolCallFormat::kHermesOrCode: return kCodeOpeners;
    case ToolCallFormat::kInvokeTags: return kInvokeOpeners;
    case ToolCallFormat::kHermes:
    case ToolCallFormat::kArgumentTags: return kHermesOpeners;
    case ToolCallFormat::kFunctionTags: return kFunctionTagOpeners;
    case ToolCallFormat::kWholeJson: return kWholeJsonOpeners;
    case ToolCallFormat::kMistral: return kMistralOpeners;
    case ToolCallFormat::kHarmony: return kHarmonyOpeners;
    case ToolCallFormat::kGemma: return kGemmaOpeners;
    case ToolCallFormat::kDeepSeek: return kDeepSeekOpeners;
    case ToolCallFormat::kGranite: return kGraniteOpeners;
    case ToolCallFormat::kPython: return kPythonOpeners;
  }
  return {};
}

// Marks that may follow a call and say nothing.
std::span<const std::string_view> ToolCallReader::trailers_of(ToolCallFormat format) {
  static constexpr std::array kFunctionTagTrailers = {kToolCallEnd};
  static constexpr std::array kDeepSeekTrailers = {kDeepSeekCallsEnd};
  static constexpr std::array kGraniteTrailers = {kGraniteCallEnd, kToolCallEnd};
  switch (format) {
    case ToolCallFormat::kFunctionTags: return kFunctionTagTrailers;
    case ToolCallFormat::kDeepSeek: return kDeepSeekTrailers;
    case ToolCallFormat::kGranite: return kGraniteTrailers;
    default: return {};
  }
}

ToolCallReader::ToolCallReader(ToolCallFormat format, std::shared_ptr<const CallableTools> tools,
                               CallsAreTold told)
    : format_(format), tools_(std::move(tools)), told_(told) {}

const CallableTools& ToolCallReader::tools() const {
  static const CallableTools kNone;
  return tools_ == nullptr ? kNone : *tools_;
}

std::vector<ToolCallPiece> ToolCallReader::add(std::string_view text) {
  held_ += text;
  read(/*is_final=*/false);
  return std::exchange(pieces_, {});
}

std::vector<ToolCallPiece> ToolCallReader::end() {
  read(/*is_final=*/true);
  if (!behind_call_ && !blanks_.empty())
    pieces_.push_back({ToolCallPiece::Kind::kText, std::exchange(blanks_, {})});
  return std::exchange(pieces_, {});
}

void ToolCallReader::read(bool is_final) {
  while (step(is_final)) {
  }
  held_.erase(0, at_);
  at_ = 0;
}

// True when there is more to do.
bool ToolCallReader::step(bool is_final) {
  switch (state_) {
    case State::kText: return find_call(is_final);
    case State::kHead: return read_head(is_final);
    case State::kJson: return read_json(is_final);
    case State::kTail: return read_tail(is_final);
    case State::kTags: return read_tags(is_final);
  }
  return false;
}

bool ToolCallReader::find_call(bool is_final) {
  if (num_long_failures_ >= kMostLongFailures) {
    give_text(rest());
    at_ = held_.size();
    return false;
  }
  if (format_ == ToolCallFormat::kWholeJson && at_beginning_) {
    const std::size_t first = skip_call_blanks(rest(), 0);
    if (first == rest().size() && first < kMostBlanksKept && !is_final) return false;
    if (first < kMostBlanksKept && rest().substr(first).starts_with('{')) {
      give_text(rest().substr(0, first));
      at_ += first;
      opener_ = {};
      state_ = State::kHead;
      return true;
    }
    at_beginning_ = false;
  }
  const std::size_t mark = std::min(rest().find_first_of("<["), rest().size());
  give_text(rest().substr(0, mark));
  at_ += mark;
  if (rest().empty()) return false;
  bool may_be_mark = false;
  for (const Opener& opener : openers_of(format_)) {
    const Match match = match_mark(rest(), opener.mark);
    may_be_mark = may_be_mark || match == Match::kMaybe;
    if (match != Match::kYes) continue;
    opener_ = opener;
    state_ = State::kHead;
    return true;
  }
  for (const std::string_view trailer :
       behind_call_ ? trailers_of(format_) : std::span<const std::string_view>()) {
    const Match match = match_mark(rest(), trailer);
    may_be_mark = may_be_mark || match == Match::kMaybe;
    if (match != Match::kYes) continue;
    at_ += trailer.size();
    return true;
  }
  if (may_be_mark && !is_final) return false;
  give_text(rest().substr(0, 1));
  ++at_;
  return true;
}

// What stands between the first mark and the arguments.
bool ToolCallReader::read_head(bool is_final) {
  scanned_ = 0;
  const std::string_view text = rest().substr(0, kMostHeadBytes);
  CallHead head;
  switch (opener_.body) {
    case Body::kObject: {
      head = head_before_json(text, opener_.mark.size(), {});
      if (opener_.mark.empty() && head.match == Match::kYes) {  // JSON may be an answer, too
        const std::size_t key = skip_call_blanks(text, 1);
        head.match = Match::kNo;
        for (const std::string_view name : {"\"name\"", "\"type\"", "\"function\""})
          head.match = std::max(head.match, match_mark(text.substr(key), name));
      }
      break;
    }
    case Body::kNamed:
      head = format_ == ToolCallFormat::kMistral ? mistral_head(text) : deepseek_head(text);
      break;
    case Body::kHeader: head = harmony_head(text); break;
    case Body::kTags: return begin_tags();
    case Body::kBetween: {
      head = head_before_json(text, opener_.mark.size(), {});
      if (head.match != Match::kNo) break;
      const std::string_view body = text.substr(skip_call_blanks(text, opener_.mark.size()));
      const Match tags = match_mark(body, kFunction);
      if (tags == Match::kYes || (format_ == ToolCallFormat::kArgumentTags && tags == Match::kNo))
        return begin_tags();
      head.match = tags;
      break;
    }
  }
  if (head.match == Match::kYes) return begin_json(head.json_begin, std::string(head.name));
  if (head.match == Match::kMaybe && !is_final && text.size() < kMostHeadBytes) return false;
  return give_up();
}

bool ToolCallReader::begin_json(std::size_t begin, std::string name) {
  name_ = std::move(name);
  json_begin_ = scanned_ = begin;
  brackets_ = {};
  stream_.reset();
  // JSON without a mark may be the answer itself.
  if (told_ == CallsAreTold::kAsTheyCome && !opener_.mark.empty()) stream_.emplace(name_);
  state_ = State::kJson;
  return true;
}

bool ToolCallReader::begin_tags() {
  scanned_ = opener_.mark.size();
  num_ends_tried_ = 0;
  tag_stream_.reset();
  if (told_ == CallsAreTold::kAsTheyCome) {
    if (auto tags = call_tags(format_, opener_.mark, opener_.closer))
      tag_stream_.emplace(*std::move(tags), tools_);
  }
  state_ = State::kTags;
  return true;
}

bool ToolCallReader::read_json(bool is_final) {
  const std::string_view text = rest().substr(0, kMostCallBytes);
  if (stream_) return stream_json(text, is_final);
  const auto length = brackets_.add(text.substr(scanned_));
  if (!length) {
    scanned_ = text.size();
    return !is_final && text.size() < kMostCallBytes ? false : give_up();
  }
  json_end_ = scanned_ += *length;
  state_ = State::kTail;
  return true;
}

bool ToolCallReader::stream_json(std::string_view text, bool is_final) {
  while (scanned_ < text.size()) {
    const CallStream::State state = stream_->add(text[scanned_], pieces_);
    if (state == CallStream::State::kGoesOn) {
      ++scanned_;
    } else if (state == CallStream::State::kEnded) {
      json_end_ = ++scanned_;
      state_ = State::kTail;
      return true;
    } else if (stream_->has_told()) {
      return leave_told_call(scanned_ - stream_->num_held());
    } else {
      stream_.reset();  // it is no call, or is one by its end
      scanned_ = json_begin_;
      return true;
    }
  }
  if (!is_final && text.size() < kMostCallBytes) return false;
  if (!stream_->has_told()) return give_up();
  stream_->end(pieces_);
  return leave_told_call(scanned_);
}

// What follows a call that was told while it came is text, or another call.
bool ToolCallReader::leave_told_call(std::size_t end) {
  stream_.reset();
  at_ += end;
  blanks_.clear();
  behind_call_ = true;
  state_ = State::kText;
  return true;
}

bool ToolCallReader::read_tail(bool is_final) {
  const std::string_view text = rest().substr(0, json_end_ + kMostTailBytes);
  const auto wait = [&] { return text.size() < json_end_ + kMostTailBytes ? false : give_up(); };
  std::size_t at = skip_call_blanks(text, json_end_);
  if (opener_.mark.empty()) {  // nothing but another call may follow
    if (at < text.size() && text[at] == ';') {
      if (!finish_json(at + 1)) return give_up();
      return at_beginning_ = true;
    }
    if (at < rest().size() && (is_final || at < text.size())) return give_up();
    return is_final ? finish_json(at) || give_up() : wait();
  }
  if (opener_.closer.empty()) return finish_json(json_end_) || give_up();
  if (format_ == ToolCallFormat::kDeepSeek && at < text.size()) {
    const Match fence = match_mark(text.substr(at), "```");
    if (fence == Match::kMaybe && !is_final) return wait();
    if (fence == Match::kYes) at = skip_call_blanks(text, at + 3);
  }
  const Match closer = match_mark(text.substr(at), opener_.closer);
  if (closer == Match::kYes) return finish_json(at + opener_.closer.size()) || give_up();
  if (closer == Match::kNo) return give_up();
  return is_final && text.size() == rest().size() ? finish_json(text.size()) || give_up() : wait();
}

bool ToolCallReader::stream_tags(bool is_final) {
  const bool is_cut = rest().size() > kMostCallBytes;
  const TagStream::State state =
      tag_stream_->read(rest().substr(0, kMostCallBytes), is_final || is_cut, pieces_);
  if (state == TagStream::State::kGoesOn) return false;
  const bool is_left = state == TagStream::State::kEnded || tag_stream_->has_told();
  const std::size_t end = tag_stream_->num_read();
  tag_stream_.reset();
  return is_left ? leave_told_call(end) : true;  // it is no call, or is one by its end
}

bool ToolCallReader::read_tags(bool is_final) {
  if (tag_stream_) return stream_tags(is_final);
  const std::string_view text = rest().substr(0, kMostCallBytes);
  // Marks of one call are a part of it.
  const bool is_of_call =
      opener_.mark == kFunction || opener_.mark == kMuseInvoke || opener_.mark == kDsmlInvoke;
  const std::size_t begin = is_of_call ? 0 : opener_.mark.size();
  const std::size_t closer = text.find(opener_.closer, scanned_);
  if (closer == std::string_view::npos && (!is_final || text.size() < rest().size())) {
    // The closer may have begun.
    scanned_ = std::max(scanned_, text.size() - std::min(text.size(), opener_.closer.size() - 1));
    return text.size() < kMostCallBytes ? false : give_up();
  }
  const std::size_t end = std::min(closer, text.size());
  const std::size_t call_end = closer == std::string_view::npos ? end : end + opener_.closer.size();
  const std::string_view body = text.substr(begin, (is_of_call ? call_end : end) - begin);
  const auto one = [](std::optional<NamedArguments> call) {
    return call ? std::optional(std::vector{*std::move(call)}) : std::nullopt;
  };
  std::optional<std::vector<NamedArguments>> calls;
  switch (format_) {
    case ToolCallFormat::kGemma: calls = one(read_gemma_call(body)); break;
    case ToolCallFormat::kPython:
      calls = read_python_calls(body);
      if (!calls) calls = read_json_calls(body);
      break;
    case ToolCallFormat::kHermesOrCode:
      if (opener_.mark == kCode) {
        calls = read_python_code(body, tools());
      } else {
        calls = one(read_function_tags(body, tools()));
      }
      break;
    case ToolCallFormat::kInvokeTags:
      calls = read_invoke_tags(
          body, opener_.closer.substr(2).starts_with(kDsmlPrefix) ? kDsmlPrefix : kMusePrefix, tools());
      break;
    case ToolCallFormat::kArgumentTags: calls = one(read_argument_tags(body, tools())); break;
    default: calls = one(read_function_tags(body, tools())); break;
  }
  if (calls) return finish(std::move(calls), call_end);
  scanned_ = call_end;
  return (closer != std::string_view::npos && ++num_ends_tried_ < kMostEndsTried) || give_up();
}

bool ToolCallReader::finish_json(std::size_t end) {
  if (stream_ && stream_->has_told()) return leave_told_call(end);
  const std::string_view json = rest().substr(json_begin_, json_end_ - json_begin_);
  if (!name_.empty()) {
    if (!is_json_object(json)) return false;
    return finish(std::vector{NamedArguments{name_, std::string(json)}}, end);
  }
  auto calls = read_json_calls(json);
  const bool must_be_known = opener_.mark.empty();
  if (calls && must_be_known &&
      !std::ranges::all_of(*calls, [&](const NamedArguments& call) { return tools().has(call.name); }))
    return false;
  return finish(std::move(calls), end);
}

bool ToolCallReader::finish(std::optional<std::vector<NamedArguments>> calls, std::size_t end) {
  if (!calls) return false;
  for (NamedArguments& call : *calls) {
    pieces_.push_back({ToolCallPiece::Kind::kCallBegun, std::move(call.name)});
    pieces_.push_back({ToolCallPiece::Kind::kArguments, std::move(call.arguments)});
    pieces_.push_back({ToolCallPiece::Kind::kCallEnded, {}});
  }
  at_ += end;
  blanks_.clear();
  behind_call_ = true;
  state_ = State::kText;
  return true;
}

// It was no call: its first character is text, and behind it a call may begin.
bool ToolCallReader::give_up() {
  if (state_ == State::kTail && stream_ && stream_->has_told()) return leave_told_call(json_end_);
  if (scanned_ > kLongFailureBytes) ++num_long_failures_;
  std::size_t num_bytes = 1;
  // What a header was for is no text.
  if (opener_.body == Body::kHeader) {
    const std::size_t header_end = rest().substr(0, kMostHeadBytes).find(kHeaderEnd);
    if (header_end != std::string_view::npos) at_ += header_end + kHeaderEnd.size(), num_bytes = 0;
  }
  give_text(rest().substr(0, num_bytes));
  at_ += std::min(num_bytes, rest().size());
  at_beginning_ = false;
  state_ = State::kText;
  return true;
}

void ToolCallReader::give_text(std::string_view text) {
  if (behind_call_) {
    text.remove_prefix(std::min(text.find_first_not_of(kCallBlanks), text.size()));
    if (text.empty()) return;
    behind_call_ = false;
  }
  const std::size_t last = text.find_last_not_of(kCallBlanks);
  if (last != std::string_view::npos) {
    std::string told = std::exchange(blanks_, {}) + std::string(text.substr(0, last + 1));
    text.remove_prefix(last + 1);
    if (!pieces_.empty() && pieces_.back().kind == ToolCallPiece::Kind::kText) {
      pieces_.back().text += told;
    } else {
      pieces_.push_back({ToolCallPiece::Kind::kText, std::move(told)});
    }
  }
  blanks_ += text;
  if (blanks_.size() <= kMostBlanksKept) return;
  const std::size_t excess = blanks_.size() - kMostBlanksKept;
  pieces_.push_back({ToolCallPiece::Kind::kText, blanks_.substr(0, excess)});
  blanks_.erase(0, excess);
}

}  // namespace octavo
