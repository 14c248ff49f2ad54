// Two models over one text: what is chosen and asked becomes jobs, what the worker reports becomes state, and
// the worker compares real, tiny models.

#include "app/window/two_models/two_models.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"
#include "ui/views/two_models/two_models_colours.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

class FewChats final : public ComparedChats {
 public:
  const Chat* chat(ChatId chat_id) const override {
    const auto found = chats.find(chat_id.value);
    return found == chats.end() ? nullptr : &found->second;
  }
  ChatId active_chat() const override { return {1}; }
  void edit(ChatId chat_id, const std::function<void(Chat&)>& change) override {
    change(chats.at(chat_id.value));
  }
  ChatId begin() override {
    const std::uint64_t id = chats.size() + 1;
    chats[id] = {};
    return {id};
  }
  void show(ChatId) override {}
  void continue_answer(ChatId, MessageId) override {}

  std::map<std::uint64_t, Chat> chats = {{1, Chat()}};
};

class TwoModelsTest : public ::testing::Test {
 protected:
  TwoModelsTest() : two_models_(chats_, state_) {}

  template <class Job>
  Job only_job() {
    TwoModelsEffects effects = two_models_.take_effects();
    EXPECT_EQ(effects.jobs.size(), 1u);
    return std::get<Job>(std::move(effects.jobs.at(0)));
  }
  void choose_models() {
    two_models_.set_first("/models/a.gguf");
    two_models_.apply(act::TakeSecondModel{"/models/Second-1B.Q2_K.gguf"});
    const auto look = only_job<LookAtTwoModels>();
    EXPECT_EQ(look.options.a.model, "/models/a.gguf");
    EXPECT_EQ(look.options.b.model, "/models/Second-1B.Q2_K.gguf");
    two_models_.take(TwoModelsSeen{
        look.serial,
        comparison::ComparisonNeeds{.bytes_a = 3 << 20, .bytes_b = 2 << 20, .free_bytes = 9 << 20}});
  }
  // "ab", "c" and "d", of which "c" and "d" are scored.
  static ui::TwoModelsResult small_result() {
    ui::TwoModelsResult result;
    result.text.text = "abcd";
    result.text.tokens = {{.token_id = 1, .begin = 0, .end = 2},
                          {.token_id = 2, .begin = 2, .end = 3},
                          {.token_id = 3, .begin = 3, .end = 4}};
    result.first_scored = 1;
    result.figures.resize(2);
    return result;
  }
  ui::TwoModelsState& shown() { return state_.two_models; }

  FewChats chats_;
  ui::UiState state_;
  TwoModels two_models_;
};

TEST_F(TwoModelsTest, SayWhatTheyNeedBeforeAnythingIsLoaded) {
  two_models_.set_first("/models/a.gguf");
  EXPECT_TRUE(two_models_.take_effects().jobs.empty()) << "the second one is not chosen";
  choose_models();
  EXPECT_EQ(shown().second_name, "Second 1B");
  EXPECT_TRUE(shown().can_compare);
  EXPECT_NE(shown().needs.find("3 MiB for A and 2 MiB for B"), std::string::npos) << shown().needs;
  two_models_.apply(act::ChangeWindowOfText{1024});
  EXPECT_FALSE(shown().can_compare) << "until it is known";
  const auto look = only_job<LookAtTwoModels>();
  EXPECT_EQ(look.options.context, 1024);
  two_models_.take(TwoModelsSeen{look.serial - 1, comparison::ComparisonNeeds{}});
  EXPECT_FALSE(shown().can_compare) << "of an older question";
  two_models_.take(TwoModelsSeen{look.serial, Error{ErrorCode::kUnsupported, "different vocabularies"}});
  EXPECT_FALSE(shown().can_compare);
  EXPECT_EQ(shown().problem, "different vocabularies");
}

TEST_F(TwoModelsTest, CompareATextAndCanBeCancelled) {
  two_models_.apply(act::CompareTwoModels{"a text"});
  EXPECT_TRUE(two_models_.take_effects().jobs.empty()) << "no second model";
  choose_models();
  two_models_.apply(act::CompareTwoModels{"a text"});
  const auto job = only_job<CompareText>();
  EXPECT_EQ(std::get<std::string>(job.text), "a text");
  EXPECT_TRUE(two_models_.running());
  EXPECT_TRUE(two_models_.show_progress({ui::TwoModelsPhase::kComparing, 0.5}));
  EXPECT_FALSE(two_models_.show_progress({ui::TwoModelsPhase::kComparing, 0.5}));
  EXPECT_EQ(shown().fraction, 0.5);
  two_models_.apply(act::CompareTwoModels{"another"});
  EXPECT_TRUE(two_models_.take_effects().jobs.empty()) << "one at a time";
  two_models_.apply(act::CancelTwoModels{});
  EXPECT_TRUE(two_models_.take_effects().cancel);
  two_models_.take(TextCompared{job.serial, Error{ErrorCode::kCancelled, "cancelled"}});
  EXPECT_FALSE(two_models_.running());
  EXPECT_EQ(shown().problem, "") << "a person knows that";
  EXPECT_FALSE(shown().result);
}

TEST_F(TwoModelsTest, ForkATextIntoAChatThatCanGoOn) {
  choose_models();
  two_models_.apply(act::CompareTwoModels{"abcd"});
  two_models_.take(TextCompared{only_job<CompareText>().serial, small_result()});
  two_models_.apply(act::ForkText{2, "X"});
  ASSERT_EQ(chats_.chats.size(), 2u);
  const Chat& fork = chats_.chats.at(2);
  const auto path = fork.active_path();
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(fork.find(path[1])->content, "abcX");
  EXPECT_EQ(fork.find(path[1])->finish_reason, FinishReason::kLength);
  two_models_.apply(act::ForkText{3, "X"});
  EXPECT_EQ(chats_.chats.size(), 2u) << "there is no such token";
}

TEST_F(TwoModelsTest, TakeTheAnswerOfTheChatWithWhatCameBeforeIt) {
  choose_models();
  two_models_.apply(act::TakeAnswerAsText{});
  EXPECT_NE(shown().problem, "") << "there is none";
  Chat& chat = chats_.chats.at(1);
  chat.system_prompt = "Be brief.";
  const MessageId question = chat.append(kRootMessage, Role::kUser, "Who?");
  const MessageId answer = chat.append(question, Role::kAssistant, "abcd");
  chat.append(answer, Role::kUser, "And then?");
  two_models_.apply(act::TakeAnswerAsText{});
  EXPECT_EQ(shown().text, "abcd");
  EXPECT_EQ(shown().problem, "");
  two_models_.apply(act::CompareTwoModels{"abcd"});
  const auto job = only_job<CompareText>();
  const auto messages = std::get<std::vector<ChatMessage>>(job.text);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].content, "Be brief.");
  EXPECT_EQ(messages[2].content, "abcd");
  ui::TwoModelsResult result = small_result();
  result.fork_begin = 1;
  two_models_.take(TextCompared{job.serial, result});
  two_models_.apply(act::ForkText{0, "X"});
  EXPECT_EQ(chats_.chats.size(), 1u) << "the prompt is none of the answer";
  two_models_.apply(act::ForkText{2, "X"});
  const Chat& fork = chats_.chats.at(2);
  EXPECT_EQ(fork.system_prompt, "Be brief.");
  EXPECT_EQ(fork.find(fork.active_leaf())->content, "cX");
  // A text that was changed is no answer any more.
  two_models_.apply(act::CompareTwoModels{"abcde"});
  EXPECT_EQ(std::get<std::string>(only_job<CompareText>().text), "abcde");
}

TEST(TwoModelsColours, SayMoreWhereBDepartsMore) {
  using ui::TwoModelsColour;
  const auto level = [](double divergence, double of_a, double of_b, std::int32_t rank,
                        TwoModelsColour colour) {
    return ui::departure({.kl_divergence = divergence,
                          .a = {.logprob = std::log(of_a), .rank = 1},
                          .b = {.logprob = std::log(of_b), .rank = rank}},
                         colour);
  };
  EXPECT_FALSE(level(1e-5, 0.5, 0.5, 1, TwoModelsColour::kDivergence));
  EXPECT_NEAR(*level(0.0316227766, 0.5, 0.5, 1, TwoModelsColour::kDivergence), 0.5f, 1e-5f);
  EXPECT_EQ(*level(4.0, 0.5, 0.5, 1, TwoModelsColour::kDivergence), 1.0f);
  EXPECT_FALSE(level(0.1, 0.5, 0.5, 1, TwoModelsColour::kProbability));
  EXPECT_NEAR(*level(0.1, 0.25, 0.5, 1, TwoModelsColour::kProbability), 0.25f, 1e-6f) << "B likes it better";
  EXPECT_NEAR(*level(0.1, 0.75, 0.25, 1, TwoModelsColour::kProbability), 1.0f, 1e-6f);
  EXPECT_EQ(*level(0.1, 0.5, 0.5, 1, TwoModelsColour::kRank), 0.0f);
  EXPECT_EQ(*level(0.1, 0.5, 0.5, 40'000, TwoModelsColour::kRank), 1.0f);
}

// ---- the worker, on tiny models

class TwoModelsWorkerTest : public ::testing::Test {
 protected:
  TwoModelsWorkerTest() {
    test::make_tiny_llama(7, {}).write(folder_ / "a.gguf");
    test::make_tiny_llama(8, {}).write(folder_ / "b.gguf");
  }
  comparison::ComparisonOptions options() const {
    comparison::ComparisonOptions options;
    options.a.model = (folder_ / "a.gguf").string();
    options.b.model = (folder_ / "b.gguf").string();
    options.a.threads = options.b.threads = 1;
    return options;
  }
  TwoModelsReport next_report(TwoModelsWorker& worker) const {
    while (true) {
      auto reports = worker.take_reports();
      if (!reports.empty()) return std::move(reports.front());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const test::TemporaryFolder folder_;
};

TEST_F(TwoModelsWorkerTest, ComparesATextAndShowsItsTokens) {
  TwoModelsWorker worker([] {});
  worker.give(LookAtTwoModels{options(), 4});
  const auto seen = std::get<TwoModelsSeen>(next_report(worker));
  EXPECT_EQ(seen.serial, 4u);
  ASSERT_TRUE(seen.needs) << seen.needs.error().message;
  EXPECT_GT(seen.needs->bytes_b, 0);
  const std::string text = "über the fox\n";
  worker.give(CompareText{options(), text, 1});
  const auto compared = std::get<TextCompared>(next_report(worker));
  ASSERT_TRUE(compared.result) << compared.result.error().message;
  const ui::TwoModelsResult& result = *compared.result;
  EXPECT_EQ(result.text.text, text);
  EXPECT_EQ(result.first_scored, 1u);
  ASSERT_EQ(result.figures.size() + 1, result.text.tokens.size());
  EXPECT_EQ(result.text.tokens.back().end, text.size());
  EXPECT_EQ(result.text.tokens[0].end, 0u) << "half a character belongs to the token that ends it";
  EXPECT_EQ(result.text.tokens[1].end, 2u);
  EXPECT_EQ(result.figures[0].a.best.size(), 5u);
  ASSERT_EQ(result.worst.size(), result.figures.size());
  EXPECT_GE(result.figures[result.worst[0] - 1].kl_divergence,
            result.figures[result.worst[1] - 1].kl_divergence);
  EXPECT_EQ(result.table.front().value, std::to_string(result.figures.size()));
}

TEST_F(TwoModelsWorkerTest, ReadsAnAnswerBehindItsPrompt) {
  TwoModelsWorker worker([] {});
  worker.give(CompareText{
      options(), std::vector<ChatMessage>{{Role::kUser, "Who?", {}}, {Role::kAssistant, "A fox", {}}}, 1});
  const auto compared = std::get<TextCompared>(next_report(worker));
  ASSERT_TRUE(compared.result) << compared.result.error().message;
  const ui::TwoModelsResult& result = *compared.result;
  ASSERT_LT(result.fork_begin, result.text.tokens.size());
  EXPECT_EQ(result.text.text.substr(result.text.tokens[result.fork_begin].begin), "A fox");
  EXPECT_TRUE(result.text.text.starts_with("<|im_start|>user")) << result.text.text;
}

TEST_F(TwoModelsWorkerTest, StopsWhenItIsCancelledAndGoesOnAfterwards) {
  TwoModelsWorker worker([] {});
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "the fox again ";
  worker.give(CompareText{options(), text, 1});
  while (worker.progress().phase != ui::TwoModelsPhase::kComparing)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  worker.cancel();
  const auto cancelled = std::get<TextCompared>(next_report(worker));
  ASSERT_FALSE(cancelled.result);
  EXPECT_EQ(cancelled.result.error().code, ErrorCode::kCancelled);
  worker.give(CompareText{options(), "the fox", 2});
  EXPECT_TRUE(std::get<TextCompared>(next_report(worker)).result);
}

TEST_F(TwoModelsWorkerTest, ReadsTextFiles) {
  std::ofstream(folder_ / "notes.txt") << "some notes";
  TwoModelsWorker worker([] {});
  worker.give(ReadTextFile{(folder_ / "notes.txt").string()});
  const auto read = std::get<TextFileRead>(next_report(worker));
  ASSERT_TRUE(read.text) << read.text.error().message;
  EXPECT_EQ(*read.text, "some notes");
  EXPECT_EQ(read.name, "notes.txt");
  worker.give(ReadTextFile{(folder_ / "nowhere.txt").string()});
  EXPECT_FALSE(std::get<TextFileRead>(next_report(worker)).text);
}

}  // namespace
}  // namespace octavo::app
