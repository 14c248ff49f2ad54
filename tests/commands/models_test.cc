// `octavo models` and `--download` against a stand-in of the hub on this machine.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/hub/hub_stand_in.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace octavo::tests {
namespace {

namespace fs = std::filesystem;

class ModelsCommand : public ::testing::Test {
 protected:
  ModelsCommand() {
    test::TinyLlamaOptions options;
    options.weight_type = kernels::TensorType::kQ8_0;
    test::make_tiny_llama(5, options).write(folder_ / "tiny.gguf");
    std::ifstream file(folder_ / "tiny.gguf", std::ios::binary);
    model_.assign(std::istreambuf_iterator<char>(file), {});
    hub_ = std::make_unique<octavo::testing::HubStandIn>(std::vector<octavo::testing::StandInRepository>{
        {.name = "org/tiny",
         .files = {{.path = "tiny-Q8_0.gguf", .content = model_},
                   {.path = "tiny-Q4_K_M.gguf", .content = "no model"}}},
        {.name = "org/plain", .files = {{.path = "p.gguf", .content = model_, .is_large = false}}},
        {.name = "org/gated", .is_gated = true, .files = {{.path = "g.gguf", .content = model_}}}});
  }

  ProgramResult run(const std::vector<std::string>& arguments, const std::string& token = {},
                    bool is_offline = false, ProgramOptions options = {}) {
    options.environment = {{"HOME", folder_.path().string()},
                           {"XDG_DATA_HOME", (folder_ / "data").string()},
                           {"XDG_CACHE_HOME", ""},
                           {"HF_HOME", (folder_ / "hf").string()},
                           {"HF_HUB_CACHE", ""},
                           {"HF_ENDPOINT", hub_->address()},
                           {"HF_TOKEN", token},
                           {"HF_TOKEN_PATH", ""},
                           {"HF_HUB_OFFLINE", is_offline ? "1" : ""}};
    return run_program(arguments, options);
  }
  nlohmann::json json_of(const ProgramResult& result) {
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  test::TemporaryFolder folder_;
  std::string model_;  // the content of the file
  std::unique_ptr<octavo::testing::HubStandIn> hub_;
};

TEST_F(ModelsCommand, SearchesShowsGetsListsRunsAndRemoves) {
  const auto found = json_of(run({"models", "search", "tiny", "--json"}));
  ASSERT_EQ(found["models"].size(), 1u);
  EXPECT_EQ(found["models"][0]["name"], "org/tiny");

  const auto shown = json_of(run({"models", "show", "org/tiny:Q8_0", "--json"}));
  ASSERT_EQ(shown["models"].size(), 2u);
  const auto& model = shown["models"][1];
  EXPECT_EQ(model["type"], "Q8_0");
  EXPECT_EQ(model["checked"], true);
  EXPECT_EQ(model["fit"], "fits");
  EXPECT_EQ(model["here"], false);
  const auto unsupported = json_of(run({"models", "show", "org/tiny:Q4_K_M", "--json"}));
  EXPECT_EQ(unsupported["models"][0]["fit"], "unsupported");

  const ProgramResult refused = run({"models", "get", "org/tiny"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("--unchecked"), std::string::npos) << refused.err;
  const ProgramResult got = run({"models", "get", "org/tiny:Q8_0"});
  ASSERT_EQ(got.status, 0) << got.err;
  const std::string path = got.out.substr(0, got.out.find('\n'));
  EXPECT_TRUE(fs::is_symlink(path)) << path;

  const auto listed = json_of(run({"models", "list", "--json"}));
  ASSERT_EQ(listed["models"].size(), 1u);
  EXPECT_EQ(listed["models"][0]["name"], "org/tiny:tiny-Q8_0.gguf");
  EXPECT_EQ(listed["models"][0]["owner"], "Hugging Face");

  const ProgramResult generated =
      run({"generate", "--model", "org/tiny:Q8_0", "--prompt", "a", "--max-tokens", "2", "--json"}, {},
          /*is_offline=*/true);
  EXPECT_EQ(generated.status, 0) << generated.err;

  const ProgramResult asked = run({"models", "remove", "org/tiny:tiny-Q8_0.gguf"});
  EXPECT_EQ(asked.status, 1);
  EXPECT_NE(asked.err.find("--yes"), std::string::npos) << asked.err;
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(run({"models", "remove", "org/tiny:tiny-Q8_0.gguf", "--yes"}).status, 0);
  EXPECT_FALSE(fs::exists(fs::symlink_status(path)));
  EXPECT_EQ(json_of(run({"models", "list", "--json"}))["models"].size(), 0u);
}

TEST_F(ModelsCommand, NothingIsContactedBeforeDownloadIsGiven) {
  const std::vector<std::string> generate = {"generate",     "--model", "org/tiny:Q8_0", "--prompt", "a",
                                             "--max-tokens", "2"};
  const ProgramResult without = run(generate);
  EXPECT_EQ(without.status, 1);
  EXPECT_EQ(without.num_error_lines(), 1u) << without.err;
  EXPECT_NE(without.err.find("--download"), std::string::npos) << without.err;
  EXPECT_TRUE(hub_->seen().empty());
  std::vector<std::string> with = generate;
  with.emplace_back("--download");
  const ProgramResult downloaded = run(with);
  EXPECT_EQ(downloaded.status, 0) << downloaded.err;
  EXPECT_FALSE(hub_->seen().empty());
  hub_->forget_seen();
  EXPECT_EQ(run(generate).status, 0);
  EXPECT_TRUE(hub_->seen().empty()) << "it is here now";
  const ProgramResult default_model = run({"generate", "--prompt", "a"});
  EXPECT_EQ(default_model.status, 1);
  EXPECT_NE(default_model.err.find("--download"), std::string::npos) << default_model.err;
}

TEST_F(ModelsCommand, AFileMustHaveTheSha256ThatIsGiven) {
  const std::string right = octavo::testing::sha256_of(model_), wrong(64, 'a');
  const auto expect_refused = [](const ProgramResult& result, const std::string& part, int status = 1) {
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  // What the hub tells is compared before anything comes.
  expect_refused(run({"models", "get", "org/tiny:Q8_0", "--sha256", wrong}), "nothing was downloaded");
  EXPECT_FALSE(fs::exists(folder_ / "hf/hub/models--org--tiny/blobs"));
  expect_refused(
      run({"generate", "--model", "org/tiny:Q8_0", "--download", "--sha256", wrong, "--prompt", "a"}),
      "has the SHA-256 " + right);
  // Of a file whose SHA-256 no hub tells, what came is removed.
  expect_refused(run({"models", "get", "org/plain", "--sha256", wrong}), "so it was removed");
  EXPECT_EQ(json_of(run({"models", "list", "--json"}))["models"].size(), 0u);
  EXPECT_EQ(run({"models", "get", "org/plain", "--sha256", right}).status, 0);

  std::string shouted = right;
  for (char& c : shouted) c = static_cast<char>(std::toupper(c));
  const ProgramResult got = run({"models", "get", "org/tiny:Q8_0", "--sha256", shouted});
  ASSERT_EQ(got.status, 0) << got.err;
  // What is here stays, and is named.
  expect_refused(run({"generate", "--model", "org/tiny:Q8_0", "--sha256", wrong, "--prompt", "a"}), right);
  EXPECT_EQ(
      run({"generate", "--model", "org/tiny:Q8_0", "--sha256", right, "--prompt", "a", "--max-tokens", "2"})
          .status,
      0);
  // A damaged one under a right name is found, and goes.
  const fs::path path = got.out.substr(0, got.out.find('\n'));
  std::ofstream(fs::canonical(path), std::ios::binary | std::ios::in).put('x');
  expect_refused(run({"models", "get", "org/tiny:Q8_0", "--sha256", right, "--unchecked"}),
                 "so it was removed");
  EXPECT_FALSE(fs::exists(fs::symlink_status(path)));
  expect_refused(run({"models", "get", "org/tiny", "--sha256", "abc"}), "--sha256", 2);
}

TEST_F(ModelsCommand, WhatIsNotThereSaysWhatToDo) {
  const auto expect_said = [&](const std::vector<std::string>& arguments, int status,
                               const std::string& part) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  expect_said({"models", "list"}, 0, "`octavo models get` downloads the default one");
  expect_said({"models", "search", "no", "such", "words"}, 0, "try fewer words");
  EXPECT_NE(hub_->seen().front().target.find("search=no%20such%20words&"), std::string::npos);
  expect_said({"models", "get", "tiny"}, 1, "find it with `octavo models search tiny`");
  expect_said({"models", "show", "org/nothing"}, 1, "find it with `octavo models search nothing`");
  expect_said({"models"}, 2,
              "`octavo models` needs one of search, show, get, list, remove; see `octavo models --help`");
  expect_said({"models", "frob"}, 2, "'frob' is none of them");
  expect_said({"models", "search"}, 2, "see `octavo models search --help`");
}

TEST_F(ModelsCommand, ANarrowTerminalHasTheLastColumnOnLinesOfItsOwn) {
  ASSERT_EQ(run({"models", "get", "org/tiny:Q8_0"}).status, 0);
  for (const auto columns : {40, 1000}) {
    ProgramOptions options{.output_is_terminal = true,
                           .terminal_columns = static_cast<unsigned short>(columns)};
    const ProgramResult listed = run({"models", "list"}, {}, /*is_offline=*/false, options);
    EXPECT_EQ(listed.status, 0) << listed.err;
    EXPECT_EQ(listed.out.find("Hugging Face\r\n    /") != std::string::npos, columns == 40) << listed.out;
    EXPECT_EQ(listed.out.find(" \r\n"), std::string::npos) << "no spaces at ends";
  }
  const ProgramResult piped = run({"models", "list"});
  EXPECT_EQ(std::count(piped.out.begin(), piped.out.end(), '\n'), 1);
}

TEST_F(ModelsCommand, CtrlCPausesADownloadThatTheSameCommandGoesOnWith) {
  hub_->bytes_per_s = static_cast<std::int64_t>(model_.size() / 8);
  const std::vector<std::string> get = {"models", "get", "org/tiny:Q8_0", "--unchecked"};
  const ProgramResult paused = run(get, {}, /*is_offline=*/false, {.interrupt_after_ms = 2000});
  EXPECT_EQ(paused.status, 130) << paused.err;
  EXPECT_EQ(paused.err, "octavo: the download was paused; the same command goes on from here\n");
  const ProgramResult listed = run({"models", "list"});
  EXPECT_EQ(listed.out, "");
  EXPECT_TRUE(listed.err.starts_with("of org/tiny ")) << listed.err;
  EXPECT_EQ(listed.num_error_lines(), 1u) << listed.err;
  hub_->bytes_per_s = 0;
  hub_->forget_seen();
  EXPECT_EQ(run(get).status, 0);
  EXPECT_EQ(run({"models", "list"}).err, "");
  const auto goes_on = [](const auto& request) {
    return request.range.starts_with("bytes=") && !request.range.starts_with("bytes=0-");
  };
  EXPECT_TRUE(std::ranges::any_of(hub_->seen(), goes_on));
}

TEST_F(ModelsCommand, ATokenOpensGatedModelsAndIsNeverPrinted) {
  const ProgramResult without = run({"models", "get", "org/gated"});
  EXPECT_EQ(without.status, 1);
  EXPECT_EQ(without.num_error_lines(), 1u) << without.err;
  EXPECT_NE(without.err.find("is gated"), std::string::npos) << without.err;
  const ProgramResult wrong = run({"models", "get", "org/gated"}, "hf_wrong_secret");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ((wrong.err + wrong.out).find("hf_wrong_secret"), std::string::npos);
  EXPECT_EQ(run({"models", "get", "org/gated"}, hub_->token).status, 0);
  fs::create_directories(folder_ / "hf");
  std::ofstream(folder_ / "hf/token") << hub_->token << "\n";
  EXPECT_EQ(run({"models", "show", "org/gated"}).status, 0);
}

TEST_F(ModelsCommand, WhatIsWrongIsOneLine) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"models", "get", "org/nothing"},
                                                    {"models", "show", "../x"},
                                                    {"models", "get", "org/tiny:none"},
                                                    {"models", "remove", "nothing", "--yes"}}) {
    const ProgramResult result = run(arguments);
    EXPECT_NE(result.status, 0);
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(run({"models"}).status, 2);
  EXPECT_EQ(run({"models", "search", "x"}, {}, /*is_offline=*/true).status, 1);
}

}  // namespace
}  // namespace octavo::tests
