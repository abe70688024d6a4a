"""Changes of pages: what the seal says of a capture, from the blocks that the text plugin leaves."""

import json

from harness.case import OK, USAGE, Case

URL = "http://one.test/page"
ARTICLE = [f"Sentence {name} of the article is about the harbour and its boats." for name in ("one", "two", "three")]


class Changes(Case):
    def setUp(self):
        self.home = self.place(held=True)

    def serve(self, *texts, links=()):
        """What the page says from now on."""
        lines = [{"source": "file", "url": URL, "title": "Page"}]
        lines += [{"at": "main/p", "text": text, "links": list(links)} for text in texts]
        blocks = "\n".join(json.dumps(line) for line in lines)
        self.home.hook(
            "text", "on_Snapshot__56_text.sh", f"cat >blocks.jsonl <<'END'\n{blocks}\nEND\necho x >content.txt"
        )

    def capture(self):
        """Archives the page; returns the row of its snapshot."""
        done = self.home.run("add", "--wait", "--json", URL)
        self.assertEqual(done.code, OK, str(done))
        return next(record for record in done.records if record["type"] == "Snapshot")

    def test_a_capture_says_what_has_changed_since_the_last_one(self):
        self.serve(*ARTICLE, "It is 12:01:09")
        first = self.capture()
        self.assertEqual((first["change"], first["change_from"]), ("first", None))
        self.serve(*ARTICLE, "It is 12:01:17")
        learnt = self.capture()
        self.assertEqual((learnt["change"], learnt["change_from"]), ("same", first["id"]))
        self.assertTrue(learnt["facts"]["change_learnt"])
        self.serve(*ARTICLE, "It is 12:02:40", "A new line")
        changed = self.capture()
        self.assertEqual((changed["change"], changed["words_added"], changed["words_removed"]), ("text", 3, None))
        self.serve(*ARTICLE, "It is 12:03:11", "A new line", links=["http://two.test/"])
        self.assertEqual(self.capture()["change"], "links")
        listed = self.home.lines("list", "changes", "--json")
        self.assertEqual([row["change"] for row in listed], ["links", "text"])
        self.assertEqual(
            [row["id"] for row in self.home.lines("list", "changes", "--min", "5%", "--since", "1d", "--json")][-1],
            changed["id"],
        )
        self.assertEqual(self.home.lines("list", "changes", "--min", "100%", "--url", "text", "--json"), [])
        self.check_error(self.home.run("list", "changes", "--min", "much"), USAGE, "invalid share")
        words = self.home.run("diff", changed["id"], "--json").records[0]
        self.assertIn([{"added": "A new line"}], words["blocks"])
        page = self.home.run("diff", first["id"], changed["id"], "--html").out
        self.assertIn("<ins>A new line</ins>", page)

    def test_captures_at_the_same_time_find_a_change_once(self):
        self.serve(*ARTICLE)
        self.capture()
        self.serve(*ARTICLE)
        self.capture()
        self.serve(*ARTICLE, "A new line")
        for _ in range(4):
            self.home.run("add", "--bg", URL)
        self.assertEqual(self.home.run("run").code, OK)
        said = [row["change"] for row in self.home.lines("list", "snapshots", "--json")]
        self.assertEqual(sorted(said), ["first", "same", "same", "same", "same", "text"])

    def test_the_fingerprint_goes_with_the_last_snapshot(self):
        self.serve(*ARTICLE)
        one, two = self.capture(), self.capture()
        self.home.holdfast("remove", "--yes", one["crawl_id"])
        self.assertEqual(self.capture()["change"], "same")
        self.home.holdfast("remove", "--yes", two["crawl_id"])
        last = self.home.lines("list", "snapshots", "--json")
        self.home.holdfast("remove", "--yes", last[0]["crawl_id"])
        self.assertEqual(self.capture()["change"], "first")
