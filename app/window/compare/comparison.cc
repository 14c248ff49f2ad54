#include "app/window/compare/comparison.h"

#include <algorithm>
#include <set>
#include <variant>

#include "app/chat/finish_text.h"
#include "app/window/compare/compared_settings.h"
#include "app/window/kept_token_ids.h"
#include "app/window/memory/sequence_names.h"
#include "engine/base/check.h"
#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// More cost a step nothing, but a card with more is not read.
constexpr std::int32_t kNumAlternatives = 8;
constexpr std::size_t kMostCopies = 16'384;
constexpr const char* kOf = " of ";

ui::ColumnPhase phase_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kAbort: return ui::ColumnPhase::kStopped;
    case FinishReason::kError: return ui::ColumnPhase::kFailed;
    default: return ui::ColumnPhase::kFinished;
  }
}

std::vector<TokenId> ids_of(const std::vector<ui::ComparedToken>& tokens) {
  std::vector<TokenId> ids;
  ids.reserve(tokens.size());
  for (const ui::ComparedToken& token : tokens) ids.push_back(token.token_id);
  return ids;
}

std::vector<std::string> names(const char* kind, std::int32_t count) {
  std::vector<std::string> result;
  for (std::int32_t i = 1; i <= count; ++i) result.push_back(std::string(kind) + " " + std::to_string(i));
  return result;
}

std::int32_t within_limits(std::int32_t count) {
  return std::clamp(count, ui::kFewestCompared, ui::kMostCompared);
}

}  // namespace

// ---- asking

void Comparison::open(Source source) {
  cancel_all();
  clear();
  state_->messages = std::move(source.messages);
  state_->question = state_->messages.empty() ? std::string() : state_->messages.back().content;
  state_->chat_id = source.chat_id;
  state_->message_id = source.message_id;
  state_->chat_title = std::move(source.chat_title);
  ui::ComparisonSetup& setup = state_->setup;
  setup.sampling = source.sampling;
  setup.sampling.seed.reset();
  setup.variants =
      two_settings({setup.sampling, system_prompt_of(state_->messages), std::move(source.template_values)});
}

void Comparison::change_setup(const ui::ComparisonSetup& setup) {
  state_->setup = setup;
  state_->setup.num_samples = within_limits(setup.num_samples);
  state_->setup.beam_width = within_limits(setup.beam_width);
  if (state_->setup.variants.size() > ui::kMostCompared) state_->setup.variants.resize(ui::kMostCompared);
}

void Comparison::run(const std::vector<LanePrompt>& prompts) {
  if (engine_ == nullptr) return refuse("No model is loaded. Load one, then run the comparison.");
  cancel_all();
  clear();
  make_lanes(prompts);
  submit_lanes();
}

void Comparison::refuse(std::string problem) {
  cancel_all();
  clear();
  state_->problem = std::move(problem);
}

void Comparison::run_again() {
  cancel_all();
  for (Lane& lane : lanes_) prepare_again(lane);
  state_->beams.nodes.clear();
  state_->beams.live.clear();
  state_->beams.final.clear();
  state_->beams.num_steps = 0;
  node_texts_.clear();
  state_->seats.clear();
  state_->memory = {};
  copies_.clear();
  submit_lanes();
}

void Comparison::stop() { cancel_all(); }

void Comparison::stop_column(ui::ColumnId column_id) {
  const Lane* const lane = lane_of(column_id);
  if (engine_ == nullptr || lane == nullptr || !lane->request_id || lane->ended) return;
  engine_->cancel_output(*lane->request_id, find_column(column_id)->output_index);
}

void Comparison::cancel_all() {
  if (engine_ == nullptr) return;
  for (const Lane& lane : lanes_) {
    if (lane.request_id && !lane.ended) engine_->cancel(*lane.request_id);
  }
}

void Comparison::clear() {
  lanes_.clear();
  growth_.clear();
  copies_.clear();
  node_texts_.clear();
  num_forks_ = 0;
  state_->columns.clear();
  state_->seats.clear();
  state_->beams = {};
  state_->memory = {};
  state_->running = false;
  state_->progress = 0;
  state_->num_prompt_tokens = 0;
  state_->num_cached_tokens = 0;
  state_->problem.clear();
}

void Comparison::make_lanes(const std::vector<LanePrompt>& prompts) {
  const ui::ComparisonSetup& setup = state_->setup;
  state_->shown_kind = setup.kind;
  state_->num_alternatives = kNumAlternatives;
  SamplingParams sampling = setup.sampling;
  sampling.beam_width.reset();
  switch (setup.kind) {
    case ui::ComparisonKind::kSamples:
      sampling.n = setup.num_samples;
      add_lane(prompts.front(), sampling, names("Sample", setup.num_samples));
      break;
    case ui::ComparisonKind::kBeams:
      sampling.n = 1;
      sampling.beam_width = setup.beam_width;
      add_lane(prompts.front(), sampling, names("Beam", setup.beam_width));
      state_->beams.width = setup.beam_width;
      state_->beams.length_penalty = sampling.length_penalty;
      break;
    case ui::ComparisonKind::kSettings: {
      OCTAVO_CHECK(prompts.size() == setup.variants.size(), "a prompt for each of the settings");
      const std::uint64_t seed = setup.sampling.seed ? *setup.sampling.seed : draw_seed_();
      for (std::size_t i = 0; i < setup.variants.size(); ++i) {
        sampling = setup.variants[i].sampling;
        sampling.n = 1;
        sampling.beam_width.reset();
        sampling.seed = seed;
        add_lane(prompts[i], sampling, {ui::settings_name(i)});
      }
      break;
    }
  }
  show_differences();
}

void Comparison::add_lane(const LanePrompt& prompt, const SamplingParams& sampling,
                          const std::vector<std::string>& names) {
  Lane& lane = lanes_.emplace_back();
  lane.request.prompt = prompt.prompt;
  lane.request.sampling = sampling;
  lane.request.sampling.logprobs = kNumAlternatives;
  lane.request.retention = RetentionClass::kChat;
  for (const std::string& name : names) {
    ui::ComparedColumn& column = state_->columns.emplace_back(new_column(lane, name));
    column.system_prompt = system_prompt_of(prompt.prompt.messages);
    column.template_values = prompt.prompt.template_values;
    column.num_left_out = prompt.num_left_out;
  }
}

ui::ComparedColumn Comparison::new_column(Lane& lane, std::string name) {
  ui::ComparedColumn column;
  column.id = ui::ColumnId{next_column_++};
  column.name = std::move(name);
  column.output_index = static_cast<std::int32_t>(lane.columns.size());
  column.sampling = lane.request.sampling;
  growth_.emplace(column.id, Growth{.detokenizer = tokenizer::Detokenizer(engine_->tokenizer())});
  lane.columns.push_back(column.id);
  return column;
}

void Comparison::submit_lanes() {
  std::vector<GenerationRequest> requests;
  std::vector<Lane*> asked;
  for (Lane& lane : lanes_) {
    if (lane.request_id) continue;
    forget_foreign_ids(engine_->tokenizer(), lane.request);
    requests.push_back(lane.request);
    asked.push_back(&lane);
  }
  const std::vector<RequestId> ids = engine_->submit_all(std::move(requests));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i]->request_id = ids[i];
    for (const ui::ColumnId id : asked[i]->columns) growth_of(id).submitted_us = clock_->now_us();
  }
  state_->running = true;
  state_->problem.clear();
  count_progress();
}

// The same request once more: the seed that it had, and the prompt as the token ids that it had.
void Comparison::prepare_again(Lane& lane) {
  lane.request_id.reset();
  lane.ended = false;
  if (!lane.prompt_token_ids.empty()) {
    std::vector<TokenId> ids = lane.prompt_token_ids;
    ids.insert(ids.end(), lane.forced.begin(), lane.forced.end());
    lane.request.prompt = TokenPrompt{std::move(ids)};
  }
  for (const ui::ColumnId id : lane.columns) {
    ui::ComparedColumn& column = *find_column(id);
    Growth& growth = growth_of(id);
    const std::vector<ui::ComparedToken> forced(column.tokens.begin(),
                                                column.tokens.begin() + column.num_forced);
    std::vector<TokenId> before = ids_of(column.tokens);
    growth = Growth{.detokenizer = tokenizer::Detokenizer(engine_->tokenizer())};
    growth.before = std::move(before);
    restart_text(column, growth);
    for (const ui::ComparedToken& token : forced) {
      append_token(column, growth, token.token_id, token.logprob);
      column.tokens.back().forced = true;
      column.tokens.back().alternatives = token.alternatives;
    }
    growth.num_forced_bytes = column.text.size();
    column.phase = ui::ColumnPhase::kWaiting;
    column.finish.clear();
    column.error.clear();
    column.score.reset();
    column.repeats.reset();
    column.memory = {};
    column.tokens_per_second.reset();
    column.first_token_ms.reset();
  }
}

void Comparison::fork(ui::ColumnId column_id, std::size_t token_index, std::size_t alternative) {
  const Lane* parent_lane = lane_of(column_id);
  ui::ComparedColumn* found = find_column(column_id);
  if (engine_ == nullptr || parent_lane == nullptr || found == nullptr) return;
  const bool exists =
      token_index < found->tokens.size() && alternative < found->tokens[token_index].alternatives.size();
  if (!exists || state_->columns.size() >= ui::kMostColumns) return;
  const ui::ComparedColumn parent = *found;
  const ui::TokenAlternative chosen = parent.tokens[token_index].alternatives[alternative];
  if (chosen.ends_text) return;

  Lane lane;
  lane.prompt_token_ids = parent_lane->prompt_token_ids;
  lane.forced = ids_of(parent.tokens);
  lane.forced.resize(token_index);
  lane.forced.push_back(chosen.token_id);
  lane.request = parent_lane->request;
  SamplingParams& sampling = lane.request.sampling;
  if (sampling.beam_width)
    sampling.temperature = 0;  // the likeliest continuation, as near to a beam as one answer is
  sampling.n = 1;
  sampling.beam_width.reset();
  sampling.seed = parent.seed;
  sampling.max_tokens = std::max(1, sampling.max_tokens - static_cast<std::int32_t>(lane.forced.size()) +
                                        static_cast<std::int32_t>(parent_lane->forced.size()));
  sampling.min_tokens = std::min(sampling.min_tokens, sampling.max_tokens);
  std::vector<TokenId> ids = lane.prompt_token_ids;
  ids.insert(ids.end(), lane.forced.begin(), lane.forced.end());
  lane.request.prompt = TokenPrompt{std::move(ids)};
  const std::string origin = parent.num_forced > 0
                                 ? parent.name.substr(parent.name.find(kOf) + std::string_view(kOf).size())
                                 : parent.name;
  ui::ComparedColumn column = new_column(lane, "Fork " + std::to_string(++num_forks_) + kOf + origin);
  column.sampling.max_tokens = parent.sampling.max_tokens;  // of the whole column
  column.system_prompt = parent.system_prompt;
  column.template_values = parent.template_values;
  column.num_left_out = parent.num_left_out;
  force_tokens(column, parent, token_index, chosen);
  const auto place = std::find_if(state_->columns.begin(), state_->columns.end(),
                                  [&](const ui::ComparedColumn& each) { return each.id == column_id; });
  state_->columns.insert(place + 1, std::move(column));
  lanes_.push_back(std::move(lane));
  submit_lanes();
  show_differences();
  share_prefixes();
}

void Comparison::force_tokens(ui::ComparedColumn& column, const ui::ComparedColumn& parent,
                              std::size_t token_index, const ui::TokenAlternative& alternative) {
  Growth& growth = growth_of(column.id);
  for (std::size_t i = 0; i <= token_index; ++i) {
    const ui::ComparedToken& token = parent.tokens[i];
    const bool last = i == token_index;
    append_token(column, growth, last ? alternative.token_id : token.token_id,
                 last ? alternative.logprob : token.logprob);
    column.tokens.back().forced = true;
    column.tokens.back().alternatives = token.alternatives;
  }
  column.num_forced = static_cast<std::int32_t>(column.tokens.size());
  growth.num_forced_bytes = column.text.size();
}

void Comparison::show_differences() {
  std::vector<ui::ComparedSettings> all;
  for (const ui::ComparedColumn& column : state_->columns)
    all.push_back({column.sampling, column.system_prompt, column.template_values});
  const bool same_messages =
      std::all_of(state_->columns.begin(), state_->columns.end(), [&](const ui::ComparedColumn& column) {
        return column.num_left_out == state_->columns.front().num_left_out;
      });
  for (std::size_t i = 0; i < all.size(); ++i) {
    ui::ComparedColumn& column = state_->columns[i];
    column.differences = settings_differences(all[i], all);
    if (same_messages) continue;
    column.differences +=
        (column.differences.empty() ? "" : " · ") + count_text(column.num_left_out, "message") + " left out";
  }
}

void Comparison::detach_engine(const std::string& why) {
  engine_ = nullptr;
  for (Lane& lane : lanes_) {
    if (!lane.ended) end_lane(lane, ui::ColumnPhase::kFailed, {}, why);
  }
  state_->running = false;
  for (ui::ComparedColumn& column : state_->columns) column.memory.running = false;
  for (ui::SeatMemory& seat : state_->seats) seat.memory.running = false;
  lanes_.clear();  // token ids mean something else to another model
  growth_.clear();
}

std::optional<Message> Comparison::message_of(ui::ColumnId column_id) const {
  const ui::ComparedColumn* column = ui::find_column(*state_, column_id);
  const auto growth = growth_.find(column_id);
  if (column == nullptr || !ui::has_ended(column->phase) || column->text.empty()) return std::nullopt;
  Message message;
  message.role = Role::kAssistant;
  message.content = column->text;
  message.finish_reason = FinishReason::kAbort;
  message.seed = column->seed;
  const Lane* lane = lane_of(column_id);
  if (growth == growth_.end() || lane == nullptr || engine_ == nullptr) return message;
  message.finish_reason = growth->second.finish_reason.value_or(FinishReason::kAbort);
  message.metrics = AnswerMetrics{static_cast<std::int32_t>(lane->prompt_token_ids.size()),
                                  lane->num_cached_tokens, lane->metrics};
  message.token_ids = ids_of(column->tokens);
  keep_ids_of_text(engine_->tokenizer(), growth->second.stop_reason, message);
  return message;
}

std::optional<Message> Comparison::beginning_of(ui::ColumnId column_id, std::size_t token_index,
                                                std::size_t alternative) const {
  const ui::ComparedColumn* column = ui::find_column(*state_, column_id);
  if (column == nullptr || engine_ == nullptr || lane_of(column_id) == nullptr ||
      token_index >= column->tokens.size() || alternative >= column->tokens[token_index].alternatives.size())
    return std::nullopt;
  const ui::TokenAlternative& chosen = column->tokens[token_index].alternatives[alternative];
  if (chosen.ends_text) return std::nullopt;
  Message message;
  message.role = Role::kAssistant;
  message.finish_reason = FinishReason::kAbort;  // so that it can be continued
  message.token_ids = ids_of(column->tokens);
  message.token_ids.resize(token_index);
  message.token_ids.push_back(chosen.token_id);
  message.content = sanitise_utf8(engine_->tokenizer().decode(message.token_ids, /*skip_special=*/true));
  keep_ids_of_text(engine_->tokenizer(), StopReason{}, message);
  return message;
}

// ---- events

bool Comparison::fold(const EngineEvent& event) {
  Lane* lane = find_lane(request_id_of(event));
  if (lane == nullptr) return false;
  std::visit([&](const auto& kind) { fold_event(*lane, kind); }, event);
  return true;
}

void Comparison::fold_event(Lane& lane, const RequestAccepted& event) {
  const bool is_beams = lane.request.sampling.beam_width.has_value();
  if (lane.prompt_token_ids.empty()) lane.prompt_token_ids = event.prompt_token_ids;
  if (&lane == &lanes_.front())
    state_->num_prompt_tokens = static_cast<std::int32_t>(event.prompt_token_ids.size());
  lane.request.sampling.seed = event.seed;
  for (const ui::ColumnId id : lane.columns) {
    ui::ComparedColumn& column = *find_column(id);
    column.num_prompt_tokens = static_cast<std::int32_t>(lane.prompt_token_ids.size());
    if (!is_beams) column.seed = event.seed;
  }
}

void Comparison::fold_event(Lane& lane, const RequestAdmitted& event) {
  lane.num_cached_tokens = event.num_cached_tokens;
  if (&lane == &lanes_.front()) state_->num_cached_tokens = event.num_cached_tokens;
  for (const ui::ColumnId id : lane.columns) {
    ui::ComparedColumn& column = *find_column(id);
    if (!ui::has_ended(column.phase)) column.phase = ui::ColumnPhase::kRunning;
  }
}

void Comparison::fold_event(Lane& lane, const TokensGenerated& event) {
  ui::ComparedColumn* column = column_of(lane, event.output_index);
  if (column == nullptr) return;
  Growth& growth = growth_of(column->id);
  const bool is_beams = lane.request.sampling.beam_width.has_value();
  if (is_beams && growth.leaf >= 0) {  // the beam that was shown here gives way to the answer
    growth.leaf = -1;
    restart_text(*column, growth);
  }
  if (!ui::has_ended(column->phase)) column->phase = ui::ColumnPhase::kRunning;
  for (std::size_t i = 0; i < event.token_ids.size(); ++i) {
    append_token(*column, growth, event.token_ids[i], i < event.logprobs.size() ? event.logprobs[i] : 0.0f);
    if (i < event.top_logprobs.size())
      column->tokens.back().alternatives = alternatives_of(event.top_logprobs[i]);
  }
  growth.told_bytes += event.text.size();
  growth.num_drawn += static_cast<std::int32_t>(event.token_ids.size());
  if (!is_beams) note_time(*column, growth);
}

void Comparison::fold_event(Lane& lane, const BeamsAdvanced& event) {
  for (const BeamStep& step : event.steps) add_beam_step(step);
  show_live_beams(lane);
}

void Comparison::fold_event(Lane& lane, const RequestPreempted& event) {
  for (auto index = static_cast<std::size_t>(event.first_output_index); index < lane.columns.size();
       ++index) {
    ui::ComparedColumn& column = *find_column(lane.columns[index]);
    if (!ui::has_ended(column.phase)) column.phase = ui::ColumnPhase::kPreempted;
  }
}

void Comparison::fold_event(Lane& lane, const OutputFinished& event) {
  ui::ComparedColumn* column = column_of(lane, event.output_index);
  if (column == nullptr) return;
  Growth& growth = growth_of(column->id);
  growth.finish_reason = event.finish_reason;
  growth.stop_reason = event.stop_reason;
  column->phase = phase_of(event.finish_reason);
  column->finish = finish_text(event.finish_reason, event.stop_reason);
  column->error = sanitise_utf8(event.detail);
  column->score = event.score;
  end_text(*column, growth);
}

void Comparison::fold_event(Lane& lane, const RequestFinished& event) {
  lane.metrics = event.metrics;
  if (lane.request.sampling.beam_width) find_final_nodes(lane);
  end_lane(lane, ui::ColumnPhase::kStopped, "no answer", {});
}

void Comparison::fold_event(Lane& lane, const RequestFailed& event) {
  lane.metrics = event.metrics;
  end_lane(lane, ui::ColumnPhase::kFailed, "failed", sanitise_utf8(event.error.message));
}

// Ends what no event has ended.
void Comparison::end_lane(Lane& lane, ui::ColumnPhase phase, const std::string& finish,
                          const std::string& error) {
  lane.ended = true;
  for (const ui::ColumnId id : lane.columns) {
    ui::ComparedColumn* column = find_column(id);
    if (column == nullptr || ui::has_ended(column->phase)) continue;
    Growth& growth = growth_of(id);
    const bool beam_without_answer = growth.leaf >= 0 && error.empty();
    if (beam_without_answer) restart_text(*column, growth);
    column->phase = phase;
    column->finish = finish;
    column->error = error;
    end_text(*column, growth);
  }
}

// ---- text

void Comparison::append_token(ui::ComparedColumn& column, Growth& growth, TokenId token, float logprob) {
  ui::ComparedToken added;
  added.token_id = token;
  added.begin = static_cast<std::uint32_t>(column.text.size());
  column.text += growth.detokenizer.push(token);
  added.end = static_cast<std::uint32_t>(column.text.size());
  added.logprob = logprob;
  added.cumulative_logprob =
      logprob + (column.tokens.empty() ? 0.0f : column.tokens.back().cumulative_logprob);
  column.tokens.push_back(std::move(added));
}

std::vector<ui::TokenAlternative> Comparison::alternatives_of(const std::vector<TokenLogprob>& top) const {
  std::vector<ui::TokenAlternative> alternatives;
  alternatives.reserve(top.size());
  const tokenizer::Tokenizer& tokenizer = engine_->tokenizer();
  for (const TokenLogprob& entry : top) {
    alternatives.push_back({.token_id = entry.token_id,
                            .text = sanitise_utf8(tokenizer.token_bytes(entry.token_id)),
                            .logprob = entry.logprob,
                            .ends_text = tokenizer.is_end_of_sequence(entry.token_id)});
  }
  return alternatives;
}

void Comparison::note_time(ui::ComparedColumn& column, Growth& growth) const {
  growth.newest_token_us = clock_->now_us();
  if (growth.first_token_us == 0) {
    growth.first_token_us = growth.newest_token_us;
    column.first_token_ms = static_cast<double>(growth.first_token_us - growth.submitted_us) / 1000.0;
  }
  const std::int64_t elapsed = growth.newest_token_us - growth.first_token_us;
  if (growth.num_drawn > 1 && elapsed > 0)
    column.tokens_per_second = static_cast<double>(growth.num_drawn - 1) * 1e6 / static_cast<double>(elapsed);
}

void Comparison::restart_text(ui::ComparedColumn& column, Growth& growth) {
  column.text.clear();
  column.tokens.clear();
  ++column.rewritten;
  growth.detokenizer = tokenizer::Detokenizer(engine_->tokenizer());
  growth.told_bytes = 0;
  growth.num_drawn = 0;
}

// The rest of an unfinished character; and the text cut where the engine cut it, before a stop string.
void Comparison::end_text(ui::ComparedColumn& column, Growth& growth) {
  column.text += growth.detokenizer.flush();
  if (!column.tokens.empty()) column.tokens.back().end = static_cast<std::uint32_t>(column.text.size());
  const std::size_t told = growth.num_forced_bytes + growth.told_bytes;
  if (std::holds_alternative<std::string>(growth.stop_reason) && told < column.text.size()) {
    column.text.resize(told);
    ++column.rewritten;
    for (ui::ComparedToken& token : column.tokens) {
      token.begin = std::min(token.begin, static_cast<std::uint32_t>(told));
      token.end = std::min(token.end, static_cast<std::uint32_t>(told));
    }
  }
  if (!growth.before.empty() && column.phase == ui::ColumnPhase::kFinished)
    column.repeats = growth.before == ids_of(column.tokens);
}

// ---- beams

void Comparison::add_beam_step(const BeamStep& step) {
  ui::BeamTree& tree = state_->beams;
  if (static_cast<std::size_t>(step.first_node) != tree.nodes.size()) return;
  for (const BeamNode& node : step.nodes) {
    const bool has_parent = node.parent >= 0 && static_cast<std::size_t>(node.parent) < tree.nodes.size();
    tokenizer::Detokenizer detokenizer = has_parent ? node_texts_[static_cast<std::size_t>(node.parent)]
                                                    : tokenizer::Detokenizer(engine_->tokenizer());
    std::string text = detokenizer.push(node.token_id);
    node_texts_.push_back(std::move(detokenizer));
    tree.nodes.push_back({.parent = has_parent ? node.parent : -1,
                          .step = tree.num_steps,
                          .token_id = node.token_id,
                          .text = std::move(text),
                          .logprob = node.logprob,
                          .cumulative_logprob = node.cumulative_logprob});
  }
  std::int32_t rank = 0;
  for (const std::int32_t live : step.live) tree.nodes[static_cast<std::size_t>(live)].rank = rank++;
  tree.live = step.live;
  ++tree.num_steps;
}

void Comparison::show_live_beams(Lane& lane) {
  const ui::BeamTree& tree = state_->beams;
  for (std::size_t rank = 0; rank < lane.columns.size() && rank < tree.live.size(); ++rank) {
    ui::ComparedColumn& column = *find_column(lane.columns[rank]);
    Growth& growth = growth_of(column.id);
    show_beam(column, growth, tree.live[rank]);
    growth.num_drawn = tree.num_steps;
    column.phase = ui::ColumnPhase::kRunning;
    note_time(column, growth);
  }
}

// The beam of a rank is often the one of the step before with a token more.
void Comparison::show_beam(ui::ComparedColumn& column, Growth& growth, std::int32_t leaf) {
  const auto& nodes = state_->beams.nodes;
  std::vector<std::int32_t> path;
  std::int32_t at = leaf;
  for (; at >= 0 && at != growth.leaf; at = nodes[static_cast<std::size_t>(at)].parent) path.push_back(at);
  const bool goes_on = at == growth.leaf;  // also from the root, where nothing is shown yet
  if (!goes_on) {
    restart_text(column, growth);
    path.clear();
    for (at = leaf; at >= 0; at = nodes[static_cast<std::size_t>(at)].parent) path.push_back(at);
  }
  for (auto node = path.rbegin(); node != path.rend(); ++node) {
    const ui::BeamTreeNode& shown = nodes[static_cast<std::size_t>(*node)];
    append_token(column, growth, shown.token_id, shown.logprob);
  }
  growth.leaf = leaf;
}

// Where in the tree the answers end.
void Comparison::find_final_nodes(const Lane& lane) {
  ui::BeamTree& tree = state_->beams;
  std::map<std::pair<std::int32_t, TokenId>, std::int32_t> child;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i)
    child.emplace(std::pair{tree.nodes[i].parent, tree.nodes[i].token_id}, static_cast<std::int32_t>(i));
  tree.final.clear();
  for (const ui::ColumnId id : lane.columns) {
    const ui::ComparedColumn& column = *find_column(id);
    if (!column.score) continue;
    std::int32_t at = -1;
    for (const ui::ComparedToken& token : column.tokens) {
      const auto found = child.find({at, token.token_id});
      if (found == child.end()) break;
      at = found->second;
    }
    if (at >= 0) tree.final.push_back(at);
  }
  tree.live.clear();
}

// ---- figures of all columns

void Comparison::finish_poll() {
  if (!state_->running) return;
  share_prefixes();
  count_progress();
  state_->running = std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.ended; });
}

void Comparison::share_prefixes() {
  auto& columns = state_->columns;
  for (ui::ComparedColumn& column : columns) column.shared_prefix = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = i + 1; j < columns.size(); ++j) {
      const std::int32_t shared = common_prefix(columns[i].tokens, columns[j].tokens);
      columns[i].shared_prefix = std::max(columns[i].shared_prefix, shared);
      columns[j].shared_prefix = std::max(columns[j].shared_prefix, shared);
    }
  }
}

void Comparison::count_progress() {
  double done = 0;
  for (const ui::ComparedColumn& column : state_->columns) {
    const double most = std::max(1, column.sampling.max_tokens);
    const double fraction = static_cast<double>(column.tokens.size()) / most;
    done += ui::has_ended(column.phase) ? 1.0 : std::min(fraction, 1.0);
  }
  state_->progress = state_->columns.empty() ? 0 : done / static_cast<double>(state_->columns.size());
}

// ---- memory

void Comparison::fold_trace(const Engine::Trace& trace) {
  if (lanes_.empty()) return;
  for (const BlockEvent& event : trace.block_events) {
    if (event.kind == BlockEventKind::kCopyOnWrite || event.kind == BlockEventKind::kCopyPartial)
      copies_[{event.sequence, event.aux}] = event.block;
  }
  while (copies_.size() > kMostCopies) copies_.erase(copies_.begin());
}

void Comparison::fold_snapshot(const KvSnapshot& snapshot) {
  if (lanes_.empty()) return;
  for (ui::ComparedColumn& column : state_->columns) column.memory.running = false;
  for (ui::SeatMemory& seat : state_->seats) seat.memory.running = false;
  std::vector<const SequenceSnapshot*> ours;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const Lane* lane = find_lane(sequence.request_id);
    if (lane == nullptr || sequence.block_table.empty()) continue;
    ours.push_back(&sequence);
    if (lane->request.sampling.beam_width) {
      auto& seats = state_->seats;
      const auto found = std::find_if(seats.begin(), seats.end(), [&](const ui::SeatMemory& seat) {
        return seat.seat == sequence.output_index;
      });
      ui::SeatMemory& seat = found != seats.end() ? *found : seats.emplace_back();
      seat = {sequence.output_index, memory_of(sequence, snapshot)};
    } else if (ui::ComparedColumn* column = column_of(*lane, sequence.output_index)) {
      ui::ColumnMemory memory = memory_of(sequence, snapshot);
      keep_sharing(column->memory, memory);
      column->memory = std::move(memory);
    }
  }
  count_memory(ours, snapshot);
}

std::optional<std::string> Comparison::name_of(RequestId request_id, std::int32_t output_index) const {
  const auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                                 [&](const Lane& candidate) { return candidate.request_id == request_id; });
  if (lane == lanes_.end()) return std::nullopt;
  const std::string compare = "Compare" + std::string(kBetweenNames);
  if (lane->request.sampling.beam_width) return compare + "Seat " + std::to_string(output_index + 1);
  const auto index = static_cast<std::size_t>(output_index);
  if (output_index < 0 || index >= lane->columns.size()) return std::nullopt;
  const auto column =
      std::find_if(state_->columns.begin(), state_->columns.end(),
                   [&](const ui::ComparedColumn& candidate) { return candidate.id == lane->columns[index]; });
  if (column == state_->columns.end()) return std::nullopt;
  return compare + column->name;
}

ui::ColumnMemory Comparison::memory_of(const SequenceSnapshot& sequence, const KvSnapshot& snapshot) const {
  ui::ColumnMemory memory;
  memory.step = snapshot.step;
  memory.running = true;
  memory.swapped_out = sequence.state == SequenceState::kSwapped;
  memory.num_computed_tokens = sequence.num_computed_tokens;
  const std::int32_t block_size = std::max(1, snapshot.totals.block_size);
  std::int32_t first_slot = 0;
  for (const BlockId id : sequence.block_table) {
    ui::ColumnBlock block{.block_id = id};
    const auto index = index_of(id);
    if (memory.swapped_out || index >= snapshot.blocks.size()) {
      block.filled = std::clamp(sequence.num_computed_tokens - first_slot, 0, block_size);
    } else {
      const BlockSnapshot& state = snapshot.blocks[index];
      block.filled = state.filled;
      block.shared = state.ref_count - state.num_pins > 1;
      const auto copy = copies_.find({sequence.sequence_id.value, id.value});
      if (copy != copies_.end()) block.copied_from = BlockId{copy->second};
    }
    first_slot += block_size;
    ++(block.shared ? memory.num_shared : memory.num_own);
    if (block.copied_from) ++memory.num_copied;
    memory.blocks.push_back(block);
  }
  return memory;
}

// Who ends last shares nothing any more: what it shared while the others ran is kept.
void Comparison::keep_sharing(const ui::ColumnMemory& before, ui::ColumnMemory& memory) {
  const std::size_t count = std::min(before.blocks.size(), memory.blocks.size());
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_same =
        before.blocks[i].block_id == memory.blocks[i].block_id && before.swapped_out == memory.swapped_out;
    if (!is_same || !before.blocks[i].shared || memory.blocks[i].shared) continue;
    memory.blocks[i].shared = true;
    ++memory.num_shared;
    --memory.num_own;
  }
}

void Comparison::count_memory(const std::vector<const SequenceSnapshot*>& sequences,
                              const KvSnapshot& snapshot) {
  ui::ComparisonMemory memory;
  memory.step = snapshot.step;
  std::map<std::int32_t, std::int32_t> uses;
  for (const SequenceSnapshot* sequence : sequences) {
    if (sequence->state == SequenceState::kSwapped) continue;
    ++memory.num_tables;
    memory.num_logical_blocks += static_cast<std::int32_t>(sequence->block_table.size());
    for (const BlockId id : sequence->block_table) ++uses[id.value];
  }
  memory.num_blocks = static_cast<std::int32_t>(uses.size());
  for (const auto& [block, count] : uses) memory.num_shared_blocks += count > 1 ? 1 : 0;
  memory.saved_bytes = (memory.num_logical_blocks - memory.num_blocks) * snapshot.totals.bytes_per_block;
  if (memory.num_tables > 0 && memory.num_tables >= state_->memory.num_tables) state_->memory = memory;
}

// ---- finding

Comparison::Lane* Comparison::find_lane(RequestId request_id) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [&](const Lane& lane) { return lane.request_id == request_id; });
  return found == lanes_.end() ? nullptr : &*found;
}

const Comparison::Lane* Comparison::lane_of(ui::ColumnId id) const {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    return std::find(lane.columns.begin(), lane.columns.end(), id) != lane.columns.end();
  });
  return found == lanes_.end() ? nullptr : &*found;
}

ui::ComparedColumn* Comparison::find_column(ui::ColumnId id) {
  const auto found = std::find_if(state_->columns.begin(), state_->columns.end(),
                                  [&](const ui::ComparedColumn& column) { return column.id == id; });
  return found == state_->columns.end() ? nullptr : &*found;
}

ui::ComparedColumn* Comparison::column_of(const Lane& lane, std::int32_t output_index) {
  const auto index = static_cast<std::size_t>(output_index);
  return output_index < 0 || index >= lane.columns.size() ? nullptr : find_column(lane.columns[index]);
}

// ---- pure parts

std::int32_t common_prefix(const std::vector<ui::ComparedToken>& a, const std::vector<ui::ComparedToken>& b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t length = 0;
  while (length < most && a[length].token_id == b[length].token_id) ++length;
  return static_cast<std::int32_t>(length);
}

}  // namespace octavo::app
