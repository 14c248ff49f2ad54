#include "app/window/two_models/two_models.h"

#include <algorithm>

#include "app/window/models/model_title.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string needs_sentence(const comparison::ComparisonNeeds& needs) {
  return "Takes " + bytes_text(needs.bytes_a) + " for A and " + bytes_text(needs.bytes_b) +
         " for B while it runs, beside the model in use; " + bytes_text(needs.free_bytes) + " are free.";
}

// The question of a chat's newest answer and everything before it, and the answer; empty without one.
std::vector<ChatMessage> newest_answer(const Chat& chat) {
  std::vector<ChatMessage> messages;
  if (!chat.system_prompt.empty()) messages.push_back({Role::kSystem, chat.system_prompt, {}});
  std::size_t end = 0;
  for (const MessageId id : chat.active_path()) {
    const Message& message = *chat.find(id);
    if (message.content.empty()) continue;
    messages.push_back({message.role, message.content, {}});
    if (message.role == Role::kAssistant) end = messages.size();
  }
  messages.resize(end);
  return messages;
}

void add_path(Chat& chat, const std::vector<ChatMessage>& messages, std::string begun) {
  MessageId last = kRootMessage;
  for (const ChatMessage& message : messages) {
    if (message.role == Role::kSystem) {
      chat.system_prompt = message.content;
    } else {
      last = chat.append(last, message.role, message.content);
      if (message.role == Role::kAssistant) chat.find(last)->finish_reason = FinishReason::kStop;
    }
  }
  last = chat.append(last, Role::kAssistant, std::move(begun));
  chat.find(last)->finish_reason = FinishReason::kLength;  // it can be continued
}

}  // namespace

void TwoModels::set_first(const std::string& path) {
  if (first_path_ == path) return;
  first_path_ = path;
  look();
}

comparison::ComparisonOptions TwoModels::options() const {
  comparison::ComparisonOptions options{.a = base_, .b = base_};
  options.a.model = first_path_;
  options.b.model = shown().second_path;
  options.context = shown().context;
  return options;
}

// Into both files, as soon as both are known.
void TwoModels::look() {
  ui::TwoModelsState& state = shown();
  ++newest_look_;
  state.needs.clear();
  state.can_compare = false;
  state.looking = !first_path_.empty() && !state.second_path.empty();
  if (state.looking) effects_.jobs.push_back(LookAtTwoModels{options(), newest_look_});
}

// ---- what a person asked

void TwoModels::apply(const ui::actions::ShowTwoModels& a) {
  shown().open = a.open;
  if (a.open) state_.workspace = ui::Workspace::kCompare;
}

void TwoModels::apply(const ui::actions::TakeSecondModel& a) {
  shown().second_path = a.path;
  shown().second_name = model_title(a.path, {});
  shown().problem.clear();
  look();
}

void TwoModels::apply(const ui::actions::ChangeWindowOfText& a) {
  shown().context = std::max(a.context, 2);
  look();
}

void TwoModels::apply(const ui::actions::ReadTextToCompare& a) {
  shown().problem.clear();
  effects_.jobs.push_back(ReadTextFile{a.path});
}

void TwoModels::put_text(std::string text, std::string source) {
  shown().text = std::move(text);
  shown().source = std::move(source);
  ++shown().text_serial;
  shown().problem.clear();
}

void TwoModels::apply(const ui::actions::TakeAnswerAsText&) {
  const Chat* chat = chats_.chat(chats_.active_chat());
  std::vector<ChatMessage> messages = chat != nullptr ? newest_answer(*chat) : std::vector<ChatMessage>();
  if (messages.size() < 2) {
    shown().problem = "The chat that is shown has no answer yet; ask it a question first.";
    return;
  }
  answer_ = std::move(messages);
  put_text(answer_.back().content, "Answer in “" + chat->display_title() + "”, with what came before it");
}

// A text that was changed since it was taken from a chat is a text like any other.
void TwoModels::apply(const ui::actions::CompareTwoModels& a) {
  ui::TwoModelsState& state = shown();
  if (running() || !state.can_compare) return;
  const bool is_answer = !answer_.empty() && a.text == answer_.back().content;
  if (!is_answer) answer_.clear();
  if (a.text != state.text) {
    state.text = a.text;
    state.source.clear();
  }
  compared_ = answer_;
  TextToCompare text = is_answer ? TextToCompare(answer_) : TextToCompare(a.text);
  effects_.jobs.push_back(CompareText{options(), std::move(text), ++newest_comparison_});
  state.phase = ui::TwoModelsPhase::kLoading;
  state.fraction = 0.0;
  state.is_cancelling = false;
  state.problem.clear();
}

void TwoModels::apply(const ui::actions::CancelTwoModels&) {
  if (!running()) return;
  shown().is_cancelling = true;
  effects_.cancel = true;
}

void TwoModels::apply(const ui::actions::ForkText& a) {
  const auto& result = shown().result;
  if (!result || a.token < result->fork_begin || a.token >= result->text.tokens.size()) return;
  const ui::ComparedColumn& text = result->text;
  const std::uint32_t begin =
      result->fork_begin < text.tokens.size() ? text.tokens[result->fork_begin].begin : 0;
  const std::string before = text.text.substr(begin, text.tokens[a.token].begin - begin);
  std::vector<ChatMessage> messages = compared_;
  if (messages.empty()) {
    messages.push_back({Role::kUser, "Continue this text.", {}});
  } else {
    messages.pop_back();
  }
  chats_.edit(chats_.begin(), [&](Chat& chat) { add_path(chat, messages, before + a.instead); });
}

// ---- what the worker reports

void TwoModels::take(TwoModelsReport report) {
  std::visit([this](auto& one) { take_one(one); }, report);
}

void TwoModels::take_one(TwoModelsSeen& report) {
  if (report.serial != newest_look_) return;
  ui::TwoModelsState& state = shown();
  state.looking = false;
  state.can_compare = report.needs.has_value();
  state.needs = report.needs ? needs_sentence(*report.needs) : std::string();
  state.problem = report.needs ? std::string() : sanitise_utf8(report.needs.error().message);
}

void TwoModels::take_one(TextFileRead& report) {
  if (!report.text) {
    shown().problem = sanitise_utf8(report.text.error().message);
    return;
  }
  answer_.clear();
  put_text(*std::move(report.text), report.name);
}

void TwoModels::take_one(TextCompared& report) {
  if (report.serial != newest_comparison_) return;
  ui::TwoModelsState& state = shown();
  state.phase = ui::TwoModelsPhase::kSetUp;
  state.is_cancelling = false;
  if (report.result) {
    state.result = *std::move(report.result);
    state.result->source = state.source;
    state.result->text.rewritten = static_cast<std::uint32_t>(report.serial);
  } else if (report.result.error().code != ErrorCode::kCancelled) {
    state.problem = sanitise_utf8(report.result.error().message);
  }
}

bool TwoModels::show_progress(const TwoModelsProgress& progress) {
  ui::TwoModelsState& state = shown();
  if (!running() || progress.phase == ui::TwoModelsPhase::kSetUp) return false;
  const bool changed = state.phase != progress.phase || state.fraction != progress.fraction;
  state.phase = progress.phase;
  state.fraction = progress.fraction;
  return changed;
}

}  // namespace octavo::app
