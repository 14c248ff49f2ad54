#include "app/commands/chat.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/chat/chat.h"
#include "app/chat/chat_file.h"
#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/start_engine.h"
#include "engine/base/text.h"
#include "engine/engine.h"
#include "engine/output_collector.h"

namespace octavo::app {
namespace {

struct ChatOptions {
  EngineFlags engine;
  SamplingParams sampling;
  std::optional<std::string> system_prompt;
  std::string chat_file;
  bool resume = false;
};

constexpr RefusedOption kRefused[] = {
    {"--n", "chat shows one answer to each message; `octavo generate` gives several"},
    {"--beam-width",
     "chat shows an answer as it is written, and a beam search knows it at the end; `octavo generate` has "
     "it"},
    {"--length-penalty", "it is for a beam search, which `octavo generate` has"},
    {"--early-stopping", "it is for a beam search, which `octavo generate` has"},
    {"--logprobs", "chat shows text only; `octavo generate --json` reports probabilities"},
    {"--prompt-logprobs", "chat shows text only; `octavo generate --json` reports probabilities"},
};

constexpr std::string_view kHelp =
    "/regenerate     answer the last message again\n"
    "/undo           remove the last message and its answer\n"
    "/system TEXT    set the system prompt\n"
    "/new            start a new chat (it replaces the one in the file)\n"
    "/history        show the chat\n"
    "/memory         show the use of the KV pool\n"
    "/save FILE      write the chat to a file\n"
    "/exit           quit (or press Ctrl+D); Ctrl+C stops an answer\n";

// A chat with one engine on one terminal.
class TerminalChat {
 public:
  TerminalChat(Engine& engine, Chat chat, std::filesystem::path path)
      : engine_(engine), chat_(std::move(chat)), path_(std::move(path)) {}

  int run() {
    show("Type a message; /help lists commands.\n");
    while (true) {
      if (interactive_) print("> ");
      std::string line;
      if (!std::getline(std::cin, line)) return InterruptGuard::interrupted() ? kExitInterrupted : status_;
      if (line.empty()) continue;
      if (line[0] != '/') {
        say(sanitise_utf8(line));
      } else if (!handle(line)) {
        return status_;
      }
    }
  }

 private:
  // Model text passes through here as well: nothing in it may control the terminal.
  void print(std::string_view text) {
    const std::string safe = terminal_ ? strip_terminal_controls(text) : std::string(text);
    std::fwrite(safe.data(), 1, safe.size(), stdout);
    std::fflush(stdout);
  }

  // Only for people.
  void show(std::string_view text) {
    if (interactive_) print(text);
  }

  void say(std::string text) { answer(chat_.append(leaf_, Role::kUser, std::move(text))); }

  // Generates an answer below a message of the user; a later one stands beside the earlier ones.
  void answer(MessageId question) {
    GenerationRequest request;
    request.prompt = ChatPrompt{.messages = chat_.chat_messages(question)};
    request.sampling = chat_.sampling;
    const RequestId id = engine_.submit(std::move(request));
    OutputCollector collector;
    collector.expect(id, 1);
    while (!collector.done()) {
      for (const EngineEvent& event : engine_.poll(std::chrono::milliseconds(100))) {
        collector.add(event);
        if (const auto* tokens = std::get_if<TokensGenerated>(&event)) print(tokens->text);
      }
      if (InterruptGuard::interrupted()) engine_.cancel(id);
    }
    InterruptGuard::reset();
    print("\n");
    keep(question, std::move(collector.take().front()));
    save(path_);
  }

  void keep(MessageId question, RequestOutput output) {
    if (output.error.has_value()) {
      status_ = report_failure(output.error->message);
      leaf_ = question;
      if (output.outputs.empty()) return;
    }
    CompletionOutput& completion = output.outputs.front();
    const MessageId id = chat_.append(question, Role::kAssistant, std::move(completion.text));
    leaf_ = id;
    Message& message = *chat_.find(id);
    message.finish_reason = completion.finish_reason;
    message.seed = output.seed;
    message.metrics =
        AnswerMetrics{.num_prompt_tokens = static_cast<std::int32_t>(output.prompt_token_ids.size()),
                      .num_cached_tokens = output.num_cached_tokens,
                      .request = output.metrics};
    const bool ended_by_token = completion.finish_reason == FinishReason::kStop &&
                                !std::holds_alternative<std::string>(completion.stop_reason);
    message.token_ids = std::move(completion.token_ids);
    if (ended_by_token && !message.token_ids.empty()) message.token_ids.pop_back();
    show_metrics(message);
  }

  void show_metrics(const Message& message) {
    const RequestMetrics& metrics = message.metrics->request;
    char line[160];
    std::snprintf(line, sizeof line, "[%.1f tok/s, first token %.0f ms, reused %d of %d prompt tokens]\n",
                  metrics.tpot_us > 0 ? 1e6 / static_cast<double>(metrics.tpot_us) : 0.0,
                  static_cast<double>(metrics.ttft_us) / 1000.0, message.metrics->num_cached_tokens,
                  message.metrics->num_prompt_tokens);
    show(line);
  }

  // A line that begins with '/'. False: leave.
  bool handle(const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") {
      print(kHelp);
    } else if (command == "/regenerate") {
      regenerate();
    } else if (command == "/undo") {
      undo();
    } else if (command == "/system") {
      chat_.system_prompt = sanitise_utf8(argument);
    } else if (command == "/new") {
      start_over();
    } else if (command == "/history") {
      show_history();
    } else if (command == "/memory") {
      show_memory();
    } else if (command == "/save" && !argument.empty()) {
      save(argument);
    } else {
      report_failure("unknown command " + escape_for_message(command) + "; /help lists all commands");
    }
    return true;
  }

  void regenerate() {
    const Message* const last = chat_.find(leaf_);
    if (last == nullptr) {
      report_failure("there is no message to answer yet; type one first");
      return;
    }
    answer(last->role == Role::kAssistant ? last->parent : last->id);
  }

  // Back to before the last message of the user; the file still holds the branch.
  void undo() {
    const Message* message = chat_.find(leaf_);
    if (message != nullptr && message->role == Role::kAssistant) message = chat_.find(message->parent);
    if (message == nullptr) {
      report_failure("there is no message to remove");
      return;
    }
    leaf_ = message->parent;
  }

  void start_over() {
    Chat fresh;
    fresh.system_prompt = chat_.system_prompt;
    fresh.sampling = chat_.sampling;
    chat_ = std::move(fresh);
    leaf_ = kRootMessage;
  }

  void show_history() {
    std::vector<const Message*> path;
    for (const Message* message = chat_.find(leaf_); message != nullptr;
         message = chat_.find(message->parent))
      path.push_back(message);
    for (auto message = path.rbegin(); message != path.rend(); ++message) {
      print(std::string(role_name((*message)->role)) + ": " + (*message)->content + "\n");
    }
  }

  void show_memory() {
    const std::shared_ptr<const KvSnapshot> snapshot = engine_.kv_snapshot(SnapshotScope::kSequences);
    if (snapshot == nullptr) return;
    const KvFigures& figures = snapshot->figures;
    char line[200];
    std::snprintf(line, sizeof line,
                  "%d blocks of %d tokens: %d used, %d cached, %d free; sharing ratio %.2f; internal "
                  "fragmentation %.1f %%\n",
                  snapshot->totals.num_blocks, snapshot->totals.block_size, figures.used_blocks,
                  figures.cached_blocks, figures.free_blocks, figures.sharing_ratio,
                  100.0 * figures.internal_fragmentation);
    print(line);
  }

  void save(const std::filesystem::path& path) {
    if (const Result<void> saved = write_chat(chat_, path); !saved.has_value())
      status_ = report_failure(saved.error().message);
  }

  Engine& engine_;
  Chat chat_;
  MessageId leaf_ = chat_.active_leaf();  // where the talk goes on
  const std::filesystem::path path_;
  const bool interactive_ = isatty(STDIN_FILENO) != 0;
  const bool terminal_ = isatty(STDOUT_FILENO) != 0;
  int status_ = kExitOk;
};

// The file's chat when it is to be resumed, else a new one. Options of the command line hold for both.
Result<Chat> open_chat(const ChatOptions& options, const std::filesystem::path& path) {
  Chat chat;
  if (options.resume) {
    OCTAVO_TRY(chat, read_chat(path));
  }
  chat.sampling = options.sampling;
  if (options.system_prompt.has_value()) chat.system_prompt = sanitise_utf8(*options.system_prompt);
  return chat;
}

int run_chat(const ChatOptions& options) {
  const std::filesystem::path path =
      options.chat_file.empty() ? default_chat_path() : std::filesystem::path(options.chat_file);
  Result<Chat> chat = open_chat(options, path);
  if (!chat.has_value()) return report_error(chat.error());
  Progress progress(options.engine.verbose);
  const InterruptGuard guard;
  Result<std::unique_ptr<Engine>> engine = start_engine(options.engine, progress);
  if (InterruptGuard::interrupted()) return kExitInterrupted;
  if (!engine.has_value()) return report_error(engine.error());
  return TerminalChat(**engine, *std::move(chat), path).run();
}

}  // namespace

void add_chat_command(CLI::App& program, int& status) {
  auto options = std::make_shared<ChatOptions>();
  options->sampling.temperature = 0.7;  // a talk wants some variety, and more than 16 tokens
  options->sampling.top_p = 0.95;
  options->sampling.max_tokens = 1024;
  CLI::App* const command = program.add_subcommand("chat", "Chat in the terminal");
  command->add_option("--system", options->system_prompt, "System prompt");
  command->add_flag("--resume", options->resume, "Continue the saved chat");
  command->add_option("--conversation", options->chat_file,
                      "File that stores the chat (default: the last chat in a terminal)");
  add_engine_flags(*command, options->engine);
  add_sampling_flags(*command, options->sampling);
  refuse_options(*command, kRefused);
  command->callback([options, &status] {
    const Result<void> valid = validate(options->sampling, std::numeric_limits<std::int32_t>::max());
    status = valid.has_value() ? run_chat(*options) : report_error(valid.error());
  });
}

}  // namespace octavo::app
