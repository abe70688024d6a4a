"""title, text, outlinks and hashes: what is read out of pages."""

import hashlib
import sys

from support import SITE, BrowserTest, HookTest, needs_chromium, needs_wget

sys.path.append(str(SITE.parent))
from pages import PAPERS  # noqa: E402


class Title(HookTest):
    def title(self, path):
        outcome = self.run_hook("title", path)
        self.assert_status(outcome, "succeeded")
        self.assertEqual(outcome.text("title.txt"), outcome.output + "\n")
        return outcome.output

    def test_every_encoding(self):
        self.assertEqual(self.title("/cp1251.html"), "Маяк у моря")  # by HTTP header
        self.assertEqual(self.title("/shift-jis.html"), "灯台の表示")  # by <meta>
        self.assertEqual(self.title("/latin1.html"), "Café à l'île")  # undeclared
        self.assertEqual(self.title("/utf16.html"), "Φάρος")  # by byte order mark

    def test_a_compressed_page(self):
        self.assertEqual(self.title("/gzip"), "Compressed")

    @needs_wget
    def test_the_encoding_survives_wget(self):
        for path, title in (
            ("/cp1251.html", "Маяк у моря"),
            ("/shift-jis.html", "灯台の表示"),
            ("/gzip", "Compressed"),
        ):
            self.run_hook("wget", path)
            outcome = self.run_hook("title", path)
            self.assertEqual((outcome.output, outcome.result["output_json"]["source"]), (title, "wget"))

    def test_a_huge_title_is_cut(self):
        title = self.title("/huge-title")
        self.assertEqual(len(title), 1000)
        self.assertTrue(title.endswith("…"))

    def test_a_hostile_title_is_text_without_control_characters(self):
        title = self.title("/hostile.html")
        self.assertTrue(title.startswith("<script>alert('title')</script>"))
        self.assertFalse([c for c in title if ord(c) < 32 or 0xD800 <= ord(c) < 0xE000])

    def test_of_a_drawing(self):
        self.assertEqual(self.title("/drawing.svg"), "Tide chart")

    def test_what_has_no_title(self):
        self.assert_status(self.run_hook("title", "/report.pdf"), "noresults")
        self.assert_status(self.run_hook("title", "/list.txt"), "noresults")
        self.assert_failed(self.run_hook("title", "/missing"), "HTTP 404")


class Text(HookTest):
    def test_the_words_of_a_drawing(self):
        outcome = self.run_hook("text", "/drawing.svg")
        self.assert_status(outcome, "succeeded")
        words = outcome.text("content.txt").split("\n")
        self.assertEqual(
            [line for line in words if line], ["Tide chart", "Heights of a day", "Noon", "High water & low"]
        )

    def test_the_article_without_its_surroundings(self):
        outcome = self.run_hook("text", "/article.html")
        self.assert_status(outcome, "succeeded")
        text = outcome.text("content.txt")
        self.assertIn("ropes, a bicycle, the ribs of a boat", text)
        self.assertNotIn("Footer words", text)
        self.assertNotIn("dataset", text)
        self.assertIn("<h2>Later</h2>", outcome.text("content.html"))

    def test_markup_in_text_stays_text(self):
        html = self.run_hook("text", "/hostile.html").text("content.html")
        self.assertNotIn("<script", html)

    def test_a_page_of_links_only_is_still_text(self):
        self.assertIn("- /leaf/499", self.run_hook("text", "/links500").text("content.txt"))

    def test_plain_text_and_other_things(self):
        self.assertIn("ftp://example.org/x", self.run_hook("text", "/list.txt").text("content.txt"))
        self.assert_status(self.run_hook("text", "/photo.jpg"), "noresults")

    @needs_wget
    def test_the_words_of_documents(self):
        for kind in PAPERS:
            with self.subTest(kind):
                self.run_hook("wget", f"/paper.{kind}")
                text = self.run_hook("text", f"/paper.{kind}").text("content.txt")
                self.assertEqual(" ".join(text.split()), "The pilot counts Größe 7 & more. A second paragraph.")

    @needs_wget
    def test_the_language_of_a_page(self):
        for path, language in (
            ("/article.html", "en"),
            ("/said-language?lang=DE-at", "de-at"),
            ("/said-language", "fr"),
        ):
            with self.subTest(path):
                self.run_hook("wget", path)
                outcome = self.run_hook("text", path)
                self.assertEqual(outcome.result["output_json"]["language"], language)


class Outlinks(HookTest):
    def test_every_way_to_write_a_link(self):
        outcome = self.run_hook("outlinks", "/links.html")
        self.assert_status(outcome, "succeeded")
        self.assertEqual(
            self.paths(outcome),
            [
                "/deep/er/next", "/deep/er/relative", "/deep/up", "/deep/er/", "/deep/er/spaced%20out", "/deep/er/newline",
                "/deep/er/?q=a&b=1", "/deep/er/area", "/deep/er/frame", "/deep/er/unquoted", "/☃",
            ],
        )  # fmt: skip
        titles = {path: record["title"] for path, record in zip(self.paths(outcome), self.links(outcome))}
        self.assertEqual(titles["/deep/up"], "up, with a longer text")
        self.assertEqual(titles["/deep/er/?q=a&b=1"], "picture link")
        self.assertEqual({record["type"] for record in outcome.records}, {"Response", "ArchiveResult"})

    def test_five_hundred_links(self):
        outcome = self.run_hook("outlinks", "/links500")
        self.assertEqual(outcome.output, "500 links")
        self.assertEqual(self.paths(outcome), [f"/leaf/{number}" for number in range(500)])

    def test_the_number_of_links_is_bounded(self):
        outcome = self.run_hook("outlinks", "/farm/3", OUTLINKS_MAX="10")
        self.assertEqual(len(self.links(outcome)), 10)
        self.assertIn("OUTLINKS_MAX=10", outcome.output)

    def test_feeds(self):
        rss = self.run_hook("outlinks", "/feed.rss")
        self.assertEqual(self.paths(rss), ["/leaf/0", "/leaf/1", "/leaf/2"])
        self.assertEqual(self.links(rss)[1]["title"], "Entry & 1")
        self.assertEqual(self.paths(self.run_hook("outlinks", "/feed.atom")), ["/leaf/0", "/leaf/1", "/leaf/2"])

    def test_a_sitemap(self):
        self.assertEqual(self.paths(self.run_hook("outlinks", "/sitemap.xml")), ["/a/", "/a/b/", "/article.html"])

    def test_bookmarks_keep_tags_and_dates(self):
        first, second = self.links(self.run_hook("outlinks", "/bookmarks.html"))
        self.assertEqual((first["title"], first["tags"]), ("One & only", "sea,light"))
        self.assertEqual(first["bookmarked_at"], "2023-11-14T22:13:20.000Z")
        self.assertNotIn("tags", second)

    def test_json_lines(self):
        links = self.links(self.run_hook("outlinks", "/list.jsonl"))
        self.assertEqual([(link["title"], link.get("tags")) for link in links], [("One", "sea,light"), ("Two", None)])

    def test_plain_text(self):
        self.assertEqual(self.paths(self.run_hook("outlinks", "/list.txt")), ["/leaf/1", "/leaf/2", "/leaf/3"])

    def test_pages_in_other_encodings(self):
        self.assertEqual(self.links(self.run_hook("outlinks", "/cp1251.html"))[0]["title"], "лист")
        self.assertEqual(self.links(self.run_hook("outlinks", "/shift-jis.html"))[0]["title"], "葉")

    def test_relative_links_after_redirects(self):
        self.assertEqual(self.paths(self.run_hook("outlinks", "/crawl/redirect")), ["/crawl/moved/beside.html"])

    def test_error_pages_lead_nowhere(self):
        self.assert_failed(self.run_hook("outlinks", "/crawl/missing"), "HTTP 404")

    def test_a_hostile_page_costs_no_more_than_its_size(self):
        outcome = self.run_hook("outlinks", "/hostile.html", TIMEOUT="30")
        self.assertEqual(self.paths(outcome), ["/leaf/1"])


@needs_chromium
class OfTheBrowser(BrowserTest):
    def test_the_title_that_a_script_set(self):
        self.assertEqual(self.run_hook("title", "/scripted.html").output, "Before")
        outcome = self.view("title", "/scripted.html")  # without the dom plugin: from the tab
        self.assertEqual((outcome.output, outcome.result["output_json"]["source"]), ("After", "tab"))
        self.view("dom", "/scripted.html")
        self.assertEqual(self.run_hook("title", "/scripted.html").output, "After")

    def test_links_of_both_copies_of_a_page(self):
        self.assert_status(self.run_hook("outlinks", "/scripted.html"), "noresults")
        self.assertEqual(self.paths(self.view("outlinks", "/scripted.html")), ["/leaf/9"])

    def test_a_feed_in_the_browser_is_read_as_it_was_sent(self):
        self.assertEqual(self.paths(self.view("outlinks", "/feed.rss")), ["/leaf/0", "/leaf/1", "/leaf/2"])

    def test_the_icon_that_the_browser_fetched(self):
        outcome = self.view("favicon", "/article.html")
        self.assert_status(outcome, "succeeded")
        self.assertEqual(outcome.file("favicon.ico")[:4], b"\0\0\1\0")

    def test_headers_are_those_that_the_browser_was_sent(self):
        outcome = self.view("headers", "/redirect")
        about = outcome.json("headers.json")
        self.assertEqual(
            (about["method"], about["status"], about["final_url"]), ("GET", 200, self.url("/article.html"))
        )
        self.assertEqual([hop["status"] for hop in about["redirects"]], [301, 302])
        self.assert_failed(self.view("headers", "http://no-such-host.invalid/"), "ERR_NAME_NOT_RESOLVED")


class Hashes(HookTest):
    def test_the_files_of_the_other_plugins(self):
        self.assert_status(self.run_hook("hashes", "/article.html"), "noresults")
        title = self.run_hook("title", "/article.html").file("title.txt")
        (self.snapshot / "title" / "link").symlink_to("/etc/passwd")
        outcome = self.run_hook("hashes", "/article.html")
        tree = outcome.json("hashes.json")
        digest = hashlib.sha256(title).hexdigest()
        self.assertEqual(tree["files"], [{"path": "title/title.txt", "size": len(title), "sha256": digest}])
        self.assertEqual(tree["root_hash"], hashlib.sha256(f"{digest}  title/title.txt\n".encode()).hexdigest())
        self.assertEqual(outcome.output, tree["root_hash"])
