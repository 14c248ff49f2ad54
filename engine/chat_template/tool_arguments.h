// The functions that a model may call, and arguments in the ways in which models write them, as JSON: between
// tags, as Gemma 4 does, as calls of Python. A converter gives nullopt for anything that is not whole and
// right: there is no half of a call.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// What a parameter may be, by its schema; several are added up. 0: nothing is known.
enum ValueTypes : std::uint8_t {
  kNoValueType = 0,
  kTextValue = 1,
  kNumberValue = 2,
  kBooleanValue = 4,
  kObjectValue = 8,
  kListValue = 16,
  kNullValue = 32,
};

class CallableTools {
 public:
  CallableTools() = default;
  // ChatPrompt::tools (request.h). What is not of its form is left out.
  explicit CallableTools(std::string_view tools);

  bool has(std::string_view name) const { return types_.find(name) != types_.end(); }
  std::uint8_t types_of(std::string_view tool, std::string_view parameter) const;

 private:
  std::map<std::string, std::map<std::string, std::uint8_t, std::less<>>, std::less<>> types_;
};

struct NamedArguments {
  std::string name;
  std::string arguments;  // a JSON object
};

// 1 to 64 letters, digits, underscores, dots and hyphens.
bool is_tool_name(std::string_view name);

// A value between tags: a text, unless its type is another and it can be read as that.
std::string typed_json(std::string_view value, std::uint8_t types);

// `<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>`
std::optional<NamedArguments> read_function_tags(std::string_view text, const CallableTools& tools);
// `NAME\n<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>`
std::optional<NamedArguments> read_argument_tags(std::string_view text, const CallableTools& tools);
// `call:NAME{key:<|"|>text<|"|>,other:[1,true]}`
std::optional<NamedArguments> read_gemma_call(std::string_view text);
// `[f(a="b", n=1), g()]`
std::optional<std::vector<NamedArguments>> read_python_calls(std::string_view text);
// `f(a="b")\nprint(g(n=1))`: statements of Python of which each does nothing but call a known function, and
// print or name what it gives.
std::optional<std::vector<NamedArguments>> read_python_code(std::string_view text,
                                                            const CallableTools& tools);
// `<PREFIXinvoke name="NAME">\n<PREFIXparameter name="KEY">VALUE</PREFIXparameter>\n</PREFIXinvoke>`, one or
// more. A parameter may say that it is none of JSON: string="true", or that it is: string="false".
std::optional<std::vector<NamedArguments>> read_invoke_tags(std::string_view text, std::string_view prefix,
                                                            const CallableTools& tools);
// {"name": NAME, "arguments": {...}} or "parameters", or a list of these.
std::optional<std::vector<NamedArguments>> read_json_calls(std::string_view text);

}  // namespace octavo
