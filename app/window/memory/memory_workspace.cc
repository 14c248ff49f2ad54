#include "app/window/memory/memory_workspace.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <utility>

#include "app/window/memory/memory_bar.h"
#include "app/window/memory/memory_export.h"
#include "app/window/memory/memory_health.h"
#include "app/window/memory/memory_rows.h"
#include "app/window/memory/memory_tree.h"
#include "app/window/models/model_title.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

constexpr std::size_t kMostHistoryLines = 200;
constexpr std::size_t kMostNames = 4'096;
constexpr std::int64_t kPaperDeviceBytes = 40'000'000'000;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d-%H%M%S", &parts);
  return text;
}

bool takes_block(BlockEventKind kind) {
  return kind == BlockEventKind::kCopyOnWrite || kind == BlockEventKind::kCopyPartial;
}

bool names(const BlockEvent& event, std::int32_t block) {
  return event.block == block || (takes_block(event.kind) && event.aux == block);
}

// The blocks of a host pool, with who has them.
std::vector<ui::ShownHostBlock> host_blocks(const MemoryHistory::Moment& moment) {
  std::vector<ui::ShownHostBlock> host;
  for (const metrics::KvState::HostBlock& block : moment.host)
    host.push_back({block.is_used, block.num_filled});
  const auto& sequences = moment.snapshot->sequences;
  for (std::size_t i = 0; i < sequences.size() && i < ui::kNobody; ++i) {
    if (sequences[i].state != SequenceState::kSwapped) continue;
    for (const BlockId block : sequences[i].block_table) {
      const auto index = static_cast<std::size_t>(block.value);
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

MemoryWorkspace::~MemoryWorkspace() {
  writer_.reset();  // it reads the live history
}

// ---- sources

void MemoryWorkspace::attach(const EngineDescription& description, TokenBytes bytes, ui::UiState& state) {
  const metrics::PoolShape shape{description.block_size, description.num_blocks, description.num_host_blocks};
  writer_.reset();
  state.memory_workspace.recording.is_recording = false;
  live_ = std::make_unique<Source>(Source{.history = MemoryHistory(shape, description.bytes_per_block),
                                          .fold = {},
                                          .pool = {.name = model_title(description.model),
                                                   .block_size = description.block_size,
                                                   .num_blocks = description.num_blocks,
                                                   .num_host_blocks = description.num_host_blocks,
                                                   .bytes_per_block = description.bytes_per_block,
                                                   .max_model_len = description.max_model_len},
                                          .timeline = {},
                                          .names = {},
                                          .newest = nullptr});
  bytes_ = std::move(bytes);
  state.memory_workspace.bar = memory_bar(description, physical_memory_bytes());
  if (other_ == nullptr) show_source(state, nullptr);
}

void MemoryWorkspace::detach() {
  writer_.reset();
  bytes_ = {};
}

void MemoryWorkspace::add(Source& source, const metrics::Trace& trace, ui::UiState& state) {
  const std::uint64_t first_mark = source.history.newest_mark();
  source.history.add(trace);
  ui::TimelineState& timeline = &source == &shown() ? state.memory_workspace.timeline : source.timeline;
  source.fold.add(trace, first_mark, timeline);
  timeline.oldest_mark = source.history.oldest_mark();
}

void MemoryWorkspace::fold(const Engine::Trace& trace, std::shared_ptr<const KvSnapshot> newest,
                           const ChatOf& chat_of, const StateBefore& state_before, ui::UiState& state) {
  if (live_ == nullptr) return;
  if (trace.num_lost > 0) {
    const auto before = state_before(trace.next_event_mark - trace.block_events.size());
    if (before) live_->history.begin_with(*before);
    if (writer_ != nullptr) {
      writer_.reset();
      state.memory_workspace.recording.is_recording = false;
      effects_.problem = "The recording ended early: the window was too slow to follow the engine.";
    }
  }
  if (newest != nullptr) {
    live_->history.learn(*newest);
    name_sequences(*live_, *newest, chat_of, state);
    live_->newest = std::move(newest);
  }
  const bool has_news = !trace.block_events.empty() || !trace.steps.empty();
  if (has_news) add(*live_, trace, state);
  if (writer_ != nullptr && has_news) writer_->notify();
  if (other_ == nullptr && state.workspace == ui::Workspace::kMemory) {
    if (state.memory_workspace.cursor.following) {
      show(state);
    } else {
      ++state.memory_workspace.version;
    }
  }
}

void MemoryWorkspace::name_sequences(Source& source, const KvSnapshot& snapshot, const ChatOf& chat_of,
                                     const ui::UiState& state) {
  std::map<RequestId, int> num_outputs;
  for (const SequenceSnapshot& sequence : snapshot.sequences) ++num_outputs[sequence.request_id];
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto chat = chat_of ? chat_of(sequence.request_id) : std::nullopt;
    const ui::ChatState* shown = chat ? ui::find_chat(state, *chat) : nullptr;
    ui::ShownSequence name{.label = "sequence " + std::to_string(sequence.sequence_id.value),
                           .colour_index = static_cast<std::uint32_t>(sequence.request_id.value)};
    if (shown != nullptr) name = {shown->id, shown->title, shown->colour_index};
    const auto other =
        shown == nullptr && name_of_ ? name_of_(sequence.request_id, sequence.output_index) : std::nullopt;
    if (other) {
      name.label = *other;
    } else if (num_outputs[sequence.request_id] > 1 || sequence.output_index > 0)
      name.label += " · sample " + std::to_string(sequence.output_index + 1);
    source.names.insert_or_assign(sequence.sequence_id.value, std::move(name));
  }
  while (source.names.size() > kMostNames) source.names.erase(source.names.begin());
  if (writer_ != nullptr) record_names();
}

// What the recording was not told yet, or otherwise.
void MemoryWorkspace::record_names() {
  std::vector<metrics::RecordedSequence> news;
  for (const auto& [id, name] : live_->names) {
    metrics::RecordedSequence sequence{.sequence = id, .colour_index = name.colour_index, .name = name.label};
    if (const auto facts = live_->history.facts().find(id); facts != live_->history.facts().end()) {
      sequence.request = facts->second.request_id.value;
      sequence.output_index = facts->second.output_index;
      sequence.num_prompt_tokens = facts->second.num_prompt_tokens;
    }
    auto& told = recorded_names_[id];
    if (told == sequence) continue;
    told = sequence;
    news.push_back(std::move(sequence));
  }
  if (!news.empty()) writer_->describe(std::move(news));
}

void MemoryWorkspace::put_away_timeline(ui::UiState& state) {
  if (has_source()) shown().timeline = std::move(state.memory_workspace.timeline);
  state.memory_workspace.timeline = {};
}

void MemoryWorkspace::show_source(ui::UiState& state, std::unique_ptr<Source> other) {
  put_away_timeline(state);
  other_ = std::move(other);
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  chosen_.reset();
  memory_workspace.hover = {};
  memory_workspace.cursor = {.speed = memory_workspace.cursor.speed};
  memory_workspace.source = other_ ? other_->kind : ui::MemorySource::kLive;
  if (!has_source()) return;
  memory_workspace.pool = shown().pool;
  memory_workspace.timeline = std::exchange(shown().timeline, {});
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
  if (a.page == ui::MemoryPage::kTour) {
    if (memory_workspace.source != ui::MemorySource::kTour)
      apply_one(act::ShowChapter{memory_workspace.tour.chapter}, state);
  } else if (memory_workspace.source == ui::MemorySource::kTour) {
    show_source(state, nullptr);
  }
  if (a.page == ui::MemoryPage::kPaper) {
    memory_workspace.paper.shape = shape_memory_bar("llama-13b", kPaperDeviceBytes);
    paper_.show(memory_workspace.paper);
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
  // Steps are fewer than events: the last step that ended by then, and after it events up to then.
  const MemoryHistory& history = shown().history;
  const auto& steps = state.memory_workspace.timeline.steps;
  std::uint64_t mark = history.oldest_mark();
  const auto after = std::partition_point(steps.begin(), steps.end(), [&](const ui::TimelineStep& step) {
    return step.record.begin_us <= a.time_us;
  });
  if (after != steps.begin()) mark = std::max(mark, std::prev(after)->mark);
  if (after != steps.begin() && std::prev(after) == std::prev(steps.end()) &&
      a.time_us >= state.memory_workspace.timeline.newest_us) {
    mark = history.newest_mark();
  }
  state.memory_workspace.cursor.playing = false;
  seek(mark, state);
}

void MemoryWorkspace::apply_one(const act::SeekMark& a, ui::UiState& state) {
  state.memory_workspace.cursor.playing = false;
  seek(a.mark, state);
}

void MemoryWorkspace::apply_one(const act::StepEvents& a, ui::UiState& state) {
  if (!has_source()) return;
  const std::uint64_t at = state.memory_workspace.cursor.following ? shown().history.newest_mark()
                                                                   : state.memory_workspace.cursor.mark;
  const auto moved = static_cast<std::int64_t>(at) + a.offset;
  state.memory_workspace.cursor.playing = false;
  seek(static_cast<std::uint64_t>(std::max<std::int64_t>(0, moved)), state);
}

void MemoryWorkspace::apply_one(const act::StepSteps& a, ui::UiState& state) {
  if (!has_source()) return;
  const auto& steps = state.memory_workspace.timeline.steps;
  const std::uint64_t at = state.memory_workspace.cursor.following ? shown().history.newest_mark()
                                                                   : state.memory_workspace.cursor.mark;
  state.memory_workspace.cursor.playing = false;
  const auto mark_of = [](const ui::TimelineStep& step) { return step.mark; };
  if (a.offset > 0) {
    const auto next = std::ranges::upper_bound(steps, at, {}, mark_of);
    return next == steps.end() ? seek(shown().history.newest_mark(), state) : seek(next->mark, state);
  }
  const auto here = std::ranges::lower_bound(steps, at, {}, mark_of);
  seek(here == steps.begin() ? shown().history.oldest_mark() : std::prev(here)->mark, state);
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

// Moves on by as much of the history's time as has gone by, times the speed; silence is cut short.
bool MemoryWorkspace::play(std::int64_t now_us, ui::UiState& state) {
  ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  if (!cursor.playing || !has_source()) return false;
  if (played_us_ < 0) played_us_ = now_us;
  const auto gone_us = static_cast<double>(now_us - played_us_) * cursor.speed;
  const MemoryHistory& history = shown().history;
  std::uint64_t mark = cursor.mark;
  const std::int64_t until_us = cursor.time_us + static_cast<std::int64_t>(gone_us);
  while (mark < history.newest_mark() && history.has_event(mark) && history.event(mark).time_us <= until_us)
    ++mark;
  constexpr double kLongestSilenceUs = 1'000'000;
  if (mark == cursor.mark && gone_us > kLongestSilenceUs && mark < history.newest_mark()) ++mark;
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
  counts_ages_ = is_shown && now_us_ - memory_workspace.timeline.newest_us <= kAgesCountUs;
  if (!is_shown) return false;
  memory_workspace.sentences =
      health_sentences(*memory_workspace.snapshot, memory_workspace, memory_workspace.cursor.mark, now_us_);
  return true;
}

bool MemoryWorkspace::wants_tick() const {
  return opening_.valid() || paper_.is_running() || is_playing_ || counts_ages_;
}

// ---- what is shown

void MemoryWorkspace::show(ui::UiState& state) {
  if (!has_source()) return;
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  Source& source = shown();
  ui::MemoryCursor& cursor = memory_workspace.cursor;
  is_playing_ = cursor.playing;
  if (!cursor.playing) played_us_ = -1;
  cursor.problem.clear();
  memory_workspace.names = source.names;
  memory_workspace.timeline.oldest_mark = source.history.oldest_mark();
  const bool is_newest = cursor.following || cursor.mark >= source.history.newest_mark();
  auto moment = source.history.at(is_newest ? source.history.newest_mark() : cursor.mark);
  if (!moment) {
    cursor.problem = moment.error().message;
    return;
  }
  // The engine's own snapshot says more than events can: classes, reservations, what waits.
  if (is_newest && cursor.following && source.newest != nullptr) moment->snapshot = source.newest;
  if (cursor.following) cursor.mark = source.history.newest_mark();
  memory_workspace.snapshot = moment->snapshot;
  ++memory_workspace.version;
  show_cursor(state);
  show_blocks(*moment, state);
  memory_workspace.health = health_figures(*memory_workspace.snapshot, memory_workspace.pool,
                                           memory_workspace.timeline, cursor.mark);
  const bool is_live = memory_workspace.source == ui::MemorySource::kLive && cursor.following;
  memory_workspace.sentences =
      health_sentences(*memory_workspace.snapshot, memory_workspace, cursor.mark, is_live ? now_us_ : -1);
  counts_ages_ =
      is_live && std::ranges::any_of(memory_workspace.sentences, [](const ui::HealthSentence& sentence) {
        return sentence.text.find(" s ago") != std::string::npos;
      });
  show_card(state);
  if (memory_workspace.source == ui::MemorySource::kTour) show_tour(state);
}

void MemoryWorkspace::show_cursor(ui::UiState& state) {
  ui::MemoryCursor& cursor = state.memory_workspace.cursor;
  const MemoryHistory& history = shown().history;
  if (cursor.mark > 0 && history.has_event(cursor.mark - 1)) {
    cursor.step = history.event(cursor.mark - 1).step;
    cursor.time_us = history.event(cursor.mark - 1).time_us;
  } else if (history.has_event(cursor.mark)) {
    cursor.step = history.event(cursor.mark).step;
    cursor.time_us = history.event(cursor.mark).time_us;
  }
}

void MemoryWorkspace::show_blocks(const MemoryHistory::Moment& moment, ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  const KvSnapshot& snapshot = *memory_workspace.snapshot;
  const PoolStory& story = shown().history.story();
  memory_workspace.sequences = sequences_of(snapshot, shown().names);
  BlockOwners owners = owners_of(snapshot, memory_workspace.sequences);
  memory_workspace.blocks = std::move(owners.blocks);
  memory_workspace.groups = std::move(owners.groups);
  for (std::size_t i = 0; i < memory_workspace.blocks.size() && i < story.blocks.size(); ++i) {
    memory_workspace.blocks[i].last_us = story.blocks[i].last_us;
  }
  memory_workspace.host = host_blocks(moment);
  memory_workspace.lines = table_lines(snapshot, memory_workspace.sequences);
  memory_workspace.tree =
      make_prefix_tree(snapshot, story, [this](BlockId block) { return text_of_block(block); });
}

std::string MemoryWorkspace::text_of(const Source& source, std::uint64_t sequence, std::int32_t index) const {
  const std::int32_t block_size = source.pool.block_size;
  if (source.kind == ui::MemorySource::kTour) {
    std::string text;
    const auto found = source.token_ids.find(sequence);
    if (found == source.token_ids.end()) return {};
    const auto count = static_cast<std::int32_t>(found->second.size());
    for (std::int32_t i = index * block_size; i < std::min(count, (index + 1) * block_size); ++i) {
      text += tour_word(found->second[static_cast<std::size_t>(i)]);
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
  const auto index = static_cast<std::size_t>(block.value);
  if (block.value < 0 || index >= blocks.size() || blocks[index].sequence == 0) return {};
  return text_of(shown(), blocks[index].sequence, blocks[index].index);
}

void MemoryWorkspace::show_card(ui::UiState& state) {
  ui::MemoryWorkspaceState& memory_workspace = state.memory_workspace;
  memory_workspace.card.reset();
  const KvSnapshot& snapshot = *memory_workspace.snapshot;
  if (!chosen_ || static_cast<std::size_t>(chosen_->value) >= snapshot.blocks.size()) return;
  const auto index = static_cast<std::size_t>(chosen_->value);
  const MemoryHistory& history = shown().history;
  const BlockStory& story = history.story().blocks[index];
  ui::BlockCard card{.block = *chosen_,
                     .state = snapshot.blocks[index],
                     .copied_from = story.copied_from,
                     .num_hits = story.num_hits,
                     .born_us = story.born_us,
                     .last_us = story.last_us};
  if (card.state.state != BlockState::kFree) {
    if (story.index >= 0) card.first_position = story.index * memory_workspace.pool.block_size;
    card.text = text_of_block(*chosen_);
  }
  for (std::size_t i = 0; i < snapshot.sequences.size() && i < memory_workspace.sequences.size(); ++i) {
    if (snapshot.sequences[i].state == SequenceState::kSwapped) continue;
    const auto& table = snapshot.sequences[i].block_table;
    const auto place = std::find(table.begin(), table.end(), *chosen_);
    if (place == table.end()) continue;
    card.owners.push_back({memory_workspace.sequences[i].label, memory_workspace.sequences[i].colour_index,
                           static_cast<std::int32_t>(place - table.begin())});
  }
  for (std::uint64_t mark = history.oldest_mark(); mark < memory_workspace.cursor.mark; ++mark) {
    const BlockEvent& event = history.event(mark);
    if (!names(event, chosen_->value)) continue;
    if (event.kind == BlockEventKind::kFill) {
      ++card.num_fills;
      continue;
    }
    if (event.kind == BlockEventKind::kSwapOut || event.kind == BlockEventKind::kSwapIn) ++card.num_swaps;
    if (takes_block(event.kind) && event.block == chosen_->value)
      card.copied_to.push_back(BlockId{event.aux});
    card.history.push_back({mark, event.time_us, event.kind, event.sequence, event.aux});
  }
  if (card.history.size() > kMostHistoryLines) {
    card.history.erase(card.history.begin(),
                       card.history.end() - static_cast<std::ptrdiff_t>(kMostHistoryLines));
  }
  if (snapshot.watched && snapshot.watched->block == *chosen_) card.why = snapshot.watched->why;
  memory_workspace.card = std::move(card);
}

void MemoryWorkspace::apply_one(const act::ChooseBlock& a, ui::UiState& state) {
  chosen_ = a.block < 0 ? std::nullopt : std::optional(BlockId{a.block});
  effects_.changes_watched_block = true;
  effects_.watched_block = other_ ? std::nullopt : chosen_;
  if (has_source() && state.memory_workspace.snapshot) show_card(state);
  ++state.memory_workspace.version;
}

// ---- linked hover

void MemoryWorkspace::light(BlockId block, ui::UiState& state) {
  ui::LinkedHover& hover = state.memory_workspace.hover;
  hover.blocks = {block};
  if (other_ != nullptr || live_ == nullptr) return;
  const std::int32_t block_size = live_->pool.block_size;
  std::set<RequestId> lit;
  const auto light_request = [&](RequestId request, std::int32_t index) {
    if (index < 0 || !lit.insert(request).second) return;
    for (const TokenBook::Stretch& stretch :
         tokens_.stretches_of(request, index * block_size, (index + 1) * block_size, bytes_)) {
      hover.ranges[{stretch.chat_id, stretch.message}].push_back(stretch.range);
    }
  };
  // Chats whose answer runs name it in a table; of the others the window knows what they left in the cache.
  for (const ui::ChatState& chat : state.chats) {
    const auto& blocks = chat.memory.blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].block_id != block) continue;
      if (const auto request = tokens_.newest_of(chat.id))
        light_request(*request, static_cast<std::int32_t>(i));
    }
  }
}

void MemoryWorkspace::apply_one(const act::HoverBlock& a, ui::UiState& state) {
  ui::LinkedHover& hover = state.memory_workspace.hover;
  if (a.block < 0) {
    hover = {};
    return;
  }
  if (hover.block == BlockId{a.block}) return;
  hover = {.block = BlockId{a.block}};
  light(BlockId{a.block}, state);
}

void MemoryWorkspace::apply_one(const act::HoverText& a, ui::UiState& state) {
  state.memory_workspace.hover = {};
  if (a.message_id == MessageId{} || live_ == nullptr) return;
  const auto place = tokens_.find(a.chat_id, a.message_id, a.begin, a.end, bytes_);
  const ui::ChatState* chat = ui::find_chat(state, a.chat_id);
  if (!place || chat == nullptr) return;
  const std::int32_t block_size = live_->pool.block_size;
  std::vector<BlockId> lit;
  for (std::int32_t i = place->begin / block_size; i <= (place->end - 1) / block_size; ++i) {
    if (static_cast<std::size_t>(i) < chat->memory.blocks.size())
      lit.push_back(chat->memory.blocks[static_cast<std::size_t>(i)].block_id);
  }
  if (lit.empty()) return;
  light(lit.front(), state);
  state.memory_workspace.hover.blocks = std::move(lit);
}

// ---- recordings and exports

void MemoryWorkspace::apply_one(const act::StartRecording&, ui::UiState& state) {
  if (live_ == nullptr || writer_ != nullptr) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::filesystem::path path = folder_ / ("octavo-" + time_stamp() + ".rec");
  auto file = metrics::RecordingFile::open(path);
  if (!file) {
    effects_.problem = file.error().message;
    return;
  }
  metrics::RecordingHeader header;
  header.bytes_per_block = live_->pool.bytes_per_block;
  header.max_model_len = live_->pool.max_model_len;
  header.unix_time_s = static_cast<std::int64_t>(std::time(nullptr));
  header.model = live_->pool.name;
  auto failure = std::make_shared<WriterFailure>();
  failure_ = failure;
  writer_ = std::make_unique<metrics::RecordingWriter>(*std::move(file), std::move(header),
                                                       live_->history.recorder(), [failure](const Error& e) {
                                                         std::lock_guard lock(failure->mutex);
                                                         failure->message = e.message;
                                                       });
  state.memory_workspace.recording.is_recording = true;
  state.memory_workspace.recording.path = path.string();
  recorded_names_.clear();
  record_names();
}

void MemoryWorkspace::apply_one(const act::StopRecording&, ui::UiState& state) {
  if (writer_ == nullptr) return;
  writer_.reset();
  state.memory_workspace.recording.is_recording = false;
  std::lock_guard lock(failure_->mutex);
  if (failure_->message.empty()) {
    effects_.notice = "Recorded to " + state.memory_workspace.recording.path + ".";
  } else {
    effects_.problem = failure_->message;
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
  const metrics::PoolShape shape = opened->header.pool;
  metrics::HistorySizes sizes;
  sizes.num_steps = std::max(sizes.num_steps, opened->trace.steps.size());
  sizes.num_events = std::max(sizes.num_events, 2 * opened->trace.block_events.size());
  auto source =
      std::make_unique<Source>(Source{.kind = ui::MemorySource::kRecording,
                                      .history = MemoryHistory(shape, opened->header.bytes_per_block, sizes),
                                      .fold = {},
                                      .pool = {.name = sanitise_utf8(opened->name),
                                               .block_size = shape.block_size,
                                               .num_blocks = shape.num_blocks,
                                               .num_host_blocks = shape.num_host_blocks,
                                               .bytes_per_block = opened->header.bytes_per_block,
                                               .max_model_len = opened->header.max_model_len},
                                      .timeline = {},
                                      .names = {},
                                      .newest = nullptr});
  for (metrics::RecordedSequence& sequence : opened->sequences) {
    source->history.learn(sequence.sequence,
                          {RequestId{sequence.request}, sequence.output_index, sequence.num_prompt_tokens});
    source->names[sequence.sequence] = {.label = std::move(sequence.name),
                                        .colour_index = sequence.colour_index};
  }
  source->history.begin_with(opened->start);
  const std::uint64_t first_mark = source->history.newest_mark();
  source->history.add(opened->trace);
  source->fold.add(opened->trace, first_mark, source->timeline);
  if (opened->is_shortened)
    effects_.notice = "The recording is very long: its beginning is shown.";
  else if (!opened->is_complete)
    effects_.notice = "The recording was cut short; what is there is shown.";
  state.memory_workspace.page = ui::MemoryPage::kPools;
  state.workspace = ui::Workspace::kMemory;
  show_source(state, std::move(source));
  return true;
}

void MemoryWorkspace::apply_one(const act::CloseRecording&, ui::UiState& state) {
  show_source(state, nullptr);
}

void MemoryWorkspace::apply_one(const act::ListRecordings&, ui::UiState& state) {
  state.memory_workspace.recording.known = list_recordings(folder_);
}

void MemoryWorkspace::apply_one(const act::ExportMemory& a, ui::UiState& state) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::filesystem::path stem = folder_ / ("octavo-memory-" + time_stamp());
  if (a.format == act::ExportFormat::kPng) {
    effects_.picture = stem.string() + ".png";
    return;
  }
  const bool is_json = a.format == act::ExportFormat::kJson;
  const std::filesystem::path path = stem.string() + (is_json ? ".json" : ".csv");
  const std::string text =
      is_json ? memory_json(state.memory_workspace) : steps_csv(state.memory_workspace.timeline);
  const Result<void> written = write_export(path, text);
  if (written) {
    effects_.notice = "Exported to " + path.string() + ".";
  } else {
    effects_.problem = written.error().message;
  }
}

// ---- tour and paper

void MemoryWorkspace::apply_one(const act::ShowChapter& a, ui::UiState& state) {
  ui::TourState& tour = state.memory_workspace.tour;
  tour.chapters = tour_titles();
  const auto last = static_cast<std::int32_t>(tour.chapters.size()) - 1;
  tour.chapter = std::clamp(a.chapter, 0, last);
  TourChapter chapter = play_tour_chapter(static_cast<std::size_t>(tour.chapter));
  auto source =
      std::make_unique<Source>(Source{.kind = ui::MemorySource::kTour,
                                      .history = MemoryHistory(chapter.shape, chapter.bytes_per_block),
                                      .fold = {},
                                      .pool = {.name = chapter.title,
                                               .block_size = chapter.shape.block_size,
                                               .num_blocks = chapter.shape.num_blocks,
                                               .num_host_blocks = chapter.shape.num_host_blocks,
                                               .bytes_per_block = chapter.bytes_per_block,
                                               .max_model_len = chapter.max_model_len},
                                      .timeline = {},
                                      .names = {},
                                      .newest = nullptr});
  for (const KvSnapshot& snapshot : chapter.snapshots) source->history.learn(snapshot);
  for (const auto& [sequence, label] : chapter.labels) {
    const auto facts = source->history.facts().find(sequence);
    const std::uint64_t request =
        facts != source->history.facts().end() ? facts->second.request_id.value : sequence;
    source->names[sequence] = {.label = label, .colour_index = static_cast<std::uint32_t>(request - 1)};
  }
  source->token_ids = std::move(chapter.token_ids);
  source->stops = std::move(chapter.stops);
  source->history.add(chapter.trace);
  source->fold.add(chapter.trace, 0, source->timeline);
  state.memory_workspace.page = ui::MemoryPage::kTour;
  show_source(state, std::move(source));
  seek(0, state);
}

void MemoryWorkspace::apply_one(const act::MoveTour& a, ui::UiState& state) {
  if (other_ == nullptr || other_->stops.empty()) return;
  ui::TourState& tour = state.memory_workspace.tour;
  const std::int32_t wanted = tour.step + a.offset;
  const auto count = static_cast<std::int32_t>(other_->stops.size());
  if (wanted >= count) {
    if (tour.chapter + 1 < static_cast<std::int32_t>(tour.chapters.size()))
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
  tour.title = tour.chapters[static_cast<std::size_t>(tour.chapter)];
  tour.sentence = stops[other_->stop].sentence;
}

void MemoryWorkspace::apply_one(const act::RunPaper&, ui::UiState& state) {
  paper_.start();
  paper_.show(state.memory_workspace.paper);
}

void MemoryWorkspace::apply_one(const act::CancelPaper&, ui::UiState&) { paper_.cancel(); }

bool MemoryWorkspace::take_paper(ui::UiState& state) {
  if (!state.memory_workspace.paper.is_running && !paper_.is_running()) return false;
  paper_.show(state.memory_workspace.paper);
  return true;
}

}  // namespace octavo::app
