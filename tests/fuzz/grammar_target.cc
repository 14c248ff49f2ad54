// What a client says of the form of its answer: a schema, a pattern, a grammar or a structural tag, by the
// first byte. What is let through is a text for the compiler that reads the same again; or one line says why
// not.
#include <string>

#include "engine/grammar/grammar_text.h"
#include "engine/grammar/json_schema.h"
#include "engine/grammar/structural_tag.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/target.h"

namespace octavo::fuzz {
namespace {

constexpr std::string_view kGrammarWords[] = {
    "{\"type\": \"object\"}",
    "\"type\": \"string\"",
    "\"type\": [\"integer\", \"null\"]",
    "\"properties\": {\"a\": {}}",
    "\"patternProperties\": {\"^a\": {}}",
    "\"propertyNames\": {\"maxLength\": 3}",
    "\"additionalProperties\": false",
    "\"unevaluatedProperties\": true",
    "\"minProperties\": 1",
    "\"required\": [\"a\"]",
    "\"required\": [\"b\", \"c\"]",
    "\"items\": [{}]",
    "\"prefixItems\": [true]",
    "\"additionalItems\": {}",
    "\"unevaluatedItems\": false",
    "\"uniqueItems\": false",
    "\"minItems\": 2.0",
    "\"maxLength\": 1e9",
    "\"enum\": [1, null]",
    "\"const\": {}",
    "\"anyOf\": [{}]",
    "\"oneOf\": [{}, {}]",
    "\"allOf\": [{}]",
    "\"$ref\": \"#/$defs/a\"",
    "\"$defs\": {\"a\": {\"$ref\": \"#\"}}",
    "\"not\": {}",
    "\"contains\": {}",
    "\"pattern\": \"a{2,}\"",
    "\"format\": \"date\"",
    "root ::= ",
    "a-b ::= [^\\]\\x41] ",
    "\"\\n\\x41\\[\" ",
    "{,3}",
    "{2}",
    ".",
    "<think>",
    "Token(1)",
    "# comment\n",
    "\"format\": {\"type\": \"tag\", \"begin\": \"a\", \"content\": {}, \"end\": \"b\"}",
    "{\"type\": \"json_schema\", \"json_schema\": {}}",
    "{\"type\": \"regex\", \"pattern\": \"(?:a)\"}",
    "{\"type\": \"token\", \"token\": 1}",
    "\"structures\": [{\"begin\": \"\", \"schema\": {}, \"end\": \"\"}]",
    "\"triggers\": [\"a\"]",
    "(?=",
    "\\1",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\",
    "|"};

void check_grammar_error(const Error& error) {
  const std::string& line = error.message;
  require(!line.empty() && line.size() < 1024 && line.find('\n') == std::string::npos &&
              line.find('\x1b') == std::string::npos,
          "an error is one printable line");
  require(error.subject == "structured_output", "an error is about the structured output");
}

void run_grammar(std::span<const std::uint8_t> input) {
  if (input.empty()) return;
  const std::string text(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const int kind = input[0] % 4;
  if (kind == 3) {
    const auto checked = check_pattern(text);
    if (!checked) check_grammar_error(checked.error());
    return;
  }
  const auto read_once = [&](const std::string& source) {
    return kind == 0   ? read_json_schema(source)
           : kind == 1 ? read_grammar_text(source)
                       : read_structural_tag({source});
  };
  const auto read = read_once(text);
  if (!read) return check_grammar_error(read.error());
  if (kind == 1) return;  // what was GBNF is EBNF now
  const auto again = read_once(*read);
  require(again.has_value(), "what was let through is let through again");
  require(*again == *read, "what was written out is as it is");
}

void mutate_grammar(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  static const JsonMutator mutator(kGrammarWords);
  mutator.mutate(input, /*begin=*/1, max_size, random, mutate_bytes);
}

std::vector<Bytes> grammar_seeds() {
  std::vector<Bytes> seeds;
  for (
      const std::string_view text :
      {R"(0{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}},"required":["a"]})",
       R"(0{"$defs":{"a":{"enum":[1,"b"]}},"anyOf":[{"$ref":"#/$defs/a"},{"type":"string","maxLength":3}]})",
       R"(1root ::= ("a" | [b-z]{2,}) rest?
rest ::= "\x41" . # end)",
       R"(2{"format":{"type":"sequence","elements":[{"type":"regex","pattern":"a"},{"type":"json_schema","json_schema":{}}]}})",
       R"(2{"structures":[{"begin":"<a>","schema":{"type":"null"},"end":"</a>"}],"triggers":["<a>"]})",
       R"(3(a|[^b]){2,3}\d)"})
    seeds.emplace_back(text.begin(), text.end());
  return seeds;
}

}  // namespace

const Target kGrammarTarget = {"grammar", 1024, run_grammar, mutate_grammar, grammar_seeds};

}  // namespace octavo::fuzz
