// What is no regular file, what is larger than any disk, and files whose names lie. G10, G11, G14.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "tests/hostile/hostile_files.h"

namespace octavo::test {
namespace {

namespace fs = std::filesystem;

// A valid header over a file that claims its tensors' bytes and stores none.
fs::path write_sparse(const fs::path& path, const ModelDraft& draft, std::uint64_t size) {
  write_file(path, draft.header_bytes());
  if (::truncate(path.c_str(), static_cast<off_t>(size)) != 0)
    return path;  // the test then says what is wrong
  return path;
}

}  // namespace

void add_odd_files(HostileFiles& files) {
  const auto add = [&](const std::string& name, const std::string& rule, const std::string& sentence,
                       std::function<fs::path(const fs::path&)> make, Refused refused = Refused::kOpening) {
    files.push_back({"files/" + name, rule, sentence, std::move(make), refused});
  };
  add("missing", "G11", "none.gguf", [](const fs::path& folder) { return folder / "none.gguf"; });
  add("below-a-file", "G11", "below.gguf", [](const fs::path& folder) {
    tiny_draft().write(folder / "file.gguf");
    return folder / "file.gguf" / "below.gguf";
  });
  add("folder", "G14", "holds neither a config.json nor a .gguf file", [](const fs::path& folder) {
    fs::create_directories(folder / "folder.gguf");
    return folder / "folder.gguf";
  });
  add("pipe", "G14", "is a pipe", [](const fs::path& folder) {
    ::mkfifo((folder / "pipe.gguf").c_str(), 0600);
    return folder / "pipe.gguf";
  });
  add("socket", "G14", "cannot be opened", [](const fs::path& folder) {
    const int made = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (folder / "s.gguf").string();
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    (void)::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::close(made);
    return folder / "s.gguf";
  });
  add("endless-device", "G14", "is a device", [](const fs::path&) { return fs::path("/dev/zero"); });
  add("empty-device", "G14", "is a device", [](const fs::path&) { return fs::path("/dev/null"); });
  add("link-to-itself", "G14", "loop.gguf", [](const fs::path& folder) {
    fs::create_symlink("loop.gguf", folder / "loop.gguf");
    return folder / "loop.gguf";
  });
  add("link-to-nothing", "G14", "dangling.gguf", [](const fs::path& folder) {
    fs::create_symlink("nothing.gguf", folder / "dangling.gguf");
    return folder / "dangling.gguf";
  });
  add("link-to-a-device", "G14", "is a device", [](const fs::path& folder) {
    fs::create_symlink("/dev/zero", folder / "zero.gguf");
    return folder / "zero.gguf";
  });
  add("file-without-a-size", "G11", "ends within", [](const fs::path&) { return fs::path("/proc/version"); });
  add("sparse-giant-of-zeros", "G10", "not a GGUF file", [](const fs::path& folder) {
    std::ofstream(folder / "giant.gguf").flush();
    (void)::truncate((folder / "giant.gguf").c_str(), off_t{1} << 40);
    return folder / "giant.gguf";
  });
  add("sparse-giant-with-a-magic", "G10", "is not supported", [](const fs::path& folder) {
    std::ofstream(folder / "giant.gguf") << "GGUF";
    (void)::truncate((folder / "giant.gguf").c_str(), off_t{1} << 40);
    return folder / "giant.gguf";
  });
  add("sparse-giant-with-a-giant-tensor", "G10", "has the shape", [](const fs::path& folder) {
    ModelDraft draft = tiny_draft();
    draft.tensors.resize(1);
    draft.tensors[0].dimensions = {std::uint64_t{1} << 37};
    return write_sparse(folder / "giant.gguf", draft, std::uint64_t{1} << 40);
  });
  add("sparse-giant-of-a-key", "G10", "larger than 512 MiB", [](const fs::path& folder) {
    ModelDraft draft = tiny_draft();
    draft.tensors.clear();
    draft.set_raw_array("x", 0, std::uint64_t{600} << 20, {});
    return write_sparse(folder / "giant.gguf", draft, std::uint64_t{1} << 34);
  });
  add("sparse-giant-of-booleans", "G10", "", [](const fs::path& folder) {
    ModelDraft draft = tiny_draft();
    draft.tensors.clear();
    draft.set_raw_array("x", 7, std::uint64_t{400} << 20, {});
    return write_sparse(folder / "giant.gguf", draft, std::uint64_t{1} << 34);
  });
  add("sparse-giant-of-many-empty-strings", "G10", "", [](const fs::path& folder) {
    ModelDraft draft = tiny_draft();
    draft.tensors.clear();
    // The array is the last thing in the file; everything behind its length reads as zero.
    draft.remove("tokenizer.ggml.tokens").set_raw_array("tokenizer.ggml.tokens", 8, 1u << 22, {});
    return write_sparse(folder / "giant.gguf", draft, std::uint64_t{1} << 34);
  });
  // A model that holds, of layers that nobody can keep: 16 GiB for each of its large matrices.
  add(
      "larger-than-memory", "M1", "memory",
      [](const fs::path& folder) {
        ModelDraft draft = tiny_draft({.weight_type = TensorType::kF32});
        constexpr std::uint64_t kWidth = 65'536, kHidden = 1u << 20;
        draft.set_u32("llama.embedding_length", kWidth).set_u32("llama.feed_forward_length", kHidden);
        draft.set_u32("llama.attention.head_count", 1024)
            .set_u32("llama.attention.head_count_kv", 1024)
            .set_u32("llama.context_length", 1u << 24);
        std::uint64_t offset = 0;
        for (ModelDraft::Tensor& each : draft.tensors) {
          const bool is_vector = each.dimensions.size() == 1;
          const auto grown = [&](std::uint64_t size) {
            return size == 128 ? kHidden : size == kTinyVocabularySize ? size : kWidth;
          };
          each.bytes.clear();
          each.offset = offset;
          std::uint64_t elements = 1;
          for (std::uint64_t& dimension : each.dimensions)
            elements *= dimension = is_vector ? kWidth : grown(dimension);
          offset += elements * 4;
        }
        return write_sparse(folder / "giant.gguf", draft, draft.header_bytes().size() + offset + 64);
      },
      Refused::kLoading);
  for (const auto& [what, name] :
       std::vector<std::pair<std::string, std::string>>{{"a-line-break", "a\nb.gguf"},
                                                        {"terminal-sequences", "\x1b[2J\x1b]0;x\x07.gguf"},
                                                        {"reversed-text",
                                                         "\xe2\x80\xae"
                                                         "fugg.gguf"},
                                                        {"invalid-utf-8", "\xff\xfe.gguf"},
                                                        {"200-bytes", std::string(200, 'n') + ".gguf"}}) {
    add("named-with-" + what, "G9", "not a GGUF file", [n = name](const fs::path& folder) {
      std::ofstream(folder / n) << "what is in it does not matter";
      return folder / n;
    });
  }
}

}  // namespace octavo::test
