#include "app/window/file_reader.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/conversation/conversation_import.h"
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

std::string read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_model(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof magic).good() && std::string_view(magic, sizeof magic) == "GGUF";
}

bool has_extension(const fs::path& path, std::string_view wanted) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return extension == wanted;
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
std::string typed_path(const std::string& typed) {
  const std::size_t begin = typed.find_first_not_of(" \t"), end = typed.find_last_not_of(" \t");
  if (begin == std::string::npos) return {};
  const std::string path = typed.substr(begin, end - begin + 1);
  const char* const home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

ReadFile read_text(const fs::path& path, std::string bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  if (!is_text(bytes)) return unusable(path.string(), "is not UTF-8 text and was not attached");
  if (bytes.find_first_not_of(" \t\r\n") == std::string::npos)
    return unusable(path.string(), "is empty and was not attached");
  return {.kind = FileKind::kText,
          .path = path.string(),
          .name = first_line(sanitise_utf8(path.filename().string()), 200),
          .text = with_plain_line_ends(bytes)};
}

ReadFile with_chats(const fs::path& path, std::vector<Conversation> chats) {
  return {.kind = FileKind::kChats,
          .path = path.string(),
          .name = first_line(sanitise_utf8(path.filename().string()), 200),
          .chats = std::move(chats)};
}

// Too large to be attached; chats of years are larger.
ReadFile read_large(const fs::path& path, std::uintmax_t size, ReadAs as) {
  if (as == ReadAs::kText || !has_extension(path, ".json"))
    return unusable(path.string(), "is larger than 1 MiB and was not attached: attach the part that matters");
  if (size > kLargestImport) return unusable(path.string(), "is larger than 1 GiB: import it in parts");
  auto chats = import_conversations(read_whole(path), path.filename().string());
  if (chats) return with_chats(path, *std::move(chats));
  return {.kind = FileKind::kUnusable, .path = path.string(), .problem = chats.error().message};
}

}  // namespace

ReadFile read_file(const std::string& wanted, ReadAs as) {
  const std::string name = as == ReadAs::kText ? typed_path(wanted) : wanted;
  const fs::path path(name);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return unusable(name, "is not there");
  if (fs::is_directory(status)) return unusable(name, "is a folder: choose the files in it");
  if (!fs::is_regular_file(status)) return unusable(name, "is not a file");
  if (!std::ifstream(path, std::ios::binary))
    return unusable(name, "cannot be read: its permissions forbid it");
  if (as == ReadAs::kAny && is_model(path)) return {.kind = FileKind::kModel, .path = name};
  if (as == ReadAs::kAny && metrics::is_recording(path)) return {.kind = FileKind::kRecording, .path = name};
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return unusable(name, "cannot be read: " + error.message());
  if (size > kLargestAttachment) return read_large(path, size, as);
  std::string bytes = read_whole(path);
  if (as == ReadAs::kAny && has_extension(path, ".json")) {
    if (auto chats = import_conversations(bytes, path.filename().string()); chats)
      return with_chats(path, *std::move(chats));
  }
  return read_text(path, std::move(bytes));
}

FileReader::FileReader(std::function<void()> wake_up)
    : wake_up_(std::move(wake_up)), thread_([this] { run(); }) {}

FileReader::~FileReader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void FileReader::read(FilesToRead files) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(files));
  }
  changed_.notify_one();
}

std::vector<FilesRead> FileReader::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

bool FileReader::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void FileReader::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !wanted_.empty(); });
    if (stopping_) return;
    const FilesToRead wanted = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    FilesRead result{wanted.session_id, {}};
    for (const std::string& path : wanted.paths) {
      if (!stopping()) result.files.push_back(read_file(path, wanted.as));
    }
    lock.lock();
    results_.push_back(std::move(result));
    lock.unlock();
    wake_up_();
    lock.lock();
  }
}

}  // namespace octavo::app
