// The child that checks model files: what it says reaches the window whole, and what it suffers harms nobody.

#include "app/probe/probe.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_draft.h"

namespace octavo::app {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The real program, which has `--probe`.
ProbeOptions real(ProbeDepth depth = ProbeDepth::kWhole) {
  return {.depth = depth, .program = test::program()};
}

// A child that does what the file is called.
ProbeOptions faulty(std::chrono::milliseconds timeout = 20s) {
  return {.program = OCTAVO_FAULTY_PROBE, .timeout = timeout};
}

class Probe : public ::testing::Test {
 protected:
  std::string file(const std::string& name) {
    std::ofstream(folder_ / name) << "its name is what counts";
    return (folder_ / name).string();
  }
  void expect_not_opened(const std::string& fault, const std::string& sentence, const ProbeOptions& options) {
    SCOPED_TRACE(fault);
    const auto report = probe_model(file(fault), options);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, ErrorCode::kDamagedFile) << report.error().message;
    EXPECT_NE(report.error().message.find(sentence), std::string::npos) << report.error().message;
    EXPECT_NE(report.error().message.find("it was not opened"), std::string::npos) << report.error().message;
    EXPECT_EQ(report.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(report.error().message.find('\x1b'), std::string::npos);
  }
  test::TemporaryFolder folder_;
};

TEST_F(Probe, FindsNothingInAModelThatHolds) {
  test::tiny_draft().write(folder_ / "m.gguf");
  for (const ProbeDepth depth : {ProbeDepth::kHeader, ProbeDepth::kWhole}) {
    const auto report = probe_model((folder_ / "m.gguf").string(), real(depth));
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_FALSE(report->refusal.has_value());
    EXPECT_EQ(report->confinement.in_force.size() + report->confinement.missing.size(), 5u);
    for (const std::string& missing : report->confinement.missing)
      EXPECT_NE(confinement_text(report->confinement).find(missing), std::string::npos);
    EXPECT_EQ(confinement_text({{"a time limit"}, {}}), "in a confined process");
  }
}

TEST_F(Probe, SaysWhatTheEngineWouldSay) {
  const std::string path = (folder_ / "m.gguf").string();
  test::tiny_draft().set_u32("llama.block_count", 0).write(path);
  const auto refused = probe_model(path, real());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, check_model_file(path, ProbeDepth::kWhole).error().message);
  EXPECT_EQ(refused.error().code, ErrorCode::kDamagedFile);
  EXPECT_EQ(refused.error().subject, "llama.block_count");
  // A list of files reads no vocabulary.
  test::tiny_draft().set_u32("tokenizer.ggml.bos_token_id", 1'000'000).write(path);
  EXPECT_TRUE(probe_model(path, real(ProbeDepth::kHeader)).has_value());
  EXPECT_FALSE(probe_model(path, real(ProbeDepth::kWhole)).has_value());
  EXPECT_EQ(probe_model((folder_ / "none").string(), real()).error().code, ErrorCode::kNotFound);
  // A template that never ends is cut short, and is no reason not to load: prompts as they are still work.
  test::tiny_draft()
      .set_string("tokenizer.chat_template", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
      .write(path);
  EXPECT_TRUE(probe_model(path, real()).has_value());
}

TEST_F(Probe, ReadsAllFilesOfASplitModelAndLinks) {
  test::tiny_draft().write(folder_ / "blob");
  fs::create_directory(folder_ / "snapshot");
  fs::create_symlink("../blob", folder_ / "snapshot" / "m.gguf");
  EXPECT_TRUE(probe_model((folder_ / "snapshot" / "m.gguf").string(), real()).has_value());
  test::ModelDraft first = test::tiny_draft(), second;
  const auto num_tensors = static_cast<std::int32_t>(first.tensors.size());
  second.tensors.push_back(first.tensors.back());
  first.tensors.pop_back();
  std::uint16_t number = 0;
  for (test::ModelDraft* part : {&first, &second}) {
    part->set_number<std::uint16_t>("split.no", number++)
        .set_number<std::uint16_t>("split.count", 2)
        .set_i32("split.tensors.count", num_tensors);
  }
  first.write(folder_ / "m-00001-of-00002.gguf");
  second.write(folder_ / "m-00002-of-00002.gguf");
  const auto report = probe_model((folder_ / "m-00001-of-00002.gguf").string(), real());
  EXPECT_TRUE(report.has_value()) << report.error().message;
}

TEST_F(Probe, ACrashIsOneSentence) {
  expect_not_opened("crash", "made the check crash (", faulty());
  expect_not_opened("abort", "made the check crash (Aborted)", faulty());
  expect_not_opened("line-then-crash", "made the check crash (Aborted)", faulty());
}

TEST_F(Probe, AHangEndsInTime) {
  const auto started = std::chrono::steady_clock::now();
  expect_not_opened("hang", "take longer than 1 s", faulty(1s));
  expect_not_opened("spin", "take longer than 1 s", faulty(1s));
  expect_not_opened("line-then-hang", "made the check crash (Killed)", faulty(1s));
  EXPECT_LT(std::chrono::steady_clock::now() - started, 15s);
}

TEST_F(Probe, WhatItSaysIsReadStrictly) {
  expect_not_opened("garbage", "give no readable result", faulty());
  expect_not_opened("silence", "give no readable result", faulty());
  expect_not_opened("two-lines", "give no readable result", faulty());
  expect_not_opened("half-a-line", "give no readable result", faulty());
  expect_not_opened("status", "give no readable result", faulty());
  expect_not_opened("flood", "print too much", faulty());
}

TEST_F(Probe, MemoryIsLimited) {
  test::tiny_draft().write(folder_ / "m.gguf");
  const auto report = probe_model((folder_ / "m.gguf").string(), real());
  ASSERT_TRUE(report.has_value());
  const auto& missing = report->confinement.missing;
  if (std::find(missing.begin(), missing.end(), "a memory limit") != missing.end())
    GTEST_SKIP() << "memory cannot be limited in this build";
  expect_not_opened("memory", "made the check crash", faulty());
}

TEST_F(Probe, NothingOutsideCanBeReached) {
  test::tiny_draft().write(folder_ / "m.gguf");
  const auto report = probe_model((folder_ / "m.gguf").string(), real());
  ASSERT_TRUE(report.has_value());
  const auto holds = [&](const char* what) {
    const auto& in_force = report->confinement.in_force;
    return std::find(in_force.begin(), in_force.end(), what) != in_force.end();
  };
  if (!holds("a ban on the network and other programs"))
    GTEST_SKIP() << "this machine cannot filter system calls";
  const auto escape = probe_model(file("escape"), faulty());
  ASSERT_FALSE(escape.has_value());
  EXPECT_EQ(escape.error().message, holds("a ban on other files") ? "possible:" : "possible:o");
}

TEST_F(Probe, CanBeCancelledAndThenLeavesNoChild) {
  std::atomic<bool> cancelled = false;
  ProbeOptions options = faulty();
  options.cancelled = [&] { return cancelled.load(); };
  const std::string path = file("hang");
  std::thread canceller([&] {
    std::this_thread::sleep_for(200ms);
    cancelled = true;
  });
  const auto started = std::chrono::steady_clock::now();
  const auto report = probe_model(path, options);
  canceller.join();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 10s);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, not even a dead one
}

TEST_F(Probe, ACheckThatCannotBeStartedOpensNothing) {
  const auto report = probe_model(file("fine"), {.program = (folder_ / "no-such-program").string()});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::kIo);
  EXPECT_NE(report.error().message.find("could not be started"), std::string::npos) << report.error().message;
}

TEST_F(Probe, LeavesNoDescriptorOpen) {
  const auto num_descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  (void)probe_model(file("fine"), faulty());
  const auto before = num_descriptors();
  for (const char* fault : {"fine", "crash", "garbage", "flood", "silence"})
    (void)probe_model(file(fault), faulty());
  EXPECT_EQ(num_descriptors(), before);
}

TEST(ProbeReport, ComesBackAsItWas) {
  ProbeReport report;
  report.confinement = {{"a time limit"}, {"no network"}};
  report.refusal = Error{.code = ErrorCode::kUnsupported, .message = "\xff a\nb \"c\"", .subject = "key"};
  const auto back = read_probe_report(write_probe_report(report));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->confinement.in_force, report.confinement.in_force);
  EXPECT_EQ(back->confinement.missing, report.confinement.missing);
  EXPECT_EQ(back->refusal->code, ErrorCode::kUnsupported);
  EXPECT_EQ(back->refusal->message, "\\xff a\\x0ab \"c\"");
}

TEST(ProbeReport, AnythingElseIsNoReport) {
  const std::string fine = "{\"in_force\":[],\"missing\":[],\"refusal\":null}";
  ASSERT_TRUE(read_probe_report(fine + "\n").has_value());
  for (const std::string& wrong :
       {std::string(), std::string("\n"), fine, fine + "\n\n", fine + fine + "\n", std::string("[]\n"),
        std::string("null\n"), std::string("{}\n"), std::string("{\"in_force\":[],\"missing\":[]}\n"),
        std::string("{\"in_force\":[],\"missing\":[],\"refusal\":null,\"x\":1}\n"),
        std::string("{\"in_force\":[1],\"missing\":[],\"refusal\":null}\n"),
        std::string("{\"in_force\":{},\"missing\":[],\"refusal\":null}\n"),
        std::string("{\"in_force\":[],\"missing\":[],\"refusal\":true}\n"),
        std::string("{\"in_force\":[],\"missing\":[],\"refusal\":{\"code\":\"fine\",\"message\":\"a\","
                    "\"subject\":\"\"}}\n"),
        std::string("{\"in_force\":[],\"missing\":[],\"refusal\":{\"code\":\"io\",\"message\":\"\","
                    "\"subject\":\"\"}}\n"),
        std::string("{\"in_force\":[],\"missing\":[],\"refusal\":{\"code\":\"io\",\"message\":1,\"subject\":"
                    "\"\"}}\n"),
        "{\"in_force\":[\"" + std::string(300, 'x') + "\"],\"missing\":[],\"refusal\":null}\n",
        std::string(200'000, '[') + "\n"}) {
    EXPECT_FALSE(read_probe_report(wrong).has_value()) << wrong.substr(0, 100);
  }
}

}  // namespace
}  // namespace octavo::app
