"""What the documentation says, done: the hook author's examples run, the pages of reference are what the program prints."""

import re
import shutil
from pathlib import Path

from harness.case import OK, Case
from harness.web import Handler, LocalSite

ROOT = Path(__file__).resolve().parents[2]


def examples():
    """(file name, text) of each example in the hook author's guide: a name in backquotes, then a fenced block."""
    text = (ROOT / "deploy/plugins/README.md").read_text()
    return dict(re.findall(r"`(?:deploy/plugins/\w+/)?(on_Snapshot__\w+\.\w+)`[^\n]*\n\n```\w+\n(.*?)```", text, re.S))


class Guide(Case):
    def install(self, place, plugin, name, text, config):
        directory = place.plugins / plugin
        directory.mkdir(parents=True)
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
        (directory / "config.json").write_text(config)

    def results(self, place, plugin):
        return [r for r in place.run("list", "results", "--json").records if r["plugin"] == plugin]

    def test_the_same_hook_in_three_languages(self):
        found = {name: text for name, text in examples().items() if "words" in name}
        self.assertEqual(sorted(found), [f"on_Snapshot__60_words.{end}" for end in ("js", "py", "sh")])
        guide = (ROOT / "deploy/plugins/README.md").read_text()
        config = re.search(r'`(\{"type": "object", "required_plugins": \["text"\].*?\})`', guide).group(1)
        for name, text in found.items():
            with self.subTest(name):
                if name.endswith(".js") and not shutil.which("node"):
                    self.skipTest("no node here")
                place = self.place()
                shutil.rmtree(place.plugins / "page")
                # `text` leaves something for one of two pages.
                self.install(
                    place,
                    "text",
                    "on_Snapshot__56_text.sh",
                    '#!/bin/sh\ncase $1 in *good) echo "three small words" >content.txt ;; esac\n',
                    '{"type": "object", "properties": {}}',
                )
                self.install(place, "words", name, text, config)
                done = place.run("add", "--plugins", "words", "http://127.0.0.1:9/good", "http://127.0.0.1:9/bad")
                self.assertIn(done.code, (OK, 1), str(done))
                results = {r["url"].rsplit("/", 1)[1]: r for r in self.results(place, "words")}
                self.assertEqual((results["good"]["status"], results["good"]["output"]), ("succeeded", "3 words"))
                self.assertEqual(results["bad"]["status"], "skipped")
                files = [file.read_text().strip() for file in place.data.glob("archive/*/*/*/*/a*/words/words.txt")]
                self.assertEqual(files, ["3"])

    def test_the_plugin_in_ten_lines(self):
        if not shutil.which("wget"):
            self.skipTest("no wget here")
        text = examples()["on_Snapshot__40_robots.sh"]
        guide = (ROOT / "deploy/plugins/README.md").read_text()
        config = re.search(r"```json\n(.*?)```", guide, re.S).group(1)

        class Robots(Handler):
            def do_GET(self):
                there = self.path == "/robots.txt"
                self.send_response(200 if there else 404)
                self.end_headers()
                if there:
                    self.wfile.write(b"User-agent: *\n")

        site = LocalSite(Robots)
        self.addCleanup(site.close)
        place = self.place()
        self.install(place, "robots", "on_Snapshot__40_robots.sh", text, config)
        place.holdfast("add", site.url + "/page", "--plugins", "robots")
        [result] = self.results(place, "robots")
        self.assertEqual((result["status"], result["output"]), ("succeeded", "robots.txt"))


class Reference(Case):
    def rows(self, topic):
        """The rows of the tables that are printed."""
        printed = self.place(filled=False).run("inspect", "reference", topic)
        self.assertEqual(printed.code, OK, str(printed))
        rows = [line for line in printed.out.splitlines() if line.startswith("| `")]
        self.assertGreater(len(rows), 50)
        return rows

    def test_settings(self):
        for line in self.rows("settings"):
            self.assertEqual(line.replace("\\|", "").count("|"), 6, line)

    def test_views(self):
        for line in self.rows("views"):
            self.assertFalse(line.rstrip().endswith("|  |"), f"without a comment: {line}")


class Help(Case):
    def test_every_verb_has_an_example_that_parses(self):
        place = self.place()
        verbs = [()]
        seen = 0
        while verbs:
            words = verbs.pop()
            shown = place.holdfast(*words, "--help")
            part = shown.out.split("Subcommands:")[1].split("\n\n")[0] if "Subcommands:" in shown.out else ""
            verbs += [(*words, name) for name in re.findall(r"^  ([a-z][a-z-]*)", part, re.M)]
            if not words:
                continue
            seen += 1
            self.assertIn("Examples:", shown.out, words)
            for line in re.findall(r"^  (holdfast .*)$", shown.out.split("Examples:")[1], re.M):
                self.assertTrue(line.startswith("holdfast "), line)
            self.assertRegex(shown.out.split("Examples:")[1], r"holdfast")
        self.assertGreater(seen, 40)


if __name__ == "__main__":
    import unittest

    unittest.main()
