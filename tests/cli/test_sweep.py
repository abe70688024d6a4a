"""Every setting, option and argument of every verb that takes a text, with values that no one means: control characters,
a hundred thousand letters, bytes that are no text. Each is taken, or refused with one clear sentence. With
HOLDFAST_TEST_FULL each meets all of these values; else a quarter of them, the next one another quarter."""

import re
import subprocess
import unittest

from harness.full import some_of
from harness.strange import VALUES
from harness.case import OK, Case

BUG = 70
# Verbs that wait, or are no commands: their settings are tried above. `psql` and `worker` have no text of their own.
LEFT_OUT = {"worker", "run", "runner", "serve", "psql", "manual", "completion", "migrate", "quickstart"}
SOME = ("a line feed", "no UTF-8", "a hundred thousand letters", "a large number", "an option", "both, encoded")
# What makes a call complete, where the option alone does not.
FIXED = {
    "add": ["--bg", "https://site.test/"],
    "list": ["snapshots"],
    "search": ["word"],
    "export": ["out.warc.gz"],
    "import": ["nothing.db"],
    "schedule add": ["https://site.test/", "--every", "daily"],
    "host set": ["site.test"],
    "persona set": ["work"],
    "persona import": ["work", "/dev/null"],
    "webhook set": ["one", "https://hooks.test/", "--events", "worker.lapsed"],
    "token add": ["anna"],
    "account add": ["anna", "--password-file", "/dev/null"],
    "events": ["-n", "1"],
}


class Sweep(Case):
    @classmethod
    def setUpClass(cls):
        cls.owner = cls("test_every_setting")
        cls.home = cls.owner.place(held=True)
        assert cls.home.run("add", "--bg", "https://site.test/first").code == OK

    @classmethod
    def tearDownClass(cls):
        cls.owner.doCleanups()

    def ask(self, *arguments):
        done = subprocess.run(
            [self.home.command()[0], *arguments],
            cwd=self.home.path,
            env=self.home.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        said = done.stderr
        self.assertNotEqual(done.returncode, BUG, said[-2000:])
        self.assertGreaterEqual(done.returncode, 0, said[-2000:])
        self.assertNotRegex(said, rb"[\x00-\x08\x0b-\x1f\x7f]", "what was given comes out as it is")
        self.assertLess(len(said), 4000, "what was given is repeated at length")
        said.decode()  # it is text
        if done.returncode:
            self.assertTrue(said.strip() or done.stdout.strip(), "it says why")
        return done

    def test_every_setting(self):
        keys = re.findall(r"^\| `([\w.]+)` \|", self.home.run("inspect", "reference", "settings").out, re.M)
        self.assertGreater(len(keys), 50)
        for key in keys:
            for name in some_of(VALUES, 8):
                given = VALUES[name]
                with self.subTest(key, value=name):
                    done = self.ask("--set", key.encode() + b"=" + given, "config", key)
                    if done.returncode:
                        self.assertIn(key.encode(), done.stderr)
                    elif re.search(rb"[\x00-\x1f\x7f]", given):
                        self.fail("a control character was taken")

    def verbs(self, *words):
        """Each verb, with its options that take a text, and how many arguments it has besides."""
        text = self.home.run(*words, "--help").out
        inner = re.findall(r"^  ([a-z][a-z-]+) ", text.partition("Subcommands:")[2].partition("\nExamples:")[0], re.M)
        for verb in inner:
            if verb not in LEFT_OUT and verb not in words:
                yield from self.verbs(*words, verb)
        if not inner and words:
            first, _, text = text.partition("Options:")
            options = re.findall(r"^  (?:-\w,)?(--[a-z-]+)\S* [A-Z]", text, re.M)
            arguments = re.findall(r"^  [A-Z]", first.partition("Positionals:")[2], re.M)
            yield words, options, len(arguments)

    def test_every_option(self):
        tried = 0
        for words, options, _ in self.verbs():
            for option in options:
                tried += 1
                for name in some_of(VALUES if words == ("add",) else SOME, 8):
                    with self.subTest(" ".join(words), option=option, value=name):
                        self.ask(*words, *FIXED.get(" ".join(words), []), option.encode() + b"=" + VALUES[name])
        self.assertGreater(tried, 150)

    def test_every_argument(self):
        tried = 0
        for words, _, count in self.verbs():
            given = FIXED.get(" ".join(words)) or ["site.test"] * count
            for at in [place for place, word in enumerate(given) if not word.startswith("-")][:count]:
                tried += 1
                for name in some_of(SOME, 8):
                    with self.subTest(" ".join(words), argument=at, value=name):
                        self.ask(*words, *given[:at], VALUES[name], *given[at + 1 :])
        self.assertGreater(tried, 70)

    def test_every_setting_of_a_file(self):
        """Where a value may have what no argument can."""
        file = self.home.path / "strange.yaml"
        for line in self.home.run("inspect", "reference", "settings").out.splitlines():
            if found := re.match(r"\| `([\w.]+)` \|", line):
                first, *more = found[1].split(".")
                with self.subTest(found[1]):
                    value = '"a\\0b"'
                    file.write_text(f"{first}: {value}\n" if not more else f"{first}:\n  {'.'.join(more)}: {value}\n")
                    self.assertNotEqual(self.ask("--config", str(file), "config").returncode, OK)


if __name__ == "__main__":
    unittest.main()
