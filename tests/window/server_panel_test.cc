// The window's server: what a person settles, the key, the door, and the port.

#include "app/window/server/server_panel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "app/window/server/server_door.h"
#include "app/window/server/server_key.h"
#include "app/window/server/server_runner.h"
#include "tests/server/http_client.h"
#include "tests/server/scripted_engine.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
using octavo::testing::ScriptedEngine;

class ServerPanelTest : public ::testing::Test {
 protected:
  void change(const std::function<void(ui::ServerSettings&)>& change) {
    ui::ServerSettings settings = state_.settings.server;
    change(settings);
    panel_.apply(act::ChangeServer{settings});
  }

  test::TemporaryFolder folder_;
  std::filesystem::path key_path_ = folder_.path() / "deeper" / "server-key";
  ui::UiState state_;
  ui::SettingsState kept_;
  ServerPanel panel_{kept_, state_};
};

TEST_F(ServerPanelTest, IsOffUntilAPersonSwitchesItOnAndThenWantsAKey) {
  panel_.begin(key_path_);
  EXPECT_FALSE(panel_.is_wanted());
  EXPECT_FALSE(panel_.take_effects().start);
  EXPECT_FALSE(state_.server.has_key);
  panel_.apply(act::ShowServer{true});
  panel_.apply(act::SwitchServer{true});
  EXPECT_TRUE(panel_.take_effects().start);
  EXPECT_EQ(state_.server.phase, ui::ServerPhase::kStarting);
  EXPECT_EQ(panel_.port(), 8000);
  EXPECT_TRUE(state_.server.new_key.starts_with("octavo-"));
  EXPECT_EQ(panel_.access().key, state_.server.new_key);
  EXPECT_TRUE(panel_.access().is_loopback);
}

TEST_F(ServerPanelTest, TheKeyIsShownOnceAndKeptForThePersonAlone) {
  panel_.begin(key_path_);
  panel_.apply(act::ShowServer{true});
  panel_.apply(act::SwitchServer{true});
  const std::string key = state_.server.new_key;
  EXPECT_EQ(read_server_key(key_path_), key);
  struct stat info {};
  ASSERT_EQ(::stat(key_path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  panel_.apply(act::ShowServer{false});
  panel_.apply(act::ShowServer{true});
  EXPECT_EQ(state_.server.new_key, "") << "not again";
  for (const ui::ClientLine& line : state_.server.lines) EXPECT_EQ(line.text.find(key), std::string::npos);
  panel_.apply(act::MakeServerKey{});
  EXPECT_NE(state_.server.new_key, key);
  EXPECT_EQ(panel_.access().key, state_.server.new_key) << "the one before counts no longer";
  EXPECT_TRUE(panel_.take_effects().access_changed);

  ui::UiState later;
  ServerPanel next(kept_, later);
  next.begin(key_path_);
  EXPECT_EQ(next.access().key, state_.server.new_key) << "the next window has it, and does not show it";
  EXPECT_EQ(later.server.new_key, "");
}

TEST_F(ServerPanelTest, StartsWithTheWindowOnlyWhereAPersonSaidSo) {
  kept_.server.starts_with_window = state_.settings.server.starts_with_window = true;
  panel_.begin(key_path_);
  EXPECT_TRUE(panel_.is_wanted());
  EXPECT_TRUE(panel_.take_effects().start);
}

TEST_F(ServerPanelTest, ATakenPortIsOneSentenceAndTheSwitchIsOff) {
  panel_.begin(key_path_);
  panel_.apply(act::SwitchServer{true});
  panel_.show_listening(
      0, Error{ErrorCode::kIo, "cannot listen at 127.0.0.1:8000: another program has this port"});
  EXPECT_FALSE(panel_.is_wanted());
  EXPECT_EQ(state_.server.phase, ui::ServerPhase::kOff);
  EXPECT_EQ(state_.server.problem, "cannot listen at 127.0.0.1:8000: another program has this port.");
  panel_.apply(act::SwitchServer{true});
  EXPECT_EQ(state_.server.problem, "");
}

TEST_F(ServerPanelTest, AnotherPortMovesTheServerAndOtherWishesDoNot) {
  panel_.begin(key_path_);
  panel_.apply(act::SwitchServer{true});
  panel_.show_listening(8000, {});
  panel_.take_effects();
  change([](ui::ServerSettings& settings) { settings.allowed_hosts = {"my-machine"}; });
  ServerEffects effects = panel_.take_effects();
  EXPECT_FALSE(effects.start);
  EXPECT_TRUE(effects.access_changed);
  EXPECT_TRUE(effects.settings_changed);
  EXPECT_EQ(panel_.access().allowed_hosts, (std::vector<std::string>{"my-machine"}));
  change([](ui::ServerSettings& settings) { settings.port = 8100; });
  effects = panel_.take_effects();
  EXPECT_TRUE(effects.start);
  EXPECT_EQ(state_.server.phase, ui::ServerPhase::kStarting);
  change([](ui::ServerSettings& settings) { settings.needs_key = false; });
  EXPECT_EQ(panel_.access().key, "");
}

TEST_F(ServerPanelTest, LinesReadTheKeyFromItsFileAndNameTheModel) {
  panel_.begin(key_path_);
  panel_.apply(act::SwitchServer{true});
  panel_.show_listening(8123, {});
  panel_.show_model("Qwen 3");
  std::string all;
  for (const ui::ClientLine& line : state_.server.lines) all += line.program + ": " + line.text + "\n";
  for (const char* const part :
       {"OPENAI_BASE_URL=http://127.0.0.1:8123/v1", "ANTHROPIC_BASE_URL=http://127.0.0.1:8123 ",
        "ANTHROPIC_DEFAULT_SONNET_MODEL='Qwen 3'", "wire_api=\"responses\"", "\"models\":{\"Qwen 3\":{}}"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  EXPECT_NE(all.find("$(cat " + key_path_.string() + ")"), std::string::npos) << all;
}

// ---- the door and the port

class ServerDoorTest : public ::testing::Test {
 protected:
  ServerDoorTest() { door_.set_access({.port = 0, .key = "right"}); }

  void open_port() {
    runner_.start(0);
    std::vector<ServerReport> reports;
    ASSERT_TRUE(http::becomes_true([&] {
      for (ServerReport& report : runner_.take_reports()) reports.push_back(std::move(report));
      return !reports.empty();
    }));
    ASSERT_FALSE(reports.front().problem) << reports.front().problem->message;
    port_ = reports.front().port;
    door_.set_access({.port = port_, .key = "right"});
  }
  void serve() {
    service_ = std::make_unique<Service>(
        engine_, ServiceOptions{.model_names = {"tiny"},
                                .new_hex = [] { return std::string(32, 'a'); },
                                .unix_time_ms = [] { return std::int64_t{0}; },
                                .clock = &clock_,
                                .answered = [this](const AnsweredCall& call) { door_.note(call); }});
    door_.lead_to(service_.get(), {});
  }
  std::string text_of(const std::string& path, const std::string& body,
                      const std::string& key = "right") const {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost:" + std::to_string(port_) +
           "\r\nUser-Agent: test/1\r\nx-api-key: " + key +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  std::string ask(const std::string& path, const std::string& body, const std::string& key = "right") const {
    http::HttpClient client;
    EXPECT_TRUE(client.connect(port_));
    return client.ask(text_of(path, body, key));
  }
  static std::string status_of(const std::string& answer) { return answer.substr(9, 3); }

  SteadyClock clock_;
  ScriptedEngine engine_;
  ServerDoor door_{[] { return std::int64_t{1'800'000'000'000}; }, [] {}};
  std::unique_ptr<Service> service_;
  ServerRunner runner_{door_, [] {}};  // ends before what it leads to
  std::uint16_t port_ = 0;
};

TEST_F(ServerDoorTest, LeadsToTheModelThatIsThereAndElseSaysToTryAgain) {
  open_port();
  const std::string waiting = ask("/v1/completions", R"({"prompt": "a"})");
  EXPECT_EQ(status_of(waiting), "503");
  EXPECT_NE(waiting.find("Retry-After"), std::string::npos);
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) {
    engine_.accept(id, {5});
    engine_.say(id, "Rain.");
    engine_.end(id);
  };
  serve();
  EXPECT_NE(ask("/v1/completions", R"({"prompt": "a"})").find("Rain."), std::string::npos);
  door_.lead_to(nullptr, "a model is being loaded: try again soon");
  EXPECT_NE(ask("/v1/completions", R"({"prompt": "a"})").find("a model is being loaded"), std::string::npos);
}

TEST_F(ServerDoorTest, EveryRequestIsALineAndWhatWasRefusedSaysWhy) {
  open_port();
  serve();
  ask("/v1/completions", R"({"prompt": "a"})", "wrong");
  ask("/v1/completions", R"({"prompt": 5})");
  ask("/v1/nothing\x1b", "{}");
  ASSERT_TRUE(http::becomes_true([this] { return door_.lines().size() >= 2; }));
  const auto lines = door_.lines();
  EXPECT_EQ(lines[0].status, 401);
  EXPECT_NE(lines[0].why.find("the key is missing or wrong"), std::string::npos);
  EXPECT_EQ(lines[0].request, "POST /v1/completions");
  EXPECT_EQ(lines[0].client, "test/1");
  EXPECT_EQ(lines[1].status, 400);
  for (const ui::ServerLogLine& line : lines) {
    EXPECT_EQ(line.time.size(), 8u);
    EXPECT_EQ((line.request + line.why).find('\x1b'), std::string::npos);
    EXPECT_EQ((line.request + line.why + line.client).find("right"), std::string::npos) << "no key in a log";
  }
}

TEST_F(ServerDoorTest, ATakenPortIsReported) {
  open_port();
  ServerDoor another_door{[] { return std::int64_t{0}; }, [] {}};
  ServerRunner another(another_door, [] {});
  another.start(port_);
  std::vector<ServerReport> reports;
  ASSERT_TRUE(http::becomes_true([&] {
    for (ServerReport& report : another.take_reports()) reports.push_back(std::move(report));
    return !reports.empty();
  }));
  ASSERT_TRUE(reports.front().problem);
  EXPECT_NE(reports.front().problem->message.find("another program has this port"), std::string::npos);
}

TEST_F(ServerDoorTest, AnswersThatRunEndWhenItIsSwitchedOff) {
  open_port();
  engine_.on_submit = [this](RequestId id, const GenerationRequest&) {
    engine_.accept(id, {5});
    engine_.say(id, "So far");
  };
  serve();
  http::HttpClient client;
  ASSERT_TRUE(client.connect(port_));
  client.send(text_of("/v1/completions", R"({"prompt": "a", "stream": true})"));
  EXPECT_NE(client.read_until("So far").find("200"), std::string::npos);
  EXPECT_EQ(runner_.num_open_answers(), 1u);
  door_.lead_to(nullptr, "the server is being switched off");
  service_->cancel_all();
  runner_.stop();
  EXPECT_NE(client.read_until("0\r\n\r\n").find("[DONE]"), std::string::npos);
  ASSERT_TRUE(http::becomes_true([this] { return !runner_.take_reports().empty(); }));
  http::HttpClient late;
  EXPECT_FALSE(late.connect(port_));
}

}  // namespace
}  // namespace octavo::app
