// A remote model in the window, as a person uses it: a scripted server that is asked for its models, a chat
// with one of them, and the server's load where our own pool would be drawn.

#include <imgui.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>

#include "app/remote/remote_engine.h"
#include "tests/support/openai_server.h"
#include "tests/ui/drawn_text.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
using nlohmann::json;

class RemoteModelWindow : public WindowTest {
 protected:
  void open_beside_server() {
    const auto load = [this](const EngineOptions& options,
                             LoadProgress progress) -> Result<std::unique_ptr<Engine>> {
      if (app::is_remote_model(options.model)) {
        OCTAVO_TRY(app::RemoteModelName name, app::parse_remote_model(options.model));
        app::RemoteEngineOptions remote;
        remote.name = std::move(name);
        return app::connect_remote_engine(remote, progress);
      }
      progress(1.0);
      auto engine = std::make_unique<FakeEngine>();
      engine_ = engine.get();
      return std::unique_ptr<Engine>(std::move(engine));
    };
    open_with(load, "/models/local.gguf", test_settings());
  }

  void answer(const http::Request& request, const http::Reply& reply) {
    if (request.path == "/v1/models") return OpenAiServer::send_models(reply, "far-away");
    if (request.path == "/metrics")
      return reply.send(
          {.status = 200, .body = "vllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.25\n"});
    if (fails_) return OpenAiServer::send_json(reply, R"({"error":{"message":"too many tokens"}})", 400);
    const std::string question = json::parse(request.body)["messages"].back()["content"];
    const auto piece = [](const std::string& text, const char* end) {
      json choice = {{"index", 0}, {"delta", {{"content", text}}}};
      if (end != nullptr) choice["finish_reason"] = end;
      return json{{"choices", {choice}}}.dump();
    };
    OpenAiServer::stream(reply, {piece("You asked: ", nullptr), piece(question, "stop"), "[DONE]"});
  }

  std::atomic<bool> fails_ = false;
  OpenAiServer server_{
      [this](const http::Request& request, const http::Reply& reply) { answer(request, reply); }};
};

TEST_F(RemoteModelWindow, IsFoundByItsAddressAnswersAndShowsItsServersLoad) {
  if (IsSkipped()) return;
  open_beside_server();
  if (IsSkipped()) return;
  play([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_M);
    context->Yield(3);
    context->SetRef("model_picker");
    context->ItemClick("**/remote_model");
    context->Yield(3);
    context->KeyCharsReplace(server_.root().c_str());
    context->SetRef("remote_models");
    context->ItemClick("**/ask_for_models");
    for (int i = 0; i < 2'000 && state().picker.remote.models.empty(); ++i) context->Yield();
  });
  ASSERT_FALSE(state().picker.remote.models.empty()) << state().picker.remote.problem;
  write_screenshot("remote-models");
  play([](ImGuiTestContext* context) {
    context->SetRef("remote_models");
    context->ItemClick("**/use_model");
    context->Yield(3);
  });
  ASSERT_TRUE(loop_until([this] { return state().model.name == "far-away"; }))
      << state().picker.remote.problem;
  EXPECT_TRUE(state().model.is_remote);
  EXPECT_FALSE(state().picker.open);
  draw_frames(2);
  EXPECT_TRUE(is_said("What you write is sent there."));
  EXPECT_FALSE(is_said("Nothing leaves it."));

  application_->controller().apply(act::SendMessage{chat().id, "hello there"});
  application_->update();
  draw_frames(2);
  ASSERT_TRUE(loop_until([this] {
    return chat().messages.size() == 2 && chat().activity == ui::Activity::kIdle &&
           !chat().messages.back().text.empty();
  }));
  EXPECT_EQ(chat().messages.back().text, "You asked: hello there");
  EXPECT_EQ(chat().messages.back().model, "far-away");
  EXPECT_FALSE(chat().messages.back().figures.num_prompt_tokens) << "the server did not tell";
  write_screenshot("remote-chat");

  application_->controller().apply(act::ShowWorkspace{ui::Workspace::kMemory});
  draw_frames(2);
  ASSERT_TRUE(loop_until([this] { return !state().remote_load.points.empty(); }));
  EXPECT_EQ(state().remote_load.points.back().num_running, 2.0);
  EXPECT_FALSE(state().remote_load.points.back().num_waiting);
  draw_frames(2);
  write_screenshot("remote-memory");
}

TEST_F(RemoteModelWindow, ARefusalIsTheAnswersErrorAndTheChatGoesOn) {
  if (IsSkipped()) return;
  open_beside_server();
  if (IsSkipped()) return;
  application_->controller().apply(act::UseRemoteModel{server_.address(), "far-away"});
  application_->update();
  draw_frames(2);
  ASSERT_TRUE(loop_until([this] { return state().model.is_remote; }));
  fails_ = true;
  application_->controller().apply(act::SendMessage{chat().id, "first"});
  application_->update();
  draw_frames(2);
  ASSERT_TRUE(
      loop_until([this] { return chat().messages.size() == 2 && !chat().messages.back().error.empty(); }));
  EXPECT_NE(chat().messages.back().error.find("too many tokens"), std::string::npos);
  fails_ = false;
  application_->controller().apply(act::SendMessage{chat().id, "second"});
  application_->update();
  draw_frames(2);
  EXPECT_TRUE(loop_until([this] { return chat().messages.back().text == "You asked: second"; }));
}

TEST_F(RemoteModelWindow, WhatIsNoAddressIsSaidInTheDialog) {
  if (IsSkipped()) return;
  open_beside_server();
  if (IsSkipped()) return;
  application_->controller().apply(act::OpenModelPicker{});
  application_->controller().apply(act::OpenRemoteDialog{});
  application_->controller().apply(act::AskForRemoteModels{"ftp://nowhere", ""});
  draw_frames(3);
  EXPECT_NE(state().picker.remote.problem, "");
  write_screenshot("remote-problem");
}

}  // namespace
}  // namespace octavo::testing
