// Remote models in the window, without a window: what a person asks of the dialog and what a scripted server
// answers, where keys are kept, and the load that is drawn.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "app/window/models/model_title.h"
#include "app/window/models/remote_link.h"
#include "tests/support/openai_server.h"
#include "tests/support/own_bus.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;
using testing::OpenAiServer;
using testing::OwnBus;

bool happens(const std::function<bool()>& done) {
  for (int i = 0; i < 5'000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  return bytes.str();
}

// A keyring of the desktop, in a thread: what libsecret's clients see of one.
class PlayedKeyring {
 public:
  explicit PlayedKeyring(const std::string& address) {
    sd_bus_new(&bus_);
    sd_bus_set_address(bus_, address.c_str());
    sd_bus_set_bus_client(bus_, 1);
    sd_bus_start(bus_);
    static const sd_bus_vtable kService[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("OpenSession", "sv", "vo", open_channel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SearchItems", "a{ss}", "aoao", search, SD_BUS_VTABLE_UNPRIVILEGED), SD_BUS_VTABLE_END};
    static const sd_bus_vtable kCollection[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CreateItem", "a{sv}(oayays)b", "oo", create, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END};
    static const sd_bus_vtable kItem[] = {
        SD_BUS_VTABLE_START(0), SD_BUS_METHOD("GetSecret", "o", "(oayays)", get, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Delete", "", "o", erase, SD_BUS_VTABLE_UNPRIVILEGED), SD_BUS_VTABLE_END};
    sd_bus_add_object_vtable(bus_, nullptr, "/org/freedesktop/secrets", "org.freedesktop.Secret.Service",
                             kService, this);
    sd_bus_add_object_vtable(bus_, nullptr, "/org/freedesktop/secrets/aliases/default",
                             "org.freedesktop.Secret.Collection", kCollection, this);
    sd_bus_add_object_vtable(bus_, nullptr, "/item", "org.freedesktop.Secret.Item", kItem, this);
    sd_bus_request_name(bus_, "org.freedesktop.secrets", 0);
    thread_ = std::thread([this] {
      while (!stopping_) {
        while (sd_bus_process(bus_, nullptr) > 0) {
        }
        sd_bus_wait(bus_, 5'000);
      }
    });
  }
  ~PlayedKeyring() {
    stopping_ = true;
    thread_.join();
    sd_bus_flush_close_unref(bus_);
  }

  std::string secret() {
    const std::lock_guard lock(mutex_);
    return secret_;
  }
  std::atomic<bool> is_locked = false;

 private:
  static PlayedKeyring& self_of(void* data) { return *static_cast<PlayedKeyring*>(data); }
  static int open_channel(sd_bus_message* message, void*, sd_bus_error*) {
    return sd_bus_reply_method_return(message, "vo", "s", "", "/channel/1");
  }
  static int search(sd_bus_message* message, void* data, sd_bus_error*) {
    auto& self = self_of(data);
    const std::lock_guard lock(self.mutex_);
    if (self.secret_.empty() || self.is_locked) return sd_bus_reply_method_return(message, "aoao", 0, 0);
    return sd_bus_reply_method_return(message, "aoao", 1, "/item", 0);
  }
  static int create(sd_bus_message* message, void* data, sd_bus_error*) {
    auto& self = self_of(data);
    if (self.is_locked) return sd_bus_reply_method_return(message, "oo", "/", "/prompt/1");
    const void* bytes = nullptr;
    std::size_t size = 0;
    sd_bus_message_skip(message, "a{sv}");
    sd_bus_message_enter_container(message, SD_BUS_TYPE_STRUCT, "oayays");
    sd_bus_message_skip(message, "oay");
    sd_bus_message_read_array(message, SD_BUS_TYPE_BYTE, &bytes, &size);
    const std::lock_guard lock(self.mutex_);
    self.secret_.assign(static_cast<const char*>(bytes), size);
    return sd_bus_reply_method_return(message, "oo", "/item", "/");
  }
  static int get(sd_bus_message* message, void* data, sd_bus_error*) {
    auto& self = self_of(data);
    const std::lock_guard lock(self.mutex_);
    sd_bus_message* reply = nullptr;
    sd_bus_message_new_method_return(message, &reply);
    sd_bus_message_open_container(reply, SD_BUS_TYPE_STRUCT, "oayays");
    sd_bus_message_append(reply, "o", "/channel/1");
    sd_bus_message_append_array(reply, SD_BUS_TYPE_BYTE, nullptr, 0);
    sd_bus_message_append_array(reply, SD_BUS_TYPE_BYTE, self.secret_.data(), self.secret_.size());
    sd_bus_message_append(reply, "s", "text/plain");
    sd_bus_message_close_container(reply);
    const int sent = sd_bus_send(nullptr, reply, nullptr);
    sd_bus_message_unref(reply);
    return sent;
  }
  static int erase(sd_bus_message* message, void* data, sd_bus_error*) {
    auto& self = self_of(data);
    const std::lock_guard lock(self.mutex_);
    self.secret_.clear();
    return sd_bus_reply_method_return(message, "o", "/");
  }

  sd_bus* bus_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::string secret_;  // guarded by mutex_; one is enough
  std::thread thread_;
};

// ---- keys

TEST(RemoteKeys, WithoutAKeyringAFileKeepsThemForItsOwnerAlone) {
  const test::TemporaryFolder folder;
  RemoteKeys keys({}, folder / "remote_keys.json");
  EXPECT_EQ(keys.find("http://a/v1").place, KeyPlace::kNowhere);
  const auto kept = keys.keep("http://a/v1", "secret-a");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, KeyPlace::kFile);
  ASSERT_TRUE(keys.keep("http://b/v1", "secret-b"));
  EXPECT_EQ(keys.find("http://a/v1").key, "secret-a");
  EXPECT_EQ(keys.find("http://b/v1").key, "secret-b");
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "remote_keys.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  ASSERT_TRUE(keys.forget("http://a/v1"));
  EXPECT_EQ(keys.find("http://a/v1").place, KeyPlace::kNowhere);
  EXPECT_EQ(bytes_of(folder / "remote_keys.json").find("secret-a"), std::string::npos);
  EXPECT_EQ(keys.find("http://b/v1").key, "secret-b");
}

TEST(RemoteKeys, ADamagedFileIsEmptyAndIsReplaced) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "remote_keys.json") << "{\"http://a/v1\": 7, \"x";
  RemoteKeys keys({}, folder / "remote_keys.json");
  EXPECT_EQ(keys.find("http://a/v1").place, KeyPlace::kNowhere);
  ASSERT_TRUE(keys.keep("http://a/v1", "new"));
  EXPECT_EQ(keys.find("http://a/v1").key, "new");
}

TEST(RemoteKeys, AFileThatCannotBeWrittenIsSaid) {
  RemoteKeys keys({}, "/proc/nowhere/remote_keys.json");
  const auto kept = keys.keep("http://a/v1", "secret");
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().message.find("the key is not kept"), std::string::npos);
  EXPECT_EQ(kept.error().message.find("secret"), std::string::npos);
}

TEST(RemoteKeys, TheKeyringComesFirstAndTheFileForgets) {
  const OwnBus bus;
  if (bus.address().empty()) GTEST_SKIP() << "there is no dbus-daemon here";
  const test::TemporaryFolder folder;
  RemoteKeys keys(bus.address(), folder / "remote_keys.json");
  EXPECT_EQ(*keys.keep("http://a/v1", "in the file"), KeyPlace::kFile) << "nobody has a keyring on this bus";
  PlayedKeyring keyring(bus.address());
  EXPECT_EQ(keys.find("http://a/v1").place, KeyPlace::kFile);
  EXPECT_EQ(*keys.keep("http://a/v1", "in the ring"), KeyPlace::kKeyring);
  EXPECT_EQ(keyring.secret(), "in the ring");
  EXPECT_EQ(bytes_of(folder / "remote_keys.json").find("in the"), std::string::npos);
  EXPECT_EQ(keys.find("http://a/v1").key, "in the ring");
  ASSERT_TRUE(keys.forget("http://a/v1"));
  EXPECT_EQ(keyring.secret(), "");
  EXPECT_EQ(keys.find("http://a/v1").place, KeyPlace::kNowhere);
  keyring.is_locked = true;
  EXPECT_EQ(*keys.keep("http://a/v1", "again"), KeyPlace::kFile) << "nobody is asked to unlock it";
}

// ---- the dialog

class RemoteModelsTest : public ::testing::Test {
 protected:
  // What is given to the link comes back to the dialog.
  void settle() {
    for (RemoteJob& job : models_.take_effects().jobs) link_->give(std::move(job));
    ASSERT_TRUE(happens([&] {
      for (const RemoteListed& listed : link_->take_listed()) models_.take(listed);
      return !dialog().asking;
    }));
  }
  const ui::RemoteDialogState& dialog() const { return state_.picker.remote; }

  const test::TemporaryFolder folder_;
  const SteadyClock clock_;
  ui::UiState state_;
  RemoteModels models_{state_};
  std::unique_ptr<RemoteLink> link_ =
      std::make_unique<RemoteLink>(RemoteKeys({}, folder_ / "remote_keys.json"), clock_, [] {});
};

TEST_F(RemoteModelsTest, AServersModelsAreListedAndOneIsUsed) {
  OpenAiServer server(
      [](const http::Request&, const http::Reply& reply) { OpenAiServer::send_models(reply, "big"); });
  models_.apply(act::OpenRemoteDialog{});
  EXPECT_TRUE(dialog().open);
  models_.apply(act::AskForRemoteModels{server.root(), ""});
  EXPECT_TRUE(dialog().asking);
  EXPECT_EQ(dialog().address, server.address());
  settle();
  ASSERT_EQ(dialog().models.size(), 1u);
  EXPECT_EQ(dialog().models[0].id, "big");
  EXPECT_EQ(dialog().models[0].context_len, 512);
  EXPECT_EQ(dialog().problem, "");
  EXPECT_FALSE(dialog().has_kept_key);
  models_.apply(act::UseRemoteModel{dialog().address, "big"});
  EXPECT_FALSE(dialog().open);
  EXPECT_EQ(models_.take_effects().load_path, server.address() + "#big");
  EXPECT_EQ(model_title(server.address() + "#big", {}), "big");
}

TEST_F(RemoteModelsTest, AKeyIsKeptOnceTheServerTakesItAndForgottenOnRequest) {
  OpenAiServer server([](const http::Request& request, const http::Reply& reply) {
    if (request.header("authorization") == "Bearer right") return OpenAiServer::send_models(reply);
    OpenAiServer::send_json(reply, R"({"error":{"message":"who are you"}})", 401);
  });
  models_.apply(act::AskForRemoteModels{server.address(), "wrong"});
  settle();
  EXPECT_NE(dialog().problem.find("who are you; check the key"), std::string::npos);
  EXPECT_FALSE(dialog().has_kept_key);
  EXPECT_EQ(bytes_of(folder_ / "remote_keys.json").find("wrong"), std::string::npos);
  models_.apply(act::AskForRemoteModels{server.address(), "right"});
  settle();
  EXPECT_EQ(dialog().models.size(), 1u);
  EXPECT_TRUE(dialog().has_kept_key);
  models_.apply(act::AskForRemoteModels{server.address(), ""});
  settle();
  EXPECT_EQ(dialog().models.size(), 1u) << "the kept key is sent";
  models_.apply(act::ForgetRemoteKey{server.address()});
  settle();
  models_.apply(act::AskForRemoteModels{server.address(), ""});
  settle();
  EXPECT_NE(dialog().problem, "");
}

TEST_F(RemoteModelsTest, WhatIsNoAddressIsSaidAtOnce) {
  models_.apply(act::AskForRemoteModels{"ftp://host", ""});
  EXPECT_FALSE(dialog().asking);
  EXPECT_NE(dialog().problem.find("http://"), std::string::npos);
  EXPECT_TRUE(models_.take_effects().jobs.empty());
}

TEST_F(RemoteModelsTest, AnAnswerOfAnEarlierServerIsPassedOver) {
  models_.apply(act::AskForRemoteModels{"http://one", ""});
  models_.apply(act::AskForRemoteModels{"http://two", ""});
  RemoteListed late{.serial = 1};
  late.models = std::vector<RemoteModel>{{"of the first", 0}};
  models_.take(late);
  EXPECT_TRUE(dialog().asking);
  EXPECT_TRUE(dialog().models.empty());
}

// ---- the load

TEST_F(RemoteModelsTest, ALoadIsWatchedWhileSomebodyLooks) {
  std::atomic<int> num_looks = 0;
  OpenAiServer server([&](const http::Request& request, const http::Reply& reply) {
    EXPECT_EQ(request.path, "/metrics");
    ++num_looks;
    reply.send({.status = 200, .body = "vllm:num_requests_running 3\nvllm:kv_cache_usage_perc 0.5\n"});
  });
  models_.describe(server.address());
  link_->watch(WatchedServer{server.address(), "m"});
  ASSERT_TRUE(happens([&] {
    for (const RemoteLoadTold& told : link_->take_loads()) models_.take(told);
    return !state_.remote_load.points.empty();
  }));
  EXPECT_EQ(state_.remote_load.points.back().num_running, 3.0);
  EXPECT_EQ(state_.remote_load.points.back().kv_usage, 0.5);
  EXPECT_FALSE(state_.remote_load.points.back().num_swapped) << "unknown";
  EXPECT_FALSE(state_.remote_load.points.back().hit_rate);
  link_->watch(std::nullopt);
  EXPECT_TRUE(link_->take_loads().empty());
}

RemoteLoadTold told_at(double seconds, std::optional<double> output_tokens) {
  RemoteLoad load;
  load.num_running = 1;
  load.output_tokens = output_tokens;
  return {seconds, load};
}

TEST_F(RemoteModelsTest, RatesAreOfWhatWasCountedBetweenTwoLooks) {
  models_.describe("http://a/v1");
  models_.take(told_at(10, 100));
  EXPECT_FALSE(state_.remote_load.points.back().output_tokens_per_s) << "of one look nothing is known";
  models_.take(told_at(12, 300));
  EXPECT_EQ(state_.remote_load.points.back().output_tokens_per_s, 100.0);
  models_.take(told_at(13, 5));
  EXPECT_FALSE(state_.remote_load.points.back().output_tokens_per_s) << "the server started anew";
  models_.take(told_at(14, std::nullopt));
  EXPECT_FALSE(state_.remote_load.points.back().output_tokens_per_s);
  models_.take(told_at(200, 10));
  EXPECT_EQ(state_.remote_load.points.size(), 1u) << "older ones are not drawn";
}

TEST_F(RemoteModelsTest, AServerThatReportsNothingIsSaidToBeUnknown) {
  models_.describe("http://a/v1");
  models_.take(RemoteLoadTold{1, RemoteLoad{}});
  EXPECT_NE(state_.remote_load.problem.find("reports nothing"), std::string::npos);
  models_.take(RemoteLoadTold{2, Error{ErrorCode::kIo, "gone"}});
  EXPECT_NE(state_.remote_load.problem.find("gone"), std::string::npos);
  EXPECT_TRUE(state_.remote_load.points.empty());
  models_.take(told_at(3, 1));
  EXPECT_EQ(state_.remote_load.problem, "");
}

}  // namespace
}  // namespace octavo::app
