#include "ui/views/memory/requests_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kRowHeight = 30, kHeadHeight = 26, kCellGap = 12;
constexpr float kWideWithMap = 1200, kMapWidth = 470;
constexpr float kLeastList = 200, kLeastDetail = 520, kListShare = 0.34f;

struct ColumnLook {
  const char* id;
  const char* title;
  const char* help;
  float width;  // design pixels; of the client, the least
  int order;    // which stay where there is little room: the lowest
  bool is_number;
};
constexpr std::array<ColumnLook, kNumRequestColumns> kColumns = {{
    {"number", "#", "Number of the request", 44, 1, true},
    {"client", "Client", "Chat, comparison or program that asked", 120, 0, false},
    {"arrived", "Arrived", "When it was asked", 64, 8, false},
    {"waiting", "Waiting", "From the question until it was first given blocks", 66, 9, true},
    {"prompt", "Reading", "From then until the first token: reading the prompt", 66, 7, true},
    {"first_token", "First token", "From the question until the first token", 84, 5, true},
    {"speed", "tok/s", "Tokens of an output, behind its first", 56, 4, true},
    {"tokens", "Tokens", "Of the prompt", 60, 3, true},
    {"account", "What became of them",
     "Tokens of the prompt: reused live, reused from the cache, copied, restored, "
     "computed",
     150, 6, false},
    {"reused", "Reused", "Share of the prompt that did not have to be computed", 62, 10, true},
    {"lost", "Lost", "Time that went into computing again what an earlier prompt has", 62, 11, true},
    {"cause", "Why", "Why no more of the prompt was reused", 130, 2, false},
}};

// Which columns there is room for, and how wide they are; 0: not shown.
std::vector<float> column_widths(const Frame& frame, float width) {
  std::vector<float> widths(kNumRequestColumns, 0.0f);
  float room = width;
  for (int order = 0; order < static_cast<int>(kNumRequestColumns); ++order) {
    for (std::size_t i = 0; i < kNumRequestColumns; ++i) {
      if (kColumns[i].order != order) continue;
      const float wanted = frame.px(kColumns[i].width) + frame.px(kCellGap);
      if (order > 1 && wanted > room) continue;
      widths[i] = frame.px(kColumns[i].width);
      room -= wanted;
    }
  }
  const auto client = static_cast<std::size_t>(RequestColumn::kClient);
  const auto cause = static_cast<std::size_t>(RequestColumn::kCause);
  const float more = std::max(0.0f, room);
  const bool has_cause = widths[cause] > 0;
  widths[client] =
      std::max(frame.px(40), widths[client] + (has_cause ? more * 0.75f : more) + std::min(0.0f, room));
  if (has_cause) widths[cause] += more * 0.25f;
  return widths;
}

std::string time_or_nothing(double ms) { return ms < 0 ? std::string("–") : duration_text(ms); }

double reused_share(const ShownRequest& request) {
  if (!request.account || request.num_prompt <= 0) return -1;
  return static_cast<double>(num_reused(*request.account)) / static_cast<double>(request.num_prompt);
}

// What a column sorts by, where it is a figure.
std::optional<double> figure_of(const ShownRequest& request, RequestColumn column) {
  switch (column) {
    case RequestColumn::kNumber: return static_cast<double>(request.number);
    case RequestColumn::kArrived: return static_cast<double>(request.arrived_ms);
    case RequestColumn::kWaiting: return request.queue_ms;
    case RequestColumn::kPrompt: return request.prompt_ms;
    case RequestColumn::kFirstToken: return request.ttft_ms;
    case RequestColumn::kSpeed: return request.tokens_per_s;
    case RequestColumn::kTokens: return static_cast<double>(request.num_prompt);
    case RequestColumn::kAccount:
      return request.account ? static_cast<double>(request.account->num_computed) : -1.0;
    case RequestColumn::kReused: return reused_share(request);
    case RequestColumn::kLost: return request.lost_seconds.value_or(-1);
    case RequestColumn::kClient:
    case RequestColumn::kCause: break;
  }
  return std::nullopt;
}

const std::string& text_of(const ShownRequest& request, RequestColumn column) {
  return column == RequestColumn::kClient ? request.client : request.cause;
}

std::string phase_text(const ShownRequest& request) {
  switch (request.phase) {
    case RequestPhase::kWaiting: return "waiting";
    case RequestPhase::kRunning: return request.num_generated > 0 ? "answering" : "reading the prompt";
    case RequestPhase::kFailed: return "failed";
    case RequestPhase::kFinished: break;
  }
  return cause_word(request.cause);
}

std::string cell_text(const ShownRequest& request, RequestColumn column) {
  switch (column) {
    case RequestColumn::kNumber: return std::to_string(request.number);
    case RequestColumn::kClient: return request.client;
    case RequestColumn::kArrived: return request.arrived;
    case RequestColumn::kWaiting: return time_or_nothing(request.queue_ms);
    case RequestColumn::kPrompt: return time_or_nothing(request.prompt_ms);
    case RequestColumn::kFirstToken: return time_or_nothing(request.ttft_ms);
    case RequestColumn::kSpeed: return request.tokens_per_s < 0 ? "–" : short_number(request.tokens_per_s);
    case RequestColumn::kTokens: return request.num_prompt < 0 ? "–" : with_thousands(request.num_prompt);
    case RequestColumn::kReused: {
      const double share = reused_share(request);
      return share < 0 ? "–" : percent_text(share);
    }
    case RequestColumn::kLost:
      return request.lost_tokens > 0 && request.lost_seconds ? duration_text(*request.lost_seconds * 1000)
                                                             : "–";
    case RequestColumn::kCause: return phase_text(request);
    case RequestColumn::kAccount: break;
  }
  return {};
}

std::string row_help(const ShownRequest& request) {
  std::string text =
      "Request " + std::to_string(request.number) + " · " + request.client + " · " + request.route;
  if (!request.key.empty() && !request.is_of_window) text += "\nKey: " + request.key;
  if (!request.id.empty()) text += "\n" + request.id;
  if (!request.error.empty()) return text + "\n" + request.error;
  if (!request.sentence.empty()) text += "\n" + request.sentence;
  if (request.num_preemptions > 0) text += "\nPreempted " + count_text(request.num_preemptions, "time");
  return text + "\nClick to compare its prompt with the nearest earlier one";
}

// What lies behind the last whole block is computed again whoever asks.
bool is_avoidable(const ShownRequest& row) { return row.lost_tokens > 0 && row.cause != "none"; }

// "differs 12 (38 s)" of the requests that lost time.
std::string losses_text(const std::vector<ShownRequest>& rows) {
  std::map<std::string, std::pair<std::int64_t, double>> causes;
  for (const ShownRequest& row : rows) {
    if (!is_avoidable(row)) continue;
    auto& [count, seconds] = causes[row.cause];
    ++count;
    seconds += row.lost_seconds.value_or(0);
  }
  std::string text;
  for (const auto& [cause, lost] : causes) {
    text += (text.empty() ? "lost: " : ", ") + cause_word(cause) + " " + with_thousands(lost.first);
    if (lost.second > 0) text += " (" + duration_text(lost.second * 1000) + ")";
  }
  return text;
}

}  // namespace

// ---- words and colours

ImU32 account_colour(const Theme& theme, TokenAccount part) {
  switch (part) {
    case TokenAccount::kLive: return theme.accent;
    case TokenAccount::kCached: return theme.owner(0);
    case TokenAccount::kCopied: return theme.owner(5);
    case TokenAccount::kRestored: return theme.owner(3);
    case TokenAccount::kComputed: break;
  }
  return theme.warning;
}

const char* account_word(TokenAccount part) {
  switch (part) {
    case TokenAccount::kLive: return "reused live";
    case TokenAccount::kCached: return "reused from the cache";
    case TokenAccount::kCopied: return "copied";
    case TokenAccount::kRestored: return "restored";
    case TokenAccount::kComputed: break;
  }
  return "computed";
}

const char* account_help(TokenAccount part) {
  switch (part) {
    case TokenAccount::kLive: return "Found in blocks that somebody else was using at that moment";
    case TokenAccount::kCached: return "Found in blocks that nobody used, but that were kept";
    case TokenAccount::kCopied: return "Copied from a block that holds other tokens behind them";
    case TokenAccount::kRestored: return "Came back from the host pool";
    case TokenAccount::kComputed: break;
  }
  return "Read by the model, which takes time";
}

std::string cause_word(const std::string& cause) {
  if (cause == "none") return "all reused";
  if (cause == "continues") return "continues";
  if (cause == "first_of_its_kind") return "first of its kind";
  if (cause == "not_kept") return "not kept";
  if (cause == "being_computed") return "still being computed";
  if (cause == "other_salt") return "shares nothing";
  if (cause == "no_checkpoint") return "no state kept";
  if (cause == "behind_window") return "behind the window";
  if (cause == "not_read") return "cache not read";
  if (cause == "no_longer_known") return "no longer known";
  return cause;
}

void draw_account_bar(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 extent,
                      const ShownRequest& request) {
  list->AddRectFilled(low, {low.x + extent.x, low.y + extent.y}, frame.theme.free, frame.px(2));
  if (request.num_prompt <= 0) return;
  std::int64_t before = 0;
  const auto place = [&](std::int64_t tokens) {
    return std::round(low.x + extent.x * static_cast<float>(tokens) / static_cast<float>(request.num_prompt));
  };
  if (!request.account) {  // while it runs, only how much was found is known
    if (request.num_cached > 0)
      list->AddRectFilled(low, {place(request.num_cached), low.y + extent.y}, frame.theme.muted);
    return;
  }
  for (std::size_t i = 0; i < kNumTokenAccounts; ++i) {
    const auto part = static_cast<TokenAccount>(i);
    const std::int64_t count = std::max(0, tokens_of(*request.account, part));
    if (count == 0) continue;
    const float left = place(before), right = std::max(place(before + count), place(before) + 1);
    before += count;
    const ImU32 colour = account_colour(frame.theme, part);
    list->AddRectFilled({left, low.y}, {right, low.y + extent.y}, colour);
    if (part != TokenAccount::kComputed) continue;
    // Stripes: told apart without its colour, too.
    list->PushClipRect({left, low.y}, {right, low.y + extent.y}, true);
    for (float x = left - extent.y; x < right; x += frame.px(5))
      list->AddLine({x, low.y + extent.y}, {x + extent.y, low.y}, with_alpha(frame.theme.panel, 0.55f),
                    frame.px(1));
    list->PopClipRect();
  }
}

// ---- the page

void RequestsView::draw(const Frame& frame, const MemoryWorkspaceState& state, BlockMap& map,
                        Pointing& pointing, ImVec2 extent) {
  pointed_ = 0;
  if (state.requests.chosen != 0) {
    const float list = std::clamp(std::floor(extent.y * kListShare), frame.px(kLeastList), frame.px(420));
    draw_list(frame, state, {extent.x, list});
    gap(frame, 12);
    const float rest = extent.y - list - frame.px(12);
    detail_.draw(frame, state.requests, {extent.x, std::max(rest, frame.px(kLeastDetail))});
  } else if (extent.x >= frame.px(kWideWithMap) && state.snapshot != nullptr) {
    draw_list(frame, state, {extent.x - frame.px(kMapWidth + 12), extent.y});
    beside(frame, 12);
    map.draw(frame, state, {frame.px(kMapWidth), extent.y}, pointing);
  } else {
    const float least_map = frame.px(300);
    const bool has_map =
        state.snapshot != nullptr && extent.y > frame.px(kLeastList) + least_map + frame.px(12);
    draw_list(frame, state, {extent.x, has_map ? extent.y - least_map - frame.px(12) : extent.y});
    if (has_map) {
      gap(frame, 12);
      map.draw(frame, state, {extent.x, least_map}, pointing);
    }
  }
  if (pointed_ != state.requests.hovered) frame.actions.push(actions::HoverRequest{pointed_});
}

void RequestsView::draw_list(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent) {
  const RequestsState& requests = state.requests;
  begin_card(frame, "requests", extent);
  const auto running =
      std::count_if(requests.rows->begin(), requests.rows->end(), [](const ShownRequest& row) {
        return row.phase == RequestPhase::kRunning || row.phase == RequestPhase::kWaiting;
      });
  std::string note = with_thousands(requests.rows->size());
  if (running > 0) note += " · " + with_thousands(running) + " under way";
  const std::string losses = losses_text(*requests.rows);
  heading_line(frame, "Requests", losses.empty() ? note : note + " · " + losses);
  gap(frame, 4);
  draw_filter(frame, requests);
  gap(frame, 6);
  draw_rows(frame, state);
  end_card();
}

// Who asked: all, or one after the other.
void RequestsView::draw_filter(const Frame& frame, const RequestsState& requests) {
  std::vector<std::string> groups;
  for (const ShownRequest& row : *requests.rows)
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.push_back(row.group);
  std::sort(groups.begin(), groups.end());
  if (!group_.empty() && std::find(groups.begin(), groups.end(), group_) == groups.end()) group_.clear();
  if (chip(frame, "filter_client", group_.empty() ? "all clients" : group_,
           {.max_width = frame.px(260), .is_on = !group_.empty()})) {
    const auto next = std::upper_bound(groups.begin(), groups.end(), group_);
    group_ = next == groups.end() ? std::string() : *next;
  }
  tooltip(frame, "Whose requests are listed: of all, or of one client after the other");
  if (group_.empty()) return;
  beside(frame, 8);
  if (chip(frame, "filter_none", "Show all")) group_.clear();
}

void RequestsView::sort_by(RequestColumn column) {
  is_ascending_ = column_ == column ? !is_ascending_
                                    : column == RequestColumn::kClient || column == RequestColumn::kCause;
  column_ = column;
}

std::vector<std::uint64_t> RequestsView::shown_numbers(const RequestsState& requests) const {
  std::vector<std::uint64_t> numbers;
  for (const std::uint32_t index : order_)
    if (index < requests.rows->size()) numbers.push_back((*requests.rows)[index].number);
  return numbers;
}

void RequestsView::update_order(const RequestsState& requests) {
  const int key = static_cast<int>(column_) * 2 + (is_ascending_ ? 1 : 0);
  if (ordered_ == requests.rows && order_key_ == key && ordered_group_ == group_) return;
  ordered_ = requests.rows;
  order_key_ = key;
  ordered_group_ = group_;
  const auto& rows = *requests.rows;
  order_.clear();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (group_.empty() || rows[i].group == group_) order_.push_back(static_cast<std::uint32_t>(i));
  // What is not known stands last, whichever way it goes.
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t left, std::uint32_t right) {
    const auto mine = figure_of(rows[left], column_), theirs = figure_of(rows[right], column_);
    if (!mine || !theirs) {
      const std::string &a = text_of(rows[left], column_), &b = text_of(rows[right], column_);
      if (a.empty() != b.empty()) return b.empty();
      return is_ascending_ ? a < b : b < a;
    }
    if ((*mine < 0) != (*theirs < 0)) return *theirs < 0;
    return is_ascending_ ? *mine < *theirs : *theirs < *mine;
  });
}

void RequestsView::draw_head(const Frame& frame, const std::vector<float>& widths) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  float x = at.x;
  for (std::size_t i = 0; i < kNumRequestColumns; ++i) {
    if (widths[i] <= 0) continue;
    const ColumnLook& look = kColumns[i];
    const bool is_on = static_cast<std::size_t>(column_) == i;
    TextStyle style = tiny_text(frame);
    if (is_on) style.colour = frame.theme.text;
    std::string title = look.title;
    if (is_on) title += is_ascending_ ? " ↑" : " ↓";
    ImGui::SetCursorScreenPos({x, at.y});
    if (ImGui::InvisibleButton(look.id, {widths[i], frame.px(kHeadHeight - 4)}, ImGuiButtonFlags_EnableNav))
      sort_by(static_cast<RequestColumn>(i));
    if (ImGui::IsItemHovered() || ImGui::IsItemFocused())
      list->AddRectFilled({x - frame.px(4), at.y},
                          {x + widths[i] + frame.px(4), at.y + frame.px(kHeadHeight - 4)}, frame.theme.raised,
                          frame.px(4));
    tooltip(frame, std::string(look.help) + "\nClick to sort by it");
    const float width = std::min(text_width(frame, style, title), widths[i]);
    draw_text(frame, list, {look.is_number ? x + widths[i] - width : x, at.y + frame.px(2)}, style, title,
              widths[i] + 1);
    x += widths[i] + frame.px(kCellGap);
  }
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(kHeadHeight)});
}

void RequestsView::draw_rows(const Frame& frame, const MemoryWorkspaceState& state) {
  const RequestsState& requests = state.requests;
  update_order(requests);
  if (order_.empty()) {
    draw_hint(frame,
              "No requests yet. Every question of a chat or a comparison is listed here, and those of "
              "programs that ask the server (Settings).");
    return;
  }
  const float scrollbar = ImGui::GetStyle().ScrollbarSize;
  const std::vector<float> widths = column_widths(frame, ImGui::GetContentRegionAvail().x - scrollbar);
  draw_head(frame, widths);
  ImGui::BeginChild("request_rows", {0, 0}, ImGuiChildFlags_NavFlattened);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(order_.size()), frame.px(kRowHeight));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_row(frame, state, (*requests.rows)[order_[static_cast<std::size_t>(i)]], widths);
  }
  ImGui::EndChild();
}

void RequestsView::draw_row(const Frame& frame, const MemoryWorkspaceState& state,
                            const ShownRequest& request, const std::vector<float>& widths) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.px(kRowHeight), width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(static_cast<int>(request.number));
  const bool was_pressed = ImGui::InvisibleButton("request_row", {width, height}, ImGuiButtonFlags_EnableNav);
  ImGui::PopID();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool is_chosen = state.requests.chosen == request.number;
  const bool is_pointed = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  if (is_pointed || is_chosen)
    list->AddRectFilled(at, {at.x + width, at.y + height - 1}, frame.theme.raised, frame.px(4));
  if (is_chosen) list->AddRectFilled(at, {at.x + frame.px(2), at.y + height - 1}, frame.theme.accent);
  if (ImGui::IsItemHovered()) pointed_ = request.number;
  tooltip(frame, row_help(request));
  if (was_pressed) frame.actions.push(actions::ChooseRequest{is_chosen ? 0 : request.number});
  float x = at.x + frame.px(4);
  const float y = at.y + frame.px(5);
  const ImU32 ground = is_pointed || is_chosen ? frame.theme.raised : frame.theme.panel;
  for (std::size_t i = 0; i < kNumRequestColumns; ++i) {
    if (widths[i] <= 0) continue;
    const auto column = static_cast<RequestColumn>(i);
    const float room = widths[i] - (i == 0 ? frame.px(4) : 0.0f);
    if (column == RequestColumn::kAccount) {
      draw_account_bar(frame, list, {x, at.y + frame.px(10)}, {room, frame.px(10)}, request);
    } else {
      TextStyle style = small_text(frame);
      if (column == RequestColumn::kClient) style.colour = frame.theme.text;
      const bool is_alarm = request.phase == RequestPhase::kFailed;
      if (column == RequestColumn::kCause && is_alarm) style.colour = readable(frame.theme.error, ground);
      if (column == RequestColumn::kCause && request.phase == RequestPhase::kRunning)
        style.colour = readable(frame.theme.accent, ground);
      if (column == RequestColumn::kLost && is_avoidable(request))
        style.colour = readable(frame.theme.warning, ground);
      const std::string text = cell_text(request, column);
      const float text_room = std::min(text_width(frame, style, text), room);
      draw_text(frame, list, {kColumns[i].is_number ? x + room - text_room : x, y}, style, text, room + 1);
    }
    x += room + frame.px(kCellGap);
  }
}

}  // namespace octavo::ui
