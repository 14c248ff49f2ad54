// What happened in some lives, as counters: a simulation in which nothing was preempted has shown nothing
// about preemption.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo::simulation {

struct Counts {
  std::int64_t lives = 0;
  std::int64_t steps = 0;  // in which there was something to do
  std::int64_t requests = 0;
  std::int64_t tokens = 0;  // delivered
  // Faults put in.
  std::int64_t failed_steps = 0;
  std::int64_t cancels_preparing = 0, cancels_waiting = 0, cancels_running = 0, cancels_swapped = 0,
               cancels_ended = 0;
  std::int64_t cancelled_outputs = 0, cancelled_outputs_early = 0;  // early: before it had a token
  std::int64_t resets = 0;
  std::int64_t reader_sleeps = 0, intake_sleeps = 0;
  // How requests ended otherwise than by themselves.
  std::int64_t refused = 0;
  std::int64_t failed_by_device = 0;
  std::int64_t failed_by_logits = 0;
  std::int64_t out_of_memory_outputs = 0;
  // What memory went through.
  std::int64_t preempted_recompute = 0, preempted_swap = 0;
  std::int64_t paused_outputs = 0;  // of the preempted groups
  std::int64_t swapped_out_blocks = 0, swapped_in_blocks = 0;
  std::int64_t block_copies = 0, partial_copies = 0;
  std::int64_t hit_tokens = 0, evictions = 0;
  std::int64_t forks = 0, prunes = 0;
  std::int64_t beam_steps = 0;
  std::int64_t pin_releases = 0;
  std::int64_t failed_swaps = 0;  // of the failed steps
  // Speculation.
  std::int64_t drafted_tokens = 0, accepted_tokens = 0;
  // Rows of steps that were begun ahead, and of these those that were nobody's when they were computed.
  std::int64_t rows_ahead = 0, rows_in_vain = 0;
  // Prompts of messages, and what of them was there already.
  std::int64_t chat_prompts = 0, continued_answers = 0, answers_with_ids = 0;
  std::int64_t encoded_system_messages = 0, found_system_tokens = 0;
  // Recurrent layers.
  std::int64_t left_window_parts = 0, evicted_window_parts = 0, swapped_window_parts = 0;
  std::int64_t checkpoints = 0, resumed_checkpoints = 0, evicted_checkpoints = 0;
  std::int64_t copied_states = 0, swapped_states = 0;
  // Steps that prompts and outputs shared.
  std::int64_t judged_gaps = 0;
  // Of two lines of requests.
  std::int64_t passed_over = 0, gave_way = 0;
  // What requests are told beside answers.
  std::int64_t embeddings = 0, progress_told = 0;
};

// Calls visit(name, value) for each counter, in order.
template <class SomeCounts, class Visitor>
void visit_counts(SomeCounts& counts, Visitor visit) {
  visit("lives", counts.lives);
  visit("steps", counts.steps);
  visit("requests", counts.requests);
  visit("tokens", counts.tokens);
  visit("failed_steps", counts.failed_steps);
  visit("cancels_preparing", counts.cancels_preparing);
  visit("cancels_waiting", counts.cancels_waiting);
  visit("cancels_running", counts.cancels_running);
  visit("cancels_swapped", counts.cancels_swapped);
  visit("cancels_ended", counts.cancels_ended);
  visit("cancelled_outputs", counts.cancelled_outputs);
  visit("cancelled_outputs_early", counts.cancelled_outputs_early);
  visit("resets", counts.resets);
  visit("reader_sleeps", counts.reader_sleeps);
  visit("intake_sleeps", counts.intake_sleeps);
  visit("refused", counts.refused);
  visit("failed_by_device", counts.failed_by_device);
  visit("failed_by_logits", counts.failed_by_logits);
  visit("out_of_memory_outputs", counts.out_of_memory_outputs);
  visit("preempted_recompute", counts.preempted_recompute);
  visit("preempted_swap", counts.preempted_swap);
  visit("paused_outputs", counts.paused_outputs);
  visit("swapped_out_blocks", counts.swapped_out_blocks);
  visit("swapped_in_blocks", counts.swapped_in_blocks);
  visit("block_copies", counts.block_copies);
  visit("partial_copies", counts.partial_copies);
  visit("hit_tokens", counts.hit_tokens);
  visit("evictions", counts.evictions);
  visit("forks", counts.forks);
  visit("prunes", counts.prunes);
  visit("beam_steps", counts.beam_steps);
  visit("pin_releases", counts.pin_releases);
  visit("failed_swaps", counts.failed_swaps);
  visit("drafted_tokens", counts.drafted_tokens);
  visit("accepted_tokens", counts.accepted_tokens);
  visit("rows_ahead", counts.rows_ahead);
  visit("rows_in_vain", counts.rows_in_vain);
  visit("chat_prompts", counts.chat_prompts);
  visit("continued_answers", counts.continued_answers);
  visit("answers_with_ids", counts.answers_with_ids);
  visit("encoded_system_messages", counts.encoded_system_messages);
  visit("found_system_tokens", counts.found_system_tokens);
  visit("left_window_parts", counts.left_window_parts);
  visit("evicted_window_parts", counts.evicted_window_parts);
  visit("swapped_window_parts", counts.swapped_window_parts);
  visit("checkpoints", counts.checkpoints);
  visit("resumed_checkpoints", counts.resumed_checkpoints);
  visit("evicted_checkpoints", counts.evicted_checkpoints);
  visit("copied_states", counts.copied_states);
  visit("swapped_states", counts.swapped_states);
  visit("judged_gaps", counts.judged_gaps);
  visit("passed_over", counts.passed_over);
  visit("gave_way", counts.gave_way);
  visit("embeddings", counts.embeddings);
  visit("progress_told", counts.progress_told);
}

inline void add(Counts& sum, const Counts& more) {
  std::int64_t values[64];
  std::size_t count = 0, index = 0;
  visit_counts(more, [&](std::string_view, std::int64_t value) { values[count++] = value; });
  visit_counts(sum, [&](std::string_view, std::int64_t& value) { value += values[index++]; });
}

}  // namespace octavo::simulation
