#include "engine/chat_template/jinja_interpreter.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>

#include "engine/base/text.h"
#include "engine/chat_template/civil_time.h"
#include "engine/chat_template/jinja_arguments.h"
#include "engine/chat_template/jinja_filters.h"
#include "engine/chat_template/jinja_methods.h"
#include "engine/chat_template/jinja_operators.h"
#include "engine/chat_template/jinja_parser.h"
#include "engine/chat_template/jinja_predicates.h"
#include "engine/chat_template/jinja_text.h"

namespace octavo::tokenizer::jinja {

// Variables of a block. Loops, macros and blocks that capture text open scopes of their own; what they set is
// gone at their end.
class Scope {
 public:
  explicit Scope(Scope* parent) : parent_(parent) {}

  Scope* parent() const { return parent_; }
  std::size_t size() const { return variables_.size(); }

  const Value* find(std::string_view name) const {
    for (const auto& [variable, value] : variables_) {
      if (variable == name) return &value;
    }
    return nullptr;
  }

  void set(std::string_view name, Value value) {
    for (auto& [variable, content] : variables_) {
      if (variable == name) {
        content = std::move(value);
        return;
      }
    }
    variables_.emplace_back(name, std::move(value));
  }

  // A macro that was defined here or below may still be called when the block has ended.
  bool is_captured = false;

 private:
  Scope* parent_;
  std::vector<std::pair<std::string, Value>> variables_;
};

namespace {

enum class Flow { kOn, kBreak, kContinue };

class Counter {
 public:
  explicit Counter(int& count) : count_(count) { ++count_; }
  ~Counter() { --count_; }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

 private:
  int& count_;
};

class Interpreter {
 public:
  explicit Interpreter(std::int64_t now) : now_(now) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Namespaces may hold each other: emptied, they can all be freed.
  ~Interpreter() {
    for (const auto& space : namespaces_) space->attributes.clear();
  }

  Result<MarkedText> run(const Block& block, const Template::Variables& variables);

 private:
  static constexpr std::size_t kScopeCost = 10;  // operations

  Result<Scope*> open_scope(Scope* parent);
  void close_scope(Scope* scope);

  // Statements.
  Result<Flow> execute_block(const Block& block, Scope& scope);
  Result<Flow> execute(const Statement& statement, Scope& scope);
  Result<Flow> execute_for(const Statement& statement, Scope& scope);
  Result<Flow> execute_in_scope(const Block& block, Scope& scope);
  Result<Flow> execute_with(const Statement& statement, Scope& scope);
  Result<std::shared_ptr<const List>> loop_items(const Statement& statement, Scope& scope);
  Result<void> execute_set_block(const Statement& statement, Scope& scope);
  Result<void> execute_filter_block(const Statement& statement, Scope& scope);
  void define_macro(const Statement& statement, Scope& scope);
  Result<void> assign(const Target& target, const Value& value, Scope& scope);
  Result<void> assign_attribute(const Target& target, const Value& value, Scope& scope);
  Result<void> emit(const MarkedText& text);
  // What the block prints, as a text.
  Result<MarkedText> capture(const Block& block, Scope& scope);

  // Expressions.
  Outcome evaluate(const Expression& node, Scope& scope);
  Outcome evaluate_optional(const ExpressionPtr& node, Scope& scope);
  Outcome evaluate_name(const Expression& node, Scope& scope);
  Outcome evaluate_items(const Expression& node, Scope& scope);
  Outcome evaluate_dict(const Expression& node, Scope& scope);
  Outcome evaluate_slice(const Expression& node, Scope& scope);
  Outcome evaluate_call(const Expression& node, Scope& scope);
  Outcome evaluate_filter(const Expression& node, Scope& scope);
  Outcome evaluate_test(const Expression& node, Scope& scope);
  Outcome evaluate_compare(const Expression& node, Scope& scope);
  Outcome evaluate_concatenation(const Expression& node, Scope& scope);
  Outcome evaluate_conditional(const Expression& node, Scope& scope);
  Result<const Value*> look_up(std::string_view name, Scope& scope);
  Result<Arguments> evaluate_arguments(const Expression& node, Scope& scope);

  // Calls.
  Outcome call_macro(const Callable& macro, const Arguments& arguments);
  Outcome call_function(std::string_view name, const Arguments& arguments);
  Outcome call_range(const Arguments& arguments);
  Outcome call_dict(const Arguments& arguments);
  Outcome call_namespace(const Arguments& arguments);
  Outcome call_raise_exception(const Arguments& arguments);
  Outcome call_strftime_now(const Arguments& arguments);

  Error with_place(Error error) const;

  const std::int64_t now_;
  Budget budget_;
  MarkedText* output_ = nullptr;
  const Value* filter_input_ = nullptr;  // what a filter block or set block passes to its first filter
  int line_ = 1;
  int depth_ = 0, call_depth_ = 0;
  bool was_raised_ = false;  // by raise_exception
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

constexpr std::string_view kFunctions[] = {"range", "dict", "namespace", "raise_exception", "strftime_now"};

Result<MarkedText> Interpreter::run(const Block& block, const Template::Variables& variables) {
  MarkedText output;
  output_ = &output;
  Scope globals(nullptr);
  for (const auto& [name, value] : variables) globals.set(name, value);
  const Result<Flow> flow = execute_in_scope(block, globals);
  if (!flow) return with_place(flow.error());
  return output;
}

Error Interpreter::with_place(Error error) const {
  if (!was_raised_) error.message = "chat template, line " + std::to_string(line_) + ": " + error.message;
  error.subject = "tokenizer.chat_template";
  return error;
}

Result<Scope*> Interpreter::open_scope(Scope* parent) {
  OCTAVO_TRY_VOID(budget_.spend(kScopeCost));
  scopes_.push_back(std::make_unique<Scope>(parent));
  return scopes_.back().get();
}

void Interpreter::close_scope(Scope* scope) {
  if (!scope->is_captured && scopes_.back().get() == scope) scopes_.pop_back();
}

Result<Flow> Interpreter::execute_block(const Block& block, Scope& scope) {
  for (const auto& statement : block) {
    OCTAVO_TRY(const Flow flow, execute(*statement, scope));
    if (flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Result<Flow> Interpreter::execute_in_scope(const Block& block, Scope& scope) {
  OCTAVO_TRY(Scope* const inner, open_scope(&scope));
  OCTAVO_TRY(const Flow flow, execute_block(block, *inner));
  close_scope(inner);
  return flow;
}

Result<Flow> Interpreter::execute(const Statement& statement, Scope& scope) {
  const Counter depth(depth_);
  line_ = statement.line;
  if (depth_ > kMaxEvaluationDepth) return over_limit("the template is nested too deeply");
  OCTAVO_TRY_VOID(budget_.spend(1));
  switch (statement.kind) {
    case StatementKind::kText: OCTAVO_TRY_VOID(emit(*statement.text)); return Flow::kOn;
    case StatementKind::kOutput: {
      OCTAVO_TRY(const Value value, evaluate(*statement.expression, scope));
      OCTAVO_TRY(const Text text, to_text(value, budget_));
      OCTAVO_TRY_VOID(emit(*text));
      return Flow::kOn;
    }
    case StatementKind::kIf: {
      OCTAVO_TRY(const Value condition, evaluate(*statement.expression, scope));
      return execute_block(is_true(condition) ? statement.body : statement.otherwise, scope);
    }
    case StatementKind::kSet: {
      OCTAVO_TRY(const Value value, evaluate(*statement.expression, scope));
      OCTAVO_TRY_VOID(assign(statement.targets[0], value, scope));
      return Flow::kOn;
    }
    case StatementKind::kSetBlock: OCTAVO_TRY_VOID(execute_set_block(statement, scope)); return Flow::kOn;
    case StatementKind::kFilterBlock:
      OCTAVO_TRY_VOID(execute_filter_block(statement, scope));
      return Flow::kOn;
    case StatementKind::kMacro: define_macro(statement, scope); return Flow::kOn;
    case StatementKind::kFor: return execute_for(statement, scope);
    case StatementKind::kWith: return execute_with(statement, scope);
    case StatementKind::kScope: return execute_in_scope(statement.body, scope);
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
  }
  return Flow::kOn;
}

Result<void> Interpreter::emit(const MarkedText& text) {
  OCTAVO_TRY_VOID(budget_.spend(text.cost() / Budget::kBytesPerOperation));
  const std::size_t size = output_->size() + text.size();
  if (size > Budget::kMaxTextBytes) return over_limit("the template prints more than 16 MiB");
  output_->append(text);
  return {};
}

Result<MarkedText> Interpreter::capture(const Block& block, Scope& scope) {
  MarkedText captured;
  MarkedText* const outer = std::exchange(output_, &captured);
  const Result<Flow> flow = execute_in_scope(block, scope);
  output_ = outer;
  if (!flow) return flow.error();
  return captured;
}

Result<void> Interpreter::execute_set_block(const Statement& statement, Scope& scope) {
  OCTAVO_TRY(MarkedText text, capture(statement.body, scope));
  Value value(std::move(text));
  if (statement.expression) {
    const Value* const outer = std::exchange(filter_input_, &value);
    Outcome filtered = evaluate(*statement.expression, scope);
    filter_input_ = outer;
    OCTAVO_TRY(value, std::move(filtered));
  }
  return assign(statement.targets[0], value, scope);
}

Result<void> Interpreter::execute_filter_block(const Statement& statement, Scope& scope) {
  OCTAVO_TRY(MarkedText text, capture(statement.body, scope));
  const Value value(std::move(text));
  const Value* const outer = std::exchange(filter_input_, &value);
  const Outcome filtered = evaluate(*statement.expression, scope);
  filter_input_ = outer;
  if (!filtered) return filtered.error();
  OCTAVO_TRY(const Text printed, to_text(*filtered, budget_));
  return emit(*printed);
}

void Interpreter::define_macro(const Statement& statement, Scope& scope) {
  for (Scope* s = &scope; s != nullptr && !s->is_captured; s = s->parent()) s->is_captured = true;
  auto macro = std::make_shared<Callable>();
  macro->kind = Callable::Kind::kMacro;
  macro->name = statement.name;
  macro->macro = &statement;
  macro->closure = &scope;
  scope.set(statement.name, Value(std::shared_ptr<const Callable>(std::move(macro))));
}

Result<Flow> Interpreter::execute_with(const Statement& statement, Scope& scope) {
  OCTAVO_TRY(Scope* const inner, open_scope(&scope));
  for (std::size_t i = 0; i < statement.targets.size(); ++i) {
    OCTAVO_TRY(const Value value, evaluate(*statement.values[i], scope));
    OCTAVO_TRY_VOID(assign(statement.targets[i], value, *inner));
  }
  OCTAVO_TRY(const Flow flow, execute_block(statement.body, *inner));
  close_scope(inner);
  return flow;
}

// What the loop runs over; its condition is asked for all items before the first is visited.
Result<std::shared_ptr<const List>> Interpreter::loop_items(const Statement& statement, Scope& scope) {
  OCTAVO_TRY(const Value value, evaluate(*statement.expression, scope));
  OCTAVO_TRY(const auto all, iterate(value, budget_));
  if (!statement.condition) return all;
  std::vector<Value> chosen;
  for (const Value& item : all->items) {
    OCTAVO_TRY(Scope* const inner, open_scope(&scope));
    OCTAVO_TRY_VOID(assign(statement.targets[0], item, *inner));
    OCTAVO_TRY(const Value condition, evaluate(*statement.condition, *inner));
    close_scope(inner);
    if (is_true(condition)) chosen.push_back(item);
  }
  OCTAVO_TRY(const Value list, make_list(std::move(chosen)));
  return list.list();
}

Result<Flow> Interpreter::execute_for(const Statement& statement, Scope& scope) {
  OCTAVO_TRY(const auto items, loop_items(statement, scope));
  if (items->items.empty()) return execute_in_scope(statement.otherwise, scope);
  auto loop = std::make_shared<Loop>(Loop{items});
  Flow flow = Flow::kOn;
  for (; loop->index < items->items.size() && flow != Flow::kBreak; ++loop->index) {
    OCTAVO_TRY(Scope* const inner, open_scope(&scope));
    inner->set("loop", Value(loop));
    OCTAVO_TRY_VOID(assign(statement.targets[0], items->items[loop->index], *inner));
    OCTAVO_TRY(flow, execute_block(statement.body, *inner));
    close_scope(inner);
  }
  loop->last_changed.reset();
  return Flow::kOn;
}

Result<void> Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  if (target.kind == Target::Kind::kAttribute) return assign_attribute(target, value, scope);
  if (target.kind == Target::Kind::kName) {
    OCTAVO_TRY_VOID(budget_.spend(1 + scope.size() / 8));
    scope.set(target.name, value);
    return {};
  }
  OCTAVO_TRY(const auto parts, iterate(value, budget_));
  if (parts->items.size() != target.parts.size()) {
    return failure("cannot unpack " + std::to_string(parts->items.size()) + " values into " +
                   std::to_string(target.parts.size()) + " names");
  }
  for (std::size_t i = 0; i < target.parts.size(); ++i) {
    OCTAVO_TRY_VOID(assign(target.parts[i], parts->items[i], scope));
  }
  return {};
}

Result<void> Interpreter::assign_attribute(const Target& target, const Value& value, Scope& scope) {
  OCTAVO_TRY(const Value* space, look_up(target.name, scope));
  if (space == nullptr || !space->is_namespace()) {
    return failure("'" + escape_for_message(target.name, 60) +
                   "' is not a namespace, so its attributes cannot be set");
  }
  auto& attributes = space->name_space()->attributes;
  OCTAVO_TRY_VOID(budget_.spend(1 + attributes.size() / 8));
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](auto& a) { return a.first == target.attribute; });
  if (found != attributes.end()) {
    found->second = value;
  } else {
    attributes.emplace_back(target.attribute, value);
  }
  return {};
}

Outcome Interpreter::evaluate(const Expression& node, Scope& scope) {
  const Counter depth(depth_);
  line_ = node.line;
  if (depth_ > kMaxEvaluationDepth) return over_limit("the template is nested too deeply");
  OCTAVO_TRY_VOID(budget_.spend(1));
  switch (node.kind) {
    case ExpressionKind::kConstant: return node.constant;
    case ExpressionKind::kName: return evaluate_name(node, scope);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple: return evaluate_items(node, scope);
    case ExpressionKind::kDict: return evaluate_dict(node, scope);
    case ExpressionKind::kSlice: return evaluate_slice(node, scope);
    case ExpressionKind::kCall: return evaluate_call(node, scope);
    case ExpressionKind::kFilter: return evaluate_filter(node, scope);
    case ExpressionKind::kTest: return evaluate_test(node, scope);
    case ExpressionKind::kCompare: return evaluate_compare(node, scope);
    case ExpressionKind::kConcatenate: return evaluate_concatenation(node, scope);
    case ExpressionKind::kConditional: return evaluate_conditional(node, scope);
    default: break;
  }
  OCTAVO_TRY(Value first, evaluate(*node.operands[0], scope));
  switch (node.kind) {
    case ExpressionKind::kAttribute: return get_attribute(first, node.name, budget_);
    case ExpressionKind::kNot: return Value(!is_true(first));
    case ExpressionKind::kNegative: return negative(first);
    case ExpressionKind::kPositive: return positive(first);
    case ExpressionKind::kAnd: return is_true(first) ? evaluate(*node.operands[1], scope) : first;
    case ExpressionKind::kOr: return is_true(first) ? first : evaluate(*node.operands[1], scope);
    default: break;
  }
  OCTAVO_TRY(const Value second, evaluate(*node.operands[1], scope));
  if (node.kind == ExpressionKind::kSubscript) return get_item(first, second, budget_);
  return apply_binary(node.operators[0], first, second, budget_);
}

Outcome Interpreter::evaluate_optional(const ExpressionPtr& node, Scope& scope) {
  return node ? evaluate(*node, scope) : Outcome(Value());
}

Result<const Value*> Interpreter::look_up(std::string_view name, Scope& scope) {
  for (Scope* s = &scope; s != nullptr; s = s->parent()) {
    OCTAVO_TRY_VOID(budget_.spend(s->size() / 8));
    if (const Value* value = s->find(name)) return value;
  }
  return static_cast<const Value*>(nullptr);
}

Outcome Interpreter::evaluate_name(const Expression& node, Scope& scope) {
  OCTAVO_TRY(const Value* value, look_up(node.name, scope));
  if (value != nullptr) return *value;
  if (std::find(std::begin(kFunctions), std::end(kFunctions), node.name) != std::end(kFunctions)) {
    auto function = std::make_shared<Callable>();
    function->name = node.name;
    return Value(std::shared_ptr<const Callable>(std::move(function)));
  }
  return Value::undefined("'" + escape_for_message(node.name, 60) + "' is undefined");
}

Outcome Interpreter::evaluate_items(const Expression& node, Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& operand : node.operands) {
    OCTAVO_TRY(Value item, evaluate(*operand, scope));
    items.push_back(std::move(item));
  }
  return make_list(std::move(items), node.kind == ExpressionKind::kTuple);
}

Outcome Interpreter::evaluate_dict(const Expression& node, Scope& scope) {
  Dict dict;
  for (std::size_t i = 0; i < node.operands.size(); i += 2) {
    OCTAVO_TRY(Value key, evaluate(*node.operands[i], scope));
    OCTAVO_TRY(Value value, evaluate(*node.operands[i + 1], scope));
    OCTAVO_TRY(const Value* existing, find_entry(dict, key, budget_));
    if (existing != nullptr) {
      *const_cast<Value*>(existing) = std::move(value);  // `dict` is still ours alone
    } else {
      dict.entries.emplace_back(std::move(key), std::move(value));
    }
  }
  return make_dict(std::move(dict.entries));
}

Outcome Interpreter::evaluate_slice(const Expression& node, Scope& scope) {
  OCTAVO_TRY(const Value value, evaluate(*node.operands[0], scope));
  OCTAVO_TRY(const Value start, evaluate_optional(node.operands[1], scope));
  OCTAVO_TRY(const Value stop, evaluate_optional(node.operands[2], scope));
  OCTAVO_TRY(const Value step, evaluate_optional(node.operands[3], scope));
  return get_slice(value, start, stop, step, budget_);
}

Result<Arguments> Interpreter::evaluate_arguments(const Expression& node, Scope& scope) {
  Arguments arguments;
  for (std::size_t i = 1; i < node.operands.size(); ++i) {
    OCTAVO_TRY(Value value, evaluate(*node.operands[i], scope));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, expression] : node.keywords) {
    OCTAVO_TRY(Value value, evaluate(*expression, scope));
    arguments.named.emplace_back(name, std::move(value));
  }
  return arguments;
}

Outcome Interpreter::evaluate_call(const Expression& node, Scope& scope) {
  OCTAVO_TRY(const Value callee, evaluate(*node.operands[0], scope));
  if (callee.is_undefined()) return failure(callee.undefined_reason());
  if (!callee.is_callable()) return failure("a value of type " + callee.type_name() + " cannot be called");
  OCTAVO_TRY(const Arguments arguments, evaluate_arguments(node, scope));
  line_ = node.line;
  const Callable& callable = callee.callable();
  switch (callable.kind) {
    case Callable::Kind::kMethod: return call_method(*callable.self, callable.name, arguments, budget_);
    case Callable::Kind::kMacro: return call_macro(callable, arguments);
    case Callable::Kind::kFunction: return call_function(callable.name, arguments);
  }
  return Value();
}

Outcome Interpreter::evaluate_filter(const Expression& node, Scope& scope) {
  Value value;
  if (node.operands[0]) {
    OCTAVO_TRY(value, evaluate(*node.operands[0], scope));
  } else {
    value = *filter_input_;
  }
  OCTAVO_TRY(const Arguments arguments, evaluate_arguments(node, scope));
  line_ = node.line;
  return apply_filter(node.name, value, arguments, budget_);
}

Outcome Interpreter::evaluate_test(const Expression& node, Scope& scope) {
  OCTAVO_TRY(const Value value, evaluate(*node.operands[0], scope));
  OCTAVO_TRY(const Arguments arguments, evaluate_arguments(node, scope));
  line_ = node.line;
  OCTAVO_TRY(const bool holds, apply_predicate(node.name, value, arguments, budget_));
  return Value(holds);
}

// a < b < c asks a < b and b < c, each operand evaluated once.
Outcome Interpreter::evaluate_compare(const Expression& node, Scope& scope) {
  OCTAVO_TRY(Value left, evaluate(*node.operands[0], scope));
  for (std::size_t i = 0; i < node.operators.size(); ++i) {
    OCTAVO_TRY(Value right, evaluate(*node.operands[i + 1], scope));
    OCTAVO_TRY(const bool holds, apply_comparison(node.operators[i], left, right, budget_));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Outcome Interpreter::evaluate_concatenation(const Expression& node, Scope& scope) {
  std::vector<Text> parts;
  for (const ExpressionPtr& operand : node.operands) {
    OCTAVO_TRY(const Value value, evaluate(*operand, scope));
    OCTAVO_TRY(Text text, to_text(value, budget_));
    parts.push_back(std::move(text));
  }
  OCTAVO_TRY(MarkedText joined, join(MarkedText(), parts, budget_));
  return Value(std::move(joined));
}

Outcome Interpreter::evaluate_conditional(const Expression& node, Scope& scope) {
  OCTAVO_TRY(const Value condition, evaluate(*node.operands[1], scope));
  if (is_true(condition)) return evaluate(*node.operands[0], scope);
  if (node.operands[2]) return evaluate(*node.operands[2], scope);
  return Value::undefined("the condition was false and there is no else");
}

Outcome Interpreter::call_macro(const Callable& callable, const Arguments& arguments) {
  const Counter calls(call_depth_);
  if (call_depth_ > kMaxCallDepth) return over_limit("macros call each other more than 64 levels deep");
  const Statement& macro = *callable.macro;
  const std::vector<std::string_view> parameters(macro.parameters.begin(), macro.parameters.end());
  OCTAVO_TRY(const Bound bound, bind_arguments(macro.name, arguments, parameters));
  OCTAVO_TRY(Scope* const scope, open_scope(callable.closure));
  const std::size_t first_default = macro.parameters.size() - macro.defaults.size();
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    Value value = bound.value_or(
        i, Value::undefined("the macro parameter '" + macro.parameters[i] + "' was not given"));
    if (!bound.has(i) && i >= first_default) {
      OCTAVO_TRY(value, evaluate(*macro.defaults[i - first_default], *scope));
    }
    scope->set(macro.parameters[i], std::move(value));
  }
  Result<MarkedText> text = capture(macro.body, *scope);
  if (!text) return std::move(text).error();
  close_scope(scope);
  return Value(*std::move(text));
}

Outcome Interpreter::call_function(std::string_view name, const Arguments& arguments) {
  if (name == "range") return call_range(arguments);
  if (name == "dict") return call_dict(arguments);
  if (name == "namespace") return call_namespace(arguments);
  if (name == "strftime_now") return call_strftime_now(arguments);
  return call_raise_exception(arguments);
}

Outcome Interpreter::call_range(const Arguments& arguments) {
  static constexpr std::array<std::string_view, 3> kParameters = {"start", "stop", "step"};
  OCTAVO_TRY(const Bound bound, bind_arguments("range", arguments, kParameters, 1));
  OCTAVO_TRY(const std::int64_t first, bound.integer(0, "start", 0));
  OCTAVO_TRY(const std::int64_t second, bound.integer(1, "stop", 0));
  OCTAVO_TRY(const std::int64_t step, bound.integer(2, "step", 1));
  const std::int64_t start = bound.has(1) ? first : 0, stop = bound.has(1) ? second : first;
  if (step == 0) return failure("the step of range cannot be 0");
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) == kMaxRange)
      return over_limit("range has more than 100,000 items");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  OCTAVO_TRY_VOID(budget_.spend_items(items.size()));
  return make_list(std::move(items));
}

Outcome Interpreter::call_dict(const Arguments& arguments) {
  if (arguments.positional.size() > 1) return failure("dict takes at most one positional argument");
  Dict dict;
  if (!arguments.positional.empty()) {
    if (!arguments.positional[0].is_dict())
      return failure("dict takes a dict, not " + arguments.positional[0].type_name());
    OCTAVO_TRY_VOID(budget_.spend(arguments.positional[0].dict().entries.size()));
    dict = arguments.positional[0].dict();
  }
  for (const auto& argument : arguments.named) {
    const auto found = std::find_if(dict.entries.begin(), dict.entries.end(), [&](const auto& entry) {
      return entry.first.is_text() && entry.first.string() == argument.first;
    });
    if (found != dict.entries.end()) {
      found->second = argument.second;
    } else {
      dict.entries.emplace_back(Value(std::string_view(argument.first)), argument.second);
    }
  }
  return make_dict(std::move(dict.entries));
}

Outcome Interpreter::call_namespace(const Arguments& arguments) {
  OCTAVO_TRY(const Value initial, call_dict(arguments));
  OCTAVO_TRY_VOID(budget_.spend(kScopeCost));
  auto space = std::make_shared<Namespace>();
  for (const auto& [key, value] : initial.dict().entries) {
    if (!key.is_text()) return failure("the attributes of a namespace need names");
    space->attributes.emplace_back(key.string(), value);
  }
  namespaces_.push_back(space);
  return Value(space);
}

Outcome Interpreter::call_raise_exception(const Arguments& arguments) {
  static constexpr std::array<std::string_view, 1> kParameters = {"message"};
  OCTAVO_TRY(const Bound bound, bind_arguments("raise_exception", arguments, kParameters, 1));
  OCTAVO_TRY(const Text message, to_text(bound[0], budget_));
  was_raised_ = true;
  return failure("the chat template rejects these messages: " + escape_for_message(message->text(), 500));
}

Outcome Interpreter::call_strftime_now(const Arguments& arguments) {
  static constexpr std::array<std::string_view, 1> kParameters = {"format"};
  OCTAVO_TRY(const Bound bound, bind_arguments("strftime_now", arguments, kParameters, 1));
  OCTAVO_TRY(const auto format, bound.text(0, "format"));
  OCTAVO_TRY_VOID(budget_.spend_text(format.value_or("").size()));
  OCTAVO_TRY(std::string text, format_time(format.value_or(""), now_));
  return Value(MarkedText(std::move(text)));
}

}  // namespace

Result<Template> Template::parse(std::string_view source) {
  OCTAVO_TRY(Block block, parse_template(source));
  return Template(std::move(block));
}

Result<MarkedText> Template::render(const Variables& variables, std::int64_t now) const {
  return Interpreter(now).run(block_, variables);
}

}  // namespace octavo::tokenizer::jinja
