// The chapters of the tour before they are played: who asks what when, which words answer, and the pool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/engine_options.h"

namespace octavo::app {

inline constexpr std::int32_t kTourBlockSize = 4;

struct TourAsk {
  std::int32_t at_step = 0;
  std::string label = {};
  std::string prompt = {};
  std::vector<std::string> answers = {};  // of each output; of beams the words to choose from
  std::optional<std::int32_t> beams = {};
  std::int32_t num_tokens = 0;        // 0: as many as the first answer has
  std::int32_t num_system_words = 0;  // of the prompt, at its start
};

struct TourScript {
  std::string title = {};
  std::string beginning = {}, end = {};
  std::int32_t num_blocks = 8, num_host_blocks = 0;
  std::int32_t num_states = 0;  // of recurrent layers; 0: the model of the chapter has none
  std::int32_t window = 0;      // words, of layers that have one; 0: all layers read everything
  std::int32_t num_window_blocks = 0;
  PreemptionPolicy preemption = PreemptionPolicy::kAuto;
  bool has_cache = true;        // finished requests stay findable
  bool computes_again = false;  // each word is a request of its own
  std::vector<TourAsk> asks = {};
};

const std::vector<TourScript>& tour_scripts();

std::vector<std::string> words_of(std::string_view text);

}  // namespace octavo::app
