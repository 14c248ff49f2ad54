#include "engine/chat_template/jinja_interpreter.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/text.h"
#include "tests/support/paths.h"
#include "tests/support/repeated.h"
#include "tests/tokenizer/cpu_time.h"
#include "tests/tokenizer/jinja_values.h"

namespace octavo::tokenizer::jinja {
namespace {

using test::repeated;

nlohmann::ordered_json load(const std::string& name) {
  std::ifstream file(test::source_folder() / "tests/golden" / name);
  return nlohmann::ordered_json::parse(file);
}

// One sentence, and soon.
void expect_refused(const std::string& source, std::string_view reason) {
  const double begin = cpu_seconds();
  const Result<MarkedText> result = render(source);
  const double seconds = cpu_seconds() - begin;
  ASSERT_FALSE(result) << source.substr(0, 100) << " printed " << result->size() << " bytes";
  EXPECT_NE(result.error().message.find(reason), std::string::npos)
      << source.substr(0, 100) << ": " << result.error().message;
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  EXPECT_LT(result.error().message.size(), 700u);
  EXPECT_LT(seconds, 10.0) << source.substr(0, 100);
}

TEST(Jinja, EveryExpressionPrintsWhatJinja2Prints) {
  const auto golden = load("jinja_expressions.json");
  const Template::Variables variables = to_variables(golden["variables"]);
  std::size_t checked = 0;
  for (const auto& entry : golden["cases"]) {
    const auto source = entry[0].get<std::string>();
    const Result<MarkedText> result = render(source, variables, golden["now"].get<std::int64_t>());
    if (entry[1].is_null()) {
      EXPECT_FALSE(result) << source << " printed " << result->text();
    } else if (!result) {
      ADD_FAILURE() << source << ": " << result.error().message;
    } else {
      EXPECT_EQ(result->text(), entry[1].get<std::string>()) << source;
    }
    ++checked;
  }
  EXPECT_GT(checked, 500u);
}

TEST(Jinja, HugeRangesAndRepetitionsAreRefused) {
  expect_refused("{{ range(10**9) }}", "100,000");
  expect_refused("{% for i in range(10**18) %}{% endfor %}", "100,000");
  expect_refused("{{ '-' * 10**10 }}", "16 MiB");
  expect_refused("{{ '-' * 10**18 }}", "16 MiB");
  expect_refused("{{ [1] * 10**10 }}", "operations");
  expect_refused("{{ 'x'|indent(10**10, true) }}", "16 MiB");
  expect_refused("{{ 'x'|center(10**10) }}", "16 MiB");
  expect_refused("{{ 'x'.ljust(10**10) }}", "16 MiB");
  expect_refused("{{ '1'.zfill(10**10) }}", "16 MiB");
  expect_refused("{{ [1]|tojson(indent=10**9) }}", "1,000");
  expect_refused("{{ ('a' * 10**6).replace('a', 'b' * 1000) }}", "16 MiB");
  expect_refused("{{ ('a' * 10**5).join(['b'] * 1000) }}", "16 MiB");
  expect_refused("{{ 10**10**10 }}", "range");
  expect_refused("{{ '%s' % ('a' * 10**8) }}", "16 MiB");
}

TEST(Jinja, EndlessWorkIsRefused) {
  expect_refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
                 "operations");
  expect_refused("{% for a in range(100000) %}{% for b in range(100000) if b < 0 %}{% endfor %}{% endfor %}",
                 "operations");
  expect_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deep");
  expect_refused("{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
                 "deep");
  expect_refused("{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}",
                 "operations");
  expect_refused(
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "16 MiB");
  expect_refused(
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "operations");
  expect_refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}",
      "100 levels deep");
  expect_refused(
      "{% set ns = namespace(l=[1]) %}{% for i in range(90) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
      "ns.l }}",
      "operations");
  expect_refused(
      "{% set ns = namespace(l=[1]) %}{% for i in range(90) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
      "ns.l == [ns.l[0], ns.l[1]] }}",
      "operations");
  expect_refused("{% for i in range(100000) %}{{ 'xxxxxxxxxxxxxxxxxxxx' * 100 }}{% endfor %}", "16 MiB");
  expect_refused(
      "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% for x in [ns.l] %}{% set ns.l = [loop] "
      "%}{% endfor %}{% endfor %}",
      "100 levels deep");
  expect_refused(
      "{% set ns = namespace(l=[1]) %}{% for i in range(100000) %}{% set ns.l = [ns.l.count] %}{% endfor %}",
      "100 levels deep");
}

TEST(Jinja, DeepNestingIsRefusedNotFollowed) {
  expect_refused("{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}", "deep");
  expect_refused("{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}", "deep");
  expect_refused("{{ " + repeated("{1:", 100000) + "1" + repeated("}", 100000) + " }}", "deep");
  expect_refused("{{ " + repeated("not ", 100000) + "1 }}", "deep");
  expect_refused("{{ " + repeated("-", 100000) + "1 }}", "deep");
  expect_refused("{{ 1" + repeated(" + 1", 100000) + " }}", "deep");
  expect_refused("{{ 1" + repeated("|abs", 100000) + " }}", "deep");
  expect_refused("{{ x" + repeated(".y", 100000) + " }}", "deep");
  expect_refused("{{ x" + repeated("[0]", 100000) + " }}", "deep");
  expect_refused("{{ x" + repeated("()", 100000) + " }}", "deep");
  expect_refused("{{ 1" + repeated(" if 1 else 1", 80000) + " }}", "deep");
  expect_refused("{{ 1" + repeated(" if 1", 100000) + " }}", "deep");
  expect_refused(repeated("{% if 1 %}", 10000) + repeated("{% endif %}", 10000), "deep");
  expect_refused(repeated("{% for i in [1] %}", 20000) + repeated("{% endfor %}", 20000), "deep");
  expect_refused("{% if 1 %}" + repeated("{% elif 1 %}", 50000) + "{% endif %}", "deep");
  expect_refused("{% for " + repeated("(", 100000) + "x" + repeated(")", 100000) + " in [1] %}{% endfor %}",
                 "deep");
  expect_refused(std::string((1 << 20) + 1, 'x'), "1 MiB");
}

TEST(Jinja, WhatReachesOutsideIsNotThere) {
  for (const char* source :
       {"{% include 'a' %}", "{% import 'a' as b %}", "{% from 'a' import b %}", "{% extends 'a' %}",
        "{% block x %}{% endblock %}", "{{ ''.__class__.__mro__ }}", "{{ ''['__class__']['x'] }}",
        "{{ cycler.__init__.__globals__ }}", "{{ self.x.y }}", "{{ ''|attr('__class__') }}", "{{ lipsum() }}",
        "{{ '{0.__class__}'.format(1) }}"}) {
    EXPECT_FALSE(render(source)) << source;
  }
}

TEST(Jinja, AnErrorSaysTheLine) {
  const Result<MarkedText> result = render("a\nb\n{{ x.y }}\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "chat template, line 3: 'x' is undefined");
  EXPECT_EQ(result.error().subject, "tokenizer.chat_template");
  const Result<MarkedText> raised = render("\n{{ raise_exception('roles must\nalternate') }}");
  ASSERT_FALSE(raised);
  EXPECT_EQ(raised.error().message, "the chat template rejects these messages: roles must\\x0aalternate");
}

TEST(Jinja, NamespacesThatHoldEachOtherAreFreed) {  // the address sanitizer would see the leak
  EXPECT_TRUE(render(
      "{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% set a.l = [a, b] %}x"));
  EXPECT_TRUE(render("{% for i in [1] %}{% if loop.changed(loop) %}x{% endif %}{% endfor %}"));
}

TEST(Jinja, NoDamagedTemplateCrashes) {
  const std::string source =
      "{%- macro m(x, y='z') -%}{{ x|default(y)|upper }}{%- endmacro -%}{% for k, v in d.items() if v > 1 %}"
      "{{ loop.index ~ k[::-1] }}{% else %}{{ m(1) }}{% endfor %}{# c #}{% raw %}{{{% endraw %}{{ {'a': "
      "[1.5, 'x\\n']}['a'] }}";
  const Template::Variables variables = {
      {"d", *make_dict({{"one", std::int64_t{1}}, {"two", std::int64_t{2}}})}};
  for (std::size_t cut = 0; cut <= source.size(); ++cut) {
    (void)render(source.substr(0, cut), variables);
    (void)render(source.substr(cut), variables);
  }
  std::uint64_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = source;
    for (int i = 0; i < 3; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::size_t at = static_cast<std::size_t>(state >> 33) % damaged.size();
      damaged[at] = source[static_cast<std::size_t>(state >> 20) % source.size()];
    }
    const Result<MarkedText> result = render(damaged, variables);
    EXPECT_TRUE(result || !result.error().message.empty());
  }
}

TEST(Jinja, MarksSurviveTextOperations) {
  const MarkedText content = MarkedText::message_content("  In<put>  ", 3);
  const Template::Variables variables = {{"c", content}};
  // What came from the message, in <>: the source of each run decides.
  const auto marked = [&](const char* source) {
    const Result<MarkedText> result = render(source, variables);
    std::string shown;
    std::size_t begin = 0;
    if (!result) return result.error().message;
    for (const MarkedText::Run& run : result->runs()) {
      const std::string part = result->text().substr(begin, run.end - begin);
      shown += run.is_input() ? "«" + part + "»" : part;
      begin = run.end;
    }
    return shown;
  };
  EXPECT_EQ(marked("a{{ c }}b"), "a«  In<put>  »b");
  EXPECT_EQ(marked("{{ 'a' + c|trim + 'b' }}"), "a«In<put>»b");
  EXPECT_EQ(marked("{{ 'a' ~ c.strip() ~ 1 }}"), "a«In<put>»1");
  EXPECT_EQ(marked("{{ c.strip().split('<')|join('|') }}"), "«In»|«put>»");
  EXPECT_EQ(marked("{{ ('x' + c)[:5] }}"), "x«  In»");
  EXPECT_EQ(marked("{{ c[2:4] ~ '-' ~ c[2] }}"), "«In»-«I»");
  EXPECT_EQ(marked("{{ c.strip().replace('<', '[') }}"), "«In»[«put>»");
  EXPECT_EQ(marked("{{ 'a-b'.replace('-', c.strip()) }}"), "a«In<put>»b");
  EXPECT_EQ(marked("{{ ('x' ~ c)|upper }}"), "«X  IN<PUT>  »");
  EXPECT_EQ(marked("{{ 'x'|upper }}"), "X");
  EXPECT_EQ(marked("{{ [c]|tojson }}"), "«[\"  In<put>  \"]»");
  EXPECT_EQ(marked("{{ {'a': 1}|tojson }}"), "{\"a\": 1}");
  EXPECT_EQ(marked("{{ [c.strip()] }}"), "«['In<put>']»");
  EXPECT_EQ(marked("{% set x %}a{{ c.strip() }}{% endset %}{{ x }}b"), "a«In<put>»b");
  EXPECT_EQ(marked("{% macro m(t) %}[{{ t }}]{% endmacro %}{{ m(c.strip()) }}"), "[«In<put>»]");
  EXPECT_EQ(marked("{% for ch in c.strip() %}{{ ch }}{% endfor %}"), "«In<put>»");
  EXPECT_EQ(marked("{{ c.strip()|indent(2, true) }}"), "  «In<put>»");
  EXPECT_EQ(marked("{{ c.strip() * 2 }}"), "«In<put>»«In<put>»");
  EXPECT_EQ(marked("{{ '%s!' % c.strip() }}"), "«In<put>»!");
  EXPECT_EQ(marked("{{ c.strip()|reverse }}"), "«>»«t»«u»«p»«<»«n»«I»");
  EXPECT_EQ(marked("{{ c.strip().center(9, '*') }}"), "*«In<put>»*");
  EXPECT_EQ(marked("{{ c.partition('<')[1] }}"), "«<»");
}

}  // namespace
}  // namespace octavo::tokenizer::jinja
