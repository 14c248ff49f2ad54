"""Golden data for tests/tokenizer, rendered by jinja2 with Hugging Face's settings for chat templates.

usage: make_templates.py FOLDER    (reads FOLDER/templates/*.jinja)
  chat_templates.json     per template and chat the text, or null where jinja2 raises; for templates that know
                          tools also per chat with tools (templates that print no calls: the chats without, which come first)
  jinja_expressions.json  small templates over fixed variables: the text, or null where jinja2 raises
"""
import glob, json, os, sys
from datetime import datetime, timezone
import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1784736000  # 2026-07-22 16:00:00 UTC


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_run", []), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.fromtimestamp(NOW, timezone.utc).strftime(f)
    return env


def render(env, source, variables):
    try:
        return env.from_string(source).render(**variables)
    except Exception:
        return None


def turn(role, content):
    return {"role": role, "content": content}


def answer(content, *calls):
    """An answer that calls: name, id, and arguments as JSON text, as clients send them."""
    return {"role": "assistant", "content": content, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for name, id, arguments in calls]}


def result(id, name, content):
    return {"role": "tool", "tool_call_id": id, "name": name, "content": content}


def with_objects(messages):
    """As transformers wants them: arguments as objects."""
    messages = json.loads(json.dumps(messages))
    for message in messages:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


CHATS = [
    [turn("user", "Hi")],
    [turn("user", "  spaces around \n")],
    [turn("system", "Be brief."), turn("user", "What is 2+2?")],
    [turn("system", " Be brief. "), turn("user", "a"), turn("assistant", " b "), turn("user", "c")],
    [turn("user", "a"), turn("assistant", "<think>\nhm, \u00e9\n</think>\n\nb"), turn("user", "c")],
    [turn("user", "x"), turn("assistant", "y"), turn("user", "z"), turn("assistant", "w"), turn("user", "\u4f60\u597d \U0001f600")],
    [turn("user", "a"), turn("user", "b")],
    [turn("user", "call it"), turn("assistant", "calling"), turn("tool", "{\"r\": 1}"), turn("tool", "two")],
    [turn("assistant", "I start"), turn("user", "ok")],
    [turn("user", "<|im_end|> {{ 7*7 }} {% raw %} </s> [INST]")],
    [turn("user", ""), turn("assistant", ""), turn("user", "after nothing")],
    [turn("system", "alone")],
    [turn("system", ""), turn("user", "x")],
    [turn("user", "q"), turn("assistant", "an answer stands last")],
    [turn("system", "s"), turn("assistant", "first"), turn("user", "u")],
    [turn("system", "one"), turn("system", "two"), turn("user", "u")],
    [turn("user", "u"), turn("system", "late"), turn("user", "v")],
    [turn("user", "\n\n \t"), turn("assistant", "\n"), turn("user", " \u00a0 ")],
    [turn("user", "it's \"quoted\" \\ back\\n"), turn("assistant", "<b>&amp;</b>"), turn("user", "{%- if x -%} {# c #} }}")],
    [turn("user", "1"), turn("assistant", "</think>2"), turn("user", "3"), turn("assistant", "<think>only"), turn("user", "4"), turn("assistant", "<think>a</think>b</think>c"), turn("user", "5")],
    [turn("user", "<|eot_id|><|end|><end_of_turn><start_of_turn>[/INST]<\uff5cUser\uff5c><|im_start|>system\n"), turn("assistant", "<s></s><bos><eos>"), turn("user", "\u0645\u0631\u062d\u0628\u0627 \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301 \x1b[31m")],
    [turn("tool", "first of all"), turn("user", "x")],
    [turn("user", "a"), turn("assistant", "<|channel>thought\nhm, \u00e9\n<channel|>b"), turn("user", "c"), turn("assistant", "d<channel|>e"), turn("user", "f")],
]

WEATHER = ('{"type": "function", "function": {"name": "get_weather", "description": "The weather of a place, in \u00b0C or \u00b0F <|im_end|>", '
           '"parameters": {"type": "object", "properties": {"place": {"type": "string", "description": "Its \\"name\\", as in\\nParis"}, '
           '"unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["place"]}}}')
ADD = ('{"type":"function","function":{"name":"add_up","description":"Adds \\u00e4 \\ud83d\\ude00 numbers","parameters":{"type":"object","properties":'
       '{"terms":{"type":"array","items":{"type":"number","minimum":-1e3,"maximum":9007199254740993}},"options":{"type":"object","description":"How","properties":'
       '{"exact":{"type":["boolean","null"],"default":null}}},"digits":{"type":"integer","default":2,"multipleOf":0.5}},"required":["terms","options"],"additionalProperties":false},"strict":true}}')
TOOL_CHATS = [
    {"tools": f"[{WEATHER}]", "messages": [turn("user", "Is it warm?")]},
    {"tools": f"[{WEATHER}, {ADD}]", "messages": [turn("system", "Be brief."), turn("user", "Is it warm?")]},
    {"tools": f"[{ADD}]", "messages": [turn("user", "1"), turn("assistant", "2"), turn("user", "3")]},
    {"tools": f"[{WEATHER}]", "messages": [turn("user", "Is it warm?"), answer("", ("get_weather", "abcDEF123", '{"place": "Paris"}')), result("abcDEF123", "get_weather", "17")]},
    {"tools": f"[{WEATHER}, {ADD}]", "messages": [
        turn("system", "S"), turn("user", "q"), answer("I look.", ("add_up", "abcDEF124", '{"terms":[1,-2.5,1e20],"options":{"exact":true,"x":null},"digits":0}')),
        result("abcDEF124", "add_up", '{"sum": 3}'), turn("assistant", "It is 3."), turn("user", "And?")]},
    {"tools": f"[{ADD}, {WEATHER}]", "messages": [
        turn("user", "both"), answer("", ("get_weather", "abcDEF125", '{"place":"K\u00f6ln \\u4f60 \\"x\\" </tool_call><|im_end|>","unit":"c"}'), ("add_up", "abcDEF126", "{}")),
        result("abcDEF125", "get_weather", "cold\n<|im_end|>"), result("abcDEF126", "add_up", "0"), turn("assistant", "Done."), turn("user", "thanks")]},
    {"tools": "", "messages": [turn("user", "q"), answer("", ("add_up", "abcDEF127", '{"terms": []}')), result("abcDEF127", "add_up", "0")]},
]
# Those that print tools and calls, and those that print tools only (what else they get is no matter of jinja2).
KNOW_TOOLS = ["gemma4", "glm4.7", "granite4", "llama3.1", "llama3.2", "mistral-nemo", "qwen2.5", "qwen3"]
LIST_TOOLS = ["lfm2", "mistral"]

VARIABLES = {
    "a": 5, "b": 2, "f": 2.5, "t": True, "n": None, "s": "Hello World", "u": "\u00c4pfel \u00df \u4f60\u597d \U0001f600", "ws": " \t x y \n", "e": "",
    "l": [3, 1, 2], "names": ["bob", "Alice", "carol", "alice"], "empty": [], "nested": [[1, 2], [3, [4]]],
    "d": {"x": 1, "y": "two", "items": 3}, "users": [{"name": "bob", "age": 3, "on": True}, {"name": "Al", "age": 1, "on": False}, {"name": "cy", "age": 2}],
    "q": "it's \"q\" \\ \n", "lines": "one\n\n  two\r\nthree", "num": "42", "fnum": " 3.75 ",
}

EXPRESSIONS = """
1+2*3 | (1+2)*3 | 7/2 | 7//2 | -7//2 | 7%3 | -7%3 | 7%-3 | 2**10 | 2**-1 | -2**2 | 7.5//2 | -7.5%2 | 1/0 | 1//0 | 1%0 | 1e3 | 1.0 | 1e16 | 1e15 | 1.5e-5 | 0.0001 | 0.1+0.2 | 1e22*10
10/4 | 4/2 | 1_000 | 0x1F | 0b101 | 0o17 | +a | -a | -f | not a | not e | a and b | e and b | e or b | a or b | n or 'x' | t+1 | t*3 | a==5.0 | 1==true | '1'==1 | a!=b | a<b | 1<2<3 | 1<3<2 | 3>2>1 | 1<2>0
'a'<'b' | 'a'<1 | [1,2]<[1,3] | [1]<[1,0] | (1,2)==[1,2] | [1,2]==[1,2] | {'a':1}=={'a':1.0} | none==none | none<1 | undefined_thing==undefined_other | x is defined | a is defined | undefined_thing + 1
'b' in 'abc' | 'z' not in 'abc' | 1 in [1,2] | 3 not in [1,2] | 'x' in d | 'q' in d | 1 in 'abc' | 1 in none | 'a' in undefined_thing | undefined_thing in 'abc' | not 1 in [1]
'a' 'b' | 'a'+'b' | 'a'+1 | 'a'~1~none~true | 1~2 | 'ab'*3 | 3*'ab' | 'ab'*0 | 'ab'*-1 | [1]*3 | [1]+[2] | (1,)+(2,) | [1]+(2,) | 'x' if t else 'y' | 'x' if e | ('x' if e) is undefined | a if a>3 else b if b else 0
s[0] | s[-1] | s[99] | s[1:4] | s[::-1] | s[::2] | s[-3:] | s[:-3] | s[5:2] | s[10:0:-3] | s[::0] | u[0] | u[-1] | u[6:9] | u|length | s[1:n] | l[0] | l[-1] | l[9] | l[1:] | l[::-1] | l[:2] | l['x'] | d.x | d['x'] | d.zz | d['zz'] | d.zz.y | d.items | d['items'] | (1,2,3)[1:] | nested[1][1][0] | l.0 | d.get('x') | d.get('q') | d.get('q', 7) | n.x | n[0] | a.x
d | l | (1,) | () | (1,2) | [] | {} | ['a','b'] | [q] | ["it's"] | ['"'] | [n,t,f] | {'k': [1, {'z': none}]} | [u] | ["\\t\\x01\\x7f\\u00a0"] | [1.0, 1e100, -0.0] | d.keys()|list | d.values()|list | d.items()|list
s.upper() | s.lower() | s.title() | s.swapcase() | 'hELLO wORLD'.capitalize() | "they're bill's".title() | u.upper() | u.lower() | u.title() | u.capitalize() | s.strip('Hd') | ws.strip() | ws.lstrip() | ws.rstrip() | 'xxaxx'.strip('x') | 'xyaxy'.lstrip('yx') | '\u4f60a\u4f60'.strip('\u4f60') | s.split() | s.split('o') | s.split('o', 1) | ' a  b c '.split() | ' a  b c '.split(none, 1) | ' a  b c '.rsplit(none, 1) | 'a,b,,c'.split(',') | 'a,b,c'.rsplit(',', 1) | ''.split() | ''.split(',') | s.split('') | lines.splitlines() | lines.splitlines(true) | 'aXbX'.partition('X') | 'aXbX'.rpartition('X') | 'abc'.partition('z') | 'abc'.rpartition('z')
s.replace('o','0') | s.replace('o','0',1) | 'aaa'.replace('','-') | 'aaa'.replace('a','') | s.startswith('He') | s.startswith(('x','He')) | s.endswith('ld') | s.startswith('W', 6) | s.startswith(1) | s.find('o') | s.find('z') | s.rfind('o') | s.index('z') | s.count('l') | 'aaaa'.count('aa') | ','.join(['a','b']) | ','.join([1]) | '-'.join('abc') | s.removeprefix('Hel') | s.removesuffix('x') | 'ab'.center(7,'*') | 'ab'.ljust(4)~'|' | 'ab'.rjust(4) | '42'.zfill(5) | '-42'.zfill(5) | 'abc'.isalpha() | 'a1'.isalnum() | '12'.isdigit() | ' '.isspace() | 'AB'.isupper() | 'ab'.islower() | ''.isdigit() | s.nothing() | s.upper(1) | l.append(4) | d.update({}) | d.pop('x') | s.__class__ | d.__class__ | l.index(2) | l.count(1) | l.index(77) | u.find('\u4f60')
'%s-%d' % ('a', 3) | '%s' % 5 | '%.2f' % 3.14159 | '%d%%' % 50 | '%s' % ('a','b') | '%s %s' % 'a' | '%d' % 'x' | 'a%sb' % [1] | '%r' % 'x' | '{}-{}'.format('a', 1) | '{0}{1}{0}'.format('a', 'b') | '{x}'.format(x=2) | '{{}}{}'.format(1) | '{}'.format() | '{'.format(1) | '}'.format(1) | '{y}'.format(x=2)
s|upper | s|lower | "hello wOrld-foo (bar)"|title | 'abc DEF'|capitalize | ws|trim | 'xxax'|trim('x') | s|replace('o','0') | s|replace('l','L',1) | s|length | l|length | d|length | a|length | undefined_thing|length | names|join(', ') | names|join | l|join('-') | users|join(',', attribute='name') | 'abc'|join('.') | names|first | names|last | empty|first | empty|last | (empty|first) is undefined | s|first | s|last
undefined_thing|default('x') | n|default('x') | n|default('x', true) | e|d('y') | e|d('y', boolean=true) | a|default(1) | undefined_thing|d | num|int | fnum|float | 'x'|int | 'x'|int(7) | '0x1F'|int(base=16) | '1f'|int(0,16) | 3.9|int | -3.9|int | '3.9'|int | 'x'|float | 'x'|float(1.5) | a|float | true|int | n|int | [1]|int | a|string|length | 3.0|string | d|string | n|string
l|sort | l|sort(reverse=true) | names|sort | names|sort(case_sensitive=true) | users|sort(attribute='age')|map(attribute='name')|list | [1,'a']|sort | names|unique|list | names|unique(true)|list | [1,1.0,true,2]|unique|list | l|reverse|list | s|reverse | l|min | l|max | names|min | names|max | empty|max | l|sum | [1.5,2]|sum | users|sum(attribute='age') | users|sum('age', 10) | ['a']|sum
users|map(attribute='name')|list | users|map(attribute='zz', default='-')|list | none|map('upper')|list | undefined_thing|selectattr('x')|list | 0|select|list | 5|select|list | names|map('upper')|join(' ') | names|map('replace','a','_')|list | l|map('string')|join | users|selectattr('on')|map(attribute='name')|list | users|rejectattr('on')|map(attribute='name')|list | users|selectattr('age','gt',1)|map(attribute='name')|list | users|selectattr('name','equalto','bob')|list|length | users|selectattr('on','defined')|list|length | users|rejectattr('name','in',['bob'])|map(attribute='name')|list | l|select('odd')|list | l|reject('odd')|list | [0,1,n,'']|select|list | l|select('>',1)|list | l|select('nosuch')|list | l|map('nosuch')|list
d|items|list | d|dictsort | {'b':1,'A':2}|dictsort | {'b':1,'A':2}|dictsort(true) | {'b':1,'A':2}|dictsort(by='value') | {'b':1,'A':2}|dictsort(reverse=true) | undefined_thing|items|list | l|items|list | [1,2,3,4,5]|batch(2)|list | [1,2,3]|batch(2,'-')|list | s|list | d|list | a|abs | -5|abs | (-5)|abs | (-2.5)|abs | 'x'|abs | 2.5|round | 3.5|round | 2.567|round(2) | 2.567|round(1,'ceil') | 2.567|round(1,'floor') | 42|round | 2.675|round(2) | 'x'|round
lines|indent | lines|indent(2) | lines|indent(2, true) | lines|indent(2, blank=true) | lines|indent('> ', true) | ''|indent | 'a\\n'|indent(2) | '<a href="x">&\\'</a>'|e | '<a>'|escape | '<a>'|safe | s|wordcount | 'ab'|center(6)~'|' | '%s=%d'|format('a',1)
d|tojson | l|tojson | u|tojson | q|tojson | n|tojson | t|tojson | f|tojson | 1e100|tojson | [] |tojson | {}|tojson | users|tojson(indent=2) | {'a':[1,{'b':[]}]}|tojson(indent=4) | {'b':1,'a':2}|tojson(sort_keys=true) | [1,2]|tojson(separators=(',',':')) | u|tojson(ensure_ascii=true) | undefined_thing|tojson | '\\x01\\x7f</script>'|tojson | {1:2, none:3, true:4, 1.5:5}|tojson | (1,2)|tojson | {'a':1}|tojson(indent='--')
a is odd | a is even | b is even | a is divisibleby 5 | a is divisibleby(2) | a is number | f is number | t is number | a is integer | t is integer | f is float | t is boolean | n is none | s is string | l is sequence | d is sequence | s is sequence | d is mapping | l is mapping | l is iterable | a is iterable | s is iterable | t is true | 1 is true | t is false | a is eq 5 | a is equalto(5) | a is ne 4 | a is gt 4 | a is lt 4 | a is ge 5 | a is le 5 | 1 is in [1,2] | 'k' is in 'abc' | s is not none | s is not string | undefined_thing is undefined | undefined_thing is not defined | d.zz is defined | d.x is defined | 'abc' is lower | 'ABC' is upper | range is callable | s is callable | n is sameas none | t is sameas true | 's' is odd | a is nosuch | s is defined and a is odd
range(3)|list | range(1,4)|list | range(5,0,-2)|list | range(0)|list | range(1,2,0) | range(100000)|length | range(100001)|length | range('a') | dict(a=1,b=2) | dict({'x':1}, y=2) | namespace(a=1).a | namespace().zz is defined | strftime_now('%d %b %Y') | strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %p %I %y %%') | raise_exception('no') | nosuch() | s() | upper(s) | range
'\\n'|length | 'a\\'b' | "a\\"b" | '\\u00e9' | '\\x41' | '\\101' | '\\q' | '\\\\' | '\\U0001f600' | "multi" 'ple' | 'unterminated | "\\xZZ" | a b | 1 + | (1 | [1, | {'a' 1} | a..b | | a| | a|1 | 1 if | a is | not | l[ | {{a}} | a ? b | a && b | a = 1 | 5.x | *a | f(*l) | f(**d)
s.split(' ')[1][0:2]|upper ~ '!' | (s|upper)[0] | -l[0]|abs | l|first + 1 | 'a' ~ 'b' + 'c' | 1 + 2 ~ 3 | 2 * 3 ~ 4 | 'x' ~ a * b | not a == 5 | a == 5 and not b == 3 | a in [5] and b in [2] | (a, b) | a, b | [a, b,] | {'a': a,} | s is string and s|length > 3 | d.x + d['items'] | users[0].name ~ users[-1]['age'] | users|map(attribute='age')|sum // 2
""".strip().split("\n")

STATEMENTS = [
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in empty %}x{% else %}none{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}[{{ c }}]{% endfor %}", "{% for a, b in l %}{% endfor %}",
    "{% for (x, (y, z)) in [(1, (2, 3))] %}{{ x }}{{ y }}{{ z }}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in undefined_thing %}x{% else %}e{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1,1,2,2,1] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.depth }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for x in range(10) %}{% if x == 3 %}{% continue %}{% endif %}{% if x == 6 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% break %}",
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set a.x = 1 %}", "{% set d.x = 1 %}", "{% set nosuch.x = 1 %}",
    "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set x %}a{{ b }}{% endset %}[{{ x }}]", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | upper | replace('B', 'x') %}abc{% endset %}{{ x }}", "{% set true = 1 %}",
    "{% if a == 1 %}1{% elif a == 5 %}5{% else %}e{% endif %}", "{% if e %}x{% elif n %}y{% else %}z{% endif %}", "{% if not undefined_thing %}u{% endif %}", "{% if a %}{% if b %}x{% endif %}{% endif %}", "{% if a %}", "{% endif %}", "{% else %}", "{% if %}{% endif %}",
    "{% macro m(x, y=2) %}{{ x }}-{{ y }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(y=5, x=4) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m() }}|", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(z=1) }}",
    "{% macro m(x, y=x) %}{{ y }}{% endmacro %}{{ m(7) }}", "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}", "{% macro m() %}{% set z = 1 %}{% endmacro %}{{ m() }}{{ z is defined }}",
    "{% macro m() %} x {% endmacro %}[{{ m()|trim }}]{{ m() ~ m()|upper }}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% with x = 1, y = 2 %}{{ x }}{{ y }}{% endwith %}{{ x is defined }}", "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aXa{% endfilter %}", "{% generation %}x{{ a }}{% endgeneration %}",
    "a {# c #} b", "a {#- c -#} b", "{# {{ x }} #}", "{# unfinished", "{% raw %}{{ x }}{% if %}{% endraw %}", "a {%- raw -%} {{ x }} {%- endraw -%} b", "{% raw %}x", "{{ '{{' }}", "{{ '}}' }}", "{{ {'a': {'b': 1}} }}", "{{ '%}' }}", "{ { x } }", "{% if a %}}{% endif %}", "}}", "%}",
    "  {% if a %}\n  x\n  {% endif %}\n  y", "x {% if a %}\n y{% endif %}\nz", "  {{ a }}\n  {{ b }}\n", "\n\n{% set x = 1 %}\n\n{{ x }}\n\n", "a\n  {%- if a %}\n  b\n  {%- endif %}\nc", "a  {{- a -}}  b", "a  {%+ if a %} b{% endif %}", "  {%+ if a %}b{% endif +%}\nc", "a\n  {# c #}\nb", "a\n  {# c +#}\nb", "a {# c -#}\n\n b", "x\r\ny{{ a }}\r\n", "x\ry", "{% for x in l %}\n  {{ x }}\n{% endfor %}\n", "\t{% if a %}\t\n\tx{% endif %}", "\u00a0{%- if a %}x{% endif %}", "{{ a }}\n", "{{ a }}\n\n", "\n", "", "{%", "{{", "{{ a", "{% set x = 1", "{{ a }", "{% a %}", "{{ }}", "{% %}",
    "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% nosuch %}", "{% do 1 %}", "{% set loop = 5 %}{{ loop }}", "{{ loop }}", "{% for loop in l %}{% endfor %}ok", "{% for x, loop in l %}{% endfor %}ok",
    "{% set items = ['a', 'b'] %}{% for i in items %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}", "{% for m in users %}{{ m.name }}{% if not loop.last %}, {% endif %}{% endfor %}", "{{ users[0]['name'] }}{{ users[5] is defined }}", "{{ users[5].name }}",
    "{%- for u in users|selectattr('on', 'defined')|rejectattr('on') -%}\n {{ u.name }}\n{%- endfor -%}", "{{ s }}{{ undefined_thing }}{{ n }}", "{{ undefined_thing.x }}", "{{ undefined_thing['x'] }}", "{{ undefined_thing() }}", "{% for x in [1, [2, 3]] %}{{ x }}{% endfor %}",
    "{% set s2 = s %}{% set s = 'x' %}{{ s2 }}{{ s }}", "{% if a is defined and a is not none and (b or n) %}ok{% endif %}", "{{ [1, 2, 3]\n  | join(',') }}", "{{- s -}}", "{{+ s }}", "{% set x = {'a': 1, 'b': [1, 2]} %}{{ x.b[1] }}{{ x['a'] }}",
]


def expressions():
    for line in EXPRESSIONS:
        for part in line.split(" | "):
            yield "{{ " + part.replace("\\\\", "\\") + " }}"


if __name__ == "__main__":
    folder = sys.argv[1]
    env = environment()
    templates = []
    for path in sorted(glob.glob(os.path.join(folder, "templates", "*.jinja"))):
        source = open(path, encoding="utf-8").read()
        constants = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "tools": None, "documents": None}
        texts = [render(env, source, {"messages": c, **constants}) for c in CHATS]
        templates.append({"name": os.path.basename(path), "texts": texts})
        name = os.path.basename(path).removesuffix(".jinja")
        if name not in KNOW_TOOLS + LIST_TOOLS:
            continue
        tool_chats = [c for c in TOOL_CHATS if name in KNOW_TOOLS or not any("tool_calls" in m for m in c["messages"])]
        templates[-1]["tool_texts"] = [render(env, source, {**constants, "messages": with_objects(c["messages"]), "tools": json.loads(c["tools"] or "null")}) for c in tool_chats]
    cases = [[source, render(env, source, VARIABLES)] for source in list(expressions()) + STATEMENTS]
    cases = [c for c in cases if " at 0x" not in (c[1] or "")]  # addresses of functions
    for name, value in [("chat_templates.json", {"now": NOW, "chats": CHATS, "tool_chats": TOOL_CHATS, "templates": templates}),
                        ("jinja_expressions.json", {"now": NOW, "variables": VARIABLES, "cases": cases})]:
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f, separators=(",", ":"))
            f.write("\n")
