#include "app/window/chat/file_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/chat/chat_import.h"
#include "app/files/whole_file.h"
#include "engine/base/ascii.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"
#include "engine/metrics/recording_file.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

// Beyond this the text alone would take more memory than a chat program should.
constexpr std::uintmax_t kLargestImport = std::uintmax_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

ReadFile unusable(const std::string& path, const std::string& problem) {
  return {.kind = FileKind::kUnusable, .path = path, .problem = escape_for_message(path) + " " + problem};
}

bool is_model(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic).good() && std::string_view(magic, sizeof magic) == "GGUF";
}

bool has_extension(const fs::path& path, std::string_view wanted) {
  return ascii_lower_case(path.extension().string()) == wanted;
}

// Text for people: no control characters but the ones that lay it out.
bool is_text(const std::string& bytes) {
  const bool plain = std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' &&
           c != '\x1b';
  });
  return plain && sanitise_utf8(bytes) == bytes;
}

// Lines end as a model knows them.
std::string with_plain_line_ends(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r')
      result += text[i];
    else if (i + 1 >= text.size() || text[i + 1] != '\n')
      result += '\n';
  }
  return result;
}

// As people type paths: blanks around it, and ~ for their folder.
fs::path typed_path(const std::string& typed) {
  const std::size_t begin = typed.find_first_not_of(" \t"), end = typed.find_last_not_of(" \t");
  if (begin == std::string::npos) return {};
  return expand_home(typed.substr(begin, end - begin + 1), home_folder());
}

ReadFile read_text(const fs::path& path, std::string bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  if (!is_text(bytes)) return unusable(path.string(), "is not UTF-8 text and was not attached");
  if (bytes.find_first_not_of(" \t\r\n") == std::string::npos)
    return unusable(path.string(), "is empty and was not attached");
  return {.kind = FileKind::kText,
          .path = path.string(),
          .name = first_line(sanitise_utf8(path.filename().string()), kLongestName),
          .text = with_plain_line_ends(bytes)};
}

ReadFile read_chats(const fs::path& path, const std::string& bytes) {
  auto imported = import_chats(bytes, path.filename().string());
  if (!imported)
    return {.kind = FileKind::kUnusable, .path = path.string(), .problem = imported.error().message};
  return {.kind = FileKind::kChats,
          .path = path.string(),
          .name = first_line(sanitise_utf8(path.filename().string()), kLongestName),
          .chats = std::move(imported->chats),
          .left_out = left_out_sentence(imported->left_out)};
}

// What is neither a model nor a recording. Texts are attached; only chats may be as large as years of them
// are.
ReadFile read_text_or_chats(const fs::path& path, std::uintmax_t size, ReadAs as) {
  const bool may_be_chats = as == ReadAs::kChats || (as == ReadAs::kAny && has_extension(path, ".json"));
  const bool may_be_text = as != ReadAs::kChats && size <= kLargestAttachment;
  if (!may_be_chats && !may_be_text)
    return unusable(path.string(),
                    "is larger than 1 MiB and was not attached; attach only the part you need");
  if (size > kLargestImport) return unusable(path.string(), "is larger than 1 GiB; import it in parts");
  std::string bytes;
  if (const int reason = read_whole_file(path, bytes); reason != 0)
    return unusable(path.string(), std::string("cannot be read: ") + std::strerror(reason));
  if (may_be_chats) {
    ReadFile file = read_chats(path, bytes);
    if (file.kind == FileKind::kChats || !may_be_text) return file;
  }
  return read_text(path, std::move(bytes));
}

}  // namespace

ReadFile read_file(const std::string& wanted, ReadAs as) {
  const fs::path path = as == ReadAs::kAny ? fs::path(wanted) : typed_path(wanted);
  const std::string name = path.string();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return unusable(name, "does not exist");
  if (fs::is_directory(status)) return unusable(name, "is a folder; choose files inside it");
  if (!fs::is_regular_file(status)) return unusable(name, "is not a regular file");
  if (!std::ifstream(path, std::ios::binary)) return unusable(name, "cannot be read; check its permissions");
  if (as == ReadAs::kAny && is_model(path)) return {.kind = FileKind::kModel, .path = name};
  if (as == ReadAs::kAny && metrics::is_recording(path)) return {.kind = FileKind::kRecording, .path = name};
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return unusable(name, "cannot be read: " + error.message());
  return read_text_or_chats(path, size, as);
}

FileReader::FileReader(std::function<void()> wake_up)
    : jobs_([this](const FilesToRead& files) -> std::optional<FilesRead> { return read_all(files); },
            std::move(wake_up), JobsLeft::kDropped) {}

FilesRead FileReader::read_all(const FilesToRead& files) const {
  FilesRead result{files.reader, files.chat_id, {}};
  for (const std::string& path : files.paths) {
    if (!jobs_.stopping()) result.files.push_back(read_file(path, files.as));
  }
  return result;
}

}  // namespace octavo::app
