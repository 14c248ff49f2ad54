#include "app/window/memory/history_source.h"

#include <utility>

#include "app/window/models/model_title.h"

namespace octavo::app {

void HistorySource::add(const metrics::Trace& trace) {
  timeline.add(trace, [this](std::uint64_t mark) {
    history.follow_to(mark);
    return history.newest();
  });
  history.follow_to(trace.next_event_mark);
  timeline.keep_from(history.oldest_mark());
}

std::unique_ptr<HistorySource> live_source(const EngineDescription& description,
                                           std::shared_ptr<const metrics::StepRecorder> recorder) {
  return std::make_unique<HistorySource>(HistorySource{
      .kind = ui::MemorySource::kLive,
      .pool = {.name = model_title(description.model),
               .block_size = description.block_size,
               .num_blocks = description.num_blocks,
               .num_host_blocks = description.num_host_blocks,
               .bytes_per_block = description.bytes_per_block,
               .num_states = description.num_states,
               .num_host_states = description.num_host_states,
               .bytes_per_state = description.bytes_per_state,
               .window = description.window,
               .num_window_blocks = description.num_window_blocks,
               .num_host_window_blocks = description.num_host_window_blocks,
               .bytes_per_window_block = description.bytes_per_window_block,
               .max_model_len = description.max_model_len},
      .history = MemoryHistory(std::move(recorder), {description.bytes_per_block, description.bytes_per_state,
                                                     description.bytes_per_window_block}),
      .timeline = MemoryTimeline(model_title(description.model))});
}

std::unique_ptr<HistorySource> tour_source(TourChapter chapter) {
  const metrics::PoolShape shape = chapter.recorder->shape();
  auto source = std::make_unique<HistorySource>(HistorySource{
      .kind = ui::MemorySource::kTour,
      .pool = {.name = chapter.title,
               .block_size = shape.block_size,
               .num_blocks = shape.num_blocks,
               .num_host_blocks = shape.num_host_blocks,
               .bytes_per_block = chapter.bytes_per_block,
               .num_states = shape.num_states,
               .num_host_states = shape.num_host_states,
               .bytes_per_state = chapter.bytes_per_state,
               .window = shape.window,
               .num_window_blocks = shape.num_window_blocks,
               .num_host_window_blocks = shape.num_host_window_blocks,
               .bytes_per_window_block = chapter.bytes_per_window_block,
               .max_model_len = chapter.max_model_len},
      .history = MemoryHistory(chapter.recorder, {chapter.bytes_per_block, chapter.bytes_per_state,
                                                  chapter.bytes_per_window_block}),
      .title = std::move(chapter.title),
      .words = std::move(chapter.words),
      .stops = std::move(chapter.stops)});
  for (const KvSnapshot& snapshot : chapter.snapshots) source->history.learn(snapshot);
  for (const auto& [sequence, label] : chapter.labels) {
    const auto colour = chapter.colours.find(sequence);
    source->timeline.name(
        sequence, {.label = label, .colour_index = colour == chapter.colours.end() ? 0 : colour->second});
  }
  source->add(chapter.recorder->read_since(0, 0));
  return source;
}

}  // namespace octavo::app
