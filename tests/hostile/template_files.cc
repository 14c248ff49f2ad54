// M7, M8: chat templates that are no templates, that reach outside, and that never end.
#include "tests/hostile/hostile_files.h"
#include "tests/support/repeated.h"

namespace octavo::test {
void add_template_files(HostileFiles& files) {
  const auto add = [&](const std::string& name, const std::string& rule, const std::string& source) {
    files.push_back(changed(
        "template/" + name, rule, "chat template",
        [source](ModelDraft& d) { d.set_string("tokenizer.chat_template", source); }, Refused::kMessages));
  };
  add("expression-not-closed", "M7", "{{ messages");
  add("statement-not-closed", "M7", "{% for m in messages");
  add("loop-not-ended", "M7", "{% for m in messages %}x");
  add("end-without-a-start", "M7", "x{% endfor %}");
  add("unknown-statement", "M7", "{% launch 'rockets' %}");
  add("unknown-filter", "M7", "{{ messages|shell }}");
  add("unknown-function", "M7", "{{ open('/etc/passwd') }}");
  add("include", "M7", "{% include '/etc/passwd' %}");
  add("import", "M7", "{% import 'os' as os %}");
  add("extends", "M7", "{% extends '../base' %}");
  add("classes", "M7", "{{ ''.__class__.__mro__[1].__subclasses__() }}");
  add("globals", "M7", "{{ cycler.__init__.__globals__.os.popen('id').read() }}");
  add("format-reaches-attributes", "M7", "{{ '{0.__class__}'.format(messages) }}");
  add("string-not-closed", "M7", "{{ 'abc }}");
  add("not-utf-8", "M7", "{{ \xff\xfe.x.y }}");
  add("zero-bytes", "M7", std::string("{{ \0 }}", 7));
  add("raises-with-terminal-sequences", "M7", "{{ raise_exception('a\n\x1b[2Jb') }}");
  add("undefined-with-line-breaks", "M7", "\n\n\n{{ nothing.here.at.all }}");
  add("divides-by-zero", "M7", "{{ 1 // 0 }}");
  add("number-too-large", "M7", "{{ 99999999999999999999999999999 }}");
  add("range-of-a-thousand-million", "M8", "{{ range(10**9)|list|length }}");
  add("text-of-ten-thousand-million", "M8", "{{ '-' * 10**10 }}");
  add("list-of-ten-thousand-million", "M8", "{{ [1] * 10**10 }}");
  add("power-tower", "M8", "{{ 10**10**10 }}");
  add("loops-in-loops", "M8",
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}");
  add("text-that-doubles", "M8",
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}");
  add("list-that-doubles", "M8",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}");
  add("lists-in-lists", "M8",
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}");
  add("macro-calls-itself", "M8", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  add("macros-call-each-other", "M8",
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}");
  add("macro-tree", "M8",
      "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}");
  add("output-without-end", "M8",
      "{% for i in range(100000) %}{{ 'xxxxxxxxxxxxxxxxxxxx' * 100 }}{% endfor %}");
  add("replace-that-grows", "M8", "{{ ('a' * 10**6).replace('a', 'b' * 1000) }}");
  add("indent-of-ten-thousand-million", "M8", "{{ 'x'|indent(10**10, true) }}");
  add("center-of-ten-thousand-million", "M8", "{{ 'x'|center(10**10) }}");
  add("json-indent", "M8", "{{ [1]|tojson(indent=10**9) }}");
  add("brackets", "M8", "{{ " + repeated("[", 100'000) + repeated("]", 100'000) + " }}");
  add("brackets-not-closed", "M8", "{{ " + repeated("(", 500'000));
  add("nots", "M8", "{{ " + repeated("not ", 100'000) + "1 }}");
  add("sums", "M8", "{{ 1" + repeated(" + 1", 200'000) + " }}");
  add("filters", "M8", "{{ 1" + repeated("|abs", 200'000) + " }}");
  add("conditions-in-conditions", "M8", repeated("{% if 1 %}", 20'000) + repeated("{% endif %}", 20'000));
  add("openings-only", "M8", repeated("{{", 500'000));
  files.push_back(changed("template/as-number", "G7", "tokenizer.chat_template",
                          [](ModelDraft& d) { d.set_u32("tokenizer.chat_template", 1); }));
  files.push_back(changed("template/as-array", "G7", "tokenizer.chat_template",
                          [](ModelDraft& d) { d.set_strings("tokenizer.chat_template", {"a"}); }));
}

}  // namespace octavo::test
