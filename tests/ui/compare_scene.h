// The window with an engine that answers comparisons by a script: four lines about rain, in up to eight
// versions, and a beam search that overtakes itself.
#pragma once

#include <string>
#include <vector>

#include "tests/ui/window_fixture.h"
#include "tests/window/compare_engine.h"
#include "ui/views/compare/compare_look.h"

namespace octavo::testing {

class CompareScene : public WindowTest {
 protected:
  void open_compare(const app::Settings& settings = test_settings());

  void ask_in_chat(const std::string& question);
  // Of a question in the chat; when this returns, everything that the script tells has come.
  void run_samples(std::int32_t count);
  void run_settings();
  void run_beams();

  const ui::CompareLook& look() const;
  // Of building one frame, without the graphics driver.
  double ui_milliseconds();

  CompareEngine* compare_engine_ = nullptr;  // owned by the application
  std::vector<TemplateSwitch> switches_;     // that the model's template reads
  bool hold_answers_ = false;                // no comparison ends by itself
  bool hold_plain_answers_ = false;          // no other answer does
  bool batch_answers_ = false;               // requests of a batch end with the next poll

 private:
  void choose_and_run(ui::ComparisonKind kind, std::int32_t count);
  void answer(RequestId id, const GenerationRequest& request);
  void answer_samples(RequestId id, const GenerationRequest& request);
  void answer_batch(RequestId id, const GenerationRequest& request);
  void answer_beams(RequestId id, const GenerationRequest& request);
  void finish(RequestId id, std::int32_t num_outputs, FinishReason reason, bool with_scores = false);
};

}  // namespace octavo::testing
