"""The record holds what the server sent, byte by byte, whatever the browser makes of it."""

import itertools
import sys
import unittest
from urllib.parse import parse_qs

from harness.full import FULL, some_of
from support import SITE, BrowserTest, needs_chromium
from test_browser import warc_records

sys.path.append(str(SITE.parent))
from pages import ODD_BODY, ODD_HEADS, body_of, matrix  # noqa: E402

# A part of the matrix: 17 and the 36 ways of a type share no factor, so all ways and types are met. In full, all.
STEP = 1 if FULL else 17
FRAMES = 92  # in one page
ALONE = 37  # each such one is also a page of its own


@needs_chromium
class Bytes(BrowserTest):
    def recorded(self, path):
        """The outcome of a page, and (fields, body) of its responses by path."""
        outcome = self.close_tab(self.load(path))
        found = {}
        for fields, block in warc_records(outcome.directory / "page.warc.gz"):
            if fields["WARC-Type"] == "response":
                body = block.partition(b"\r\n\r\n")[2]
                found.setdefault(fields["WARC-Target-URI"].replace(self.site.url, "/"), (fields, body))
        return outcome, found

    def assert_sent(self, query, found):
        fields, body = found[f"/body?{query}"]
        sent = body_of({name: values[-1] for name, values in parse_qs(query).items()})
        self.assertEqual((body, fields.get("WARC-Truncated")), (sent, None), query)

    def test_of_a_page(self):
        for query in some_of(itertools.islice(matrix(), 0, None, ALONE), 6):
            with self.subTest(query):
                outcome, found = self.recorded(f"/body?{query}")
                self.assert_status(outcome, "succeeded")
                self.assert_sent(query, found)

    def test_of_frames(self):
        queries = list(matrix())
        for begin in range(0, len(queries), FRAMES * STEP):
            outcome, found = self.recorded(f"/matrix?from={begin}&count={FRAMES}&step={STEP}")
            self.assert_status(outcome, "succeeded")
            for query in queries[begin : begin + FRAMES * STEP : STEP]:
                with self.subTest(query):
                    self.assert_sent(query, found)

    def test_of_odd_answers(self):
        def assert_whole(path, found):
            fields, body = found[path]
            self.assertEqual((body, fields.get("WARC-Truncated")), (ODD_BODY, None))

        for head in some_of(("line-0", "length-2", "length-5", "header-0", "bare-1.0"), 3):
            with self.subTest(head):
                outcome, found = self.recorded(f"/odd?head={head}")
                self.assert_status(outcome, "succeeded")
                assert_whole(f"/odd?head={head}", found)
        outcome, found = self.recorded("/odd?head=line-9")
        self.assert_failed(outcome, "HTTP 999")
        outcome, found = self.recorded("/odds")
        self.assert_status(outcome, "succeeded")
        for head, late in itertools.product(ODD_HEADS, ("", "&late=1")):
            with self.subTest(head, late=late):
                assert_whole(f"/odd?head={head}{late}", found)


if __name__ == "__main__":
    unittest.main()
