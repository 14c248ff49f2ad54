// Includes go one way. The table is the law; ARCHITECTURE.md says why.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// Folder (or file) -> what it may include beside itself: folders, or single files. Longest prefix counts.
const std::map<std::string, std::set<std::string>>& allowed_includes() {
  static const std::set<std::string> kKernelViews = {"kernels/backend.h",     "kernels/dequantize.h",
                                                     "kernels/kv_layout.h",   "kernels/paged_batch.h",
                                                     "kernels/step_memory.h", "kernels/tensor.h"};
  static const auto with = [](std::set<std::string> folders, const std::set<std::string>& more) {
    folders.insert(more.begin(), more.end());
    return folders;
  };
  static const std::map<std::string, std::set<std::string>> kTable = {
      {"engine/base", {}},
      {"engine/api", {"engine/base"}},
      {"engine/block", {"engine/base", "engine/api"}},
      {"engine/tokenizer", {"engine/base", "engine/api"}},
      {"kernels", {"engine/base"}},
      {"engine/metrics", {"engine/base", "engine/api"}},
      {"engine/scheduler", {"engine/base", "engine/api", "engine/block"}},
      {"engine/experiments", {"engine/base", "engine/api", "engine/block", "engine/scheduler"}},
      {"engine/model", with({"engine/base", "engine/api", "engine/tokenizer"}, kKernelViews)},
      {"engine/runner",
       with({"engine/base", "engine/api", "engine/model", "engine/scheduler/scheduler_output.h"},
            kKernelViews)},
      {"engine",
       {"engine/base", "engine/api", "engine/block", "engine/tokenizer", "engine/scheduler", "engine/model",
        "engine/metrics", "engine/runner", "kernels/backend.h", "kernels/backends.h"}},
      {"ui", {"engine/base", "engine/api"}},
      {"app", {"engine", "ui", "kernels/backends.h", "kernels/machine_limits.h"}},
  };
  return kTable;
}

bool starts_with_folder(const std::string& path, const std::string& folder) {
  return path == folder || (path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
                            path[folder.size()] == '/');
}

// The longest entry of the table that holds `path`.
std::string home_of(const std::string& path) {
  std::string best;
  for (const auto& [folder, unused] : allowed_includes()) {
    if (starts_with_folder(path, folder) && folder.size() > best.size()) best = folder;
  }
  return best;
}

bool may_include(const std::string& file, const std::string& included) {
  const std::string home = home_of(file);
  if (home_of(included) == home) return true;
  for (const std::string& allowed : allowed_includes().at(home)) {
    if (starts_with_folder(included, allowed)) return true;
  }
  return false;
}

std::vector<fs::path> sources_under(const std::string& folder) {
  std::vector<fs::path> files;
  const fs::path root = fs::path(OCTAVO_SOURCE_DIR) / folder;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".cuh")
      files.push_back(entry.path());
  }
  return files;
}

std::vector<std::string> quoted_includes(const fs::path& file) {
  std::vector<std::string> includes;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("#include \"", 0) != 0) continue;
    const std::size_t end = line.find('"', 10);
    includes.push_back(line.substr(10, end - 10));
  }
  return includes;
}

std::string relative_name(const fs::path& file) {
  return fs::relative(file, OCTAVO_SOURCE_DIR).generic_string();
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
    if (!fs::exists(fs::path(OCTAVO_SOURCE_DIR) / "kernels" / backend)) continue;
    for (const fs::path& file : sources_under(std::string("kernels/") + backend)) {
      for (const std::string& included : quoted_includes(file)) {
        for (const char* other : {"kernels/reference", "kernels/cpu", "kernels/cuda"}) {
          if (std::string("kernels/") + backend == other) continue;
          EXPECT_FALSE(starts_with_folder(included, other))
              << relative_name(file) << " includes " << included;
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
      std::ifstream stream(file);
      std::string text((std::istreambuf_iterator<char>(stream)), {});
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
      std::ifstream stream(file);
      const std::string text((std::istreambuf_iterator<char>(stream)), {});
      for (const auto& [word, instead] : banned) {
        EXPECT_EQ(text.find(word), std::string::npos)
            << relative_name(file) << ": " << word << " is banned; use " << instead;
      }
    }
  }
}

}  // namespace
