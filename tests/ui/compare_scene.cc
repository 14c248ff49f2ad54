#include "tests/ui/compare_scene.h"

#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "engine/base/hash.h"

namespace octavo::testing {
namespace {

constexpr std::int32_t kNumPromptTokens = 40;

using Words = std::vector<std::string>;

const std::vector<Words>& poems() {
  static const std::vector<Words> kPoems = {
      {"The",   " rain", " arrives", " with", " silver", " hands", "\n",  "and",    " drums",
       " its",  " song", " on",      " rust", "ed",      " bands", ",",   "\n",     "each",
       " drop", " a",    " bell",    ",",     " each",   " gust",  " a",  " verse", "\n",
       "that",  " tin",  " can",     " hold", " but",    " not",   " re", "hearse", "."},
      {"The",    " rain",   " arrives", " with",  " quiet", " feet",    "\n",     "and",
       " finds", " the",    " roof",    " a",     " ready", " seat",    ";",      "\n",
       "it",     " talks",  " all",     " night", " of",    " distant", " seas",  "\n",
       "and",    " leaves", " at",      " dawn",  " among", " the",     " trees", "."},
      {"The",     " rain", " arrives", " un",   "asked",  ",",       " alone", ",", "\n", "and",
       " plays",  " the",  " roof",    " like", " xyl",   "oph",     "one",    ";", "\n", "the",
       " kettle", " hums", ",",        " the",  " cat",   " sleeps", " on",    ",", "\n", "the",
       " storm",  " has",  " said",    " its",  " piece", " and",    " gone",  "."},
      {"The",    " rain", " is",   " counting", " every", " nail", "\n",    "in",  " numbers",
       " small", " and",  " loud", " and",      " pale",  ",",     "\n",    "and", " we",
       " below", ",",     " with", " cups",     " of",    " tea",  ",",     "\n",  "are",
       " kept",  " in",   " its",  " arith",    "metic",  ",",     " free", "."},
  };
  return kPoems;
}

float likelihood(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t hash = hash_combine(hash_combine(17, a), b);
  const float unit = static_cast<float>(hash % 1000) / 1000.0f;
  return -0.03f - 3.2f * unit * unit * unit;
}

TokensGenerated poem_of(CompareEngine& engine, RequestId id, std::int32_t output) {
  static const Words kOthers = {" soft", " light", " the", " a", " old", " slow", "\n"};
  const Words& words = poems()[static_cast<std::size_t>(output) % poems().size()];
  TokensGenerated event = engine.say(id, output, words);
  if (static_cast<std::size_t>(output) >= poems().size())
    event.token_ids[6] = engine.spelling().token(" slow");
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Where answers begin alike, the model said alike.
    const float logprob = likelihood(i < 4 ? 0 : static_cast<std::uint64_t>(output) + 1, i);
    event.logprobs[i] = logprob;
    std::vector<TokenLogprob> top = {{event.token_ids[i], logprob}};
    float rest = std::log(std::max(1e-6f, 1.0f - std::exp(logprob)));
    for (std::size_t k = 0; k < kOthers.size(); ++k) {
      rest -= 0.7f;
      if (kOthers[k] != words[i]) top.push_back({engine.spelling().token(kOthers[k]), rest});
    }
    std::stable_sort(top.begin(), top.end(),
                     [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
    event.top_logprobs.push_back(std::move(top));
  }
  return event;
}

// A search of 14 steps whose beams now and then descend from one.
std::vector<BeamStep> beam_steps(CompareEngine& engine, std::int32_t width) {
  const Words& main = poems()[0];
  static const Words kOthers = {" quiet", " and",  " finds", " on",   " copper",
                                " that",  " beat", " every", " nail", " soft"};
  std::vector<BeamStep> steps;
  std::vector<std::pair<std::int32_t, double>> live = {{-1, 0.0}};
  std::int32_t next = 0;
  for (std::uint64_t at = 0; at < 14; ++at) {
    BeamStep step{.first_node = next, .nodes = {}, .live = {}, .ended = {}};
    struct Born {
      double sum;
      std::int32_t node;
    };
    std::vector<Born> born;
    std::map<std::int32_t, std::uint64_t> children;
    for (std::int32_t rank = 0; rank < width; ++rank) {
      const std::uint64_t dice = hash_combine(hash_combine(5, at), static_cast<std::uint64_t>(rank));
      const bool branches = at == 0 || dice % 5 == 0;
      const auto& [parent, sum] =
          live[branches ? dice % live.size() : static_cast<std::size_t>(rank) % live.size()];
      const std::uint64_t child = children[parent]++;
      const std::string& word = rank == 0 && child == 0
                                    ? main[at]
                                    : kOthers[(at * 3 + static_cast<std::uint64_t>(rank)) % kOthers.size()];
      const float logprob = -0.1f - static_cast<float>(dice % 70) / 100.0f - 0.4f * static_cast<float>(child);
      step.nodes.push_back(
          {parent, engine.spelling().token(word), logprob, sum + static_cast<double>(logprob)});
      born.push_back({sum + static_cast<double>(logprob), next++});
    }
    std::stable_sort(born.begin(), born.end(), [](const Born& a, const Born& b) { return a.sum > b.sum; });
    live.clear();
    for (const Born& each : born) {
      step.live.push_back(each.node);
      live.emplace_back(each.node, each.sum);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

void CompareScene::open_compare(const app::Settings& settings) {
  if (IsSkipped()) return;
  const auto factory = [this](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> {
    auto engine = std::make_unique<CompareEngine>();
    compare_engine_ = engine.get();
    engine->set_switches(switches_);
    engine->on_submit = [this](RequestId id, const GenerationRequest& request) { answer(id, request); };
    engine->on_cancel = [this](RequestId id) {
      const auto& sampling = compare_engine_->requests[id.value - 1].sampling;
      finish(id, sampling.num_outputs(), FinishReason::kAbort);
    };
    return std::unique_ptr<Engine>(std::move(engine));
  };
  open_with(factory, "/models/SmolLM2-135M-Instruct.Q4_1.gguf", settings);
}

void CompareScene::ask_in_chat(const std::string& question) {
  application_->controller().apply(ui::actions::SendMessage{chat().id, question});
  ASSERT_TRUE(
      loop_until([this] { return chat().activity == ui::Activity::kIdle && chat().messages.size() >= 2; }));
  draw_frames(2);
}

void CompareScene::choose_and_run(ui::ComparisonKind kind, std::int32_t count) {
  if (chat().messages.empty()) ask_in_chat("Write two lines about rain on a tin roof.");
  app::Controller& controller = application_->controller();
  controller.apply(ui::actions::ShowWorkspace{ui::Workspace::kCompare});
  ui::ComparisonSetup setup = state().comparison.setup;
  setup.kind = kind;
  setup.num_samples = count;
  setup.beam_width = count;
  controller.apply(ui::actions::ChangeComparison{setup});
  controller.apply(ui::actions::RunComparison{});
  for (int i = 0; i < 30; ++i) application_->update();
  draw_frames(3);
}

void CompareScene::run_samples(std::int32_t count) { choose_and_run(ui::ComparisonKind::kSamples, count); }
void CompareScene::run_settings() { choose_and_run(ui::ComparisonKind::kSettings, 2); }
void CompareScene::run_beams() { choose_and_run(ui::ComparisonKind::kBeams, 4); }

const ui::CompareLook& CompareScene::look() const { return application_->views().compare().look(); }

double CompareScene::ui_milliseconds() {
  static ui::ActionSink sink;
  double milliseconds = 0;
  application_->window().wait_events(0);
  application_->window().draw_frame([&] {
    const auto start = std::chrono::steady_clock::now();
    application_->views().draw(state(), sink, 1.0f);
    milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  });
  return milliseconds;
}

void CompareScene::answer(RequestId id, const GenerationRequest& request) {
  if (batch_answers_) return answer_batch(id, request);
  auto& script = compare_engine_->script;
  std::vector<TokenId> prompt(kNumPromptTokens, 0);
  if (const auto* tokens = std::get_if<TokenPrompt>(&request.prompt)) prompt = tokens->token_ids;
  script.push_back([this, id, prompt, seed = request.sampling.seed.value_or(11)] {
    compare_engine_->events.push_back(RequestAccepted{id, prompt, seed});
    compare_engine_->events.push_back(RequestAdmitted{id, 0, 900});
  });
  if (request.sampling.beam_width) return answer_beams(id, request);
  if (request.sampling.logprobs > 0) return answer_samples(id, request);
  script.push_back([this, id] {
    compare_engine_->events.push_back(compare_engine_->say(id, 0, {"Rain", " on", " tin", "."}));
    if (!hold_plain_answers_) finish(id, 1, FinishReason::kStop);
  });
}

void CompareScene::answer_samples(RequestId id, const GenerationRequest& request) {
  const std::int32_t count = request.sampling.n;
  compare_engine_->script.push_back([this, id, count] {
    for (std::int32_t i = 0; i < count; ++i) {
      compare_engine_->events.push_back(
          poem_of(*compare_engine_, id, i + static_cast<std::int32_t>(count == 1 ? id.value : 0)));
    }
    for (auto event = compare_engine_->events.end() - count; event != compare_engine_->events.end(); ++event)
      if (count == 1) std::get<TokensGenerated>(*event).output_index = 0;
    SampleScene scene = sample_scene(id, count, kNumPromptTokens, 34);
    compare_engine_->snapshot = scene.snapshot;
    for (const BlockEvent& copy : scene.copies) compare_engine_->recorder->record(std::nullopt, {&copy, 1});
  });
  compare_engine_->script.push_back([this, id, count] {
    if (!hold_answers_) finish(id, count, FinishReason::kStop);
  });
}

// The first of a prompt's four requests computes its blocks, and the others find them.
void CompareScene::answer_batch(RequestId id, const GenerationRequest& request) {
  const std::vector<TokenId> prompt(kNumPromptTokens, 0);
  compare_engine_->events.push_back(RequestAccepted{id, prompt, *request.sampling.seed});
  compare_engine_->events.push_back(RequestAdmitted{id, 0, 900});
  const Words& words = poems()[id.value % poems().size()];
  const std::size_t length = 12 + id.value % 7;
  compare_engine_->events.push_back(
      compare_engine_->say(id, 0, Words(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(length))));
  OutputFinished finished;
  finished.request_id = id;
  compare_engine_->events.push_back(finished);
  RequestFinished last{id, {}, {}};
  last.metrics.prompt.num_computed = id.value % 4 == 1 ? kNumPromptTokens : 8;
  compare_engine_->events.push_back(last);
}

void CompareScene::answer_beams(RequestId id, const GenerationRequest& request) {
  const std::int32_t width = *request.sampling.beam_width;
  const std::vector<BeamStep> steps = beam_steps(*compare_engine_, width);
  for (const BeamStep& step : steps) {
    compare_engine_->script.push_back([this, id, step] {
      compare_engine_->events.push_back(BeamsAdvanced{id, {step}});
    });
  }
  compare_engine_->script.push_back([this, id, width, steps] {
    SampleScene scene = sample_scene(id, width, kNumPromptTokens, 14);
    compare_engine_->snapshot = scene.snapshot;
    if (hold_answers_) return;
    std::vector<BeamNode> nodes;
    for (const BeamStep& step : steps) nodes.insert(nodes.end(), step.nodes.begin(), step.nodes.end());
    for (std::int32_t i = 0; i < width; ++i) {
      TokensGenerated event = compare_engine_->say(id, i, {});
      for (std::int32_t at = steps.back().live[static_cast<std::size_t>(i)]; at >= 0;
           at = nodes[static_cast<std::size_t>(at)].parent) {
        event.token_ids.insert(event.token_ids.begin(), nodes[static_cast<std::size_t>(at)].token_id);
        event.logprobs.insert(event.logprobs.begin(), nodes[static_cast<std::size_t>(at)].logprob);
      }
      compare_engine_->events.push_back(event);
    }
    finish(id, width, FinishReason::kLength, /*with_scores=*/true);
  });
}

void CompareScene::finish(RequestId id, std::int32_t num_outputs, FinishReason reason, bool with_scores) {
  for (std::int32_t i = 0; i < num_outputs; ++i) {
    OutputFinished finished;
    finished.request_id = id;
    finished.output_index = i;
    finished.finish_reason = reason;
    if (with_scores) finished.score = -0.41 - 0.06 * i;
    compare_engine_->events.push_back(finished);
  }
  compare_engine_->events.push_back(RequestFinished{id, {}, {}});
}

}  // namespace octavo::testing
