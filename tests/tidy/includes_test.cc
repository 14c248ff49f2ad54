// Includes go one way. The table is the law; ARCHITECTURE.md says why.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "tests/tidy/tree.h"

namespace octavo::tidy {
namespace {

namespace fs = std::filesystem;

// Folder (or file) -> what it may include beside itself: folders, or single files. The longest prefix counts,
// and an entry opens a folder with everything below it.
const std::map<std::string, std::set<std::string>>& allowed_includes() {
  using Names = std::set<std::string>;
  static const Names kKernelViews = {
      "kernels/backend.h",      "kernels/dequantize.h",  "kernels/kv_layout.h",
      "kernels/state_layout.h", "kernels/paged_batch.h", "kernels/step_memory.h",
      "kernels/tensor.h",       "kernels/quantize.h",    "kernels/float8.h"};
  static const Names kPolicy = {"engine/base", "engine/api", "engine/block", "engine/scheduler"};
  // What app calls of the engine: values, the door and the parts that stand without it.
  static const Names kEngine = {"engine/api",
                                "engine/base",
                                "engine/chat_template",
                                "engine/comparison",
                                "engine/engine.h",
                                "engine/grammar/json_schema.h",
                                "engine/llm.h",
                                "engine/metrics",
                                "engine/model",
                                "engine/model_preview.h",
                                "engine/output_collector.h",
                                "engine/shared_engine.h",
                                "engine/tokenizer"};
  static const auto with = [](Names folders, const Names& more) {
    folders.insert(more.begin(), more.end());
    return folders;
  };
  static const std::map<std::string, Names> kTable = {
      {"engine/base", {}},
      {"engine/api", {"engine/base"}},
      {"engine/block", {"engine/base", "engine/api"}},
      {"engine/chat_template", {"engine/base", "engine/api"}},
      {"engine/tokenizer", {"engine/base", "engine/api", "engine/chat_template"}},
      {"kernels", {"engine/base"}},
      {"kernels/backends.cc", {"engine/base", "kernels"}},  // chooses among the backends
      {"kernels/step_memory.cc", {"engine/base", "kernels"}},
      {"kernels/reference", {"engine/base", "kernels"}},
      {"kernels/cpu", {"engine/base", "kernels"}},
      {"kernels/cuda", {"engine/base", "kernels"}},
      {"engine/grammar", {"engine/base", "engine/api", "engine/chat_template", "engine/tokenizer"}},
      {"engine/metrics", {"engine/base", "engine/api"}},
      {"engine/scheduler", {"engine/base", "engine/api", "engine/block"}},
      {"engine/experiments", kPolicy},
      {"engine/experiments/real", with(kPolicy, {"engine/engine.h", "engine/experiments"})},
      {"engine/model",
       with({"engine/base", "engine/api", "engine/chat_template", "engine/tokenizer"}, kKernelViews)},
      {"engine/runner",
       with({"engine/base", "engine/api", "engine/block/window_manager.h", "engine/grammar/token_grammar.h",
             "engine/model", "engine/scheduler/draft_gate.h", "engine/scheduler/scheduler_output.h"},
            kKernelViews)},
      // engine.h is the interface that the engine thread implements.
      {"engine/core", with(kPolicy, {"engine/engine.h", "engine/grammar", "engine/metrics",
                                     "engine/runner/runner.h", "engine/tokenizer"})},
      {"engine/comparison",
       {"engine/base", "engine/api", "engine/model", "engine/model_preview.h", "engine/opened_model.h",
        "engine/runner", "engine/scheduler/scheduler_output.h", "engine/tokenizer"}},
      {"engine",
       {"engine/base", "engine/api", "engine/block", "engine/tokenizer", "engine/scheduler", "engine/model",
        "engine/metrics", "engine/runner", "engine/core", "kernels/backend.h", "kernels/backends.h"}},
      {"ui", {"engine/base", "engine/api"}},
      {"app/files", {}},
      {"app/charts", {"engine/base"}},
      {"app/experiments", {"app/charts", "app/json", "engine/api", "engine/base", "engine/experiments"}},
      {"app/json", {"engine/api", "engine/base"}},
      {"app/chat", {"app/files", "app/json", "engine/api", "engine/base", "engine/tokenizer"}},
      {"app/store", {"app/chat", "app/files", "engine/api", "engine/base"}},
      {"app/server/http", {"app/files", "engine/base"}},
      {"app/requests", with(kEngine, {"app/json"})},
      {"app/server", with(kEngine, {"app/chat", "app/json", "app/requests", "app/server/http"})},
      {"app/http_client", {"app/server/http/message.h", "engine/base"}},
      {"app/hub", with(kEngine, {"app/files", "app/http_client", "app/json"})},
      {"app/remote", with(kEngine, {"app/http_client", "app/json"})},
      {"app/serving_bench",
       {"app/charts", "app/http_client", "app/json", "app/remote", "engine/base", "engine/experiments"}},
      {"app/probe", with(kEngine, {"app/files"})},
      {"app/commands",
       with(kEngine,
            {"app/chat", "app/files", "app/http_client", "app/hub", "app/json", "app/remote", "app/charts",
             "app/experiments", "app/server", "app/serving_bench", "engine/experiments",
             "engine/runner/runner_plan.h", "kernels/backends.h", "kernels/machine_limits.h"})},
      {"app/window/platform", {"app/files", "app/store/store_files.h", "engine/base", "ui"}},
      {"app/window/chat",
       with(kEngine, {"app/chat", "app/files", "app/store", "app/window/compare/compared_chats.h",
                      "app/window/give_action.h", "app/window/job_thread.h", "app/window/kept_token_ids.h",
                      "app/window/memory/token_book.h", "app/window/models/model_title.h",
                      "app/window/plan_context.h", "ui"})},
      {"app/window/compare",
       with(kEngine, {"app/chat", "app/json/csv_field.h", "app/window/kept_token_ids.h",
                      "app/window/memory/sequence_names.h", "app/window/plan_context.h", "ui"})},
      {"app/window/two_models",
       with(kEngine, {"app/chat", "app/window/chat/file_reader.h", "app/window/compare/compared_chats.h",
                      "app/window/job_thread.h", "app/window/models/model_title.h", "ui"})},
      {"app/window/memory", with(kEngine, {"app/json", "app/requests", "app/window/job_thread.h",
                                           "app/window/models/model_title.h", "app/charts", "app/experiments",
                                           "app/files/whole_file.h", "engine/core", "engine/experiments",
                                           "engine/scheduler", "ui"})},
      {"app/window/server",
       with(kEngine, {"app/files", "app/json", "app/requests", "app/server", "app/window/job_thread.h",
                      "app/window/models/engine_closer.h", "ui"})},
      {"app/window/models", with(kEngine, {"app/files", "app/http_client", "app/hub", "app/probe",
                                           "app/remote", "app/window/chat/token_counter.h",
                                           "app/window/job_thread.h", "app/window/platform/secret_service.h",
                                           "app/window/settings.h", "engine/runner/runner_plan.h", "ui"})},
      {"app/window", with(kEngine, {"app/chat", "app/files", "app/probe", "app/remote", "app/requests",
                                    "app/server", "app/store", "app/window", "ui"})},
      {"app/main.cc", {"app", "engine"}},
  };
  return kTable;
}

// The longest entry of the table that holds `path`.
std::string home_of(const std::string& path) {
  std::string best;
  for (const auto& [folder, unused] : allowed_includes())
    if (is_under(path, folder) && folder.size() > best.size()) best = folder;
  return best;
}

bool may_include(const std::string& file, const std::string& included) {
  const std::string home = home_of(file);
  if (home_of(included) == home) return true;
  for (const std::string& allowed : allowed_includes().at(home)) {
    if (is_under(included, allowed)) return true;
  }
  return false;
}

TEST(Includes, GoOneWay) {
  std::size_t num_includes = 0;
  for (const char* folder : {"app", "engine", "kernels", "ui"}) {
    for (const fs::path& file : sources_under(folder)) {
      ASSERT_NE(home_of(relative_name(file)), "") << relative_name(file) << " is in no folder of the table";
      for (const std::string& included : quoted_includes(file)) {
        ++num_includes;
        if (home_of(included).empty()) continue;  // a library that is included with quotes
        EXPECT_TRUE(may_include(relative_name(file), included))
            << relative_name(file) << " must not include " << included;
      }
    }
  }
  EXPECT_GT(num_includes, 100u);
}

TEST(Includes, TheCheckFindsAnUpwardInclude) {
  EXPECT_FALSE(may_include("engine/block/block_pool.cc", "engine/scheduler/scheduler.h"));
  EXPECT_FALSE(may_include("kernels/backend.h", "engine/api/request.h"));
  EXPECT_FALSE(may_include("ui/views/chat_view.cc", "engine/engine.h"));
  EXPECT_TRUE(may_include("engine/engine.cc", "kernels/backends.h"));
}

TEST(Includes, BackendsDoNotSeeEachOther) {
  for (const char* backend : {"reference", "cpu", "cuda"}) {
    if (!fs::exists(root() / "kernels" / backend)) continue;
    for (const fs::path& file : sources_under(std::string("kernels/") + backend)) {
      for (const std::string& included : quoted_includes(file)) {
        for (const char* other : {"kernels/reference", "kernels/cpu", "kernels/cuda"}) {
          if (std::string("kernels/") + backend == other) continue;
          EXPECT_FALSE(is_under(included, other)) << relative_name(file) << " includes " << included;
        }
      }
    }
  }
}

TEST(Includes, DrawingKnowsNeitherFilesNorLocksNorThreads) {
  const std::set<std::string> forbidden = {"<fstream>", "<mutex>", "<thread>", "<condition_variable>",
                                           "<filesystem>"};
  for (const fs::path& file : sources_under("ui")) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
      if (line.rfind("#include <", 0) != 0) continue;
      const std::string header = line.substr(9, line.find('>') - 8);
      if (relative_name(file).rfind("ui/fonts", 0) == 0 && header == "<filesystem>")
        continue;  // looks for the system's fonts at start
      EXPECT_EQ(forbidden.count(header), 0u) << relative_name(file) << " includes " << header;
    }
  }
}

TEST(Headers, BeginWithACommentAndGuardThemselves) {
  for (const char* folder : {"app", "engine", "kernels", "ui"}) {
    for (const fs::path& file : sources_under(folder)) {
      if (file.extension() != ".h") continue;
      const std::string text = text_of(file);
      EXPECT_EQ(text.rfind("//", 0), 0u) << relative_name(file) << " does not say what it is for";
      EXPECT_NE(text.find("#pragma once"), std::string::npos) << relative_name(file);
    }
  }
}

TEST(Sources, UseNothingThatIsBanned) {
  // What, and what to use instead.
  const std::map<std::string, std::string> banned = {
      {"std::regex", "a hand-written scanner: the library's recurses"},
      {"<cassert>", "OCTAVO_CHECK for our own invariants, a Result for the world's"},
      {"\nusing namespace ", "the full name"},
      {"rand()", "uniform_at"},
      {"ImGui::Text(", "TextUnformatted: model text is data"},
  };
  for (const char* folder : {"app", "engine", "kernels", "ui"}) {
    for (const fs::path& file : sources_under(folder)) {
      const std::string text = text_of(file);
      for (const auto& [word, instead] : banned) {
        EXPECT_EQ(text.find(word), std::string::npos)
            << relative_name(file) << ": " << word << " is banned; use " << instead;
      }
    }
  }
}

}  // namespace
}  // namespace octavo::tidy
