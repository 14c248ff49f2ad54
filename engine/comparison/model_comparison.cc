#include "engine/comparison/model_comparison.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/model_preview.h"
#include "engine/runner/runner_plan.h"

namespace octavo::comparison {
namespace {

constexpr std::int32_t kDefaultContext = 512;

Error cancelled() { return {.code = ErrorCode::kCancelled, .message = "cancelled"}; }

std::string name_of(const ModelDescription& model) { return escape_for_message(model.path); }

Error other_vocabulary(const std::string& difference) {
  return {
      .code = ErrorCode::kUnsupported,
      .message = "the models have different vocabularies, so there is nothing to compare token by token: " +
                 difference + "; choose two files of one model"};
}

// The ids must mean the same: it is the distributions over them that are compared.
Result<void> check_same_vocabulary(const OpenedModel& a, const OpenedModel& b) {
  const std::int32_t size = a.description.vocabulary_size;
  if (size != b.description.vocabulary_size) {
    return other_vocabulary(name_of(a.description) + " has " + count_text(size, "token") + ", " +
                            name_of(b.description) + " has " + with_thousands(b.description.vocabulary_size));
  }
  for (TokenId id = 0; id < std::min(a.tokenizer->vocabulary_size(), b.tokenizer->vocabulary_size()); ++id) {
    const std::string_view of_a = a.tokenizer->token_bytes(id), of_b = b.tokenizer->token_bytes(id);
    if (of_a == of_b && a.tokenizer->is_control(id) == b.tokenizer->is_control(id)) continue;
    return other_vocabulary("token " + std::to_string(id) + " is '" + escape_for_message(of_a, 40) + "' in " +
                            name_of(a.description) + " and '" + escape_for_message(of_b, 40) + "' in " +
                            name_of(b.description));
  }
  return {};
}

Result<void> check_context(std::int32_t context, const ModelDescription& model) {
  if (context >= 2 && context <= model.context_length) return {};
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = "context is " + std::to_string(context) + ", but that of " + name_of(model) +
                          " is " + std::to_string(model.context_length) + " tokens; use 2 to " +
                          std::to_string(model.context_length),
               .subject = "context"};
}

Error invalid_logits(const ModelDescription& model, const ComparedText& compared) {
  const std::int64_t index = compared.first_scored + std::ssize(compared.figures);
  return {.code = ErrorCode::kInvalidLogits,
          .message = name_of(model) + ": for token " + with_thousands(index) +
                     " of the text it gave no finite numbers; the file may be damaged"};
}

struct OpenedModels {
  OpenedModel a, b;
  std::int32_t context = 0;
};

Result<OpenedModels> open_both(const ComparisonOptions& options) {
  // Headers alone: what the files are opened for depends on both.
  OCTAVO_TRY(const ModelDescription described_a, read_model_description(options.a.model));
  OCTAVO_TRY(const ModelDescription described_b, read_model_description(options.b.model));
  const std::int32_t context = options.context.value_or(
      std::min({kDefaultContext, described_a.context_length, described_b.context_length}));
  OCTAVO_TRY_VOID(check_context(context, described_a));
  OCTAVO_TRY_VOID(check_context(context, described_b));
  OCTAVO_TRY(OpenedModel a, open_model(TextScorer::options_for(options.a, context)));
  OCTAVO_TRY(OpenedModel b, open_model(TextScorer::options_for(options.b, context),
                                       /*reserved_bytes=*/a.parts.plan.total_bytes()));
  OCTAVO_TRY_VOID(check_same_vocabulary(a, b));
  return OpenedModels{std::move(a), std::move(b), context};
}

// A part of what is reported.
model::LoadProgress part_of(const ComparisonProgress& progress, double begin, double end) {
  return [&progress, begin, end](double fraction) {
    return !progress || progress(begin + (end - begin) * fraction);
  };
}

}  // namespace

std::vector<TextWindow> text_windows(std::int64_t num_tokens, std::int32_t context, std::int32_t num_before) {
  const std::int64_t capacity = context - num_before;
  const std::int64_t stride = std::max<std::int64_t>(1, capacity / 2);
  std::vector<TextWindow> windows;
  std::int64_t scored_end = num_before > 0 ? 0 : 1;
  for (std::int64_t begin = 0; scored_end < num_tokens; begin += stride) {
    const std::int64_t end = std::min(begin + capacity, num_tokens);
    windows.push_back({begin, end, scored_end});
    scored_end = end;
  }
  return windows;
}

Result<ModelComparison> ModelComparison::load(const ComparisonOptions& options,
                                              const ComparisonProgress& progress) {
  OCTAVO_TRY(OpenedModels opened, open_both(options));
  OCTAVO_TRY(TextScorer a, TextScorer::load(std::move(opened.a), part_of(progress, 0.0, 0.5)));
  OCTAVO_TRY(TextScorer b, TextScorer::load(std::move(opened.b), part_of(progress, 0.5, 1.0)));
  return ModelComparison(std::move(a), std::move(b), opened.context,
                         static_cast<std::size_t>(options.num_best));
}

Result<ComparisonNeeds> ModelComparison::look(const ComparisonOptions& options) {
  OCTAVO_TRY(OpenedModels opened, open_both(options));
  return ComparisonNeeds{.a = std::move(opened.a.description),
                         .b = std::move(opened.b.description),
                         .bytes_a = opened.a.parts.plan.total_bytes(),
                         .bytes_b = opened.b.parts.plan.total_bytes(),
                         .free_bytes = runner::available_memory_bytes(),
                         .context = opened.context};
}

ModelComparison::ModelComparison(TextScorer a, TextScorer b, std::int32_t context, std::size_t num_best)
    : a_(std::move(a)), b_(std::move(b)), context_(context), num_best_(num_best) {}

Result<ComparedText> ModelComparison::compare(std::string_view text, bool parse_special,
                                              const ComparisonProgress& progress) {
  const tokenizer::Tokenizer& tokenizer = a_.tokenizer();
  OCTAVO_TRY(const std::vector<TokenId> before, tokenizer.encode("", parse_special, /*add_bos=*/true));
  OCTAVO_TRY(std::vector<TokenId> token_ids, tokenizer.encode(text, parse_special, /*add_bos=*/false));
  return compare(std::move(token_ids), before, progress);
}

Result<ComparedText> ModelComparison::compare(std::vector<TokenId> token_ids,
                                              const ComparisonProgress& progress) {
  return compare(std::move(token_ids), {}, progress);
}

Result<ComparedText> ModelComparison::compare(std::vector<TokenId> token_ids, std::span<const TokenId> before,
                                              const ComparisonProgress& progress) {
  ComparedText compared{.token_ids = std::move(token_ids), .first_scored = before.empty() ? 1 : 0};
  const std::int64_t num_tokens = std::ssize(compared.token_ids);
  if (num_tokens <= compared.first_scored) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = "text: it is " + count_text(num_tokens, "token") +
                   " long, and none of them has one before it to be predicted from; give a longer text",
        .subject = "text"};
  }
  const std::vector<TextWindow> windows =
      text_windows(num_tokens, context_, static_cast<std::int32_t>(before.size()));
  std::int64_t num_to_read = 0;
  for (const TextWindow& window : windows) num_to_read += window.end - window.begin;
  std::int64_t num_read = 0;
  for (const TextWindow& window : windows) {
    const auto part = [&](double fraction) {
      const double done =
          static_cast<double>(num_read) + fraction * static_cast<double>(window.end - window.begin);
      return !progress || progress(done / static_cast<double>(num_to_read));
    };
    OCTAVO_TRY_VOID(compare_window(window, before, part, compared));
    num_read += window.end - window.begin;
  }
  return compared;
}

Result<void> ModelComparison::compare_window(const TextWindow& window, std::span<const TokenId> before,
                                             const ComparisonProgress& progress, ComparedText& compared) {
  std::vector<TokenId> token_ids(before.begin(), before.end());
  token_ids.insert(token_ids.end(), compared.token_ids.begin() + window.begin,
                   compared.token_ids.begin() + window.end);
  a_.begin_text();
  b_.begin_text();
  // The row before a token predicts it, and the last token predicts nothing of the window.
  const std::size_t first_scored =
      before.size() + static_cast<std::size_t>(window.first_scored - window.begin) - 1;
  const std::size_t end = token_ids.size() - 1;
  for (std::size_t begin = 0; begin < end;) {
    if (!progress(static_cast<double>(begin) / static_cast<double>(end))) return cancelled();
    const bool is_scored = begin >= first_scored;
    const std::size_t part_end = std::min(begin + TextScorer::kMaxTokens, is_scored ? end : first_scored);
    const auto part = std::span(token_ids).subspan(begin, part_end - begin);
    if (is_scored) {
      OCTAVO_TRY_VOID(score(part, std::span(token_ids).subspan(begin + 1, part.size()), compared));
    } else {
      OCTAVO_TRY_VOID(a_.read(part));
      OCTAVO_TRY_VOID(b_.read(part));
    }
    begin = part_end;
  }
  return {};
}

Result<void> ModelComparison::score(std::span<const TokenId> token_ids, std::span<const TokenId> next,
                                    ComparedText& compared) {
  OCTAVO_TRY(const std::span<const float> logits_a, a_.score(token_ids));
  OCTAVO_TRY(const std::span<const float> logits_b, b_.score(token_ids));
  const std::size_t size = logits_a.size() / token_ids.size();
  for (std::size_t row = 0; row < token_ids.size(); ++row) {
    const auto of_a = Distribution::of(logits_a.subspan(row * size, size));
    const auto of_b = Distribution::of(logits_b.subspan(row * size, size));
    if (!of_a || !of_b) return invalid_logits((of_a ? b_ : a_).description().model, compared);
    compared.figures.push_back(comparison::compare(*of_a, *of_b, next[row], num_best_));
  }
  return {};
}

}  // namespace octavo::comparison
