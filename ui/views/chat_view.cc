#include "ui/views/chat_view.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/api/context_policy.h"
#include "engine/base/calendar.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "ui/chat_actions.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/memory_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/views/attachment_chips.h"
#include "ui/views/empty_chat.h"
#include "ui/widgets/characters.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/menu.h"

namespace octavo::ui {
namespace {

constexpr float kTopMargin = 28;
constexpr float kBottomMargin = 32;
constexpr float kMessageGap = 20;
constexpr float kBubbleWidth = 600;
constexpr float kBubblePadding = 14;
constexpr float kBubbleSide = 16;
constexpr float kFooterHeight = 34;
constexpr float kFooterRow = 20;
constexpr float kFigureGap = 18;
constexpr float kHintHeight = 28;
constexpr float kRepeatsHeight = 36;
constexpr float kEditorHeight = 150;
constexpr float kTallestEditor = 420;
constexpr float kEditorButtons = 46;
constexpr float kOfferHeight = 44;
constexpr float kStatusHeight = 40;
constexpr float kQueuedHeight = 44;
constexpr float kFollowDistance = 64;
constexpr float kAttachmentHeight = 24;
constexpr std::size_t kMostAttachments = 6;
constexpr float kCutHeight = 44;
constexpr float kSummaryHeight = 26;
constexpr float kFindRoom = 64;  // of the find bar, above the messages

bool has_summary(const ChatState& chat) { return chat.summarising || !chat.summary.empty(); }

bool is_question(const MessageState& message) { return message.role != Role::kAssistant; }

// Nothing answers it yet, and something will.
bool awaits_answer(const ChatState& chat) {
  return is_busy(chat) && !chat.messages.empty() && is_question(chat.messages.back());
}

std::string short_time(const UiState& state, const MessageState& message) {
  const std::vector<DaySpan>& days = state.library.days;
  return message.created_ms == 0 || days.empty() ? std::string()
                                                 : short_time_text(message.created_ms, days.front().begin_ms);
}

std::vector<std::string> figure_texts(const MessageState& message) {
  const AnswerFigures& figures = message.figures;
  std::vector<std::string> texts;
  if (figures.tokens_per_second) texts.push_back(short_number(*figures.tokens_per_second) + " tok/s");
  if (!figures.delay.empty()) texts.push_back(figures.delay);
  if (figures.first_token_ms) texts.push_back("first token " + duration_text(*figures.first_token_ms));
  if (figures.num_cached_tokens && figures.num_prompt_tokens) {
    texts.push_back("reused " + with_thousands(*figures.num_cached_tokens) + " of " +
                    with_thousands(*figures.num_prompt_tokens) + " prompt tokens");
  }
  if (figures.seed) texts.push_back("seed " + std::to_string(*figures.seed));
  if (!figures.stop_reason.empty()) texts.push_back(figures.stop_reason);
  if (message.edited) texts.push_back("edited");
  if (!message.model.empty()) texts.push_back(visible_text(message.model));
  return texts;
}

constexpr std::string_view kFiguresHelp =
    "tok/s: tokens per second after the first. First token: time from sending to the first token. Reused: "
    "prompt tokens whose keys and values were already in memory. The same seed and settings give the same "
    "answer.";

constexpr std::string_view kMissingIdeographs =
    "Some characters are shown as boxes because no installed font has them. Install fonts-noto-cjk, for "
    "example.";
constexpr std::string_view kMissingEmoji =
    "Some emoji are shown as boxes because no installed font has them. Install fonts-noto-color-emoji, for "
    "example.";
constexpr std::string_view kMissingOthers =
    "Some characters are shown as boxes because no installed font has them. Install fonts-noto-core, for "
    "example.";

std::string_view missing_hint(const MissingGlyphs& missing) {
  if (missing.ideographic) return kMissingIdeographs;
  if (missing.emoji) return kMissingEmoji;
  return missing.other ? kMissingOthers : std::string_view();
}

std::string status_text(const ChatState& chat) {
  if (chat.activity == Activity::kWaiting) {
    return chat.num_ahead > 0 ? "Waiting, " + count_text(chat.num_ahead, "request") + " ahead" : "Waiting";
  }
  if (chat.summarising) return "Summarising what no longer fits into the context";
  if (chat.activity == Activity::kSwapped) return "Paused to free memory; resumes automatically";
  return "Reading prompt";
}

void draw_repeats(const Frame& frame, const ChatState& chat, ImVec2 low, float width) {
  ImGui::SetCursorScreenPos(low);
  const ButtonOptions stop{
      .icon = Icon::kStop, .height = 28, .help = "Stop this answer; the settings can do it for you"};
  if (button(frame, "stop_repeats", "Stop", stop)) frame.actions.push(actions::StopAnswer{chat.id});
  const float x = low.x + button_width(frame, "Stop", stop) + frame.px(10);
  const TextStyle style{.em = size::kSmall, .colour = frame.theme.warning};
  const float y = low.y + std::floor((frame.px(28) - line_pixels(frame, style)) * 0.5f);
  draw_text(frame, ImGui::GetWindowDrawList(), {x, y}, style, "The answer repeats itself.",
            low.x + width - x);
}

// "‹ 2 / 3 ›"; moves the cursor to the right of it.
void draw_sibling_arrows(const Frame& frame, const ChatState& chat, const MessageState& message) {
  const auto show = [&](std::int32_t offset) {
    frame.actions.push(actions::ShowSibling{chat.id, message.id, offset});
  };
  ButtonOptions arrow{
      .kind = ButtonKind::kPlain, .icon = Icon::kChevronLeft, .height = 26, .help = "Previous branch"};
  arrow.enabled = message.sibling_index > 0;
  if (button(frame, "previous_branch", "", arrow)) show(-1);
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string count =
      std::to_string(message.sibling_index + 1) + " / " + std::to_string(message.num_siblings);
  const float width = text_width(frame, tiny_text(frame), count);
  ImGui::Dummy({width, frame.px(26)});
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x, at.y + frame.px(4)}, tiny_text(frame), count);
  ImGui::SameLine();
  arrow.icon = Icon::kChevronRight;
  arrow.enabled = message.sibling_index + 1 < message.num_siblings;
  arrow.help = "Next branch";
  if (button(frame, "next_branch", "", arrow)) show(+1);
  ImGui::SameLine();
}

float sibling_arrows_width(const Frame& frame, const MessageState& message) {
  if (message.num_siblings <= 1) return 0;
  const std::string count =
      std::to_string(message.sibling_index + 1) + " / " + std::to_string(message.num_siblings);
  return frame.px(26) * 2 + text_width(frame, tiny_text(frame), count);
}

// Where the figures of an answer stand: beside its buttons, and on further rows when they do not fit.
struct PlacedFigure {
  std::string text;
  std::string help;
  ImVec2 at;  // from the left end of the footer
  float width = 0;
};

const char* offer_text(AnswerOffer offer) {
  return offer == AnswerOffer::kContinue ? "Continue" : "Generate";
}

ButtonOptions offer_button(const ChatState& chat, AnswerOffer offer) {
  return {.kind = ButtonKind::kPlain,
          .height = 26,
          .enabled = !is_busy(chat),
          .help = offer == AnswerOffer::kContinue ? "Continue this answer where it ended (Ctrl+Shift+G)"
                                                  : "Generate an answer to this (Ctrl+Shift+G)"};
}

float offer_width(const Frame& frame, const ChatState& chat, const MessageState& message) {
  if (message.offer == AnswerOffer::kNone) return 0;
  return button_width(frame, offer_text(message.offer), offer_button(chat, message.offer));
}

void draw_offer(const Frame& frame, const ChatState& chat, const MessageState& message) {
  if (button(frame, "continue_answer", offer_text(message.offer), offer_button(chat, message.offer)))
    frame.actions.push(actions::ContinueAnswer{chat.id, message.id});
}

float footer_buttons_width(const Frame& frame, const ChatState& chat, const MessageState& message) {
  if (message.streaming) return 0;
  return sibling_arrows_width(frame, message) + 5 * frame.px(26) + offer_width(frame, chat, message) +
         frame.px(4);
}

std::vector<PlacedFigure> place_figures(const Frame& frame, const UiState& state, const ChatState& chat,
                                        const MessageState& message, float width) {
  std::vector<PlacedFigure> placed;
  const TextStyle style = mono_text(frame);
  float x = footer_buttons_width(frame, chat, message), y = frame.px(4);
  const auto place = [&](std::string text, std::string help) {
    const float text_pixels = text_width(frame, style, text);
    if (x > 0 && x + text_pixels > width) {
      x = 0;
      y += frame.px(placed.empty() ? 26 : kFooterRow);
    }
    placed.push_back({std::move(text), std::move(help), {x, y}, std::min(text_pixels, width)});
    x += text_pixels + frame.px(kFigureGap);
  };
  std::string help = message.figures.story;
  help.append(help.empty() ? "" : "\n\n").append(kFiguresHelp);
  for (std::string& text : figure_texts(message)) place(std::move(text), help);
  if (std::string time = short_time(state, message); !time.empty())
    place(std::move(time), full_time_text(message.created_ms));
  if (message.streaming) place("Esc to stop", {});
  return placed;
}

float footer_height(const Frame& frame, const UiState& state, const ChatState& chat,
                    const MessageState& message, float width) {
  float height = frame.px(kFooterHeight);
  if (is_question(message)) return height;
  const std::vector<PlacedFigure> placed = place_figures(frame, state, chat, message, width);
  if (!placed.empty()) height = std::max(height, placed.back().at.y + frame.px(kFooterRow + 10));
  return height;
}

float bubble_room(const Frame& frame, float measure) {
  return std::min(frame.px(kBubbleWidth), measure) - 2 * frame.px(kBubbleSide);
}

// A line for each file that went with a question, and one for those beyond.
std::size_t num_attachment_lines(const MessageState& message) {
  return std::min(message.attachments.size(), kMostAttachments + 1);
}

float attachments_height(const Frame& frame, const MessageState& message) {
  return frame.px(kAttachmentHeight) * static_cast<float>(num_attachment_lines(message));
}

// Right-aligned below the bubble.
void draw_attachments(const Frame& frame, const MessageState& message, ImVec2 top_right, float room) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle style = tiny_text(frame);
  const std::size_t num_lines = num_attachment_lines(message);
  for (std::size_t i = 0; i < num_lines; ++i) {
    const bool is_rest = i == kMostAttachments;
    const auto rest = static_cast<std::int64_t>(message.attachments.size() - i);
    const std::string text =
        is_rest ? "and " + count_text(rest, "other file") : attachment_text(message.attachments[i]);
    const float icon_room = is_rest ? 0 : frame.px(20);
    const float width = std::min(text_width(frame, style, text), room - icon_room);
    const float y = top_right.y + frame.px(kAttachmentHeight) * static_cast<float>(i);
    if (!is_rest) {
      draw_icon(list, Icon::kPaperclip,
                {top_right.x - width - frame.px(12), y + line_pixels(frame, style) * 0.5f}, frame.px(13),
                style.colour);
    }
    draw_text(frame, list, {top_right.x - width, y}, style, text, width + 1);
  }
}

// Whether the context begins below this message: those above it are not sent any more.
bool ends_above_cut(const ChatState& chat, std::size_t index) {
  return index + 1 < chat.messages.size() && chat.messages[index + 1].id == chat.context.begin;
}

float cut_height(const Frame& frame, const ChatState& chat, std::size_t index) {
  if (!ends_above_cut(chat, index)) return 0;
  return frame.px(kCutHeight) + (has_summary(chat) ? frame.px(kSummaryHeight) : 0);
}

// Where the text of a message begins.
ImVec2 text_origin(const Frame& frame, const MessageState& message, const Transcript::Entry& entry,
                   float column_left, float column_width, float top) {
  if (!is_question(message)) return {column_left, top};
  const float width = std::ceil(entry.layout->width()) + 2 * frame.px(kBubbleSide);
  return {column_left + column_width - width + frame.px(kBubbleSide), top + frame.px(kBubblePadding)};
}

// What of a message can be selected: not what is folded.
std::vector<TextRange> shown_ranges(const MessageState& message, const Transcript::Entry& entry) {
  if (entry.layout != nullptr) return entry.layout->shown_ranges();
  std::vector<TextRange> ranges;
  for (const MessagePart& part : parts_of(message)) {
    if (!part.thinking) ranges.push_back({part.begin, part.end});
  }
  return ranges;
}

void toggle_newest_thinking(Transcript& transcript) {
  for (auto entry = transcript.entries().rbegin(); entry != transcript.entries().rend(); ++entry) {
    if (entry->layout != nullptr && entry->layout->toggle_thinking()) return;
  }
}

std::string copied_text(const ChatState& chat, const Transcript& transcript, bool markdown) {
  std::string result;
  const auto span = transcript.selected();
  if (!span) return result;
  for (std::size_t i = span->first; i <= span->last && i < chat.messages.size(); ++i) {
    const MessageState& message = chat.messages[i];
    const TextRange range = transcript.selected_in(*span, i, message.text.size());
    for (const TextRange part : shown_ranges(message, transcript.entries()[i])) {
      const TextRange copied{std::max(range.begin, part.begin), std::min(range.end, part.end)};
      if (copied.empty()) continue;
      if (!result.empty()) result += "\n\n";
      const std::string_view text = std::string_view(message.text).substr(part.begin, part.end - part.begin);
      const TextRange local{copied.begin - part.begin, copied.end - part.begin};
      result += markdown ? markdown_text(text, format_of(message), local)
                         : plain_text(text, format_of(message), local);
    }
  }
  return result;
}

}  // namespace

void ChatView::draw(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  draw_header(frame, state, chat, extent.x);
  if (chat.id != shown_chat_) find_.close();
  shown_chat_ = chat.id;
  if (!has_dialog(state) && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_T))
    toggle_newest_thinking(transcripts_[chat.id.value]);
  if (!has_dialog(state) && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Y))
    toggle_newest_story(chat);
  if (!has_dialog(state) && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_F)) find_.open();
  find_.update(chat.messages);
  const ImVec2 body_low{low.x, low.y + frame.px(size::kHeader)};
  const bool offers_model = has_other_model(state, chat) && !chat.messages.empty();
  const float offer = offers_model ? frame.px(kOfferHeight) : 0;
  const ImVec2 body{extent.x, extent.y - frame.px(size::kHeader) - offer};
  const float find = find_.is_open() ? frame.px(kFindRoom) : 0;
  ImGui::SetCursorScreenPos({body_low.x, body_low.y + find});
  draw_transcript(frame, state, chat, transcripts_[chat.id.value], {body.x, body.y - find});
  if (chat.messages.empty() && chat.queued.empty()) draw_empty_chat(frame, state, chat, body_low, body);
  if (offers_model) draw_model_offer(frame, state, chat, {low.x, body_low.y + body.y}, extent.x);
  find_.draw(frame, body_low, body.x);
  draw_link_question(frame);
}

void ChatView::show_message(const ChatState& chat, const MessageFocus& focus) {
  transcripts_[chat.id.value].following = false;
  jump_to_message_ = focus.message_id;
  const auto message =
      std::find_if(chat.messages.begin(), chat.messages.end(),
                   [&](const MessageState& candidate) { return candidate.id == focus.message_id; });
  if (message != chat.messages.end() && focus.editor != MessageEditor::kNone)
    open_editor(chat, *message, focus.editor);
}

void ChatView::open_editor(const ChatState& chat, const MessageState& message, MessageEditor editor) {
  editor_ = editor;
  editing_message_ = message.id;
  editing_chat_ = chat.id;
  edit_text_ = editor == MessageEditor::kText ? message.text : std::string();
  focus_editor_ = true;
}

// The model that answered here last is not the one that answers now. Nothing is loaded unasked.
void ChatView::draw_model_offer(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                                float width) const {
  const float measure = std::min(frame.px(size::kMeasure), width - frame.px(48));
  const ImVec2 at{std::floor(low.x + (width - measure) * 0.5f), low.y + frame.px(6)};
  const TextStyle style = tiny_text(frame);
  const auto& loading = state.picker.loading;
  const std::string name = visible_text(chat.model_name);
  const std::string load = "Load " + name;
  const ButtonOptions options{.height = 30, .enabled = !loading, .help = chat.model_path};
  const float room = measure - std::min(button_width(frame, load, options), measure * 0.5f) - frame.px(12);
  const std::string now =
      state.model.phase == ModelPhase::kReady ? "; " + state.model.name + " answers now" : "";
  const std::string ways[] = {name + " answered here last" + now, name + " answered here last",
                              "Another model answered here last"};
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x, at.y + frame.px(6)}, style,
            first_that_fits(frame, style, ways, room), room);
  const float button_room = measure - room - frame.px(12);
  ImGui::SetCursorScreenPos({at.x + measure - button_room, at.y});
  ButtonOptions placed = options;
  placed.width = button_room / frame.theme.scale;
  if (button(frame, "load_chat_model", load, placed))
    frame.actions.push(actions::LoadModelFile{chat.model_path});
}

void ChatView::draw_header(const Frame& frame, const UiState& state, const ChatState& chat, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = frame.px(size::kHeader);
  list->AddLineH(low.x, low.x + width, low.y + height - 1, frame.theme.line);
  TextStyle title = heading_text(frame);
  title.em = 16;
  const float room = std::min(text_width(frame, title, chat.title) + 1, width * 0.38f);
  ImGui::SetCursorScreenPos(
      {low.x + frame.px(24), low.y + std::floor((height - line_pixels(frame, title)) * 0.5f)});
  line(frame, title, chat.title, room);

  const float sliders_x = low.x + width - frame.px(56), right = sliders_x - frame.px(42);
  float x = low.x + frame.px(24) + room + frame.px(14);
  const auto add_chip = [&](const char* id, const std::string& text, const auto& action) {
    const float chip_room = right - x - frame.px(8);
    if (chip_room < frame.px(60)) return;
    ImGui::SetCursorScreenPos({x, low.y + frame.px(16)});
    const float limit = std::min(chip_room, frame.px(240));
    if (chip(frame, id, text, {.max_width = limit})) frame.actions.push(action);
    x += ImGui::GetItemRectSize().x + frame.px(8);
  };
  const auto sampling = actions::ShowSampling{!state.sampling_open};
  if (!state.settings.sidebar_shown) add_chip("chip_model", state.model.name, actions::OpenModelPicker{});
  add_chip("chip_temperature",
           chat.sampling.temperature == 0 ? std::string("greedy")
                                          : "temperature " + short_number(chat.sampling.temperature),
           sampling);
  add_chip("chip_top_p", "top-p " + short_number(chat.sampling.top_p), sampling);
  if (!chat.system_prompt.empty()) add_chip("chip_system", "system: " + chat.system_prompt, sampling);

  ImGui::SetCursorScreenPos({right, low.y + frame.px(11)});
  const ButtonOptions branches{
      .icon = Icon::kBranches, .height = 34, .help = "All branches of this chat (Ctrl+Shift+B)"};
  if (button(frame, "show_tree", "", branches))
    frame.actions.push(actions::ShowTree{!state.desktop.tree_open});
  ImGui::SetCursorScreenPos({sliders_x, low.y + frame.px(11)});
  const ButtonOptions sliders{
      .icon = Icon::kSliders, .height = 34, .help = "System prompt and sampling of this chat"};
  if (button(frame, "chat_settings", "", sliders))
    frame.actions.push(actions::ShowSampling{!state.sampling_open});
}

bool ChatView::tells_story(const ChatState& chat, const MessageState& message) const {
  return chat.id == told_chat_ && message.id == told_message_ && !message.figures.story.empty();
}

void ChatView::toggle_story(const ChatState& chat, const MessageState& message) {
  told_message_ = tells_story(chat, message) ? MessageId{} : message.id;
  told_chat_ = chat.id;
}

void ChatView::toggle_newest_story(const ChatState& chat) {
  for (auto message = chat.messages.rbegin(); message != chat.messages.rend(); ++message) {
    if (!message->figures.story.empty()) return toggle_story(chat, *message);
  }
}

float ChatView::story_height(const Frame& frame, const ChatState& chat, const MessageState& message,
                             float width) const {
  if (!tells_story(chat, message)) return 0;
  return paragraph_height(frame, small_text(frame), message.figures.story, width) + frame.px(10);
}

MessageEditor ChatView::editor_of(const ChatState& chat, const MessageState& message) const {
  const bool is_edited = message.id == editing_message_ && chat.id == editing_chat_;
  return is_edited ? editor_ : MessageEditor::kNone;
}

// As high as what it replaces, within reason.
float ChatView::editor_height(const Frame& frame, const MessageState& message,
                              const Transcript::Entry& entry) const {
  if (is_question(message)) return frame.px(kEditorHeight);
  return std::clamp(entry.layout->height() + frame.px(kEditorButtons + 16), frame.px(kEditorHeight),
                    frame.px(kTallestEditor));
}

void ChatView::sync(const Frame& frame, const ChatState& chat, Transcript& transcript, float measure) const {
  if (transcript.width != measure || transcript.scale != frame.theme.scale ||
      transcript.context_begin != chat.context.begin || transcript.has_summary != has_summary(chat))
    transcript.forget_heights();
  transcript.context_begin = chat.context.begin;
  transcript.has_summary = has_summary(chat);
  transcript.width = measure;
  transcript.scale = frame.theme.scale;
  const float line = frame.px(size::kText * size::kLineHeight);
  const float bytes_per_line = std::max(1.0f, measure / (frame.px(size::kText) * 0.5f));
  transcript.sync(chat.messages, frame.px(kTopMargin), frame.px(kMessageGap), [&](std::size_t i) {
    const float lines = std::ceil(static_cast<float>(chat.messages[i].text.size()) / bytes_per_line);
    return (lines + 1) * line + frame.px(kFooterHeight);
  });
}

float ChatView::lay_out(const Frame& frame, const UiState& state, const ChatState& chat, std::size_t index,
                        Transcript::Entry& entry, float measure) const {
  const MessageState& message = chat.messages[index];
  const bool question = is_question(message);
  entry.text_size = message.text.size();
  entry.layout->update(frame, message, question ? bubble_room(frame, measure) : measure);
  const float cut = cut_height(frame, chat, index);
  const MessageEditor editor = editor_of(chat, message);
  if (editor == MessageEditor::kText) return editor_height(frame, message, entry) + cut;
  float height = entry.layout->height() + footer_height(frame, state, chat, message, measure) +
                 story_height(frame, chat, message, measure) + cut;
  if (editor == MessageEditor::kAnswer) height += editor_height(frame, message, entry);
  if (question) height += 2 * frame.px(kBubblePadding) + attachments_height(frame, message);
  if (entry.layout->missing_glyphs().any()) height += frame.px(kHintHeight);
  if (!message.error.empty()) height += frame.px(kHintHeight);
  if (message.repeats) height += frame.px(kRepeatsHeight);
  return height;
}

void ChatView::draw_transcript(const Frame& frame, const UiState& state, const ChatState& chat,
                               Transcript& transcript, ImVec2 extent) {
  const float measure = std::min(frame.px(size::kMeasure), extent.x - frame.px(48));
  const auto lay = [&](std::size_t index, Transcript::Entry& entry) {
    return lay_out(frame, state, chat, index, entry, measure);
  };
  const float status = awaits_answer(chat) ? frame.px(kStatusHeight) : 0;
  const float below =
      status + frame.px(kQueuedHeight) * static_cast<float>(chat.queued.size()) + frame.px(kBottomMargin);
  sync(frame, chat, transcript, measure);
  jump(frame, state, chat, transcript, measure, extent);
  if (transcript.following) transcript.resolve_end(extent.y, below, lay);
  const auto end_of = [&] {
    return std::max(0.0, transcript.height() + static_cast<double>(below - extent.y));
  };
  choose_scroll(transcript, end_of(), extent);
  ImGui::SetNextWindowContentSize({0, static_cast<float>(transcript.height()) + below});
  ImGui::PushID(static_cast<int>(chat.id.value));
  ImGui::BeginChild("transcript", extent, ImGuiChildFlags_NavFlattened);
  double scroll = static_cast<double>(ImGui::GetScrollY());
  const bool moved_down = scroll > transcript.scroll;
  const double resolved = transcript.resolve(scroll, extent.y, lay);
  // Written where Dear ImGui keeps it: a request would be lost to the wheel that turns in the same frame.
  if (resolved != scroll) ImGui::GetCurrentWindow()->Scroll.y = static_cast<float>(resolved);
  scroll = resolved;
  const ImVec2 low = ImGui::GetWindowPos();
  const Column column{std::floor(low.x + (extent.x - measure) * 0.5f), measure};
  const auto origin = static_cast<float>(static_cast<double>(low.y) - scroll);
  take_mouse(frame, chat, transcript, column, origin, low, extent);
  take_keys(frame, chat, transcript);
  for (std::size_t i = transcript.index_at(scroll); i < chat.messages.size(); ++i) {
    const Transcript::Entry& entry = transcript.entries()[i];
    if (entry.top > scroll + static_cast<double>(extent.y)) break;
    ImGui::PushID(static_cast<int>(entry.id.value));
    const auto top = static_cast<float>(static_cast<double>(low.y) + (entry.top - scroll));
    draw_message(frame, state, chat, i, transcript, column, top);
    if (const float cut = cut_height(frame, chat, i); cut > 0)
      draw_cut(frame, chat, column, top + entry.height - cut);
    ImGui::PopID();
  }
  const auto queue_top = static_cast<float>(static_cast<double>(low.y) + (transcript.height() - scroll));
  if (status > 0) {
    draw_text(frame, ImGui::GetWindowDrawList(), {column.left, queue_top}, {.colour = frame.theme.faint},
              status_text(chat), column.width);
  }
  draw_queue(frame, chat, column, queue_top + status);
  if (transcript.following || moved_down)
    transcript.following = end_of() - scroll < static_cast<double>(frame.px(kFollowDistance));
  transcript.scroll = scroll;
  if (!transcript.following && !is_editing()) draw_jump_button(frame, transcript);  // nothing over the field
  draw_menu(frame, chat, transcript);
  ImGui::EndChild();
  ImGui::PopID();
}

// To what was found, or asked for by another view.
void ChatView::jump(const Frame& frame, const UiState& state, const ChatState& chat, Transcript& transcript,
                    float measure, ImVec2 extent) {
  const TextMatch* match = find_.take_jump();
  const MessageId message_id = match != nullptr ? match->message_id : std::exchange(jump_to_message_, {});
  const std::size_t index =
      message_id == MessageId{} ? chat.messages.size() : transcript.index_of(message_id);
  if (index >= chat.messages.size()) return;
  const auto lay = [&](std::size_t i, Transcript::Entry& entry) {
    return lay_out(frame, state, chat, i, entry, measure);
  };
  transcript.resolve_message(index, lay);
  const Transcript::Entry& entry = transcript.entries()[index];
  double y = entry.top - static_cast<double>(frame.px(kTopMargin));
  if (match != nullptr) {
    entry.layout->unfold_at(match->range.begin);
    transcript.resolve_message(index, lay);
    const ImVec2 at = entry.layout->position_of(frame, chat.messages[index].text, match->range.begin);
    y = entry.top + static_cast<double>(at.y - extent.y * 0.4f);
    const double shown = entry.top + static_cast<double>(at.y) - transcript.scroll;
    const bool visible =
        shown > static_cast<double>(frame.px(64)) && shown < static_cast<double>(extent.y - frame.px(64));
    if (visible) return;
  }
  transcript.following = false;
  transcript.scroll = std::max(0.0, y);
  ImGui::SetNextWindowScroll({-1, static_cast<float>(transcript.scroll)});
}

// Dear ImGui scrolls by wheel, bar and focus; what is decided here is applied over that, in this frame
// already, so that growing text never shows one frame late.
void ChatView::choose_scroll(Transcript& transcript, double end, ImVec2 extent) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool pointed_at = ImGui::IsMouseHoveringRect(low, {low.x + extent.x, low.y + extent.y});
  if (pointed_at && ImGui::GetIO().MouseWheel > 0 && end > 0) transcript.following = false;
  // Also while the composer has the keyboard, which keeps these keys for its few lines.
  const double page = static_cast<double>(extent.y) * 0.9;
  const double wanted = (ImGui::IsKeyChordPressed(ImGuiKey_PageUp) ? -page : 0.0) +
                        (ImGui::IsKeyChordPressed(ImGuiKey_PageDown) ? page : 0.0);
  if (wanted < 0 && end > 0) transcript.following = false;
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_End)) transcript.following = true;
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Home)) {
    transcript.following = false;
    ImGui::SetNextWindowScroll({-1, 0});
  } else if (transcript.following) {
    ImGui::SetNextWindowScroll({-1, static_cast<float>(end)});
  } else if (wanted != 0) {
    ImGui::SetNextWindowScroll({-1, static_cast<float>(std::clamp(transcript.scroll + wanted, 0.0, end))});
  }
}

void ChatView::draw_message(const Frame& frame, const UiState& state, const ChatState& chat,
                            std::size_t index, const Transcript& transcript, Column column, float top) {
  const MessageState& message = chat.messages[index];
  const Transcript::Entry& entry = transcript.entries()[index];
  const MessageEditor editor = editor_of(chat, message);
  const float editing = editor == MessageEditor::kNone ? 0 : editor_height(frame, message, entry);
  if (editor == MessageEditor::kText) {
    return is_question(message) ? draw_question_editor(frame, chat, message, column, top)
                                : draw_answer_editor(frame, chat, message, column, top, editing);
  }
  TextMarks marks;
  if (const auto span = transcript.selected())
    marks.selection = transcript.selected_in(*span, index, message.text.size());
  marks.matches = find_.matches_in(message.id);
  if (const TextMatch* match = find_.current(); match != nullptr && match->message_id == message.id)
    marks.current_match = match->range;
  std::vector<TextRange> highlights;
  for (const HighlightedRange& range : highlighted_ranges(state.memory_workspace, chat.id, message.id))
    highlights.push_back({static_cast<std::uint32_t>(range.begin), static_cast<std::uint32_t>(range.end)});
  marks.highlights = highlights;
  marks.highlight_colour = with_alpha(frame.theme.owner(chat.colour_index), 0.35f);
  if (is_question(message)) {
    draw_question(frame, state, chat, message, entry, marks, column, top);
  } else {
    draw_answer(frame, state, chat, message, entry, marks, column, top);
  }
  if (editor != MessageEditor::kAnswer) return;
  const float end = top + entry.height - cut_height(frame, chat, index);
  draw_answer_editor(frame, chat, message, column, end - editing, editing);
}

// Between what has left the context and what is still in it.
void ChatView::draw_cut(const Frame& frame, const ChatState& chat, Column column, float top) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.muted;
  const std::string text = left_context_text(chat.context.num_left);
  const float side = frame.px(24), room = column.width - 2 * side;
  const float width = std::min(text_width(frame, style, text), room - 2 * frame.px(12));
  const float y = std::floor(top + frame.px(kCutHeight) * 0.5f);
  const float left = std::floor(column.left + (column.width - width) * 0.5f);
  list->AddLineH(column.left, left - frame.px(12), y, frame.theme.line);
  list->AddLineH(left + width + frame.px(12), column.left + column.width, y, frame.theme.line);
  const ImVec2 at{left, std::floor(y - line_pixels(frame, style) * 0.5f)};
  draw_text(frame, list, at, style, text, width + 1);
  if (ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect(at, {at.x + width, at.y + line_pixels(frame, style)})) {
    tooltip_now(frame,
                "The model does not read the messages above. What happens when the context is full can be "
                "chosen in the chat settings.");
  }
  if (!has_summary(chat)) return;
  const ImVec2 row{column.left, top + frame.px(kCutHeight)};
  std::string summary = chat.summary;
  std::replace(summary.begin(), summary.end(), '\n', ' ');
  const std::string shown =
      (chat.summarising ? "Writing a summary of them: " : "Summary of them: ") + summary;
  const float edit_width = chat.summarising ? 0 : frame.px(48);
  draw_text(frame, list, row, style, shown, column.width - edit_width);
  if (ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect(row, {row.x + column.width - edit_width, row.y + line_pixels(frame, style)}))
    tooltip_now(frame, chat.summary);
  if (chat.summarising) return;
  ImGui::SetCursorScreenPos({column.left + column.width - frame.px(36), row.y});
  if (link(frame, "edit_summary", "Edit", "Edit the summary in the chat settings"))
    frame.actions.push(actions::ShowSampling{true});
}

void ChatView::draw_question(const Frame& frame, const UiState& state, const ChatState& chat,
                             const MessageState& message, const Transcript::Entry& entry,
                             const TextMarks& marks, Column column, float top) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  PartsLayout& layout = *entry.layout;
  const ImVec2 text_low = text_origin(frame, message, entry, column.left, column.width, top);
  const ImVec2 high{column.left + column.width, top + layout.height() + 2 * frame.px(kBubblePadding)};
  list->AddRectFilled({text_low.x - frame.px(kBubbleSide), top}, high, frame.theme.raised, frame.px(14));
  const float clip_top = ImGui::GetWindowPos().y, clip_bottom = clip_top + ImGui::GetWindowHeight();
  layout.draw(frame, message.text, text_low, clip_top, clip_bottom, frame.theme.text, marks);
  float y = high.y + frame.px(4);
  draw_attachments(frame, message, {high.x, y + frame.px(3)}, column.width);
  y += attachments_height(frame, message);
  if (const std::string_view hint = missing_hint(layout.missing_glyphs()); !hint.empty()) {
    const float width = std::min(text_width(frame, tiny_text(frame), hint), column.width);
    draw_text(frame, list, {high.x - width, y}, tiny_text(frame), hint, column.width);
    y += frame.px(kHintHeight);
  }
  draw_question_footer(frame, state, chat, message, {high.x, y});
}

void ChatView::draw_question_footer(const Frame& frame, const UiState& state, const ChatState& chat,
                                    const MessageState& message, ImVec2 top_right) {
  const float width =
      sibling_arrows_width(frame, message) + offer_width(frame, chat, message) + 4 * frame.px(26);
  const TextStyle tiny = tiny_text(frame);
  const std::string time = short_time(state, message);
  const ImVec2 time_size{text_width(frame, tiny, time), line_pixels(frame, tiny)};
  const ImVec2 at{top_right.x - width - frame.px(8) - time_size.x, top_right.y + frame.px(4)};
  draw_text(frame, ImGui::GetWindowDrawList(), at, tiny, time);
  if (!time.empty() && ImGui::IsWindowHovered() &&
      ImGui::IsMouseHoveringRect(at, {at.x + time_size.x, at.y + time_size.y}))
    tooltip_now(frame, full_time_text(message.created_ms));
  ImGui::SetCursorScreenPos({top_right.x - width, top_right.y});
  if (message.offer != AnswerOffer::kNone) {
    draw_offer(frame, chat, message);
    ImGui::SameLine();
  }
  if (message.num_siblings > 1) draw_sibling_arrows(frame, chat, message);
  const ButtonOptions copy{.kind = ButtonKind::kPlain, .icon = Icon::kCopy, .height = 26, .help = "Copy"};
  if (button(frame, "copy", "", copy)) frame.actions.push(actions::CopyText{message.text});
  ImGui::SameLine();
  const ButtonOptions compare{.kind = ButtonKind::kPlain,
                              .icon = Icon::kColumns,
                              .height = 26,
                              .help = "Compare several answers side by side"};
  if (button(frame, "compare", "", compare)) frame.actions.push(actions::OpenComparison{chat.id, message.id});
  ImGui::SameLine();
  const ButtonOptions edit{.kind = ButtonKind::kPlain,
                           .icon = Icon::kEdit,
                           .height = 26,
                           .help = "Edit and ask again in a new branch"};
  if (button(frame, "edit", "", edit)) open_editor(chat, message, MessageEditor::kText);
  ImGui::SameLine();
  draw_message_menu(frame, chat, message);
}

// What is rarely wanted.
void ChatView::draw_message_menu(const Frame& frame, const ChatState& chat, const MessageState& message) {
  const bool question = is_question(message);
  const ButtonOptions more{.kind = ButtonKind::kPlain,
                           .icon = Icon::kMore,
                           .height = 26,
                           .help = question ? "Begin the answer, delete" : "Where its time went, delete"};
  if (button(frame, question ? "message_more" : "answer_more", "", more)) ImGui::OpenPopup("message_menu");
  if (!begin_menu(frame, "message_menu")) return;
  if (question && menu_item(frame, "begin_answer", "Begin the answer", {.icon = Icon::kEdit}))
    open_editor(chat, message, MessageEditor::kAnswer);
  if (!message.figures.story.empty() &&
      menu_item(frame, "tell_story", "Where its time went", {.icon = Icon::kSearch}))
    toggle_story(chat, message);
  const auto erase = [&](const char* id, std::string_view text, actions::DeleteExtent extent) {
    if (menu_item(frame, id, text, {.icon = Icon::kTrash, .danger = true}))
      frame.actions.push(actions::DeleteMessage{chat.id, message.id, extent});
  };
  const bool is_last = chat.messages.back().id == message.id;
  erase("delete_message", question ? "Delete this question" : "Delete this answer",
        actions::DeleteExtent::kMessage);
  if (!is_last) erase("delete_branch", "Delete from here on", actions::DeleteExtent::kBranch);
  end_menu();
}

void ChatView::draw_answer(const Frame& frame, const UiState& state, const ChatState& chat,
                           const MessageState& message, const Transcript::Entry& entry,
                           const TextMarks& marks, Column column, float top) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  PartsLayout& layout = *entry.layout;
  const ImVec2 low{column.left, top};
  const float clip_top = ImGui::GetWindowPos().y, clip_bottom = clip_top + ImGui::GetWindowHeight();
  if (message.streaming && message.text.empty()) {
    draw_text(frame, list, low, {.colour = frame.theme.faint}, status_text(chat));
  }
  if (auto copied = layout.draw(frame, message.text, low, clip_top, clip_bottom, frame.theme.text, marks)) {
    frame.actions.push(actions::CopyText{*std::move(copied)});
  }
  const std::optional<ImVec2> text_end = layout.end_position();
  if (message.streaming && !message.text.empty() && text_end) {
    const ImVec2 end = *text_end;
    const ImVec2 caret{std::floor(low.x + end.x + frame.px(3)), std::floor(low.y + end.y + frame.px(3))};
    list->AddRectFilled(caret, {caret.x + frame.px(8), caret.y + frame.px(17)}, frame.theme.accent,
                        frame.px(1));
  }
  float y = top + layout.height() + frame.px(8);
  if (const std::string_view hint = missing_hint(layout.missing_glyphs()); !hint.empty()) {
    draw_text(frame, list, {low.x, y}, tiny_text(frame), hint, column.width);
    y += frame.px(kHintHeight);
  }
  if (!message.error.empty()) {
    const TextStyle style{.em = size::kSmall, .colour = frame.theme.error};
    draw_text(frame, list, {low.x, y}, style, message.error, column.width);
    y += frame.px(kHintHeight);
  }
  if (message.repeats) {
    draw_repeats(frame, chat, {low.x, y}, column.width);
    y += frame.px(kRepeatsHeight);
  }
  draw_answer_footer(frame, state, chat, message, {low.x, y}, column.width);
  if (!tells_story(chat, message)) return;
  ImGui::SetCursorScreenPos({low.x, y + footer_height(frame, state, chat, message, column.width)});
  paragraph(frame, small_text(frame), message.figures.story, column.width);
}

void ChatView::draw_answer_footer(const Frame& frame, const UiState& state, const ChatState& chat,
                                  const MessageState& message, ImVec2 top_left, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (!message.streaming) {
    ImGui::SetCursorScreenPos({top_left.x - frame.px(6), top_left.y});
    if (message.num_siblings > 1) draw_sibling_arrows(frame, chat, message);
    ButtonOptions options{
        .kind = ButtonKind::kPlain, .icon = Icon::kCopy, .height = 26, .help = "Copy as Markdown"};
    if (button(frame, "copy", "", options)) frame.actions.push(actions::CopyText{said_text(message)});
    ImGui::SameLine();
    options.icon = Icon::kCopyText;
    options.help = "Copy as plain text";
    if (button(frame, "copy_plain", "", options))
      frame.actions.push(actions::CopyText{said_plain_text(message)});
    ImGui::SameLine();
    options.icon = Icon::kRegenerate;
    options.help = "Regenerate in a new branch";
    if (button(frame, "regenerate", "", options))
      frame.actions.push(actions::Regenerate{chat.id, message.id});
    ImGui::SameLine();
    options.icon = Icon::kEdit;
    options.help = "Edit in a new branch, or let the model continue from there";
    if (button(frame, "edit_answer", "", options)) open_editor(chat, message, MessageEditor::kText);
    ImGui::SameLine();
    draw_message_menu(frame, chat, message);
    if (message.offer != AnswerOffer::kNone) {
      ImGui::SameLine();
      draw_offer(frame, chat, message);
    }
  }
  const std::vector<PlacedFigure> figures = place_figures(frame, state, chat, message, width);
  TextStyle style = mono_text(frame);
  for (const PlacedFigure& figure : figures) {
    const bool hint = message.streaming && &figure == &figures.back();
    style.colour = hint ? frame.theme.faint : frame.theme.muted;
    const ImVec2 at{top_left.x + figure.at.x, top_left.y + figure.at.y};
    draw_text(frame, list, at, style, figure.text, width - figure.at.x);
    if (!hint && ImGui::IsWindowHovered() &&
        ImGui::IsMouseHoveringRect(at, {at.x + figure.width, at.y + line_pixels(frame, style)})) {
      tooltip_now(frame, figure.help);
    }
  }
}

// ---- selecting

// One item lies under all text and takes what no button above it wants. Called before the messages are drawn.
void ChatView::take_mouse(const Frame& frame, const ChatState& chat, Transcript& transcript, Column column,
                          float origin, ImVec2 low, ImVec2 extent) {
  if (chat.messages.empty()) return report_hovered_text(frame, chat, {}, {});
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  ImGui::SetCursorScreenPos(low);
  ImGui::SetNextItemAllowOverlap();
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  ImGui::InvisibleButton("transcript_text",
                         {std::max(1.0f, extent.x - ImGui::GetStyle().ScrollbarSize), extent.y});
  ImGui::PopItemFlag();
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  if (!hovered && !active && !ImGui::IsItemDeactivated()) return report_hovered_text(frame, chat, {}, {});
  const double y = static_cast<double>(mouse.y) - static_cast<double>(origin);
  std::size_t index = std::min(transcript.index_at(y), chat.messages.size() - 1);
  while (index > 0 && transcript.entries()[index].layout == nullptr) --index;
  const Transcript::Entry& entry = transcript.entries()[index];
  if (entry.layout == nullptr) return;
  const MessageState& message = chat.messages[index];
  const ImVec2 text_low = text_origin(frame, message, entry, column.left, column.width,
                                      static_cast<float>(static_cast<double>(origin) + entry.top));
  const ImVec2 local{mouse.x - text_low.x, mouse.y - text_low.y};
  const bool editing = editor_of(chat, message) != MessageEditor::kNone;
  const TextPosition position{entry.id, entry.layout->offset_at(frame, message.text, local)};
  const std::string link(editing ? std::string_view() : entry.layout->link_at(local));
  const bool over_text = hovered && !editing && entry.layout->is_over_text(local);

  if (ImGui::IsItemActivated()) {
    pressed_link_ = link;
    begin_selection(chat, transcript, position);
  } else if (active) {
    const float above = low.y - mouse.y, under = mouse.y - low.y - extent.y;
    if (above > 0 || under > 0) {
      const float speed = std::clamp((above > 0 ? -above : under) * 12.0f, -4000.0f, 4000.0f);
      ImGuiWindow* window = ImGui::GetCurrentWindow();
      window->Scroll.y =
          std::clamp(window->Scroll.y + speed * ImGui::GetIO().DeltaTime, 0.0f, window->ScrollMax.y);
      transcript.following = false;
    }
    if (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 3.0f) || grain_ == Grain::kCharacter)
      extend_selection(chat, transcript, position);
  } else if (ImGui::IsItemDeactivated()) {
    if (!pressed_link_.empty() && link == pressed_link_ && !transcript.selected()) {
      asked_link_ = link;
      asked_at_ = {mouse.x, mouse.y + frame.px(14)};
      ask_ = true;
    }
    pressed_link_.clear();
  }
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Right) && hovered) {
    menu_link_ = link;
    ImGui::OpenPopup("transcript_menu");
  }
  if (!link.empty() && hovered) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    tooltip_now(frame, visible_text(link));
  } else if (over_text || active) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  }
  report_hovered_text(frame, chat, over_text ? position : TextPosition{},
                      over_text ? entry.layout->word_at(message.text, position.offset) : TextRange{});
}

// A block of memory is lit for the word that is pointed at.
void ChatView::report_hovered_text(const Frame& frame, const ChatState& chat, const TextPosition& position,
                                   TextRange word) {
  if (position.message_id == hovered_message_ && word == hovered_word_) return;
  hovered_message_ = position.message_id;
  hovered_word_ = word;
  frame.actions.push(actions::HoverText{chat.id, position.message_id, word.begin, word.end});
}

namespace {

TextSelection grasp(const ChatState& chat, const Transcript& transcript, TextPosition position, bool word) {
  const std::size_t index = transcript.index_of(position.message_id);
  if (index >= chat.messages.size() || transcript.entries()[index].layout == nullptr)
    return {position, position};
  const std::string& text = chat.messages[index].text;
  const PartsLayout& layout = *transcript.entries()[index].layout;
  const TextRange range =
      word ? layout.word_at(text, position.offset) : layout.paragraph_at(text, position.offset);
  return {{position.message_id, range.begin}, {position.message_id, range.end}};
}

bool is_before(const Transcript& transcript, TextPosition a, TextPosition b) {
  if (a.message_id == b.message_id) return a.offset < b.offset;
  return transcript.index_of(a.message_id) < transcript.index_of(b.message_id);
}

}  // namespace

void ChatView::begin_selection(const ChatState& chat, Transcript& transcript, TextPosition position) {
  const int clicks = ImGui::GetIO().MouseClickedCount[ImGuiMouseButton_Left];
  if (ImGui::GetIO().KeyShift && transcript.selection) {
    grain_ = Grain::kCharacter;
    transcript.selection->head = position;
    grasped_ = {transcript.selection->anchor, transcript.selection->anchor};
    return;
  }
  grain_ = clicks >= 3 ? Grain::kParagraph : clicks == 2 ? Grain::kWord : Grain::kCharacter;
  grasped_ = grain_ == Grain::kCharacter ? TextSelection{position, position}
                                         : grasp(chat, transcript, position, grain_ == Grain::kWord);
  transcript.selection = grasped_;
}

void ChatView::extend_selection(const ChatState& chat, Transcript& transcript, TextPosition position) const {
  const TextSelection here = grain_ == Grain::kCharacter
                                 ? TextSelection{position, position}
                                 : grasp(chat, transcript, position, grain_ == Grain::kWord);
  if (is_before(transcript, here.anchor, grasped_.anchor)) {
    transcript.selection = TextSelection{grasped_.head, here.anchor};
  } else {
    transcript.selection = TextSelection{
        grasped_.anchor, is_before(transcript, here.head, grasped_.head) ? grasped_.head : here.head};
  }
}

void ChatView::take_keys(const Frame& frame, const ChatState& chat, Transcript& transcript) const {
  if (!ImGui::IsWindowFocused() || ImGui::GetIO().WantTextInput || chat.messages.empty()) return;
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_A)) {
    const MessageState& last = chat.messages.back();
    transcript.selection =
        TextSelection{{chat.messages.front().id, 0}, {last.id, static_cast<std::uint32_t>(last.text.size())}};
  }
  const bool as_markdown = ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_C);
  if (!as_markdown && !ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C)) return;
  if (std::string text = copied_text(chat, transcript, as_markdown); !text.empty())
    frame.actions.push(actions::CopyText{std::move(text)});
}

void ChatView::draw_menu(const Frame& frame, const ChatState& chat, Transcript& transcript) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(6), frame.px(6)});
  const bool open = ImGui::BeginPopup("transcript_menu");
  ImGui::PopStyleVar();
  if (!open) return;
  const bool any = transcript.selected().has_value();
  const auto entry = [&](const char* id, const char* text, bool enabled) {
    const bool pressed = button(
        frame, id, text, {.kind = ButtonKind::kPlain, .width = 210, .enabled = enabled, .align_left = true});
    if (pressed) ImGui::CloseCurrentPopup();
    return pressed;
  };
  if (entry("menu_copy", "Copy", any))
    frame.actions.push(actions::CopyText{copied_text(chat, transcript, false)});
  if (entry("menu_copy_markdown", "Copy as Markdown", any))
    frame.actions.push(actions::CopyText{copied_text(chat, transcript, true)});
  if (entry("menu_select_all", "Select all", true)) {
    const MessageState& last = chat.messages.back();
    transcript.selection =
        TextSelection{{chat.messages.front().id, 0}, {last.id, static_cast<std::uint32_t>(last.text.size())}};
  }
  if (!menu_link_.empty() && entry("menu_copy_link", "Copy link", true))
    frame.actions.push(actions::CopyText{menu_link_});
  ImGui::EndPopup();
}

// A link's text may say anything; so its address is read before it is opened.
void ChatView::draw_link_question(const Frame& frame) {
  if (std::exchange(ask_, false)) ImGui::OpenPopup("open_link");
  ImGui::SetNextWindowPos(asked_at_, ImGuiCond_Appearing);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(16), frame.px(14)});
  const bool open = ImGui::BeginPopup("open_link");
  ImGui::PopStyleVar();
  if (!open) return;
  line(frame, heading_text(frame), "Open this link in your browser?");
  gap(frame, 6);
  TextStyle style = mono_text(frame);
  style.colour = frame.theme.text;
  paragraph(frame, style, visible_text(asked_link_), frame.px(440));
  gap(frame, 12);
  const bool opened = button(frame, "open_link_now", "Open", {.kind = ButtonKind::kPrimary, .width = 84});
  beside(frame, 8);
  const bool copied = button(frame, "copy_link", "Copy link");
  beside(frame, 8);
  const bool cancelled = button(frame, "cancel_link", "Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape);
  if (opened) frame.actions.push(actions::OpenLink{asked_link_});
  if (copied) frame.actions.push(actions::CopyText{asked_link_});
  if (opened || copied || cancelled) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void ChatView::draw_question_editor(const Frame& frame, const ChatState& chat, const MessageState& message,
                                    Column column, float top) {
  const float width = std::min(frame.px(kBubbleWidth), column.width);
  const float left = column.left + column.width - width;
  ImGui::SetCursorScreenPos({left, top});
  if (std::exchange(focus_editor_, false)) take_keyboard("##edit_text");
  const bool cancel_key = ImGui::IsKeyPressed(ImGuiKey_Escape);
  const bool entered =
      text_area(frame, "##edit_text", edit_text_, {width, frame.px(kEditorHeight - kEditorButtons)},
                ImGuiInputTextFlags_CtrlEnterForNewLine | ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::SetCursorScreenPos({left + width - frame.px(160), top + frame.px(kEditorHeight - 38)});
  const bool cancelled = button(frame, "cancel_edit", "Cancel", {.width = 76}) || cancel_key;
  beside(frame, 8);
  const bool has_text = !is_blank(edit_text_);
  const bool sent =
      button(frame, "send_edit", "Send", {.kind = ButtonKind::kPrimary, .width = 76, .enabled = has_text}) ||
      entered;
  if (sent && has_text) {
    frame.actions.push(actions::EditMessage{chat.id, message.id, edit_text_});
    follow_end(chat.id);
  }
  if (cancelled || (sent && has_text)) editor_ = MessageEditor::kNone;
}

// Another answer beside this one, or the first words of one to this question.
void ChatView::draw_answer_editor(const Frame& frame, const ChatState& chat, const MessageState& message,
                                  Column column, float top, float height) {
  ImGui::SetCursorScreenPos({column.left, top});
  if (std::exchange(focus_editor_, false)) take_keyboard("##edit_text");
  const bool cancel_key = ImGui::IsKeyPressed(ImGuiKey_Escape);
  const bool entered = ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Enter);
  text_area(frame, "##edit_text", edit_text_, {column.width, height - frame.px(kEditorButtons)}, 0,
            "How the answer begins");
  const bool has_text = !is_blank(edit_text_);
  const ButtonOptions save{.width = 76, .enabled = has_text, .help = "Keep this text as another answer"};
  const ButtonOptions go_on{.kind = ButtonKind::kPrimary,
                            .width = 100,
                            .enabled = has_text,
                            .help = "The model continues at the end of this text (Ctrl+Enter)"};
  ImGui::SetCursorScreenPos(
      {column.left + column.width - frame.px(76 + 76 + 100 + 16), top + height - frame.px(38)});
  const bool cancelled = button(frame, "cancel_edit", "Cancel", {.width = 76}) || cancel_key;
  beside(frame, 8);
  const bool saved = button(frame, "save_answer", "Save", save);
  beside(frame, 8);
  const bool continued = (button(frame, "continue_edit", "Continue", go_on) || entered) && has_text;
  if (saved || continued) {
    const auto end = continued ? actions::AnswerEnd::kContinued : actions::AnswerEnd::kFinished;
    frame.actions.push(actions::WriteAnswer{chat.id, message.id, edit_text_, end});
    follow_end(chat.id);
  }
  if (cancelled || saved || continued) editor_ = MessageEditor::kNone;
}

void ChatView::draw_queue(const Frame& frame, const ChatState& chat, Column column, float top) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t i = 0; i < chat.queued.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const float width = std::min(frame.px(kBubbleWidth), column.width);
    const ImVec2 low{column.left + column.width - width,
                     top + frame.px(kQueuedHeight) * static_cast<float>(i)};
    const ImVec2 high{low.x + width, low.y + frame.px(kQueuedHeight - 8)};
    list->AddRect(low, high, frame.theme.line, frame.px(12));
    draw_text(frame, list, {low.x + frame.px(14), low.y + frame.px(9)}, tiny_text(frame), "queued");
    draw_text(frame, list, {low.x + frame.px(70), low.y + frame.px(8)}, small_text(frame), chat.queued[i],
              width - frame.px(112));
    ImGui::SetCursorScreenPos({high.x - frame.px(34), low.y + frame.px(5)});
    const ButtonOptions remove{
        .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Do not send"};
    if (button(frame, "remove_queued", "", remove)) frame.actions.push(actions::RemoveQueued{chat.id, i});
    ImGui::PopID();
  }
}

void ChatView::draw_jump_button(const Frame& frame, Transcript& transcript) {
  const ImVec2 low = ImGui::GetWindowPos();
  const ImVec2 extent = ImGui::GetWindowSize();
  const float side = frame.px(36);
  const ImVec2 at{std::floor(low.x + (extent.x - side) * 0.5f), low.y + extent.y - side - frame.px(12)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + side, at.y + side}, frame.theme.panel, frame.px(size::kRadiusControl));
  ImGui::SetCursorScreenPos(at);
  const ButtonOptions jump{.icon = Icon::kArrowDown, .height = 36, .help = "Scroll to end"};
  if (button(frame, "jump_to_end", "", jump)) transcript.following = true;
}

}  // namespace octavo::ui
