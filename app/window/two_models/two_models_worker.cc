#include "app/window/two_models/two_models_worker.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "app/window/chat/file_reader.h"
#include "app/window/models/model_title.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/tokenizer/detokenizer.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostWorst = 100;

// As many digits as are of use, whatever the size.
std::string figure(double value) {
  constexpr double kLargest = 1e5;
  if (std::abs(value) >= kLargest) {  // of a model that expected nothing of the kind
    char text[32];
    std::snprintf(text, sizeof text, "%.2e", value);
    return text;
  }
  return value != 0.0 && std::abs(value) < 1.0 ? fixed_text(value, 4) : fixed_text(value, 2);
}

std::string with_error(const comparison::Estimate& estimate) {
  return figure(estimate.value) + " ± " + figure(estimate.standard_error);
}

std::string percent_with_error(const comparison::Estimate& estimate) {
  return fixed_text(100.0 * estimate.value, 1) + " % ± " + fixed_text(100.0 * estimate.standard_error, 1);
}

std::vector<ui::ModelFact> table_of(const comparison::TextSummary& summary) {
  return {{"Tokens scored", with_thousands(summary.num_tokens)},
          {"Mean KL divergence", with_error(summary.mean_kl) + " nats"},
          {"Median, 99 %, worst",
           figure(summary.median_kl) + ", " + figure(summary.high_kl) + ", " + figure(summary.worst_kl)},
          {"Same likeliest token", percent_with_error(summary.same_top)},
          {"Perplexity of A", with_error(summary.perplexity_a)},
          {"Perplexity of B", with_error(summary.perplexity_b)},
          {"ln(PPL B / PPL A)", with_error(summary.log_perplexity_ratio)},
          {"Probability, B − A", percent_with_error(summary.mean_probability_change)}};
}

std::string name_of(const ModelDescription& model) { return model_title(model) + " " + model.quantisation; }

ui::TokenView view_of(const comparison::TokenView& view, const tokenizer::Tokenizer& tokenizer) {
  ui::TokenView shown{.logprob = view.logprob, .rank = view.rank};
  for (const TokenLogprob& token : view.best) {
    shown.best.push_back({.token_id = token.token_id,
                          .text = sanitise_utf8(tokenizer.token_bytes(token.token_id)),
                          .logprob = token.logprob,
                          .ends_text = tokenizer.is_control(token.token_id)});
  }
  return shown;
}

// A character that several tokens spell belongs to the last of them.
void add_text(const comparison::ComparedText& text, const tokenizer::Tokenizer& tokenizer,
              ui::ComparedColumn& column) {
  column.id = {1};
  column.phase = ui::ColumnPhase::kFinished;
  tokenizer::Detokenizer detokenizer(tokenizer, /*skip_special=*/false);
  for (const TokenId id : text.token_ids) {
    ui::ComparedToken token{.token_id = id};
    token.begin = static_cast<std::uint32_t>(column.text.size());
    column.text += detokenizer.push(id);
    token.end = static_cast<std::uint32_t>(column.text.size());
    column.tokens.push_back(std::move(token));
  }
  column.text += detokenizer.flush();
  if (!column.tokens.empty()) column.tokens.back().end = static_cast<std::uint32_t>(column.text.size());
}

}  // namespace

ui::TwoModelsResult shown_result(const comparison::ModelComparison& models,
                                 const comparison::ComparedText& text) {
  const tokenizer::Tokenizer& tokenizer = models.a().tokenizer();
  ui::TwoModelsResult shown;
  shown.a = name_of(models.a().description().model);
  shown.b = name_of(models.b().description().model);
  shown.context = models.context();
  add_text(text, tokenizer, shown.text);
  shown.first_scored = static_cast<std::size_t>(text.first_scored);
  for (std::size_t i = 0; i < text.figures.size(); ++i) {
    const comparison::TokenFigures& token = text.figures[i];
    shown.text.tokens[shown.first_scored + i].logprob = static_cast<float>(token.a.logprob);
    shown.figures.push_back({.kl_divergence = token.kl_divergence,
                             .a = view_of(token.a, tokenizer),
                             .b = view_of(token.b, tokenizer)});
  }
  shown.table = table_of(comparison::summarise(text.figures));
  for (const std::size_t worst : comparison::worst_tokens(text.figures, kMostWorst))
    shown.worst.push_back(shown.first_scored + worst);
  return shown;
}

TwoModelsWorker::TwoModelsWorker(std::function<void()> wake_up)
    : wake_up_(std::move(wake_up)),
      jobs_([this](TwoModelsJob job) { return std::optional(perform(std::move(job))); },
            [this] { wake_up_(); }, JobsLeft::kDropped) {}

void TwoModelsWorker::give(TwoModelsJob job) {
  if (const auto* compare = std::get_if<CompareText>(&job)) newest_serial_ = compare->serial;
  jobs_.give(std::move(job));
}

comparison::ComparisonProgress TwoModelsWorker::report_on(ui::TwoModelsPhase phase, std::uint64_t serial) {
  phase_ = phase;
  fraction_ = 0.0;
  return [this, serial](double fraction) {
    if (std::floor(fraction * 100.0) > std::floor(fraction_ * 100.0)) {
      fraction_ = fraction;
      wake_up_();
    }
    return cancelled_serial_ < serial;
  };
}

Result<ui::TwoModelsResult> TwoModelsWorker::compare(const CompareText& job) {
  using comparison::ComparedText;
  using comparison::ModelComparison;
  OCTAVO_TRY(ModelComparison models,
             ModelComparison::load(job.options, report_on(ui::TwoModelsPhase::kLoading, job.serial)));
  const comparison::ComparisonProgress progress = report_on(ui::TwoModelsPhase::kComparing, job.serial);
  if (const auto* text = std::get_if<std::string>(&job.text)) {
    OCTAVO_TRY(const ComparedText compared, models.compare(*text, /*parse_special=*/false, progress));
    return shown_result(models, compared);
  }
  std::vector<ChatMessage> messages = std::get<std::vector<ChatMessage>>(job.text);
  const std::string answer = std::move(messages.back().content);
  messages.pop_back();
  const tokenizer::Tokenizer& tokenizer = models.a().tokenizer();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  OCTAVO_TRY(std::vector<TokenId> token_ids,
             tokenizer.encode_chat(messages, std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  OCTAVO_TRY(const std::vector<TokenId> of_answer,
             tokenizer.encode(answer, /*parse_special=*/false, /*add_bos=*/false));
  const std::size_t fork_begin = token_ids.size();
  token_ids.insert(token_ids.end(), of_answer.begin(), of_answer.end());
  OCTAVO_TRY(const ComparedText compared, models.compare(std::move(token_ids), progress));
  ui::TwoModelsResult shown = shown_result(models, compared);
  shown.fork_begin = fork_begin;
  return shown;
}

TwoModelsReport TwoModelsWorker::perform(TwoModelsJob job) {
  if (auto* look = std::get_if<LookAtTwoModels>(&job))
    return TwoModelsSeen{look->serial, comparison::ModelComparison::look(look->options)};
  if (const auto* file = std::get_if<ReadTextFile>(&job)) {
    ReadFile read = read_file(file->path, ReadAs::kText);
    if (read.kind == FileKind::kText) return TextFileRead{std::move(read.name), std::move(read.text)};
    return TextFileRead{std::move(read.name), Error{ErrorCode::kIo, std::move(read.problem)}};
  }
  const auto& wanted = std::get<CompareText>(job);
  TextCompared compared{wanted.serial, compare(wanted)};
  phase_ = ui::TwoModelsPhase::kSetUp;
  return compared;
}

}  // namespace octavo::app
