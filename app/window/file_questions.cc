#include "app/window/file_questions.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "app/chat/chat.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

constexpr std::size_t kLongestFileName = 60;

// A title as a name that every file system takes.
std::string file_name_of(const std::string& title) {
  std::string name = first_line(title, kLongestFileName);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
               std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos;
      },
      '_');
  while (name.ends_with('.') || name.ends_with(' ')) name.pop_back();  // a dot of the extension's follows
  if (name.empty() || name.front() == '.') name = "_" + name;
  return name;
}

std::string as_folder(const std::filesystem::path& path) { return path.string() + "/"; }

// `action` again with the path that was chosen.
template <class Action>
FileQuestion save(const Action& action, std::string title, std::string name, std::string extension,
                  const std::filesystem::path& folder) {
  FileQuestion question{.title = std::move(title),
                        .button = "Save",
                        .note = "",
                        .nothing = "No other " + extension + " file here.",
                        .file_name = std::move(name) + extension,
                        .extensions = {extension},
                        .folder = as_folder(folder)};
  question.answer = [action](std::string path) -> ui::Action {
    Action chosen = action;
    chosen.path = std::move(path);
    return chosen;
  };
  return question;
}

// One for each export that asks.
std::optional<FileQuestion> ask(const act::ExportChat& a, const FileFolders& folders,
                                const ui::UiState& state) {
  const ui::ChatState* chat = ui::find_chat(state, a.chat_id);
  if (chat == nullptr) return std::nullopt;
  const bool json = a.format == act::ChatFormat::kJson;
  return save(a, json ? "Export this chat as JSON" : "Export this chat as Markdown",
              file_name_of(chat->title), json ? ".json" : ".md", folders.exports);
}

std::optional<FileQuestion> ask(const act::ExportAllChats& a, const FileFolders& folders,
                                const ui::UiState&) {
  return save(a, "Export all chats", "octavo-chats", ".json", folders.exports);
}

std::optional<FileQuestion> ask(const act::ExportComparison& a, const FileFolders& folders,
                                const ui::UiState& state) {
  if (state.comparison.columns.empty()) return std::nullopt;
  const bool json = a.format == act::ComparisonFormat::kJson;
  return save(a, json ? "Export this comparison as JSON" : "Export this comparison as Markdown", "comparison",
              json ? ".json" : ".md", folders.exports);
}

// While a vote is on nothing is asked: the batch says why it cannot be written.
std::optional<FileQuestion> ask(const act::ExportBatch& a, const FileFolders& folders,
                                const ui::UiState& state) {
  if (state.batch.rows.empty() || state.batch.vote) return std::nullopt;
  const bool json = a.format == act::BatchFormat::kJson;
  return save(a, json ? "Export this batch as JSON" : "Export this batch as CSV", "batch",
              json ? ".json" : ".csv", folders.exports);
}

// A picture of the window would show this question: it goes where recordings are.
std::optional<FileQuestion> ask(const act::ExportMemory& a, const FileFolders& folders, const ui::UiState&) {
  if (a.format == act::ExportFormat::kPng) return std::nullopt;
  if (a.format == act::ExportFormat::kLesson) {  // where “Open” begins, also before the first recording
    std::error_code ignored;
    std::filesystem::create_directories(folders.recordings, ignored);
    return save(a, "Export this chapter as a lesson", "octavo-lesson", ".rec", folders.recordings);
  }
  const bool json = a.format == act::ExportFormat::kJson;
  return save(a, json ? "Export blocks and tables as JSON" : "Export steps as CSV", "octavo-memory",
              json ? ".json" : ".csv", folders.exports);
}

std::optional<FileQuestion> ask(const act::ExportRequests& a, const FileFolders& folders,
                                const ui::UiState&) {
  const bool json = a.format == act::ExportFormat::kJson;
  return save(a, json ? "Export the requests as JSON" : "Export the requests as CSV", "octavo-requests",
              json ? ".json" : ".csv", folders.exports);
}

// Of an experiment that has found something.
template <class Action>
std::optional<FileQuestion> save_findings(const Action& a, const char* title, const char* ending,
                                          const FileFolders& folders, const ui::UiState& state) {
  const auto& experiments = state.memory_workspace.evaluation.experiments;
  if (a.index >= experiments.size() || experiments[a.index].findings == nullptr) return std::nullopt;
  return save(a, title, experiments[a.index].name, ending, folders.exports);
}

std::optional<FileQuestion> ask(const act::SavePlots& a, const FileFolders& folders,
                                const ui::UiState& state) {
  const bool png = a.kind == act::PictureKind::kPng;
  return save_findings(a, png ? "Save the plots as PNG" : "Save the plots as SVG", png ? ".png" : ".svg",
                       folders, state);
}

std::optional<FileQuestion> ask(const act::SaveFigures& a, const FileFolders& folders,
                                const ui::UiState& state) {
  const bool json = a.kind == act::TableKind::kJson;
  return save_findings(a, json ? "Save plots and figures as JSON" : "Save the figures as Markdown",
                       json ? ".json" : ".md", folders, state);
}

template <class Action>
concept Saves = requires(const Action& action, const FileFolders& folders, const ui::UiState& state) {
  ask(action, folders, state);
};

// One for each wish.
FileQuestion question_of(act::FileWish wish, const FileFolders& folders, const ui::UiState& state) {
  switch (wish) {
    case act::FileWish::kAttach:
      return {.title = "Attach a text file",
              .button = "Attach",
              .note = "The file is sent with your next message. You can also drop files on the window.",
              .nothing = "No matching file here.",
              .answer = [chat = state.active_chat](std::string path) -> ui::Action {
                return act::AttachFile{chat, std::move(path)};
              }};
    case act::FileWish::kImportChats:
      return {.title = "Import chats",
              .button = "Import",
              .note = "Chats that Octavo, ChatGPT or Open WebUI exported as JSON.",
              .nothing = "No matching folder or .json file here.",
              .extensions = {".json"},
              .folder = as_folder(folders.exports),
              .answer = [](std::string path) -> ui::Action { return act::ImportChats{std::move(path)}; }};
    case act::FileWish::kOpenRecording:
      return {.title = "Open a recording",
              .button = "Open",
              .note = "Make one with Record, or start octavo with --record FILE. Lessons open here, too.",
              .nothing = "No recording here.",
              .extensions = {".rec"},
              .folder = as_folder(folders.recordings),
              .newest_first = true,
              .answer = [](std::string path) -> ui::Action { return act::OpenRecording{std::move(path)}; }};
    case act::FileWish::kPrompts:
      return {.title = "Read prompts from a file",
              .button = "Read",
              .note = "A text with a prompt on each line, or a CSV file with a header.",
              .nothing = "No matching folder, .txt or .csv file here.",
              .extensions = {".txt", ".csv"},
              .answer = [](std::string path) -> ui::Action { return act::ReadPrompts{std::move(path)}; }};
    case act::FileWish::kTextToCompare:
      return {
          .title = "Read a text to compare",
          .button = "Read",
          .note = "Both models read the whole text, token by token.",
          .nothing = "No matching file here.",
          .answer = [](std::string path) -> ui::Action { return act::ReadTextToCompare{std::move(path)}; }};
    case act::FileWish::kOpenModel: break;
  }
  return {.title = "Open a model file",
          .button = "Open",
          .note = "",
          .nothing = "No matching folder or .gguf file here.",
          .extensions = {".gguf"},
          .answer = [](std::string path) -> ui::Action {
            return act::ModelAction(act::ModelPickerAction(act::ChooseModel{std::move(path)}));
          }};
}

std::optional<FileQuestion> saving_question(const ui::Action& action, const FileFolders& folders,
                                            const ui::UiState& state) {
  return std::visit(
      [&](const auto& of_area) {
        return std::visit(
            [&](const auto& one) -> std::optional<FileQuestion> {
              if constexpr (Saves<std::decay_t<decltype(one)>>) {
                if (one.path.empty()) return ask(one, folders, state);
              }
              return std::nullopt;
            },
            of_area);
      },
      action);
}

}  // namespace

void FileQuestions::apply(const act::AskForFile& a) { files_.ask(question_of(a.wish, folders_, state_)); }

bool FileQuestions::asks_first(const ui::Action& action) {
  auto question = saving_question(action, folders_, state_);
  if (!question) return false;
  files_.ask(*std::move(question));
  return true;
}

}  // namespace octavo::app
