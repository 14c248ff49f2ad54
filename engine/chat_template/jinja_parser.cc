#include "engine/chat_template/jinja_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>

#include "engine/base/text.h"
#include "engine/chat_template/jinja_lexer.h"

namespace octavo::tokenizer::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

// Counts nesting for as long as it lives.
class Nesting {
 public:
  explicit Nesting(int& level) : level_(level) { ++level_; }
  ~Nesting() { --level_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& level_;
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Block> run() {
    OCTAVO_TRY(Block block, parse_block({}));
    return block;
  }

 private:
  using Parsed = Result<ExpressionPtr>;

  // Tokens.
  const Token& current() const { return tokens_[position_]; }
  const Token& next() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  void advance() {
    if (position_ + 1 < tokens_.size()) ++position_;
  }
  bool is_operator(std::string_view text) const {
    return current().type == TokenType::kOperator && current().text == text;
  }
  bool is_name(std::string_view text) const {
    return current().type == TokenType::kName && current().text == text;
  }
  bool is_one_of(Names names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return is_name(name); });
  }
  bool skip_operator(std::string_view text) { return is_operator(text) && (advance(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (advance(), true); }
  Error unexpected() const;
  Result<void> expect_operator(std::string_view text);
  Result<std::string> expect_name();
  Result<void> expect_tag_end();
  Result<void> check_nesting() const;

  // Statements.
  Result<Block> parse_block(Names ends);
  Result<Block> parse_body(Names ends);  // after the tag's own text: its end, then the block
  Result<Block> parse_last_body(std::string_view end);
  Result<std::unique_ptr<Statement>> parse_statement();
  Result<void> parse_output(Block& block);
  Result<std::unique_ptr<Statement>> parse_for();
  Result<std::unique_ptr<Statement>> parse_if();
  Result<std::unique_ptr<Statement>> parse_set();
  Result<std::unique_ptr<Statement>> parse_macro();
  Result<std::unique_ptr<Statement>> parse_filter_block();
  Result<std::unique_ptr<Statement>> parse_with();
  Result<std::unique_ptr<Statement>> parse_generation();
  Result<std::unique_ptr<Statement>> parse_jump(StatementKind kind);
  Result<Target> parse_target(bool with_namespace);
  Result<Target> parse_single_target(bool with_namespace);
  std::unique_ptr<Statement> make_statement(StatementKind kind) const;

  // Expressions, loosest first.
  Parsed parse_expression();
  Parsed parse_or();
  Parsed parse_and();
  Parsed parse_not();
  Parsed parse_compare();
  Parsed parse_sum();
  Parsed parse_concatenation();
  Parsed parse_product();
  Parsed parse_power();
  Parsed parse_unary(bool with_filter);
  Parsed parse_primary();
  Parsed parse_name();
  Parsed parse_string();
  Parsed parse_number();
  Parsed parse_parentheses();
  Parsed parse_list();
  Parsed parse_dict();
  Parsed parse_postfix(ExpressionPtr node);
  Parsed parse_filters(ExpressionPtr node);
  Parsed parse_filter(ExpressionPtr node);
  Parsed parse_test(ExpressionPtr node);
  Parsed parse_attribute(ExpressionPtr node);
  Parsed parse_subscript(ExpressionPtr node);
  Result<void> parse_arguments(Expression& node);
  // A tuple without brackets: one expression, or several with commas. Ends before a tag's end or one of the
  // names.
  Parsed parse_tuple(bool with_conditional, Names ends);
  std::optional<Operator> comparison_here() const;

  ExpressionPtr make(ExpressionKind kind) const;
  Parsed binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right,
                std::optional<Operator> op = {}) const;
  // Sets the depth, and refuses trees that are too deep to walk.
  Parsed finish(ExpressionPtr node) const;

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int nesting_ = 0;
  int loops_ = 0;
};

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kEnd: return "the end of the template";
    case TokenType::kStatementEnd: return "the end of the tag";
    case TokenType::kOutputEnd: return "the end of the expression";
    case TokenType::kData:
    case TokenType::kOutputBegin:
    case TokenType::kStatementBegin: return "template text";
    default: return "'" + escape_for_message(token.text, 40) + "'";
  }
}

bool assigns(const Target& target, std::string_view name) {
  return target.name == name || std::any_of(target.parts.begin(), target.parts.end(),
                                            [&](const Target& part) { return assigns(part, name); });
}

Error Parser::unexpected() const { return syntax_error(current().line, "unexpected " + describe(current())); }

Result<void> Parser::expect_operator(std::string_view text) {
  if (skip_operator(text)) return {};
  return syntax_error(current().line, "expected '" + std::string(text) + "', found " + describe(current()));
}

Result<std::string> Parser::expect_name() {
  if (current().type != TokenType::kName) {
    return syntax_error(current().line, "expected a name, found " + describe(current()));
  }
  std::string name = current().text;
  advance();
  return name;
}

Result<void> Parser::expect_tag_end() {
  if (current().type != TokenType::kStatementEnd) return unexpected();
  advance();
  return {};
}

Result<void> Parser::check_nesting() const {
  if (nesting_ <= kMaxNesting) return {};
  return syntax_error(current().line, "nested more than " + std::to_string(kMaxNesting) + " levels deep");
}

std::unique_ptr<Statement> Parser::make_statement(StatementKind kind) const {
  auto statement = std::make_unique<Statement>();
  statement->kind = kind;
  statement->line = current().line;
  return statement;
}

Result<Block> Parser::parse_block(Names ends) {
  const Nesting nesting(nesting_);
  OCTAVO_TRY_VOID(check_nesting());
  Block block;
  while (current().type != TokenType::kEnd) {
    if (current().type == TokenType::kData) {
      auto statement = make_statement(StatementKind::kText);
      statement->text = std::make_shared<const MarkedText>(current().text);
      block.push_back(std::move(statement));
      advance();
    } else if (current().type == TokenType::kOutputBegin) {
      OCTAVO_TRY_VOID(parse_output(block));
    } else {
      advance();  // the start of a statement: nothing else can stand here
      if (is_one_of(ends)) return block;
      OCTAVO_TRY(std::unique_ptr<Statement> statement, parse_statement());
      OCTAVO_TRY_VOID(expect_tag_end());
      block.push_back(std::move(statement));
    }
  }
  if (ends.size() == 0) return block;
  return syntax_error(current().line, "the template ends before '" + std::string(*(ends.end() - 1)) + "'");
}

Result<void> Parser::parse_output(Block& block) {
  auto statement = make_statement(StatementKind::kOutput);
  advance();
  OCTAVO_TRY(statement->expression, parse_tuple(/*with_conditional=*/true, {}));
  if (current().type != TokenType::kOutputEnd) return unexpected();
  advance();
  block.push_back(std::move(statement));
  return {};
}

Result<Block> Parser::parse_body(Names ends) {
  skip_operator(":");
  OCTAVO_TRY_VOID(expect_tag_end());
  return parse_block(ends);
}

Result<Block> Parser::parse_last_body(std::string_view end) {
  OCTAVO_TRY(Block body, parse_body({end}));
  advance();
  return body;
}

Result<std::unique_ptr<Statement>> Parser::parse_statement() {
  if (skip_name("for")) return parse_for();
  if (skip_name("if")) return parse_if();
  if (skip_name("set")) return parse_set();
  if (skip_name("macro")) return parse_macro();
  if (skip_name("filter")) return parse_filter_block();
  if (skip_name("with")) return parse_with();
  if (skip_name("generation")) return parse_generation();
  if (skip_name("break")) return parse_jump(StatementKind::kBreak);
  if (skip_name("continue")) return parse_jump(StatementKind::kContinue);
  if (current().type != TokenType::kName) return unexpected();
  return syntax_error(current().line,
                      "the tag '" + escape_for_message(current().text, 40) + "' is not supported");
}

Result<std::unique_ptr<Statement>> Parser::parse_for() {
  auto statement = make_statement(StatementKind::kFor);
  OCTAVO_TRY(Target target, parse_target(/*with_namespace=*/false));
  if (assigns(target, "loop")) return syntax_error(current().line, "a loop cannot assign to 'loop'");
  statement->targets.push_back(std::move(target));
  if (!skip_name("in")) return unexpected();
  OCTAVO_TRY(statement->expression, parse_tuple(/*with_conditional=*/false, {"if", "recursive"}));
  if (skip_name("if")) {
    OCTAVO_TRY(statement->condition, parse_expression());
  }
  if (is_name("recursive")) return syntax_error(current().line, "recursive loops are not supported");
  ++loops_;
  OCTAVO_TRY(statement->body, parse_body({"else", "endfor"}));
  --loops_;
  if (skip_name("else")) {
    OCTAVO_TRY(statement->otherwise, parse_last_body("endfor"));
  } else {
    advance();
  }
  return statement;
}

// elif becomes an if in the else of the one before, so each counts as one level of nesting.
Result<std::unique_ptr<Statement>> Parser::parse_if() {
  std::vector<std::unique_ptr<Statement>> branches;
  Block otherwise;
  do {
    auto branch = make_statement(StatementKind::kIf);
    OCTAVO_TRY(branch->expression, parse_tuple(/*with_conditional=*/false, {}));
    OCTAVO_TRY(branch->body, parse_body({"elif", "else", "endif"}));
    branches.push_back(std::move(branch));
    ++nesting_;
  } while (skip_name("elif"));
  if (skip_name("else")) {
    OCTAVO_TRY(otherwise, parse_last_body("endif"));
  } else {
    advance();
  }
  nesting_ -= static_cast<int>(branches.size());
  while (branches.size() > 1) {
    branches.back()->otherwise = std::move(otherwise);
    otherwise.clear();
    otherwise.push_back(std::move(branches.back()));
    branches.pop_back();
  }
  branches[0]->otherwise = std::move(otherwise);
  return std::move(branches[0]);
}

Result<std::unique_ptr<Statement>> Parser::parse_set() {
  auto statement = make_statement(StatementKind::kSet);
  OCTAVO_TRY(Target target, parse_target(/*with_namespace=*/true));
  statement->targets.push_back(std::move(target));
  if (skip_operator("=")) {
    OCTAVO_TRY(statement->expression, parse_tuple(/*with_conditional=*/true, {}));
    return statement;
  }
  statement->kind = StatementKind::kSetBlock;
  if (is_operator("|")) {
    OCTAVO_TRY(statement->expression, parse_filters(nullptr));
  }
  OCTAVO_TRY(statement->body, parse_last_body("endset"));
  return statement;
}

Result<std::unique_ptr<Statement>> Parser::parse_macro() {
  auto statement = make_statement(StatementKind::kMacro);
  OCTAVO_TRY(statement->name, expect_name());
  OCTAVO_TRY_VOID(expect_operator("("));
  while (!is_operator(")")) {
    if (!statement->parameters.empty()) OCTAVO_TRY_VOID(expect_operator(","));
    OCTAVO_TRY(std::string parameter, expect_name());
    statement->parameters.push_back(std::move(parameter));
    if (skip_operator("=")) {
      OCTAVO_TRY(ExpressionPtr value, parse_expression());
      statement->defaults.push_back(std::move(value));
    } else if (!statement->defaults.empty()) {
      return syntax_error(current().line, "a parameter without a default follows one with a default");
    }
  }
  advance();
  const int loops = std::exchange(loops_, 0);
  OCTAVO_TRY(statement->body, parse_last_body("endmacro"));
  loops_ = loops;
  return statement;
}

Result<std::unique_ptr<Statement>> Parser::parse_filter_block() {
  auto statement = make_statement(StatementKind::kFilterBlock);
  OCTAVO_TRY(ExpressionPtr first, parse_filter(nullptr));
  OCTAVO_TRY(statement->expression, parse_filters(std::move(first)));
  OCTAVO_TRY(statement->body, parse_last_body("endfilter"));
  return statement;
}

Result<std::unique_ptr<Statement>> Parser::parse_with() {
  auto statement = make_statement(StatementKind::kWith);
  while (current().type != TokenType::kStatementEnd) {
    if (!statement->targets.empty()) OCTAVO_TRY_VOID(expect_operator(","));
    OCTAVO_TRY(Target target, parse_single_target(/*with_namespace=*/false));
    OCTAVO_TRY_VOID(expect_operator("="));
    OCTAVO_TRY(ExpressionPtr value, parse_expression());
    statement->targets.push_back(std::move(target));
    statement->values.push_back(std::move(value));
  }
  OCTAVO_TRY(statement->body, parse_last_body("endwith"));
  return statement;
}

// Marks what an assistant said, for training; it prints its body.
Result<std::unique_ptr<Statement>> Parser::parse_generation() {
  auto statement = make_statement(StatementKind::kScope);
  OCTAVO_TRY(statement->body, parse_last_body("endgeneration"));
  return statement;
}

Result<std::unique_ptr<Statement>> Parser::parse_jump(StatementKind kind) {
  if (loops_ == 0) return syntax_error(current().line, "break and continue belong in loops only");
  return make_statement(kind);
}

Result<Target> Parser::parse_single_target(bool with_namespace) {
  const Nesting nesting(nesting_);
  OCTAVO_TRY_VOID(check_nesting());
  if (skip_operator("(")) {
    OCTAVO_TRY(Target inner, parse_target(with_namespace));
    OCTAVO_TRY_VOID(expect_operator(")"));
    return inner;
  }
  Target target;
  OCTAVO_TRY(target.name, expect_name());
  if (with_namespace && skip_operator(".")) {
    target.kind = Target::Kind::kAttribute;
    OCTAVO_TRY(target.attribute, expect_name());
  }
  static constexpr std::array<std::string_view, 6> kReserved = {"true", "false", "none",
                                                                "True", "False", "None"};
  if (std::find(kReserved.begin(), kReserved.end(), target.name) != kReserved.end()) {
    return syntax_error(current().line, "'" + target.name + "' cannot be assigned to");
  }
  return target;
}

Result<Target> Parser::parse_target(bool with_namespace) {
  OCTAVO_TRY(Target first, parse_single_target(with_namespace));
  if (!is_operator(",")) return first;
  Target tuple;
  tuple.kind = Target::Kind::kTuple;
  tuple.parts.push_back(std::move(first));
  while (skip_operator(",")) {
    if (current().type != TokenType::kName && !is_operator("(")) break;
    OCTAVO_TRY(Target part, parse_single_target(with_namespace));
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

ExpressionPtr Parser::make(ExpressionKind kind) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = current().line;
  return node;
}

Result<ExpressionPtr> Parser::finish(ExpressionPtr node) const {
  for (const ExpressionPtr& operand : node->operands) {
    if (operand) node->depth = std::max(node->depth, operand->depth + 1);
  }
  for (const auto& [name, value] : node->keywords) node->depth = std::max(node->depth, value->depth + 1);
  if (node->depth <= kMaxExpressionDepth) return node;
  return syntax_error(node->line, "an expression is nested more than " + std::to_string(kMaxExpressionDepth) +
                                      " levels deep");
}

Result<ExpressionPtr> Parser::binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right,
                                     std::optional<Operator> op) const {
  ExpressionPtr node = make(kind);
  node->line = left->line;
  node->operands.push_back(std::move(left));
  node->operands.push_back(std::move(right));
  if (op) node->operators.push_back(*op);
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::parse_tuple(bool with_conditional, Names ends) {
  const Nesting nesting(nesting_);
  OCTAVO_TRY_VOID(check_nesting());
  ExpressionPtr tuple = make(ExpressionKind::kTuple);
  bool has_comma = false;
  while (true) {
    const bool at_end = current().type == TokenType::kOutputEnd ||
                        current().type == TokenType::kStatementEnd || is_operator(")") || is_one_of(ends);
    if (at_end) break;
    OCTAVO_TRY(ExpressionPtr item, with_conditional ? parse_expression() : parse_or());
    tuple->operands.push_back(std::move(item));
    if (!skip_operator(",")) break;
    has_comma = true;
  }
  if (has_comma) return finish(std::move(tuple));
  if (tuple->operands.empty())
    return syntax_error(current().line, "expected an expression, found " + describe(current()));
  return std::move(tuple->operands[0]);
}

Result<ExpressionPtr> Parser::parse_expression() {
  const Nesting nesting(nesting_);
  OCTAVO_TRY_VOID(check_nesting());
  OCTAVO_TRY(ExpressionPtr value, parse_or());
  while (skip_name("if")) {
    ExpressionPtr node = make(ExpressionKind::kConditional);
    OCTAVO_TRY(ExpressionPtr condition, parse_or());
    ExpressionPtr otherwise;
    if (skip_name("else")) {
      OCTAVO_TRY(otherwise, parse_expression());
    }
    node->operands.push_back(std::move(value));
    node->operands.push_back(std::move(condition));
    node->operands.push_back(std::move(otherwise));
    OCTAVO_TRY(value, finish(std::move(node)));
  }
  return value;
}

Result<ExpressionPtr> Parser::parse_or() {
  OCTAVO_TRY(ExpressionPtr left, parse_and());
  while (skip_name("or")) {
    OCTAVO_TRY(ExpressionPtr right, parse_and());
    OCTAVO_TRY(left, binary(ExpressionKind::kOr, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> Parser::parse_and() {
  OCTAVO_TRY(ExpressionPtr left, parse_not());
  while (skip_name("and")) {
    OCTAVO_TRY(ExpressionPtr right, parse_not());
    OCTAVO_TRY(left, binary(ExpressionKind::kAnd, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> Parser::parse_not() {
  if (!is_name("not")) return parse_compare();
  const Nesting nesting(nesting_);
  OCTAVO_TRY_VOID(check_nesting());
  ExpressionPtr node = make(ExpressionKind::kNot);
  advance();
  OCTAVO_TRY(ExpressionPtr operand, parse_not());
  node->operands.push_back(std::move(operand));
  return finish(std::move(node));
}

std::optional<Operator> Parser::comparison_here() const {
  if (is_operator("==")) return Operator::kEqual;
  if (is_operator("!=")) return Operator::kNotEqual;
  if (is_operator("<")) return Operator::kLess;
  if (is_operator("<=")) return Operator::kLessEqual;
  if (is_operator(">")) return Operator::kGreater;
  if (is_operator(">=")) return Operator::kGreaterEqual;
  if (is_name("in")) return Operator::kIn;
  const bool not_in = is_name("not") && next().type == TokenType::kName && next().text == "in";
  return not_in ? std::optional(Operator::kNotIn) : std::nullopt;
}

Result<ExpressionPtr> Parser::parse_compare() {
  ExpressionPtr node = make(ExpressionKind::kCompare);
  OCTAVO_TRY(ExpressionPtr first, parse_sum());
  node->operands.push_back(std::move(first));
  while (const std::optional<Operator> op = comparison_here()) {
    advance();
    if (*op == Operator::kNotIn) advance();
    OCTAVO_TRY(ExpressionPtr operand, parse_sum());
    node->operands.push_back(std::move(operand));
    node->operators.push_back(*op);
  }
  if (node->operators.empty()) return std::move(node->operands[0]);
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::parse_sum() {
  OCTAVO_TRY(ExpressionPtr left, parse_concatenation());
  while (is_operator("+") || is_operator("-")) {
    const Operator op = is_operator("+") ? Operator::kAdd : Operator::kSubtract;
    advance();
    OCTAVO_TRY(ExpressionPtr right, parse_concatenation());
    OCTAVO_TRY(left, binary(ExpressionKind::kBinary, std::move(left), std::move(right), op));
  }
  return left;
}

Result<ExpressionPtr> Parser::parse_concatenation() {
  ExpressionPtr node = make(ExpressionKind::kConcatenate);
  do {
    OCTAVO_TRY(ExpressionPtr part, parse_product());
    node->operands.push_back(std::move(part));
  } while (skip_operator("~"));
  if (node->operands.size() == 1) return std::move(node->operands[0]);
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::parse_product() {
  OCTAVO_TRY(ExpressionPtr left, parse_power());
  while (true) {
    std::optional<Operator> op;
    if (is_operator("*")) op = Operator::kMultiply;
    if (is_operator("/")) op = Operator::kDivide;
    if (is_operator("//")) op = Operator::kFloorDivide;
    if (is_operator("%")) op = Operator::kModulo;
    if (!op) return left;
    advance();
    OCTAVO_TRY(ExpressionPtr right, parse_power());
    OCTAVO_TRY(left, binary(ExpressionKind::kBinary, std::move(left), std::move(right), op));
  }
}

Result<ExpressionPtr> Parser::parse_power() {
  OCTAVO_TRY(ExpressionPtr left, parse_unary(/*with_filter=*/true));
  while (skip_operator("**")) {
    OCTAVO_TRY(ExpressionPtr right, parse_unary(/*with_filter=*/true));
    OCTAVO_TRY(left, binary(ExpressionKind::kBinary, std::move(left), std::move(right), Operator::kPower));
  }
  return left;
}

Result<ExpressionPtr> Parser::parse_unary(bool with_filter) {
  const Nesting nesting(nesting_);
  OCTAVO_TRY_VOID(check_nesting());
  ExpressionPtr node;
  if (is_operator("-") || is_operator("+")) {
    node = make(is_operator("-") ? ExpressionKind::kNegative : ExpressionKind::kPositive);
    advance();
    OCTAVO_TRY(ExpressionPtr operand, parse_unary(/*with_filter=*/false));
    node->operands.push_back(std::move(operand));
    OCTAVO_TRY(node, finish(std::move(node)));
  } else {
    OCTAVO_TRY(node, parse_primary());
  }
  OCTAVO_TRY(node, parse_postfix(std::move(node)));
  return with_filter ? parse_filters(std::move(node)) : Parsed(std::move(node));
}

Result<ExpressionPtr> Parser::parse_primary() {
  switch (current().type) {
    case TokenType::kName: return parse_name();
    case TokenType::kString: return parse_string();
    case TokenType::kInteger:
    case TokenType::kFloat: return parse_number();
    default: break;
  }
  if (is_operator("(")) return parse_parentheses();
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  return unexpected();
}

Result<ExpressionPtr> Parser::parse_name() {
  const std::string& name = current().text;
  ExpressionPtr node = make(ExpressionKind::kConstant);
  if (name == "true" || name == "True") {
    node->constant = Value(true);
  } else if (name == "false" || name == "False") {
    node->constant = Value(false);
  } else if (name != "none" && name != "None") {
    node->kind = ExpressionKind::kName;
    node->name = name;
  }
  advance();
  return node;
}

Result<ExpressionPtr> Parser::parse_string() {
  ExpressionPtr node = make(ExpressionKind::kConstant);
  std::string text;
  for (; current().type == TokenType::kString; advance()) text += current().text;
  node->constant = Value(MarkedText(std::move(text)));
  return node;
}

Result<ExpressionPtr> Parser::parse_number() {
  ExpressionPtr node = make(ExpressionKind::kConstant);
  std::string digits = current().text;
  std::erase(digits, '_');
  if (current().type == TokenType::kFloat) {
    double value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    node->constant = Value(value);
    advance();
    return node;
  }
  const char prefix = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int base = prefix == 'x' ? 16 : (prefix == 'o' ? 8 : (prefix == 'b' ? 2 : 10));
  const char* begin = digits.data() + (base == 10 ? 0 : 2);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(begin, digits.data() + digits.size(), value, base);
  if (status != std::errc() || end != digits.data() + digits.size()) {
    return syntax_error(current().line, "the number " + escape_for_message(digits, 40) + " is out of range");
  }
  node->constant = Value(value);
  advance();
  return node;
}

Result<ExpressionPtr> Parser::parse_parentheses() {
  ExpressionPtr empty = make(ExpressionKind::kTuple);
  advance();
  if (skip_operator(")")) return empty;
  OCTAVO_TRY(ExpressionPtr inner, parse_tuple(/*with_conditional=*/true, {}));
  OCTAVO_TRY_VOID(expect_operator(")"));
  return inner;
}

Result<ExpressionPtr> Parser::parse_list() {
  ExpressionPtr node = make(ExpressionKind::kList);
  advance();
  while (!skip_operator("]")) {
    if (!node->operands.empty()) {
      OCTAVO_TRY_VOID(expect_operator(","));
      if (skip_operator("]")) break;
    }
    OCTAVO_TRY(ExpressionPtr item, parse_expression());
    node->operands.push_back(std::move(item));
  }
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::parse_dict() {
  ExpressionPtr node = make(ExpressionKind::kDict);
  advance();
  while (!skip_operator("}")) {
    if (!node->operands.empty()) {
      OCTAVO_TRY_VOID(expect_operator(","));
      if (skip_operator("}")) break;
    }
    OCTAVO_TRY(ExpressionPtr key, parse_expression());
    OCTAVO_TRY_VOID(expect_operator(":"));
    OCTAVO_TRY(ExpressionPtr value, parse_expression());
    node->operands.push_back(std::move(key));
    node->operands.push_back(std::move(value));
  }
  return finish(std::move(node));
}

Result<ExpressionPtr> Parser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (is_operator(".")) {
      OCTAVO_TRY(node, parse_attribute(std::move(node)));
    } else if (is_operator("[")) {
      OCTAVO_TRY(node, parse_subscript(std::move(node)));
    } else if (is_operator("(")) {
      ExpressionPtr call = make(ExpressionKind::kCall);
      call->operands.push_back(std::move(node));
      OCTAVO_TRY_VOID(parse_arguments(*call));
      OCTAVO_TRY(node, finish(std::move(call)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> Parser::parse_attribute(ExpressionPtr node) {
  ExpressionPtr access = make(ExpressionKind::kAttribute);
  advance();
  access->operands.push_back(std::move(node));
  if (current().type == TokenType::kInteger) {
    access->kind = ExpressionKind::kSubscript;
    OCTAVO_TRY(ExpressionPtr index, parse_number());
    access->operands.push_back(std::move(index));
  } else {
    OCTAVO_TRY(access->name, expect_name());
  }
  return finish(std::move(access));
}

// [i], [a:b], [a:b:c] with any of the three left out.
Result<ExpressionPtr> Parser::parse_subscript(ExpressionPtr node) {
  ExpressionPtr access = make(ExpressionKind::kSubscript);
  advance();
  access->operands.push_back(std::move(node));
  for (int i = 0; i < 3; ++i) {
    ExpressionPtr part;
    if (!is_operator(":") && !is_operator("]")) {
      OCTAVO_TRY(part, parse_expression());
    }
    access->operands.push_back(std::move(part));
    if (!skip_operator(":")) break;
    access->kind = ExpressionKind::kSlice;
  }
  if (access->kind == ExpressionKind::kSubscript && !access->operands[1]) return unexpected();
  if (access->kind == ExpressionKind::kSlice) access->operands.resize(4);
  OCTAVO_TRY_VOID(expect_operator("]"));
  return finish(std::move(access));
}

Result<void> Parser::parse_arguments(Expression& node) {
  OCTAVO_TRY_VOID(expect_operator("("));
  bool first = true;
  while (!is_operator(")")) {
    if (!first) {
      OCTAVO_TRY_VOID(expect_operator(","));
      if (is_operator(")")) break;
    }
    first = false;
    if (is_operator("*") || is_operator("**"))
      return syntax_error(current().line, "star arguments are not supported");
    const bool is_keyword =
        current().type == TokenType::kName && next().type == TokenType::kOperator && next().text == "=";
    if (is_keyword) {
      std::string name = current().text;
      advance();
      advance();
      OCTAVO_TRY(ExpressionPtr value, parse_expression());
      node.keywords.emplace_back(std::move(name), std::move(value));
    } else {
      if (!node.keywords.empty())
        return syntax_error(current().line, "a positional argument follows a named one");
      OCTAVO_TRY(ExpressionPtr value, parse_expression());
      node.operands.push_back(std::move(value));
    }
  }
  advance();
  return {};
}

Result<ExpressionPtr> Parser::parse_filters(ExpressionPtr node) {
  while (true) {
    if (skip_operator("|")) {
      OCTAVO_TRY(node, parse_filter(std::move(node)));
    } else if (node && skip_name("is")) {
      OCTAVO_TRY(node, parse_test(std::move(node)));
    } else if (node && is_operator("(")) {  // as in jinja, a filter's result may be called
      ExpressionPtr call = make(ExpressionKind::kCall);
      call->operands.push_back(std::move(node));
      OCTAVO_TRY_VOID(parse_arguments(*call));
      OCTAVO_TRY(node, finish(std::move(call)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> Parser::parse_filter(ExpressionPtr node) {
  ExpressionPtr filter = make(ExpressionKind::kFilter);
  filter->operands.push_back(std::move(node));
  OCTAVO_TRY(filter->name, expect_name());
  if (is_operator("(")) OCTAVO_TRY_VOID(parse_arguments(*filter));
  return finish(std::move(filter));
}

Result<ExpressionPtr> Parser::parse_test(ExpressionPtr node) {
  const bool negated = skip_name("not");
  ExpressionPtr test = make(ExpressionKind::kTest);
  test->operands.push_back(std::move(node));
  OCTAVO_TRY(test->name, expect_name());
  const TokenType type = current().type;
  const bool begins_value =
      type == TokenType::kString || type == TokenType::kInteger || type == TokenType::kFloat ||
      is_operator("[") || is_operator("{") ||
      (type == TokenType::kName && !is_one_of({"else", "or", "and", "if", "is", "in", "not"}));
  if (is_operator("(")) {
    OCTAVO_TRY_VOID(parse_arguments(*test));
  } else if (begins_value) {
    OCTAVO_TRY(ExpressionPtr value, parse_primary());
    OCTAVO_TRY(value, parse_postfix(std::move(value)));
    test->operands.push_back(std::move(value));
  }
  OCTAVO_TRY(test, finish(std::move(test)));
  if (!negated) return test;
  ExpressionPtr inverse = make(ExpressionKind::kNot);
  inverse->operands.push_back(std::move(test));
  return finish(std::move(inverse));
}

}  // namespace

Result<Block> parse_template(std::string_view source) {
  if (source.size() > kMaxSourceBytes) return syntax_error(1, "longer than 1 MiB");
  OCTAVO_TRY(std::vector<Token> tokens, tokenize_template(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace octavo::tokenizer::jinja
