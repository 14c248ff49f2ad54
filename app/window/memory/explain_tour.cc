#include "app/window/memory/explain_tour.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/format.h"
#include "engine/base/hash.h"
#include "engine/base/text.h"
#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"

namespace octavo::app {
namespace {

constexpr std::int64_t kStepUs = 120'000;
constexpr std::int64_t kBytesPerBlock = 4 * 1024;
constexpr std::int32_t kMaxModelLen = 64;

// ---- words

constexpr std::string_view kText =
    "Alan Turing is a computer scientist and mathematician renowned for his work on codes and machines "
    "Four score and seven years ago our fathers brought forth a new nation "
    "Translate English to German : sea otter Seeotter cheese Käse plush giraffe Plüschgiraffe "
    "The cat sat on the warm stone wall roof under old tree by river near house all day long and slept "
    "dreamt purred listened waited until rain came then went home quickly quietly happily alone again "
    "best of times it was worst age wisdom foolishness epoch belief";

std::vector<std::string> make_vocabulary() {
  std::vector<std::string> words = {"<end> "};
  std::istringstream stream{std::string(kText)};
  for (std::string word; stream >> word;) {
    word += ' ';
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

const std::vector<std::string>& vocabulary() {
  static const std::vector<std::string> words = make_vocabulary();
  return words;
}

std::vector<TokenId> ids_of(std::string_view text) {
  std::vector<TokenId> ids;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) {
    const auto found = std::find(vocabulary().begin(), vocabulary().end(), word + " ");
    OCTAVO_CHECK(found != vocabulary().end(), "the tour has no word %s", word.c_str());
    ids.push_back(static_cast<TokenId>(found - vocabulary().begin()));
  }
  return ids;
}

class WordTokenizer final : public tokenizer::Tokenizer {
 public:
  std::int32_t vocabulary_size() const override { return static_cast<std::int32_t>(vocabulary().size()); }
  std::optional<TokenId> bos_token_id() const override { return std::nullopt; }
  bool is_end_of_sequence(TokenId id) const override { return id == 0; }
  bool has_chat_template() const override { return false; }
  Result<std::vector<TokenId>> encode(std::string_view text, bool, bool,
                                      const tokenizer::EncodeLimits&) const override {
    return ids_of(text);
  }
  Result<std::vector<TokenId>> encode_spans(std::span<const tokenizer::PromptSpan> spans) const override {
    std::string text;
    for (const auto& span : spans) text += span.text;
    return ids_of(text);
  }
  Result<std::vector<tokenizer::PromptSpan>> apply_chat_template(std::span<const ChatMessage>,
                                                                 std::int64_t) const override {
    return std::vector<tokenizer::PromptSpan>{};
  }
  Result<std::vector<TokenId>> encode_chat(std::span<const ChatMessage>, std::int64_t,
                                           const tokenizer::EncodeLimits&) const override {
    return std::vector<TokenId>{};
  }
  std::string_view token_bytes(TokenId id) const override { return tour_word(id); }
  bool is_special(TokenId id) const override { return id == 0; }
  std::string decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += tour_word(id);
    return text;
  }
};

// ---- scripts

struct Ask {
  std::int32_t at_step = 0;
  std::string label;
  std::string prompt;
  std::vector<std::string> answers;  // of each output; of beams the words to choose from
  std::optional<std::int32_t> beams = {};
  std::int32_t num_tokens = 0;  // 0: as many as the first answer has
};

struct Script {
  std::string title;
  std::string beginning, end;
  std::int32_t num_blocks = 8, num_host_blocks = 0;
  PreemptionPolicy preemption = PreemptionPolicy::kAuto;
  bool has_cache = true;        // finished requests stay findable
  bool computes_again = false;  // each word is a request of its own
  std::vector<Ask> asks;
};

std::vector<Ask> word_by_word(const std::string& prompt, const std::string& answer) {
  std::vector<Ask> asks;
  std::string text = prompt;
  std::istringstream words(answer);
  std::int32_t step = 0;
  for (std::string word; words >> word;) {
    asks.push_back({.at_step = step++, .label = "Alan", .prompt = text, .answers = {word}});
    text += " " + word;
  }
  return asks;
}

const std::vector<Script>& scripts() {
  static const std::string kAlan = "Alan Turing is a computer scientist";
  static const std::string kAnswer = "and mathematician renowned for his work";
  static const std::vector<Ask> kTooMuchForThePool = {
      {.label = "Alan",
       .prompt = "Alan Turing is a computer scientist",
       .answers = {"and mathematician renowned for his work on codes and machines"}},
      {.at_step = 1,
       .label = "Score",
       .prompt = "Four score and seven years ago our",
       .answers = {"fathers brought forth a new nation again and again"}}};
  static const std::vector<Script> kScripts = {
      {.title = "Without a KV cache",
       .beginning = "A model writes one word at a time. Here, nothing is kept between words.",
       .end = "Every word recomputed the whole text. A cache of keys and values avoids that.",
       .has_cache = false,
       .computes_again = true,
       .asks = word_by_word(kAlan, kAnswer)},
      {.title = "With a KV cache",
       .beginning = "The same text, but now the keys and values of every word stay in blocks of four.",
       .end = "Each word was computed once. The blocks show what is kept.",
       .asks = {{.label = "Alan", .prompt = kAlan, .answers = {kAnswer}}}},
      {.title = "One sequence fills blocks",
       .beginning =
           "A pool of eight blocks of four words. A new block is allocated only when the last one is full.",
       .end = "Never were more than three slots empty: a sequence wastes less than one block.",
       .asks = {{.label = "Alan",
                 .prompt = "Alan Turing is a computer",
                 .answers = {"scientist and mathematician renowned for his work on codes"}}}},
      {.title = "Two requests",
       .beginning =
           "Two requests run in one batch. Their blocks are mixed in the pool; block tables keep the order.",
       .end = "Neither needed to know how long the other would get, and there are no gaps between them.",
       .num_blocks = 10,
       .asks = {{.label = "Alan",
                 .prompt = "Alan Turing is a computer scientist",
                 .answers = {"and mathematician renowned for his work on codes"}},
                {.at_step = 2,
                 .label = "Score",
                 .prompt = "Four score and seven years ago our",
                 .answers = {"fathers brought forth a new nation"}}}},
      {.title = "Samples share their prompt",
       .beginning =
           "Three answers to one prompt. The prompt is computed once, and all three point to its blocks.",
       .end = "Only the block they wrote to was copied. The full blocks stayed shared.",
       .num_blocks = 12,
       .asks = {{.label = "Cat",
                 .prompt = "The cat sat on the warm",
                 .answers = {"stone and slept all day long", "roof under the old tree again",
                             "wall by the river near home"}}}},
      {.title = "Beams of 2",
       .beginning =
           "Beam search of width 2 keeps the two best continuations. Beams fork, and beams are pruned.",
       .end = "What the beams shared was kept once; blocks used only by a pruned beam are free again.",
       .num_blocks = 12,
       .asks = {{.label = "Beam",
                 .prompt = "it was the best of",
                 .answers = {"times age wisdom foolishness epoch belief worst"},
                 .beams = 2,
                 .num_tokens = 8}}},
      {.title = "Beams of 4",
       .beginning = "The same with four beams: more forks, more sharing, and more copies as they diverge.",
       .end = "Four beams never needed four times the blocks.",
       .num_blocks = 24,
       .asks = {{.label = "Beam",
                 .prompt = "it was the best of",
                 .answers = {"times age wisdom foolishness epoch belief worst"},
                 .beams = 4,
                 .num_tokens = 8}}},
      {.title = "A shared task prefix",
       .beginning = "Two requests begin with the same instruction. The second finds it in the cache.",
       .end = "The instruction was computed once. This works across chats, even after the first one ends.",
       .num_blocks = 10,
       .asks = {{.label = "Otter",
                 .prompt = "Translate English to German : cheese Käse plush giraffe sea otter",
                 .answers = {"Seeotter the sea cat slept"}},
                {.at_step = 3,
                 .label = "Giraffe",
                 .prompt = "Translate English to German : cheese Käse sea otter plush giraffe",
                 .answers = {"Plüschgiraffe and the cat slept"}}}},
      {.title = "Preemption by swap",
       .beginning =
           "The pool is too small for both. The request that arrived last moves to the host pool and back.",
       .end = "Nothing was recomputed and nothing was lost: its blocks came back unchanged.",
       .num_blocks = 7,
       .num_host_blocks = 6,
       .preemption = PreemptionPolicy::kSwap,
       .has_cache = false,
       .asks = kTooMuchForThePool},
      {.title = "Preemption by recompute",
       .beginning = "The same pool without a host pool. The request that arrived last loses its blocks.",
       .end = "Prompt and answer so far were recomputed as one prompt, which is cheaper than it sounds.",
       .num_blocks = 7,
       .preemption = PreemptionPolicy::kRecompute,
       .has_cache = false,
       .asks = kTooMuchForThePool},
  };
  return kScripts;
}

// ---- the runner

// Draws the scripted words. Candidates of a beam are ranked by a hash of what it says, so that beams overtake
// one another.
class WordRunner final : public runner::Runner {
 public:
  explicit WordRunner(const Script& script) : script_(script) {}

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
  const Ask& ask_of(RequestId request_id) const { return script_.asks.at(request_id.value - 1); }

  runner::SampledToken word(const scheduler::ScheduledSequence& row,
                            const scheduler::SampleTarget& target) const {
    const Ask& ask = ask_of(row.request_id);
    const std::vector<TokenId> ids = ids_of(ask.answers.at(target.output_index % ask.answers.size()));
    return {.sequence_id = target.sequence_id,
            .token_id = ids.at(std::min(target.output_token_ids.size(), ids.size() - 1)),
            .logprob = -0.5f};
  }

  runner::SampledToken candidates(const scheduler::ScheduledSequence& row,
                                  const scheduler::SampleTarget& target) const {
    const std::vector<TokenId> words = ids_of(ask_of(row.request_id).answers.front());
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

  const Script& script_;
};

// ---- playing

class ChapterPlayer {
 public:
  explicit ChapterPlayer(const Script& script)
      : script_(script), runner_(script), core_(options_of(script), dependencies()) {
    clock_.advance_us(1'000'000);
  }

  TourChapter play() {
    chapter_.title = script_.title;
    chapter_.bytes_per_block = kBytesPerBlock;
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
      look(step);
    }
    chapter_.recorder = core_.recorder();
    chapter_.stops.push_back({event_mark_, script_.end});
    return std::move(chapter_);
  }

 private:
  static constexpr std::int32_t kMostSteps = 400;

  static scheduler::SchedulerOptions options_of(const Script& script) {
    return {.block_size = 4,
            .num_blocks = script.num_blocks,
            .bytes_per_block = kBytesPerBlock,
            .max_num_seqs = 8,
            .max_num_batched_tokens = 32,
            .max_model_len = kMaxModelLen,
            .enable_prefix_caching = script.has_cache,
            .num_host_blocks = script.num_host_blocks,
            .preemption_mode = script.preemption,
            .reserve_block_per_sequence = false};
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

  PreparedRequest submit(const Ask& ask) {
    GenerationRequest request;
    request.prompt = TokenPrompt{ids_of(ask.prompt)};
    request.sampling.ignore_eos = true;
    request.sampling.n = ask.beams ? 1 : static_cast<std::int32_t>(ask.answers.size());
    request.sampling.beam_width = ask.beams;
    const auto num_words = static_cast<std::int32_t>(ids_of(ask.answers.front()).size());
    request.sampling.max_tokens = ask.num_tokens > 0 ? ask.num_tokens : num_words;
    return intake_.prepare({RequestId{next_ask_}, std::move(request), clock_.now_us()});
  }

  // What the step did: who the sequences are, what they say, and a sentence about it.
  void look(std::int32_t) {
    const KvSnapshot snapshot = core_.snapshot();
    for (const SequenceSnapshot& sequence : snapshot.sequences) {
      const Ask& ask = script_.asks.at(sequence.request_id.value - 1);
      const char* kind = ask.beams ? " · beam " : " · sample ";
      const bool several = ask.beams || ask.answers.size() > 1;
      chapter_.labels[sequence.sequence_id.value] =
          several ? ask.label + kind + std::to_string(sequence.output_index + 1) : ask.label;
      for (const auto& view : core_.scheduler().sequences_of(sequence.request_id)) {
        chapter_.token_ids[view.sequence_id.value].assign(view.token_ids.begin(), view.token_ids.end());
      }
    }
    const metrics::Trace news = core_.recorder()->read_since(step_mark_, event_mark_);
    step_mark_ = news.next_step_mark;
    event_mark_ = news.next_event_mark;
    if (script_.computes_again) name_ended(news);
    chapter_.snapshots.push_back(snapshot);
    const std::string sentence = narrate(news);
    if (!sentence.empty()) chapter_.stops.push_back({end_of_computation(news), sentence});
  }

  // Requests that begin and end in one step are in no snapshot.
  void name_ended(const metrics::Trace& news) {
    const Ask& ask = script_.asks.at(next_ask_ - 1);
    for (const BlockEvent& event : news.block_events) {
      if (event.kind != BlockEventKind::kAlloc) continue;
      chapter_.labels[event.sequence] = ask.label;
      chapter_.token_ids[event.sequence] = ids_of(ask.prompt);
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
      say(label(event.sequence) + " writes to a shared block, so block " + std::to_string(event.block) +
          " is copied to block " + std::to_string(event.aux) + ".");
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
      std::string blocks;
      for (const BlockEvent* event : of[BlockEventKind::kAlloc]) {
        blocks += (blocks.empty() ? "" : ", ") + std::to_string(event->block);
      }
      say(label(first(BlockEventKind::kAlloc)->sequence) + " allocates " +
          (count(BlockEventKind::kAlloc) == 1 ? "block " : "blocks ") + blocks + ".");
    }
    if (text.empty()) text = told_words();
    return text;
  }

  // "Alan writes “mathematician” into slot 4 of block 1."
  std::string told_words() const {
    std::string text;
    for (const SequenceSnapshot& sequence : chapter_.snapshots.back().sequences) {
      const auto& ids = chapter_.token_ids.at(sequence.sequence_id.value);
      const std::int32_t written = sequence.num_computed_tokens;
      if (written < 1 || static_cast<std::size_t>(written) > ids.size() || sequence.block_table.empty())
        continue;
      if (sequence.state != SequenceState::kRunning) continue;
      const std::string word(tour_word(ids[static_cast<std::size_t>(written - 1)]));
      text += (text.empty() ? "" : " ") + label(sequence.sequence_id.value) + " writes “" +
              word.substr(0, word.size() - 1) + "” into slot " + std::to_string((written - 1) % 4 + 1) +
              " of block " +
              std::to_string(sequence.block_table[static_cast<std::size_t>((written - 1) / 4)].value) + ".";
    }
    return text;
  }

  const Script& script_;
  WordTokenizer tokenizer_;
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
  for (const Script& script : scripts()) titles.push_back(script.title);
  return titles;
}

TourChapter play_tour_chapter(std::size_t chapter) { return ChapterPlayer(scripts().at(chapter)).play(); }

std::string_view tour_word(TokenId id) {
  const auto index = static_cast<std::size_t>(id);
  return index < vocabulary().size() ? std::string_view(vocabulary()[index]) : std::string_view();
}

}  // namespace octavo::app
