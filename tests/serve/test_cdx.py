"""The CDX server: pages, fields and filters, over more captures than one answer has."""

import json
import re
from urllib.parse import quote

from harness.case import Case
from harness.warc import http, members, record
from test_pages import Site

COUNT = 10101  # more than a page has; those of other CDX servers, too
BASE = "http://many.test/"


def captures():
    """One page, and what it has: every tenth a picture, every hundredth missing."""
    yield record("response", BASE, "2020-01-01T00:00:00Z", http(b"<title>x</title>", "text/html"), 0)
    for number in range(1, COUNT):
        kind = "image/png" if number % 10 == 0 else "text/css"
        status = "404 Not Found" if number % 100 == 0 else "200 OK"
        date = f"2021-{number % 12 + 1:02}-02T03:04:05Z"
        yield record("response", f"{BASE}f/{number:05}", date, http(b"%d" % number, kind, status), number)
    piece = http(b"7", "text/css", "206 Partial Content")  # beside the whole, which players are to have
    yield record("response", f"{BASE}f/00007", "2021-08-02T03:04:05Z", piece, COUNT)


class Cdx(Case):
    @classmethod
    def setUpClass(cls):
        cls.owner = cls("run_nothing")
        cls.addClassCleanup(cls.owner.doCleanups)
        cls.site = Site(cls.owner)
        cls.addClassCleanup(cls.site.close)
        file = cls.site.place.path / "many.warc.gz"
        file.write_bytes(members(*captures()))
        cls.site.place.holdfast("import", "warc", file)

    def run_nothing(self):
        pass

    def ask(self, url=BASE + "*", status=200, **more):
        pairs = [("url", url)] + [
            (name, one) for name, all in more.items() for one in (all if isinstance(all, list) else [all])
        ]
        answer = self.site.get(
            "/cdx?" + "&".join(f"{name.rstrip('_')}={quote(str(value), safe='')}" for name, value in pairs)
        )
        self.assertEqual(answer.status, status, answer.text)
        return answer

    def rows(self, *url, **more):
        return [json.loads(line) for line in self.ask(*url, output="json", **more).text.splitlines()]

    def pages(self, **more):
        """As the client cdx_toolkit asks: from page 0 until an answer is empty."""
        found, page = [], 0
        while rows := self.rows(page=page, **more):
            found += rows
            page += 1
        return found, page

    def test_all_pages_have_every_capture_once(self):
        every, pages = self.pages()
        self.assertEqual((len(every), pages), (COUNT, 2))
        self.assertEqual(len({one["url"] for one in every}), COUNT)
        self.assertEqual([one["urlkey"] for one in every], sorted(one["urlkey"] for one in every))
        small, pages = self.pages(pageSize=1)
        self.assertEqual((small, pages), (every, 4))
        told = json.loads(self.ask(showNumPages="true", pageSize=1).text)
        self.assertEqual(told, {"pages": 4, "pageSize": 1, "blocks": 4})
        picture, pages = self.pages(pageSize=1, filter="mime:png")
        self.assertEqual((len(picture), pages), (COUNT // 10, 1))
        newest, _ = self.pages(sort="reverse", pageSize=2)
        self.assertEqual({one["url"] for one in newest}, {one["url"] for one in every})
        self.assertEqual(newest[0]["urlkey"], every[-1]["urlkey"])

    def test_an_export_lists_what_the_server_lists(self):
        place = self.site.place
        place.holdfast("export", "--all", "--format", "warc", "-o", place.path / "listed")
        index = (place.path / "listed/index.cdxj").read_text().splitlines()
        self.assertEqual(len([line for line in index if line.startswith("test,many)/")]), COUNT)
        place.holdfast("verify", "--all")

    def test_an_answer_that_is_not_all_leads_to_the_next(self):
        first = self.ask(output="json")
        link = re.fullmatch('<(.*)>; rel="next"', first.headers["Link"]).group(1)
        rest = self.site.get(link)
        self.assertIsNone(rest.headers["Link"])
        self.assertEqual(len(first.text.splitlines()) + len(rest.text.splitlines()), COUNT)
        self.assertIsNone(self.ask(limit=5).headers["Link"])
        self.assertEqual(len(self.rows(limit=5, page=1)), 5)

    def test_filters_look_at_all_captures(self):
        last = f"{BASE}f/{COUNT - 2:05}"
        for filters, count in (
            ("=url:" + last, 1),
            ("url:" + last[-5:], 1),
            ("~url:.*/10[01]..$", 200 - 99 + 0),
            ("~status:40[34]", COUNT // 100),
            ("!~status:40[34]", COUNT - COUNT // 100),
            ("=status:404", COUNT // 100),
            ("!=statuscode:404", COUNT - COUNT // 100),
            (["mimetype:png", "!status:404"], COUNT // 10 - COUNT // 100),
            ("~timestamp:202102", COUNT // 12 + 1),
            ("~mime:png", 0),  # a pattern begins at the beginning
        ):
            with self.subTest(filters):
                self.assertEqual(len(self.pages(filter=filters)[0]), count)
        near = self.rows(last, closest="20200101", filter="status:200", to="2022")
        self.assertEqual([one["url"] for one in near], [last])
        self.assertEqual(self.rows(last, closest="20200101", filter="!status:200"), [])

    def test_fields(self):
        row = self.rows(limit=1, fl="timestamp,original,status")[0]
        self.assertEqual(row, {"timestamp": "20200101000000", "url": BASE, "status": "200"})
        self.assertEqual(self.ask(limit=1, fl="urlkey,mime").text, "test,many)/ text/html\n")

    def test_what_cannot_be_asked_is_told(self):
        for more in (
            {"page": "x"},
            {"page": -1},
            {"pageSize": 0},
            {"fl": "color"},
            {"filter": "color:red"},
            {"filter": "~url:("},
            {"filter": "status"},
            {"page": [1, 2]},
            {"collapse": "urlkey"},
        ):
            with self.subTest(more):
                self.assertIn(next(iter(more)), self.ask(status=400, **more).text)
        self.ask(BASE, status=400, closest="2020", page=1)
