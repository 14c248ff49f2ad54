#!/usr/bin/env python3
"""Answers of `octavo serve` that must be valid by a JSON schema: random schemas, and the public JSON-Schema test suite.

usage: schemas.py OCTAVO [--schemas N] [--seed SEED]

Every answer that ends by itself is checked by PyPI's jsonschema, which brings the suite along (its source package, pinned,
fetched into ~/.cache/octavo/schemas the first time). What of the suite cannot be kept has to be refused with status 400.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tarfile

import clients

VERSION = "4.26.0"
SOURCE_SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
AT_ONCE = 16
DRAFTS = ["draft2020-12", "draft7"]


def install(work):
    """jsonschema on the path, and the folder of the suite."""
    packages = work / f"packages-{VERSION}"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if not packages.exists():
        subprocess.run([*pip, "install", "--target", str(packages), f"jsonschema=={VERSION}"], check=True)
    sys.path.insert(0, str(packages))
    suite = work / f"jsonschema-{VERSION}" / "json" / "tests"
    if not suite.exists():
        subprocess.run([*pip, "download", "--no-deps", "--no-binary", "jsonschema", "-d", str(work), f"jsonschema=={VERSION}"],
                       check=True)
        archive = work / f"jsonschema-{VERSION}.tar.gz"
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SOURCE_SHA256:
            raise RuntimeError(f"{archive.name} is not the pinned file (its SHA-256 differs)")
        with tarfile.open(archive) as opened:
            opened.extractall(work, filter="data")
    return suite


class SchemaDrawer:
    """Schemas as programs write them: records, lists, choices, references, bounds."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def draw(self):
        schema = self.record(3)
        if self.random.random() < 0.3:
            schema["$defs"] = {"node": {"type": "object", "properties": {
                "value": self.value(0), "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
                "required": ["value", "next"], "additionalProperties": False}}
            schema["properties"]["chain"] = {"$ref": "#/$defs/node"}
            schema["required"].append("chain")
        return schema

    def record(self, depth):
        names = self.random.sample(["id", "name", "größe", "a b", "x\"y", "back\\slash", "tags", "when", "n/a", "~t"],
                                   self.random.randint(1, 4))
        schema = {"type": "object", "properties": {name: self.value(depth - 1) for name in names}}
        schema["required"] = [name for name in names if self.random.random() < 0.7]
        if self.random.random() < 0.7:
            schema["additionalProperties"] = self.random.choice([False, False, {"type": "integer"}])
        return schema

    def value(self, depth):
        draw = self.random
        kinds = [lambda: {"type": draw.choice(["boolean", "null"])}, self.integer, self.number, self.text,
                 lambda: {"enum": draw.sample([1, "two", None, 3.5, True, "\u00e9\"", [1], {"a": 1}], draw.randint(1, 4))},
                 lambda: {"const": draw.choice(["x", 7, {"k": [1, None]}])},
                 lambda: {"type": "string", "format": draw.choice(["date", "time", "date-time", "uuid", "ipv4"])},
                 lambda: {"type": draw.choice([["string", "null"], ["integer", "boolean"]])}]
        if depth > 0:
            kinds += [lambda: self.record(depth), lambda: self.items(depth), lambda: self.cases(depth)]
        return draw.choice(kinds)()

    def integer(self):
        schema, least = {"type": "integer"}, self.random.randint(-1000, 1000)
        if self.random.random() < 0.6:
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = least
        if self.random.random() < 0.6:
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = least + self.random.randint(2, 10 ** self.random.randint(1, 6))
        if len(schema) == 1 and self.random.random() < 0.3:
            schema["multipleOf"] = self.random.randint(2, 12)
        return schema

    def number(self):
        least = round(self.random.uniform(-50, 50), self.random.randint(0, 3))
        schema = {"type": "number"}
        if self.random.random() < 0.7:
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = least
        if self.random.random() < 0.7:
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = least + round(self.random.uniform(0.5, 99), 2)
        return schema

    def text(self):
        if self.random.random() < 0.4:
            return {"type": "string", "pattern": self.random.choice(
                ["^[A-Z]{2}-[0-9]{1,4}$", "^(red|green|blue)+$", "^[^a-z]{0,6}$", "^\\w+@[a-z]+\\.(com|org)$", "^.{2,5}$"])}
        schema, least = {"type": "string"}, self.random.randint(0, 4)
        if self.random.random() < 0.5:
            schema["minLength"] = least
        if self.random.random() < 0.8:
            schema["maxLength"] = least + self.random.randint(0, 20)
        return schema

    def items(self, depth):
        least = self.random.randint(0, 2)
        schema = {"type": "array", "items": self.value(depth - 1), "minItems": least, "maxItems": least + self.random.randint(0, 3)}
        if self.random.random() < 0.2:
            schema["prefixItems"] = [self.value(0) for _ in range(self.random.randint(1, 2))]
            schema["maxItems"] = max(schema["maxItems"], 3)
        return schema

    def cases(self, depth):
        if self.random.random() < 0.5:
            return {"anyOf": [self.value(depth - 1) for _ in range(self.random.randint(2, 3))]}
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "value": self.value(0)},
                           "required": ["kind", "value"], "additionalProperties": False} for kind in ["a", "b"]]}


def suite_schemas(suite):
    for draft in DRAFTS:
        for path in sorted((suite / draft).glob("*.json")):
            for group in json.loads(path.read_text()):
                yield draft, f"{draft}/{path.stem}: {group['description']}", group["schema"]


class Checker:
    def __init__(self, server):
        import jsonschema

        self.server, self.counts = server, collections.Counter()
        self.refusals, self.failures = collections.Counter(), []
        self.validators = {"draft7": jsonschema.Draft7Validator}
        self.newest = jsonschema.Draft202012Validator

    def ask(self, name, draft, schema, seed):
        body = {"prompt": "An example as JSON:\n", "max_tokens": 250, "temperature": 1.0, "seed": seed,
                "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
        status, _, text = self.server.request("POST", "/v1/completions", body, timeout=600)
        answer = json.loads(text)
        if status == 400:
            return name, "refused", answer["error"]["message"]
        if status != 200:
            return name, "failed", f"status {status}: {text}"
        choice = answer["choices"][0]
        if choice["finish_reason"] != "stop":
            return name, "cut", ""
        try:
            value = json.loads(choice["text"])
        except ValueError as error:
            return name, "failed", f"{error}: {choice['text']!r}"
        problems = list(self.validators.get(draft, self.newest)(schema).iter_errors(value))
        return name, "failed" if problems else "valid", f"{choice['text']!r}: {problems[0].message}" if problems else ""

    def run(self, title, cases):
        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            for name, result, detail in threads.map(lambda case: self.ask(*case), cases):
                counts[result] += 1
                if result == "failed":
                    self.failures.append(f"{name}: {detail}")
                if result == "refused":
                    self.refusals[detail.split(":", 1)[-1].split("' at")[0].strip()] += 1
        print(f"{title}: {dict(counts)}")
        return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("octavo")
    parser.add_argument("--schemas", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path.home() / ".cache/octavo/schemas")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    suite = install(given.work)
    server = clients.Server(given.octavo)
    try:
        checker = Checker(server)
        drawn = [(f"schema {seed}: {json.dumps(schema)}", "draft2020-12", schema, seed)
                 for seed in range(given.seed, given.seed + given.schemas) for schema in [SchemaDrawer(seed).draw()]]
        random_counts = checker.run(f"{given.schemas} random schemas", drawn)
        checker.run("JSON-Schema test suite", [(name, draft, schema, 1) for draft, name, schema in suite_schemas(suite)])
    finally:
        server.stop()
    for reason, count in checker.refusals.most_common(40):
        print(f"  refused {count}: {reason}")
    for failure in checker.failures:
        print(f"  FAILED {failure}")
    failed = len(checker.failures) + random_counts["refused"]
    print(f"{int(failed == 0)} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
