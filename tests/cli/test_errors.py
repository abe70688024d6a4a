"""Bad input: one clear message (what, where, how to mend), the right exit code, nothing half-written."""

import re
import subprocess
import unittest

from harness.case import (
    CANNOT_CREATE,
    CONFIGURATION,
    INPUT_OUTPUT,
    OK,
    REFUSED,
    UNAVAILABLE,
    USAGE,
    Case,
    can_mount,
    with_mounts,
)
from harness.collection import as_plain_user

URL = "https://site.test/page"
NEXT = ["schedule", "next", "--every", "daily"]


class CommandLine(Case):
    def setUp(self):
        self.home = self.place(filled=False)

    def tearDown(self):
        # Nothing of these ever got as far as to make a collection.
        self.assertFalse(self.home.data.exists())

    def test_wrong_words_and_options(self):
        for arguments, words in (
            ([], ["no command", "holdfast add URL"]),
            (["frobnicate"], ["frobnicate"]),
            (["add", "--frobnicate", URL], ["--frobnicate"]),
            (["add", "--depth", "deep", URL], ["--depth"]),
            (["add", "--depth", "-1", URL], ["--depth"]),
            (["add", "--depth", "99", URL], ["--depth"]),
            (["add", "--depth", "5", URL], ["--depth 5", "crawl.max_depth (4, from default)"]),
            (["add", "--max-urls", "-5", URL], ["--max-urls"]),
            (["add", "--option", "NOVALUE", URL], ["--option NOVALUE", "NAME=VALUE"]),
            (["add", "--option", "PATH=/tmp", URL], ["PATH"]),
            (["add", "--option", "LD_PRELOAD=/tmp/x.so", URL], ["LD_PRELOAD"]),
            (
                ["add", "--option", "CHROME_BINARY=/usr/bin/id", URL],
                ["CHROME_BINARY", "workers' own", "hooks:"],
            ),
            (["add", "--option", "CHROME_ARGS_EXTRA=--x", URL], ["CHROME_ARGS_EXTRA", "workers' own"]),
            (["add", "--option", "MY_API_KEY=x", URL], ["MY_API_KEY", "secret"]),
            (["add", "--plugins", "nosuch", URL], ["nosuch", "page"]),
            (["add", "--plugins", "page,nosuch", URL], ["nosuch"]),
            (["config", "no.such.key"], ["no.such.key"]),
            (["inspect", "lifecycle", "nosuch"], ["nosuch"]),
            (["worker", "--kind", "other"], ["other", "all, crawl, snapshot"]),
            (["--set", "lease", "status"], ["--set lease", "KEY=VALUE"]),
            (["show"], ["missing argument: ID", "hint: holdfast show ID"]),
            (["retry"], ["missing argument: ID...", "hint: holdfast retry ID..."]),
            (["host", "set"], ["missing argument: HOST"]),
            (["resume", "7f3a", "--at"], ["--at needs a value", "2026-11-22 14:00"]),
            (["schedule", "add"], ["missing option: --every", "hint: --every: "]),
            (["schedule", "next"], ["neither a schedule nor --every"]),
            (["--config"], ["--config needs a value", "hint: --config: Settings file"]),
            (["list", "--status"], ["--status needs a value"]),
            (
                ["export", "--all", "--format", "wacz", "--format", "warc", "-o", "x"],
                ["--format is given more than once"],
            ),
            (["--json=maybe", "list"], ["--json takes no value"]),
            (["import", "warc", "/nowhere"], ['there is no file "/nowhere"']),
            (["import", "archivebox", "/nowhere"], ['there is no directory "/nowhere"']),
        ):
            with self.subTest(arguments=arguments):
                self.check_error(self.home.run(*arguments), USAGE, *words)

    def test_unknown_commands_are_answered_with_the_line_that_does_it(self):
        for arguments, hint in (
            (["statsu"], "did you mean holdfast status?"),
            (["remov"], "did you mean holdfast remove?"),
            (["frobnicate"], "holdfast --help lists the commands"),
            (["ls"], "holdfast list"),
            (["rm", "7f3a"], "holdfast remove 7f3a"),
            (["rm"], "holdfast remove ID"),
            (["archive", URL + "?a b"], f"holdfast add '{URL}?a b'"),
            (["snapshots"], "holdfast list snapshots"),
            (["crawls"], "holdfast list crawls"),
            (["man"], "holdfast manual | man -l -"),
            (["add", "--delay", "2s", URL], "did you mean holdfast add --host-delay?"),
            (["config", "set", "worker.snapshots", "3"], "holdfast.yaml"),
            (["config", "MAX_TOTAL_WORKERS"], "holdfast config runner.max_total_workers"),
            ([URL], f"holdfast add {URL}"),
            (["--json", URL], f"holdfast add {URL}"),
            (["init"], "holdfast add URL"),
            (["update"], "holdfast add --update URL"),
            (["server", "0.0.0.0:8000"], "holdfast serve"),
            (["shell"], "holdfast psql"),
            (["install"], "holdfast doctor"),
            (["oneshot", URL], f"holdfast add {URL}"),
            (["plugin"], "holdfast plugins list"),
            (["config", "--set", "TIMEOUT=60"], "holdfast.yaml"),
            (["schedule", "lsit"], "did you mean holdfast schedule list?"),
            (["host", "frobnicate"], "set|forget|list"),
            (["add", "--dept", "1", URL], "did you mean holdfast add --depth?"),
            (["list", "workers", "--kind", "runer"], "holdfast list --kind runner"),
            (["completion", "ksh"], "is not one of bash, zsh, fish, words"),
        ):
            with self.subTest(arguments=arguments):
                self.check_error(self.home.run(*arguments), USAGE, "hint: ", hint)

    def test_help_and_version(self):
        for flag in ("--version", "-V"):
            result = self.home.holdfast(flag)
            self.assertRegex(result.out, r"^holdfast \d+\.\d+\.\d+\n$")
        self.assertEqual(self.home.run("help").out, self.home.run("--help").out)
        self.assertEqual(self.home.run("help", "add").out, self.home.run("add", "--help").out)
        self.assertIn("--depth", self.home.run("help", "add").out)
        verbs = re.findall(r"(?m)^  ([a-z][a-z-]*) ", self.home.run("help").out.partition("Subcommands:")[2])
        self.assertIn("export", verbs)
        for line in [[verb] for verb in verbs]:
            shown = self.home.run(*line, "--help").out.partition("Examples:")[0]
            inner = re.findall(r"(?m)^  ([a-z][a-z-]*) ", shown.partition("Subcommands:")[2])
            shown += "".join(self.home.run(*line, one, "--help").out.partition("Examples:")[0] for one in inner)
            wide = [one for one in shown.splitlines() if len(one) > 80 or "TEXT" in one]
            self.assertEqual(wide, [], line)

    def test_unexpected_arguments_in_their_order(self):
        self.check_error(self.home.run("show", "7f3a", "one", "two"), USAGE, '"one two"')
        self.check_error(self.home.run("list", "crawls", "-Z", "3"), USAGE, "no option -Z")

    def test_bounds_of_numbers(self):
        for arguments, words in (
            (["list", "--limit", "0"], ["--limit", "at least 1"]),
            (["list", "--limit", "x"], ["--limit", '"x"', "at least 1"]),
            (["add", "--depth=x", URL], ["--depth", '"x"', "from 0 to 16"]),
            (["add", "--depth=17", URL], ["--depth", "from 0 to 16"]),
            (["add", "--max-parallel", "0", URL], ["--max-parallel", "from 1 to"]),
            (["status", "--follow", "-d", "0"], ["--delay", "from 0.1 to 3600"]),
        ):
            with self.subTest(arguments=arguments):
                self.check_error(self.home.run(*arguments), USAGE, *words)

    def test_unknown_statuses_are_answered_with_those_there_are(self):
        for what, known in (
            ("crawls", "queued, started, sealed, paused"),
            ("snapshots", "sealed"),
            ("workers", "exited"),
            ("results", "noresults"),
            ("queue", "paused"),
            ("deliveries", "given_up"),
        ):
            with self.subTest(what=what):
                self.check_error(self.home.run("list", what, "--status", "foo"), USAGE, '"foo"', "one of: ", known)

    def test_options_that_no_plugin_has(self):
        self.home.hook("strict", "on_Snapshot__20_strict.sh", "true")
        (self.home.plugins / "strict/config.json").write_text(
            '{"properties": {"STRICT_WORDS": {"type": "string", "default": "", "x-aliases": ["WORDS_OF_STRICT"]}}}'
        )
        for name, hint in (
            ("NOSUCH", "holdfast config --plugin NAME"),
            ("STRICT_WROD", "STRICT_WORDS"),
            ("TIMEOTU", "did you mean TIMEOUT?"),
        ):
            self.check_error(self.home.run("add", "--option", f"{name}=1", URL), USAGE, f"--option {name}", hint)
            self.check_error(
                self.home.run("schedule", "add", "--every", "daily", "--option", f"{name}=1", URL), USAGE, name
            )

    def test_files_that_are_not_there(self):
        self.check_error(
            self.home.run("add", "nofile.txt"), REFUSED, '"nofile.txt" is neither a file nor a URL', "https://"
        )
        self.check_error(self.home.run("add", self.home.path), REFUSED, "is a directory")
        for typed, meant in (("example.com", "https://example.com/"), ("Example.org/a?b", "'https://example.org/a?b'")):
            self.check_error(self.home.run("add", typed), REFUSED, f"did you mean holdfast add {meant}?")

    def test_unusable_urls(self):
        for url, word in (
            ("htp://site.test/", "htp"),
            ("file:///etc/passwd", "file"),
            ("javascript:alert(1)", "javascript"),
            ("http://", "http://"),
            ("http://exa mple.test/", "exa mple"),
            ("http://site.test:99999/", "99999"),
            ("no-such-file.txt", "no-such-file.txt"),
        ):
            with self.subTest(url=url):
                self.check_error(self.home.run("add", url), REFUSED, word, "nothing was added")

    def test_a_good_url_does_not_carry_a_bad_one(self):
        self.check_error(self.home.run("add", URL, "htp://x"), REFUSED, "htp")

    def test_private_addresses(self):
        for url in ("http://127.0.0.1/", "http://localhost:8000/", "http://10.1.2.3/", "http://[::1]/"):
            with self.subTest(url=url):
                result = self.home.run("add", url, env={"HOLDFAST_URLS_ALLOW_PRIVATE": "false"})
                self.check_error(result, REFUSED, url, "urls.allow_private")

    def test_a_file_with_bad_lines_names_each(self):
        file = self.home.path / "urls.txt"
        file.write_text(f'# a comment\n{URL}\nhtp://bad.test/\n\n{{"title": "no url"}}\n{{"url": 5}}\n{{broken\n')
        result = self.home.run("add", "--strict", file)
        self.check_error(result, REFUSED, f"{file}:3: ", f"{file}:5: ", f"{file}:6: ", f"{file}:7: ")
        self.assertNotIn(f"{file}:2", result.err)

    def test_standard_input_is_named_too(self):
        self.check_error(
            self.home.run("add", "--strict", "-", given=f"{URL}\nhtp://bad.test/\n"), REFUSED, "standard input:2: "
        )

    def test_very_many_bad_lines_are_counted(self):
        self.check_error(self.home.run("add", given="htp://x\n" * 1000), REFUSED, "990 more")

    def test_no_url_at_all(self):
        self.check_error(self.home.run("add", given="\n# nothing\n"), REFUSED, "no URL")
        empty = self.home.path / "empty.txt"
        empty.touch()
        self.check_error(self.home.run("add", empty), REFUSED, "no URL")

    def test_options_of_plugins_are_checked(self):
        self.home.hook("strict", "on_Snapshot__20_strict.sh", "true")
        (self.home.plugins / "strict/config.json").write_text(
            '{"properties": {"STRICT_TIMEOUT": {"type": "integer", "default": 5, "minimum": 1}}}'
        )
        for value in ("banana", "0"):
            result = self.home.run("add", "--option", f"STRICT_TIMEOUT={value}", URL)
            self.assertIn(result.code, (USAGE, CONFIGURATION), str(result))
            self.assertIn("STRICT_TIMEOUT", result.err)

    def test_a_broken_plugin_is_named_with_its_line(self):
        self.home.hook("broken", "on_Snapshot__20_broken.sh", "true")
        (self.home.plugins / "broken/config.json").write_text('{\n  "properties": {\n    oops\n')
        self.check_error(self.home.run("add", URL), CONFIGURATION, "broken/config.json:3")

    def test_a_browser_that_does_not_start(self):
        place = self.place()
        place.hook("browser", "on_CrawlSetup__90_browser.sh", "echo no display >&2; exit 1")
        place.hook("browser", "on_Snapshot__20_browser.sh", "exit 1")
        (place.plugins / "browser" / "config.json").write_text(
            '{"properties": {"BROWSER_BINARY": {"type": "string", "default": "/bin/false"}}}'
        )
        added = place.holdfast("add", "http://127.0.0.1:9/", expect=UNAVAILABLE)
        for words in ("holdfast: no worker here can archive it", "its browser does not start", "holdfast why"):
            self.assertIn(words, added.err)
        self.assertEqual([one["status"] for one in place.run("list", "snapshots").records], ["queued"])
        place.holdfast("add", "http://127.0.0.1:9/", "-p", "page")

    def test_plugins_that_are_not_there(self):
        self.check_error(
            self.home.run("add", URL, env={"HOLDFAST_PLUGINS_PATH": "/no/such/place"}), UNAVAILABLE, "/no/such/place"
        )

    def test_reading_does_not_make_a_collection(self):
        for verb in (["status"], ["list"], ["list", "crawls"], ["show", "abcdef"], ["check"], NEXT):
            with self.subTest(verb=verb):
                self.check_error(self.home.run(*verb), UNAVAILABLE, "no collection", str(self.home.data))

    def test_help_and_version_need_nothing(self):
        for arguments in (["--help"], ["add", "--help"], ["version"], ["inspect", "lifecycle", "--mermaid"]):
            result = self.home.holdfast(*arguments)
            self.assertNotEqual(result.out, "")


class Output(Case):
    def test_output_that_cannot_be_written_is_an_error(self):
        """A disk that fills up loses what was printed; a reader that has read enough, such as head, does not."""
        home = self.place()
        home.run("add", "--bg", URL)
        commands = (
            "--version|--help|version|version --json|config|list crawls --json|list crawls --csv|status|search x|events"
        )
        for command in commands.split("|"):
            with self.subTest(command), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(
                    home.command(*command.split()),
                    env=home.environment,
                    cwd=home.path,
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                # Nothing found is nothing lost.
                lost = command != "search x"
                self.assertEqual(done.returncode, INPUT_OUTPUT if lost else OK, done.stderr)
                self.assertEqual("cannot write all of the output" in done.stderr, lost, done.stderr)
        for ignored in (False, True):
            done = subprocess.run(
                ["bash", "-c", ("trap '' PIPE; " if ignored else "") + '"$@" | true', "-", *home.command("config")],
                env=home.environment,
                cwd=home.path,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.assertEqual(done.stderr, "")


class Configuration(Case):
    def setUp(self):
        self.home = self.place(filled=False)
        self.file = self.home.path / "holdfast.yaml"

    def tearDown(self):
        self.assertFalse(self.home.data.exists())

    def check_file(self, text, *words):
        self.file.write_text(text)
        self.check_error(self.home.run("add", URL), CONFIGURATION, *words)
        self.check_error(self.home.run("config"), CONFIGURATION, *words)

    def test_wrong_values(self):
        self.check_file("worker:\n  snapshots: many\n", "holdfast.yaml:2", "worker.snapshots", "many")
        self.check_file("lease: 60 bananas\n", "holdfast.yaml:1", "lease")
        self.check_file("worker:\n  snapshots: 0\n", "holdfast.yaml:2", "worker.snapshots")

    def test_the_environment_and_the_command_line_are_named(self):
        result = self.home.run("add", URL, env={"HOLDFAST_LEASE": "soon"})
        self.check_error(result, CONFIGURATION, "HOLDFAST_LEASE", "soon")
        self.check_error(self.home.run("--set", "leese=5s", "add", URL), CONFIGURATION, "leese", "lease")
        self.check_error(self.home.run("--config", "/no/such.yaml", "status"), CONFIGURATION, "/no/such.yaml")


class DataDirectory(Case):
    def setUp(self):
        self.home = self.place(filled=False)

    def test_it_cannot_be_written(self):
        closed = self.home.path / "closed"
        closed.mkdir(mode=0o555)
        result = self.home.run("add", URL, env={"HOLDFAST_DATA_DIR": str(closed / "data")}, **as_plain_user())
        self.check_error(result, CANNOT_CREATE, str(closed))
        self.assertEqual(list(closed.iterdir()), [])

    def test_it_is_full(self):
        if not can_mount():
            self.skipTest("no right to mount")
        self.home.data.mkdir()
        mount = with_mounts(f"mount -t tmpfs -o size=4m,mode=755 none {self.home.data}")
        self.check_error(self.home.run("add", URL, prefix=mount), CANNOT_CREATE, str(self.home.data), "space")


if __name__ == "__main__":
    unittest.main()
