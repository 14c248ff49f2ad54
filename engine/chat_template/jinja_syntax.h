// The parsed form of a template: plain trees. Made by the parser, walked by the interpreter, never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

enum class ExpressionKind : std::uint8_t {
  kConstant,     // constant
  kName,         // name
  kList,         // operands: items
  kTuple,        // operands: items
  kDict,         // operands: key, value, key, value, ...
  kAttribute,    // operands[0].name
  kSubscript,    // operands[0][operands[1]]
  kSlice,        // operands[0][1:2:3], each of the three may be null
  kCall,         // operands[0](the rest, keywords)
  kFilter,       // operands[0] | name(the rest, keywords); operands[0] null: the text of a filter block
  kTest,         // operands[0] is name(the rest, keywords)
  kNot,          // operands[0]
  kNegative,     // operands[0]
  kPositive,     // operands[0]
  kBinary,       // operands[0] operators[0] operands[1]
  kCompare,      // operands[0] operators[0] operands[1] operators[1] ...
  kAnd,          // operands[0], operands[1]
  kOr,           // operands[0], operands[1]
  kConcatenate,  // operands joined as text
  kConditional,  // operands[0] if operands[1] else operands[2], which may be null
};

enum class Operator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 0;
  int depth = 1;  // of the tree below
  Value constant = {};
  std::string name = {};
  std::vector<ExpressionPtr> operands = {};
  std::vector<std::pair<std::string, ExpressionPtr>> keywords = {};
  std::vector<Operator> operators = {};
};

// What an assignment or a loop writes to.
struct Target {
  enum class Kind : std::uint8_t { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  std::string name;                // of the variable, or of the namespace
  std::string attribute = {};      // of the namespace
  std::vector<Target> parts = {};  // of a tuple
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

enum class StatementKind : std::uint8_t {
  kText,         // constant text
  kOutput,       // expression
  kFor,          // targets[0] in expression if condition: body, else otherwise
  kIf,           // expression: body, else otherwise (elif: one kIf in otherwise)
  kSet,          // targets[0] = expression
  kSetBlock,     // targets[0] = text of body, through expression (filters) if not null
  kMacro,        // name, parameters, defaults: body
  kFilterBlock,  // expression applied to the text of body
  kWith,         // targets = values: body
  kScope,        // body in a scope of its own
  kBreak,
  kContinue,
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 0;
  Text text = {};
  std::string name = {};
  ExpressionPtr expression = {}, condition = {};
  std::vector<Target> targets = {};
  std::vector<ExpressionPtr> values = {};
  std::vector<std::string> parameters = {};
  std::vector<ExpressionPtr> defaults = {};  // of the last parameters
  Block body = {}, otherwise = {};
};

}  // namespace octavo::tokenizer::jinja
