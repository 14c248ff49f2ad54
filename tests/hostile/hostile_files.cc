#include "tests/hostile/hostile_files.h"

namespace octavo::test {

std::string file_name_of(const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '-');
  return file + ".gguf";
}

HostileFile unharmed_file() {
  return changed("unharmed", "", "", [](ModelDraft&) {});
}

HostileFile changed(std::string name, std::string rule, std::string sentence,
                    std::function<void(ModelDraft&)> change, Refused refused, TinyDraftOptions options) {
  auto make = [name, change = std::move(change), options](const std::filesystem::path& folder) {
    ModelDraft draft = tiny_draft(options);
    change(draft);
    const std::filesystem::path path = folder / file_name_of(name);
    draft.write(path);
    return path;
  };
  return {std::move(name), std::move(rule), std::move(sentence), std::move(make), refused};
}

HostileFile raw(std::string name, std::string rule, std::string sentence, std::vector<std::byte> bytes) {
  auto make = [name, bytes = std::move(bytes)](const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / file_name_of(name);
    write_file(path, bytes);
    return path;
  };
  return {std::move(name), std::move(rule), std::move(sentence), std::move(make)};
}

HostileFiles all_hostile_files() {
  HostileFiles files;
  add_container_files(files);
  add_hyperparameter_files(files);
  add_architecture_files(files);
  add_vocabulary_files(files);
  add_template_files(files);
  add_tensor_files(files);
  add_weight_files(files);
  add_split_files(files);
  add_odd_files(files);
  return files;
}

}  // namespace octavo::test
