#include "app/window/chat/opened_files.h"

#include <utility>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string imported_sentence(const ReadFile& file) {
  const std::size_t count = file.chats.size();
  return "Imported " + std::to_string(count) + (count == 1 ? " chat" : " chats") + " from " +
         escape_for_message(file.name) + "." + (file.left_out.empty() ? "" : " ") + file.left_out;
}

// "a, b and c"
std::string enumeration(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// One sentence about several files of which some could not be used.
std::string sentence_of(const std::vector<std::string>& problems) {
  if (problems.size() == 1) return problems.front() + ".";
  return problems.front() + "; " + std::to_string(problems.size() - 1) +
         (problems.size() == 2 ? " other file could not be used." : " other files could not be used.");
}

}  // namespace

void OpenedFiles::apply(const ui::actions::AttachFile& a) {
  effects_.files_to_read.push_back({.chat_id = a.chat_id, .as = ReadAs::kText, .paths = {a.path}});
}

void OpenedFiles::apply(const ui::actions::OpenFiles& a) {
  effects_.files_to_read.push_back({.chat_id = state_.active_chat, .as = ReadAs::kAny, .paths = a.paths});
}

void OpenedFiles::take(FilesRead read, const OpenElsewhere& open_elsewhere) {
  // They were asked for before there was a chat.
  if (read.chat_id == ChatId{}) read.chat_id = state_.active_chat;
  Outcomes outcomes;
  for (ReadFile& file : read.files) use(read.chat_id, std::move(file), open_elsewhere, outcomes);
  tell(outcomes);
}

void OpenedFiles::use(ChatId chat_id, ReadFile file, const OpenElsewhere& open_elsewhere,
                      Outcomes& outcomes) {
  switch (file.kind) {
    case FileKind::kModel:
    case FileKind::kRecording: return open_elsewhere(file);
    case FileKind::kChats:
      outcomes.imported.push_back(imported_sentence(file));
      chats_.add_imported(std::move(file.chats));
      return;
    case FileKind::kText: return attach(chat_id, std::move(file), outcomes);
    case FileKind::kUnusable: outcomes.problems.push_back(std::move(file.problem)); return;
  }
}

void OpenedFiles::attach(ChatId chat_id, ReadFile file, Outcomes& outcomes) {
  const std::string name = escape_for_message(file.name);
  std::string problem = drafts_.attach(chat_id, std::move(file));
  if (problem.empty()) {
    outcomes.attached.push_back(name);
  } else {
    outcomes.problems.push_back(std::move(problem));
  }
}

void OpenedFiles::tell(const Outcomes& outcomes) {
  if (!outcomes.problems.empty()) {
    state_.banner = ui::Banner{ui::BannerKind::kError, sentence_of(outcomes.problems)};
    return;
  }
  std::string done = outcomes.attached.empty() ? "" : "Attached " + enumeration(outcomes.attached) + ".";
  for (const std::string& sentence : outcomes.imported) done += (done.empty() ? "" : " ") + sentence;
  if (!done.empty()) state_.banner = ui::Banner{ui::BannerKind::kNotice, std::move(done)};
}

}  // namespace octavo::app
