// Model files that fail to load while chats generate, on the real engine: the chats go on, and say the same.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "engine/model_preview.h"
#include "tests/engine/default_model.h"
#include "tests/support/gguf_writer.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
namespace fs = std::filesystem;

constexpr const char* kQuestions[] = {"Tell me about the sea.", "Tell me about mountains.",
                                      "Tell me about old maps."};

class ModelFiles : public WindowTest {
 protected:
  void open_default(std::int32_t max_tokens) {
    OCTAVO_NEEDS_DEFAULT_MODEL();
    app::Settings settings = test_settings();
    settings.sampling.temperature = 0;
    settings.sampling.max_tokens = max_tokens;
    settings.sampling.ignore_eos = true;
    open_with(Engine::create, model::default_model_path().string(), settings);
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  std::string write_tiny() {
    test::TinyLlamaOptions options;
    options.context_length = 4096;
    const fs::path path = folder_ / "tiny.gguf";
    test::make_tiny_llama(5, options).write(path);
    return path.string();
  }
  void perform() {
    application_->update();
    draw_frames(1);
  }
  // What the picker shows is good; what then lies there is what `spoil` made of it.
  void load_after(const std::function<void(const std::string& path)>& spoil) {
    const std::string path = write_tiny();
    application_->controller().apply(act::OpenModelFile{path});
    perform();
    ASSERT_TRUE(loop_until([this] { return !state().picker.inside.reading && !state().picker.scanning; }));
    ASSERT_EQ(state().picker.inside.memory.fit, ui::ModelFit::kFits) << state().picker.inside.problem;
    spoil(path);
    application_->controller().apply(act::LoadChosenModel{});
    perform();
    ASSERT_TRUE(loop_until([this] { return !state().picker.loading; }));
  }
  void ask_all() {
    for (const char* question : kQuestions) {
      application_->controller().apply(act::NewChat{});
      application_->controller().apply(act::SendMessage{chat().id, question});
    }
    perform();
  }
  bool all_generating() const {
    return std::all_of(state().chats.begin(), state().chats.end(),
                       [](const ui::ChatState& each) { return each.activity == ui::Activity::kGenerating; });
  }
  bool all_idle() const {
    return std::all_of(state().chats.begin(), state().chats.end(),
                       [](const ui::ChatState& each) { return each.activity == ui::Activity::kIdle; });
  }
  std::map<std::string, std::string> answers() const {
    std::map<std::string, std::string> result;
    for (const ui::ChatState& each : state().chats) {
      if (each.messages.size() >= 2) result[each.messages[0].text] = each.messages[1].text;
    }
    return result;
  }
};

TEST_F(ModelFiles, ThatFailToLoadWhileChatsGenerateChangeNoAnswer) {
  if (IsSkipped()) return;
  open_default(/*max_tokens=*/256);
  if (IsSkipped()) return;
  ask_all();
  ASSERT_TRUE(loop_until([this] { return all_idle(); }));
  const auto expected = answers();
  ASSERT_EQ(expected.size(), 3u);
  application_.reset();

  open_default(256);
  ask_all();
  ASSERT_TRUE(loop_until([this] { return all_generating(); }));
  const std::vector<std::pair<const char*, std::function<void(const std::string&)>>> spoilers = {
      {"gone", [](const std::string& path) { fs::remove(path); }},
      {"empty", [](const std::string& path) { fs::resize_file(path, 0); }},
      {"header cut", [](const std::string& path) { fs::resize_file(path, 4'000); }},
      {"tensors cut", [](const std::string& path) { fs::resize_file(path, fs::file_size(path) - 40'000); }},
      {"no model", [](const std::string& path) { std::ofstream(path, std::ios::trunc) << "hello"; }},
      {"a folder",
       [](const std::string& path) {
         fs::remove(path);
         fs::create_directory(path);
       }},
  };
  for (const auto& [what, spoil] : spoilers) {
    fs::remove_all(folder_ / "tiny.gguf");
    application_->controller().apply(act::DismissBanner{});
    load_after(spoil);
    ASSERT_TRUE(state().banner) << what;
    EXPECT_EQ(state().banner->kind, ui::BannerKind::kError) << what;
    EXPECT_NE(state().banner->text.find("tiny"), std::string::npos) << what << ": " << state().banner->text;
    EXPECT_EQ(state().banner->text.find('\n'), std::string::npos) << what;
    EXPECT_EQ(state().model.phase, ui::ModelPhase::kReady) << what;
  }
  EXPECT_FALSE(all_idle()) << "the answers should have outlasted the loads";
  ASSERT_TRUE(loop_until([this] { return all_idle(); }));
  EXPECT_EQ(answers(), expected);
}

TEST_F(ModelFiles, OfAnotherVocabularyGoOnWithChatsThatTheFirstModelBegan) {
  if (IsSkipped()) return;
  open_default(/*max_tokens=*/48);
  if (IsSkipped()) return;
  application_->controller().apply(act::SendMessage{chat().id, "What is the capital of Japan?"});
  perform();
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 2 && all_idle(); }));
  const std::string first_answer = chat().messages[1].text;
  ASSERT_FALSE(application_->controller().chat(chat().id)->messages()[1].token_ids.empty());
  load_after([](const std::string&) {});
  ASSERT_TRUE(loop_until([this] { return state().model.name == "tiny"; }));
  application_->controller().apply(act::SendMessage{chat().id, "And of Spain?"});
  perform();
  ASSERT_TRUE(loop_until([this] { return chat().messages.size() == 4 && !ui::is_busy(chat()); }));
  EXPECT_EQ(chat().messages[3].error, "") << "ids of the first model mean nothing to the second";
  EXPECT_EQ(chat().messages[1].text, first_answer);
  EXPECT_EQ(chat().messages[3].model, "tiny");
  const ui::MessageState question = chat().messages[2];
  application_->controller().apply(act::OpenComparison{chat().id, question.id});
  application_->controller().apply(act::RunComparison{});
  perform();
  ASSERT_TRUE(loop_until([this] { return !state().comparison.running; }));
  for (const ui::ComparedColumn& column : state().comparison.columns) EXPECT_EQ(column.error, "");
  EXPECT_FALSE(state().comparison.columns.empty());
  // As if the chat had never had the first model's ids.
  const auto preview = ModelPreview::open(folder_ / "tiny.gguf");
  ASSERT_TRUE(preview);
  const std::vector<ChatMessage> messages = {{Role::kUser, "What is the capital of Japan?"},
                                             {Role::kAssistant, first_answer},
                                             {Role::kUser, "And of Spain?"}};
  const auto prompt = preview->parts().tokenizer->encode_chat(messages, 0);
  ASSERT_TRUE(prompt);
  EXPECT_EQ(chat().messages[3].figures.num_prompt_tokens, static_cast<std::int32_t>(prompt->size()));
}

}  // namespace
}  // namespace octavo::testing
