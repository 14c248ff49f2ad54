#include "app/commands/compare_models.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/input.h"
#include "app/commands/request_json.h"
#include "engine/base/columns.h"
#include "engine/base/format.h"
#include "engine/base/text.h"
#include "engine/comparison/model_comparison.h"
#include "engine/comparison/token_figures.h"
#include "engine/model/model_files.h"

namespace octavo::app {
namespace {

using comparison::ComparedText;
using comparison::Estimate;
using comparison::ModelComparison;
using comparison::TextSummary;
using comparison::TokenFigures;
using comparison::TokenView;

struct CompareModelsOptions {
  std::string model_a, model_b, text;
  EngineOptions computing;
  std::optional<std::int32_t> context;
  std::int32_t num_worst = 10;
  bool parse_special = false;
  bool json = false;
};

// All that is told.
struct Report {
  const ModelComparison& models;
  const ComparedText& text;
  TextSummary summary;
  std::vector<std::size_t> worst;  // of text.figures
};

std::int64_t token_index(const Report& report, std::size_t figure) {
  return report.text.first_scored + static_cast<std::int64_t>(figure);
}

std::string_view bytes_at(const Report& report, std::int64_t index) {
  return report.models.a().tokenizer().token_bytes(report.text.token_ids[static_cast<std::size_t>(index)]);
}

// ---- as tables

std::string padded(std::string text, std::size_t width) {
  return pad_to_columns(std::move(text), width, /*to_right=*/true);
}

// Four digits that count, whatever the size.
std::string figure_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string with_error(const Estimate& estimate) {
  return figure_text(estimate.value) + " ± " + figure_text(estimate.standard_error);
}

std::string percent_with_error(const Estimate& estimate) {
  return fixed_text(100.0 * estimate.value, 2) + " ± " + fixed_text(100.0 * estimate.standard_error, 2) +
         " %";
}

std::string model_line(const EngineDescription& description) {
  const ModelDescription& model = description.model;
  return escape_for_message(model.name.empty() ? model.path : model.name) + ", " + model.quantisation + ", " +
         bytes_text(model.file_bytes) + "  " + escape_for_message(model.path, 1000);
}

void print_summary(std::ostream& out, const Report& report) {
  const TextSummary& summary = report.summary;
  out << "A                      " << model_line(report.models.a().description()) << "\n"
      << "B                      " << model_line(report.models.b().description()) << "\n"
      << "text                   " << count_text(std::ssize(report.text.token_ids), "token") << ", "
      << with_thousands(summary.num_tokens) << " of them scored, in windows of "
      << with_thousands(report.models.context()) << "\n"
      << "perplexity of A        " << with_error(summary.perplexity_a) << "\n"
      << "perplexity of B        " << with_error(summary.perplexity_b) << "\n"
      << "ln(PPL B / PPL A)      " << with_error(summary.log_perplexity_ratio) << "\n"
      << "KL divergence, mean    " << with_error(summary.mean_kl) << " nats\n"
      << "  median, 99 %, worst  " << figure_text(summary.median_kl) << ", " << figure_text(summary.high_kl)
      << ", " << figure_text(summary.worst_kl) << "\n"
      << "same likeliest token   " << percent_with_error(summary.same_top) << "\n"
      << "p of the token, B - A  " << percent_with_error(summary.mean_probability_change)
      << "; root mean square " << fixed_text(100.0 * summary.rms_probability_change, 2) << " %\n";
}

// The words before a token, as far as they fit.
std::string words_before(const Report& report, std::int64_t index) {
  constexpr std::size_t kBytes = 40;
  std::string text;
  for (std::int64_t i = index - 1; i >= 0 && text.size() < kBytes; --i) text.insert(0, bytes_at(report, i));
  const std::size_t excess = text.size() > kBytes ? text.size() - kBytes : 0;
  std::size_t begin = excess;
  while (begin < text.size() && continues_utf8(text[begin])) ++begin;
  return (index > 0 && begin > 0 ? "…" : "") + escape_for_message(text.substr(begin), 4 * kBytes);
}

void print_worst(std::ostream& out, const Report& report) {
  if (report.worst.empty()) return;
  out << "\n   token        KL      p of A      p of B  rank A  rank B  text\n";
  for (const std::size_t figure : report.worst) {
    const TokenFigures& token = report.text.figures[figure];
    const std::int64_t index = token_index(report, figure);
    out << padded(with_thousands(index), 8) << padded(figure_text(token.kl_divergence), 10)
        << padded(figure_text(std::exp(token.a.logprob)), 12)
        << padded(figure_text(std::exp(token.b.logprob)), 12) << padded(with_thousands(token.a.rank), 8)
        << padded(with_thousands(token.b.rank), 8) << "  " << words_before(report, index) << "["
        << escape_for_message(bytes_at(report, index)) << "]\n";
  }
}

// ---- as JSON

Json json_of(const Estimate& estimate) {
  return {{"value", estimate.value}, {"standard_error", estimate.standard_error}};
}

Json json_of(const EngineDescription& description) {
  return {{"path", description.model.path},
          {"name", description.model.name},
          {"quantisation", description.model.quantisation},
          {"file_bytes", description.model.file_bytes},
          {"weight_bytes", description.weight_bytes}};
}

Json json_of(const TextSummary& summary) {
  return {{"num_tokens", summary.num_tokens},
          {"mean_kl", json_of(summary.mean_kl)},
          {"median_kl", summary.median_kl},
          {"high_kl", summary.high_kl},
          {"worst_kl", summary.worst_kl},
          {"same_top", json_of(summary.same_top)},
          {"perplexity_a", json_of(summary.perplexity_a)},
          {"perplexity_b", json_of(summary.perplexity_b)},
          {"log_perplexity_ratio", json_of(summary.log_perplexity_ratio)},
          {"mean_probability_change", json_of(summary.mean_probability_change)},
          {"rms_probability_change", summary.rms_probability_change}};
}

Json json_of(const TokenView& view) {
  Json best = Json::array();
  for (const TokenLogprob& token : view.best)
    best.push_back({{"token_id", token.token_id}, {"logprob", token.logprob}});
  return {{"logprob", view.logprob}, {"rank", view.rank}, {"top", std::move(best)}};
}

Json json_of(const Report& report) {
  Json tokens = Json::array();
  for (std::size_t figure = 0; figure < report.text.figures.size(); ++figure) {
    const TokenFigures& token = report.text.figures[figure];
    tokens.push_back({{"index", token_index(report, figure)},
                      {"text", std::string(bytes_at(report, token_index(report, figure)))},
                      {"kl", token.kl_divergence},
                      {"same_top", token.has_same_top()},
                      {"a", json_of(token.a)},
                      {"b", json_of(token.b)}});
  }
  Json worst = Json::array();
  for (const std::size_t figure : report.worst) worst.push_back(token_index(report, figure));
  return {{"a", json_of(report.models.a().description())},
          {"b", json_of(report.models.b().description())},
          {"context", report.models.context()},
          {"token_ids", report.text.token_ids},
          {"summary", json_of(report.summary)},
          {"worst", std::move(worst)},
          {"tokens", std::move(tokens)}};
}

// ---- the work

Result<comparison::ComparisonOptions> resolve(const CompareModelsOptions& options) {
  comparison::ComparisonOptions resolved{.a = options.computing, .b = options.computing};
  resolved.context = options.context;
  OCTAVO_TRY_VOID(validate(options.computing));
  OCTAVO_TRY(const std::filesystem::path a, model::find_model(options.model_a));
  OCTAVO_TRY(const std::filesystem::path b, model::find_model(options.model_b));
  resolved.a.model = a.string();
  resolved.b.model = b.string();
  return resolved;
}

Result<void> run_compare_models(const CompareModelsOptions& options) {
  OCTAVO_TRY(const comparison::ComparisonOptions resolved, resolve(options));
  OCTAVO_TRY(const std::string text, read_input(options.text));
  Progress progress(/*verbose=*/false);
  const auto report_on = [&](const char* what) {
    return [&progress, what](double fraction) {
      progress.show_fraction(what, fraction);
      return !InterruptGuard::interrupted();
    };
  };
  const InterruptGuard guard;
  Result<ModelComparison> models = ModelComparison::load(resolved, report_on("loading"));
  progress.clear();
  if (!models) return std::move(models).error();
  Result<ComparedText> compared = models->compare(text, options.parse_special, report_on("comparing"));
  progress.clear();
  if (!compared) return std::move(compared).error();
  const Report report{
      .models = *models,
      .text = *compared,
      .summary = comparison::summarise(compared->figures),
      .worst = comparison::worst_tokens(compared->figures, static_cast<std::size_t>(options.num_worst))};
  if (options.json) {
    std::cout << dump_for_output(json_of(report)) << '\n';
    return {};
  }
  print_summary(std::cout, report);
  print_worst(std::cout, report);
  return {};
}

int status_of(const Result<void>& result) {
  if (result) return kExitOk;
  if (result.error().code == ErrorCode::kCancelled) return kExitInterrupted;
  return report_error(result.error());
}

}  // namespace

void add_compare_models_command(CLI::App& program, int& status) {
  auto options = std::make_shared<CompareModelsOptions>();
  CLI::App* const command = program.add_subcommand(
      "compare-models",
      "Compare two models over one text, token by token: KL divergence, likeliest tokens, perplexity. "
      "B is held against A, the finer of two files of one model. A text longer than the context is read in "
      "windows that overlap by half, so that each token is scored once, after at least half a context. To "
      "compare the files and nothing else, multiply without rounding: --activation-dtype f32 "
      "--kv-cache-dtype f32");
  command->add_option("MODEL_A,--model-a", options->model_a, "Model file, or org/name")->required();
  command->add_option("MODEL_B,--model-b", options->model_b, "The model to hold against it")->required();
  command->add_option("--text", options->text, "File that holds the text; - reads standard input")
      ->required();
  command
      ->add_option("--context", options->context,
                   "Tokens per window (default: 512, or the models' context where that is shorter)")
      ->check(CLI::Range(2, std::numeric_limits<std::int32_t>::max()));
  command->add_option("--worst", options->num_worst, "List this many tokens of the highest divergence")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--parse-special", options->parse_special,
                    "Parse special tokens such as <|im_end|> in the text");
  command->add_flag("--json", options->json,
                    "Print one JSON object with the figures of every token to standard output");
  add_computing_flags(*command, options->computing);
  command->callback([options, &status] { status = status_of(run_compare_models(*options)); });
}

}  // namespace octavo::app
