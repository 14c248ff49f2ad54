// How far log-probabilities are from those that an independent program found for a model of
// tests/golden/tiny_models.json.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "tests/model/one_sequence.h"

namespace octavo::model {

struct Errors {
  double mean = 0.0, worst = 0.0;
};

// Of the log-probabilities of the prompt and of all tokens behind it.
inline Errors errors_of(const std::vector<float>& logits, const nlohmann::json& model) {
  const std::vector<std::int32_t> token_ids = model["token_ids"];
  const std::size_t size = logits.size() / token_ids.size();
  Errors errors;
  std::size_t count = 0;
  const auto add = [&](double found, double expected) {
    const double error = std::abs(found - expected);
    errors.worst = error <= errors.worst ? errors.worst : error;  // a NaN stays
    errors.mean += error;
    ++count;
  };
  for (std::size_t row = 0; row < token_ids.size(); ++row) {
    const std::vector<double> found = log_softmax(std::span(logits).subspan(row * size, size));
    if (row + 1 < token_ids.size()) {
      add(found[static_cast<std::size_t>(token_ids[row + 1])], model["prompt_logprobs"][row]);
    } else {
      for (std::size_t id = 0; id < size; ++id) add(found[id], model["last_logprobs"][id]);
    }
  }
  errors.mean /= static_cast<double>(count);
  return errors;
}

}  // namespace octavo::model
