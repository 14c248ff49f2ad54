#include "app/commands/chat.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
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
#include "app/chat/context_plan.h"
#include "app/chat/template_values_json.h"
#include "app/commands/command.h"
#include "app/commands/engine_flags.h"
#include "app/commands/start_engine.h"
#include "app/remote/remote_engine.h"
#include "engine/base/clock.h"
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
  std::optional<std::string> context_policy;
  std::optional<std::string> template_values;  // JSON
  bool resume = false;
};

constexpr RefusedOption kNotForChat[] = {
    {"--n", "chat shows one answer to each message; `octavo generate` gives several"},
    {"--beam-width",
     "chat shows an answer as it is written, and a beam search knows it at the end; `octavo generate` has "
     "it"},
    {"--best-of", "chat shows an answer as it is written; `octavo generate` chooses among several"},
    {"--length-penalty", "it is for a beam search, which `octavo generate` has"},
    {"--early-stopping", "it is for a beam search, which `octavo generate` has"},
    {"--logprobs", "chat shows text only; `octavo generate --json` reports probabilities"},
    {"--prompt-logprobs", "chat shows text only; `octavo generate --json` reports probabilities"},
    {"--logprob-token-ids", "chat shows text only; `octavo generate --json` reports probabilities"},
};

constexpr std::string_view kHelp =
    "/regenerate     answer the last message again\n"
    "/continue       continue the last answer where it was cut off\n"
    "/undo           remove the last message and its answer\n"
    "/system TEXT    set the system prompt\n"
    "/context [P]    show how full the context is, or choose what happens then: roll, summarise or stop\n"
    "/template [J]   show what the model's chat template can be told, or tell it: {\"enable_thinking\": "
    "false}\n"
    "/summary [TEXT] show or replace the summary of what has left the context\n"
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

  void say(std::string text) {
    ContextQuestion question = asked(leaf_);
    question.path.push_back({{}, {Role::kUser, text}, {}});
    const std::optional<ContextPlan> plan = plan_for(question);
    if (plan) generate_below(append(leaf_, Role::kUser, std::move(text)), plan->prompt);
  }

  MessageId append(MessageId parent, Role role, std::string text) {
    const MessageId id = chat_.append(parent, role, std::move(text));
    chat_.find(id)->created_ms = unix_time_ms();
    return id;
  }

  // Generates an answer below a message of the user; a later one stands beside the earlier ones.
  void answer(MessageId question) {
    if (const std::optional<ContextPlan> plan = plan_for(asked(question)))
      generate_below(question, plan->prompt);
  }

  ContextQuestion asked(MessageId last) const {
    return context_question(chat_, last, engine_.description().max_model_len);
  }

  // What is sent; nothing when it cannot be, which was said then. What leaves the context is said, and
  // summarised where the chat wants that.
  std::optional<ContextPlan> plan_for(ContextQuestion question) {
    ContextPlan plan = plan_now(question);
    if (plan.summary) {
      if (!summarise(*plan.summary)) question.policy = ContextPolicy::kRoll;
      for (PathMessage& entry : question.path) entry.summary = chat_.summary_after(entry.id);
      plan = plan_now(question);
    }
    if (!plan.refusal.empty()) {
      status_ = report_failure(plan.refusal);
      return std::nullopt;
    }
    if (plan.begin != chat_.context_begin && plan.num_left > 0)
      show("[" + left_context_text(plan.num_left) + "]\n");
    chat_.context_begin = plan.begin;
    return plan;
  }

  ContextPlan plan_now(const ContextQuestion& question) {
    if (is_remote(engine_.description())) return plan_without_counting(question);
    return plan_context(question, counts_, static_cast<std::int64_t>(std::time(nullptr)));
  }

  // Nothing is asked: an answer at the end is no message that might be too long.
  ContextPlan plan_so_far() {
    ContextQuestion question = asked(leaf_);
    question.continue_answer =
        !question.path.empty() && question.path.back().message.role == Role::kAssistant;
    return plan_now(question);
  }

  // False when it could not be written, which was said then.
  bool summarise(const WantedSummary& wanted) {
    show("[summarising what leaves the context]\n");
    SamplingParams sampling;
    sampling.temperature = 0;
    sampling.max_tokens = wanted.max_tokens;
    RequestOutput output = generate(wanted.prompt, sampling, interactive_);
    const bool failed = output.error.has_value() || output.outputs.empty() ||
                        output.outputs.front().text.empty() ||
                        output.outputs.front().finish_reason == FinishReason::kAbort;
    if (failed) {
      show("[no summary was written; the oldest messages leave the context without one]\n");
      return false;
    }
    chat_.set_summary(wanted.after, std::move(output.outputs.front().text));
    return true;
  }

  RequestOutput generate(const ChatPrompt& prompt, const SamplingParams& sampling, bool shown) {
    GenerationRequest request;
    request.prompt = prompt;
    request.sampling = sampling;
    const RequestId id = engine_.submit(std::move(request));
    OutputCollector collector;
    collector.expect(id, 1);
    while (!collector.done()) {
      for (const EngineEvent& event : engine_.poll(std::chrono::milliseconds(100))) {
        collector.add(event);
        if (const auto* tokens = std::get_if<TokensGenerated>(&event); tokens != nullptr && shown)
          print(tokens->text);
      }
      if (InterruptGuard::interrupted()) engine_.cancel(id);
    }
    InterruptGuard::reset();
    if (shown) print("\n");
    return std::move(collector.take().front());
  }

  void generate_below(MessageId question, const ChatPrompt& prompt) {
    RequestOutput output = generate(prompt, chat_.sampling, /*shown=*/true);
    failed_question_ = kRootMessage;
    if (output.error.has_value()) status_ = report_failure(output.error->message);
    if (output.outputs.empty()) {
      // It does not stay in the path, where every later question would carry it along.
      failed_question_ = question;
      leaf_ = chat_.find(question)->parent;
      show("[the question was taken back; /regenerate asks it again]\n");
    } else {
      leaf_ = append(question, Role::kAssistant, {});
      keep(std::move(output));
    }
    save(path_);
  }

  // Adds what was generated to the answer at the end.
  void keep(RequestOutput output) {
    CompletionOutput& completion = output.outputs.front();
    Message& message = *chat_.find(leaf_);
    const bool had_ids = message.content.empty() || !message.token_ids.empty();
    message.content += completion.text;
    message.finish_reason = completion.finish_reason;
    message.seed = output.seed;
    message.metrics =
        AnswerMetrics{.num_prompt_tokens = static_cast<std::int32_t>(output.prompt_token_ids.size()),
                      .num_cached_tokens = output.num_cached_tokens,
                      .request = output.metrics};
    if (is_remote(engine_.description())) {  // told at the end, if at all
      message.metrics->num_prompt_tokens =
          output.metrics.prompt.num_computed + output.metrics.prompt.num_hit_cached;
      message.metrics->num_cached_tokens = output.metrics.prompt.num_hit_cached;
    }
    const bool ended_by_token = completion.finish_reason == FinishReason::kStop &&
                                !std::holds_alternative<std::string>(completion.stop_reason);
    if (ended_by_token && !completion.token_ids.empty()) completion.token_ids.pop_back();
    const std::size_t num_tokens = output.prompt_token_ids.size() + completion.token_ids.size();
    if (had_ids)
      message.token_ids.insert(message.token_ids.end(), completion.token_ids.begin(),
                               completion.token_ids.end());
    show_metrics(message);
    const auto* const stop_text = std::get_if<std::string>(&completion.stop_reason);
    message.stop_text = stop_text != nullptr ? *stop_text : std::string();
    message.context_full = completion.finish_reason == FinishReason::kLength &&
                           !is_remote(engine_.description()) &&
                           num_tokens >= static_cast<std::size_t>(engine_.description().max_model_len);
    if (completion.finish_reason != FinishReason::kLength) return;
    show(message.context_full ? "[the context is full: /continue continues the answer]\n"
                              : "[the answer reached its length limit: /continue continues it]\n");
  }

  void continue_answer() {
    const Message* last = chat_.find(leaf_);
    if (last == nullptr || last->role != Role::kAssistant || last->finish_reason == FinishReason::kStop) {
      report_failure("there is no answer that was cut off");
      return;
    }
    ContextQuestion question = asked(leaf_);
    question.continue_answer = !question.path.empty() && question.path.back().id == leaf_;  // it has begun
    const std::optional<ContextPlan> plan = plan_for(std::move(question));
    if (!plan) return;
    RequestOutput output = generate(plan->prompt, chat_.sampling, /*shown=*/true);
    if (output.error.has_value()) status_ = report_failure(output.error->message);
    if (!output.outputs.empty()) keep(std::move(output));
    save(path_);
  }

  void show_metrics(const Message& message) {
    const RequestMetrics& metrics = message.metrics->request;
    char line[160];
    std::snprintf(line, sizeof line, "[%.1f tok/s, first token %.0f ms",
                  metrics.tpot_us > 0 ? 1e6 / static_cast<double>(metrics.tpot_us) : 0.0,
                  static_cast<double>(metrics.ttft_us) / 1000.0);
    show(line);
    if (message.metrics->num_prompt_tokens > 0) {
      show(", reused " + std::to_string(message.metrics->num_cached_tokens) + " of " +
           std::to_string(message.metrics->num_prompt_tokens) + " prompt tokens");
    }
    show("]\n");
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
    } else if (command == "/continue") {
      continue_answer();
    } else if (command == "/context") {
      handle_context(argument);
    } else if (command == "/template") {
      handle_template(argument);
    } else if (command == "/summary") {
      handle_summary(sanitise_utf8(argument));
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

  void handle_context(const std::string& argument) {
    if (!argument.empty()) {
      const std::optional<ContextPolicy> policy = parse_context_policy(argument);
      if (!policy) {
        report_failure("unknown policy " + escape_for_message(argument) + "; choose roll, summarise or stop");
        return;
      }
      chat_.context_policy = *policy;
    }
    if (is_remote(engine_.description()))
      return print("the server counts the tokens, and decides what is too long\n");
    const ContextPlan plan = plan_so_far();
    print(std::to_string(plan.num_tokens) + " of " + std::to_string(engine_.description().max_model_len) +
          " tokens; policy: " + std::string(context_policy_name(chat_.context_policy)) + "\n");
    if (plan.num_left > 0) print(left_context_text(plan.num_left) + "\n");
  }

  void handle_template(const std::string& argument) {
    if (!argument.empty()) {
      auto values = parse_template_values(argument, "what the template is told");
      if (!values) {
        report_failure(values.error().message);
        return;
      }
      chat_.template_values = *std::move(values);
    }
    print("told: " + template_values_text(chat_.template_values) + "\n");
    for (const TemplateSwitch& one : engine_.description().model.template_switches) {
      std::string line = one.name + ":";
      for (std::size_t i = 0; i < one.choices.size(); ++i) {
        const TemplateValues choice = {{one.name, one.choices[i]}};
        line += " " + template_values_text(choice) + (i == one.usual ? " (usual)" : "");
      }
      print(line + "\n");
    }
  }

  void handle_summary(std::string text) {
    const Message* first = chat_.find(plan_so_far().begin);
    if (first == nullptr) {
      report_failure("nothing has left the context, so there is no summary");
      return;
    }
    if (text.empty()) {
      print(chat_.summary_after(first->parent) + "\n");
      return;
    }
    chat_.set_summary(first->parent, std::move(text));
    save(path_);
  }

  void regenerate() {
    if (failed_question_ != kRootMessage) return answer(failed_question_);
    const Message* const last = chat_.find(leaf_);
    if (last == nullptr) {
      report_failure("there is no message to answer yet; type one first");
      return;
    }
    answer(last->role == Role::kAssistant ? last->parent : last->id);
  }

  // Back to before the last message of the user; the file still holds the branch.
  void undo() {
    failed_question_ = kRootMessage;
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
    fresh.context_policy = chat_.context_policy;
    fresh.template_values = chat_.template_values;
    chat_ = std::move(fresh);
    leaf_ = failed_question_ = kRootMessage;
  }

  void show_history() {
    std::vector<const Message*> path;
    for (const Message* message = chat_.find(leaf_); message != nullptr;
         message = chat_.find(message->parent))
      path.push_back(message);
    for (auto message = path.rbegin(); message != path.rend(); ++message) {
      if ((*message)->id == chat_.context_begin)
        print("[" + left_context_text(message - path.rbegin()) + "]\n");
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
  TokenCounts counts_{engine_.tokenizer()};
  MessageId leaf_ = chat_.active_leaf();  // where the talk goes on
  MessageId failed_question_ = kRootMessage;
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
  if (options.template_values) {
    OCTAVO_TRY(chat.template_values,
               parse_template_values(*options.template_values, "--chat-template-kwargs"));
  }
  if (options.context_policy) chat.context_policy = *parse_context_policy(*options.context_policy);
  if (options.system_prompt.has_value()) chat.system_prompt = sanitise_utf8(*options.system_prompt);
  return chat;
}

int run_chat(const ChatOptions& options, const CLI::App& command) {
  const std::filesystem::path path =
      options.chat_file.empty() ? default_chat_path() : std::filesystem::path(options.chat_file);
  Result<Chat> chat = open_chat(options, path);
  if (!chat.has_value()) return report_error(chat.error());
  Progress progress(options.engine.verbose);
  const InterruptGuard guard;
  Result<std::unique_ptr<Engine>> engine = start_engine(options.engine, progress, EnginePlace::kAnywhere);
  if (InterruptGuard::interrupted()) return kExitInterrupted;
  if (!engine.has_value()) return report_error(engine.error());
  chat->sampling = with_advice(
      chat->sampling, advice_where_not_given((*engine)->description().model.sampling_advice, command));
  return TerminalChat(**engine, *std::move(chat), path).run();
}

}  // namespace

void add_chat_command(CLI::App& program, int& status) {
  auto options = std::make_shared<ChatOptions>();
  // For models whose makers advise nothing: a talk wants some variety, and more than 16 tokens.
  options->sampling.temperature = 0.7;
  options->sampling.top_p = 0.95;
  options->sampling.max_tokens = 1024;
  CLI::App* const command = program.add_subcommand("chat", "Chat in the terminal");
  command->add_option("--system", options->system_prompt, "System prompt");
  command->add_flag("--resume", options->resume, "Continue the saved chat");
  command->add_option("--conversation", options->chat_file,
                      "File that stores the chat (default: the last chat in a terminal)");
  command
      ->add_option(
          "--context-policy", options->context_policy,
          "What happens when the context is full; roll: the oldest messages leave it, summarise: a summary "
          "takes their place, stop: further questions are refused (default: roll)")
      ->check(CLI::IsMember({"roll", "summarise", "stop"}));
  add_template_flag(*command, options->template_values);
  add_engine_flags(*command, options->engine);
  add_sampling_flags(*command, options->sampling);
  refuse_options(*command, kNotForChat);
  command->callback([options, command, &status] {
    const Result<void> valid = validate(options->sampling, std::numeric_limits<std::int32_t>::max());
    status = valid.has_value() ? run_chat(*options, *command) : report_error(valid.error());
  });
}

}  // namespace octavo::app
