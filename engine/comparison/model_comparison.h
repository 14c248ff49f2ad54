// Two models over one text: both read it in step, a few tokens at a time, and only the figures stay.
//
// Windows: a text longer than the context is read in windows of one context that begin half a context apart;
// of each but the first, only what is behind the one before it is scored. So every token is scored once, with
// half a context or more before it where the text has that much. (llama-perplexity's windows do not overlap:
// it scores the second half of each, and leaves out the first halves and the rest.) Where the model begins
// texts with BOS, every window does, and BOS counts as one of its tokens.
//
// Ownership: owns both models. Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/comparison/text_scorer.h"
#include "engine/comparison/token_figures.h"
#include "engine/opened_model.h"

namespace octavo::comparison {

// Text tokens [begin, end) are read, those from `first_scored` on are scored.
struct TextWindow {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first_scored = 0;
  friend bool operator==(const TextWindow&, const TextWindow&) = default;
};
// Of `num_tokens` tokens behind `num_before` that begin every window: 1 with BOS, else 0.
// REQUIRES: context >= 2
std::vector<TextWindow> text_windows(std::int64_t num_tokens, std::int32_t context, std::int32_t num_before);

// A text as the models read it.
struct ComparedText {
  std::vector<TokenId> token_ids;
  // figures[i] is of token first_scored + i; 1 where nothing comes before the first token.
  std::int64_t first_scored = 0;
  std::vector<TokenFigures> figures = {};
};

struct ComparisonOptions {
  EngineOptions a, b;                        // as TextScorer::options_for() understands them; paths of files
  std::optional<std::int32_t> context = {};  // tokens, at least 2; 512 or what both models have
  std::int32_t num_best = 5;                 // alternatives that are kept of each model for each token
};

// What a comparison takes of this machine's memory: weights, working memory and a pool for each model.
struct ComparisonNeeds {
  ModelDescription a = {}, b = {};
  std::int64_t bytes_a = 0, bytes_b = 0;
  std::int64_t free_bytes = 0;  // of the machine, before
  std::int32_t context = 0;
};

// Fraction done, 0..1; return false to cancel. On the calling thread.
using ComparisonProgress = std::function<bool(double fraction)>;

class ModelComparison {
 public:
  // Both files are opened and checked before either is loaded. Errors, beside those of a load: models of
  // different vocabularies (kUnsupported), a context that one does not have (kInvalidArgument); kCancelled.
  static Result<ModelComparison> load(const ComparisonOptions& options, const ComparisonProgress& progress);

  // Both files opened and checked, and nothing loaded. Errors: as load().
  static Result<ComparisonNeeds> look(const ComparisonOptions& options);

  const TextScorer& a() const { return a_; }
  const TextScorer& b() const { return b_; }
  std::int32_t context() const { return context_; }

  // Errors: a text of which nothing can be scored (kInvalidArgument), logits that are no numbers
  // (kInvalidLogits), a device that failed; kCancelled.
  Result<ComparedText> compare(std::string_view text, bool parse_special, const ComparisonProgress& progress);
  // The same of these tokens, as they are: with the BOS that they have, or none.
  Result<ComparedText> compare(std::vector<TokenId> token_ids, const ComparisonProgress& progress);

 private:
  ModelComparison(TextScorer a, TextScorer b, std::int32_t context, std::size_t num_best);
  Result<ComparedText> compare(std::vector<TokenId> token_ids, std::span<const TokenId> before,
                               const ComparisonProgress& progress);
  // The figures of a window's tokens that are scored, behind those that are there.
  Result<void> compare_window(const TextWindow& window, std::span<const TokenId> before,
                              const ComparisonProgress& progress, ComparedText& compared);
  Result<void> score(std::span<const TokenId> token_ids, std::span<const TokenId> next,
                     ComparedText& compared);

  TextScorer a_, b_;
  std::int32_t context_;
  std::size_t num_best_;
};

}  // namespace octavo::comparison
