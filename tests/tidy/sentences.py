#!/usr/bin/env python3
"""Prints every sentence and label that a person can read, as FILE:LINE TEXT, grouped by where it appears.

    tests/tidy/sentences.py [WORD...]      # only what contains one of the words, whatever their case

Sentences come from the string literals of the sources and from what the set-up scripts print. Literals that are joined
are shown as one, with a name for what is filled in: "a " + name + " b" is shown as: a {name} b. Left out are names that only
programs read: includes, ids of widgets, keys, SQL, texts that are compared with something, and the words of LANGUAGES.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = "ui/widgets/code_lexer.cc"  # keywords of programming languages
GROUPS = ("window", "command line", "errors", "set-up", "broken promises (OCTAVO_CHECK)")
TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/|^\s*\#\s*(?:include|pragma|define|error)(?:\\\n|[^\n])*)
  | (?P<raw>(?:u8|L)?R"(?P<mark>[^(\s]*)\((?P<inside>.*?)\)(?P=mark)")
  | (?P<text>(?:u8|L)?"(?P<chars>(?:\\.|[^"\\\n])*)")
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[\w.]|'\d)*)
  | (?P<sign>::|->|<<=?|>>=?|==|!=|<=|>=|&&|\|\||\+=|-=|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
CLOSING = {"(": ")", "[": "]", "{": "}"}
JOINING = {"+", "<<", "+="}
COMPARING = {"==", "!="}
PARTING = {",", ";", "?", ":", "=", "&&", "||", "<=", ">=", "return", "else"} | COMPARING


class Token:
    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line


class Group:
    """What stands between two brackets, as parts that commas and their like separate."""
    def __init__(self, opening, line):
        self.kind, self.text, self.line, self.parts = "group", opening, line, [[]]
        self.signs = [""]  # the sign before each part

    def part(self, sign):
        self.parts.append([])
        self.signs.append(sign)


def tokens_of(source):
    line, counted = 1, 0
    for match in TOKEN.finditer(source):
        kind = match.lastgroup
        line, counted = line + source.count("\n", counted, match.start()), match.start()
        if match.group("raw") is not None:
            yield Token("text", match.group("inside"), line)
        elif match.group("text") is not None:
            yield Token("text", unescape(match.group("chars")), line)
        elif match.group("space") is None:
            yield Token(kind, match.group(kind), line)


def unescape(chars):
    return (chars.replace(r"\n", "⏎").replace(r"\t", "⇥").replace(r"\"", '"').replace(r"\'", "'").replace(r"\\", "\\"))


def tree_of(source):
    top = Group("", 1)
    stack = [top]
    for token in tokens_of(source):
        here = stack[-1]
        if token.kind == "sign" and token.text in CLOSING:
            inner = Group(token.text, token.line)
            here.parts[-1].append(inner)
            stack.append(inner)
        elif token.kind == "sign" and token.text in CLOSING.values():
            if len(stack) > 1:
                stack.pop()
                if token.text == "}" and inner_is_block(stack[-1]):
                    stack[-1].part("}")
        elif token.kind in ("sign", "word") and token.text in PARTING:
            here.part(token.text)
        else:
            here.parts[-1].append(token)
    return top


def inner_is_block(group):
    """A closing brace ends a statement unless what stands before the brace is a name: Error{...}."""
    part = group.parts[-1]
    return len(part) >= 2 and isinstance(part[-2], Group) and part[-2].text == "("


def name_of(operand):
    """A short name for what is filled in: the last word that is no call around it."""
    words = [token.text for token in operand if token.kind in ("word", "number")]
    wrappers = {"std", "to_string", "string", "string_view", "escape_for_message", "std::string", "shown", "count_text"}
    inner = []
    for token in operand:
        if isinstance(token, Group):
            choices = choice_of(token)
            if choices is not None:
                return choices
            for part in token.parts:
                inner += [t.text for t in part if t.kind == "word"]
                inner += [t.text for t in part if t.kind == "text"]
    own = [word for word in words if word not in wrappers]
    if own:
        return "{" + own[-1] + "}"
    rest = [word for word in inner if word not in wrappers]
    return "{" + (rest[-1] if rest else "...") + "}"


def choice_of(group):
    """(one ? "a" : "b") as {a|b}."""
    if group.text != "(" or "?" not in group.signs:
        return None
    texts = [joined(part)[0] for part, sign in zip(group.parts, group.signs) if sign in ("?", ":")]
    if not any(isinstance(t, Token) and t.kind == "text" for part in group.parts for t in part):
        return None
    return "{" + "|".join(texts) + "}"


def joined(part):
    """The text of one expression: literals as they are, everything between them as a name. Also the line, and the groups left."""
    operands, signs = [[]], []
    for token in part:
        if token.kind == "sign" and token.text in JOINING:
            operands.append([])
        else:
            operands[-1].append(token)
    text, line, rest = "", None, []
    for operand in operands:
        literals = [t for t in operand if t.kind == "text"]
        if literals and all(t.kind == "text" or t.kind == "word" for t in operand):
            # Words between adjacent literals are macros: PRIu64.
            text += "".join(t.text if t.kind == "text" else "" for t in operand)
            line = line or literals[0].line
            continue
        whole = [t for t in operand if isinstance(t, Group)]
        wrapped = [t for t in whole if t.text in "({" and len(t.parts) == 1 and len(operand) <= 4
                   and any(x.kind == "text" for x in t.parts[0])]
        if wrapped and operand[0].kind == "word" and operand[0].text in ("std", "string", "Error", "tr"):
            inner, inner_line, inner_rest = joined(wrapped[0].parts[0])
            text += inner
            line = line or inner_line
            rest += inner_rest
            continue
        if operand:
            text += name_of(operand)
            rest += [t for t in whole if choice_of(t) is None]
    return text, line, rest


def has_literal(part):
    return any(t.kind == "text" for t in part)


class Sentences:
    def __init__(self, path):
        self.path = path
        self.found = []

    def walk(self, group, context):
        for index, part in enumerate(group.parts):
            before = group.signs[index]
            after = group.signs[index + 1] if index + 1 < len(group.parts) else ""
            compared = before in COMPARING or after in COMPARING
            self.walk_part(part, context, compared)

    def walk_part(self, part, context, compared):
        if has_literal(part) or any(isinstance(t, Group) and t.text == "(" for t in part):
            text, line, rest = joined(part)
            if line is not None and not compared:
                self.found.append((line, text, context))
        for position, token in enumerate(part):
            if not isinstance(token, Group):
                continue
            call = part[position - 1].text if position and part[position - 1].kind == "word" else ""
            inside = context
            if call.startswith("OCTAVO_CHECK") or call == "static_assert":
                inside = "broken promises (OCTAVO_CHECK)"
            elif call in ("Error", "error", "fail", "refuse", "invalid") or call.endswith("_error"):
                inside = "errors"
            if call in ("std", "string", "Error") and len(token.parts) == 1 and has_literal(token.parts[0]) and \
                    any(t.kind == "sign" and t.text in JOINING for t in part):
                continue  # joined above
            if token.text == "(" and choice_of(token) is not None and has_literal(part):
                continue
            self.walk(token, inside)


SQL = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|BEGIN|COMMIT|ROLLBACK|ATTACH|VACUUM)\b")
LABEL = re.compile(r"^[A-Z][a-z]+[.:…]{0,3}$")
FORMAT = re.compile(r"%[-+0-9.]*(?:[lhjzt]*[diouxXeEfgGsc])")


def is_sentence(text, path):
    plain = re.sub(r"\{[^{}]*\}", "", text).strip()
    if plain.startswith("##") or SQL.match(plain) or not re.search(r"[A-Za-z]", FORMAT.sub("", plain)):
        return False
    if re.search(r"[A-Za-z]{2}[,.;:)]* [({\"']?\w", plain) or (re.search(r"\s[a-z]+\s*$", text) and "{" in text):
        return True
    if re.search(r"(^|\} ?)[a-z]{2,}( |$)", text) and "{" in text and " " in text:
        return True
    in_window = str(path).startswith(("ui/", "app/window/"))
    return bool(in_window and LABEL.match(plain))


def group_of(path, context):
    if context:
        return context
    if path.startswith("packaging/"):
        return "set-up"
    if path.startswith(("app/commands/", "app/main.cc", "app/probe/")):
        return "command line"
    if path.startswith(("ui/", "app/")):
        return "window"
    return "errors"


def sentences_of_source(path):
    sentences = Sentences(path)
    sentences.walk(tree_of((ROOT / path).read_text()), "")
    seen = set()
    for line, text, context in sorted(sentences.found, key=lambda found: found[0]):
        text = " ".join(text.split())
        if is_sentence(text, path) and (line, text) not in seen:
            seen.add((line, text))
            yield group_of(path, context), line, text


def sentences_of_script(path):
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        if not re.search(r"\b(echo|printf|print|fail|say|exit|error|help|message)\b", line):
            continue
        for match in re.finditer(r"\"((?:\\.|[^\"\\])*)\"|'([^']*)'", line):
            text = match.group(1) if match.group(1) is not None else match.group(2)
            if is_sentence(text, path):
                yield "set-up", number, text


def main():
    words = [word.lower() for word in sys.argv[1:]]
    found = {group: [] for group in GROUPS}
    for folder in ("app", "engine", "kernels", "ui"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in (".h", ".cc", ".cu", ".cuh") and name != LANGUAGES:
                for group, line, text in sentences_of_source(name):
                    found[group].append((name, line, text))
    for path in [ROOT / "CMakeLists.txt", *sorted((ROOT / "packaging").iterdir())]:
        name = str(path.relative_to(ROOT))
        if path.is_file() and (path.suffix in (".cmake", ".txt", ".py") or path.read_bytes().startswith(b"#!")):
            for group, line, text in sentences_of_script(name):
                found[group].append((name, line, text))
    for group in GROUPS:
        print(f"\n# {group}")
        for name, line, text in found[group]:
            if not words or any(word in text.lower() for word in words):
                print(f"{name}:{line}  {text}")


if __name__ == "__main__":
    main()
