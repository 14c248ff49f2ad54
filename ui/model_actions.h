// What a person asked for about the model: to load it, and to choose another.
#pragma once

#include <string>
#include <variant>

#include "ui/action_sink.h"
#include "ui/model_state.h"

namespace octavo::ui::actions {

struct LoadModel {};  // again, after a failure or a cancelled load
struct CancelLoading {};
struct ContinueOnCpu {};  // the model that answered until its device was lost, loaded again

struct OpenModelPicker {};
struct OpenModelFile {  // the picker, on this file
  std::string path;
};

// A tiny pool in which swapping is seen, lent to the present model.
struct AskAboutTinyPool {  // kNone: no longer
  TinyPoolQuestion question;
};

struct LoadModelFile {  // at once, beside the present model
  std::string path;
};

struct CloseModelPicker {};
struct ChooseModel {  // a row, or a file of the browser
  std::string path;
};
struct ForgetModel {  // a recent one whose file is gone
  std::string path;
};
struct ChangeLoadOptions {
  ModelLoadOptions options;
};
// What may happen to answers under way. Those that are kept finish on the model that they began with.
enum class RunningAnswers { kFinish, kStop };
struct LoadChosenModel {
  RunningAnswers running = RunningAnswers::kFinish;
};
struct LendTinyPool {
  RunningAnswers running = RunningAnswers::kFinish;
};
struct GiveBackPool {
  RunningAnswers running = RunningAnswers::kFinish;
};

// What the picker itself takes.
struct ModelPickerAction
    : std::variant<CloseModelPicker, ChooseModel, ForgetModel, ChangeLoadOptions, LoadChosenModel> {
  using variant::variant;
};

// ---- a model that runs elsewhere

struct OpenRemoteDialog {};
struct CloseRemoteDialog {};
// For its models. The key is sent and, where the server takes it, kept; empty: the one that is kept.
struct AskForRemoteModels {
  std::string address;
  std::string key;
};
struct ForgetRemoteKey {
  std::string address;
};
struct UseRemoteModel {  // at once, beside the present model
  std::string address;
  std::string model;
};
struct RemoteModelAction
    : std::variant<OpenRemoteDialog, CloseRemoteDialog, AskForRemoteModels, ForgetRemoteKey, UseRemoteModel> {
  using variant::variant;
};

// ---- models that can be downloaded

struct OpenCatalogue {};
struct CloseCatalogue {};
struct SearchHub {  // empty: back to the recommended ones
  std::string text;
};
struct ShowRepository {
  std::string name;
  std::string file;  // that is chosen, as in CatalogueRow; may be empty
};
struct ChooseHubFile {  // of the repository that is shown
  std::string path;
};
// At once, and opened when it is here; chats go on meanwhile. What is here already is opened.
struct GetModel {
  std::string repository;
  std::string file;
  std::string name;  // shown
};
struct PauseDownload {};
struct ResumeDownload {};
struct CancelDownload {};   // what has come is removed
struct DismissDownload {};  // the line about one that has ended
struct CatalogueAction
    : std::variant<OpenCatalogue, CloseCatalogue, SearchHub, ShowRepository, ChooseHubFile, GetModel,
                   PauseDownload, ResumeDownload, CancelDownload, DismissDownload> {
  using variant::variant;
};

struct ModelAction : std::variant<LoadModel, CancelLoading, ContinueOnCpu, OpenModelPicker, OpenModelFile,
                                  LoadModelFile, AskAboutTinyPool, LendTinyPool, GiveBackPool,
                                  ModelPickerAction, RemoteModelAction, CatalogueAction> {
  using variant::variant;
  ModelAction(const ModelAction&);
  ModelAction(ModelAction&&) noexcept;
  ModelAction& operator=(const ModelAction&);
  ModelAction& operator=(ModelAction&&) noexcept;
  ~ModelAction();
};

}  // namespace octavo::ui::actions
