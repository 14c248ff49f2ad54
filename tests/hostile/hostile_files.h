// The table of hostile files: a name, the rule that it breaks (reliability rules G1..G14 of containers,
// M1..M8 of what is inside), how it is made, and what must come out. Nothing is stored: each is made from a
// valid tiny model by one lie.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/tiny_draft.h"

namespace octavo::test {

// Where a file is refused.
enum class Refused {
  kOpening,    // by `octavo inspect` and by `octavo generate`
  kMessages,   // by `octavo inspect`, and by `octavo generate` when the chat template is used
  kLoading,    // by `octavo generate`; it can be looked into
  kAnswering,  // the model loads, and the request fails
};

struct HostileFile {
  std::string name;      // "container/duplicate-key-equal"
  std::string rule;      // "G9"
  std::string sentence;  // must stand in the message
  std::function<std::filesystem::path(const std::filesystem::path& folder)> make;
  Refused refused = Refused::kOpening;
};

using HostileFiles = std::vector<HostileFile>;

// "container-duplicate-key-equal.gguf"
std::string file_name_of(const std::string& name);

// The valid model that all are made from.
HostileFile unharmed_file();

// A valid model with one change.
HostileFile changed(std::string name, std::string rule, std::string sentence,
                    std::function<void(ModelDraft&)> change, Refused refused = Refused::kOpening,
                    TinyDraftOptions options = {});
// A file of these bytes.
HostileFile raw(std::string name, std::string rule, std::string sentence, std::vector<std::byte> bytes);

void add_container_files(HostileFiles& files);
void add_hyperparameter_files(HostileFiles& files);
void add_architecture_files(HostileFiles& files);
void add_vocabulary_files(HostileFiles& files);
void add_template_files(HostileFiles& files);
void add_tensor_files(HostileFiles& files);
void add_weight_files(HostileFiles& files);
void add_split_files(HostileFiles& files);
void add_odd_files(HostileFiles& files);  // no regular files, giants, names that lie

HostileFiles all_hostile_files();

}  // namespace octavo::test
