#include "app/window/memory/explain_tour.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "app/window/memory/sequence_names.h"
#include "app/window/memory/tour_script.h"
#include "app/window/memory/tour_trial.h"
#include "engine/base/format.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"

namespace octavo::app {
namespace {

constexpr std::int64_t kStepUs = 120'000;
constexpr std::int64_t kBytesPerBlock = 4 * 1024;
constexpr std::int64_t kBytesPerState = 96 * 1024;
constexpr std::int64_t kBytesPerWindowBlock = 12 * 1024;
constexpr std::int32_t kStateSequences = 2;  // that run in a chapter with states, of which there are more
constexpr std::int32_t kWindowRows = 8;      // of a step in a chapter with windows: a prompt takes several
constexpr std::int32_t kMaxModelLen = 64;
constexpr std::uint32_t kNumColours = 7;  // of the theme's owners

// ---- words

// Every word that is met becomes a token: what a visitor types needs no list.
class Vocabulary {
 public:
  explicit Vocabulary(const TourScript& script) {
    for (const TourAsk& ask : script.asks) {
      (void)ids_of(ask.prompt);
      for (const std::string& answer : ask.answers) (void)ids_of(answer);
    }
  }
  std::vector<TokenId> ids_of(std::string_view text) {
    std::vector<TokenId> ids;
    for (std::string& word : words_of(text)) {
      const auto [entry, is_new] = ids_.try_emplace(word, static_cast<TokenId>(words_.size()));
      if (is_new) words_.push_back(std::move(word));
      ids.push_back(entry->second);
    }
    return ids;
  }
  // REQUIRES: one of this vocabulary's
  const std::string& word(TokenId id) const { return words_.at(static_cast<std::size_t>(id)); }
  std::int32_t size() const { return static_cast<std::int32_t>(words_.size()); }

 private:
  std::deque<std::string> words_ = {"<end>"};  // they stay where they are
  std::map<std::string, TokenId> ids_ = {{"<end>", 0}};
};

class WordTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit WordTokenizer(Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  std::int32_t vocabulary_size() const override { return vocabulary_.size(); }
  std::optional<TokenId> bos_token_id() const override { return std::nullopt; }
  bool is_end_of_sequence(TokenId id) const override { return id == 0; }
  bool has_chat_template() const override { return false; }
  Result<std::vector<TokenId>> encode(std::string_view text, bool, bool,
                                      const tokenizer::EncodeLimits&) const override {
    return vocabulary_.ids_of(text);
  }
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override {
    std::string text;
    for (const auto& span : spans) text += span.text;
    return vocabulary_.ids_of(text);
  }
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage>,
                                                                 const TemplateInputs&) const override {
    return std::vector<tokenizer::PromptSpan>{};
  }
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage>, const TemplateInputs&,
                                           const tokenizer::EncodeLimits&) const override {
    return std::vector<TokenId>{};
  }
  std::string_view token_bytes(TokenId id) const override { return vocabulary_.word(id); }
  bool is_special(TokenId id) const override { return id == 0; }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += vocabulary_.word(id) + " ";
    return text;
  }

 private:
  Vocabulary& vocabulary_;
};

// ---- the runner

// Draws the scripted words. Candidates of a beam are ranked by a hash of what it says, so that beams overtake
// one another.
class WordRunner final : public runner::Runner {
 public:
  WordRunner(const TourScript& script, Vocabulary& vocabulary) : script_(script), vocabulary_(vocabulary) {}

  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override {
    output.swap_out_us = 10 * static_cast<std::int64_t>(step.swap_outs.size());
    output.swap_in_us = 10 * static_cast<std::int64_t>(step.swap_ins.size());
    for (const auto& row : step.sequences) {
      for (const auto& target : row.samples) {
        output.tokens.push_back(target.num_candidates > 0 ? candidates(row, target) : word(row, target));
      }
    }
    return {};
  }

 private:
  const TourAsk& ask_of(RequestId request_id) const { return script_.asks.at(request_id.value - 1); }

  runner::SampledToken word(const scheduler::ScheduledSequence& row,
                            const scheduler::SampleTarget& target) const {
    const TourAsk& ask = ask_of(row.request_id);
    const std::vector<TokenId> ids =
        vocabulary_.ids_of(ask.answers.at(target.output_index % ask.answers.size()));
    return {.sequence_id = target.sequence_id,
            .token_id = ids.at(std::min(target.output_token_ids.size(), ids.size() - 1)),
            .logprob = -0.5f};
  }

  runner::SampledToken candidates(const scheduler::ScheduledSequence& row,
                                  const scheduler::SampleTarget& target) const {
    const std::vector<TokenId> words = vocabulary_.ids_of(ask_of(row.request_id).answers.front());
    std::uint64_t said = 11;
    for (const TokenId id : target.output_token_ids)
      said = hash_combine(said, static_cast<std::uint64_t>(id));
    runner::SampledToken token{.sequence_id = target.sequence_id};
    std::set<TokenId> taken;
    for (std::int32_t i = 0; i < target.num_candidates; ++i) {
      const auto place = (said + static_cast<std::uint64_t>(i)) % words.size();
      const TokenId id = words[place];
      if (!taken.insert(id).second) break;
      const float logprob = -0.3f - 0.6f * static_cast<float>(i) - 0.05f * static_cast<float>(said % 13);
      token.candidates.push_back({id, logprob, logprob});
    }
    return token;
  }

  const TourScript& script_;
  Vocabulary& vocabulary_;
};

// ---- playing

class ChapterPlayer {
 public:
  explicit ChapterPlayer(const TourScript& script)
      : script_(script),
        vocabulary_(script),
        runner_(script, vocabulary_),
        core_(options_of(script), dependencies()) {
    clock_.advance_us(1'000'000);
  }

  TourChapter play() {
    chapter_.title = script_.title;
    chapter_.bytes_per_block = kBytesPerBlock;
    chapter_.bytes_per_state = script_.num_states > 0 ? kBytesPerState : 0;
    chapter_.bytes_per_window_block = script_.window > 0 ? kBytesPerWindowBlock : 0;
    chapter_.max_model_len = kMaxModelLen;
    chapter_.stops.push_back({0, script_.beginning});
    for (std::int32_t step = 0; step < kMostSteps; ++step) {
      std::vector<EngineCommand> commands = due(step);
      if (commands.empty() && !core_.has_work()) {
        if (next_ask_ >= script_.asks.size()) break;
        continue;
      }
      clock_.advance_us(kStepUs);
      core_.step(std::move(commands));
      look();
    }
    chapter_.recorder = core_.recorder();
    chapter_.stops.push_back({event_mark_, script_.end});
    return std::move(chapter_);
  }

 private:
  static constexpr std::int32_t kMostSteps = 400;

  static scheduler::SchedulerOptions options_of(const TourScript& script) {
    return {.block_size = kTourBlockSize,
            .num_blocks = script.num_blocks,
            .bytes_per_block = kBytesPerBlock,
            .max_num_seqs = script.num_states > 0 ? kStateSequences : 8,
            .max_num_batched_tokens = script.window > 0 ? kWindowRows : 32,
            .max_model_len = kMaxModelLen,
            .enable_prefix_caching = script.has_cache,
            .num_host_blocks = script.num_host_blocks,
            .num_states = script.num_states,
            .bytes_per_state = kBytesPerState,
            .window = script.window,
            .num_window_blocks = script.num_window_blocks,
            .bytes_per_window_block = kBytesPerWindowBlock,
            .preemption_mode = script.preemption,
            .admission_reserve = AdmissionReserve::kOnePercent};
  }

  EngineDependencies dependencies() {
    return {.runner = &runner_, .clock = &clock_, .tokenizer = &tokenizer_};
  }

  std::vector<EngineCommand> due(std::int32_t step) {
    std::vector<EngineCommand> commands;
    while (next_ask_ < script_.asks.size() && script_.asks[next_ask_].at_step <= step) {
      if (script_.computes_again && core_.has_work()) break;
      commands.push_back(submit(script_.asks[next_ask_++]));
      if (script_.computes_again) break;
    }
    return commands;
  }

  PreparedRequest submit(const TourAsk& ask) {
    GenerationRequest request;
    request.prompt = TokenPrompt{vocabulary_.ids_of(ask.prompt)};
    request.sampling.ignore_eos = true;
    request.sampling.n = ask.beams ? 1 : static_cast<std::int32_t>(ask.answers.size());
    request.sampling.beam_width = ask.beams;
    const auto num_words = static_cast<std::int32_t>(words_of(ask.answers.front()).size());
    request.sampling.max_tokens = ask.num_tokens > 0 ? ask.num_tokens : num_words;
    PreparedRequest prepared = intake_.prepare({RequestId{next_ask_}, std::move(request), clock_.now_us()});
    // Words have no chat template that would tell.
    if (prepared.request) prepared.request->num_system_tokens = ask.num_system_words;
    return prepared;
  }

  // What the step did: who the sequences are, what they say, and a sentence about it.
  void look() {
    const KvSnapshot snapshot = core_.snapshot();
    for (const SequenceSnapshot& sequence : snapshot.sequences) {
      const TourAsk& ask = script_.asks.at(sequence.request_id.value - 1);
      const std::string kind = ask.beams ? "beam " : "sample ";
      const bool several = ask.beams || ask.answers.size() > 1;
      chapter_.labels[sequence.sequence_id.value] =
          several ? ask.label + std::string(kBetweenNames) + kind + std::to_string(sequence.output_index + 1)
                  : ask.label;
      for (const auto& view : core_.scheduler().sequences_of(sequence.request_id)) {
        std::vector<std::string>& words = chapter_.words[view.sequence_id.value];
        words.clear();
        for (const TokenId id : view.token_ids) words.push_back(vocabulary_.word(id));
      }
    }
    colour(snapshot);
    const metrics::Trace news = core_.recorder()->read_since(step_mark_, event_mark_);
    step_mark_ = news.next_step_mark;
    event_mark_ = news.next_event_mark;
    if (script_.computes_again) name_ended(news);
    chapter_.snapshots.push_back(snapshot);
    const std::string sentence = narrate(news);
    if (!sentence.empty()) chapter_.stops.push_back({end_of_computation(news), sentence});
    const std::string kept = told_checkpoints(news);
    if (!kept.empty()) chapter_.stops.push_back({news.next_event_mark, kept});
  }

  // After the step, when what ended in it has let its state go.
  std::string told_checkpoints(const metrics::Trace& news) const {
    std::string text;
    for (const BlockEvent& event : news.block_events) {
      if (event.kind != BlockEventKind::kStateKeep) continue;
      text += (text.empty() ? "" : " ") + label(event.sequence) + " leaves state " +
              std::to_string(event.block) + " as a checkpoint behind word " +
              std::to_string(checkpoint_position(event.aux)) + ".";
    }
    return text;
  }

  void say_of_states(const metrics::Trace& news, const std::function<void(const std::string&)>& say) const {
    for (const BlockEvent& event : news.block_events) {
      const std::string who = label(event.sequence), state = "state " + std::to_string(event.block);
      switch (event.kind) {
        case BlockEventKind::kStateTake:
          say(who + " begins with an empty " + state + ", which every word changes in place.");
          break;
        case BlockEventKind::kStateResume:
          say(who + " finds the checkpoint behind word " + std::to_string(event.aux) + ": it goes on from " +
              state + ", and computes only what follows.");
          break;
        case BlockEventKind::kStateCopy:
          say("To go on it copies " + state + " to state " + std::to_string(event.aux) +
              ": the checkpoint stays as it is.");
          break;
        case BlockEventKind::kStateMiss:
          say("The blocks of " + who + " hold " + std::to_string(event.aux) +
              " words that it could share, but no checkpoint stands there: they are recomputed.");
          break;
        default: break;
      }
    }
  }

  static std::string numbered(const std::vector<std::int32_t>& blocks) {
    std::string numbers;
    for (std::size_t i = 0; i < blocks.size(); ++i)
      numbers += (i == 0 ? "" : i + 1 == blocks.size() ? " and " : ", ") + std::to_string(blocks[i]);
    return (blocks.size() == 1 ? "block " : "blocks ") + numbers;
  }

  void say_of_windows(const metrics::Trace& news, const std::function<void(const std::string&)>& say) const {
    std::map<std::uint64_t, std::vector<std::int32_t>> passed;
    for (const BlockEvent& event : news.block_events) {
      if (event.kind == BlockEventKind::kLeaveWindow) passed[event.sequence].push_back(event.block);
      if (event.kind == BlockEventKind::kWindowSkip) {
        say("The window parts before its first new word were kept, so " + label(event.sequence) +
            " resumes there. It never needs those of its first " +
            (event.aux == 1 ? std::string("block") : count_text(event.aux, "block")) + ".");
      }
      if (event.kind == BlockEventKind::kWindowMiss) {
        say(count_text(event.aux, "more word") + " of " + label(event.sequence) +
            " stand in a block, but their window part is gone: they are recomputed.");
      }
      if (event.kind == BlockEventKind::kWindowClose && event.aux == 1) {
        say("No place in the window pool is free: the part of block " + std::to_string(event.block) +
            ", which nobody reads, gives up its own.");
      }
    }
    for (const auto& [sequence, blocks] : passed) {
      say("The window of " + label(sequence) + " has passed " + numbered(blocks) +
          ". The parts stay in the window pool while there is room.");
    }
  }

  // The first colour that nobody has who is there now or was there in the step before.
  void colour(const KvSnapshot& snapshot) {
    std::set<std::uint32_t> taken, taken_before;
    const auto collect = [&](const KvSnapshot& of, std::set<std::uint32_t>& colours) {
      for (const SequenceSnapshot& sequence : of.sequences) {
        const auto known = chapter_.colours.find(sequence.sequence_id.value);
        if (known != chapter_.colours.end()) colours.insert(known->second);
      }
    };
    collect(snapshot, taken);
    if (!chapter_.snapshots.empty()) collect(chapter_.snapshots.back(), taken_before);
    for (const SequenceSnapshot& sequence : snapshot.sequences) {
      if (chapter_.colours.contains(sequence.sequence_id.value)) continue;
      const auto first_free = [&](bool also_before) {
        std::uint32_t colour = 0;
        while (colour < kNumColours &&
               (taken.contains(colour) || (also_before && taken_before.contains(colour))))
          ++colour;
        return colour;
      };
      std::uint32_t colour = first_free(/*also_before=*/true);
      if (colour == kNumColours) colour = first_free(/*also_before=*/false);
      chapter_.colours[sequence.sequence_id.value] = colour % kNumColours;
      taken.insert(colour);
    }
  }

  // Requests that begin and end in one step are in no snapshot.
  void name_ended(const metrics::Trace& news) {
    const TourAsk& ask = script_.asks.at(next_ask_ - 1);
    for (const BlockEvent& event : news.block_events) {
      if (event.kind != BlockEventKind::kAlloc) continue;
      chapter_.labels[event.sequence] = ask.label;
      chapter_.colours[event.sequence] = 0;
      chapter_.words[event.sequence] = words_of(ask.prompt);
    }
  }

  // Before what ended in the step let its blocks go.
  static std::uint64_t end_of_computation(const metrics::Trace& news) {
    std::uint64_t mark = news.next_event_mark;
    for (std::size_t i = news.block_events.size(); i-- > 0; --mark) {
      if (news.block_events[i].kind == BlockEventKind::kStepEnd) return mark;
    }
    return news.next_event_mark;
  }

  std::string label(std::uint64_t sequence) const {
    const auto found = chapter_.labels.find(sequence);
    return found == chapter_.labels.end() ? "A sequence" : found->second;
  }

  std::string narrate(const metrics::Trace& news) {
    std::string text;
    const auto say = [&](const std::string& sentence) { text += (text.empty() ? "" : " ") + sentence; };
    std::map<BlockEventKind, std::vector<const BlockEvent*>> of;
    for (const BlockEvent& event : news.block_events) of[event.kind].push_back(&event);
    const auto count = [&](BlockEventKind kind) { return static_cast<std::int64_t>(of[kind].size()); };
    const auto first = [&](BlockEventKind kind) { return of[kind].front(); };
    if (count(BlockEventKind::kPreempt) > 0) {
      const bool is_swap = first(BlockEventKind::kPreempt)->aux == 1;
      say("No block is free. " + label(first(BlockEventKind::kPreempt)->sequence) +
          ", the latest to arrive, " +
          (is_swap ? "moves " + count_text(count(BlockEventKind::kSwapOut), "block") + " to the host pool."
                   : "loses its blocks and will be recomputed."));
    }
    if (count(BlockEventKind::kResume) > 0) {
      say(label(first(BlockEventKind::kResume)->sequence) + " resumes: " +
          (count(BlockEventKind::kSwapIn) > 0
               ? count_text(count(BlockEventKind::kSwapIn), "block") + " came back from the host pool."
               : "its tokens are recomputed as one prompt."));
    }
    if (count(BlockEventKind::kHit) > 0) {
      say(label(first(BlockEventKind::kHit)->sequence) + " starts with a cached prefix: " +
          count_text(count(BlockEventKind::kHit), "block") + " found, none recomputed.");
    }
    if (count(BlockEventKind::kCopyPartial) > 0) {
      const BlockEvent& event = *first(BlockEventKind::kCopyPartial);
      say("Its cached prefix ends inside block " + std::to_string(event.block) +
          "; the matching part is copied to block " + std::to_string(event.aux) + ".");
    }
    if (count(BlockEventKind::kCopyOnWrite) > 0) {
      const BlockEvent& event = *first(BlockEventKind::kCopyOnWrite);
      const std::int64_t num_more = count(BlockEventKind::kCopyOnWrite) - 1;
      say(label(event.sequence) + " writes to a shared block, so block " + std::to_string(event.block) +
          " is copied to block " + std::to_string(event.aux) +
          (num_more == 0 ? "." : "; " + std::to_string(num_more) + " more like it."));
    }
    if (count(BlockEventKind::kShare) > 0 && count(BlockEventKind::kResume) == 0) {
      say(count_text(count(BlockEventKind::kShare), "more reference") +
          " to existing blocks; no keys or values are copied.");
    }
    if (count(BlockEventKind::kPrune) > 0) {
      say(count_text(count(BlockEventKind::kPrune), "beam") +
          " pruned; blocks used by nothing else are free.");
    }
    if (script_.computes_again && !news.steps.empty()) {
      num_computed_again_ += news.steps.back().num_prefill_tokens;
      say("All " + std::to_string(news.steps.back().num_prefill_tokens) +
          " words are recomputed for one new word; " + std::to_string(num_computed_again_) + " so far.");
    } else if (count(BlockEventKind::kAlloc) > 0 && count(BlockEventKind::kCopyOnWrite) == 0 &&
               count(BlockEventKind::kSwapIn) == 0) {
      std::map<std::uint64_t, std::vector<std::int32_t>> taken;
      for (const BlockEvent* event : of[BlockEventKind::kAlloc])
        taken[event->sequence].push_back(event->block);
      for (const auto& [sequence, blocks] : taken) {
        std::string numbers;
        for (const std::int32_t block : blocks)
          numbers += (numbers.empty() ? "" : ", ") + std::to_string(block);
        say(label(sequence) + " allocates " + (blocks.size() == 1 ? "block " : "blocks ") + numbers + ".");
      }
    }
    say_of_states(news, say);
    say_of_windows(news, say);
    if (text.empty()) text = told_words();
    return text;
  }

  // "Alan writes “mathematician” into slot 4 of block 1."
  std::string told_words() const {
    std::string text;
    for (const SequenceSnapshot& sequence : chapter_.snapshots.back().sequences) {
      const std::vector<std::string>& words = chapter_.words.at(sequence.sequence_id.value);
      const std::int32_t written = sequence.num_computed_tokens;
      if (written < 1 || static_cast<std::size_t>(written) > words.size() || sequence.block_table.empty())
        continue;
      if (sequence.state != SequenceState::kRunning) continue;
      const auto index = static_cast<std::size_t>((written - 1) / kTourBlockSize);
      text += (text.empty() ? "" : " ") + label(sequence.sequence_id.value) + " writes “" +
              words[static_cast<std::size_t>(written - 1)] + "” into slot " +
              std::to_string((written - 1) % kTourBlockSize + 1) + " of block " +
              std::to_string(sequence.block_table[index].value) + ".";
    }
    return text;
  }

  const TourScript& script_;
  Vocabulary vocabulary_;
  WordTokenizer tokenizer_{vocabulary_};
  WordRunner runner_;
  ManualClock clock_;
  EngineCore core_;
  RequestIntake intake_{{.tokenizer = &tokenizer_,
                         .draw_seed = [] { return std::uint64_t{1}; },
                         .unix_time_s = [] { return std::int64_t{0}; }}};
  TourChapter chapter_;
  std::size_t next_ask_ = 0;
  std::uint64_t step_mark_ = 0, event_mark_ = 0;
  std::int64_t num_computed_again_ = 0;
};

}  // namespace

std::vector<std::string> tour_titles() {
  std::vector<std::string> titles;
  for (const TourScript& script : tour_scripts()) titles.push_back(script.title);
  titles.push_back(kTrialTitle);
  return titles;
}

TourChapter play_tour_chapter(std::size_t chapter) {
  return ChapterPlayer(tour_scripts().at(chapter)).play();
}

Result<TourChapter> play_trial(const ui::TourTrial& trial) {
  OCTAVO_TRY(const TourScript script, trial_script(trial));
  return ChapterPlayer(script).play();
}

}  // namespace octavo::app
