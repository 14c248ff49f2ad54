#include "app/commands/tokenize.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/input.h"
#include "app/commands/request_json.h"
#include "engine/base/text.h"
#include "engine/model/model_files.h"
#include "engine/model/tokenizer_loader.h"

namespace octavo::app {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> prompt;
  std::string prompt_file, messages_file;
  bool parse_special = false;
  bool json = false;
};

Result<std::vector<TokenId>> tokenize(const TokenizeOptions& options, const tokenizer::Tokenizer& tokenizer) {
  if (!options.messages_file.empty()) {
    OCTAVO_TRY(const std::string text, read_input(options.messages_file));
    OCTAVO_TRY(const Json json, parse_json(text, escape_for_message(options.messages_file)));
    OCTAVO_TRY(const std::vector<ChatMessage> messages,
               messages_from_json(json, escape_for_message(options.messages_file)));
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return tokenizer.encode_chat(messages, std::chrono::duration_cast<std::chrono::seconds>(now).count());
  }
  if (!options.prompt_file.empty()) {
    OCTAVO_TRY(const std::string text, read_input(options.prompt_file));
    return tokenizer.encode(text, options.parse_special, /*add_bos=*/true);
  }
  if (*options.prompt == "-") {
    OCTAVO_TRY(const std::string text, read_input(*options.prompt));
    return tokenizer.encode(text, options.parse_special, /*add_bos=*/true);
  }
  return tokenizer.encode(*options.prompt, options.parse_special, /*add_bos=*/true);
}

// One line a token: the id and its text.
void print_table(const tokenizer::Tokenizer& tokenizer, const std::vector<TokenId>& token_ids) {
  for (const TokenId id : token_ids)
    std::cout << id << '\t' << escape_for_message(tokenizer.token_bytes(id)) << '\n';
}

Result<void> run_tokenize(const TokenizeOptions& options) {
  OCTAVO_TRY(const std::filesystem::path path, model::find_model(options.model));
  OCTAVO_TRY(const std::unique_ptr<tokenizer::Tokenizer> tokenizer, model::load_tokenizer(path));
  OCTAVO_TRY(const std::vector<TokenId> token_ids, tokenize(options, *tokenizer));
  if (options.json) {
    std::cout << dump_for_output(Json{{"token_ids", token_ids}}) << '\n';
  } else {
    print_table(*tokenizer, token_ids);
  }
  return {};
}

}  // namespace

void add_tokenize_command(CLI::App& program, int& status) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* const command = program.add_subcommand("tokenize", "Convert text or messages to token ids");
  command->add_option("--model", options->model, "Model file, or org/name (default: SmolLM2-135M-Instruct)");
  CLI::Option_group* const input = command->add_option_group("input");
  input->add_option("text,--prompt", options->prompt, "Text; - reads standard input");
  input->add_option("--prompt-file", options->prompt_file,
                    "File that holds the text; - reads standard input");
  input->add_option("--messages-file", options->messages_file,
                    "File with a JSON list of {role, content}, formatted with the chat template");
  input->require_option(1);
  command->add_flag("--parse-special", options->parse_special, "Parse special tokens such as <|im_end|>");
  command->add_flag("--json", options->json, "Print {\"token_ids\": [...]} to standard output");
  command->callback([options, &status] {
    const Result<void> result = run_tokenize(*options);
    status = result.has_value() ? kExitOk : report_error(result.error());
  });
}

}  // namespace octavo::app
