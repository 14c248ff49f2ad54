// Every option of any command with every command, as the commands' own help lists them: a command does what
// it offers, and refuses what it does not, in one sentence with status 2. Nothing crashes, and nothing is
// passed over in silence.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/files/file_descriptor.h"
#include "app/hub/checksum.h"
#include "tests/support/run_program.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_draft.h"

namespace octavo::tests {
namespace {

using Words = std::vector<std::string>;

// An option as the help shows it.
struct Option {
  std::string name;
  std::string type;  // what stands behind the name: empty for a flag
};

// A command with options without which it would not run, or not soon, on a model of a few hundred kilobytes.
struct Command {
  Words words;
  std::map<std::string, std::string> base;
  std::string input = {};
};

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Lines such as "  --block-size INT=16    Tokens per KV block" and "  --a,--no-a{false}".
std::vector<Option> options_of(const Words& command) {
  Words arguments = command;
  arguments.push_back("--help");
  const ProgramResult help = run_program(arguments);
  EXPECT_EQ(help.status, 0) << help.err;
  std::vector<Option> options;
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || begin == 0 || begin > 4 || line[begin] != '-') continue;
    const std::size_t end = line.find("  ", begin);
    const Words words = words_of(line.substr(begin, end - begin));
    std::istringstream names(words[0]);
    for (std::string name; std::getline(names, name, ',');) {
      name = name.substr(0, name.find('{'));
      const bool is_special = name == "--help" || name == "--help-all" || name == "--version";
      if (name.starts_with("--") && !is_special)
        options.push_back({name, words.size() > 1 ? words[1] : std::string()});
    }
  }
  EXPECT_FALSE(options.empty());
  return options;
}

class OptionPairs : public ::testing::Test {
 protected:
  OptionPairs() {
    // Somebody else has the port that a server is told to use.
    EXPECT_TRUE(socket_.ok() && listen(socket_.get(), 1) == 0);
    sockaddr_in address = {};
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    busy_port_ = std::to_string(ntohs(address.sin_port));
    test::tiny_draft({.own_output = true}).write(path("model.gguf"));
    write("prompt.txt", "a");
    write("text.txt", "a text");
    write("grammar.txt", "root ::= \"a\"");
    write("messages.json", R"([{"role": "user", "content": "a"}])");
    write("requests.jsonl", "{\"prompt\": \"a\"}\n");
    write("chat.json", "");
    std::filesystem::remove(path("chat.json"));
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  std::vector<Command> commands() const {
    const std::string model = path("model.gguf");
    return {
        {{}, {{"--model", model}}},
        {{"generate"}, {{"--model", model}, {"--prompt", "a"}, {"--max-tokens", "4"}}},
        {{"chat"}, {{"--model", model}, {"--max-tokens", "4"}, {"--conversation", path("chat.json")}}, "a\n"},
        {{"serve"}, {{"--model", model}, {"--port", busy_port_}}},
        {{"tokenize"}, {{"--model", model}, {"--prompt", "a"}}},
        {{"inspect"}, {{"--model", model}}},
        {{"compare-models"}, {{"--model-a", model}, {"--model-b", model}, {"--text", path("text.txt")}}},
        {{"experiment"}, {{"--name", "figure-19"}, {"--time-share", "0.001"}}},
        {{"bench", "speed"},
         {{"--model", model}, {"--prompt-tokens", "8"}, {"--output-tokens", "2"}, {"--repeat", "1"}}}};
  }

  // A value that does for a small model. What is a number or a choice is read from the help.
  std::string value_of(const Option& option) const {
    const std::map<std::string, std::string> values = {
        {"--model", path("model.gguf")},
        {"--sha256", *hub::sha256_of_file(path("model.gguf"), [] { return false; })},
        {"--model-a", path("model.gguf")},
        {"--model-b", path("model.gguf")},
        {"--text", path("text.txt")},
        {"--prompt", "a"},
        {"--prompt-file", path("prompt.txt")},
        {"--messages-file", path("messages.json")},
        {"--requests-file", path("requests.jsonl")},
        {"--conversation", path("chat.json")},
        {"--system", "b"},
        {"--stop", "zz"},
        {"--bad-words", "zz"},
        {"--context-policy", "roll"},
        {"--chat-template-kwargs", "{\"enable_thinking\":false}"},
        {"--logit-bias", "3=1"},
        {"--record", path("record.octrec")},
        {"--name", "figure-19"},
        {"--time-share", "0.001"},
        {"--out", path("results")},
        {"--recording", path("nothing.octrec")},
        {"--shape", "gpt2-xl"},
        {"--memory", "1GiB"},
        {"--num-kv-blocks", "64"},
        {"--max-model-len", "128"},
        {"--tensor-parallel-size", "1"},
        {"--host", "127.0.0.1"},
        {"--port", busy_port_},
        {"--api-key", "a"},
        {"--api-key-file", path("text.txt")},
        {"--allowed-host", "a.example"},
        {"--allowed-origin", "http://a.example"},
        {"--served-model-name", "a"},
        {"--tls-certificate", path("text.txt")},
        {"--tls-key", path("text.txt")},
        {"--ssl-certfile", path("text.txt")},
        {"--ssl-keyfile", path("text.txt")},
        {"--json-schema", "{}"},
        {"--regex", "a+"},
        {"--grammar", path("grammar.txt")},
        {"--choice", "a"}};
    const auto found = values.find(option.name);
    if (found != values.end()) return found->second;
    if (option.type.find('|') != std::string::npos) return option.type.substr(0, option.type.find('|'));
    if (option.type.starts_with("FLOAT")) return "0.5";
    if (option.type.starts_with("INT") || option.type.starts_with("UINT")) return "2";
    ADD_FAILURE() << option.name << " " << option.type << ": give it a value in this test";
    return "";
  }

  // The command with this option; the base gives way where both would say the same thing.
  ProgramResult run(const Command& command, const Option& option, bool stands_before = false) const {
    static const std::set<std::string> kInputs = {"--prompt", "--prompt-file", "--messages-file",
                                                  "--requests-file"};
    Words given = {option.name};
    if (!option.type.empty()) given.push_back(value_of(option));
    Words arguments = stands_before ? given : Words{};
    arguments.insert(arguments.end(), command.words.begin(), command.words.end());
    for (const auto& [name, value] : command.base) {
      const bool is_replaced = name == option.name ||
                               (kInputs.contains(name) && kInputs.contains(option.name)) ||
                               (name == "--model" && option.name == "--shape");
      if (!is_replaced) arguments.insert(arguments.end(), {name, value});
    }
    if (!stands_before) arguments.insert(arguments.end(), given.begin(), given.end());
    return run_program(arguments, {.input = command.input,
                                   .environment = {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}},
                                   .timeout_ms = 60'000});
  }

  static void expect_refused(const ProgramResult& result, const std::string& what) {
    EXPECT_EQ(result.status, 2) << what << ": " << result.err;
    EXPECT_EQ(result.out, "") << what;
    EXPECT_EQ(result.num_error_lines(), 1u) << what << ": " << result.err;
  }

  const test::TemporaryFolder folder_;
  const app::FileDescriptor socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string busy_port_;
};

std::string name_of(const Command& command, const Option& option) {
  std::string text = "octavo";
  for (const std::string& word : command.words) text += " " + word;
  return text + " " + option.name;
}

TEST_F(OptionPairs, EachWorksOrIsRefusedInOneSentence) {
  std::map<std::string, Option> all;
  std::map<Words, std::set<std::string>> offered;
  for (const Command& command : commands()) {
    for (const Option& option : options_of(command.words)) {
      all.emplace(option.name, option);
      offered[command.words].insert(option.name);
    }
  }
  EXPECT_GT(all.size(), 60u);
  std::vector<std::pair<Command, Option>> pairs;
  for (const Command& command : commands()) {
    for (const auto& [name, option] : all) pairs.emplace_back(command, option);
  }
  for (const auto& [command, option] : test::some_of(pairs, 7)) {  // all: tests/long/run options
    const std::string &name = option.name, what = name_of(command, option);
    const ProgramResult result = run(command, option);
    static const std::set<std::string> kOfRealExperiments = {
        "--model",        "--download",         "--sha256",         "--device", "--dtype",
        "--quantization", "--activation-dtype", "--kv-cache-dtype", "--rounds"};
    const bool is_of_tls = name.starts_with("--tls-") || name.starts_with("--ssl-");
    // A recording; messages; an experiment on a real engine; a certificate its key.
    const bool needs_another = (command.words == Words{"serve"} && is_of_tls) ||
                               what == "octavo inspect --at-step" ||
                               what == "octavo generate --chat-template-kwargs" ||
                               (command.words == Words{"experiment"} && kOfRealExperiments.contains(name));
    if (!offered[command.words].contains(name) || needs_another) {
      expect_refused(result, what);
      const bool is_known_as_tls = command.words == Words{"serve"} && is_of_tls;  // --ssl- is vLLM's name
      EXPECT_NE(result.err.find(is_known_as_tls ? "--tls-" : name), std::string::npos)
          << what << ": " << result.err;
    } else if (command.words.empty() || command.words[0] == "serve") {
      // The window cannot open here, nor the server listen: both say so after they have read their options.
      const bool tells_more = !command.words.empty() && name == "--verbose";
      EXPECT_EQ(result.status, 1) << what << ": " << result.err;
      EXPECT_EQ(result.num_error_lines(), tells_more ? 2u : 1u) << what << ": " << result.err;
    } else {
      EXPECT_EQ(result.status, 0) << what << ": " << result.err;
      EXPECT_EQ(result.err.empty(), name != "--verbose") << what << ": " << result.err;
    }
  }
}

TEST_F(OptionPairs, AnOptionBeforeACommandIsRefused) {
  const std::vector<Command> all = commands();
  for (const Option& option : options_of({})) {
    for (const Command& command : all) {
      if (command.words.empty()) continue;
      const ProgramResult result = run(command, option, /*stands_before=*/true);
      expect_refused(result, name_of(command, option));
      EXPECT_NE(result.err.find("after `" + command.words[0] + "`"), std::string::npos) << result.err;
    }
  }
}

TEST_F(OptionPairs, ARefusalSaysWhatToUseInstead) {
  for (const Words& option : {Words{"--n", "2"}, Words{"--beam-width", "4"}, Words{"--early-stopping"}}) {
    Words arguments = {"chat", "--model", path("model.gguf")};
    arguments.insert(arguments.end(), option.begin(), option.end());
    const ProgramResult result = run_program(arguments, {.input = "a\n"});
    expect_refused(result, option[0]);
    EXPECT_NE(result.err.find("octavo generate"), std::string::npos) << result.err;
  }
}

TEST_F(OptionPairs, AFileThatTheWindowCannotFindIsNamed) {
  const ProgramResult result = run_program({path("nowhere.txt")}, {.environment = {{"DISPLAY", ""}}});
  expect_refused(result, "a file");
  EXPECT_NE(result.err.find("nowhere.txt"), std::string::npos) << result.err;
}

TEST_F(OptionPairs, ARecordingIsNotAskedForAModelsKeys) {
  const std::string recording = path("record.octrec");
  const ProgramResult made = run_program({"generate", "--model", path("model.gguf"), "--prompt", "a",
                                          "--max-tokens", "4", "--record", recording});
  ASSERT_EQ(made.status, 0) << made.err;
  for (const char* const option : {"--precision", "--tokens", "--batch", "--memory"}) {
    expect_refused(run_program({"inspect", recording, option, "2"}), option);
  }
  EXPECT_EQ(run_program({"inspect", recording, "--at-step", "2"}).status, 0);
}

}  // namespace
}  // namespace octavo::tests
