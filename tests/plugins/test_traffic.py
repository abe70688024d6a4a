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
from traffic import AHEAD, digest, matrix  # noqa: E402

EMPTY = digest(b"")


def exchanges_of(outcome):
    """Path and status of each response."""
    records = warc_records(outcome.directory / "page.warc.gz")
    return [
        (urlsplit(fields["WARC-Target-URI"]).path, int(block.split()[1]))
        for fields, block in records
        if fields["WARC-Type"] == "response"
    ]


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

    def test_what_the_browser_fetches_ahead_is_whole_in_the_record(self):
        for ask in AHEAD:
            with self.subTest(ask):
                outcome = self.close_tab(
                    self.load("/traffic/page?" + urlencode({"who": "ahead", "ask": ask, "case": ask}))
                )
                self.assert_status(outcome, "succeeded")
                recorded = exchanges(outcome.directory / "page.warc.gz")
                wanted = ("GET", f"/traffic/plain?name=1&case={ask}", 200, digest(b"// plain words 1"), EMPTY)
                self.assertEqual([one for one in recorded if one[1] == wanted[1]], [wanted])
                self.assertNotIn("missing", outcome.json("page.json"))

    def test_fields_of_a_response_keep_their_order(self):
        path = "/documents/plain"
        outcome = self.close_tab(self.load(path))
        head = next(
            block.partition(b"\r\n\r\n")[0].decode()
            for fields, block in warc_records(outcome.directory / "page.warc.gz")
            if fields["WARC-Type"] == "response" and fields["WARC-Target-URI"] == self.url(path)
        )
        with urlopen(self.url(path)) as answer:
            sent = list(answer.headers)
        recorded = [line.split(":")[0] for line in head.split("\r\n")[1:]]
        self.assertEqual([name for name in recorded if name in sent], sent)
        self.assertNotEqual(sent, sorted(sent))

    def look(self, name, **settings):
        """The tab's record, the title and the paths of the links of a page that does not stay what it is."""
        path = f"/documents/{name}"
        process = self.load(path, **settings)
        title = self.run_hook("title", path).output
        found = self.run_hook("outlinks", path)
        links = self.paths(found) if found.status == "succeeded" else []
        outcome = self.close_tab(process)
        return outcome, outcome.json("page.json"), title, links

    def test_all_results_are_of_one_document(self):
        _, page, title, links = self.look("later")
        self.assertEqual((page["url"], title), (self.url("/documents/later"), "later"))
        self.assertIn("/article.html", links)
        _, page, title, _ = self.look("soon")
        self.assertEqual((page["url"], title), (self.url("/article.html"), "Low water"))
        self.assertEqual([one["cause"] for one in page["documents"]], ["request", "refresh"])

    def test_a_download_that_a_page_starts_is_a_file_beside_it(self):
        outcome, page, title, links = self.look("presses")
        self.assert_status(outcome, "succeeded")
        self.assertEqual((title, page["files"][0]["path"]), ("presses", "file/table"))
        self.assertEqual(outcome.file("file/table"), b"day,height\n1,2\n")

    def test_a_page_that_leads_on_without_end_is_ended(self):
        outcome, page, _, _ = self.look("ping")
        self.assert_failed(outcome, "leads on without end")
        self.assertEqual(len(page["documents"]), 21)

    def test_a_check_with_an_error_status_is_waited_for(self):
        outcome, page, title, _ = self.look("check")
        self.assert_status(outcome, "succeeded")
        self.assertEqual((title, [one["status"] for one in page["documents"]]), ("check", [403, 200]))

    def test_a_file_that_never_comes_keeps_nothing_else_away(self):
        for name, reason in (
            ("hangs", "no answer"),
            ("style-hangs", "no answer"),
            ("import-hangs", "no answer"),
            ("drips", "cut (time)"),
        ):
            with self.subTest(name):
                outcome, page, title, _ = self.look(name)
                self.assert_status(outcome, "succeeded")
                self.assertIn("/image/low.png", [record[0] for record in exchanges_of(outcome)])
                self.assertIn("load", outcome.result["output_json"]["cut"])
                self.assertEqual(page.get("missing", [{}])[0].get("reason"), reason)
                self.assertEqual(title, "scripted" if name.endswith("-hangs") else name)

    def test_a_file_that_the_page_or_its_browser_forbids_is_not_missing(self):
        for name in ("forbids", "refused"):
            with self.subTest(name):
                outcome, page, _, _ = self.look(name)
                self.assertNotIn("missing", page)

    def test_a_page_that_leads_to_where_nothing_answers_stays(self):
        outcome, page, title, _ = self.look("hangs-on")
        self.assert_status(outcome, "succeeded")
        self.assertEqual((title, outcome.result["output_json"]["cut"]), ("hangs-on", ["load"]))
        self.assertIn("files", [step["step"] for step in page["steps"]])

    def test_a_document_that_a_script_rewrites_is_recorded_once(self):
        outcome, page, title, _ = self.look("rewrites")
        self.assert_status(outcome, "succeeded")
        self.assertEqual((title, page.get("missing")), ("rewritten", None))
        self.assertEqual(exchanges_of(outcome).count(("/documents/rewrites", 200)), 1)

    def test_a_window_that_a_page_opens_asks_for_nothing(self):
        outcome, _, _, _ = self.look("windows")
        self.assert_status(outcome, "succeeded")
        with urlopen(self.url("/traffic/log?case=windows")) as answer:
            self.assertEqual(json.load(answer), [])

    def test_a_request_whose_body_the_browser_does_not_give_is_marked(self):
        outcome, _, _, _ = self.look("form")
        (cut,) = [
            fields.get("WARC-Truncated")
            for fields, block in warc_records(outcome.directory / "page.warc.gz")
            if fields["WARC-Type"] == "request" and block.startswith(b"POST ")
        ]
        self.assertEqual(cut, "unspecified")


if __name__ == "__main__":
    unittest.main()
