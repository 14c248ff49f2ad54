// Malformed requests: JSON that is none, fields that do not exist, numbers out of every range. One line,
// status 1.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/hostile/hostile_files.h"
#include "tests/hostile/measured_program.h"
#include "tests/support/repeated.h"
#include "tests/support/temporary_folder.h"

namespace octavo::test {
namespace {

struct HostileRequest {
  const char* name;
  std::string line;
};

std::vector<HostileRequest> hostile_requests() {
  const auto sampling = [](const std::string& options) {
    return R"({"prompt": "the", "sampling": {)" + options + "}}";
  };
  return {
      {"no JSON", "hello"},
      {"half of an object", R"({"prompt": "the")"},
      {"two objects", R"({"prompt": "a"} {"prompt": "b"})"},
      {"a list", R"(["the"])"},
      {"null", "null"},
      {"a number", "1e999"},
      {"a comma too many", R"({"prompt": "the",})"},
      {"a zero byte", std::string("{\"prompt\": \"a\0b\"}", 17)},
      {"invalid UTF-8", "{\"prompt\": \"\xff\xfe\"}"},
      {"half of a surrogate pair", R"({"prompt": "\ud800"})"},
      {"a control character in a text", "{\"prompt\": \"a\x01\"}"},
      {"terminal sequences", "\x1b[2J\x1b]0;x\x07"},
      {"lists a hundred thousand deep", repeated("[", 100'000)},
      {"objects a hundred thousand deep", repeated("{\"a\":", 100'000)},
      {"closed lists, too deep",
       R"({"prompt_token_ids": )" + repeated("[", 5'000) + repeated("]", 5'000) + "}"},
      {"no prompt", "{}"},
      {"two prompts", R"({"prompt": "a", "messages": [{"role": "user", "content": "b"}]})"},
      {"a prompt that is a number", R"({"prompt": 7})"},
      {"a prompt that is a list", R"({"prompt": ["a"]})"},
      {"an unknown field", R"({"prompt": "a", "\u001b[2J\n": 1})"},
      {"a field that names a file", R"({"prompt": "a", "model": "/etc/passwd"})"},
      {"no messages", R"({"messages": []})"},
      {"a message that is a text", R"({"messages": ["hello"]})"},
      {"a message without content", R"({"messages": [{"role": "user"}]})"},
      {"a role that does not exist", R"({"messages": [{"role": "root\n\u001b[2J", "content": "a"}]})"},
      {"a role that is a number", R"({"messages": [{"role": 1, "content": "a"}]})"},
      {"a content that is null", R"({"messages": [{"role": "user", "content": null}]})"},
      {"no token ids", R"({"prompt_token_ids": []})"},
      {"a negative token id", R"({"prompt_token_ids": [1, -1]})"},
      {"a token id beyond the vocabulary", R"({"prompt_token_ids": [269]})"},
      {"a token id beyond 32 bits", R"({"prompt_token_ids": [4294967297]})"},
      {"a token id that is a fraction", R"({"prompt_token_ids": [1.5]})"},
      {"token ids in a text", R"({"prompt_token_ids": "1, 2"})"},
      {"a salt that is a number", R"({"prompt": "a", "cache_salt": 1})"},
      {"sampling that is a text", R"({"prompt": "a", "sampling": "hot"})"},
      {"an unknown option", sampling(R"("warmth": 1)")},
      {"no tokens at all", sampling(R"("max_tokens": 0)")},
      {"less than no tokens", sampling(R"("max_tokens": -1)")},
      {"tokens beyond 32 bits", sampling(R"("max_tokens": 4294967297)")},
      {"tokens beyond 64 bits", sampling(R"("max_tokens": 99999999999999999999)")},
      {"half a token", sampling(R"("max_tokens": 0.5)")},
      {"a temperature below zero", sampling(R"("temperature": -1)")},
      {"a temperature beyond all numbers", sampling(R"("temperature": 1e999)")},
      {"a temperature that is a text", sampling(R"("temperature": "NaN")")},
      {"top_p of zero", sampling(R"("top_p": 0)")},
      {"top_p of two", sampling(R"("top_p": 2)")},
      {"min_p of two", sampling(R"("min_p": 2)")},
      {"a thousand million outputs", sampling(R"("n": 1000000000)")},
      {"less than no outputs", sampling(R"("n": -1)")},
      {"a million log-probabilities", sampling(R"("logprobs": 1000000)")},
      {"a seed below zero", sampling(R"("seed": -1)")},
      {"a stop that is a number", sampling(R"("stop": 1)")},
      {"a stop that is empty", sampling(R"("stop": [""])")},
      {"a bias beyond the vocabulary", sampling(R"("logit_bias": {"269": 1})")},
      {"a bias for a negative id", sampling(R"("logit_bias": {"-1": 1})")},
      {"a bias for a text", sampling(R"("logit_bias": {"the": 1})")},
      {"a bias beyond all numbers", sampling(R"("logit_bias": {"1": 1e999})")},
      {"a repetition penalty of zero", sampling(R"("repetition_penalty": 0)")},
      {"a beam of no width", sampling(R"("beam_width": 0)")},
      {"a beam of a million", sampling(R"("beam_width": 1000000)")},
      {"an end id beyond the vocabulary", sampling(R"("stop_token_ids": [269])")},
      {"a prompt longer than the context", R"({"prompt": ")" + std::string(100'000, 'x') + R"("})"},
  };
}

TEST(HostileRequests, EachIsOneLineWithStatusOne) {
  const TemporaryFolder folder;
  const std::string model = unharmed_file().make(folder.path()).string();
  const std::string path = (folder / "requests.jsonl").string();
  const auto run = [&](const std::string& lines) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << lines << "\n";
    return run_measured(
        {"generate", "--model", model, "--requests-file", path, "--threads", "1", "--num-kv-blocks", "16"},
        folder.path().string());
  };
  const Measured fine = run(R"({"prompt": "the", "sampling": {"max_tokens": 4}})");
  ASSERT_EQ(fine.status, 0) << fine.err;
  for (const HostileRequest& request : hostile_requests()) {
    SCOPED_TRACE(request.name);
    const Measured measured = run(request.line);
    EXPECT_EQ(measured.status, 1) << measured.err << measured.out;
    EXPECT_EQ(measured.err.rfind("octavo: ", 0), 0u) << measured.err;
    EXPECT_EQ(std::count(measured.err.begin(), measured.err.end(), '\n'), 1) << measured.err;
    EXPECT_EQ(measured.err.find('\x1b'), std::string::npos);
    EXPECT_LE(measured.peak_kibibytes, fine.peak_kibibytes + 64 * 1024);
    EXPECT_LE(measured.seconds, 10.0);
  }
  // All of them beside a good one: it is answered.
  std::string all = R"({"prompt": "the", "sampling": {"max_tokens": 4}})";
  for (const HostileRequest& request : hostile_requests()) all += "\n" + request.line;
  const Measured together = run(all);
  EXPECT_EQ(together.status, 1);
  EXPECT_EQ(static_cast<std::size_t>(std::count(together.err.begin(), together.err.end(), '\n')),
            hostile_requests().size())
      << together.err;
}

TEST(HostileRequests, AreMany) { EXPECT_GE(hostile_requests().size(), 60u); }

}  // namespace
}  // namespace octavo::test
