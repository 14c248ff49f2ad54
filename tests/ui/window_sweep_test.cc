// All screens of the window, in every size at every zoom and in every theme: window_sweep.h.

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/chat/chat.h"
#include "engine/api/structured_output.h"
#include "tests/hub/hub_stand_in.h"
#include "tests/support/environment.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/sweep.h"
#include "tests/support/tiny_models.h"
#include "tests/ui/memory_scene.h"
#include "tests/ui/window_sweep.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
using ui::Activity;
using ui::Workspace;

constexpr const char* kLongTitle =
    "A title that is a good deal longer than any column of the window is wide, and goes on after that";
constexpr const char* kMarkdown =
    "<think>\nThe person asks for **two** words. I could say hello.\n\n- hello there\n- good "
    "day\n</think>\n\nBlocks of *sixteen* tokens are taken one by one, as [the paper](https://example.org) "
    "says:\n\n| what | blocks | tokens |\n|---|---:|---:|\n| prompt | 12 | 192 |\n| answer | 3 | 41 "
    "|\n\n```cpp\nint needed(int tokens) { return (tokens + 15) / 16; }  // rounded up, whatever is asked "
    "for\n```\n\n> A quotation.\n\n1. First, `slot = block * 16 + offset`.\n2. Then the next.\n";

TEST_P(WindowSweep, OfTheChatAndItsPanels) {
  const auto ask_another_server = [this] {
    apply(act::OpenModelPicker{});
    apply(act::OpenRemoteDialog{});
    apply(act::AskForRemoteModels{"ftp://nowhere", ""});
  };
  const auto leave_it = [this] {
    apply(act::CloseRemoteDialog{});
    apply(act::CloseModelPicker{});
  };
  open_compare();
  ask_in_chat("Write four lines about rain, and a table of what it costs.");
  apply(act::RenameChat{chat().id, kLongTitle});
  draw_frames(10);
  sweep({
      workspace("chat", Workspace::kChat),
      {"tree", applied(act::ShowTree{true}), applied(act::ShowTree{false})},
      {"sampling", applied(act::ShowSampling{true}), applied(act::ShowSampling{false})},
      {"settings", applied(act::ShowSettings{true}), applied(act::ShowSettings{false})},
      {"files", applied(act::AskForFile{act::FileWish::kAttach}), applied(act::CloseFileBrowser{})},
      {"keys", applied(act::ShowKeys{true}), applied(act::ShowKeys{false})},
      {"palette", applied(act::ShowPalette{true}), applied(act::ShowPalette{false})},
      {"models", applied(act::OpenModelPicker{}), applied(act::CloseModelPicker{})},
      {"a model on another server", ask_another_server, leave_it},
      {"an empty chat", applied(act::NewChat{})},
  });
}

// Chats that are kept, with everything that messages can have.
class MessageSweep : public LongWindowSweep {
 protected:
  void open_kept() {
    chats_path_ = folder_ / "data" / "chats.db";
    open({}, large_settings());
    engine_->answers = {"To be deleted.", kMarkdown, "Another answer to the same question.", kMarkdown};
    ask("This chat goes to the trash");
    apply(act::DeleteChat{chat().id});
    apply(act::NewChat{});
    write_file("a much longer name of a file than anything that people call a file.txt", "x");
    write_file("notes.txt", std::string(4'000, 'n'));
    apply(act::OpenFiles{{(folder_ / "notes.txt").string()}});
    ASSERT_TRUE(loop_until([this] { return chat().attachments.size() == 1; }));
    ask("How many blocks does a prompt of two hundred tokens take, and why?");
    apply(act::Regenerate{chat().id, chat().messages.back().id});
    ASSERT_TRUE(answered());
    apply(act::Regenerate{chat().id, chat().messages.back().id});
    ASSERT_TRUE(answered());
    apply(act::RenameChat{chat().id, kLongTitle});
    apply(act::CreateFolder{kLongTitle, ChatId{}});
    apply(act::SavePreset{{PresetId{}, kLongTitle, "Answer in one sentence.", chat().sampling}});
    apply(act::DismissUndo{});
    apply(act::DismissBanner{});
    draw_frames(10);
    key(ImGuiKey_Enter);  // the folder's name is as it should be
  }
  bool answered() {
    return loop_until([this] {
      return chat().activity == Activity::kIdle && chat().messages.size() >= 2 &&
             !chat().messages.back().streaming;
    });
  }
  void ask(const std::string& text) {
    apply(act::SendMessage{chat().id, text});
    ASSERT_TRUE(answered());
  }
  void attach_more() {
    apply(act::OpenFiles{
        {(folder_ / "a much longer name of a file than anything that people call a file.txt").string(),
         (folder_ / "notes.txt").string()}});
    EXPECT_TRUE(loop_until([this] {
      const auto is_counted = [](const auto& attachment) { return attachment.num_tokens.has_value(); };
      return chat().attachments.size() >= 2 && std::ranges::all_of(chat().attachments, is_counted);
    }));
    apply(act::DismissBanner{});
  }
  void open_nothing() {
    apply(act::OpenFiles{{"/nowhere/" + std::string(200, 'x') + ".txt"}});
    EXPECT_TRUE(loop_until([this] { return state().banner.has_value(); }));
  }
  void remove_attachments() {
    while (!chat().attachments.empty())
      apply(act::RemoveAttachment{chat().id, chat().attachments.front().id});
  }
  void search(const std::string& query) {
    apply(act::ShowSearch{true});
    apply(act::SearchChats{query});
    EXPECT_TRUE(loop_until([this] { return !state().library.search.running; }));
  }
  void ask_to_replace() {
    write_file("there already.md", "x");
    apply(act::RenameChat{chat().id, "Blocks"});  // of a long title, the file's name itself has an ellipsis
    apply(act::ExportChat{chat().id, act::ChatFormat::kMarkdown, {}});
    EXPECT_TRUE(loop_until([this] { return !state().files.reading; }));
    apply(act::ChooseFile{(folder_ / "there already.md").string()});
    EXPECT_TRUE(loop_until([this] { return !state().files.overwrites.empty(); }));
  }
  void show_editor(ui::MessageEditor editor) {
    apply(act::ShowMessage{chat().id, chat().messages.back().id, editor});
  }
};

TEST_P(MessageSweep, OfMessagesListsAndQuestions) {
  open_kept();
  const auto edit = [this] { show_editor(ui::MessageEditor::kText); };
  const auto begin = [this] { show_editor(ui::MessageEditor::kAnswer); };
  const auto delete_it = [this] {
    apply(act::DeleteMessage{chat().id, chat().messages.back().id, act::DeleteExtent::kMessage});
  };
  const auto leave_export = [this] {
    apply(act::AnswerOverwrite{false});
    apply(act::CloseFileBrowser{});
    apply(act::RenameChat{chat().id, kLongTitle});
  };
  const auto leave_search = [this] {
    apply(act::SearchChats{""});
    apply(act::ShowSearch{false});
  };
  sweep({
      workspace("messages", Workspace::kChat),
      {"thinking", keys(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_T),
       keys(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_T)},
      {"menu of a message", pressing("**/message_more"), keys(ImGuiKey_Escape)},
      {"menu of a chat", pressing("**/more"), keys(ImGuiKey_Escape)},
      {"an answer is edited", edit, keys(ImGuiKey_Escape)},
      {"an answer is begun", begin, keys(ImGuiKey_Escape)},
      {"attachments", [this] { attach_more(); }, [this] { remove_attachments(); }},
      {"find", keys(ImGuiMod_Ctrl | ImGuiKey_F), keys(ImGuiKey_Escape)},
      {"search", [this] { search("blocks"); }, leave_search},
      {"search without a hit", [this] { search("nothing of the kind"); }, leave_search},
      {"trash", pressing("**/trash"), pressing("**/trash")},
      {"presets", applied(act::ShowPresets{true}), applied(act::ShowPresets{false})},
      {"tree", applied(act::ShowTree{true}), applied(act::ShowTree{false})},
      {"deleted", delete_it, applied(act::UndoDelete{})},
      {"a long notice", [this] { open_nothing(); }, applied(act::DismissBanner{})},
      {"import", applied(act::AskForFile{act::FileWish::kImportChats}), applied(act::CloseFileBrowser{})},
      {"a file is replaced", [this] { ask_to_replace(); }, leave_export},
  });
}

TEST_P(MessageSweep, OfAnswersUnderWay) {
  open_kept();
  std::string circle = "<think>\nIt goes round in circles.\n</think>\n\nOnce upon a time.";
  for (int i = 0; i < 400; ++i)
    circle += " And then the very same thing happened to the very same one again.";
  engine_->answers = {circle};
  engine_->steps_allowed = 7;
  apply(act::SendMessage{chat().id, "Tell me a story that never ends"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 4 && engine_->steps_allowed == 0; }));
  apply(act::SendMessage{chat().id, std::string("And then, when this is done, ") + kLongTitle});
  ASSERT_EQ(chat().queued.size(), 1u);
  sweep({workspace("an answer thinks, another waits", Workspace::kChat)});
  engine_->steps_allowed = 500;
  ASSERT_TRUE(loop_until([this] { return chat().messages.back().repeats; }));
  engine_->steps_allowed = 0;  // nothing moves while it is looked at
  draw_frames(3);
  sweep({workspace("an answer repeats itself", Workspace::kChat)});
}

TEST_P(MessageSweep, OfAChatThatOutgrewItsContext) {
  open({.max_model_len = 400}, large_settings());
  for (int turn = 1; chat().context.num_left == 0 && turn < 40; ++turn) {
    engine_->answers = {"Blocks hold sixteen tokens each, and a table says where they are. " +
                        std::to_string(turn) + "."};
    apply(act::SendMessage{chat().id, "What is a block, and who owns it? " + std::to_string(turn)});
    ASSERT_TRUE(loop_until([&] {
      return chat().messages.size() == 2 * static_cast<std::size_t>(turn) &&
             chat().activity == Activity::kIdle;
    }));
  }
  ASSERT_GT(chat().context.num_left, 1);
  const auto show_cut = [this] {
    const auto begin = static_cast<std::size_t>(chat().context.num_left);
    apply(act::ShowMessage{chat().id, chat().messages.at(begin - 1).id});
  };
  apply(act::ChangeContextPolicy{chat().id, ContextPolicy::kSummarise});
  sweep({{"where the context begins", show_cut},
         {"its settings", applied(act::ShowSampling{true}), applied(act::ShowSampling{false})}});
}

TEST_P(WindowSweep, WithoutAModel) {
  const auto none = [](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> {
    return Error{ErrorCode::kDamagedFile, "/home/somebody/models/" + std::string(kLongTitle) +
                                              ".gguf: it ends after 12 bytes: fetch it again"};
  };
  open_with(none, "", test_settings());
  sweep({{"welcome", [] {}}});
  close_window();
  open_with(none, "x.gguf", test_settings());
  sweep({{"a model that cannot be loaded", [] {}}});
  close_window();
  chats_path_ = folder_ / "chats.db";
  open();
  apply(act::SendMessage{chat().id, "what is a needle"});
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && !chat().messages[1].streaming; }));
  close_window();
  open_with(none, "x.gguf", test_settings());
  ASSERT_TRUE(loop_until([this] { return ui::active_chat(state()) != nullptr && !chat().messages.empty(); }));
  sweep({workspace("chats without a model", Workspace::kChat),
         workspace("comparisons without a model", Workspace::kCompare),
         workspace("memory without a model", Workspace::kMemory)});
}

// A first start, the catalogue and its downloads, from a stand-in of the hub on this machine.
class DownloadSweep : public LongWindowSweep {
 protected:
  void SetUp() override {
    LongWindowSweep::SetUp();
    if (IsSkipped()) return;
    home_.emplace("XDG_DATA_HOME", (folder_ / "data").string());
    cache_.emplace("HF_HUB_CACHE", (folder_ / "hub").string());
    const std::filesystem::path model = folder_ / "model.gguf";
    test::make_tiny_llama(7, {.num_layers = 8}).write(model);
    std::ifstream file(model, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(file), {}};
    content.resize(kSlow * kMostSeconds);
    std::string broken = content;
    broken[0] = 'X';
    hub_ = std::make_unique<HubStandIn>(
        std::vector<StandInRepository>{{.name = kRepository,
                                        .licence = "a-licence-of-a-longer-name",
                                        .files = {{.path = "m-Q4_K_M.gguf", .content = content},
                                                  {.path = "m-Q8_0.gguf", .content = broken}}},
                                       {.name = "org/asks-before",
                                        .is_gated = true,
                                        .files = {{.path = "a-Q4_0.gguf", .content = content}}}});
    hub_place_ = {.endpoint = hub_->address(), .cache = folder_ / "hub"};
  }
  void TearDown() override {
    LongWindowSweep::TearDown();
    hub_.reset();
    home_.reset();
    cache_.reset();
  }
  void search(const std::string& query) {
    apply(act::SearchHub{query});
    EXPECT_TRUE(loop_until([this] { return !state().catalogue.is_searching; }));
  }
  void look_at(const std::string& repository, const std::string& file) {
    apply(act::ShowRepository{repository, file});
    EXPECT_TRUE(loop_until([this] {
      const auto& shown = state().catalogue.repository;
      return !shown.problem.empty() || std::ranges::any_of(shown.files, &ui::CatalogueFile::is_checked);
    }));
  }
  void download_until(const std::string& file, ui::DownloadPhase phase) {
    apply(act::GetModel{kRepository, file, "A-model-with-a-long-name-3.1-Instruct-GGUF · Q4_K_M"});
    EXPECT_TRUE(loop_until([&] { return state().catalogue.download.phase == phase; }))
        << state().catalogue.download.sentence;
  }

  // A download lasts as long as a sweep, and asking for what the file holds does not.
  static constexpr std::size_t kSlow = 100'000, kMostSeconds = 600;
  static constexpr const char* kRepository = "an-organisation/A-model-with-a-long-name-3.1-Instruct-GGUF";
  std::unique_ptr<HubStandIn> hub_;
  std::optional<test::EnvironmentVariable> home_, cache_;
};

TEST_P(DownloadSweep, OfTheFirstStartAndTheCatalogue) {
  const auto none = [](const EngineOptions&, LoadProgress) -> Result<std::unique_ptr<Engine>> {
    return Error{ErrorCode::kDamagedFile, "it is damaged"};
  };
  open_with(none, "", test_settings());
  ASSERT_TRUE(loop_until([this] { return state().catalogue.better.has_value(); }));
  const auto leave = applied(act::CloseCatalogue{});
  const auto open = [this] { apply(act::OpenCatalogue{}); };
  sweep({
      {"first start", [] {}},
      {"catalogue", open, leave},
      {"catalogue, found", [this, open] { open(), search("o"); }, leave},
      {"catalogue, nothing found", [this, open] { open(), search("none of this name"); }, leave},
      {"catalogue, a plan", [this, open] { open(), look_at(kRepository, "m-Q4_K_M.gguf"); }, leave},
      {"catalogue, one that does not run", [this, open] { open(), look_at(kRepository, "m-Q8_0.gguf"); },
       leave},
      {"catalogue, gated", [this, open] { open(), look_at("org/asks-before", ""); }, leave},
      {"catalogue, not there", [this, open] { open(), look_at("org/nothing", ""); }, leave},
  });
  hub_->bytes_per_s = kSlow;
  download_until("m-Q4_K_M.gguf", ui::DownloadPhase::kReceiving);
  sweep({{"first start, downloading", [] {}}, {"catalogue, downloading", open, leave}});
}

TEST_P(DownloadSweep, OfDownloadsBesideChats) {
  open();
  hub_->bytes_per_s = kSlow;
  download_until("m-Q4_K_M.gguf", ui::DownloadPhase::kReceiving);
  sweep({workspace("downloading", Workspace::kChat)});
  apply(act::PauseDownload{});
  ASSERT_TRUE(loop_until([this] { return state().catalogue.download.phase == ui::DownloadPhase::kPaused; }));
  sweep({{"paused", [] {}}});
  hub_->bytes_per_s = 0;
  apply(act::CancelDownload{});
  ASSERT_TRUE(loop_until([this] { return state().catalogue.download.phase == ui::DownloadPhase::kNone; }));
  download_until("m-Q8_0.gguf", ui::DownloadPhase::kFailed);
  sweep({{"failed", [] {}}});
}

TEST_P(LongWindowSweep, OfTheFormsOfAnswers) {
  open();
  apply(act::ShowSampling{true});
  const auto form = [this](StructuredOutput wanted) {
    return [this, wanted] {
      SamplingParams sampling = chat().sampling;
      sampling.structured_output = wanted;
      apply(act::ChangeSampling{chat().id, sampling});
      draw_frames(2);
      play([](ImGuiTestContext* context) {
        if (context->ItemExists("**/form_free")) context->ScrollToItemY(context->ItemInfo("**/form_free").ID);
      });
    };
  };
  sweep({
      {"JSON", form(AnyJsonObject{})},
      {"a schema", form(JsonSchema{R"({"type": "object"})"})},
      {"a pattern", form(RegularExpression{"[0-9]{4}-[0-9]{2}-[0-9]{2}"})},
      {"a grammar", form(GrammarText{R"(root ::= "yes" | "no")"})},
      {"choices",
       form(ChoiceOfTexts{{"yes", "no", "a text that is longer than the field is wide, and goes on"}})},
  });
}

TEST_P(WindowSweep, WhileAModelLoads) {
  std::atomic<bool> is_over = false;
  const auto factory = [&](const EngineOptions&, LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
    while (progress(0.4) && !is_over) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Error{ErrorCode::kCancelled, "loading was cancelled"};
  };
  open_loading(factory, "x.gguf", test_settings());
  ASSERT_TRUE(loop_until([this] { return state().model.load_fraction >= 0.35; }));
  sweep({{"loading", [] {}}});
  is_over = true;
}

TEST_P(LongWindowSweep, OfComparisons) {
  switches_ = thinking_switches();
  open_compare(large_settings());
  sweep({workspace("an empty comparison", Workspace::kCompare)});
  run_samples(4);
  const auto samples = workspace("samples", Workspace::kCompare).show;
  const auto columns = keys(ImGuiKey_C);
  sweep({
      {"samples", samples},
      {"as a grid", keys(ImGuiKey_G), columns},
      {"one answer", keys(ImGuiKey_S), columns},
      {"differences", keys(ImGuiKey_D), columns},
      {"where answers part", keys(ImGuiKey_T), columns},
      {"shared beginnings", keys(ImGuiKey_2), keys(ImGuiKey_3)},
      {"entropy", keys(ImGuiKey_5), keys(ImGuiKey_3)},
      {"blocks", keys(ImGuiKey_6), keys(ImGuiKey_3)},
      {"Markdown", keys(ImGuiKey_F), keys(ImGuiKey_F)},
  });
  run_settings();
  sweep({workspace("settings", Workspace::kCompare)});
  run_beams();
  sweep({workspace("beams", Workspace::kCompare), {"scores", keys(ImGuiKey_P), keys(ImGuiKey_P)}});
}

TEST_P(LongWindowSweep, OfBatches) {
  switches_ = thinking_switches();
  open_compare(large_settings());
  batch_answers_ = true;
  apply(act::ShowWorkspace{Workspace::kCompare});
  draw_frames(2);
  press("**/kind/batch");
  sweep({{"set-up of a batch", [] {}}});
  act::ChangeBatch change{state().batch.setup, 77123456};
  change.settings.resize(3, change.settings.front());
  for (std::size_t i = 0; i < change.settings.size(); ++i)
    change.settings[i].sampling.temperature = 0.2 + 0.3 * static_cast<double>(i);
  change.settings[2].system_prompt = kLongTitle;
  apply(change);
  std::string prompts;
  for (int i = 1; i <= 12; ++i)
    prompts += "Write a line about rain on the roof of house number " + std::to_string(i) +
               ", and another one about the people who live in it and about what they do all day.\n";
  apply(act::RunBatch{prompts, ui::PromptFormat::kLines});
  ASSERT_TRUE(loop_until([this] { return !state().batch.running; }));
  draw_frames(3);
  sweep({{"a batch and its set-up", [] {}}});
  press("**/edit_batch");
  const auto end_vote = applied(act::EndVote{});
  const auto open_answer = [this] {
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
      if (std::string_view(window->Name).find("/answers_") == std::string_view::npos) continue;
      ImGui::SetScrollX(window, 0);  // Tab has scrolled to the end
      ImGui::SetScrollY(window, 0);
    }
    draw_frames(2);
    press("**/cell_0_1");
  };
  sweep({{"a batch", [] {}},
         {"an answer of a batch", open_answer, keys(ImGuiKey_Escape)},
         {"a vote", applied(act::StartVote{}), end_vote}});
  apply(act::StartVote{});
  for (std::size_t place : {0, 1, 2}) apply(act::CastVote{place});
  end_vote();
  ASSERT_TRUE(state().batch.result.has_value());
  sweep({{"what came of a vote", [] {}}});
}

TEST_P(LongWindowSweep, OfTwoModels) {
  if (IsSkipped()) return;
  std::filesystem::create_directories(folder_ / "models");
  const std::string first = (folder_ / "models/A name of a model that is long-1M.F32.gguf").string();
  const std::string second = (folder_ / "models/Fox-1M.Q8_0.gguf").string();
  test::make_tiny_llama(7, {}).write(first);
  test::make_tiny_llama(8, {.weight_type = kernels::TensorType::kQ8_0}).write(second);
  open_with(Engine::create, first, large_settings());
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  apply(act::ShowWorkspace{Workspace::kCompare});
  apply(act::ShowTwoModels{true});
  sweep({{"one of two models", [] {}}});
  apply(act::TakeSecondModel{second});
  ASSERT_TRUE(loop_until([this] {
    draw_frames(1);
    return state().two_models.can_compare;
  })) << state().two_models.problem;
  sweep({{"two models", [] {}}});
  apply(act::CompareTwoModels{
      "The quick brown fox jumps over the lazy dog.\nIt runs into the house, and then it "
      "is out again: nobody in the house has seen it."});
  ASSERT_TRUE(loop_until([this] {
    draw_frames(1);
    return state().two_models.result.has_value();
  })) << state().two_models.problem;
  sweep({{"two models compared", [] {}},
         {"a token of two models", pressing("**/worst_token"), keys(ImGuiKey_Escape)}});
}

TEST_P(LongWindowSweep, OfTheMemoryOfChats) {
  open({}, large_settings());
  engine_->answers = {std::string(400, 'a'), std::string(400, 'b')};
  for (const char* end : {" first", " second"}) {
    apply(act::NewChat{});
    apply(act::SendMessage{chat().id, std::string(320, 'p') + end});
    apply(act::RenameChat{chat().id, kLongTitle + std::string(end)});
    draw_frames(6);
  }
  draw_frames(30);
  engine_->steps_allowed = 0;
  const auto choose = [this] { apply(act::ChooseBlock{chat().memory.blocks.at(0).block_id.value}); };
  sweep({
      workspace("pools", Workspace::kMemory),
      {"a block", choose, applied(act::ChooseBlock{-1})},
      {"prefix tree", keys(ImGuiKey_T), keys(ImGuiKey_T)},
      {"more figures", keys(ImGuiKey_M), keys(ImGuiKey_M)},
      {"menu of exports", pressing("**/export"), keys(ImGuiKey_Escape)},
  });
}

TEST_P(LongWindowSweep, OfRecordingTourAndPaper) {
  open();
  const std::filesystem::path path = folder_ / "layout.kvrec";
  MemoryScene().record(path, 260);
  apply(act::ShowWorkspace{Workspace::kMemory});
  const auto open_recording = [this, path] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
    apply(act::OpenRecording{path.string()});
    EXPECT_TRUE(
        loop_until([this] { return state().memory_workspace.source == ui::MemorySource::kRecording; }));
    apply(act::ChooseBlock{17});
  };
  const auto open_tree = [this, open_recording] {
    open_recording();
    apply(act::ChooseBlock{-1});
    key(ImGuiKey_T);
  };
  const auto leave_tree = [this] {
    key(ImGuiKey_T);
    apply(act::CloseRecording{});
  };
  const auto open_tour = [this] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(act::ShowChapter{4});
    for (int i = 0; i < 5; ++i) apply(act::MoveTour{+1});
  };
  const auto open_swap = [this] {
    apply(act::ShowChapter{8});
    for (int i = 0; i < 12; ++i) apply(act::MoveTour{+1});
  };
  const auto open_trial = [this] {
    apply(act::ShowChapter{12});
    for (int i = 0; i < 5; ++i) apply(act::MoveTour{+1});
  };
  const auto run_paper = [this] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kPaper});
    if (state().memory_workspace.evaluation.rows.front().progress > 0) return;
    apply(act::RunPaper{});
    EXPECT_TRUE(
        loop_until([this] { return state().memory_workspace.evaluation.rows.front().progress > 0.1; }));
    apply(act::CancelPaper{});
    EXPECT_TRUE(loop_until([this] { return !state().memory_workspace.evaluation.is_queue_running; }));
  };
  const auto shown_experiment = [this](const char* name, bool runs = true) {
    return [this, name, runs] {
      apply(act::ShowMemoryPage{ui::MemoryPage::kPaper});
      const ui::EvaluationState& evaluation = state().memory_workspace.evaluation;
      const auto found = std::ranges::find(evaluation.experiments, name, &ui::ShownExperiment::name);
      const auto index = static_cast<std::size_t>(found - evaluation.experiments.begin());
      apply(act::ChooseExperiment{index});
      if (!runs || evaluation.experiments[index].findings != nullptr) return;
      apply(act::ChangeExperiments{{.is_quick = true}});
      apply(act::RunExperiments{index});
      EXPECT_TRUE(loop_until([&evaluation] { return !evaluation.is_running; }));
    };
  };
  sweep({
      {"recording", open_recording, applied(act::CloseRecording{})},
      {"tree of a recording", open_tree, leave_tree},
      {"tour", open_tour},
      {"tour with a host pool", open_swap},
      {"tour, a visitor's text", open_trial},
      {"paper", applied(act::ShowMemoryPage{ui::MemoryPage::kPaper})},
      {"paper, run", run_paper},
      {"experiment of bars", shown_experiment("figure-13")},
      {"experiment of curves", shown_experiment("figure-19")},
      {"experiment without results", shown_experiment("figure-12", /*runs=*/false)},
      {"experiment on this computer", shown_experiment("real-serving", /*runs=*/false)},
  });
}

// A recording of a model with recurrent layers, and a tiny model that has them, and experts too.
TEST_P(LongWindowSweep, OfStatesAndExperts) {
  const std::filesystem::path path = folder_ / "model.gguf", recording = folder_ / "states.kvrec";
  test::make_tiny_model(test::tiny_model("qwen35moe"), {.context_length = 512}).write(path);
  MemoryScene(240, 120, 40).record(recording, 900);
  app::Settings settings = large_settings();
  settings.sampling.max_tokens = 40;
  settings.sampling.ignore_eos = true;
  open_with(Engine::create, path.string(), settings);
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  apply(act::ShowWorkspace{Workspace::kMemory});
  apply(act::ShowMemoryPage{ui::MemoryPage::kExperts});
  sweep({{"experts, nothing counted", [] {}}});
  apply(act::SendMessage{chat().id, "abc abc abc abc abc abc abc abc"});
  apply(act::RenameChat{chat().id, kLongTitle});
  ASSERT_TRUE(loop_until([this] {
    const auto& heat = state().memory_workspace.experts.heat;
    return chat().activity == Activity::kIdle && heat != nullptr && heat->num_tokens > 40;
  }));
  const auto open_recording = [this, recording] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
    apply(act::OpenRecording{recording.string()});
    EXPECT_TRUE(
        loop_until([this] { return state().memory_workspace.source == ui::MemorySource::kRecording; }));
  };
  const auto choose = [this, open_recording] {
    open_recording();
    const auto& log = state().memory_workspace.timeline->log;
    const auto keep = std::ranges::find(log, BlockEventKind::kStateKeep, &ui::LogLine::kind);
    ASSERT_NE(keep, log.end());
    apply(act::SeekMark{keep->last_mark + 1});
    const auto& states = state().memory_workspace.snapshot->states;
    const auto kept = std::ranges::find(states, true, &StateSnapshot::is_checkpoint);
    apply(act::ChooseState{static_cast<std::int32_t>(kept - states.begin())});
  };
  const auto open_chapter = [this] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(act::ShowChapter{10});
    for (int i = 0; i < 8; ++i) apply(act::MoveTour{+1});
  };
  sweep({
      {"experts", applied(act::ShowMemoryPage{ui::MemoryPage::kExperts})},
      {"states", open_recording, applied(act::CloseRecording{})},
      {"a state", choose, applied(act::CloseRecording{})},
      {"tour of states", open_chapter, applied(act::ShowMemoryPage{ui::MemoryPage::kPools})},
  });
}

// The same of layers with a window.
TEST_P(LongWindowSweep, OfWindowParts) {
  const std::filesystem::path recording = folder_ / "windows.kvrec";
  MemoryScene(240, 120, 0, 150).record(recording, 900);
  open();
  apply(act::ShowWorkspace{Workspace::kMemory});
  const auto open_recording = [this, recording] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kPools});
    apply(act::OpenRecording{recording.string()});
    EXPECT_TRUE(
        loop_until([this] { return state().memory_workspace.source == ui::MemorySource::kRecording; }));
  };
  const auto choose = [this, open_recording](WindowPart part) {
    open_recording();
    const auto& log = state().memory_workspace.timeline->log;
    const auto out = std::ranges::find(log, BlockEventKind::kWindowSwapOut, &ui::LogLine::kind);
    ASSERT_NE(out, log.end());
    apply(act::SeekMark{out->last_mark + 1});
    const auto& blocks = state().memory_workspace.snapshot->blocks;
    const auto found = std::ranges::find_if(blocks, [&](const BlockSnapshot& block) {
      return block.state != BlockState::kFree && block.window == part;
    });
    ASSERT_NE(found, blocks.end());
    apply(act::ChooseBlock{static_cast<std::int32_t>(found - blocks.begin())});
  };
  const auto open_chapter = [this] {
    apply(act::ShowMemoryPage{ui::MemoryPage::kTour});
    apply(act::ShowChapter{11});
    for (int i = 0; i < 12; ++i) apply(act::MoveTour{+1});
  };
  sweep({
      {"window parts", open_recording, applied(act::CloseRecording{})},
      {"a block in a window", [choose] { choose(WindowPart::kUsed); }, applied(act::CloseRecording{})},
      {"a block left behind", [choose] { choose(WindowPart::kNone); }, applied(act::CloseRecording{})},
      {"tour of windows", open_chapter, applied(act::ShowMemoryPage{ui::MemoryPage::kPools})},
  });
}

// A port that is nobody's while the test runs is not known before: the panel is looked at switched on only
// where the usual one is free.
TEST_P(WindowSweep, OfRequestsAndTheServer) {
  const std::filesystem::path path = folder_ / "model.gguf";
  test::make_tiny_model(test::tiny_model("qwen2"), {.context_length = 512}).write(path);
  app::Settings settings = large_settings();
  settings.sampling.max_tokens = 12;
  settings.sampling.ignore_eos = true;
  settings.ui.server.port = 18'000;
  open_with(Engine::create, path.string(), settings);
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  apply(act::ShowWorkspace{Workspace::kMemory});
  apply(act::ShowMemoryPage{ui::MemoryPage::kRequests});
  sweep({{"no requests", [] {}}});
  for (const char* const question :
       {"abc abc abc abc abc abc abc abc abc", "b bc abc abc abc abc abc abc abc"}) {
    apply(act::NewChat{});
    apply(act::SendMessage{chat().id, question});
    apply(act::RenameChat{chat().id, kLongTitle});
    ASSERT_TRUE(loop_until([this] { return chat().activity == Activity::kIdle; }));
  }
  apply(act::ShowWorkspace{Workspace::kMemory});
  const auto& requests = state().memory_workspace.requests;
  ASSERT_TRUE(
      loop_until([&] { return requests.rows->size() == 2 && !requests.rows->front().cause.empty(); }));
  const auto choose = [this, &requests] {
    apply(act::ChooseRequest{requests.rows->front().number});
    EXPECT_TRUE(loop_until([&] { return requests.detail != nullptr; }));
  };
  const auto switch_on = [this] {
    apply(act::ShowServer{true});
    apply(act::SwitchServer{true});
    draw_frames(2);
    EXPECT_TRUE(loop_until([this] {
      const ui::ServerPhase phase = state().server.phase;
      return phase == ui::ServerPhase::kOn || phase == ui::ServerPhase::kOff;
    }));
  };
  const auto leave = [this] {
    apply(act::ShowServer{false});
    apply(act::SwitchServer{false});
    draw_frames(2);
    EXPECT_TRUE(loop_until([this] { return state().server.phase == ui::ServerPhase::kOff; }));
  };
  sweep({
      {"requests", [] {}},
      {"a request", choose, applied(act::ChooseRequest{0})},
      {"a request that is gone", applied(act::ChooseRequest{999'999}), applied(act::ChooseRequest{0})},
      {"server, off", applied(act::ShowServer{true}), applied(act::ShowServer{false})},
      {"server, on", switch_on, leave},
  });
}

std::string name_of(const ::testing::TestParamInfo<Sweep>& sweep) {
  constexpr const char* kNames[] = {"Layout", "Contrast", "Keyboard"};
  return kNames[static_cast<std::size_t>(sweep.param)];
}
const std::vector<Sweep> kSweeps = {Sweep::kLayout, Sweep::kContrast, Sweep::kKeyboard};
INSTANTIATE_TEST_SUITE_P(Every, WindowSweep, ::testing::ValuesIn(kSweeps), name_of);
const std::vector<Sweep> kLongSweeps = test::is_full_sweep() ? kSweeps : std::vector<Sweep>();
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LongWindowSweep);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MessageSweep);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DownloadSweep);
INSTANTIATE_TEST_SUITE_P(Every, DownloadSweep, ::testing::ValuesIn(kLongSweeps), name_of);
INSTANTIATE_TEST_SUITE_P(Every, LongWindowSweep, ::testing::ValuesIn(kLongSweeps), name_of);
INSTANTIATE_TEST_SUITE_P(Every, MessageSweep, ::testing::ValuesIn(kLongSweeps), name_of);

}  // namespace
}  // namespace octavo::testing
