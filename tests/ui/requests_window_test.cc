// The server of the window and the list of requests: chats and programs that ask a real engine at once, in a
// real window, over real sockets. Pictures of them.

#include <imgui.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/server/http/server.h"
#include "tests/server/http_client.h"
#include "tests/support/tiny_models.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

// A port that nobody had a moment ago.
int free_port() {
  const auto server = http::Server::listen(
      {.port = 0}, [](const http::Request&) { return std::nullopt; },
      [](const http::Request&, const http::Reply&) {},
      [](int, const std::string&) { return http::Response{}; });
  return server ? (*server)->port() : 0;
}

class RequestsWindow : public WindowTest {
 protected:
  void open_tiny(std::uint32_t context_length = 4'096) {
    if (IsSkipped()) return;
    const auto path = folder_ / "Tiny Model.gguf";
    test::make_tiny_model(test::tiny_model("qwen2"), {.context_length = context_length}).write(path);
    app::Settings settings = large_settings();
    settings.sampling.max_tokens = 24;
    settings.sampling.ignore_eos = true;
    settings.ui.server.port = port_ = free_port();
    open_with(Engine::create, path.string(), settings);
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  void apply(const ui::Action& action) { application_->controller().apply(action); }
  // As a person does; effects are performed with the frame.
  void press(const std::string& control) {
    play([&](ImGuiTestContext* context) { context->ItemClick(("**/" + control).c_str()); });
  }
  void switch_on() {
    apply(act::ShowServer{true});
    draw_frames(2);
    press("server_on");
    ASSERT_TRUE(loop_until([this] { return state().server.phase == ui::ServerPhase::kOn; }))
        << state().server.problem;
    key_ = state().server.new_key;
    apply(act::ShowServer{false});
    draw_frames(2);
  }
  const ui::RequestsState& requests() const { return state().memory_workspace.requests; }
  void show_requests() {
    apply(act::ShowWorkspace{ui::Workspace::kMemory});
    apply(act::ShowMemoryPage{ui::MemoryPage::kRequests});
  }

  std::string request_text(const std::string& path, const std::string& body, const std::string& agent) const {
    const std::string method = body.empty() ? "GET " : "POST ";
    std::string text = method + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
                       "\r\nUser-Agent: " + agent + "\r\nAuthorization: Bearer " + key_ + "\r\n";
    if (!body.empty())
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }
  // Asked on a thread, while the window goes on.
  std::string ask(const std::string& path, const std::string& body, const std::string& agent = "agent/1") {
    std::string answer;
    std::atomic<bool> is_over = false;
    std::thread client([&] {
      http::HttpClient socket;
      if (socket.connect(static_cast<std::uint16_t>(port_)))
        answer = socket.ask(request_text(path, body, agent));
      is_over = true;
    });
    EXPECT_TRUE(loop_until([&] { return is_over.load(); }));
    client.join();
    return answer;
  }
  static std::string chat_body(const std::string& system, const std::string& question, int max_tokens = 8) {
    return nlohmann::json{
        {"messages", {{{"role", "system"}, {"content", system}}, {{"role", "user"}, {"content", question}}}},
        {"max_tokens", max_tokens},
        {"ignore_eos", true},
        {"temperature", 0}}
        .dump();
  }
  void ask_in_chat(const std::string& question) {
    apply(act::SendMessage{chat().id, question});
    ASSERT_TRUE(loop_until([this] {
      return chat().activity == ui::Activity::kIdle && !chat().messages.empty() &&
             !chat().messages.back().streaming;
    }));
  }

  int port_ = 0;
  std::string key_;
};

TEST_F(RequestsWindow, ProgramsAndChatsAskOneEngineAndStandInOneList) {
  open_tiny();
  if (IsSkipped()) return;
  switch_on();
  apply(act::SendMessage{chat().id, "abc abc abc abc"});
  const std::string answer = ask("/v1/chat/completions", chat_body("a b c", "abc abc"));
  EXPECT_NE(answer.find("200 OK"), std::string::npos) << answer;
  EXPECT_NE(answer.find("\"completion_tokens\":8"), std::string::npos) << answer;
  ASSERT_TRUE(loop_until([this] { return chat().activity == ui::Activity::kIdle; }));
  EXPECT_GT(chat().messages.back().text.size(), 0u) << "the chat has its own answer";
  show_requests();
  ASSERT_TRUE(loop_until([this] {
    const auto& rows = *requests().rows;
    return rows.size() == 2 && std::all_of(rows.begin(), rows.end(), [](const ui::ShownRequest& row) {
             return row.phase == ui::RequestPhase::kFinished && !row.cause.empty();
           });
  }));
  const auto& rows = *requests().rows;
  const auto client =
      std::find_if(rows.begin(), rows.end(), [](const auto& row) { return !row.is_of_window; });
  ASSERT_NE(client, rows.end());
  EXPECT_EQ(client->client, "agent/1");
  EXPECT_EQ(client->route, "/v1/chat/completions");
  EXPECT_EQ(client->num_generated, 8);
  ASSERT_TRUE(client->account);
  EXPECT_EQ(ui::num_reused(*client->account) + client->account->num_computed, client->num_prompt);
  const auto own = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.is_of_window; });
  EXPECT_EQ(own->client, chat().title);
  EXPECT_EQ(own->route, "chat");
  EXPECT_EQ(own->chat_id, chat().id);
}

TEST_F(RequestsWindow, AClientDoesNotReadWhatThePersonWrote) {
  open_tiny();
  if (IsSkipped()) return;
  switch_on();
  ask_in_chat("a secret of mine");
  ask("/v1/chat/completions", chat_body("a b c", "abc abc"));
  const std::string list = ask("/octavo/requests", "");
  EXPECT_NE(list.find("\"route\":\"window\""), std::string::npos) << list;
  EXPECT_NE(list.find("agent/1"), std::string::npos);
  EXPECT_EQ(list.find("secret"), std::string::npos) << list;
  EXPECT_EQ(list.find(chat().title), std::string::npos) << list;
}

TEST_F(RequestsWindow, WhatAClientAskedIsNoPrefixOfAChat) {
  open_tiny();
  if (IsSkipped()) return;
  switch_on();
  const std::string text(200, 'a');
  apply(act::ChangeSystemPrompt{chat().id, text});
  ask_in_chat("abc");
  const std::string first = ask("/v1/chat/completions", chat_body(text, "abc"));
  EXPECT_NE(first.find("\"prompt_tokens_details\":null"), std::string::npos)
      << "how much is reused would tell a client what the person wrote: " << first;
  const std::string second = ask("/v1/chat/completions", chat_body(text, "abc"));
  EXPECT_EQ(second.find("\"cached_tokens\":0"), std::string::npos)
      << "clients share with clients: " << second;
}

TEST_F(RequestsWindow, AnotherModelAnswersProgramsFromThenOn) {
  open_tiny();
  if (IsSkipped()) return;
  switch_on();
  EXPECT_NE(ask("/v1/models", "").find("Tiny Model"), std::string::npos);
  const auto second = folder_ / "Another.gguf";
  test::make_tiny_model(test::tiny_model("qwen3"), {.context_length = 512}).write(second);
  apply(act::LoadModelFile{second.string()});
  draw_frames(1);
  ASSERT_TRUE(loop_until([this] { return state().model.path.ends_with("Another.gguf"); }));
  EXPECT_NE(ask("/v1/models", "").find("Another"), std::string::npos);
  EXPECT_NE(ask("/v1/chat/completions", chat_body("a", "abc")).find("200 OK"), std::string::npos);
}

TEST_F(RequestsWindow, IsSwitchedOffAndOnAndSaysWhoIsAnswered) {
  open_tiny();
  if (IsSkipped()) return;
  EXPECT_FALSE(is_said("Server on")) << "off by default, and nothing is said of it";
  switch_on();
  draw_frames(2);
  EXPECT_TRUE(is_said("Server on"));
  std::string answer;
  std::atomic<bool> is_over = false;
  std::thread client([&] {
    http::HttpClient socket;
    socket.connect(static_cast<std::uint16_t>(port_));
    answer = socket.ask(request_text("/v1/chat/completions", chat_body("a", "abc abc", 3'000), "slow/1"));
    is_over = true;
  });
  EXPECT_TRUE(loop_until([this] { return state().server.num_answering == 1; }));
  draw_frames(1);
  EXPECT_TRUE(is_said("1 answering"));
  apply(act::SwitchServer{false});
  draw_frames(1);
  EXPECT_TRUE(loop_until([&] { return is_over.load(); })) << "the answer ends where the server does";
  client.join();
  EXPECT_NE(answer.find("200 OK"), std::string::npos) << answer;
  ASSERT_TRUE(loop_until([this] { return state().server.phase == ui::ServerPhase::kOff; }));
  http::HttpClient late;
  EXPECT_FALSE(late.connect(static_cast<std::uint16_t>(port_)));
  const std::string key = key_;
  switch_on();
  EXPECT_EQ(key_, "") << "the key was shown once";
  key_ = key;
  EXPECT_NE(ask("/v1/models", "").find("200 OK"), std::string::npos) << "and still counts";
}

TEST_F(RequestsWindow, ATakenPortIsSaidAndTheNextOneWorks) {
  open_tiny();
  if (IsSkipped()) return;
  const auto taken = http::Server::listen(
      {.port = static_cast<std::uint16_t>(port_)}, [](const http::Request&) { return std::nullopt; },
      [](const http::Request&, const http::Reply&) {},
      [](int, const std::string&) { return http::Response{}; });
  ASSERT_TRUE(taken);
  apply(act::ShowServer{true});
  draw_frames(2);
  press("server_on");
  ASSERT_TRUE(loop_until([this] { return !state().server.problem.empty(); }));
  EXPECT_NE(state().server.problem.find("another program has this port"), std::string::npos);
  EXPECT_EQ(state().server.phase, ui::ServerPhase::kOff);
  port_ = free_port();
  ui::ServerSettings settings = state().settings.server;
  settings.port = port_;
  apply(act::ShowServer{false});  // the open panel has its own text of the port
  draw_frames(2);
  apply(act::ChangeServer{settings});
  apply(act::ShowServer{true});
  draw_frames(2);
  press("server_on");
  EXPECT_TRUE(loop_until([this] { return state().server.phase == ui::ServerPhase::kOn; }));
  EXPECT_EQ(app::load_settings(folder_ / "settings.json").settings.ui.server.port, port_);
}

// ---- the list under a person's hands

TEST_F(RequestsWindow, ThePersonSortsFiltersAndOpensARequest) {
  open_tiny();
  if (IsSkipped()) return;
  switch_on();
  ask_in_chat("abc abc abc abc abc abc abc abc");
  ask("/v1/chat/completions", chat_body(std::string(300, 'a'), "abc"), "agent/1 (linux)");
  ask("/v1/chat/completions", chat_body(std::string(30, 'b') + std::string(270, 'a'), "abc"),
      "agent/1 (linux)");
  ask("/v1/chat/completions", chat_body("short", "abc"), "notebook/2");
  show_requests();
  ASSERT_TRUE(
      loop_until([this] { return requests().rows->size() == 4 && !requests().rows->front().cause.empty(); }));
  draw_frames(3);
  const ui::RequestsView& view = application_->views().memory().requests();
  const auto numbers = [&] {
    draw_frames(1);
    return view.shown_numbers(requests());
  };
  const std::vector<std::uint64_t> newest_first = numbers();
  EXPECT_TRUE(std::is_sorted(newest_first.rbegin(), newest_first.rend()));
  press("tokens");
  std::vector<std::int64_t> sizes;
  for (const std::uint64_t number : numbers())
    for (const ui::ShownRequest& row : *requests().rows)
      if (row.number == number) sizes.push_back(row.num_prompt);
  EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
  press("tokens");
  EXPECT_EQ(numbers().front(), newest_first.front()) << "the short one";
  press("filter_client");
  press("filter_client");
  EXPECT_LT(numbers().size(), 4u);
  press("filter_none");
  EXPECT_EQ(numbers().size(), 4u);
  press("number");
  const std::uint64_t third = newest_first[1];  // the second of agent/1
  play([&](ImGuiTestContext* context) {
    context->ItemClick(("**/$$" + std::to_string(third) + "/request_row").c_str());
  });
  ASSERT_TRUE(loop_until([this] { return requests().detail != nullptr; }));
  draw_frames(3);
  const ui::RequestDetail& detail = *requests().detail;
  EXPECT_EQ(detail.number, third);
  EXPECT_NE(detail.request.nearest, 0u);
  EXPECT_GT(detail.request.lost_tokens, 200);
  const std::string words = words_shown();
  for (const char* const said : {"computed again", "earlier", "This prompt"})
    EXPECT_NE(words.find(said), std::string::npos) << said << "\n" << words;
  play([](ImGuiTestContext* context) { context->KeyPress(ImGuiKey_Escape); });
  EXPECT_EQ(requests().chosen, 0u);
}

TEST_F(RequestsWindow, PointingAtARequestThatRunsLightsItsBlocks) {
  open_tiny(30'000);
  if (IsSkipped()) return;
  show_requests();
  apply(act::ChangeSampling{chat().id, [this] {
                              SamplingParams sampling = chat().sampling;
                              sampling.max_tokens = 29'000;
                              sampling.ignore_eos = true;  // it is met while it runs
                              return sampling;
                            }()});
  apply(act::SendMessage{chat().id, "abc abc"});
  ASSERT_TRUE(loop_until([this] {
    return !requests().rows->empty() && requests().rows->front().phase == ui::RequestPhase::kRunning &&
           state().memory_workspace.snapshot != nullptr &&
           !state().memory_workspace.snapshot->sequences.empty();
  }));
  play([this](ImGuiTestContext* context) {
    context->MouseMove(("**/$$" + std::to_string(requests().rows->front().number) + "/request_row").c_str());
    context->Yield(3);
  });
  EXPECT_FALSE(state().memory_workspace.hover.blocks.empty());
  apply(act::StopAnswer{chat().id});
}

// ---- the agent's case

TEST_F(RequestsWindow, TwoPromptsOf8000TokensThatDifferInOneLineSayWhichTokenWhatItCostAndWhatHelps) {
  open_tiny(9'000);
  if (IsSkipped()) return;
  switch_on();
  const auto prompt = [](const std::string& time) {
    std::string text = "line one\nline two\nnow: 2026-11-27 " + time + "\n";
    while (text.size() < 7'900) text += "abc a b c ";
    return text;
  };
  ask("/v1/chat/completions", chat_body(prompt("19:02:07"), "abc"), "claude-cli/2.1");
  ask("/v1/chat/completions", chat_body(prompt("19:03:41"), "abc"), "claude-cli/2.1");
  show_requests();
  ASSERT_TRUE(
      loop_until([this] { return requests().rows->size() == 2 && !requests().rows->front().cause.empty(); }));
  const ui::ShownRequest row = requests().rows->front();
  EXPECT_EQ(row.cause, "differs");
  EXPECT_NE(row.advice.find("date or a time"), std::string::npos) << row.advice;
  EXPECT_GT(row.num_prompt, 2'000);
  EXPECT_GT(row.lost_tokens, row.num_prompt * 9 / 10);
  ASSERT_TRUE(row.lost_seconds);
  EXPECT_GT(*row.lost_seconds, 0);
  EXPECT_LE(*row.lost_seconds * 1'000, row.prompt_ms);
  apply(act::ChooseRequest{row.number});
  ASSERT_TRUE(loop_until([this] { return requests().detail != nullptr; }));
  const ui::RequestDetail& detail = *requests().detail;
  EXPECT_NE((detail.mine_before + detail.mine_token + detail.mine_after).find("19:03:41"), std::string::npos);
  EXPECT_NE((detail.theirs_before + detail.theirs_token + detail.theirs_after).find("19:02:07"),
            std::string::npos);
  in_every_look([this](const std::string& look) { write_screenshot("requests-difference-" + look); });
}

TEST_F(RequestsWindow, Pictures) {
  open_tiny();
  if (IsSkipped()) return;
  switch_on();
  for (const char* const question : {"abc abc abc abc", "a b a b a b"}) {
    apply(act::NewChat{});
    ask_in_chat(question);
  }
  ask("/v1/chat/completions", chat_body(std::string(300, 'a'), "abc"), "opencode/1.2");
  ask("/v1/chat/completions", chat_body(std::string(300, 'a'), "abc abc"), "opencode/1.2");
  ask("/v1/chat/completions", chat_body("now: 19:02 " + std::string(300, 'a'), "abc"),
      "claude-cli/2.1 (external)");
  ask("/v1/chat/completions", chat_body("now: 19:03 " + std::string(300, 'a'), "abc"),
      "claude-cli/2.1 (external)");
  ask("/v1/nothing", "");
  show_requests();
  ASSERT_TRUE(
      loop_until([this] { return requests().rows->size() == 6 && !requests().rows->front().cause.empty(); }));
  in_every_look([this](const std::string& look) { write_screenshot("requests-" + look); });
  apply(act::ShowServer{true});
  in_every_look([this](const std::string& look) { write_screenshot("server-" + look); });
}

}  // namespace
}  // namespace octavo::testing
