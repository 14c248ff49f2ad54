// What a person asked of the Memory workspace, as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "engine/base/ids.h"
#include "ui/action_sink.h"
#include "ui/memory_state.h"

namespace octavo::ui::actions {

struct ShowMemoryPage {
  MemoryPage page;
};
struct FollowNewest {};
struct PauseMemory {};
struct SeekTime {
  std::int64_t time_us;
};
struct SeekMark {  // the state before this event
  std::uint64_t mark;
};
struct StepEvents {
  std::int32_t offset;
};
struct StepSteps {
  std::int32_t offset;
};
struct PlayMemory {
  bool playing;
};
struct ChangePlaySpeed {
  double speed;
};
struct ChooseBlock {  // below 0: none
  std::int32_t block;
};
struct HoverBlock {  // below 0: none
  std::int32_t block;
};
struct ChooseState {  // of recurrent layers; below 0: none
  std::int32_t state;
};
struct HoverState {  // below 0: none
  std::int32_t state;
};
struct HoverText {  // message 0: nothing
  ChatId chat_id;
  MessageId message_id;
  std::size_t begin = 0, end = 0;  // bytes
};
struct StartRecording {};
struct StopRecording {};
struct OpenRecording {
  std::string path;
};
struct CloseRecording {};  // back to the engine
enum class ExportFormat { kJson, kCsv, kPng, kLesson };
struct ExportMemory {
  ExportFormat format;
  std::string path = {};  // empty: it is asked for; of a picture: a new one where recordings are
};
struct ShowChapter {
  std::int32_t chapter;
};
struct MoveTour {  // by steps; past the end goes to the next chapter
  std::int32_t offset;
};
struct PlayTrial {  // in the last chapter
  TourTrial trial;
};
struct ChooseExpertsOf {  // chat 0: all
  ChatId chat_id;
};
struct RestartExperts {};
struct ChooseRequest {  // 0: none
  std::uint64_t number;
};
struct HoverRequest {  // 0: none
  std::uint64_t number;
};
struct ExportRequests {  // JSON or CSV
  ExportFormat format;
  std::string path = {};  // empty: it is asked for
};
// ---- the paper's evaluation

struct RunPaper {};  // the saturated queue
struct CancelPaper {};
struct ChooseExperiment {  // none: the saturated queue
  std::optional<std::size_t> index;
};
struct ChangeExperiments {  // for the next run
  ExperimentSettings settings;
};
struct RunExperiments {  // none: all simulated ones, one after the other
  std::optional<std::size_t> index;
};
struct CancelExperiments {};  // the one under way, and those that wait
enum class PictureKind { kSvg, kPng };
struct SavePlots {
  std::size_t index;
  PictureKind kind;
  std::string path = {};  // empty: it is asked for
};
enum class TableKind { kJson, kMarkdown };
struct SaveFigures {
  std::size_t index;
  TableKind kind;
  std::string path = {};  // empty: it is asked for
};

struct MemoryAction
    : std::variant<ShowMemoryPage, FollowNewest, PauseMemory, SeekTime, SeekMark, StepEvents, StepSteps,
                   PlayMemory, ChangePlaySpeed, ChooseBlock, HoverBlock, ChooseState, HoverState, HoverText,
                   StartRecording, StopRecording, OpenRecording, CloseRecording, ExportMemory, ShowChapter,
                   MoveTour, PlayTrial, ChooseExpertsOf, RestartExperts, ChooseRequest, HoverRequest,
                   ExportRequests, RunPaper, CancelPaper, ChooseExperiment, ChangeExperiments, RunExperiments,
                   CancelExperiments, SavePlots, SaveFigures> {
  using variant::variant;
  MemoryAction(const MemoryAction&);
  MemoryAction(MemoryAction&&) noexcept;
  MemoryAction& operator=(const MemoryAction&);
  MemoryAction& operator=(MemoryAction&&) noexcept;
  ~MemoryAction();
};

}  // namespace octavo::ui::actions
