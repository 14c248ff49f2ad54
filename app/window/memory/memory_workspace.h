// The Memory workspace's own logic: which moment of which source is shown, and what a person asked about it.
// Reads the engine's history, a recording or the tour into ui::MemoryWorkspaceState.
//
// UI thread; reading a recording and the paper's evaluation run on threads of their own. Draws nothing, and
// calls no engine: what only the controller or the application can do comes out of `take_effects`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/memory/evaluation.h"
#include "app/window/memory/expert_counter.h"
#include "app/window/memory/history_source.h"
#include "app/window/memory/live_recording.h"
#include "app/window/memory/memory_fold.h"
#include "app/window/memory/paper_comparison.h"
#include "app/window/memory/recording_viewer.h"
#include "app/window/memory/request_list.h"
#include "app/window/memory/sequence_names.h"
#include "app/window/memory/token_book.h"
#include "engine/engine.h"
#include "ui/memory_actions.h"
#include "ui/state.h"

namespace octavo::app {

// Where recordings and pictures go: ~/.local/share/octavo/recordings, or as XDG_DATA_HOME says.
std::filesystem::path default_recordings_folder();

struct MemoryEffects {
  std::optional<std::string> notice = {};  // to be shown, one sentence
  std::string written = {};                // the file that the notice tells of
  std::optional<std::string> problem = {};
  std::optional<std::filesystem::path> picture = {};  // where a PNG of the window is wanted
  bool changes_watched_block = false;
  std::optional<BlockId> watched_block = {};
};

class MemoryWorkspace {
 public:
  explicit MemoryWorkspace(std::filesystem::path folder = default_recordings_folder());

  // What sequences of no chat are called.
  void name_others(SequenceNamer name_of) { name_of_ = std::move(name_of); }

  // The engine was loaded: `recorder` is its history, read where it lies. `bytes` gives the bytes of a token
  // of its vocabulary.
  void attach(const EngineDescription& description, std::shared_ptr<const metrics::StepRecorder> recorder,
              TokenBytes bytes, ui::UiState& state);
  void detach();

  // Of the engine that is attached: who a sequence is, however short it lives.
  void learn(const RequestAdmitted& event, const ChatOfRequest& chat_of, const ui::UiState& state);
  // What the engine has reported: the recorder holds `trace` since the last time. `newest` is null unless
  // there is a newer snapshot; then the trace reaches at least as far. The chats must be drawn: the blocks
  // that hold them are written into them.
  void fold(const Engine::Trace& trace, std::shared_ptr<const KvSnapshot> newest,
            const ChatOfRequest& chat_of, ui::UiState& state);

  // The blocks that hold each chat, when the chats have changed.
  void show_chats(ui::UiState& state);

  void apply(const ui::actions::MemoryAction& action, ui::UiState& state);
  // Time goes on: plays, counts ages, takes in what ran beside. True when something that is drawn changed.
  bool tick(std::int64_t now_us, ui::UiState& state);
  // Whether tick() has something to do without an event.
  // Whether the page of experts is shown, so that somebody must ask the engine for their choices.
  static bool asks_for_experts(const ui::UiState& state);
  void count_experts(std::vector<ExpertChoices> steps, const ChatOfRequest& chat_of);
  bool wants_tick() const;
  // The state at the cursor again, when the Memory workspace is opened.
  void refresh(ui::UiState& state);

  TokenBook& tokens() { return tokens_; }
  RequestList& requests() { return requests_; }
  Evaluation& evaluation() { return evaluation_; }
  MemoryEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  HistorySource& shown() { return other_ ? *other_ : *live_; }
  bool has_source() const { return other_ != nullptr || live_ != nullptr; }
  void name_sequences(const KvSnapshot& snapshot, const ChatOfRequest& chat_of, const ui::UiState& state);
  void name_sequence(SequenceId sequence, const SequenceFacts& facts, bool has_siblings,
                     const ChatOfRequest& chat_of, const ui::UiState& state);
  void end_failed_recording(ui::UiState& state);
  void show_source(ui::UiState& state, std::unique_ptr<HistorySource> other);

  void apply_one(const ui::actions::ShowMemoryPage& a, ui::UiState& state);
  void apply_one(const ui::actions::FollowNewest& a, ui::UiState& state);
  void apply_one(const ui::actions::PauseMemory& a, ui::UiState& state);
  void apply_one(const ui::actions::SeekTime& a, ui::UiState& state);
  void apply_one(const ui::actions::SeekMark& a, ui::UiState& state);
  void apply_one(const ui::actions::StepEvents& a, ui::UiState& state);
  void apply_one(const ui::actions::StepSteps& a, ui::UiState& state);
  void apply_one(const ui::actions::PlayMemory& a, ui::UiState& state);
  void apply_one(const ui::actions::ChangePlaySpeed& a, ui::UiState& state);
  void apply_one(const ui::actions::ChooseBlock& a, ui::UiState& state);
  void apply_one(const ui::actions::HoverBlock& a, ui::UiState& state);
  void apply_one(const ui::actions::ChooseState& a, ui::UiState& state);
  void apply_one(const ui::actions::HoverState& a, ui::UiState& state);
  void apply_one(const ui::actions::HoverText& a, ui::UiState& state);
  void apply_one(const ui::actions::StartRecording& a, ui::UiState& state);
  void apply_one(const ui::actions::StopRecording& a, ui::UiState& state);
  void apply_one(const ui::actions::OpenRecording& a, ui::UiState& state);
  void apply_one(const ui::actions::CloseRecording& a, ui::UiState& state);
  void apply_one(const ui::actions::ExportMemory& a, ui::UiState& state);
  void apply_one(const ui::actions::ShowChapter& a, ui::UiState& state);
  void apply_one(const ui::actions::MoveTour& a, ui::UiState& state);
  void apply_one(const ui::actions::PlayTrial& a, ui::UiState& state);
  void apply_one(const ui::actions::ChooseExpertsOf& a, ui::UiState& state);
  void apply_one(const ui::actions::RestartExperts& a, ui::UiState& state);
  void apply_one(const ui::actions::ChooseRequest& a, ui::UiState& state);
  void apply_one(const ui::actions::HoverRequest& a, ui::UiState& state);
  void apply_one(const ui::actions::ExportRequests& a, ui::UiState& state);
  void apply_one(const ui::actions::RunPaper& a, ui::UiState& state);
  void apply_one(const ui::actions::CancelPaper& a, ui::UiState& state);
  void apply_one(const ui::actions::ChooseExperiment& a, ui::UiState& state);
  void apply_one(const ui::actions::ChangeExperiments& a, ui::UiState& state);
  void apply_one(const ui::actions::RunExperiments& a, ui::UiState& state);
  void apply_one(const ui::actions::CancelExperiments& a, ui::UiState& state);
  void apply_one(const ui::actions::SavePlots& a, ui::UiState& state);
  void apply_one(const ui::actions::SaveFigures& a, ui::UiState& state);

  void show_experts_of(const ModelDescription& model, ui::UiState& state);
  std::uint64_t cursor_mark(const ui::UiState& state) const;
  void seek(std::uint64_t mark, ui::UiState& state);
  void show(ui::UiState& state);
  void show_cursor(ui::UiState& state);
  void show_blocks(const MemoryHistory::Moment& moment, ui::UiState& state);
  void show_card(ui::UiState& state);
  void show_tour(ui::UiState& state);
  void show_chapter(TourChapter chapter, ui::UiState& state);
  Result<void> export_to(const ui::actions::ExportMemory& a, const ui::MemoryWorkspaceState& shows);
  std::string text_of(const HistorySource& source, std::uint64_t sequence, std::int32_t index) const;
  std::string text_of_block(BlockId block);
  bool play(std::int64_t now_us, ui::UiState& state);
  bool take_recording(ui::UiState& state);
  bool take_paper(ui::UiState& state);
  bool take_experts(ui::UiState& state);
  bool take_requests(ui::UiState& state);
  void tell_of(std::vector<WrittenFile> files);
  bool count_ages(ui::UiState& state);

  const std::filesystem::path folder_;
  std::unique_ptr<HistorySource> live_;
  MemoryFold chats_;                      // of live_
  std::unique_ptr<HistorySource> other_;  // a recording, a lesson or the tour, while it is shown
  SequenceNamer name_of_;
  TokenBytes bytes_;
  TokenBook tokens_;
  MemoryEffects effects_;
  std::optional<BlockId> chosen_;
  std::optional<BlockId> chosen_state_;  // of recurrent layers; never both
  std::int64_t played_us_ = -1;          // when playing moved last
  std::int64_t now_us_ = 0;
  bool is_playing_ = false;
  bool counts_ages_ = false;  // a sentence tells how long ago something was
  LiveRecording recording_;
  std::future<Result<OpenedRecording>> opening_;
  PaperComparison paper_;
  Evaluation evaluation_;
  ExpertCounter experts_;
  RequestList requests_;
};

}  // namespace octavo::app
