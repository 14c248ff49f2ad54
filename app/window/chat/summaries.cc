#include "app/window/chat/summaries.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/text.h"

namespace octavo::app {

void Summaries::begin(ChatRecord& record, Engine& engine, WantedSummary wanted) {
  GenerationRequest request;
  request.prompt = std::move(wanted.prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = wanted.max_tokens;
  const RequestId request_id = engine.submit(std::move(request));
  under_way_[request_id] = {.chat_id = record.id, .after = wanted.after, .engine = &engine, .text = {}};
  record.summary_under_way = "";
}

void Summaries::stop(ChatId chat_id) {
  std::erase_if(under_way_, [&](const auto& entry) {
    if (entry.second.chat_id != chat_id) return false;
    entry.second.engine->cancel(entry.first);
    if (ChatRecord* record = chats_.change(chat_id, Changed::kHead)) record->summary_under_way.reset();
    return true;
  });
}

void Summaries::stop_all() {
  while (!under_way_.empty()) stop(under_way_.begin()->second.chat_id);
}

void Summaries::forget_all() {
  for (const auto& [request_id, summary] : std::exchange(under_way_, {})) {
    if (ChatRecord* record = chats_.change(summary.chat_id, Changed::kHead))
      record->summary_under_way.reset();
  }
}

void Summaries::apply(const ui::actions::ChangeSummary& a) {
  const ChatRecord* known = chats_.find(a.chat_id);
  const Message* first = known != nullptr ? known->chat.find(known->chat.context_begin) : nullptr;
  if (first == nullptr) return;
  chats_.change(a.chat_id, Changed::kHead)->chat.set_summary(first->parent, sanitise_utf8(a.text));
}

bool Summaries::uses(const Engine& engine) const {
  return std::any_of(under_way_.begin(), under_way_.end(),
                     [&](const auto& entry) { return entry.second.engine == &engine; });
}

bool Summaries::fold(const EngineEvent& event) {
  const auto found = under_way_.find(request_id_of(event));
  if (found == under_way_.end()) return false;
  UnderWay& summary = found->second;
  if (const auto* tokens = std::get_if<TokensGenerated>(&event)) {
    summary.text += tokens->text;
    if (ChatRecord* record = chats_.change(summary.chat_id, Changed::kHead))
      record->summary_under_way = summary.text;
  } else if (const auto* output = std::get_if<OutputFinished>(&event)) {
    summary.whole =
        output->finish_reason == FinishReason::kStop || output->finish_reason == FinishReason::kLength;
  } else if (const auto* finished = std::get_if<RequestFinished>(&event)) {
    end(finished->request_id, summary.whole ? "" : "it was interrupted");
  } else if (const auto* failed = std::get_if<RequestFailed>(&event)) {
    end(failed->request_id, sanitise_utf8(failed->error.message));
  }
  return true;
}

void Summaries::end(RequestId request_id, const std::string& error) {
  const UnderWay summary = std::move(under_way_.extract(request_id).mapped());
  ChatRecord* record = chats_.change(summary.chat_id, Changed::kHead);
  if (record == nullptr) return;
  record->summary_under_way.reset();
  const std::size_t begin = summary.text.find_first_not_of(" \n\t");
  std::string problem = error;
  if (problem.empty() && begin == std::string::npos) problem = "the model wrote nothing";
  if (problem.empty()) record->chat.set_summary(summary.after, summary.text.substr(begin));
  when_ended_(summary.chat_id, problem.empty() ? ""
                                               : "No summary could be written (" + problem +
                                                     "); the oldest messages left the context without one.");
}

}  // namespace octavo::app
