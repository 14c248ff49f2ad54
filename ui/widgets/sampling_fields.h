// The fields for how tokens are drawn and where answers end, each with its help: for a chat's settings, and
// for presets. Every number has a slider and can be typed; what is out of range is answered by a sentence
// below its field, and the value stays as it was.
//
// UI thread. Keeps what stands in the fields.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/sampling_params.h"
#include "ui/frame.h"
#include "ui/widgets/answer_form_field.h"

namespace octavo::ui {

// A line for each text; a backslash, a line break and a tab inside one as "\\", "\n" and "\t".
std::string lines_of_texts(const std::vector<std::string>& texts);
// Empty lines are none.
std::vector<std::string> texts_of_lines(std::string_view lines);

class SamplingFields {
 public:
  // True when a value was changed; what was not changed keeps its value to the last digit.
  bool draw(const Frame& frame, SamplingParams& sampling, float width);
  // Other values come: what was typed belongs to the old ones.
  void forget() {
    fields_.clear();
    form_ = {};
  }

 private:
  // What stands in a field, and the value that it stands for.
  struct Field {
    std::string text, known;
    std::string problem;  // of what was typed, one sentence
  };
  struct Number;

  bool draw_numbers(const Frame& frame, SamplingParams& sampling, float width, int group);
  bool draw_number(const Frame& frame, const Number& number, SamplingParams& sampling, float width);
  bool draw_texts(const Frame& frame, const char* id, const char* label, std::string_view help,
                  std::string_view hint, std::vector<std::string> SamplingParams::*member,
                  SamplingParams& sampling, float width);
  bool draw_seed(const Frame& frame, SamplingParams& sampling, float width);
  void draw_problem(const Frame& frame, const Field& field, float width) const;
  Field& field(const char* id, const std::string& now);

  std::map<std::string, Field> fields_;  // by id
  AnswerFormField form_;
};

}  // namespace octavo::ui
