#include "app/window/chat/drafts.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Several files together.
constexpr std::int64_t kMostAttachedBytes = std::int64_t{2} << 20;

std::string blocks_of(const std::vector<Attachment>& attachments) {
  std::vector<AttachedFile> files;
  for (const Attachment& attachment : attachments) files.push_back(attachment.file);
  return with_attachments("", files, BlankText::kKeep);
}

}  // namespace

void Drafts::apply(const ui::actions::ChangeDraft& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr) return;
  record->draft.text = a.text;
  context_.count(a.chat_id);
}

void Drafts::apply(const ui::actions::RemoveAttachment& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr) return;
  std::erase_if(record->draft.attachments,
                [&](const Attachment& attachment) { return attachment.shown.id == a.attachment_id; });
  take_changed(a.chat_id, record->draft);
}

std::string Drafts::attach(ChatId chat_id, ReadFile file) {
  const std::string name = escape_for_message(file.name);
  if (!chats_.is_listed(chat_id)) return name + " was not attached because no chat is open";
  Draft& draft = chats_.change(chat_id, Changed::kHead)->draft;
  std::int64_t total = static_cast<std::int64_t>(file.text.size());
  for (const Attachment& attachment : draft.attachments) total += attachment.shown.num_bytes;
  if (total > kMostAttachedBytes)
    return name + " was not attached: the files of one message may add up to 2 MiB";
  draft.attachments.push_back(new_attachment({std::move(file.name), std::move(file.text)}));
  count(chat_id, draft.attachments.back());
  take_changed(chat_id, draft);
  return {};
}

Attachment Drafts::new_attachment(AttachedFile file) {
  Attachment attachment;
  attachment.shown = {
      .id = next_attachment_++, .name = file.name, .num_bytes = static_cast<std::int64_t>(file.text.size())};
  attachment.file = std::move(file);
  return attachment;
}

void Drafts::take_changed(ChatId chat_id, Draft& draft) {
  draft.attachment_blocks = blocks_of(draft.attachments);
  context_.count(chat_id);
}

std::string Drafts::take(ChatId chat_id, const std::string& text) {
  Draft& kept = chats_.change(chat_id, Changed::kHead)->draft;
  const Draft draft = std::exchange(kept, {.num_returned = kept.num_returned});
  std::vector<AttachedFile> files;
  for (const Attachment& attachment : draft.attachments) files.push_back(attachment.file);
  return with_attachments(sanitise_utf8(text), files);
}

void Drafts::give_back(ChatId chat_id, const std::string& message) {
  ChatRecord* record = chats_.change(chat_id, Changed::kHead);
  if (record == nullptr) return;
  Draft typed = std::exchange(record->draft, {});
  restore(record->draft, message);
  record->draft.num_returned = typed.num_returned + 1;
  if (!typed.text.empty()) record->draft.text += "\n\n" + typed.text;
  std::move(typed.attachments.begin(), typed.attachments.end(),
            std::back_inserter(record->draft.attachments));
  for (const Attachment& attachment : record->draft.attachments) count(chat_id, attachment);
  record->draft.attachment_blocks = blocks_of(record->draft.attachments);
}

void Drafts::restore(Draft& draft, const std::string& kept) {
  const SplitMessage parts = split_attachments(kept);
  draft.text = parts.text;
  for (AttachedFile& file : attached_files(parts))
    draft.attachments.push_back(new_attachment(std::move(file)));
  draft.attachment_blocks = blocks_of(draft.attachments);
}

// ---- tokens

void Drafts::set_count_attachment(CountAttachment count_attachment) {
  count_attachment_ = std::move(count_attachment);
  for (const auto& [id, record] : chats_.all()) {
    for (const Attachment& attachment : record.draft.attachments) count(id, attachment);
  }
}

void Drafts::count(ChatId chat_id, const Attachment& attachment) const {
  if (count_attachment_) count_attachment_(chat_id, attachment.shown.id, attachment.file.text);
}

void Drafts::take_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens) {
  ChatRecord* record = chats_.change(chat_id, Changed::kHead);
  if (record == nullptr) return;
  for (Attachment& attachment : record->draft.attachments) {
    if (attachment.shown.id == attachment_id) attachment.shown.num_tokens = num_tokens;
  }
}

}  // namespace octavo::app
