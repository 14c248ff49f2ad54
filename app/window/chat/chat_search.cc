#include "app/window/chat/chat_search.h"

#include <utility>

#include "app/store/text_search.h"
#include "engine/base/text.h"

namespace octavo::app {

void ChatSearch::apply(const ui::actions::ShowSearch& a) {
  state_.search_open = a.open;
  if (!a.open) search({});
}

void ChatSearch::search(const std::string& query) {
  ui::SearchState& search = state_.library.search;
  search = {.query = sanitise_utf8(query), .hits = {}};
  const TextQuery words(search.query);
  for (const ChatId id : chats_.list()) {
    const std::string title = title_of(*chats_.find(id));
    const auto match = words.find_in(title);
    if (!match) continue;
    ui::SearchHitState& hit = search.hits.emplace_back();
    hit.chat_id = id;
    hit.title = title;
    hit.excerpt = match->excerpt;
    hit.match_begin = match->begin;
    hit.match_end = match->end;
  }
  ++newest_search_;
  if (keeper_.store() == nullptr) return;
  keeper_.store()->search(newest_search_, search.query);
  search.running = !words.empty();
}

void ChatSearch::take(const SearchProgress& report) {
  ui::SearchState& search = state_.library.search;
  if (report.search_id != newest_search_) return;
  for (const SearchHit& hit : report.hits) {
    if (!chats_.is_listed(hit.chat_id)) continue;
    search.hits.push_back({.chat_id = hit.chat_id,
                           .message_id = hit.message_id,
                           .title = title_of(*chats_.find(hit.chat_id)),
                           .excerpt = hit.match.excerpt,
                           .match_begin = hit.match.begin,
                           .match_end = hit.match.end,
                           .role = hit.role,
                           .branch_index = hit.branch.index,
                           .num_branches = hit.branch.count,
                           .on_shown_path = hit.on_active_path});
  }
  search.running = !report.done;
}

}  // namespace octavo::app
