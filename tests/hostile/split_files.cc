// G13: models in several files that do not belong together.
#include <sys/stat.h>

#include <array>
#include <cstdio>

#include "tests/hostile/hostile_files.h"

namespace octavo::test {
namespace {

namespace fs = std::filesystem;

std::string part_name(unsigned number, unsigned count) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "m-%05u-of-%05u.gguf", number, count);
  return name.data();
}

// The tiny model in two files: the first has all keys and half of the tensors.
std::array<ModelDraft, 2> two_parts() {
  ModelDraft first = tiny_draft(), second;
  const std::size_t half = first.tensors.size() / 2, all = first.tensors.size();
  second.tensors.assign(first.tensors.begin() + static_cast<std::ptrdiff_t>(half), first.tensors.end());
  first.tensors.resize(half);
  second.set_string("general.architecture", "llama");
  std::uint16_t number = 0;
  for (ModelDraft* part : {&first, &second}) {
    part->set_number<std::uint16_t>("split.no", number++).set_number<std::uint16_t>("split.count", 2);
    part->set_i32("split.tensors.count", static_cast<std::int32_t>(all));
  }
  return {first, second};
}

}  // namespace

void add_split_files(HostileFiles& files) {
  const auto add = [&](const std::string& name, const std::string& sentence,
                       std::function<void(std::array<ModelDraft, 2>&)> change,
                       std::function<void(const fs::path&)> afterwards = {}) {
    files.push_back({"split/" + name, "G13", sentence, [=](const fs::path& folder) {
                       std::array<ModelDraft, 2> parts = two_parts();
                       change(parts);
                       for (unsigned i = 0; i < 2; ++i) parts[i].write(folder / part_name(i + 1, 2));
                       if (afterwards) afterwards(folder);
                       return folder / part_name(1, 2);
                     }});
  };
  add("wrong-number", "split.no",
      [](auto& parts) { parts[1].template set_number<std::uint16_t>("split.no", 0); });
  add("number-beyond-the-count", "split.no",
      [](auto& parts) { parts[1].template set_number<std::uint16_t>("split.no", 7); });
  add("wrong-count", "split.count",
      [](auto& parts) { parts[1].template set_number<std::uint16_t>("split.count", 3); });
  add("count-of-zero", "split.count",
      [](auto& parts) { parts[0].template set_number<std::uint16_t>("split.count", 0); });
  add("wrong-tensor-count", "split.tensors.count",
      [](auto& parts) { parts[0].set_i32("split.tensors.count", 3); });
  add("negative-tensor-count", "split.tensors.count",
      [](auto& parts) { parts[0].set_i32("split.tensors.count", -1); });
  add("number-as-string", "split.no", [](auto& parts) { parts[0].set_string("split.no", "0"); });
  add("number-missing", "split.no", [](auto& parts) { parts[1].remove("split.no"); });
  add("count-missing", "split.count", [](auto& parts) { parts[1].remove("split.count"); });
  add("tensor-count-missing", "split.tensors.count",
      [](auto& parts) { parts[1].remove("split.tensors.count"); });
  add("other-architecture", "general.architecture",
      [](auto& parts) { parts[1].set_string("general.architecture", "gpt2"); });
  add("other-width", "llama.embedding_length",
      [](auto& parts) { parts[1].set_u32("llama.embedding_length", 128); });
  add("tensor-in-both", "also in another file",
      [](auto& parts) { parts[1].tensors[0] = parts[0].tensors[0]; });
  add("tensor-missing", "", [](auto& parts) { parts[1].tensors.pop_back(); });
  add(
      "second-is-damaged", "not a GGUF file", [](auto&) {},
      [](const fs::path& folder) { write_file(folder / part_name(2, 2), std::vector<std::byte>(100)); });
  add(
      "second-is-cut", "is outside", [](auto&) {},
      [](const fs::path& folder) { fs::resize_file(folder / part_name(2, 2), 8192); });
  add(
      "second-is-missing", "cannot be opened", [](auto&) {},
      [](const fs::path& folder) { fs::remove(folder / part_name(2, 2)); });
  add(
      "second-is-a-folder", "is a directory", [](auto&) {},
      [](const fs::path& folder) {
        fs::remove(folder / part_name(2, 2));
        fs::create_directories(folder / part_name(2, 2));
      });
  add(
      "second-is-a-pipe", "is a pipe", [](auto&) {},
      [](const fs::path& folder) {
        fs::remove(folder / part_name(2, 2));
        ::mkfifo((folder / part_name(2, 2)).c_str(), 0600);
      });
  add("second-is-the-first-again", "", [](auto& parts) { parts[1] = parts[0]; });
  const auto named = [&](const std::string& what, const std::string& name, const std::string& sentence) {
    files.push_back({"split/" + what, "G13", sentence, [=](const fs::path& folder) {
                       tiny_draft().write(folder / name);
                       return folder / name;
                     }});
  };
  named("name-counts-from-zero", "m-00000-of-00003.gguf", "its name says");
  named("name-beyond-the-count", "m-00004-of-00003.gguf", "its name says");
  named("name-of-none", "m-00001-of-00000.gguf", "its name says");
  named("name-of-1001", "m-00001-of-01001.gguf", "its name says");
  named("name-of-99999", "m-00001-of-99999.gguf", "its name says");
  files.push_back(changed("split/part-under-an-ordinary-name", "G13", "split.count", [](ModelDraft& d) {
    d.set_number<std::uint16_t>("split.no", 0)
        .set_number<std::uint16_t>("split.count", 3)
        .set_i32("split.tensors.count", 30);
  }));
}

}  // namespace octavo::test
