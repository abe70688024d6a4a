"""What deploy/promises.md promises is there: nothing that promises.json names may go or change its name.

HOLDFAST_PROMISES=write adds to the file what is new. Run it so when something that users may rely on was added; the
difference is then part of the change. A name that goes needs a new major version.
"""

import json
import os
import re
from pathlib import Path

from harness.case import Case
from test_pages import Site

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests/fixtures/promises.json"
EVENTS = ROOT / "migrations/0010_webhook.sql"
COLUMNS = r"""
select table_name || ' ' || column_name from information_schema.columns
  where table_schema = 'holdfast' and table_name like 'v\_%'"""


def fields(operation):
    """The names of an operation's parameters and members, as one list."""
    names = [one["name"] for one in operation["parameters"]]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return names + list(body.get("properties", {}))


def gone(promised, there):
    """What was promised and is not there: "section: name"."""
    return [
        f"{section}: {name}"
        for section, names in promised.items()
        for name in names
        if name not in there.get(section, ())
    ]


class Promises(Case):
    def words(self, *line):
        """What may follow a command line: commands, or options."""
        out = self.site.place.holdfast("completion", "words", "--", "holdfast", *line).out
        return [one.partition("\t")[0] for one in out.splitlines()]

    def commands(self):
        options = set(self.words("--"))
        for verb in [one for one in self.words("") if not one.startswith("-")]:
            yield verb
            yield from (f"{verb} {one}" for one in self.words(verb, "--") if one not in options)

    def there(self):
        place = self.site.place
        document = json.loads(self.site.get("/api/openapi.json").text)
        snapshot = next(iter(place.data.glob("archive/**/index.jsonl")))
        return {
            "api": [
                f"{method.upper()} {path}{' ' + name if name else ''}"
                for path, methods in document["paths"].items()
                for method, operation in methods.items()
                for name in ["", *fields(operation)]
            ],
            "answers": [
                f"{schema}.{name}"
                for schema, what in document["components"]["schemas"].items()
                for name in what.get("properties", {})
            ],
            "views": place.holdfast("psql", "-Atc", COLUMNS).out.splitlines(),
            "commands": list(self.commands()),
            "settings": [one["key"] for one in place.holdfast("config").records],
            "exit codes": re.findall(r"^  (\w+ = \d+),", (ROOT / "lib/base/error.hpp").read_text(), re.MULTILINE),
            "webhook events": re.findall(
                r"\b[a-z]+\.[a-z_]+\b", EVENTS.read_text().partition("::text[]")[0].rpartition("'{")[2]
            ),
            "status": list(place.holdfast("status").records[0]),
            "snapshot files": [one.name for one in snapshot.parent.iterdir() if one.is_file()],
            "index.jsonl": sorted({name for line in snapshot.open() for name in json.loads(line)}),
        }

    def test_what_was_promised_is_there(self):
        self.site = Site(self)
        self.addCleanup(self.site.close)
        there = self.there()
        if os.environ.get("HOLDFAST_PROMISES") == "write":
            FILE.write_text(json.dumps({name: sorted(set(all)) for name, all in there.items()}, indent=1) + "\n")
        promised = json.loads(FILE.read_text())
        self.assertEqual(gone(promised, there), [], "promised by deploy/promises.md, and gone")
        self.assertEqual(set(promised), set(there))

    def test_what_goes_is_noticed(self):
        promised = json.loads(FILE.read_text())
        for section, names in promised.items():
            self.assertTrue(names, section)
            less = {**promised, section: names[1:]}
            self.assertEqual(gone(promised, less), [f"{section}: {names[0]}"])
        self.assertEqual(gone({}, promised), [], "more may come")
