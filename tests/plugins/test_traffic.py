"""The record holds each request and each answer of a page and its workers, and nothing that was not sent."""

import collections
import itertools
import json
import sys
import unittest
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from harness.full import FULL, some_of
from support import SITE, BrowserTest, needs_chromium, warc_records

sys.path.append(str(SITE.parent))
from traffic import digest, matrix  # noqa: E402

EMPTY = digest(b"")


def exchanges(warc):
    """Method, path, status, digest of the body and digest of the request's body, of each exchange of a case."""
    responses, found = {}, []
    for fields, block in warc_records(warc):
        path = urlsplit(fields.get("WARC-Target-URI", ""))
        if fields["WARC-Type"] in ("response", "revisit"):
            status = int(block.split()[1])
            responses[fields["WARC-Record-ID"]] = [
                status,
                EMPTY if status == 304 else fields["WARC-Payload-Digest"],
                fields.get("WARC-Truncated"),
            ]
        elif fields["WARC-Type"] == "request" and "case=" in path.query:
            head, _, body = block.partition(b"\r\n\r\n")
            status, sent, cut = responses[fields["WARC-Concurrent-To"]]
            assert cut is None, (path, cut)
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            assert not lengths or int(lengths[0].split(b":")[1]) == len(body), (path, lengths, len(body))
            found.append((head.split()[0].decode(), f"{path.path}?{path.query}", status, sent, digest(body)))
    return found


@needs_chromium
class Traffic(BrowserTest):
    def compare(self, number, who, ask):
        process = self.load("/traffic/page?" + urlencode({"who": who, "ask": ask, "case": number}))
        outcome = self.close_tab(process)
        self.assert_status(outcome, "succeeded")
        with urlopen(self.url(f"/traffic/log?case={number}")) as answer:
            sent = [tuple(one) for one in json.load(answer)]
        recorded = exchanges(outcome.directory / "page.warc.gz")
        self.assertEqual(collections.Counter(recorded), collections.Counter(sent))
        self.assertGreater(len(sent), 1)
        (told,) = [record for record in outcome.records if record["type"] == "Resources"]
        self.assertEqual(told["missing"], {})

    def test_each_exchange_is_recorded_as_it_was_sent(self):
        cases = list(enumerate(matrix()))
        for number, (who, ask) in cases if FULL else itertools.islice(cases, 0, None, 6):
            with self.subTest(who=who, ask=ask):
                self.compare(number, who, ask)
        for number, (who, ask) in some_of([one for one in cases if one[1][0] == "link"], 2):
            with self.subTest(who=who, ask=ask):
                self.compare(f"link-{number}", who, ask)


if __name__ == "__main__":
    unittest.main()
