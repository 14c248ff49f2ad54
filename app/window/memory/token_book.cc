#include "app/window/memory/token_book.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostRequests = 512;

}  // namespace

void TokenBook::begin(RequestId request_id, ChatId chat_id, std::vector<PromptMessage> path,
                      MessageId answer) {
  Entry entry;
  entry.chat_id = chat_id;
  entry.path = std::move(path);
  entry.answer = answer;
  entries_.insert_or_assign(request_id, std::move(entry));
  if (entries_.size() > kMostRequests) entries_.erase(entries_.begin());
}

void TokenBook::accept(RequestId request_id, std::span<const TokenId> prompt) {
  const auto found = entries_.find(request_id);
  if (found != entries_.end()) found->second.prompt.assign(prompt.begin(), prompt.end());
}

void TokenBook::generate(RequestId request_id, std::int32_t output_index, std::span<const TokenId> ids,
                         std::string_view text) {
  const auto found = entries_.find(request_id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  std::vector<TokenId>& output = entry.outputs[output_index];
  const auto begin = static_cast<std::int32_t>(entry.prompt.size() + output.size());
  output.insert(output.end(), ids.begin(), ids.end());
  const auto end = static_cast<std::int32_t>(entry.prompt.size() + output.size());
  if (output_index != 0) return;
  entry.pieces.push_back({entry.answer, entry.answer_bytes, entry.answer_bytes + text.size(), begin, end});
  entry.answer_bytes += text.size();
}

void TokenBook::forget_chat(ChatId chat_id) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.chat_id == chat_id; });
}

std::string TokenBook::text_of(RequestId request_id, std::int32_t output_index, std::int32_t first_position,
                               std::int32_t count, const TokenBytes& bytes) const {
  const auto found = entries_.find(request_id);
  if (found == entries_.end() || !bytes) return {};
  const Entry& entry = found->second;
  const auto output = entry.outputs.find(output_index);
  const auto num_prompt = static_cast<std::int32_t>(entry.prompt.size());
  const std::int32_t num_output =
      output == entry.outputs.end() ? 0 : static_cast<std::int32_t>(output->second.size());
  std::string text;
  const std::int32_t end = std::min(first_position + count, num_prompt + num_output);
  for (std::int32_t i = std::max(0, first_position); i < end; ++i) {
    const TokenId id = i < num_prompt ? entry.prompt[static_cast<std::size_t>(i)]
                                      : output->second[static_cast<std::size_t>(i - num_prompt)];
    text += bytes(id);
  }
  return sanitise_utf8(text);
}

// The prompt's tokens as bytes hold each message's content as it is, in order; what stands between comes from
// the chat template.
void TokenBook::lay_out_prompt(Entry& entry, const TokenBytes& bytes) {
  if (entry.is_laid_out || entry.prompt.empty() || !bytes) return;
  entry.is_laid_out = true;
  std::string text;
  std::vector<std::size_t> ends;
  for (const TokenId id : entry.prompt) {
    text += bytes(id);
    ends.push_back(text.size());
  }
  std::vector<Piece> pieces;
  std::size_t from = 0;
  for (const PromptMessage& message : entry.path) {
    if (message.content.empty()) continue;
    const std::size_t at = text.find(message.content, from);
    if (at == std::string::npos) continue;
    const std::size_t end = at + message.content.size();
    const auto first = std::upper_bound(ends.begin(), ends.end(), at) - ends.begin();
    for (auto i = static_cast<std::size_t>(first); i < ends.size(); ++i) {
      const std::size_t begin_byte = i == 0 ? 0 : ends[i - 1];
      if (begin_byte >= end) break;
      pieces.push_back({message.id, std::max(begin_byte, at) - at, std::min(ends[i], end) - at,
                        static_cast<std::int32_t>(i), static_cast<std::int32_t>(i) + 1});
    }
    from = end;
  }
  entry.pieces.insert(entry.pieces.begin(), pieces.begin(), pieces.end());
  entry.path.clear();
}

std::optional<TokenBook::Place> TokenBook::find(ChatId chat_id, MessageId message, std::size_t begin,
                                                std::size_t end, const TokenBytes& bytes) {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->second.chat_id != chat_id) continue;
    lay_out_prompt(entry->second, bytes);
    Place place{.request_id = entry->first, .begin = -1};
    for (const Piece& piece : entry->second.pieces) {
      const bool meets = piece.begin_byte < end && begin < piece.end_byte;
      if (piece.message != message || !meets) continue;
      if (place.begin < 0) place.begin = piece.begin;
      place.end = piece.end;
    }
    if (place.begin >= 0) return place;
  }
  return std::nullopt;
}

std::vector<TokenBook::Stretch> TokenBook::stretches_of(RequestId request_id, std::int32_t begin,
                                                        std::int32_t end, const TokenBytes& bytes) {
  std::vector<Stretch> stretches;
  const auto found = entries_.find(request_id);
  if (found == entries_.end()) return stretches;
  lay_out_prompt(found->second, bytes);
  for (const Piece& piece : found->second.pieces) {
    if (piece.end <= begin || end <= piece.begin || piece.begin_byte == piece.end_byte) continue;
    const bool joins = !stretches.empty() && stretches.back().message == piece.message &&
                       stretches.back().range.end >= piece.begin_byte;
    if (joins) {
      stretches.back().range.end = std::max(stretches.back().range.end, piece.end_byte);
    } else {
      stretches.push_back({found->second.chat_id, piece.message, {piece.begin_byte, piece.end_byte}});
    }
  }
  return stretches;
}

std::optional<RequestId> TokenBook::newest_of(ChatId chat_id) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->second.chat_id == chat_id) return entry->first;
  }
  return std::nullopt;
}

}  // namespace octavo::app
