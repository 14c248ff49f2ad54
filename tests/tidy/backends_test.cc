// Every operation of kernels/backend.h stands in a file of the same name in every backend.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace {

namespace fs = std::filesystem;

struct BackendFolder {
  const char* folder;
  const char* class_name;
  const char* extension;
};
constexpr BackendFolder kBackends[] = {
    {"reference", "ReferenceBackend", ".cc"}, {"cpu", "CpuBackend", ".cc"}, {"cuda", "CudaBackend", ".cu"}};

// The virtual functions that compute or move something, and the file that each stands in.
const std::map<std::string, std::string>& operations() {
  static const std::map<std::string, std::string> kFiles = {
      {"embed", "embedding"},
      {"embed_layers", "embedding"},
      {"attention_input", "attention_input"},
      {"latent_attention_input", "latent_attention_input"},
      {"paged_attention", "paged_attention"},
      {"project_heads", "project_heads"},
      {"project_residual", "project_residual"},
      {"feed_forward_input", "feed_forward_input"},
      {"feed_forward_experts", "feed_forward_experts"},
      {"join_next_tokens", "join_next_tokens"},
      {"logits", "logits"},
      {"hidden_states", "hidden_states"},
      {"draw_tokens", "draw_tokens"},
      {"start_draws", "draw_tokens"},
      {"take_draws", "draw_tokens"},
      {"softmax_weights", "softmax_weights"},
      {"copy_blocks", "block_copy"},
      {"swap_out", "block_copy"},
      {"swap_in", "block_copy"},
      {"take_swap_times", "block_copy"},
      {"gate_attention", "gate_attention"},
      {"gated_delta_net", "gated_delta_net"},
      {"state_space", "state_space"},
      {"short_convolution", "short_convolution"},
      {"accept_delta_net", "gated_delta_net"},
      {"accept_state_space", "state_space"},
      {"accept_short_convolution", "short_convolution"},
      {"clear_states", "block_copy"},
      {"copy_states", "block_copy"},
      {"swap_states_out", "block_copy"},
      {"swap_states_in", "block_copy"},
      {"begin_step", "step"},
      {"run_step", "step"},
      {"steps_to_rehearse", "step"},
      {"steps_to_record", "step"},
      {"record_step", "step"},
      {"record_draws", "draw_tokens"},
  };
  return kFiles;
}

// The virtual functions that say what a backend is, allocate, or lend its threads: <folder>_backend.* has
// them.
const std::set<std::string>& properties() {
  static const std::set<std::string> kNames = {"name",
                                               "isa",
                                               "notice",
                                               "num_threads",
                                               "status",
                                               "device_bytes",
                                               "prepare_matrix",
                                               "prepare_vector",
                                               "allocate_kv_cache",
                                               "scratch_bytes",
                                               "reserve_step",
                                               "allocate_buffer",
                                               "allocate_host_kv_cache",
                                               "allocate_state_cache",
                                               "allocate_host_state_cache",
                                               "draws_tokens",
                                               "most_adjusted_tokens",
                                               "most_started_draws",
                                               "num_kept_rotations",
                                               "keep_rotations",
                                               "for_each_on_host"};
  return kNames;
}

// Operations that a backend leaves to Backend's own, and why.
const std::map<std::string, std::set<std::string>>& inherited() {
  // The host's sampler draws from rows in its memory; copies end with their calls; there is nothing to fill
  // up, load or record.
  static const std::set<std::string> kOfADevice = {"draw_tokens",       "start_draws",     "take_draws",
                                                   "record_draws",      "take_swap_times", "run_step",
                                                   "steps_to_rehearse", "steps_to_record", "record_step"};
  static const auto kOfReference = [] {
    std::set<std::string> names = kOfADevice;
    names.insert("begin_step");  // each operation reads the rows that it is given
    return names;
  }();
  static const std::map<std::string, std::set<std::string>> kNames = {
      {"reference", kOfReference},
      {"cpu", kOfADevice},
      {"cuda",
       {"embed_layers", "latent_attention_input", "project_heads", "feed_forward_experts", "gate_attention",
        "gated_delta_net", "join_next_tokens", "state_space", "short_convolution", "accept_delta_net",
        "accept_state_space", "accept_short_convolution", "clear_states", "copy_states", "swap_states_out",
        "swap_states_in"}}};
  return kNames;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(octavo::test::source_folder() / file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The names of the virtual functions of `text`, by what stands before their opening brackets.
std::set<std::string> virtual_functions(const std::string& text) {
  std::set<std::string> names;
  const std::string word = "\n  virtual ";
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = text.find('(', at);
    std::size_t begin = end;
    while (begin > at && is_word(text[begin - 1])) --begin;
    if (text[begin - 1] != '~') names.insert(text.substr(begin, end - begin));
  }
  return names;
}

TEST(Backends, TheListOfOperationsIsThatOfTheHeader) {
  const std::string header = text_of("kernels/backend.h");
  const std::size_t begin = header.find("\nclass Backend {");
  ASSERT_NE(begin, std::string::npos);
  std::set<std::string> listed = properties();
  for (const auto& [operation, file] : operations()) listed.insert(operation);
  EXPECT_EQ(virtual_functions(header.substr(begin)), listed);
}

TEST(Backends, HaveEveryOperationInTheFileOfItsName) {
  for (const BackendFolder& backend : kBackends) {
    const fs::path folder = fs::path("kernels") / backend.folder;
    for (const auto& [operation, file] : operations()) {
      if (inherited().at(backend.folder).count(operation) != 0) continue;
      const fs::path source = folder / (file + backend.extension);
      EXPECT_NE(text_of(source).find(std::string(backend.class_name) + "::" + operation + "("),
                std::string::npos)
          << operation << " is not in " << source.generic_string();
    }
  }
}

TEST(Backends, LeaveToTheBaseOnlyWhatIsListed) {
  for (const BackendFolder& backend : kBackends) {
    const std::string header =
        text_of(fs::path("kernels") / backend.folder / (std::string(backend.folder) + "_backend.h"));
    for (const std::string& operation : inherited().at(backend.folder)) {
      EXPECT_EQ(header.find(" " + operation + "("), std::string::npos)
          << backend.folder << " has its own " << operation;
    }
  }
}

TEST(Backends, TheCheckReadsNamesOfFunctions) {
  EXPECT_EQ(
      virtual_functions("class A {\n  virtual ~A();\n  virtual int one() const;\n  virtual void two(\n"),
      (std::set<std::string>{"one", "two"}));
}

}  // namespace
