#include "app/window/compare/compare_workspace.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "app/window/compare/compared_settings.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// A chat asks for one answer, and for no log-probabilities.
SamplingParams sampling_to_chat(const SamplingParams& sampling) {
  SamplingParams result = sampling;
  result.logprobs = 0;
  result.n = 1;
  result.beam_width.reset();
  return result;
}

MessageId add_answer(Chat& chat, MessageId question, const Message& answer) {
  const MessageId id = chat.append(question, Role::kAssistant, answer.content);
  Message& added = *chat.find(id);
  added.token_ids = answer.token_ids;
  added.finish_reason = answer.finish_reason;
  added.seed = answer.seed;
  added.metrics = answer.metrics;
  return id;
}

// Adds these messages below each other, and gives the last of them.
MessageId add_messages(Chat& chat, const std::vector<ChatMessage>& messages) {
  MessageId last = kRootMessage;
  for (const ChatMessage& message : messages) {
    if (message.role == Role::kSystem) {
      chat.system_prompt = message.content;
      continue;
    }
    Message added;
    added.parent = last;
    added.role = message.role;
    added.content = message.content;
    added.token_ids = message.token_ids;
    if (message.role == Role::kAssistant) added.finish_reason = FinishReason::kStop;
    last = chat.add(std::move(added));
  }
  return last;
}

}  // namespace

// ---- one engine after the other

void CompareWorkspace::attach_engine(Engine& engine, PlanContext plan_context) {
  newest_ = &engine;
  plan_context_ = std::move(plan_context);
  follow_engine();
  if (!plans_.empty()) apply(ui::actions::RunComparison{});  // its plan was for another vocabulary
}

void CompareWorkspace::follow_engine() {
  if (!running()) ask_newest_engine();
}

// What is known as token ids of another engine is forgotten; texts stay.
void CompareWorkspace::ask_newest_engine() {
  if (newest_ == nullptr || asked_ == newest_) return;
  if (asked_ != nullptr) {
    comparison_.stop();
    comparison_.detach_engine("Stopped because the model was switched.");
  }
  asked_ = newest_;
  comparison_.attach_engine(*asked_);
}

void CompareWorkspace::detach_engine() {
  newest_ = asked_ = nullptr;
  plan_context_ = {};
  plans_.clear();
  comparison_.detach_engine("Stopped because the model was unloaded.");
}

// ---- the question

void CompareWorkspace::apply(const ui::actions::OpenComparison& a) { open(a.chat_id, a.message_id); }

void CompareWorkspace::open(ChatId chat_id, MessageId message_id) {
  const Chat* chat = chats_.chat(chat_id);
  const Message* message = chat != nullptr ? chat->find(message_id) : nullptr;
  if (message == nullptr || message->role != Role::kUser) return;
  open(context_question(*chat, message_id, state_.model.max_model_len),
       {.chat_id = chat_id,
        .message_id = message_id,
        .chat_title = chat->display_title(),
        .sampling = sampling_to_compare(chat->sampling)});
}

void CompareWorkspace::open(ContextQuestion question, Comparison::Source source) {
  ask_newest_engine();
  plans_.clear();
  question_ = std::move(question);
  source.messages = whole_prompt(question_);
  source.template_values = question_.template_values;
  comparison_.open(std::move(source));
  state_.workspace = ui::Workspace::kCompare;
}

void CompareWorkspace::apply(const ui::actions::TypeComparison& a) {
  const std::string question = sanitise_utf8(a.text);
  if (question.find_first_not_of(" \t\r\n") == std::string::npos) return;
  open({.path = {{{}, {Role::kUser, question}, {}}}}, {.sampling = sampling_to_compare(sampling_)});
}

void CompareWorkspace::show_newest_question() {
  const ChatId chat_id = chats_.active_chat();
  const Chat* chat = chats_.chat(chat_id);
  if (!state_.comparison.messages.empty() || chat == nullptr) return;
  const auto path = chat->active_path();
  const auto question = std::find_if(path.rbegin(), path.rend(),
                                     [&](MessageId id) { return chat->find(id)->role == Role::kUser; });
  if (question != path.rend()) open(chat_id, *question);
}

void CompareWorkspace::apply(const ui::actions::RunComparison&) {
  if (state_.comparison.messages.empty()) return;
  ask_newest_engine();
  if (!plan_context_) return comparison_.refuse("No model is loaded. Load one, then run the comparison.");
  plan();
}

// A lane whose system prompt differs leaves other room for the messages, and so may what the template is
// told.
std::vector<CompareWorkspace::LanePlan> CompareWorkspace::lane_plans() const {
  const ui::ComparisonSetup& setup = state_.comparison.setup;
  ContextQuestion question = question_;
  question.context_len = state_.model.max_model_len;
  question.max_tokens = setup.sampling.max_tokens;
  if (setup.kind != ui::ComparisonKind::kSettings) return {{.question = std::move(question), .lanes = {0}}};
  std::vector<LanePlan> plans;
  for (std::size_t lane = 0; lane < setup.variants.size(); ++lane) {
    const ui::ComparedSettings& asked = setup.variants[lane];
    auto plan = std::find_if(plans.begin(), plans.end(),
                             [&](const LanePlan& each) { return sends_alike(each.question, asked); });
    if (plan == plans.end()) {
      send_as(question, asked);
      question.max_tokens = 0;
      plan = plans.insert(plans.end(), {.question = question});
    }
    plan->question.max_tokens = std::max(plan->question.max_tokens, asked.sampling.max_tokens);
    plan->lanes.push_back(lane);
  }
  return plans;
}

// The results may come at once.
void CompareWorkspace::plan() {
  plans_ = lane_plans();
  std::vector<PlanWanted> wanted;
  for (LanePlan& plan : plans_) {
    plan.id = next_plan_id_++;
    wanted.push_back({{PlanPurpose::Kind::kComparison, {}, plan.id}, plan.question});
  }
  state_.comparison.running = true;
  for (PlanWanted& one : wanted) plan_context_(std::move(one));
}

void CompareWorkspace::take_plan(PlanMade made) {
  const auto plan = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const LanePlan& each) { return each.id == made.purpose.asked_id; });
  if (plan == plans_.end()) return;
  if (made.plan.summary) {
    // Nobody waits here for a model to write one: the oldest turns leave without it.
    plan->question.policy = ContextPolicy::kRoll;
    return plan_context_({made.purpose, plan->question});
  }
  if (!made.plan.refusal.empty()) {
    const std::string lane = plans_.size() > 1 ? ui::settings_name(plan->lanes.front()) + ": " : "";
    plans_.clear();
    return comparison_.refuse(lane + made.plan.refusal);
  }
  plan->made = true;
  plan->prompt = {std::move(made.plan.prompt), made.plan.num_left};
  run_planned();
}

// Once every lane knows what it sends.
void CompareWorkspace::run_planned() {
  const bool ready =
      std::all_of(plans_.begin(), plans_.end(), [](const LanePlan& plan) { return plan.made; });
  if (!ready) return;
  std::size_t num_lanes = 0;
  for (const LanePlan& plan : plans_) num_lanes += plan.lanes.size();
  std::vector<Comparison::LanePrompt> prompts(num_lanes);
  for (const LanePlan& plan : plans_) {
    for (const std::size_t lane : plan.lanes) prompts[lane] = plan.prompt;
  }
  plans_.clear();
  comparison_.run(prompts);
}

void CompareWorkspace::finish_poll() {
  comparison_.finish_poll();
  if (!plans_.empty()) state_.comparison.running = true;
}

void CompareWorkspace::apply(const ui::actions::RunComparisonAgain&) {
  ask_newest_engine();
  if (!comparison_.can_run_again()) return apply(ui::actions::RunComparison{});
  comparison_.run_again();
}

void CompareWorkspace::apply(const ui::actions::StopComparison&) {
  if (!plans_.empty()) state_.comparison.running = false;
  plans_.clear();
  comparison_.stop();
}

// ---- answers that are kept

// Whether the chat and the question that were compared are still there.
bool CompareWorkspace::has_source() const {
  const Chat* chat = chats_.chat(state_.comparison.chat_id);
  return chat != nullptr && chat->find(state_.comparison.message_id) != nullptr;
}

void CompareWorkspace::apply(const ui::actions::KeepColumn& a) {
  const std::optional<Message> answer = comparison_.message_of(a.column_id);
  if (!answer) return;
  if (!has_source()) return continue_column(a.column_id);
  const ChatId chat_id = state_.comparison.chat_id;
  const MessageId question = state_.comparison.message_id;
  chats_.edit(chat_id, [&](Chat& chat) { add_answer(chat, question, *answer); });
  chats_.show(chat_id);
}

void CompareWorkspace::apply(const ui::actions::KeepAllColumns&) {
  if (!has_source()) return;
  std::vector<Message> answers;
  for (const ui::ComparedColumn& column : state_.comparison.columns) {
    if (auto answer = comparison_.message_of(column.id)) answers.push_back(*std::move(answer));
  }
  if (answers.empty()) return;
  const ChatId chat_id = state_.comparison.chat_id;
  const MessageId question = state_.comparison.message_id;
  chats_.edit(chat_id, [&](Chat& chat) {
    for (const Message& answer : answers) add_answer(chat, question, answer);
  });
  state_.banner =
      ui::Banner{ui::BannerKind::kNotice, std::to_string(answers.size()) + " answers are now branches of “" +
                                              chats_.chat(chat_id)->display_title() +
                                              "”. Use the arrows below the answer to switch."};
}

// The question and this answer as a chat of their own, with the settings of the column.
std::pair<ChatId, MessageId> CompareWorkspace::begin_chat(const ui::ComparedColumn& column,
                                                          const Message& answer) {
  const ChatId chat_id = chats_.begin();
  MessageId added;
  chats_.edit(chat_id, [&](Chat& chat) {
    const MessageId question = add_messages(chat, state_.comparison.messages);
    chat.sampling = sampling_to_chat(column.sampling);
    chat.template_values = column.template_values;
    if (state_.comparison.shown_kind == ui::ComparisonKind::kSettings)
      chat.system_prompt = column.system_prompt;
    added = add_answer(chat, question, answer);
  });
  return {chat_id, added};
}

void CompareWorkspace::continue_column(ui::ColumnId column_id) {
  const std::optional<Message> answer = comparison_.message_of(column_id);
  if (answer) begin_chat(*ui::find_column(state_.comparison, column_id), *answer);
}

void CompareWorkspace::apply(const ui::actions::ForkChatAtToken& a) {
  const std::optional<Message> beginning =
      comparison_.beginning_of(a.column_id, a.token_index, a.alternative);
  if (!beginning) return;
  const auto [chat_id, message_id] = begin_chat(*ui::find_column(state_.comparison, a.column_id), *beginning);
  chats_.continue_answer(chat_id, message_id);
}

void CompareWorkspace::apply(const ui::actions::ExportComparison& a) {
  if (state_.comparison.columns.empty() || a.path.empty()) return;
  const bool json = a.format == ui::actions::ComparisonFormat::kJson;
  export_ = ExportedComparison{
      a.path, json ? comparison_to_json(state_.comparison) : comparison_to_markdown(state_.comparison)};
}

}  // namespace octavo::app
