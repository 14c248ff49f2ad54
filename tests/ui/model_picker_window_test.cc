// Choosing a model in the window, with scripted engines and real model files: the picker, loads in the
// background, and what happens to chats meanwhile.

#include <imgui.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/ui/window_fixture.h"
#include "ui/views/model_inside_view.h"
#include "ui/views/model_picker.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

// What a scripted engine's load does.
struct Loads {
  std::atomic<bool> wait = false;  // until this is false again, or the load is cancelled
  std::atomic<int> num_begun = 0;
  std::atomic<int> num_alive = 0;      // engines
  std::vector<EngineOptions> options;  // of each load; read when no load runs
  std::string fails_with;              // empty: it does not
};

// Says when it ends.
class CountedEngine final : public Engine {
 public:
  CountedEngine(std::unique_ptr<FakeEngine> engine, Loads& loads)
      : engine_(std::move(engine)), loads_(loads) {
    ++loads_.num_alive;
  }
  ~CountedEngine() override { --loads_.num_alive; }
  const EngineDescription& description() const override { return engine_->description(); }
  const tokenizer::Tokenizer& tokenizer() const override { return engine_->tokenizer(); }
  RequestId submit(GenerationRequest request) override { return engine_->submit(std::move(request)); }
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override {
    return engine_->submit_all(std::move(requests));
  }
  void cancel(RequestId id) override { engine_->cancel(id); }
  void cancel_output(RequestId id, std::int32_t output) override { engine_->cancel_output(id, output); }
  void reset_prefix_cache() override { engine_->reset_prefix_cache(); }
  void stop() override { engine_->stop(); }
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override { return engine_->poll(timeout); }
  void set_wake_up(std::function<void()> wake_up) override { engine_->set_wake_up(std::move(wake_up)); }
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) override {
    return engine_->kv_snapshot(scope);
  }
  void watch_block(std::optional<BlockId> block) override { engine_->watch_block(block); }
  KvTotals kv_totals() const override { return engine_->kv_totals(); }
  std::shared_ptr<const metrics::StepRecorder> history() const override { return engine_->history(); }

 private:
  std::unique_ptr<FakeEngine> engine_;
  Loads& loads_;
};

class ModelPickerWindow : public WindowTest {
 protected:
  std::string write_model(const std::string& name, const std::string& title, std::uint32_t layers = 2,
                          std::uint32_t context_length = 4096) {
    const std::filesystem::path path = folder_ / "models" / name;
    std::filesystem::create_directories(path.parent_path());
    test::TinyLlamaOptions options;
    options.num_layers = layers;
    options.context_length = context_length;
    options.weight_type = kernels::TensorType::kQ8_0;
    test::GgufWriter writer;
    std::mt19937_64 random(3);
    writer.add_string("general.license", "apache-2.0").add_string("general.organization", "Somebody");
    writer.add_string("general.basename", title);
    test::add_tiny_llama_keys(writer, options);
    test::add_tiny_llama_tensors(writer, options, random);
    writer.write(path);
    return path.string();
  }

  app::EngineFactory factory() {
    return [this](const EngineOptions& options, LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
      const int number = ++loads_.num_begun;
      loads_.options.push_back(options);
      while (loads_.wait && progress(0.43)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (!progress(1.0)) return Error{ErrorCode::kCancelled, "loading was cancelled"};
      if (!loads_.fails_with.empty()) return Error{ErrorCode::kDamagedFile, loads_.fails_with};
      const std::string name = "Model " + std::to_string(number);
      auto engine = std::make_unique<FakeEngine>(
          FakeEngine::Options{.name = name,
                              .path = options.model,
                              .first_request = static_cast<std::uint64_t>(number) * 1000,
                              .vocabulary = static_cast<std::uint64_t>(number)});
      engine->clock = clock_;
      engine_ = engine.get();
      return std::unique_ptr<Engine>(std::make_unique<CountedEngine>(std::move(engine), loads_));
    };
  }

  void open_on(const std::string& model, const app::Settings& settings = test_settings()) {
    open_with(factory(), model, settings);
  }
  void TearDown() override {
    loads_.wait = false;
    WindowTest::TearDown();
  }
  void apply(const ui::Action& action) {
    application_->controller().apply(action);
    draw_frames(1);
  }
  bool settle() {
    return loop_until([this] {
      const ui::ModelPickerState& picker = state().picker;
      return !picker.scanning && !picker.inside.reading && !state().files.reading;
    });
  }
  // From within a script.
  void wait_until_settled(ImGuiTestContext* context) const {
    const ui::ModelPickerState& picker = state().picker;
    for (int quiet = 0, frames = 0; quiet < 4 && frames < 3000; ++frames) {
      context->Yield();
      const bool is_settled = !picker.scanning && !picker.inside.reading && !state().files.reading;
      quiet = is_settled ? quiet + 1 : 0;
    }
  }
  void choose(const std::string& path) {
    application_->controller().apply(act::OpenModelFile{path});
    // As an action of a view would be.
    draw_frames(1);
    application_->controller().apply(act::ChooseModel{path});
    perform();
    ASSERT_TRUE(settle());
  }
  // What the controller wants done, as after a frame in which somebody pressed something.
  void perform() {
    application_->update();
    draw_frames(2);
  }
  void load(const std::string& path, act::RunningAnswers running = act::RunningAnswers::kFinish) {
    choose(path);
    ASSERT_EQ(state().picker.inside.problem, "");
    application_->controller().apply(act::LoadChosenModel{running});
    perform();
  }
  ChatId ask(const std::string& text) {
    application_->controller().apply(act::SendMessage{chat().id, text});
    perform();
    return chat().id;
  }
  bool all_idle() const {
    return std::all_of(state().chats.begin(), state().chats.end(),
                       [](const ui::ChatState& each) { return each.activity == ui::Activity::kIdle; });
  }

  Loads loads_;
};

// ---- loads

TEST_F(ModelPickerWindow, AnotherModelLoadsWhileChatsGoOnAndThenAnswers) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First"), second = write_model("second.gguf", "Second");
  open_on(first);
  FakeEngine* const old = engine_;
  old->answers = {std::string(4000, 'x')};
  old->steps_allowed = 20;
  const ChatId asked = ask("a long answer, please");
  loads_.wait = true;
  load(second);
  ASSERT_TRUE(
      loop_until([this] { return state().picker.loading && state().picker.loading->fraction > 0.4; }));
  const std::size_t before = chat().messages.back().text.size();
  old->steps_allowed = 20;
  ASSERT_TRUE(loop_until([&] { return chat().messages.back().text.size() >= before + 40; }))
      << "the answer goes on while the other model loads";
  EXPECT_EQ(state().model.name, "first");
  loads_.wait = false;
  ASSERT_TRUE(loop_until([this] { return state().model.name == "second"; }));
  EXPECT_FALSE(state().picker.open);
  EXPECT_EQ(loads_.num_alive, 2) << "the first has an answer to finish";
  EXPECT_EQ(ui::find_chat(state(), asked)->activity, ui::Activity::kGenerating);
  apply(act::NewChat{});
  const ChatId fresh = ask("hello");
  ASSERT_TRUE(loop_until([&] { return ui::find_chat(state(), fresh)->activity == ui::Activity::kIdle; }));
  EXPECT_EQ(ui::find_chat(state(), fresh)->messages.back().model, "second");
  old->steps_allowed = -1;
  ASSERT_TRUE(loop_until([this] { return all_idle(); }));
  EXPECT_EQ(ui::find_chat(state(), asked)->messages.back().text, std::string(4000, 'x'));
  EXPECT_EQ(ui::find_chat(state(), asked)->messages.back().model, "first");
  EXPECT_TRUE(loop_until([this] { return loads_.num_alive == 1; }))
      << "the first has ended with its last answer";
}

TEST_F(ModelPickerWindow, AFailedLoadIsOneSentenceAndTheChatsGoOn) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First"), second = write_model("second.gguf", "Second");
  open_on(first);
  engine_->answers = {std::string(400, 'x')};
  engine_->steps_allowed = 10;
  ask("a long answer, please");
  loads_.fails_with = "second.gguf: tensor blk.0 ends early: fetch it again";
  load(second);
  ASSERT_TRUE(loop_until([this] { return state().banner.has_value(); }));
  EXPECT_NE(state().banner->text.find("tensor blk.0 ends early"), std::string::npos);
  EXPECT_EQ(state().banner->kind, ui::BannerKind::kError);
  EXPECT_FALSE(state().picker.loading);
  EXPECT_EQ(state().model.phase, ui::ModelPhase::kReady);
  EXPECT_EQ(state().model.name, "first");
  engine_->steps_allowed = -1;
  ASSERT_TRUE(loop_until([this] { return all_idle(); }));
  EXPECT_EQ(chat().messages.back().text, std::string(400, 'x'));
  loads_.fails_with.clear();
  load(second);
  EXPECT_TRUE(loop_until([this] { return state().model.name == "second"; })) << "it can be tried again";
}

TEST_F(ModelPickerWindow, ALoadCanBeCancelledAndAnotherTakesItsPlace) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First"), second = write_model("second.gguf", "Second"),
                    third = write_model("third.gguf", "Third");
  open_on(first);
  loads_.wait = true;
  load(second);
  ASSERT_TRUE(loop_until([this] { return state().picker.loading.has_value(); }));
  play([](ImGuiTestContext* context) {
    context->SetRef("model_picker");
    context->ItemClick("**/cancel_load");
    context->Yield(2);
  });
  ASSERT_TRUE(loop_until([this] { return !state().picker.loading; }));
  EXPECT_EQ(state().banner->kind, ui::BannerKind::kNotice);
  EXPECT_NE(state().banner->text.find("was cancelled"), std::string::npos);
  EXPECT_EQ(state().model.name, "first");
  load(second);
  ASSERT_TRUE(loop_until([this] { return state().picker.loading.has_value(); }));
  load(third);  // what was wanted last counts
  loads_.wait = false;
  ASSERT_TRUE(loop_until([this] { return state().model.name == "third"; }));
  EXPECT_EQ(loads_.options.back().model, third);
  EXPECT_TRUE(loop_until([this] { return loads_.num_alive == 1; }));
}

TEST_F(ModelPickerWindow, WithoutRoomForBothTheAnswersAreInterruptedAndCanBeContinued) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First"), second = write_model("second.gguf", "Second");
  open_on(first);
  engine_->answers = {std::string(400, 'x')};
  engine_->steps_allowed = 10;
  ask("a long answer, please");
  ASSERT_TRUE(loop_until([this] { return chat().messages.back().text.size() >= 40; }));
  load(second, act::RunningAnswers::kStop);
  ASSERT_TRUE(loop_until([this] { return state().model.name == "second"; }));
  EXPECT_TRUE(chat().messages.back().interrupted);
  EXPECT_EQ(loads_.num_alive, 1);
  engine_->answers = {"and the rest"};
  apply(act::ContinueAnswer{chat().id, chat().messages.back().id});
  ASSERT_TRUE(loop_until([this] { return all_idle(); }));
  EXPECT_EQ(chat().messages.back().text, std::string(40, 'x') + "and the rest");
}

TEST_F(ModelPickerWindow, AFailureAfterThePresentModelWentBringsItBack) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First"), second = write_model("second.gguf", "Second");
  open_on(first);
  choose(second);
  loads_.wait = true;
  application_->controller().apply(act::LoadChosenModel{act::RunningAnswers::kStop});
  perform();
  ASSERT_TRUE(loop_until([this] { return loads_.num_begun == 2; }));
  EXPECT_EQ(loads_.num_alive, 0) << "it gave its memory back before the other began to load";
  loads_.fails_with = "second.gguf: ends early";
  application_->controller().apply(act::CancelLoading{});
  perform();
  ASSERT_TRUE(loop_until([this] { return loads_.num_begun == 3; }));
  loads_.fails_with.clear();
  loads_.wait = false;
  ASSERT_TRUE(loop_until([this] { return state().model.phase == ui::ModelPhase::kReady; }));
  EXPECT_EQ(loads_.options.back().model, first);
}

TEST_F(ModelPickerWindow, TheModelUsedLastComesBackAtTheNextStart) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First"), second = write_model("second.gguf", "Second");
  open_on(first);
  load(second);
  ASSERT_TRUE(loop_until([this] { return state().model.name == "second"; }));
  application_.reset();
  const auto start = [&](bool prefers_recent) -> ::testing::AssertionResult {
    app::WindowOptions options;
    options.engine.model = first;
    options.prefers_recent_model = prefers_recent;
    options.settings_path = folder_ / "settings.json";
    options.chats_path.clear();
    options.export_folder = folder_;
    options.model_places = model_places();
    auto started = app::Application::start(options, factory(), *clock_);
    if (!started) return ::testing::AssertionFailure() << started.error().message;
    application_ = *std::move(started);
    return ::testing::AssertionResult(
        loop_until([this] { return state().model.phase == ui::ModelPhase::kReady; }));
  };
  ASSERT_TRUE(start(true));
  EXPECT_EQ(loads_.options.back().model, second);
  application_.reset();
  ASSERT_TRUE(start(false));
  EXPECT_EQ(loads_.options.back().model, first) << "a model that was named comes first";
}

// ---- as a person uses it

// Each test is one script: a new one would take the keyboard away from the field.
TEST_F(ModelPickerWindow, IsOpenedByKeySearchedAndLoadsWithOneClick) {
  if (IsSkipped()) return;
  const std::string first = write_model("first.gguf", "First");
  const std::string second = write_model("alpha-second.gguf", "Second");
  open_on(first);
  std::string chosen_at_first, chosen_by_search;
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_M);
    wait_until_settled(context);
    chosen_at_first = state().picker.inside.path;
    context->KeyChars("alpha");
    context->Yield(2);
    context->KeyPress(ImGuiKey_DownArrow);
    wait_until_settled(context);
    chosen_by_search = state().picker.inside.path;
    context->SetRef("model_picker");
    context->ItemClick("**/context/lower");
    wait_until_settled(context);
    context->ItemClick("**/load_model");
    context->Yield(2);
  });
  EXPECT_EQ(chosen_at_first, first) << "the present model is chosen at first";
  EXPECT_EQ(chosen_by_search, second);
  ASSERT_TRUE(loop_until([this] { return state().model.name == "alpha second"; }));
  EXPECT_EQ(loads_.options.back().model, second);
  EXPECT_EQ(loads_.options.back().max_model_len, 2048);
  draw_frames(2);
  bool was_open = false;
  play([&](ImGuiTestContext* context) {
    context->ItemClick("**/open_models");
    context->Yield(3);
    was_open = state().picker.open;
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(3);
  });
  EXPECT_TRUE(was_open) << "the model's name opens it, too";
  EXPECT_FALSE(state().picker.open);
}

TEST_F(ModelPickerWindow, AFileAnywhereIsFoundByItsPath) {
  if (IsSkipped()) return;
  open_on(write_model("first.gguf", "First"));
  const std::string far = write_model("../far/away/model.gguf", "Far");
  std::vector<std::string> names;
  const auto note_only_entry = [&] {
    const auto& entries = state().files.entries;
    names.push_back(entries.size() == 1 ? entries[0].name : std::to_string(entries.size()) + " entries");
  };
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_M);
    wait_until_settled(context);
    context->SetRef("model_picker");
    context->ItemClick("**/open_file");
    wait_until_settled(context);
    context->SetRef("file_browser");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    context->KeyChars("~/fa");
    wait_until_settled(context);
    note_only_entry();
    context->KeyPress(ImGuiKey_Enter);  // into the only folder
    wait_until_settled(context);
    note_only_entry();
    context->ItemClick("**/file_row");
    wait_until_settled(context);
    note_only_entry();
    context->ItemClick("**/file_row");
    wait_until_settled(context);
  });
  EXPECT_EQ(names, (std::vector<std::string>{"far", "away", "model.gguf"}));
  EXPECT_FALSE(state().files.open);
  EXPECT_TRUE(std::filesystem::equivalent(state().picker.inside.path, far)) << state().picker.inside.path;
  EXPECT_EQ(state().picker.inside.problem, "");
}

TEST_F(ModelPickerWindow, OneClickAsksAnExampleQuestion) {
  if (IsSkipped()) return;
  open_on(write_model("first.gguf", "First"));
  write_screenshot("empty-chat");
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/example_ideas");
    context->Yield(3);
  });
  ASSERT_TRUE(loop_until([this] { return !chat().messages.empty() && all_idle(); }));
  EXPECT_EQ(chat().messages[0].text, "Give me five names for a grey cat.");
  EXPECT_EQ(chat().messages.size(), 2u);
}

TEST_F(ModelPickerWindow, WithoutAModelOneCanBeChosen) {
  if (IsSkipped()) return;
  const std::string path = write_model("only.gguf", "Only");
  open_on("");
  EXPECT_EQ(state().model.phase, ui::ModelPhase::kNone);
  play([](ImGuiTestContext* context) {
    context->ItemClick("**/choose_model");
    context->Yield(3);
  });
  ASSERT_TRUE(settle());
  EXPECT_EQ(state().picker.inside.path, path) << "the only one is chosen";
  write_screenshot("models-no-model");
  play([](ImGuiTestContext* context) {
    context->SetRef("model_picker");
    context->ItemClick("**/load_model");
    context->Yield(2);
  });
  EXPECT_TRUE(loop_until([this] { return state().model.phase == ui::ModelPhase::kReady; }));
}

// ---- pictures

TEST_F(ModelPickerWindow, Screenshots) {
  if (IsSkipped()) return;
  const std::string first = write_model("SmolLM2-135M-Instruct.Q8_0.gguf", "First", 8, 8192);
  const std::string second = write_model("somebody/Another-Model-1.7B-Instruct.gguf", "Second", 24, 2048);
  write_model("somebody/one-more.gguf", "Third", 3, 1024);
  const std::string cut = write_model("damaged.gguf", "Cut");
  std::filesystem::resize_file(cut, 9'000);
  app::Settings settings = large_settings();
  settings.recent_models = {{(folder_ / "models" / "gone.gguf").string(), 1'700'000'000'000}};
  open_on(first, settings);
  engine_->answers = {std::string(4000, 'x')};
  engine_->steps_allowed = 30;
  ask("Why are keys and values kept in blocks?");
  in_every_look([&](const std::string& look) {
    choose(second);
    write_screenshot("models-" + look);
    choose(cut);
    write_screenshot("models-damaged-" + look);
  });
  choose(second);
  apply(act::ChangeLoadOptions{{.kv_cache_mebibytes = 1 << 20}});
  perform();
  ASSERT_TRUE(settle());
  EXPECT_EQ(state().picker.inside.memory.fit, ui::ModelFit::kNever);
  in_every_look([&](const std::string& look) { write_screenshot("models-too-large-" + look); });
  apply(act::ChangeLoadOptions{{}});
  perform();
  ASSERT_TRUE(settle());
  loads_.wait = true;
  application_->controller().apply(act::LoadChosenModel{});
  perform();
  ASSERT_TRUE(
      loop_until([this] { return state().picker.loading && state().picker.loading->fraction > 0.4; }));
  in_every_look([&](const std::string& look) { write_screenshot("models-loading-" + look); });
  application_->controller().apply(act::AskForFile{act::FileWish::kOpenModel});
  application_->controller().apply(act::BrowseTo{(folder_ / "models").string() + "/", false});
  perform();
  ASSERT_TRUE(settle());
  in_every_look([&](const std::string& look) { write_screenshot("models-browser-" + look); });
  application_->controller().apply(act::CloseModelPicker{});
  perform();
  write_screenshot("models-loading-sidebar");
  EXPECT_EQ(state().picker.rows.size(), 5u);
}

// ---- pure parts

TEST(ModelPickerSteps, ContextsArePowersOfTwoAndThenTheModels) {
  EXPECT_EQ(ui::context_steps(4096), (std::vector<std::int32_t>{512, 1024, 2048, 0}));
  EXPECT_EQ(ui::context_steps(3000), (std::vector<std::int32_t>{512, 1024, 2048, 0}));
  EXPECT_EQ(ui::context_steps(300), (std::vector<std::int32_t>{0}));
}

TEST(ModelPickerSteps, PoolsReachWhatIsFree) {
  EXPECT_EQ(ui::pool_steps(std::int64_t{100} << 20), (std::vector<std::int64_t>{0, 32, 64, 128}));
  EXPECT_EQ(ui::pool_steps(0), (std::vector<std::int64_t>{0, 32}));
}

TEST(ModelPickerSearch, EveryWordCountsWhateverTheCase) {
  std::vector<ui::ModelRow> rows(2);
  rows[0].name = "SmolLM2 135M";
  rows[0].file_name = "a.gguf";
  rows[1].file_name = "Other-7B.gguf";
  rows[1].folder = "/models/somebody";
  using Indices = std::vector<std::size_t>;
  EXPECT_EQ(ui::model_rows_matching(rows, ""), (Indices{0, 1}));
  EXPECT_EQ(ui::model_rows_matching(rows, "135m smol"), (Indices{0}));
  EXPECT_EQ(ui::model_rows_matching(rows, "SOMEBODY 7b"), (Indices{1}));
  EXPECT_EQ(ui::model_rows_matching(rows, "smol 7b"), Indices{});
}

}  // namespace
}  // namespace octavo::testing
