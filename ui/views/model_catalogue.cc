#include "ui/views/model_catalogue.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/views/download_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kCatalogueWidth = 1040, kCatalogueHeight = 724, kLeftWidth = 420;
constexpr float kCatalogueRowHeight = 58, kFileRowHeight = 50, kBetween = 24;
constexpr float kTwoColumns = 600;  // narrower, one column has all of it
constexpr float kLeastRows = 2.5f;  // of files; with less room, all that is beside them scrolls with them

// Against the background of a chosen row, which is harder to read on than the panel.
ImU32 fit_colour(const Frame& frame, CatalogueFit fit) {
  switch (fit) {
    case CatalogueFit::kUnknown: return frame.theme.muted;
    case CatalogueFit::kFits: return readable(frame.theme.accent, frame.theme.raised);
    case CatalogueFit::kSlow: return readable(frame.theme.warning, frame.theme.raised);
    case CatalogueFit::kNever:
    case CatalogueFit::kUnsupported: break;
  }
  return readable(frame.theme.error, frame.theme.raised);
}

void begin_column(const char* id, ImVec2 extent) {
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild(id, extent, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

// True when chosen. A line with its background, from the cursor on.
bool row_background(const Frame& frame, const char* id, ImVec2 extent, bool is_chosen) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const bool pressed = ImGui::InvisibleButton(id, extent, ImGuiButtonFlags_EnableNav);
  ImGui::PopStyleVar();
  const bool is_lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
  if (!is_chosen && !is_lit) return pressed;
  const ImVec2 high{low.x + extent.x, low.y + extent.y - frame.px(2)};
  ImDrawList* const list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, high, is_chosen ? frame.theme.raised : with_alpha(frame.theme.raised, 0.6f),
                      frame.px(size::kRadiusControl));
  if (is_chosen)
    list->AddRect(low, high, mix(frame.theme.line, frame.theme.accent, 0.6f), frame.px(size::kRadiusControl));
  return pressed;
}

// A name with a figure on its right, and a note with a word below.
struct RowTexts {
  std::string_view name, figure, note, word;
  ImU32 word_colour = 0;
};
void draw_row_texts(const Frame& frame, ImVec2 low, float width, float height, const RowTexts& texts) {
  ImDrawList* const list = ImGui::GetWindowDrawList();
  const float left = low.x + frame.px(12), right = low.x + width - frame.px(12);
  const float first = low.y + std::floor((height - frame.px(44)) * 0.5f), second = first + frame.px(23);
  TextStyle name = small_text(frame);
  name.em = 14;
  name.colour = frame.theme.text;
  const TextStyle tiny = tiny_text(frame);
  TextStyle word = tiny;
  word.colour = texts.word_colour;
  const float figure_width = text_width(frame, tiny, texts.figure),
              word_width = text_width(frame, word, texts.word);
  draw_text(frame, list, {left, first}, name, texts.name, right - left - figure_width - frame.px(10));
  draw_text(frame, list, {right - figure_width, first + frame.px(2)}, tiny, texts.figure);
  draw_text(frame, list, {left, second}, tiny, texts.note, right - left - word_width - frame.px(10));
  draw_text(frame, list, {right - word_width, second}, word, texts.word);
}

// True when pressed.
bool draw_catalogue_row(const Frame& frame, const CatalogueState& catalogue, const CatalogueRow& row,
                        float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool is_chosen = row.repository == catalogue.repository.name;
  const bool pressed = row_background(frame, "hub_model", {width, frame.px(kCatalogueRowHeight)}, is_chosen);
  if (pressed) frame.actions.push(actions::ShowRepository{row.repository, row.file});
  if (row.name != row.repository) tooltip(frame, row.repository);
  const std::string figure = row.bytes > 0 ? bytes_text(row.bytes) : std::string();
  const char* const word = row.here.empty() ? fit_text(row.fit) : "on this computer";
  draw_row_texts(
      frame, low, width, frame.px(kCatalogueRowHeight),
      {row.name, figure, row.note, word, row.here.empty() ? fit_colour(frame, row.fit) : frame.theme.muted});
  return pressed;
}

void draw_file_row(const Frame& frame, const CatalogueRepository& repository, const CatalogueFile& file,
                   float width) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  if (row_background(frame, "hub_file", {width, frame.px(kFileRowHeight)}, file.path == repository.chosen))
    frame.actions.push(actions::ChooseHubFile{file.path});
  if (!file.type.empty()) tooltip(frame, file.path);
  const std::string figure = bytes_text(file.bytes);
  const char* const word = file.is_checking     ? "looking into it…"
                           : !file.here.empty() ? "on this computer"
                                                : fit_text(file.fit);
  draw_row_texts(frame, low, width, frame.px(kFileRowHeight),
                 {file.type.empty() ? std::string_view(file.path) : std::string_view(file.type), figure,
                  file.sentence, word, file.is_checking ? frame.theme.muted : fit_colour(frame, file.fit)});
}

const CatalogueFile* chosen_file(const CatalogueRepository& repository) {
  const auto found = std::ranges::find(repository.files, repository.chosen, &CatalogueFile::path);
  return found == repository.files.end() ? nullptr : &*found;
}

// Without who offers it: "Qwen3-4B-GGUF · Q4_K_M".
std::string shown_name(const std::string& repository, const CatalogueFile& file) {
  const std::string name = repository.substr(repository.rfind('/') + 1);
  return file.type.empty() ? name : name + " · " + file.type;
}

bool is_runnable(const CatalogueFile& file) {
  return file.fit != CatalogueFit::kUnsupported && file.fit != CatalogueFit::kNever;
}

// Below the button: where the file comes from, or why it does not.
std::string about_get(const CatalogueState& catalogue, const CatalogueFile& file) {
  if (!file.here.empty()) return "It is on this computer already.";
  if (!is_runnable(file)) return file.sentence;
  if (is_running(catalogue.download.phase)) return "One download at a time: wait for it, or pause it.";
  return file.sentence + ". It comes from " + catalogue.host + "; chats go on meanwhile.";
}

float get_height(const Frame& frame, const std::string& about, float width) {
  return frame.px(ButtonOptions().height + 8) + paragraph_height(frame, tiny_text(frame), about, width);
}

void draw_get(const Frame& frame, const CatalogueState& catalogue, const CatalogueFile& file,
              const std::string& about, float width) {
  const bool is_here = !file.here.empty();
  const bool is_ready = is_runnable(file) && !is_running(catalogue.download.phase) && !file.is_checking;
  const std::string text = is_here ? "Open" : "Download and open · " + bytes_text(file.bytes);
  if (button(frame, "get_model", text, {.kind = ButtonKind::kPrimary, .enabled = is_here || is_ready}))
    frame.actions.push(
        actions::GetModel{catalogue.repository.name, file.path, shown_name(catalogue.repository.name, file)});
  gap(frame, 8);
  TextStyle style = tiny_text(frame);
  if (!is_here && !is_runnable(file)) style.colour = readable(frame.theme.error, frame.theme.panel);
  paragraph(frame, style, about, width);
}

}  // namespace

const char* fit_text(CatalogueFit fit) {
  switch (fit) {
    case CatalogueFit::kUnknown: return "";
    case CatalogueFit::kFits: return "fits";
    case CatalogueFit::kSlow: return "slow";
    case CatalogueFit::kNever: return "does not fit";
    case CatalogueFit::kUnsupported: break;
  }
  return "does not run";
}

void ModelCatalogueView::draw(const Frame& frame, const UiState& state) {
  const CatalogueState& catalogue = state.catalogue;
  if (catalogue.open && !was_open_) {
    query_ = catalogue.query.value_or(std::string());
    frames_to_focus_ = 4;  // when the dialog has settled
    wants_models_ = false;
  }
  was_open_ = catalogue.open;
  const DialogOptions dialog{.id = "model_catalogue",
                             .title = "Get models",
                             .width = kCatalogueWidth,
                             .height = kCatalogueHeight,
                             .scrolls = false};
  if (!begin_dialog(frame, dialog, catalogue.open)) return;
  const ImVec2 low = ImGui::GetCursorScreenPos(), all = ImGui::GetContentRegionAvail();
  const float below = frame.px(download_height(frame, catalogue.download, all.x));
  const float height = all.y - (below > 0 ? below + frame.px(12) : 0);
  if (all.x < frame.px(kTwoColumns)) {
    const bool shows_files = !catalogue.repository.name.empty() && !wants_models_;
    begin_column(shows_files ? "hub_files" : "hub_models", {all.x, height});
    if (shows_files) {
      if (link(frame, "show_models", "‹ Models")) wants_models_ = true;
      gap(frame, 6);
      draw_files(frame, catalogue);
    } else {
      draw_models(frame, catalogue);
    }
    ImGui::EndChild();
  } else {
    const float left_width = std::min(frame.px(kLeftWidth), std::floor(all.x * 0.45f));
    begin_column("hub_models", {left_width, height});
    draw_models(frame, catalogue);
    ImGui::EndChild();
    const float left = low.x + left_width + frame.px(kBetween);
    ImGui::GetWindowDrawList()->AddLineV(left - std::floor(frame.px(kBetween) * 0.5f), low.y, low.y + height,
                                         frame.theme.line);
    ImGui::SetCursorScreenPos({left, low.y});
    begin_column("hub_files", {low.x + all.x - left, height});
    draw_files(frame, catalogue);
    ImGui::EndChild();
  }
  if (below > 0) {
    ImGui::SetCursorScreenPos({low.x, low.y + height + frame.px(12)});
    draw_download(frame, catalogue.download, all.x);
  }
  if (end_dialog(frame, catalogue.open)) frame.actions.push(actions::CloseCatalogue{});
}

void ModelCatalogueView::draw_models(const Frame& frame, const CatalogueState& catalogue) {
  const float width = ImGui::GetContentRegionAvail().x;
  if (frames_to_focus_ > 0 && --frames_to_focus_ == 0) take_keyboard("##hub_query");
  if (text_field(frame, "##hub_query", query_, "Search " + catalogue.host, width,
                 ImGuiInputTextFlags_EnterReturnsTrue))
    frame.actions.push(actions::SearchHub{query_});
  gap(frame, 8);
  const bool has_searched = catalogue.query.has_value();
  const std::string note =
      catalogue.is_offline     ? "HF_HUB_OFFLINE is set: nothing is contacted."
      : catalogue.is_searching ? "Searching " + catalogue.host + "…"
      : has_searched           ? "Found on " + catalogue.host
                     : "Searching and downloading contact " + catalogue.host + ", and nothing else.";
  paragraph(frame, tiny_text(frame), note, width);
  gap(frame, 8);
  if (!catalogue.problem.empty()) {
    paragraph(frame, {.em = size::kSmall, .colour = readable(frame.theme.error, frame.theme.panel)},
              catalogue.problem, width);
    gap(frame, 8);
  }
  if (has_searched) {
    if (link(frame, "show_recommended", "‹ Recommended models")) {
      query_.clear();
      frame.actions.push(actions::SearchHub{});
    }
  } else {
    heading_line(frame, "Recommended", "as of " + catalogue.list_date);
  }
  gap(frame, 6);
  begin_column("hub_rows", ImGui::GetContentRegionAvail());
  const float inner = ImGui::GetContentRegionAvail().x;
  const std::vector<CatalogueRow>& rows = has_searched ? catalogue.found : catalogue.recommended;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (draw_catalogue_row(frame, catalogue, rows[i], inner)) wants_models_ = false;
    ImGui::PopID();
  }
  if (has_searched && rows.empty() && !catalogue.is_searching && catalogue.problem.empty())
    paragraph(frame, small_text(frame), "No model with GGUF files has this name.", inner);
  ImGui::EndChild();
}

void ModelCatalogueView::draw_files(const Frame& frame, const CatalogueState& catalogue) const {
  const float width = ImGui::GetContentRegionAvail().x;
  const CatalogueRepository& repository = catalogue.repository;
  if (repository.name.empty()) {
    paragraph(frame, small_text(frame),
              "Choose a model to see its files, and what each needs of this computer.", width);
    return;
  }
  line(frame, heading_text(frame), repository.name, width);
  const std::string facts =
      (repository.licence.empty() ? "" : repository.licence) +
      std::string(repository.is_gated ? " · gated: its owner's terms must be accepted first" : "");
  if (!facts.empty()) paragraph(frame, small_text(frame), facts, width);
  gap(frame, 10);
  if (repository.is_reading) {
    line(frame, small_text(frame), "Asking " + catalogue.host + "…");
    return;
  }
  if (!repository.problem.empty()) {
    paragraph(frame, {.em = size::kSmall, .colour = readable(frame.theme.error, frame.theme.panel)},
              repository.problem, width);
    return;
  }
  const CatalogueFile* const file = chosen_file(repository);
  const std::string about = file != nullptr ? about_get(catalogue, *file) : std::string();
  const float foot = file != nullptr ? frame.px(10) + get_height(frame, about, width) : 0;
  const float room = ImGui::GetContentRegionAvail().y - foot;
  const float row = frame.px(kFileRowHeight);
  const bool has_room = room >= std::min(static_cast<float>(repository.files.size()), kLeastRows) * row;
  if (has_room) begin_column("hub_file_rows", {width, room});
  const float inner = ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < repository.files.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    draw_file_row(frame, repository, repository.files[i], inner);
    ImGui::PopID();
  }
  if (has_room) ImGui::EndChild();
  if (file == nullptr) return;
  gap(frame, 10);
  draw_get(frame, catalogue, *file, about, width);
}

}  // namespace octavo::ui
