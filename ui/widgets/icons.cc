#include "ui/widgets/icons.h"

#include <cmath>
#include <initializer_list>

namespace octavo::ui {
namespace {

// Draws in a grid of 16 x 16 around the centre.
class Pen {
 public:
  Pen(ImDrawList* list, ImVec2 centre, float extent, ImU32 colour)
      : list_(list),
        centre_(centre),
        unit_(extent / 16.0f),
        colour_(colour),
        thickness_(std::fmax(1.0f, unit_ * 1.4f)) {}

  ImVec2 at(ImVec2 point) const {
    return {centre_.x + (point.x - 8.0f) * unit_, centre_.y + (point.y - 8.0f) * unit_};
  }
  void path(std::initializer_list<ImVec2> points, bool closed = false) {
    for (const ImVec2& point : points) list_->PathLineTo(at(point));
    list_->PathStroke(colour_, thickness_, closed ? ImDrawFlags_Closed : ImDrawFlags_None);
  }
  void rectangle(ImVec2 low, ImVec2 high, float rounding) {
    list_->AddRect(at(low), at(high), colour_, rounding * unit_, thickness_);
  }
  void filled(ImVec2 low, ImVec2 high, float rounding) {
    list_->AddRectFilled(at(low), at(high), colour_, rounding * unit_);
  }
  void arc(ImVec2 middle, float radius, float from, float to) {
    list_->PathArcTo(at(middle), radius * unit_, from, to, 16);
    list_->PathStroke(colour_, thickness_);
  }
  void dot(ImVec2 middle, float radius) { list_->AddCircleFilled(at(middle), radius * unit_, colour_); }
  void ring(ImVec2 middle, float radius) {
    list_->AddCircle(at(middle), radius * unit_, colour_, 0, thickness_);
  }

 private:
  ImDrawList* list_;
  ImVec2 centre_;
  float unit_;
  ImU32 colour_;
  float thickness_;
};

void gear(Pen& pen) {
  pen.ring({8, 8}, 2.4f);
  pen.ring({8, 8}, 5.0f);
  for (int tooth = 0; tooth < 8; ++tooth) {
    const float angle = static_cast<float>(tooth) * 0.785398f;
    const float x = std::cos(angle), y = std::sin(angle);
    pen.path({{8 + x * 5.0f, 8 + y * 5.0f}, {8 + x * 7.0f, 8 + y * 7.0f}});
  }
}

void paperclip(Pen& pen) {
  pen.path({{11.5f, 5}, {11.5f, 10.5f}});
  pen.arc({8, 10.5f}, 3.5f, 0, 3.14159f);
  pen.path({{4.5f, 10.5f}, {4.5f, 4.3f}});
  pen.arc({6.8f, 4.3f}, 2.3f, 3.14159f, 6.28318f);
  pen.path({{9.1f, 4.3f}, {9.1f, 10.2f}});
  pen.arc({8, 10.2f}, 1.1f, 0, 3.14159f);
  pen.path({{6.9f, 10.2f}, {6.9f, 5.2f}});
}

void sliders(Pen& pen) {
  pen.path({{2, 5}, {14, 5}});
  pen.path({{2, 11}, {14, 11}});
  pen.dot({10, 5}, 2.2f);
  pen.dot({6, 11}, 2.2f);
}

void trash(Pen& pen) {
  pen.path({{2.5f, 4}, {13.5f, 4}});
  pen.path({{6, 4}, {6, 2.2f}, {10, 2.2f}, {10, 4}});
  pen.path({{4, 4}, {4.7f, 13.8f}, {11.3f, 13.8f}, {12, 4}});
}

void regenerate(Pen& pen) {
  pen.arc({8, 8}, 5.2f, -0.5f, 4.6f);
  pen.path({{13.6f, 2.4f}, {12.8f, 5.8f}, {9.6f, 4.9f}});
}

}  // namespace

void draw_icon(ImDrawList* list, Icon icon, ImVec2 centre, float extent, ImU32 colour) {
  Pen pen(list, centre, extent, colour);
  switch (icon) {
    case Icon::kPlus:
      pen.path({{8, 3}, {8, 13}});
      pen.path({{3, 8}, {13, 8}});
      break;
    case Icon::kClose:
      pen.path({{4, 4}, {12, 12}});
      pen.path({{12, 4}, {4, 12}});
      break;
    case Icon::kCopy:
      pen.rectangle({5.5f, 5.5f}, {14, 14}, 2);
      pen.path({{10.5f, 2.3f}, {3.6f, 2.3f}, {2.3f, 3.6f}, {2.3f, 10.5f}});
      break;
    case Icon::kCopyText:
      pen.rectangle({3, 2}, {13, 14}, 2);
      pen.path({{5.5f, 5.5f}, {10.5f, 5.5f}});
      pen.path({{5.5f, 8}, {10.5f, 8}});
      pen.path({{5.5f, 10.5f}, {8.5f, 10.5f}});
      break;
    case Icon::kEdit:
      pen.path({{3, 13}, {3.6f, 10.2f}, {11, 2.8f}, {13.2f, 5}, {5.8f, 12.4f}}, /*closed=*/true);
      break;
    case Icon::kTrash: trash(pen); break;
    case Icon::kRegenerate: regenerate(pen); break;
    case Icon::kGear: gear(pen); break;
    case Icon::kSidebar:
      pen.rectangle({2, 3}, {14, 13}, 2);
      pen.path({{6.5f, 3}, {6.5f, 13}});
      break;
    case Icon::kStop: pen.filled({4, 4}, {12, 12}, 1.5f); break;
    case Icon::kChevronLeft: pen.path({{9.8f, 4}, {6, 8}, {9.8f, 12}}); break;
    case Icon::kChevronRight: pen.path({{6.2f, 4}, {10, 8}, {6.2f, 12}}); break;
    case Icon::kArrowDown:
      pen.path({{8, 3}, {8, 13}});
      pen.path({{4, 9}, {8, 13}, {12, 9}});
      break;
    case Icon::kSliders: sliders(pen); break;
    case Icon::kCheck: pen.path({{3, 8.5f}, {6.5f, 12}, {13, 4.5f}}); break;
    case Icon::kColumns:
      pen.rectangle({2, 3}, {7, 13}, 1.5f);
      pen.rectangle({9, 3}, {14, 13}, 1.5f);
      break;
    case Icon::kMaximise:
      pen.path({{9.5f, 3}, {13, 3}, {13, 6.5f}});
      pen.path({{6.5f, 13}, {3, 13}, {3, 9.5f}});
      break;
    case Icon::kChevronDown: pen.path({{4, 6.2f}, {8, 10}, {12, 6.2f}}); break;
    case Icon::kSearch:
      pen.ring({7, 7}, 4.3f);
      pen.path({{10.3f, 10.3f}, {14, 14}});
      break;
    case Icon::kPin:
      pen.path({{5, 2.5f}, {11, 2.5f}, {10.2f, 7}, {12.5f, 9.5f}, {3.5f, 9.5f}, {5.8f, 7}}, /*closed=*/true);
      pen.path({{8, 9.5f}, {8, 14}});
      break;
    case Icon::kFolder:
      pen.path({{2, 12.5f}, {2, 3.5f}, {6.2f, 3.5f}, {7.8f, 5.5f}, {14, 5.5f}, {14, 12.5f}}, /*closed=*/true);
      break;
    case Icon::kMore:
      pen.dot({3.2f, 8}, 1.3f);
      pen.dot({8, 8}, 1.3f);
      pen.dot({12.8f, 8}, 1.3f);
      break;
    case Icon::kPaperclip: paperclip(pen); break;
    case Icon::kBranches:
      pen.dot({4, 3}, 1.7f);
      pen.dot({4, 13}, 1.7f);
      pen.dot({12, 8}, 1.7f);
      pen.path({{4, 4}, {4, 12}});
      pen.path({{4, 5}, {5.5f, 8}, {11, 8}});
      break;
  }
}

}  // namespace octavo::ui
