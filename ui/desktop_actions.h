// What a person asked of the window itself: its workspaces, panels and settings, the clipboard, and files.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/ids.h"
#include "ui/action_sink.h"
#include "ui/desktop_state.h"

namespace octavo::ui::actions {

struct ShowWorkspace {
  Workspace workspace;
};
struct ShowSettings {
  bool open;
};
struct ShowPalette {
  bool open;
};
struct ShowSampling {
  bool open;
};
struct ChangeSettings {
  SettingsState settings;
};
struct DismissBanner {};
struct CopyText {
  std::string text;
};
struct OpenLink {  // in the browser; http, https or mailto, and confirmed
  std::string address;
};

struct ShowKeys {
  bool open;
};
struct ShowInFolder {  // by the desktop's file manager
  std::string path;
};

// ---- the server

struct ShowServer {
  bool open;
};
struct SwitchServer {
  bool on;
};
struct ChangeServer {
  ServerSettings settings;
};
struct MakeServerKey {};  // the one before counts no longer

// ---- files

enum class FileWish { kAttach, kImportChats, kOpenRecording, kOpenModel, kPrompts, kTextToCompare };
struct AskForFile {  // opens the file browser
  FileWish wish;
};
struct CloseFileBrowser {};
struct BrowseTo {  // a path that was typed or chosen, whole or in part
  std::string text;
  bool is_typed = true;  // false: the field takes this text
};
struct ChooseFile {  // a row, or what was typed; a folder is opened
  std::string path;
};
struct AnswerOverwrite {
  bool replaces;
};
struct AttachFile {  // as text, whatever its name says
  ChatId chat_id;
  std::string path;
};
struct RemoveAttachment {
  ChatId chat_id;
  std::uint64_t attachment_id;
};
// Files that were dropped on the window or named on the command line: what each of them is decides.
struct OpenFiles {
  std::vector<std::string> paths;
};
struct ShowPresets {
  bool open;
};
struct ShowTree {
  bool open;
};

struct DesktopAction
    : std::variant<ShowWorkspace, ShowSettings, ShowPalette, ShowSampling, ChangeSettings, DismissBanner,
                   CopyText, OpenLink, ShowKeys, ShowInFolder, AskForFile, CloseFileBrowser, BrowseTo,
                   ChooseFile, AnswerOverwrite, AttachFile, RemoveAttachment, OpenFiles, ShowPresets,
                   ShowTree, ShowServer, SwitchServer, ChangeServer, MakeServerKey> {
  using variant::variant;
  DesktopAction(const DesktopAction&);
  DesktopAction(DesktopAction&&) noexcept;
  DesktopAction& operator=(const DesktopAction&);
  DesktopAction& operator=(DesktopAction&&) noexcept;
  ~DesktopAction();
};

}  // namespace octavo::ui::actions
