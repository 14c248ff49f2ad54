// What a hub says of models, as plain values: checked when they are made (hub_json.h), so that a name or path
// in here never leaves the folder that it is put in.
//
// Values; any thread. Texts are valid UTF-8 and still somebody else's: they are escaped where they are shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::hub {

struct HubFile {
  std::string path;  // inside the repository: "Q4_K_M/model-00001-of-00002.gguf"
  std::int64_t bytes = 0;
  std::string sha256 = {};   // 64 digits of large files; empty: a small one, named by git_oid
  std::string git_oid = {};  // 40 digits: SHA-1 of "blob SIZE\0" and the content

  // Under which name a cache keeps it.
  const std::string& blob_name() const { return sha256.empty() ? git_oid : sha256; }
};

enum class Gate { kOpen, kAsks };  // kAsks: its owner's terms have to be accepted on the hub first

struct HubRepository {
  std::string name;      // "org/name"
  std::string revision;  // as asked: "main"
  std::string commit;    // 40 digits
  std::string licence = {};
  Gate gate = Gate::kOpen;
  std::vector<HubFile> files = {};  // sorted by path

  std::int64_t bytes() const;
};

// A row of a search.
struct HubModel {
  std::string name;
  std::string licence = {};
  Gate gate = Gate::kOpen;
  std::int64_t downloads = 0;
  std::int64_t likes = 0;
};

// "name" or "org/name" of letters, digits, '.', '_' and '-'.
bool is_repository_name(std::string_view text);

// Relative, without "..", empty parts, backslashes and control characters, of at most 512 bytes.
bool is_safe_path(std::string_view path);

// Lower-case hexadecimal digits, exactly so many.
bool is_hex(std::string_view text, std::size_t num_digits);

}  // namespace octavo::hub
