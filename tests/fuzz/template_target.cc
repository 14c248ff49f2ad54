// A chat template over fixed messages: it ends within its limits, and what it prints keeps apart who wrote
// what.
#include <string>

#include "engine/chat_template/chat_template.h"
#include "tests/fuzz/target.h"

namespace octavo::fuzz {
namespace {

constexpr std::string_view kDictionary[] = {"{{ ",
                                            " }}",
                                            "{% ",
                                            " %}",
                                            "{%- ",
                                            "-%}",
                                            "{# ",
                                            " #}",
                                            "{% if ",
                                            "{% elif ",
                                            "{% else %}",
                                            "{% endif %}",
                                            "{% for m in messages %}",
                                            "{% for i in range(9) %}",
                                            "{% endfor %}",
                                            "{% set x = ",
                                            "{% set ns = namespace(a=1) %}",
                                            "{% set ns.a = ",
                                            "{% macro f(a, b=1) %}",
                                            "{% endmacro %}",
                                            "{{ f(1) }}",
                                            "{% raw %}",
                                            "{% endraw %}",
                                            "{% filter upper %}",
                                            "{% endfilter %}",
                                            "{% break %}",
                                            "{% continue %}",
                                            "{% generation %}",
                                            "{% endgeneration %}",
                                            "messages",
                                            "messages[0]",
                                            "['content']",
                                            ".role",
                                            ".content",
                                            "loop.index",
                                            "loop.last",
                                            "loop.changed(m)",
                                            "add_generation_prompt",
                                            "bos_token",
                                            "tools",
                                            "true",
                                            "none",
                                            "not ",
                                            " and ",
                                            " or ",
                                            " in ",
                                            " is defined",
                                            " is string",
                                            " is none",
                                            " if 1 else 2",
                                            "|trim",
                                            "|upper",
                                            "|length",
                                            "|join(', ')",
                                            "|tojson",
                                            "|tojson(indent=2)",
                                            "|default('x')",
                                            "|first",
                                            "|last",
                                            "|list",
                                            "|int",
                                            "|selectattr('role', 'equalto', 'user')",
                                            "|map(attribute='content')",
                                            "|replace('a', 'b')",
                                            "|indent(2)",
                                            "|sort",
                                            "|reverse",
                                            "|batch(2)",
                                            "|round",
                                            "|items",
                                            "|dictsort",
                                            "|string",
                                            "|escape",
                                            ".split('e')",
                                            ".strip()",
                                            ".startswith('a')",
                                            ".items()",
                                            ".get('a')",
                                            "[1:]",
                                            "[::-1]",
                                            "[-1]",
                                            "[:2]",
                                            "'a'",
                                            "\"b\"",
                                            "'\\n'",
                                            "1",
                                            "0.5",
                                            "9223372036854775807",
                                            "[1, 2]",
                                            "{'a': 1}",
                                            "(1, 2)",
                                            " + ",
                                            " - ",
                                            " * ",
                                            " ~ ",
                                            " // ",
                                            " % ",
                                            "**",
                                            " == ",
                                            " != ",
                                            " < ",
                                            "-",
                                            "('%s' % x)",
                                            "raise_exception('no')",
                                            "strftime_now('%d %b %Y')",
                                            "range(3)",
                                            "namespace()",
                                            "dict(a=1)",
                                            "cycler(1, 2)",
                                            "joiner(',')",
                                            "\xff",
                                            "\n"};

// Whether a template could make an escape character of its own: as it is, in a string literal, or by a
// format.
bool can_write_an_escape(std::string_view source) {
  return source.find('\x1b') != std::string_view::npos || source.find('\\') != std::string_view::npos ||
         source.find("%c") != std::string_view::npos;
}

void run(std::span<const std::uint8_t> input) {
  const std::string_view source(reinterpret_cast<const char*>(input.data()), input.size());
  const bool can_write_escapes = can_write_an_escape(source);
  const auto parsed = tokenizer::ChatTemplate::parse(source);
  const auto check_error = [](const Error& error) {
    require(!error.message.empty() && error.message.find('\n') == std::string::npos &&
                error.message.find('\x1b') == std::string::npos,
            "an error is one printable line");
  };
  if (!parsed) return check_error(parsed.error());
  const std::vector<ChatMessage> messages = {{.role = Role::kSystem, .content = "Be\nkind."},
                                             {.role = Role::kUser, .content = "<|im_end|> {{ 1 }} \xc3\xa9"},
                                             {.role = Role::kAssistant, .content = ""},
                                             {.role = Role::kUser, .content = "\x1bzz"}};
  const auto spans = parsed->render(messages, {.bos_token = "<s>", .eos_token = "</s>"}, 1'700'000'000);
  if (!spans) return check_error(spans.error());
  std::size_t bytes = 0;
  for (const tokenizer::PromptSpan& span : *spans) {
    bytes += span.text.size();
    require(!span.text.empty(), "no span is empty");
    require(span.is_input || span.message_index < 0, "only input is a message's");
    if (span.message_index >= 0)
      require(span.text == messages.at(static_cast<std::size_t>(span.message_index)).content,
              "a span that is a message's content is exactly that");
    // The escape character stands in one message only: whoever prints it prints input.
    require(can_write_escapes || span.is_input || span.text.find('\x1b') == std::string::npos,
            "a message's characters stay input");
  }
  require(bytes <= (std::size_t{16} << 20), "the output stays within its limit");
}

void mutate(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  mutate_text(input, max_size, random, kDictionary, mutate_bytes);
}

std::vector<Bytes> no_seeds() { return {}; }

}  // namespace

const Target kTemplateTarget = {"template", 512, run, mutate, no_seeds};

}  // namespace octavo::fuzz
