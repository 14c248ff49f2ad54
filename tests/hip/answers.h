// What a whole engine on the emulated device says to a few requests, as text: tokens, and log-probabilities
// of the likeliest to the last bit. Compiled by the names of CUDA and by those of HIP.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tests/cuda/tiny_engines.h"

namespace octavo {

inline std::string text_of(const std::vector<RequestOutput>& outputs) {
  std::string text;
  for (const RequestOutput& output : outputs) {
    if (output.error) text += output.error->message + "\n";
    for (const auto& each : output.outputs) {
      for (const TokenId token : each.token_ids) text += std::to_string(token) + " ";
      for (const auto& alternatives : each.top_logprobs) {
        for (const TokenLogprob& alternative : alternatives) {
          char number[64];
          std::snprintf(number, sizeof number, "%a ", static_cast<double>(alternative.logprob));
          text += number;
        }
      }
      text += "\n";
    }
  }
  return text;
}

// Prompts in tiles and by the matrix library, decodes one by one and several together, greedy and drawn;
// weights in integers and in float16.
inline std::string answers() {
  emulation::settings().finds_races = false;
  std::string text;
  for (const kernels::TensorType type : {kernels::TensorType::kQ4_1, kernels::TensorType::kF16}) {
    for (const bool deterministic : {false, true}) {
      EngineOptions options = small_options(type);
      options.deterministic = deterministic;
      const auto engine = open_engine(options, Device::kCuda);
      if (engine == nullptr) return "no engine";
      std::vector<GenerationRequest> requests = {request(1, 19, 3), request(2, 1, 2), request(3, 11, 2, 2)};
      requests[0].sampling.logprobs = requests[1].sampling.logprobs = 5;  // of the others the device draws
      text += text_of(run_together(*engine, requests));
    }
  }
  return text;
}

}  // namespace octavo
