#include "ui/views/server_view.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "engine/base/format.h"
#include "ui/desktop_actions.h"
#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 680, kNarrowestTwo = 420;
constexpr float kLogHeight = 150, kLogLine = 20;

void label(const Frame& frame, std::string_view text) {
  line(frame, small_text(frame), text);
  gap(frame, 6);
}

void note(const Frame& frame, std::string_view text, float width) {
  gap(frame, 4);
  paragraph(frame, tiny_text(frame), text, width);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Names between commas or spaces.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : text + ",") {
    const bool ends = c == ',' || c == ' ' || c == ';' || c == '\t';
    if (!ends) {
      name += c;
    } else if (!name.empty()) {
      names.push_back(std::exchange(name, {}));
    }
  }
  return names;
}

// 0: it is no port.
int port_in(const std::string& text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && port >= 1 && port <= 65535 ? port : 0;
}

void draw_lines(const Frame& frame, const ServerState& server, float width) {
  label(frame, "Ready to paste");
  for (std::size_t i = 0; i < server.lines.size(); ++i) {
    const ClientLine& client = server.lines[i];
    ImGui::PushID(static_cast<int>(i));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float name = std::min(frame.px(160), width * 0.35f), copy = frame.px(32);
    ImDrawList* list = ImGui::GetWindowDrawList();
    TextStyle style = small_text(frame), mono = mono_text(frame);
    style.colour = frame.theme.text;
    draw_text(frame, list, {at.x, at.y + frame.px(4)}, style, client.program, name - frame.px(8));
    draw_text(frame, list, {at.x + name, at.y + frame.px(5)}, mono, client.text,
              width - name - copy - frame.px(8));
    ImGui::SetCursorScreenPos({at.x + width - copy, at.y});
    if (button(frame, "copy_line", "",
               {.kind = ButtonKind::kPlain, .icon = Icon::kCopy, .height = 28, .help = "Copy this line"}))
      frame.actions.push(actions::CopyText{client.text});
    ImGui::SetCursorScreenPos({at.x, at.y + frame.px(30)});
    ImGui::Dummy({width, 0});
    ImGui::PopID();
  }
  gap(frame, 12);
}

ImU32 status_colour(const Theme& theme, int status) {
  if (status >= 500) return readable(theme.error, theme.background);
  return readable(status >= 400 ? theme.warning : theme.accent, theme.background);
}

void draw_log_line(const Frame& frame, const ServerLogLine& entry, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  TextStyle mono = mono_text(frame), status = mono_text(frame);
  mono.em = status.em = 12;
  status.colour = status_colour(frame.theme, entry.status);
  float x = at.x;
  draw_text(frame, list, {x, at.y}, mono, entry.time);
  x += text_width(frame, mono, "00:00:00 ") + frame.px(4);
  draw_text(frame, list, {x, at.y}, status, std::to_string(entry.status));
  x += text_width(frame, mono, "000 ") + frame.px(4);
  std::string rest = entry.request;
  if (entry.took_ms > 0) rest += " · " + duration_text(static_cast<double>(entry.took_ms));
  if (!entry.client.empty()) rest += " · " + entry.client;
  if (!entry.why.empty()) rest += " · " + entry.why;
  const float room = at.x + width - x;
  if (room > frame.px(20)) draw_text(frame, list, {x, at.y}, mono, rest, room);
  ImGui::Dummy({width, frame.px(kLogLine)});
}

void draw_log(const Frame& frame, const ServerState& server, float width) {
  label(frame, "What came");
  ImGui::PushStyleColor(ImGuiCol_ChildBg, frame.theme.background);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(12), frame.px(8)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, frame.px(size::kRadiusControl));
  ImGui::BeginChild("server_log", {width, frame.px(kLogHeight)},
                    ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  const float room = ImGui::GetContentRegionAvail().x;
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  if (server.log.empty())
    paragraph(frame, tiny_text(frame), "Nothing yet. Each request is a line here.", room);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(server.log.size()), frame.px(kLogLine));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_log_line(frame, server.log[static_cast<std::size_t>(i)], room);
  }
  ImGui::PopStyleVar();
  if (at_end && !server.log.empty()) ImGui::SetScrollHereY(1.0f);
  ImGui::EndChild();
  gap(frame, 12);
}

}  // namespace

std::string server_words(const ServerState& server) {
  switch (server.phase) {
    case ServerPhase::kOff: return {};
    case ServerPhase::kStarting: return "Server is starting";
    case ServerPhase::kStopping: return "Server is ending";
    case ServerPhase::kOn: break;
  }
  if (!server.has_model) return "Server on · no model yet";
  if (server.num_answering == 0) return "Server on · port " + std::to_string(server.port);
  return "Server on · " + with_thousands(server.num_answering) + " answering";
}

namespace {

// A dot that is on, off, or ringed while somebody is answered.
void draw_server_dot(const Frame& frame, const ServerState& server, ImVec2 centre) {
  const bool is_on = server.phase == ServerPhase::kOn, answers = server.num_answering > 0;
  const ImU32 dot = !is_on ? frame.theme.faint : answers ? frame.theme.warning : frame.theme.accent;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCircleFilled(centre, frame.px(4), dot);
  if (answers) list->AddCircle(centre, frame.px(7), dot, 0, frame.px(1.5f));
}

// The button below either; true where it is to be lit.
bool press_server(const Frame& frame, const ServerState& server, ImVec2 extent) {
  if (ImGui::InvisibleButton("open_server", extent, ImGuiButtonFlags_EnableNav))
    frame.actions.push(actions::ShowServer{true});
  tooltip(frame, server_words(server) +
                     "\nPrograms on this machine may ask the model. Click for its settings and log.");
  return ImGui::IsItemHovered() || ImGui::IsItemFocused();
}

}  // namespace

void draw_server_line(const Frame& frame, const ServerState& server, float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = frame.px(kServerLineHeight);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (press_server(frame, server, {width, height}))
    list->AddRectFilled(low, {low.x + width, low.y + height}, frame.theme.raised,
                        frame.px(size::kRadiusControl));
  draw_server_dot(frame, server, {low.x + frame.px(16), low.y + height * 0.5f});
  const TextStyle style = tiny_text(frame);
  draw_text(frame, list, {low.x + frame.px(30), low.y + (height - line_pixels(frame, style)) * 0.5f}, style,
            server_words(server), width - frame.px(36));
}

void draw_server_mark(const Frame& frame, const ServerState& server, float side) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float extent = frame.px(side);
  if (press_server(frame, server, {extent, extent}))
    ImGui::GetWindowDrawList()->AddRectFilled(low, {low.x + extent, low.y + extent}, frame.theme.raised,
                                              frame.px(size::kRadiusControl));
  draw_server_dot(frame, server, {low.x + extent * 0.5f, low.y + extent * 0.5f});
}

void ServerView::begin(const UiState& state) {
  const ServerSettings& settings = state.settings.server;
  shown_ = settings;
  port_ = std::to_string(settings.port);
  hosts_ = joined(settings.allowed_hosts);
  origins_ = joined(settings.allowed_origins);
}

// What was typed counts when a field is left, or the panel is closed.
void ServerView::keep(const Frame& frame, const UiState& state) const {
  ServerSettings settings = state.settings.server;
  if (const int port = port_in(port_); port != 0) settings.port = port;
  settings.allowed_hosts = names_in(hosts_);
  settings.allowed_origins = names_in(origins_);
  if (settings != state.settings.server) frame.actions.push(actions::ChangeServer{settings});
}

void ServerView::draw_switch(const Frame& frame, const UiState& state, float width) {
  const ServerState& server = state.server;
  paragraph(frame, small_text(frame),
            "Agents, editors and notebooks on this machine can ask the model that answers your chats. They "
            "share its memory with the chats, but cannot read them.",
            width);
  gap(frame, 12);
  constexpr std::array kLabels = {"Off", "On"}, kIds = {"server_off", "server_on"};
  const bool is_on = server.phase == ServerPhase::kOn || server.phase == ServerPhase::kStarting;
  const std::size_t after = segments(frame, "server_switch", kLabels, kIds, is_on ? 1 : 0, width);
  if ((after == 1) != is_on) {
    keep(frame, state);
    frame.actions.push(actions::SwitchServer{after == 1});
  }
  gap(frame, 8);
  TextStyle style = small_text(frame);
  std::string text = "Nothing outside of this window can ask.";
  if (!server.problem.empty()) {
    style.colour = readable(frame.theme.error, frame.theme.panel);
    text = server.problem;
  } else if (server.phase == ServerPhase::kOn) {
    style.colour = readable(frame.theme.accent, frame.theme.panel);
    text = "Listens at http://127.0.0.1:" + std::to_string(server.port) + ", for this machine alone.";
    if (!server.has_model) text += " No model is loaded: programs are told to try again.";
    if (server.num_answering > 0) text += " " + count_text(server.num_answering, "request") + " under way.";
  } else if (server.phase != ServerPhase::kOff) {
    text = server_words(server) + "…";
  }
  paragraph(frame, style, text, width);
  gap(frame, 16);
}

void ServerView::draw_start_and_port(const Frame& frame, const UiState& state, float width) {
  label(frame, "When Octavo starts");
  constexpr std::array kLabels = {"Leave it off", "Switch it on"}, kIds = {"starts_off", "starts_on"};
  const std::size_t before = state.settings.server.starts_with_window ? 1 : 0;
  const std::size_t after = segments(frame, "server_start", kLabels, kIds, before, width);
  if (after != before) {
    ServerSettings settings = state.settings.server;
    settings.starts_with_window = after == 1;
    frame.actions.push(actions::ChangeServer{settings});
  }
  gap(frame, 16);
  label(frame, "Port");
  text_field(frame, "##server_port", port_, "8000", std::min(width, frame.px(140)),
             ImGuiInputTextFlags_CharsDecimal);
  if (ImGui::IsItemDeactivatedAfterEdit()) keep(frame, state);
  if (port_in(port_) == 0) note(frame, "A port is a number from 1 to 65,535.", width);
  gap(frame, 16);
}

void ServerView::draw_key(const Frame& frame, const UiState& state, float width) {
  const ServerState& server = state.server;
  label(frame, "Who may ask");
  constexpr std::array kLabels = {"Key needed", "No key"}, kIds = {"with_key", "without_key"};
  const std::size_t before = state.settings.server.needs_key ? 0 : 1;
  const std::size_t after = segments(frame, "server_key", kLabels, kIds, before, width);
  if (after != before) {
    ServerSettings settings = state.settings.server;
    settings.needs_key = after == 0;
    frame.actions.push(actions::ChangeServer{settings});
  }
  gap(frame, 8);
  if (!state.settings.server.needs_key) {
    note(frame, "Any program on this machine can use the model. Web pages still cannot.", width);
    gap(frame, 16);
    return;
  }
  if (!server.new_key.empty()) {
    TextStyle mono = mono_text(frame);
    mono.colour = frame.theme.text;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float copy = frame.px(80);
    draw_text(frame, ImGui::GetWindowDrawList(), {at.x, at.y + frame.px(7)}, mono, server.new_key,
              width - copy - frame.px(8));
    ImGui::SetCursorScreenPos({at.x + width - copy, at.y});
    if (button(frame, "copy_key", "Copy", {.width = 80}))
      frame.actions.push(actions::CopyText{server.new_key});
    note(frame, "This is the new key. It is shown until this panel is closed, and not again.", width);
  }
  if (!server.key_path.empty() && server.has_key)
    note(frame, "The key is kept in " + server.key_path + ", which only you can read.", width);
  gap(frame, 8);
  const char* const make = server.has_key ? "Make a new key" : "Make a key";
  if (button(frame, "make_key", make,
             {.help = server.has_key ? "The one before no longer counts: programs need the new one"
                                     : "One is made in any case when the server is switched on"}))
    frame.actions.push(actions::MakeServerKey{});
  gap(frame, 16);
}

void ServerView::draw_names(const Frame& frame, const UiState& state, float width) {
  label(frame, "Other names of this machine that programs may use");
  text_field(frame, "##server_hosts", hosts_, "my-machine.local", width);
  if (ImGui::IsItemDeactivatedAfterEdit()) keep(frame, state);
  gap(frame, 12);
  label(frame, "Web pages that may ask");
  text_field(frame, "##server_origins", origins_, "http://localhost:3000", width);
  if (ImGui::IsItemDeactivatedAfterEdit()) keep(frame, state);
  note(frame, "Several are separated by commas. Everything else is refused, whatever key it sends.", width);
  gap(frame, 16);
}

void ServerView::draw(const Frame& frame, const UiState& state) {
  const bool is_open = state.server.open;
  // What was typed is shown as it was understood, once nobody types; what is no port stays, with its note.
  const bool is_settled = !ImGui::IsAnyItemActive() && state.settings.server != shown_;
  if (is_open && (!was_open_ || is_settled)) begin(state);
  was_open_ = is_open;
  const DialogOptions dialog{.id = "server_panel", .title = "Server for other programs", .width = kWidth};
  if (!begin_dialog(frame, dialog, is_open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  draw_switch(frame, state, width);
  if (width >= frame.px(kNarrowestTwo)) {
    const float half = std::floor((width - frame.px(20)) * 0.5f);
    ImGui::BeginGroup();
    draw_start_and_port(frame, state, half);
    ImGui::EndGroup();
    beside(frame, 20);
    ImGui::BeginGroup();
    draw_key(frame, state, half);
    ImGui::EndGroup();
  } else {
    draw_start_and_port(frame, state, width);
    draw_key(frame, state, width);
  }
  draw_names(frame, state, width);
  draw_lines(frame, state.server, width);
  draw_log(frame, state.server, width);
  if (button(frame, "show_requests", "Show the requests in Memory")) {
    keep(frame, state);
    frame.actions.push(actions::ShowServer{false});
    frame.actions.push(actions::ShowWorkspace{Workspace::kMemory});
    frame.actions.push(actions::ShowMemoryPage{MemoryPage::kRequests});
  }
  if (!end_dialog(frame, is_open)) return;
  keep(frame, state);
  frame.actions.push(actions::ShowServer{false});
}

}  // namespace octavo::ui
