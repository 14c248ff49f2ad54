// Chats of other programs, in the shapes that their exports have.

#include "app/chat/chat_import.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "app/chat/chat_json.h"
#include "app/chat/chat_markdown.h"
#include "engine/base/calendar.h"

namespace octavo::app {
namespace {

constexpr const char* kChatGpt = R"json([{
  "title": "Pasta night", "create_time": 1700000000.5, "current_node": "d",
  "mapping": {
    "root": {"id": "root", "message": null, "parent": null, "children": ["s"]},
    "s": {"id": "s", "parent": "root", "children": ["a"], "message": {"author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]}, "metadata": {"is_visually_hidden_from_conversation": true}}},
    "a": {"id": "a", "parent": "s", "children": ["b", "d"], "message": {"author": {"role": "user"}, "create_time": 1700000000.25, "content": {"content_type": "text", "parts": ["How long", {"content_type": "image_asset_pointer"}, "to boil?"]}}},
    "b": {"id": "b", "parent": "a", "children": [], "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Ten minutes."]}}},
    "t": {"id": "t", "parent": "a", "children": ["d"], "message": {"author": {"role": "tool"}, "content": {"content_type": "text", "parts": ["search"]}}},
    "d": {"id": "d", "parent": "t", "children": [], "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Eight."]}}}
  }}])json";

constexpr const char* kOpenWebUi =
    R"json([{"id": "x", "title": "outer", "chat": {"title": "Inner title", "models": ["m"],
  "history": {"currentId": "2", "messages": {
    "1": {"id": "1", "parentId": null, "childrenIds": ["2", "3"], "role": "user", "content": "Hi", "timestamp": 1700000001},
    "2": {"id": "2", "parentId": "1", "childrenIds": [], "role": "assistant", "content": "Hello"},
    "3": {"id": "3", "parentId": "1", "childrenIds": [], "role": "assistant", "content": "Hey"}}},
  "messages": []}}])json";

TEST(ChatImport, ChatGptTreesKeepTheirBranches) {
  const auto read = import_chats(kChatGpt, "chats.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->chats.size(), 1u);
  const Chat& chat = read->chats.front();
  EXPECT_EQ(chat.title, "Pasta night");
  ASSERT_EQ(chat.messages().size(), 3u);
  const auto path = chat.active_path();
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(chat.find(path[0])->content, "How long\nto boil?");
  EXPECT_EQ(chat.find(path[0])->created_ms, 1'700'000'000'250);
  EXPECT_EQ(chat.find(path[1])->created_ms, 0) << "it is not said";
  EXPECT_EQ(chat.find(path[1])->content, "Eight.");
  EXPECT_EQ(chat.position_among_siblings(path[1]).count, 2);
}

TEST(ChatImport, OpenWebUiTreesKeepTheirBranches) {
  const auto read = import_chats(kOpenWebUi, "chats.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const Chat& chat = read->chats.front();
  EXPECT_EQ(chat.title, "Inner title");
  ASSERT_EQ(chat.messages().size(), 3u);
  EXPECT_EQ(chat.find(chat.active_leaf())->content, "Hello");
  EXPECT_EQ(chat.find(MessageId{1})->created_ms, 1'700'000'001'000);
}

TEST(ChatImport, DatesAreKeptAndSamplingIsLeftToTheProgram) {
  const auto chat_gpt = import_chats(kChatGpt, "x");
  ASSERT_TRUE(chat_gpt.has_value());
  EXPECT_EQ(chat_gpt->chats.front().created_ms, 1'700'000'000'500);
  EXPECT_EQ(chat_gpt->chats.front().updated_ms, 1'700'000'000'500);
  EXPECT_FALSE(chat_gpt->chats.front().has_sampling);
  const auto open_webui = import_chats(
      R"json({"created_at": 1700000000, "updated_at": 1700000060, "chat": {"timestamp": 1, "history": {
        "messages": {"1": {"role": "user", "content": "Hi"}}}}})json",
      "x");
  ASSERT_TRUE(open_webui.has_value()) << open_webui.error().message;
  EXPECT_EQ(open_webui->chats.front().created_ms, 1'700'000'000'000);
  EXPECT_EQ(open_webui->chats.front().updated_ms, 1'700'000'060'000);
  const auto mad = import_chats(
      R"json({"create_time": -1e300, "update_time": "now",
              "mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}}}})json",
      "x");
  ASSERT_TRUE(mad.has_value());
  EXPECT_EQ(mad->chats.front().created_ms, 0);
  Chat own;
  own.append(kRootMessage, Role::kUser, "q");
  own.created_ms = 1'700'000'000'001;
  own.updated_ms = 1'700'000'000'002;
  own.sampling.temperature = 0.3;
  const auto read = import_chats(chat_to_json(own), "x");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->chats.front().created_ms, own.created_ms);
  EXPECT_EQ(read->chats.front().updated_ms, own.updated_ms);
  EXPECT_TRUE(read->chats.front().has_sampling);
  EXPECT_EQ(read->chats.front().sampling.temperature, 0.3);
}

TEST(ChatImport, WhatIsLeftOutIsCounted) {
  EXPECT_EQ(left_out_sentence({}), "");
  const auto plain = import_chats(kChatGpt, "x");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(left_out_sentence(plain->left_out), "Left out: 1 image and 1 tool message.");
  const auto chat_gpt = import_chats(
      R"json({"mapping": {
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["See", {"content_type": "audio_asset_pointer"}]},
              "metadata": {"attachments": [{"mime_type": "application/pdf"}, {"mime_type": "image/png"}]}}},
        "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": ["context"]},
              "metadata": {"is_visually_hidden_from_conversation": true}}},
        "c": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {"content_type": "thoughts", "thoughts": []}}},
        "d": {"parent": "c", "message": {"author": {"role": "assistant"}, "content": {"parts": ["Yes"]}}}}})json",
      "x");
  ASSERT_TRUE(chat_gpt.has_value()) << chat_gpt.error().message;
  EXPECT_EQ(left_out_sentence(chat_gpt->left_out),
            "Left out: 1 file, 1 recording, 1 hidden message and 1 other part.");
  EXPECT_EQ(chat_gpt->chats.front().active_path().size(), 2u);
  const auto open_webui = import_chats(
      R"json({"chat": {"history": {"messages": {
        "1": {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}],
              "files": [{"type": "image"}, {"type": "file"}]}}}}})json",
      "x");
  ASSERT_TRUE(open_webui.has_value()) << open_webui.error().message;
  EXPECT_EQ(left_out_sentence(open_webui->left_out), "Left out: 2 images and 1 file.");
}

TEST(ChatImport, OwnExportsComeBackAsTheyWere) {
  std::vector<Chat> chats(3);
  for (std::size_t i = 0; i < chats.size(); ++i) {
    chats[i].title = "Chat " + std::to_string(i);
    const MessageId question = chats[i].append(kRootMessage, Role::kUser, "q");
    chats[i].append(question, Role::kAssistant, "a");
    Message& answer = *chats[i].find(chats[i].append(question, Role::kAssistant, "half"));
    answer.interrupted = true;
    answer.model = "M";
  }
  const auto read = import_chats(chats_to_json(chats), "x");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->chats.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(chat_to_json(read->chats[i]), chat_to_json(chats[i]));
  const auto one = import_chats(chat_to_json(chats[0]), "x");
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->chats.size(), 1u);
}

TEST(ChatImport, CirclesAndLongChainsEnd) {
  const auto circle = import_chats(
      R"({"mapping": {"a": {"parent": "b", "message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}},
                      "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": ["y"]}}}}})",
      "x");
  ASSERT_TRUE(circle.has_value());
  EXPECT_EQ(circle->chats.front().messages().size(), 2u);
  std::string chain =
      R"({"mapping": {"0": {"message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}})";
  for (int i = 1; i < 20'000; ++i) {
    chain += ",\"" + std::to_string(i) + "\": {\"parent\": \"" + std::to_string(i - 1) +
             R"(", "message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}})";
  }
  const auto read = import_chats(chain + "}}", "x");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->chats.front().active_path().size(), 20'000u);
}

// A chain and a fan: where every message cost a look at those around it, these would take minutes.
TEST(ChatImport, AHundredThousandMessagesCostTheSameEach) {
  for (const bool chain : {true, false}) {
    std::string file = R"({"format":"octavo-conversation","version":1,"messages":[)";
    for (int i = 1; i <= 100'000; ++i) {
      const int parent = chain ? i - 1 : i <= 50'000 ? i - 1 : 50'000;
      file += (i > 1 ? "," : "") + std::string(R"({"id":)") + std::to_string(i) + R"(,"parent":)" +
              std::to_string(parent) + R"(,"role":"user","content":"x"})";
    }
    const auto read = import_chats(file + "]}", "x");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->chats.front().active_path().size(), chain ? 100'000u : 50'001u);
    EXPECT_EQ(read->chats.front().active_leaf(), MessageId{100'000});
  }
}

TEST(ChatImport, AListMayHoldChatsOfSeveralPrograms) {
  const std::string open_web_ui(kOpenWebUi), chat_gpt(kChatGpt);
  const auto read =
      import_chats(open_web_ui.substr(0, open_web_ui.size() - 1) + "," + chat_gpt.substr(1), "x");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->chats.size(), 2u);
  EXPECT_EQ(read->chats[0].messages().size(), 3u);
  EXPECT_EQ(read->chats[1].messages().size(), 3u);
}

TEST(ChatImport, OtherFilesAreRefusedWithASentence) {
  for (const char* text :
       {"", "{", "[]", "{}", "[1, 2]", "\"x\"", R"({"mapping": 3})", R"([{"chat": {}}])"}) {
    const auto read = import_chats(text, "photo.json");
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_NE(read.error().message.find("photo.json: "), std::string::npos);
    EXPECT_NE(read.error().message.find("choose a JSON export from Octavo, ChatGPT or Open WebUI"),
              std::string::npos);
  }
}

TEST(ChatImport, BrokenExportsNeverCrash) {
  std::mt19937 random(11);
  for (int round = 0; round < 4'000; ++round) {
    std::string text = round % 2 == 0 ? kChatGpt : kOpenWebUi;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = "{}[]\":,0a\\"[random() % 10];
    const auto read = import_chats(text, "x");
    if (!read) {
      EXPECT_FALSE(read.error().message.empty());
    }
  }
}

TEST(ChatMarkdown, HoldsTheActivePathUnderNames) {
  Chat chat;
  chat.title = "T";
  chat.system_prompt = "S";
  const MessageId question = chat.append(kRootMessage, Role::kUser, "hidden\n# not");
  chat.append(question, Role::kAssistant, "left out");
  Message& answer = *chat.find(chat.append(question, Role::kAssistant, "shown\n"));
  answer.model = "M 1B";
  answer.interrupted = true;
  answer.created_ms = 1'700'000'000'000;
  const std::string time = date_time_text(answer.created_ms);
  EXPECT_EQ(chat_to_markdown(chat),
            "# T\n\n## System\n\nS\n\n## You\n\nhidden\n# not\n\n## Assistant (M 1B)\n\nshown\n\n*" + time +
                "*\n\n> This answer was "
                "interrupted.\n");
}

TEST(ChatMarkdown, SaysWhereTheContextBegins) {
  Chat chat;
  for (const char* text : {"one", "two", "three"}) chat.append(chat.active_leaf(), Role::kUser, text);
  chat.context_begin = MessageId{3};
  chat.set_summary(MessageId{2}, "one, two");
  EXPECT_EQ(
      chat_to_markdown(chat),
      "# one\n\n## You\n\none\n\n## You\n\ntwo\n\n---\n\n> 2 earlier messages are no longer in the context; "
      "they stay in the chat.\n\n## Summary of them\n\none, two\n\n## You\n\nthree\n");
  EXPECT_NE(chat_to_json(chat).find("\"context_begin\": 3"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
