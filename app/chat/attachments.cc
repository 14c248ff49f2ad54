#include "app/chat/attachments.h"

#include <algorithm>
#include <optional>

#include "app/chat/chat.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::string_view kMark = "file: ";
constexpr std::size_t kShortestFence = 3;
// Text that only looks like a file is tried again further on, but not indefinitely.
constexpr int kMostAttempts = 16;

std::size_t longest_run_of_backticks(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

std::string block_name(const std::string& name) {
  std::string clean = first_line(sanitise_utf8(name), 200);
  std::replace(clean.begin(), clean.end(), '`', '\'');
  return clean.empty() ? "file" : clean;
}

std::string block_of(const AttachedFile& file) {
  const std::string fence(std::max(kShortestFence, longest_run_of_backticks(file.text) + 1), '`');
  std::string block = fence;
  block.append(kMark).append(block_name(file.name)).append("\n").append(file.text);
  if (file.text.empty() || file.text.back() != '\n') block += '\n';
  return block + fence;
}

std::string names_of(const std::vector<AttachedFile>& files) {
  std::string names;
  for (const AttachedFile& file : files) names += (names.empty() ? "" : ", ") + block_name(file.name);
  return names;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// The file whose fence begins at `at`, which moves behind it; none where there is no such block.
std::optional<SplitMessage::File> read_block(std::string_view content, std::size_t& at) {
  const std::size_t fence_end = content.find_first_not_of('`', at);
  if (fence_end == std::string_view::npos || fence_end - at < kShortestFence) return std::nullopt;
  const std::string_view fence = content.substr(at, fence_end - at);
  if (!content.substr(fence_end).starts_with(kMark)) return std::nullopt;
  const std::size_t name_begin = fence_end + kMark.size(), name_end = content.find('\n', name_begin);
  if (name_end == std::string_view::npos || name_end == name_begin) return std::nullopt;
  const std::string closing = "\n" + std::string(fence);
  const std::size_t text_end = content.find(closing, name_end);
  if (text_end == std::string_view::npos) return std::nullopt;
  SplitMessage::File file{content.substr(name_begin, name_end - name_begin), {}};
  if (text_end > name_end) file.text = content.substr(name_end + 1, text_end - name_end);
  at = text_end + closing.size();
  return file;
}

// All that follows `at`, when it is files and nothing else.
std::vector<SplitMessage::File> read_blocks(std::string_view content, std::size_t at) {
  std::vector<SplitMessage::File> files;
  while (true) {
    const auto file = read_block(content, at);
    if (!file) return {};
    files.push_back(*file);
    if (at == content.size()) return files;
    if (!content.substr(at).starts_with("\n\n")) return {};
    at += 2;
  }
}

}  // namespace

std::string with_attachments(std::string_view text, const std::vector<AttachedFile>& files, BlankText blank) {
  std::string content(text);
  if (files.empty()) return content;
  if (blank == BlankText::kNameFiles && is_blank(text)) content = "Attached: " + names_of(files);
  for (const AttachedFile& file : files) content.append("\n\n").append(block_of(file));
  return content;
}

SplitMessage split_attachments(std::string_view content) {
  const std::string opening = "```" + std::string(kMark);
  std::size_t found = content.find(opening);
  for (int attempt = 0; attempt < kMostAttempts && found != std::string_view::npos; ++attempt) {
    std::size_t begin = found;
    while (begin > 0 && content[begin - 1] == '`') --begin;
    if (begin >= 2 && content.substr(begin - 2, 2) == "\n\n") {
      if (auto files = read_blocks(content, begin); !files.empty())
        return {content.substr(0, begin - 2), std::move(files)};
    }
    found = content.find(opening, found + 1);
  }
  return {content, {}};
}

std::vector<AttachedFile> attached_files(const SplitMessage& message) {
  std::vector<AttachedFile> files;
  for (const SplitMessage::File& file : message.files)
    files.push_back({std::string(file.name), std::string(file.text)});
  return files;
}

}  // namespace octavo::app
