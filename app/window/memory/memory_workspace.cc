#include "app/window/memory/memory_workspace.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "app/window/memory/block_card.h"
#include "app/window/memory/history_cursor.h"
#include "app/window/memory/lesson_file.h"
#include "app/window/memory/linked_hover.h"
#include "app/window/memory/memory_bar.h"
#include "app/window/memory/memory_export.h"
#include "app/window/memory/memory_health.h"
#include "app/window/memory/memory_rows.h"
#include "app/window/memory/memory_tree.h"
#include "app/window/memory/slot_map.h"
#include "app/window/memory/state_rows.h"
#include "app/window/memory/tour_trial.h"
#include "app/window/memory/window_part_rows.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

constexpr std::int64_t kPaperDeviceBytes = 40'000'000'000;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d-%H%M%S", &parts);
  return text;
}

// The blocks of a host pool, with who has them.
std::vector<ui::ShownHostBlock> host_blocks(const MemoryHistory::Moment& moment) {
  std::vector<ui::ShownHostBlock> host;
  for (const metrics::KvState::HostBlock& block : moment.host)
    host.push_back({.is_used = block.is_used, .filled = block.num_filled, .has_window = block.has_window});
  const auto& sequences = moment.snapshot->sequences;
  for (std::size_t i = 0; i < sequences.size() && i < ui::kNobody; ++i) {
    if (sequences[i].state != SequenceState::kSwapped) continue;
    for (const BlockId block : sequences[i].block_table) {
      const auto index = index_of(block);
      if (block.value < 0 || index >= host.size()) continue;
      host[index].is_used = true;
      if (host[index].owner == ui::kNobody) host[index].owner = static_cast<std::uint16_t>(i);
    }
  }
  return host;
}

}  // namespace

std::filesystem::path default_recordings_folder() { return data_folder() / "octavo/recordings"; }

MemoryWorkspace::MemoryWorkspace(std::filesystem::path folder) : folder_(std::move(folder)) {}

// ---- sources

void MemoryWorkspace::attach(const EngineDescription& description,
                             std::shared_ptr<const metrics::StepRecorder> recorder, TokenBytes bytes,
                             ui::UiState& state) {
  recording_.stop();
  state.memory_workspace.recording.is_recording = false;
  const auto before = live_ != nullptr ? live_->timeline.shared() : nullptr;
  live_ = live_source(description, std::move(recorder));
  if (before != nullptr) live_->timeline.follow(before);
  chats_ = {};
  evaluation_.forget_engine();
  bytes_ = std::move(bytes);
  state.memory.timeline = live_->timeline.shared();
  show_experts_of(description.model, state);
  state.memory_workspace.bar = memory_bar(description, physical_memory_bytes());
  if (other_ == nullptr) show_source(state, nullptr);
}

// Of another model than before: nothing is counted yet.
void MemoryWorkspace::show_experts_of(const ModelDescription& model, ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  experts_.choose({});
  experts_.restart();
  memory_workspace.experts = {.num_experts = model.num_experts, .num_used = model.num_used_experts};
  const bool has_page = model.num_experts > 0 || memory_workspace.page != ui::MemoryPage::kExperts;
  if (!has_page) memory_workspace.page = ui::MemoryPage::kPools;
}

void MemoryWorkspace::detach() {
  recording_.stop();
  evaluation_.forget_engine();
  bytes_ = {};
}

void MemoryWorkspace::learn(const RequestAdmitted& event, const ChatOfRequest& chat_of,
                            const ui::UiState& state) {
  if (live_ == nullptr || event.sequence_id == SequenceId{}) return;
  const SequenceFacts facts{.request_id = event.request_id};
  if (!live_->history.facts().contains(event.sequence_id.value))
    live_->history.learn(event.sequence_id.value, facts);
  name_sequence(event.sequence_id, facts, /*has_siblings=*/false, chat_of, state);
}

void MemoryWorkspace::fold(const Engine::Trace& trace, std::shared_ptr<const KvSnapshot> newest,
                           const ChatOfRequest& chat_of, ui::UiState& state) {
  if (live_ == nullptr) return;
  if (newest != nullptr) {
    live_->history.learn(*newest);
    name_sequences(*newest, chat_of, state);
    if (newest->scope() != SnapshotScope::kPool) newest = nullptr;  // the blocks are replayed
    live_->newest = std::move(newest);
  }
  if (!trace.block_events.empty() || !trace.steps.empty()) {
    live_->add(trace);
    chats_.fold(trace);
    recording_.notify();
  }
  show_chats(state);
  end_failed_recording(state);
  if (other_ == nullptr && state.workspace == ui::Workspace::kMemory) {
    if (state.memory_workspace.cursor.following) {
      show(state);
    } else {
      ++state.memory_workspace.version;
    }
  }
}

void MemoryWorkspace::show_chats(ui::UiState& state) {
  const metrics::PoolMoment* newest = live_ != nullptr ? live_->history.newest() : nullptr;
  if (newest != nullptr) chats_.show(*newest, state);
}

void MemoryWorkspace::name_sequences(const KvSnapshot& snapshot, const ChatOfRequest& chat_of,
                                     const ui::UiState& state) {
  std::map<RequestId, int> num_outputs;
  for (const SequenceSnapshot& sequence : snapshot.sequences) ++num_outputs[sequence.request_id];
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const SequenceFacts facts{sequence.request_id, sequence.output_index, sequence.num_prompt_tokens};
    name_sequence(sequence.sequence_id, facts, num_outputs[sequence.request_id] > 1, chat_of, state);
  }
  recording_.describe(*live_);
}

void MemoryWorkspace::name_sequence(SequenceId sequence, const SequenceFacts& facts, bool has_siblings,
                                    const ChatOfRequest& chat_of, const ui::UiState& state) {
  const auto chat = chat_of ? chat_of(facts.request_id) : std::nullopt;
  if (chat) chats_.learn(sequence, *chat);
  const ui::ChatState* shown = chat ? ui::find_chat(state, *chat) : nullptr;
  ui::ShownSequence name{.label = "sequence " + std::to_string(sequence.value),
                         .colour_index = static_cast<std::uint32_t>(facts.request_id.value)};
  if (shown != nullptr) name = {shown->id, shown->title, shown->colour_index};
  const auto other =
      shown == nullptr && name_of_ ? name_of_(facts.request_id, facts.output_index) : std::nullopt;
  if (other) {
    name.label = *other;
  } else if (has_siblings || facts.output_index > 0) {
    name.label += " · sample " + std::to_string(facts.output_index + 1);
  }
  live_->timeline.name(sequence.value, std::move(name));
}

// A disk that is full, or slower than the engine.
void MemoryWorkspace::end_failed_recording(ui::UiState& state) {
  if (!recording_.is_running()) return;
  const auto failure = recording_.failure();
  if (!failure) return;
  recording_.stop();
  state.memory_workspace.recording.is_recording = false;
  effects_.problem = *failure;
}

void MemoryWorkspace::show_source(ui::UiState& state, std::unique_ptr<HistorySource> other) {
  other_ = std::move(other);
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  chosen_.reset();
  chosen_state_.reset();
  memory_workspace.hover = {};
  memory_workspace.cursor = {.speed = memory_workspace.cursor.speed};
  memory_workspace.source = other_ ? other_->kind : ui::MemorySource::kLive;
  if (!has_source()) return;
  memory_workspace.pool = shown().pool;
  memory_workspace.timeline = shown().timeline.shared();
  show(state);
}

void MemoryWorkspace::refresh(ui::UiState& state) {
  if (has_source() && state.memory_workspace.cursor.following) show(state);
}

// ---- the cursor

void MemoryWorkspace::seek(std::uint64_t mark, ui::UiState& state) {
  if (!has_source()) return;
  ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  cursor.following = false;
  cursor.mark = std::clamp(mark, shown().history.oldest_mark(), shown().history.newest_mark());
  show(state);
}

void MemoryWorkspace::apply(const act::MemoryAction& action, ui::UiState& state) {
  std::visit([&](const auto& a) { apply_one(a, state); }, action);
}

void MemoryWorkspace::apply_one(const act::ShowMemoryPage& a, ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  memory_workspace.page = a.page;
  const bool is_walked = other_ != nullptr && other_->is_walked();
  if (a.page == ui::MemoryPage::kTour) {
    if (!is_walked) apply_one(act::ShowChapter{memory_workspace.tour.chapter}, state);
  } else if (is_walked) {
    show_source(state, nullptr);
  }
  if (a.page == ui::MemoryPage::kPaper) {
    memory_workspace.paper_shape = shape_memory_bar("opt-13b", kPaperDeviceBytes);
    paper_.show(memory_workspace.evaluation);
    evaluation_.show_list(memory_workspace.evaluation);
  }
}

void MemoryWorkspace::apply_one(const act::FollowNewest&, ui::UiState& state) {
  state.memory_workspace.cursor.following = true;
  state.memory_workspace.cursor.playing = false;
  show(state);
}

void MemoryWorkspace::apply_one(const act::PauseMemory&, ui::UiState& state) {
  state.memory_workspace.cursor.playing = is_playing_ = false;
  if (has_source() && state.memory_workspace.cursor.following) seek(shown().history.newest_mark(), state);
}

void MemoryWorkspace::apply_one(const act::SeekTime& a, ui::UiState& state) {
  if (!has_source()) return;
  state.memory_workspace.cursor.playing = false;
  seek(mark_at(shown(), a.time_us), state);
}

void MemoryWorkspace::apply_one(const act::SeekMark& a, ui::UiState& state) {
  state.memory_workspace.cursor.playing = false;
  seek(a.mark, state);
}

std::uint64_t MemoryWorkspace::cursor_mark(const ui::UiState& state) const {
  const ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  const HistorySource& source = other_ ? *other_ : *live_;
  return cursor.following ? source.history.newest_mark() : cursor.mark;
}

void MemoryWorkspace::apply_one(const act::StepEvents& a, ui::UiState& state) {
  if (!has_source()) return;
  const auto moved = static_cast<std::int64_t>(cursor_mark(state)) + a.offset;
  state.memory_workspace.cursor.playing = false;
  seek(static_cast<std::uint64_t>(std::max<std::int64_t>(0, moved)), state);
}

void MemoryWorkspace::apply_one(const act::StepSteps& a, ui::UiState& state) {
  if (!has_source()) return;
  state.memory_workspace.cursor.playing = false;
  seek(mark_of_next_step(shown(), cursor_mark(state), a.offset), state);
}

void MemoryWorkspace::apply_one(const act::PlayMemory& a, ui::UiState& state) {
  if (!has_source()) return;
  ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  if (a.playing && (cursor.following || cursor.mark >= shown().history.newest_mark()))
    seek(shown().history.oldest_mark(), state);
  cursor.playing = is_playing_ = a.playing;
  played_us_ = -1;
}

void MemoryWorkspace::apply_one(const act::ChangePlaySpeed& a, ui::UiState& state) {
  state.memory_workspace.cursor.speed = std::clamp(a.speed, 0.0625, 64.0);
}

// Moves on by as much of the history's time as has gone by, times the speed.
bool MemoryWorkspace::play(std::int64_t now_us, ui::UiState& state) {
  ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  if (!cursor.playing || !has_source()) return false;
  if (played_us_ < 0) played_us_ = now_us;
  const MemoryHistory& history = shown().history;
  const std::uint64_t mark =
      mark_after(history, cursor, static_cast<double>(now_us - played_us_) * cursor.speed);
  if (mark == cursor.mark) return false;
  played_us_ = now_us;
  seek(mark, state);
  if (mark >= history.newest_mark()) cursor.playing = is_playing_ = false;
  return true;
}

bool MemoryWorkspace::tick(std::int64_t now_us, ui::UiState& state) {
  now_us_ = now_us;
  bool changed = play(now_us, state);
  changed |= take_recording(state);
  changed |= take_paper(state);
  changed |= evaluation_.tick(now_us, state.memory_workspace.evaluation);
  tell_of(evaluation_.take_written());
  changed |= take_experts(state);
  changed |= take_requests(state);
  changed |= count_ages(state);
  return changed;
}

// Ages grow for a few seconds; then times stand in their place, and nothing moves.
bool MemoryWorkspace::count_ages(ui::UiState& state) {
  if (!counts_ages_) return false;
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  const bool is_shown = state.workspace == ui::Workspace::kMemory && memory_workspace.cursor.following &&
                        memory_workspace.source == ui::MemorySource::kLive &&
                        memory_workspace.snapshot != nullptr;
  counts_ages_ = is_shown && now_us_ - memory_workspace.timeline->newest_us <= kAgesCountUs;
  if (!is_shown) return false;
  memory_workspace.sentences =
      health_sentences(*memory_workspace.snapshot, memory_workspace, memory_workspace.cursor.mark, now_us_);
  return true;
}

bool MemoryWorkspace::wants_tick() const {
  return opening_.valid() || paper_.has_news() || is_playing_ || counts_ages_ || experts_.is_busy() ||
         requests_.is_busy() || evaluation_.is_busy();
}

// ---- what is shown

void MemoryWorkspace::show(ui::UiState& state) {
  if (!has_source()) return;
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  HistorySource& source = shown();
  ui::MemoryCursor& cursor = memory_workspace.cursor;
  is_playing_ = cursor.playing;
  if (!cursor.playing) played_us_ = -1;
  cursor.problem.clear();
  source.timeline.keep_from(source.history.oldest_mark());
  // The engine's own snapshot says more than events can: classes, reservations, what waits. It may be a step
  // behind the events that were read after it; then all of the workspace shows its moment.
  const bool has_own = cursor.following && source.newest != nullptr;
  if (cursor.following) {
    cursor.mark = has_own ? source.newest->event_mark : source.history.newest_mark();
  }
  const bool is_newest = cursor.mark >= source.history.newest_mark();
  auto moment = source.history.at(is_newest ? source.history.newest_mark() : cursor.mark);
  if (!moment && has_own) moment = MemoryHistory::Moment{};
  if (!moment) {
    cursor.problem = moment.error().message;
    return;
  }
  if (has_own) moment->snapshot = source.newest;
  memory_workspace.snapshot = moment->snapshot;
  ++memory_workspace.version;
  show_cursor(state);
  show_blocks(*moment, state);
  memory_workspace.health = health_figures(*memory_workspace.snapshot, memory_workspace.pool,
                                           *memory_workspace.timeline, cursor.mark);
  const bool is_live = memory_workspace.source == ui::MemorySource::kLive && cursor.following;
  memory_workspace.sentences =
      health_sentences(*memory_workspace.snapshot, memory_workspace, cursor.mark, is_live ? now_us_ : -1);
  counts_ages_ =
      is_live && std::ranges::any_of(memory_workspace.sentences, [](const ui::HealthSentence& sentence) {
        return sentence.text.find(" s ago") != std::string::npos;
      });
  show_card(state);
  memory_workspace.slots.reset();
  if (other_ != nullptr && other_->is_walked()) show_tour(state);
}

void MemoryWorkspace::show_cursor(ui::UiState& state) {
  ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  const MemoryHistory& history = shown().history;
  auto event = cursor.mark > 0 ? history.event(cursor.mark - 1) : std::nullopt;
  if (!event) event = history.event(cursor.mark);
  if (!event) return;
  cursor.step = event->step;
  cursor.time_us = event->time_us;
}

void MemoryWorkspace::show_blocks(const MemoryHistory::Moment& moment, ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  const KvSnapshot& snapshot = *memory_workspace.snapshot;
  const metrics::PoolStory& story = shown().history.story();
  memory_workspace.sequences = sequences_of(snapshot, shown().timeline.state().names);
  BlockOwners owners = owners_of(snapshot, memory_workspace.sequences);
  memory_workspace.blocks = std::move(owners.blocks);
  memory_workspace.groups = std::move(owners.groups);
  for (std::size_t i = 0; i < memory_workspace.blocks.size() && i < story.blocks.size(); ++i) {
    memory_workspace.blocks[i].last_us = story.blocks[i].last_us;
  }
  memory_workspace.host = host_blocks(moment);
  StateRows states = state_rows(snapshot, story, memory_workspace.sequences, shown().timeline.state().names,
                                memory_workspace.pool.num_host_states);
  memory_workspace.states = std::move(states.states);
  memory_workspace.host_states = std::move(states.host_states);
  mark_checkpoints(snapshot, memory_workspace.blocks);
  memory_workspace.window_parts = window_parts(snapshot);
  memory_workspace.lines = table_lines(snapshot, memory_workspace.sequences);
  const bool is_newest = other_ == nullptr && memory_workspace.cursor.following &&
                         live_->history.newest() != nullptr &&
                         memory_workspace.cursor.mark == live_->history.newest()->mark;
  if (is_newest) add_ghost_lines(state.chats, memory_workspace.lines);  // of the past nobody knows them
  memory_workspace.tree =
      make_prefix_tree(snapshot, story, [this](BlockId block) { return text_of_block(block); });
}

std::string MemoryWorkspace::text_of(const HistorySource& source, std::uint64_t sequence,
                                     std::int32_t index) const {
  const std::int32_t block_size = source.pool.block_size;
  if (source.is_walked()) {
    std::string text;
    const auto found = source.words.find(sequence);
    if (found == source.words.end() || index < 0) return {};
    const auto count = static_cast<std::int32_t>(found->second.size());
    for (std::int32_t i = index * block_size; i < std::min(count, (index + 1) * block_size); ++i) {
      text += found->second[static_cast<std::size_t>(i)] + " ";
    }
    return text;
  }
  const auto facts = source.history.facts().find(sequence);
  if (facts == source.history.facts().end() || index < 0) return {};
  return tokens_.text_of(facts->second.request_id, facts->second.output_index, index * block_size, block_size,
                         bytes_);
}

std::string MemoryWorkspace::text_of_block(BlockId block) {
  const auto& blocks = shown().history.story().blocks;
  const auto index = index_of(block);
  if (block.value < 0 || index >= blocks.size() || blocks[index].sequence == 0) return {};
  return text_of(shown(), blocks[index].sequence, blocks[index].index);
}

void MemoryWorkspace::show_card(ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  memory_workspace.card.reset();
  memory_workspace.state_card.reset();
  if (chosen_state_ && static_cast<std::size_t>(chosen_state_->value) < memory_workspace.states.size())
    memory_workspace.state_card = state_card(*chosen_state_, shown().history, memory_workspace);
  if (!chosen_ || static_cast<std::size_t>(chosen_->value) >= memory_workspace.snapshot->blocks.size())
    return;
  memory_workspace.card = block_card(*chosen_, shown().history, memory_workspace, text_of_block(*chosen_));
}

void MemoryWorkspace::apply_one(const act::ChooseBlock& a, ui::UiState& state) {
  chosen_ = a.block < 0 ? std::nullopt : std::optional(BlockId{a.block});
  chosen_state_.reset();
  effects_.changes_watched_block = true;
  effects_.watched_block = other_ ? std::nullopt : chosen_;
  if (has_source() && state.memory_workspace.snapshot) show_card(state);
  ++state.memory_workspace.version;
}

void MemoryWorkspace::apply_one(const act::ChooseState& a, ui::UiState& state) {
  apply_one(act::ChooseBlock{-1}, state);
  if (a.state < 0) return;
  chosen_state_ = BlockId{a.state};
  if (has_source() && state.memory_workspace.snapshot) show_card(state);
}

// ---- linked hover

void MemoryWorkspace::apply_one(const act::HoverBlock& a, ui::UiState& state) {
  ui::LinkedHover& hover = state.memory_workspace.hover;
  const BlockId block{a.block};
  if (a.block < 0) {
    hover = {};
    return;
  }
  if (hover.block == block && !hover.state) return;
  const bool is_live = other_ == nullptr && live_ != nullptr;
  hover = is_live ? words_of_block(block, live_->pool.block_size, tokens_, bytes_, state)
                  : ui::LinkedHover{.blocks = {block}};
  hover.block = block;
  hover.states = states_of_blocks(hover.blocks, state.memory_workspace.states);
}

// The blocks of the tokens that it knows, and their words.
void MemoryWorkspace::apply_one(const act::HoverState& a, ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  memory_workspace.hover = {};
  const auto index = static_cast<std::size_t>(a.state);
  if (a.state < 0 || index >= memory_workspace.states.size()) return;
  const ui::ShownState& shown_state = memory_workspace.states[index];
  memory_workspace.hover.state = BlockId{a.state};
  memory_workspace.hover.states = {BlockId{a.state}};
  memory_workspace.hover.blocks = shown_state.blocks;
  if (other_ != nullptr || live_ == nullptr) return;
  const auto& stories = live_->history.story().states;
  const std::uint64_t sequence = index < stories.size() ? stories[index].sequence : 0;
  const auto facts = live_->history.facts().find(sequence);
  if (facts == live_->history.facts().end()) return;
  for (const TokenBook::Stretch& stretch :
       tokens_.stretches_of(facts->second.request_id, 0, shown_state.position, bytes_)) {
    memory_workspace.hover.ranges[{stretch.chat_id, stretch.message}].push_back(stretch.range);
  }
}

void MemoryWorkspace::apply_one(const act::HoverText& a, ui::UiState& state) {
  state.memory_workspace.hover = live_ != nullptr
                                     ? blocks_of_words(a, live_->pool.block_size, tokens_, bytes_, state)
                                     : ui::LinkedHover{};
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  memory_workspace.hover.states = states_of_blocks(memory_workspace.hover.blocks, memory_workspace.states);
}

// ---- recordings and exports

void MemoryWorkspace::apply_one(const act::StartRecording&, ui::UiState& state) {
  if (live_ == nullptr || recording_.is_running()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::filesystem::path path = folder_ / ("octavo-" + time_stamp() + ".rec");
  const Result<void> started = recording_.start(path, *live_);
  if (!started) {
    effects_.problem = started.error().message;
    return;
  }
  state.memory_workspace.recording.is_recording = true;
  state.memory_workspace.recording.path = path.string();
}

void MemoryWorkspace::apply_one(const act::StopRecording&, ui::UiState& state) {
  if (!recording_.is_running()) return;
  state.memory_workspace.recording.is_recording = false;
  if (const auto failure = recording_.stop()) {
    effects_.problem = *failure;
  } else {
    effects_.written = state.memory_workspace.recording.path;
    effects_.notice = "Recorded to " + effects_.written + ".";
  }
}

void MemoryWorkspace::apply_one(const act::OpenRecording& a, ui::UiState& state) {
  if (opening_.valid()) return;
  state.memory_workspace.recording.is_loading = true;
  const std::filesystem::path path(a.path);
  opening_ = std::async(std::launch::async, [path] { return open_recording(path); });
}

bool MemoryWorkspace::take_recording(ui::UiState& state) {
  if (!opening_.valid() || opening_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return false;
  auto opened = opening_.get();
  state.memory_workspace.recording.is_loading = false;
  if (!opened) {
    effects_.problem = opened.error().message;
    return true;
  }
  if (opened->is_shortened)
    effects_.notice = "This recording is very long; showing the beginning.";
  else if (!opened->is_complete)
    effects_.notice = "The recording is truncated; showing what was recorded.";
  const bool is_lesson = opened->source->is_walked();
  state.memory_workspace.page = is_lesson ? ui::MemoryPage::kTour : ui::MemoryPage::kPools;
  state.workspace = ui::Workspace::kMemory;
  show_source(state, std::move(opened->source));
  if (is_lesson) seek(0, state);
  return true;
}

void MemoryWorkspace::apply_one(const act::CloseRecording&, ui::UiState& state) {
  state.memory_workspace.page = ui::MemoryPage::kPools;
  show_source(state, nullptr);
}

Result<void> MemoryWorkspace::export_to(const act::ExportMemory& a, const ui::MemoryWorkspaceState& shows) {
  switch (a.format) {
    case act::ExportFormat::kJson: return write_export(a.path, memory_json(shows));
    case act::ExportFormat::kCsv: return write_export(a.path, steps_csv(*shows.timeline));
    case act::ExportFormat::kLesson:
      if (other_ != nullptr && other_->is_walked()) return write_lesson(a.path, *other_);
      break;
    case act::ExportFormat::kPng: break;
  }
  return Error{ErrorCode::kInvalidArgument,
               "only a chapter of the tour can be a lesson; open “Explain” first"};
}

void MemoryWorkspace::apply_one(const act::ExportMemory& a, ui::UiState& state) {
  if (a.format == act::ExportFormat::kPng) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    effects_.picture = folder_ / ("octavo-memory-" + time_stamp() + ".png");
    return;
  }
  if (a.path.empty()) return;
  const Result<void> written = export_to(a, state.memory_workspace);
  if (written) {
    effects_.written = a.path;
    effects_.notice = "Exported to " + escape_for_message(a.path) + ".";
  } else {
    effects_.problem = written.error().message;
  }
}

// ---- tour

void MemoryWorkspace::apply_one(const act::ShowChapter& a, ui::UiState& state) {
  ui::TourState& tour = state.memory_workspace.tour;
  tour.chapters = tour_titles();
  const auto last = static_cast<std::int32_t>(tour.chapters.size()) - 1;
  tour.chapter = std::clamp(a.chapter, 0, last);
  const bool is_first_trial = tour.trial == ui::TourTrial{};
  if (tour.chapter == last)
    return apply_one(act::PlayTrial{is_first_trial ? first_trial() : tour.trial}, state);
  show_chapter(play_tour_chapter(static_cast<std::size_t>(tour.chapter)), state);
}

void MemoryWorkspace::apply_one(const act::PlayTrial& a, ui::UiState& state) {
  ui::TourState& tour = state.memory_workspace.tour;
  Result<TourChapter> chapter = play_trial(a.trial);
  tour.problem = chapter ? std::string() : chapter.error().message;
  if (!chapter) return;
  tour.chapters = tour_titles();
  tour.chapter = static_cast<std::int32_t>(tour.chapters.size()) - 1;
  tour.trial = a.trial;
  show_chapter(*std::move(chapter), state);
}

void MemoryWorkspace::show_chapter(TourChapter chapter, ui::UiState& state) {
  state.memory_workspace.page = ui::MemoryPage::kTour;
  show_source(state, tour_source(std::move(chapter)));
  seek(0, state);
}

void MemoryWorkspace::apply_one(const act::MoveTour& a, ui::UiState& state) {
  if (other_ == nullptr || other_->stops.empty()) return;
  ui::TourState& tour = state.memory_workspace.tour;
  const std::int32_t wanted = tour.step + a.offset;
  const auto count = static_cast<std::int32_t>(other_->stops.size());
  if (wanted >= count) {
    if (!tour.is_lesson && tour.chapter + 1 < static_cast<std::int32_t>(tour.chapters.size()))
      apply_one(act::ShowChapter{tour.chapter + 1}, state);
    return;
  }
  other_->stop = static_cast<std::size_t>(std::clamp(wanted, 0, count - 1));
  seek(other_->stops[other_->stop].mark, state);
}

// The sentence of the last stop at or before the cursor. Where stops share a mark, the one that was chosen.
void MemoryWorkspace::show_tour(ui::UiState& state) {
  ui::TourState& tour = state.memory_workspace.tour;
  const auto& stops = other_->stops;
  const std::uint64_t mark = state.memory_workspace.cursor.mark;
  if (other_->stop >= stops.size() || stops[other_->stop].mark != mark) {
    std::size_t stop = 0;
    while (stop + 1 < stops.size() && stops[stop + 1].mark <= mark) ++stop;
    other_->stop = stop;
  }
  tour.step = static_cast<std::int32_t>(other_->stop);
  tour.num_steps = static_cast<std::int32_t>(stops.size());
  tour.title = other_->title;
  tour.sentence = stops[other_->stop].sentence;
  tour.is_lesson = other_->kind == ui::MemorySource::kLesson;
  if (tour.chapters.empty()) tour.chapters = tour_titles();
  tour.is_trial = !tour.is_lesson && tour.chapter + 1 == static_cast<std::int32_t>(tour.chapters.size());
  ui::SlotMap slots = slot_map(other_->history, mark, *state.memory_workspace.snapshot, other_->words);
  tour.figures = slot_figures(slots);
  state.memory_workspace.slots = std::move(slots);
}

void MemoryWorkspace::count_experts(std::vector<ExpertChoices> steps, const ChatOfRequest& chat_of) {
  experts_.add(std::move(steps), chat_of);
}

bool MemoryWorkspace::asks_for_experts(const ui::UiState& state) {
  const ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  return state.workspace == ui::Workspace::kMemory && memory_workspace.page == ui::MemoryPage::kExperts;
}

bool MemoryWorkspace::take_experts(ui::UiState& state) {
  auto heat = experts_.take();
  if (heat == nullptr) return false;
  state.memory_workspace.experts.heat = std::move(heat);
  return true;
}

void MemoryWorkspace::apply_one(const act::ChooseExpertsOf& a, ui::UiState&) { experts_.choose(a.chat_id); }

void MemoryWorkspace::apply_one(const act::RestartExperts&, ui::UiState&) { experts_.restart(); }

// ---- requests

void MemoryWorkspace::apply_one(const act::ChooseRequest& a, ui::UiState& state) {
  requests_.choose(a.number, state);
}

// Lights its blocks, as a row of the block tables does.
void MemoryWorkspace::apply_one(const act::HoverRequest& a, ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  memory_workspace.hover = {};
  memory_workspace.requests.hovered = a.number;
  if (a.number == 0 || other_ != nullptr || memory_workspace.snapshot == nullptr) return;
  memory_workspace.hover.blocks = blocks_of_request(a.number, *memory_workspace.snapshot);
  memory_workspace.hover.states = states_of_blocks(memory_workspace.hover.blocks, memory_workspace.states);
}

void MemoryWorkspace::apply_one(const act::ExportRequests& a, ui::UiState&) { requests_.export_to(a); }

bool MemoryWorkspace::take_requests(ui::UiState& state) {
  const bool changed = requests_.tick(now_us_, state);
  tell_of(requests_.take_exported());
  return changed;
}

void MemoryWorkspace::tell_of(std::vector<WrittenFile> files) {
  for (WrittenFile& file : files) {
    if (file.problem) {
      effects_.problem = file.problem->message;
    } else {
      effects_.notice = "Exported to " + escape_for_message(file.path) + ".";
      effects_.written = std::move(file.path);
    }
  }
}

// ---- the paper's evaluation: one thing runs at a time

void MemoryWorkspace::apply_one(const act::RunPaper&, ui::UiState& state) {
  if (evaluation_.is_running()) return;
  paper_.start();
  paper_.show(state.memory_workspace.evaluation);
}

void MemoryWorkspace::apply_one(const act::CancelPaper&, ui::UiState&) { paper_.cancel(); }

bool MemoryWorkspace::take_paper(ui::UiState& state) {
  if (!paper_.has_news()) return false;
  paper_.show(state.memory_workspace.evaluation);
  return true;
}

void MemoryWorkspace::apply_one(const act::ChooseExperiment& a, ui::UiState& state) {
  ui::EvaluationState& evaluation = state.memory_workspace.evaluation;
  if (!a.index || *a.index < evaluation.experiments.size()) evaluation.chosen = a.index;
}

void MemoryWorkspace::apply_one(const act::ChangeExperiments& a, ui::UiState& state) {
  state.memory_workspace.evaluation.settings = a.settings;
}

void MemoryWorkspace::apply_one(const act::RunExperiments& a, ui::UiState& state) {
  if (!paper_.is_running()) evaluation_.run(a.index, state.memory_workspace.evaluation);
}

void MemoryWorkspace::apply_one(const act::CancelExperiments&, ui::UiState& state) {
  evaluation_.cancel(state.memory_workspace.evaluation);
}

void MemoryWorkspace::apply_one(const act::SavePlots& a, ui::UiState&) { evaluation_.save(a); }

void MemoryWorkspace::apply_one(const act::SaveFigures& a, ui::UiState&) { evaluation_.save(a); }

}  // namespace octavo::app
