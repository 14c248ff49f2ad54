// Two models over one text, in the Compare workspace: what is to be compared, how far it is, and what came of
// it. Plain values; app/window/two_models writes them between frames.
//
// A is the model that answers in the window, B the one that is held against it. Both are read from their
// files for the comparison, beside the one that answers, and go when it ends.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ui/compare_state.h"
#include "ui/model_state.h"

namespace octavo::ui {

enum class TwoModelsPhase { kSetUp, kLoading, kComparing };

// What one model said of a token.
struct TokenView {
  double logprob = 0.0;                  // natural
  std::int32_t rank = 0;                 // 1: the likeliest
  std::vector<TokenAlternative> best{};  // likeliest first
};

// What both said of it.
struct TwoModelsToken {
  double kl_divergence = 0.0;  // of B from A, nats
  TokenView a, b;
  double probability_change() const { return std::exp(b.logprob) - std::exp(a.logprob); }  // p_B - p_A
};

struct TwoModelsResult {
  std::string a, b;    // names with their quantisation
  std::string source;  // of the text, a few words
  std::int32_t context = 0;
  ComparedColumn text;                  // its words and tokens; of each token what A said
  std::size_t first_scored = 0;         // token of `text`
  std::vector<TwoModelsToken> figures;  // of the tokens from there on
  std::vector<ModelFact> table;         // of the whole text
  std::vector<std::size_t> worst;       // tokens of `text`, highest divergence first
  std::size_t fork_begin = 0;           // from this token on, a chat can go on
};

struct TwoModelsState {
  bool open = false;        // in place of the answers side by side
  std::string second_path;  // empty: not chosen
  std::string second_name;
  bool looking = false;        // into the files
  std::string needs;           // memory, before anything is loaded, one sentence; empty until it is known
  bool can_compare = false;    // as far as the models go
  std::int32_t context = 512;  // tokens of a window

  std::string text;  // that was read or chosen; the field takes it at each `text_serial`
  std::uint64_t text_serial = 0;
  std::string source = {};  // where it came from, a few words; empty: typed

  TwoModelsPhase phase = TwoModelsPhase::kSetUp;
  double fraction = 0.0;
  bool is_cancelling = false;
  std::string problem;  // one sentence
  std::optional<TwoModelsResult> result;
};

}  // namespace octavo::ui
