"""dom, screenshot and pdf, by a real Chromium."""

import re
import struct

from urllib.parse import quote

from support import DEMO, HookTest, Server, needs_chromium, refused_url


def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data[-8:-4] == b"IEND", "not a whole PNG"
    return struct.unpack(">II", data[16:24])


@needs_chromium
class Browser(HookTest):
    def test_the_dom_is_what_scripts_made_of_it(self):
        outcome = self.run_hook("dom", "/scripted.html")  # which also calls alert()
        self.assert_status(outcome, "succeeded")
        html = outcome.text("output.html")
        self.assertIn("<title>After</title>", html)
        self.assertIn("made by a script", html)
        self.assertTrue(html.startswith("\ufeff<!DOCTYPE html>"))

    def test_the_dom_knows_where_redirects_led(self):
        outcome = self.run_hook("dom", "/redirect")
        self.assertEqual(outcome.json("page.json")["url"], self.url("/article.html"))
        self.assertIn({"type": "Redirect", "url": self.url("/redirect"), "location": self.url("/article.html")}, outcome.records)

    def test_a_foreign_encoding_becomes_utf8(self):
        self.assertIn("Привет, корабли!", self.run_hook("dom", "/cp1251.html").text("output.html"))
        self.assertIn("海は静かです。", self.run_hook("dom", "/shift-jis.html").text("output.html"))

    def test_the_screenshot_shows_the_whole_page(self):
        outcome = self.run_hook("screenshot", "/links500", SCREENSHOT_RESOLUTION="800,600")
        self.assert_status(outcome, "succeeded")
        width, height = png_size(outcome.file("screenshot.png"))
        self.assertEqual(width, 800)
        self.assertGreater(height, 5000)

    def test_a_tall_page_is_cut(self):
        outcome = self.run_hook("screenshot", "/links500", SCREENSHOT_MAX_HEIGHT="1000", RESOLUTION="640,480")
        self.assertEqual(png_size(outcome.file("screenshot.png")), (640, 1000))

    def test_the_pdf_is_whole(self):
        data = self.run_hook("pdf", "/article.html").file("output.pdf")
        self.assertTrue(data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF"))
        self.assertGreater(len(data), 5000)

    def test_error_pages_are_failures_and_leave_nothing(self):
        for plugin in ("dom", "screenshot", "pdf"):
            outcome = self.run_hook(plugin, "/missing")
            self.assert_failed(outcome, "HTTP 404")
            self.assertEqual(list(outcome.directory.iterdir()), [])
        self.assert_failed(self.run_hook("dom", "/loop"), "ERR_TOO_MANY_REDIRECTS")
        self.assert_failed(self.run_hook("screenshot", "http://no-such-host.invalid/"), "no-such-host.invalid")

    def test_the_error_page_of_the_browser_is_never_the_page(self):
        """The page is there; where it leads on to is not."""
        refused = refused_url(self)
        for plugin, how, to, reason in (
            ("dom", "script", refused, "ERR_CONNECTION_REFUSED"),
            ("screenshot", "script", refused, "ERR_CONNECTION_REFUSED"),
            ("pdf", "script", refused, "ERR_CONNECTION_REFUSED"),
            ("dom", "refresh", refused, "ERR_CONNECTION_REFUSED"),
            ("screenshot", "timer", refused, "ERR_CONNECTION_REFUSED"),
            ("dom", "script", "http://no-such-host.invalid/", "ERR_NAME_NOT_RESOLVED"),
            ("dom", "script", self.url("/loop"), "ERR_TOO_MANY_REDIRECTS"),
        ):
            with self.subTest(f"{plugin} {how} {to}"):
                outcome = self.run_hook(plugin, f"/lead?how={how}&to={quote(to, safe='')}")
                self.assert_status(outcome, "failed")
                # Where Chromium only says that the navigation was aborted, its page names the error, also in its own words.
                why = rf"net::({reason}|DNS_PROBE_\w+)"
                self.assertRegex(outcome.result["error"], rf"the page led to {re.escape(to)}\S*: {why}")
                self.assertEqual(list(outcome.directory.iterdir()), [])

    def test_a_page_that_nobody_can_have(self):
        for url in (refused_url(self), "http://no-such-host.invalid/", self.url("/loop")):
            outcome = self.run_hook("dom", url)
            self.assert_status(outcome, "failed")
            self.assertEqual([r["type"] for r in outcome.records], ["Unreachable", "ArchiveResult"])

    def test_the_answer_is_told(self):
        for path, status in (("/article.html", 200), ("/missing", 404)):
            answer = {"type": "Response", "url": self.url(path), "status": status, "mime": "text/html"}
            self.assertIn(answer, self.run_hook("dom", path).records)

    def test_a_page_that_leads_to_another_page_is_that_page(self):
        outcome = self.run_hook("dom", "/lead?how=script&to=/article.html")
        self.assert_status(outcome, "succeeded")
        self.assertNotIn("The real content", outcome.text("output.html"))
        self.assertEqual(outcome.json("page.json")["url"], self.url("/article.html"))

    def test_a_site_that_asks_to_slow_down(self):
        limit = {"type": "RateLimit", "host": "127.0.0.1", "status": 503, "retry_after": 7}
        self.assertIn(limit, self.run_hook("dom", "/status/503").records)

    def test_other_things_than_pages_have_no_results(self):
        for path in ("/report.pdf", "/large.bin", "/photo.jpg"):
            self.run_hook("headers", path)
            for plugin in ("dom", "screenshot", "pdf"):
                # Without a browser on the PATH: none is started for such a page.
                self.assert_status(self.run_hook(plugin, path, PATH=self.path_with()), "noresults")

    def test_a_download_has_no_results_without_being_told(self):
        self.assert_status(self.run_hook("dom", "/large.bin?mb=1"), "noresults")

    def test_an_endless_page_ends_before_the_timeout_and_is_kept(self):
        outcome = self.run_hook("dom", "/endless", TIMEOUT="15")
        self.assert_failed(outcome, "did not arrive whole")
        self.assertIn("<title>Endless</title>", outcome.text("output.html"))

    def test_a_page_that_hangs_on_an_image_is_taken_as_it_is(self):
        outcome = self.run_hook("screenshot", "/slow-image.html", TIMEOUT="15")
        self.assert_status(outcome, "succeeded")
        self.assertIs(outcome.result["output_json"]["finished"], False)

    def test_pages_that_break_off_are_failures(self):
        self.assert_failed(self.run_hook("dom", "/broken-off"), "broke off")

    def test_a_script_without_end_does_not_hold_us(self):
        self.assert_failed(self.run_hook("dom", "/busy.html", TIMEOUT="15"), "did not answer in time")

    def test_a_hostile_page(self):
        self.assert_status(self.run_hook("dom", "/hostile.html"), "succeeded")

    def test_two_browsers_at_once_do_not_meet(self):
        hooks = {plugin: self.start(plugin, self.url("/article.html")) for plugin in ("dom", "screenshot")}
        for plugin, process in hooks.items():
            self.assert_status(self.finish(plugin, process), "succeeded")


@needs_chromium
class DemoSite(HookTest):
    def test_the_demo_site_can_be_archived(self):
        demo = Server(DEMO)
        self.addCleanup(demo.stop)
        for plugin in ("headers", "wget", "screenshot", "pdf", "dom", "title", "text", "outlinks"):
            outcome = self.run_hook(plugin, demo.url)
            self.assert_status(outcome, "succeeded")
            if plugin == "title":
                self.assertEqual(outcome.output, "Hollow Skerry Light: a keeper's log")
            if plugin == "outlinks":
                self.assertEqual(len(self.links(outcome)), 5)
